//! The header of a raw profile, and whether LLVM's tools would accept the file.
//!
//! Layout: `llvm/include/llvm/ProfileData/InstrProfData.inc` of LLVM 22 (version 10), 23 and 24
//! (version 11); little endian. Body: binary ids, records, counters, bitmaps, counters of uniform
//! waves (version 11), names, tables of virtual functions, value data. Files may be concatenated.
//!
//! Absent on purpose: names (they may be compressed) and big-endian files, which hosts of AMD GPUs do not write.

use crate::identity::{DeviceIdentity, FunctionKey};
use std::ops::Range;

/// Why LLVM's tools would reject a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawProfileError {
    #[error("the file is empty: the program ended before it wrote its counters")]
    Empty,
    #[error("it is not a raw profile")]
    NotRaw,
    #[error("version {0} of raw profiles is not known")]
    UnknownVersion(u64),
    #[error("the file ends too early")]
    Truncated,
    #[error("its list of binary IDs is damaged")]
    BinaryIds,
    #[error("record {0} has no counters")]
    NoCounters(usize),
    #[error("record {0}: its counters lie outside the file's")]
    CountersOutside(usize),
    #[error("record {0}: its value data is cut off")]
    ValueData(usize),
    /// The fault of a profile that is not the first of its file.
    #[error("offset {offset:#x}: {fault}")]
    Later { offset: usize, fault: Box<RawProfileError> },
}

/// `\xfflprofr\x81`, as a little-endian word.
const MAGIC: u64 = 0xff6c_7072_6f66_7281;
/// `\xfflprofi\x81`: an indexed (merged) profile.
const MERGED: u64 = 0x8169_666f_7270_6cff;

const IR: u64 = 1 << 56;
const CONTEXT_SENSITIVE: u64 = 1 << 57;
const CORRELATED: u64 = 1 << 59;
const BYTE_COVERAGE: u64 = 1 << 60;

/// The differences between versions: words of the header, and offsets in a record.
struct VersionLayout {
    version: u32,
    words: usize,
    /// Indices of header words: size of names, counters delta, virtual tables, their names.
    names: usize,
    delta: usize,
    record: usize,
    counter_count: usize,
    sites: usize,
    wave: Option<usize>,
}

#[rustfmt::skip]
const LAYOUTS: [VersionLayout; 2] = [
    VersionLayout { version: 10, words: 16, names: 9,  delta: 10, record: 64, counter_count: 48, sites: 52, wave: None },
    VersionLayout { version: 11, words: 19, names: 12, delta: 13, record: 72, counter_count: 56, sites: 60, wave: Some(66) },
];

/// The instrumentation that created the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// `-fprofile-instr-generate`.
    Frontend,
    /// `-fprofile-generate`.
    Optimiser,
    /// `-fcs-profile-generate`.
    ContextSensitive,
}

impl CounterKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frontend => "front end",
            Self::Optimiser => "optimiser",
            Self::ContextSensitive => "optimiser, context sensitive",
        }
    }
}

/// One raw profile of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawProfile {
    pub version: u32,
    pub kind: CounterKind,
    pub functions: u64,
    pub counters: u64,
    /// The sum of all counters; saturates.
    pub total: u64,
    /// Lanes of a wave, where device code recorded them.
    pub wave: Option<u16>,
    /// Its bytes in the file.
    pub range: Range<usize>,
    /// The device code that it is of, if HotSwap's drain wrote it.
    pub device: Option<DeviceIdentity>,
    /// The build IDs of the files that it is of.
    pub build_ids: Vec<Vec<u8>>,
    pub keys: Vec<FunctionKey>,
}

/// Whether it is an indexed profile, i.e. merged already.
pub fn is_indexed_profile(bytes: &[u8]) -> bool {
    word(bytes, 0) == Some(MERGED)
}

/// The raw profiles of a file, one after the other.
///
/// # Errors
/// The reason why LLVM's tools would reject the file, and where.
pub fn read_raw_profiles(bytes: &[u8]) -> Result<Vec<RawProfile>, RawProfileError> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while found.is_empty() || !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let mut profile = match read_first_profile(rest) {
            Ok(profile) => profile,
            Err(fault) if found.is_empty() => return Err(fault),
            Err(fault) => return Err(RawProfileError::Later { offset, fault: Box::new(fault) }),
        };
        rest = &rest[profile.range.end..];
        profile.range = offset..bytes.len() - rest.len();
        found.push(profile);
    }
    Ok(found)
}

