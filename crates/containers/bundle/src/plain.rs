//! The plain clang offload bundle.
//!
//! Layout, little-endian (LLVM's `OffloadBundler.cpp`, checked against clang 22 to 24): the magic
//! `__CLANG_OFFLOAD_BUNDLE__`, a u64 with the number of entries, for each entry u64 offset from
//! the bundle's start, u64 size, u64 length of the ID and the ID; then the entries' bytes, each at
//! a multiple of the bundle's alignment. Two entries may have the same bytes. Nothing pads the end.

use crate::bytes::{EntryBytes, align_up, malformed_at, slice, u64_at};
use crate::draft::FileRope;
use crate::magic::PLAIN;
use crate::{BundleEntry, record_block};
use hotswap_report::{Diagnostic, codes};
use std::ops::Range;

/// Alignment of entries that HIP's loaders expect and clang uses for HIP.
pub const ALIGNMENT: u64 = 4096;
/// Bytes of an uncompressed bundle in which the HIP runtime looks for the entry table.
pub const TABLE_LIMIT: u64 = 4096;
const FIRST_ENTRY: u64 = 32;
const ENTRY_HEADER: u64 = 24;

/// The contents of a plain bundle.
pub(crate) struct PlainBundle<'a> {
    pub(crate) entries: Vec<BundleEntry<'a>>,
    pub(crate) record: Option<EntryBytes<'a>>,
    pub(crate) alignment: u64,
    /// The end of the last byte that belongs to the bundle.
    pub(crate) end: u64,
}

/// Reads a plain bundle at the start of `bytes`.
pub(crate) fn read_plain<'a>(bytes: &EntryBytes<'a>) -> Result<PlainBundle<'a>, Diagnostic> {
    if !bytes.starts_with(PLAIN) {
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, "it does not begin as a clang offload bundle"));
    }
    let count = u64_at(bytes, 24).ok_or_else(|| malformed_at("the bundle ends in its header", 24))?;
    // Guards the reservation below: a table of `count` entries has to fit.
    if count > (bytes.len() as u64 - FIRST_ENTRY) / ENTRY_HEADER {
        return Err(malformed_at(format!("the bundle claims {count} entries, more than it has room for"), 24));
    }
    let mut entries = Vec::with_capacity(count as usize);
    let mut offsets = Vec::with_capacity(count as usize);
    let (mut at, mut end) = (FIRST_ENTRY, FIRST_ENTRY);
    for _ in 0..count {
        let (entry, offset, next) = read_entry(bytes, at)?;
        if !entry.data.is_empty() {
            end = end.max(offset + entry.data.len() as u64);
        }
        entries.push(entry);
        offsets.push(offset);
        at = next;
    }
    check_outside_table(&entries, &offsets, at)?;
    let end = end.max(at);
    let found = record_block::find_block(bytes, end)?;
    let record = found.as_ref().and_then(|block| bytes.part(block.payload.clone()));
    let end = found.map_or(end, |block| block.end);
    let alignment = detect_alignment(&entries, &offsets);
    Ok(PlainBundle { entries, record, alignment, end })
}

/// Checks the start of a bundle of `size` bytes before the rest is decompressed: its magic, and whether its table
/// accounts for that size. HotSwap's record after the last entry is small.
///
/// # Errors
/// [`codes::MALFORMED`] for other data, or data that is mostly something else.
pub(crate) fn check_beginning(start: &[u8], size: u64) -> Result<(), Diagnostic> {
    const RECORD: u64 = 16 << 20;
    if !start.starts_with(PLAIN) {
        return Err(malformed_at("what is compressed is no bundle", 0));
    }
    let (mut at, mut end) = (FIRST_ENTRY, FIRST_ENTRY);
    for _ in 0..u64_at(start, 24).unwrap_or_default() {
        let fields = [0, 8, 16].map(|field| u64_at(start, at.checked_add(field)?));
        // A table that is longer than the start cannot be checked yet.
        let [Some(offset), Some(length), Some(id)] = fields else { return Ok(()) };
        end = end.max(offset.saturating_add(length));
        at = at.saturating_add(ENTRY_HEADER).saturating_add(id);
    }
    if size > end.max(at).saturating_add(RECORD) {
        let what = format!("the bundle claims {size} bytes, its entries end at {end:#x}");
        return Err(malformed_at(what, 0));
    }
    Ok(())
}

/// The ID of an entry, and the bytes of its code without compression.
pub type EntrySize = (String, u64);

/// The entry table of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryTable {
    pub(crate) entries: Vec<EntrySize>,
    /// The end of the last entry.
    pub(crate) end: u64,
}

