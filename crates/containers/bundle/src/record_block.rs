//! HotSwap's own block after the last entry of a bundle.
//!
//! Layout, little-endian, at the first multiple of 8 after the last entry:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `HOTSWAPR` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | flags, 0 |
//! | 16 | 8 | length of the payload |
//! | 24 | | payload (JSON of `hotswap_report::Record`), zeros up to a multiple of 8 |
//!
//! Readers of bundles follow the entry table and ignore everything after the last entry.

use crate::bytes::{align_up, malformed_at, slice, u32_at, u64_at};
use crate::draft::FileRope;
use hotswap_report::{Diagnostic, codes};
use std::ops::Range;

pub(crate) const MAGIC: &[u8; 8] = b"HOTSWAPR";
const VERSION: u32 = 1;
const HEADER: u64 = 24;
const ALIGNMENT: u64 = 8;

/// A block with HotSwap's record.
pub(crate) struct FoundBlock {
    pub(crate) payload: Range<u64>,
    /// The end of its padding.
    pub(crate) end: u64,
}

/// The block after `end`, if there is one.
pub(crate) fn find_block(bytes: &[u8], end: u64) -> Result<Option<FoundBlock>, Diagnostic> {
    let Some(start) = align_up(end, ALIGNMENT) else { return Ok(None) };
    if slice(bytes, start, 8) != Some(MAGIC) {
        return Ok(None);
    }
    let version = u32_at(bytes, start + 8).ok_or_else(|| truncated_record_error(start))?;
    let flags = u32_at(bytes, start + 12).ok_or_else(|| truncated_record_error(start))?;
    if version != VERSION || flags != 0 {
        let what = format!("HotSwap's record has version {version}, flags {flags:#x}");
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(start));
    }
    let size = u64_at(bytes, start + 16).ok_or_else(|| truncated_record_error(start))?;
    slice(bytes, start + HEADER, size).ok_or_else(|| truncated_record_error(start))?;
    let payload = start + HEADER..start + HEADER + size;
    let padded = align_up(payload.end, ALIGNMENT).ok_or_else(|| truncated_record_error(start))?;
    let padding = slice(bytes, payload.end, padded - payload.end).ok_or_else(|| truncated_record_error(start))?;
    if padding.iter().any(|byte| *byte != 0) {
        return Err(malformed_at("the padding after HotSwap's record is not zero", payload.end));
    }
    Ok(Some(FoundBlock { payload, end: padded }))
}

fn truncated_record_error(start: u64) -> Diagnostic {
    malformed_at("HotSwap's record is cut off", start)
}

/// Appends the block to a bundle that ends with its last entry.
pub(crate) fn append_block(out: &mut FileRope<'_>, payload: &[u8]) {
    out.pad_to(out.size().next_multiple_of(ALIGNMENT));
    let mut block = MAGIC.to_vec();
    block.extend_from_slice(&VERSION.to_le_bytes());
    block.extend_from_slice(&0u32.to_le_bytes());
    block.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    block.extend_from_slice(payload);
    out.push(block);
    out.pad_to(out.size().next_multiple_of(ALIGNMENT));
}