/// The profile at the begin of `bytes`.
fn read_first_profile(bytes: &[u8]) -> Result<RawProfile, RawProfileError> {
    if bytes.is_empty() {
        return Err(RawProfileError::Empty);
    }
    if word(bytes, 0) != Some(MAGIC) {
        return Err(RawProfileError::NotRaw);
    }
    let version = word(bytes, 1).ok_or(RawProfileError::Truncated)?;
    let layout = LAYOUTS.iter().find(|layout| u64::from(layout.version) == version & 0xffff_ffff);
    let layout = layout.ok_or(RawProfileError::UnknownVersion(version & 0xffff_ffff))?;
    let header = RawProfileHeader::read(bytes, layout)?;
    let body = RawProfileBody::cut(bytes, &header, layout)?;
    let left = body.check(version, &header, layout)?;
    let kind = match version {
        v if v & CONTEXT_SENSITIVE != 0 => CounterKind::ContextSensitive,
        v if v & IR != 0 => CounterKind::Optimiser,
        _ => CounterKind::Frontend,
    };
    let counters = body.counters.chunks_exact(8).filter_map(|bytes| word(bytes, 0));
    let total = counters.fold(0, u64::saturating_add);
    let wave = layout.wave.and_then(|at| body.records(layout).filter_map(|r| half(r, at)).find(|wave| *wave > 0));
    let entries = binary_ids(body.ids)?;
    let device = entries.iter().find_map(|entry| DeviceIdentity::parse(entry));
    let build_ids = if device.is_some() { Vec::new() } else { entries.iter().map(|entry| entry.to_vec()).collect() };
    Ok(RawProfile {
        version: layout.version,
        kind,
        functions: header.records,
        counters: header.counters,
        total,
        wave,
        range: 0..bytes.len() - left.len(),
        device,
        build_ids,
        keys: body.records(layout).filter_map(function_record_key).collect(),
    })
}

fn function_record_key(record: &[u8]) -> Option<FunctionKey> {
    Some(FunctionKey { name: word(record, 0)?, shape: word(record, 1)? })
}

/// The entries of the list of binary IDs: each is its size, its bytes, zeros up to a multiple of eight.
fn binary_ids(list: &[u8]) -> Result<Vec<&[u8]>, RawProfileError> {
    let (mut entries, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        let size = word(rest, 0).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
        let end = size.and_then(|size| size.checked_add(8)).ok_or(RawProfileError::BinaryIds)?;
        entries.push(rest.get(8..end).ok_or(RawProfileError::BinaryIds)?);
        rest = end.checked_next_multiple_of(8).and_then(|next| rest.get(next..)).ok_or(RawProfileError::BinaryIds)?;
    }
    Ok(entries)
}

struct RawProfileHeader {
    ids: u64,
    records: u64,
    before_counters: u64,
    counters: u64,
    after_counters: u64,
    bitmap: u64,
    after_bitmap: u64,
    uniform: u64,
    after_uniform: u64,
    names: u64,
    delta: u64,
    tables: u64,
    table_names: u64,
}

impl RawProfileHeader {
    fn read(bytes: &[u8], layout: &VersionLayout) -> Result<Self, RawProfileError> {
        let head = bytes.get(..layout.words * 8).ok_or(RawProfileError::Truncated)?;
        let (ids, records, counters) =
            (profile_header_word(2, head), profile_header_word(3, head), profile_header_word(5, head));
        Ok(Self {
            ids,
            records,
            before_counters: profile_header_word(4, head),
            counters,
            after_counters: profile_header_word(6, head),
            bitmap: profile_header_word(7, head),
            after_bitmap: profile_header_word(8, head),
            uniform: uniform_counter_word(9, layout, head),
            after_uniform: uniform_counter_word(10, layout, head),
            names: profile_header_word(layout.names, head),
            delta: profile_header_word(layout.delta, head),
            tables: profile_header_word(layout.names + 4, head),
            table_names: profile_header_word(layout.names + 5, head),
        })
    }
}