/// The entry table of a bundle of `size` bytes by its first bytes. `None` where the table is longer than `start`.
///
/// # Errors
/// [`codes::MALFORMED`] for data that is not a bundle, and for entries outside of it.
pub(crate) fn read_table(start: &[u8], size: u64) -> Result<Option<EntryTable>, Diagnostic> {
    if !start.starts_with(PLAIN) {
        return Err(malformed_at("what is compressed is no bundle", 0));
    }
    let count = u64_at(start, 24).ok_or_else(|| malformed_at("the bundle ends in its header", 24))?;
    let is_whole = start.len() as u64 == size;
    let (mut entries, mut at, mut end) = (Vec::new(), FIRST_ENTRY, FIRST_ENTRY);
    for _ in 0..count {
        let fields = [0, 8, 16].map(|field| u64_at(start, at.checked_add(field)?));
        let [Some(offset), Some(length), Some(id_size)] = fields else {
            return if is_whole { Err(malformed_at("the bundle ends in its entry table", at)) } else { Ok(None) };
        };
        let id = slice(start, at + ENTRY_HEADER, id_size).and_then(|id| std::str::from_utf8(id).ok());
        let Some(id) = id else {
            // The reader of the whole reports the error.
            return Ok(None);
        };
        let entry_end = offset.checked_add(length).filter(|end| length == 0 || *end <= size);
        let Some(entry_end) = entry_end else {
            let what = format!("the entry is at {offset:#x} with {length:#x} bytes, outside of the bundle");
            return Err(malformed_at(what, at).in_entry(id));
        };
        end = if length == 0 { end } else { end.max(entry_end) };
        entries.push((id.to_owned(), length));
        at += ENTRY_HEADER + id_size;
    }
    Ok(Some(EntryTable { entries, end: end.max(at) }))
}

/// The position of an entry in a bundle by its first bytes, whose table [`read_table`] has read.
pub(crate) fn entry_range(start: &[u8], number: usize) -> Option<Range<u64>> {
    let mut at = FIRST_ENTRY;
    for _ in 0..number {
        at = at.checked_add(ENTRY_HEADER)?.checked_add(u64_at(start, at.checked_add(16)?)?)?;
    }
    let offset = u64_at(start, at)?;
    Some(offset..offset.checked_add(u64_at(start, at.checked_add(8)?)?)?)
}

/// One entry of the table, its offset, and the start of the table's next entry.
fn read_entry<'a>(bytes: &EntryBytes<'a>, at: u64) -> Result<(BundleEntry<'a>, u64, u64), Diagnostic> {
    let offset = u64_at(bytes, at).ok_or_else(|| truncated_entry_error(at))?;
    let size = u64_at(bytes, at + 8).ok_or_else(|| truncated_entry_error(at))?;
    let id_size = u64_at(bytes, at + 16).ok_or_else(|| truncated_entry_error(at))?;
    let id = slice(bytes, at + ENTRY_HEADER, id_size).ok_or_else(|| truncated_entry_error(at))?;
    let id = std::str::from_utf8(id).map_err(|_| malformed_at("a bundle entry ID is no text", at + ENTRY_HEADER))?;
    // clang gives an empty entry an offset too, which may be beyond the end of the file.
    let data = match size {
        0 => EntryBytes::from(&[][..]),
        _ => bytes
            .part(offset..offset.checked_add(size).ok_or_else(|| entry_outside_error(offset, size, at, id))?)
            .ok_or_else(|| entry_outside_error(offset, size, at, id))?,
    };
    let next = at + ENTRY_HEADER + id_size;
    Ok((BundleEntry { id: id.to_owned(), data }, offset, next))
}

fn truncated_entry_error(at: u64) -> Diagnostic {
    malformed_at("the bundle ends in its entry table", at)
}

fn entry_outside_error(offset: u64, size: u64, at: u64, id: &str) -> Diagnostic {
    let what = format!("the entry is at {offset:#x} with {size:#x} bytes, outside of the bundle");
    malformed_at(what, at).in_entry(id)
}