fn profile_header_word(number: usize, head: &[u8]) -> u64 {
    word(head, number).unwrap_or_default()
}

fn uniform_counter_word(number: usize, layout: &VersionLayout, head: &[u8]) -> u64 {
    if layout.wave.is_some() { profile_header_word(number, head) } else { 0 }
}

struct RawProfileBody<'a> {
    ids: &'a [u8],
    data: &'a [u8],
    counters: &'a [u8],
    /// Everything after these, except for value data.
    rest: &'a [u8],
}

/// Size of a record of a table of virtual functions.
const TABLE: u64 = 24;

impl<'a> RawProfileBody<'a> {
    fn cut(bytes: &'a [u8], header: &RawProfileHeader, layout: &VersionLayout) -> Result<Self, RawProfileError> {
        let mut rest = bytes.get(layout.words * 8..).ok_or(RawProfileError::Truncated)?;
        let mut take = |size: Option<u64>| -> Result<&'a [u8], RawProfileError> {
            let size = size.and_then(|size| usize::try_from(size).ok());
            let (part, left) = size.and_then(|size| rest.split_at_checked(size)).ok_or(RawProfileError::Truncated)?;
            rest = left;
            Ok(part)
        };
        let ids = take(Some(header.ids))?;
        let data = take(header.records.checked_mul(layout.record as u64))?;
        take(Some(header.before_counters))?;
        let counters = take(header.counters.checked_mul(8))?;
        take(Some(header.after_counters))?;
        take(Some(header.bitmap))?;
        take(Some(header.after_bitmap))?;
        take(header.uniform.checked_mul(8))?;
        take(Some(header.after_uniform))?;
        take(padded_profile_size(header.names))?;
        take(header.tables.checked_mul(TABLE))?;
        take(padded_profile_size(header.table_names))?;
        Ok(Self { ids, data, counters, rest })
    }

    fn records(&self, layout: &VersionLayout) -> std::slice::ChunksExact<'a, u8> {
        self.data.chunks_exact(layout.record)
    }

    /// Checks each record as LLVM's reader does; the remaining bytes are the next profile.
    fn check(
        &self,
        version: u64,
        header: &RawProfileHeader,
        layout: &VersionLayout,
    ) -> Result<&'a [u8], RawProfileError> {
        // Counters of another width, and records in a separate debug file, are left to the tools.
        let usual = version & (BYTE_COVERAGE | CORRELATED) == 0;
        let mut rest = self.rest;
        for (number, record) in self.records(layout).enumerate() {
            if usual {
                self.check_counters(number, record, header, layout)?;
            }
            let sites = (0..3).filter_map(|kind| half(record, layout.sites + 2 * kind)).any(|count| count > 0);
            if sites {
                let size = rest.get(..4).map(|size| u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
                let left = size.filter(|size| *size >= 8).and_then(|size| rest.get(size as usize..));
                rest = left.ok_or(RawProfileError::ValueData(number))?;
            }
        }
        Ok(rest)
    }

    fn check_counters(
        &self,
        number: usize,
        record: &[u8],
        header: &RawProfileHeader,
        layout: &VersionLayout,
    ) -> Result<(), RawProfileError> {
        let count = record.get(layout.counter_count..layout.counter_count + 4).unwrap_or_default();
        let count = count.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        if count == 0 {
            return Err(RawProfileError::NoCounters(number));
        }
        let passed = (number as u64).wrapping_mul(layout.record as u64);
        let pointer = word(record, 2).unwrap_or_default();
        let offset = pointer.wrapping_sub(header.delta.wrapping_sub(passed));
        let end = count.checked_mul(8).and_then(|size| offset.checked_add(size));
        if !offset.is_multiple_of(8) || end.is_none_or(|end| end > self.counters.len() as u64) {
            return Err(RawProfileError::CountersOutside(number));
        }
        Ok(())
    }
}

fn padded_profile_size(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(8)
}

fn word(bytes: &[u8], number: usize) -> Option<u64> {
    let at = number.checked_mul(8)?;
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

#[cfg(test)]
#[path = "raw_profile_tests.rs"]
mod tests;