/// An entry inside the table (its offset is 0 at worst) is damage, not content.
fn check_outside_table(entries: &[BundleEntry<'_>], offsets: &[u64], table_end: u64) -> Result<(), Diagnostic> {
    for (entry, offset) in entries.iter().zip(offsets) {
        if !entry.data.is_empty() && *offset < table_end {
            let what = format!("the entry begins at {offset:#x}, inside of the entry table");
            return Err(malformed_at(what, *offset).in_entry(&entry.id));
        }
    }
    Ok(())
}

/// The largest alignment for which our layout yields the offsets that were read; where none does
/// (another tool's bundle), HIP's.
fn detect_alignment(entries: &[BundleEntry<'_>], offsets: &[u64]) -> u64 {
    let mut alignments = (0..=16).rev().map(|bits| 1 << bits);
    let found = alignments.find(|alignment| layout_entries(entries, *alignment).is_some_and(|found| found == offsets));
    found.unwrap_or(ALIGNMENT)
}

fn table_size(entries: &[BundleEntry<'_>]) -> u64 {
    FIRST_ENTRY + entries.iter().map(|entry| ENTRY_HEADER + entry.id.len() as u64).sum::<u64>()
}

/// Places of the entries. Entries with the same address get one offset; `None` where an offset overflows.
fn layout_entries(entries: &[BundleEntry<'_>], alignment: u64) -> Option<Vec<u64>> {
    let mut end = table_size(entries);
    let mut offsets: Vec<u64> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        // Only neighbours: a bundle with 70 entries must not cost 70 * 70 comparisons for each alignment tried.
        let shared = index.checked_sub(1).filter(|before| entries[*before].data.same_place(&entry.data));
        if let Some(before) = shared {
            offsets.push(offsets[before]);
            continue;
        }
        let offset = align_up(end, alignment)?;
        offsets.push(offset);
        end = offset.checked_add(entry.data.len() as u64)?;
    }
    Some(offsets)
}

/// Lays out a plain bundle. `limit`: whether the HIP runtime has to find the table in it. `like` lists the entries that
/// are edited copies, with their originals.
pub(crate) fn draft_plain<'a>(
    entries: &[BundleEntry<'a>],
    record: Option<&[u8]>,
    (alignment, limit): (u64, bool),
    like: &[(String, EntryBytes<'a>)],
) -> Result<FileRope<'a>, Diagnostic> {
    let table = table_size(entries);
    if limit && table > TABLE_LIMIT {
        let what = format!("{} entries need a table of {table} bytes", entries.len());
        return Err(Diagnostic::error(codes::BUNDLE_FULL, what));
    }
    let offsets = layout_entries(entries, alignment).ok_or_else(too_large)?;
    let mut head = PLAIN.to_vec();
    head.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    for (entry, offset) in entries.iter().zip(&offsets) {
        for field in [*offset, entry.data.len() as u64, entry.id.len() as u64] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        head.extend_from_slice(entry.id.as_bytes());
    }
    let mut out = FileRope::from(head);
    for (entry, offset) in entries.iter().zip(&offsets) {
        // Shared bytes exist already; an empty entry does not lengthen the bundle, as in clang.
        if *offset < out.size() || entry.data.is_empty() {
            continue;
        }
        out.pad_to(*offset);
        out.push(entry.data.clone());
        if let Some((_, source)) = like.iter().find(|(id, _)| *id == entry.id) {
            out.share_with(*offset, source);
        }
    }
    if let Some(payload) = record {
        record_block::append_block(&mut out, payload);
    }
    Ok(out)
}

/// The error for sizes that exceed memory.
pub(crate) fn too_large() -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the bundle would be larger than memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bundle;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let mut bundle = Bundle::default();
        bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
        bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1030", vec![1; 40]).unwrap();
        bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1100", vec![2; 50]).unwrap();
        bundle.to_plain_bytes().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The table alone agrees with the whole, wherever both can be read, and damage makes neither panic.
        #[test]
        fn the_table_alone_agrees_with_the_whole(
            changes in prop::collection::vec((0..200_usize, any::<u8>()), 0..4),
            start in 0..9000_usize,
        ) {
            let mut bytes = sample();
            changes.iter().for_each(|(at, value)| bytes[*at] = *value);
            let table = read_table(&bytes[..start.min(bytes.len())], bytes.len() as u64);
            let whole = read_plain(&EntryBytes::from(&bytes[..]));
            if let (Ok(Some(table)), Ok(whole)) = (&table, &whole) {
                let entries: Vec<_> = whole.entries.iter().map(BundleEntry::id_and_size).collect();
                prop_assert_eq!(table, &EntryTable { entries, end: whole.end });
            }
            // A table reported as damaged is damaged.
            prop_assert!(table.is_ok() || whole.is_err() || start < 32);
        }
    }

    #[test]
    fn a_table_longer_than_its_begin_is_not_judged() {
        let bytes = sample();
        let size = bytes.len() as u64;
        assert!(matches!(read_table(&bytes[..100], size), Ok(None)));
        assert!(
            matches!(read_table(&bytes[..300], size), Ok(Some(table)) if table.entries.len() == 3 && table.end == size)
        );
    }
}
