//! A raw profile: header, records, then the payload (counters, bitmaps, counters of uniform waves), then names.
//!
//! Invariant: the parts are in [`Capture`](crate::capture::Capture) in the order of the file, padded, so that writing copies nothing.

use crate::bytes::{put, word};
use crate::layout::{BYTE_COVERAGE, KEY, RecordLayout};
use crate::memory::Bytes;
use crate::text::Text;
use core::ops::Range;

/// `\xfflprofr\x81` of 64-bit profiles.
pub const MAGIC: u64 = 0xff6c_7072_6f66_7281;
/// Kinds of value profiling that the header announces, minus one; the same in all known versions.
const LAST_VALUE_KIND: u64 = 2;
/// A header does not have more words than this.
const WORDS: usize = 19;
/// The words about uniform counters: their number, their padding, their distance.
const UNIFORM_WORDS: usize = 3;

/// Bytes of a header.
pub fn header_size(layout: &RecordLayout) -> usize {
    if layout.uniform.is_some() { WORDS * 8 } else { (WORDS - UNIFORM_WORDS) * 8 }
}

/// Bytes of the three parts of the payload, without padding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PayloadParts {
    pub counters: usize,
    /// Bytes of the bitmaps.
    pub bits: usize,
    /// Counters of uniform waves.
    pub uniform: usize,
}

/// Rounds up to the next multiple of eight.
pub const fn padded(size: usize) -> usize {
    size.wrapping_add(7) & !7
}

impl PayloadParts {
    /// Offset of the bitmaps in a payload.
    pub fn bits_at(self) -> usize {
        padded(self.counters)
    }

    /// Offset of the counters of uniform waves in a payload.
    pub fn uniform_at(self) -> usize {
        self.bits_at().wrapping_add(padded(self.bits))
    }

    /// Bytes of a payload.
    pub fn size(self) -> usize {
        self.uniform_at().wrapping_add(padded(self.uniform))
    }
}

/// Distances from the data section, in the form of the header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deltas {
    /// Distance from the records to the counters.
    pub counters: u64,
    /// Distance from the records to the bitmaps.
    pub bits: u64,
    /// To the counters of uniform waves.
    pub uniform: u64,
}

/// The code object that a profile is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeIdentity {
    /// The hash of what code cannot write ([`crate::image`]); 0 where it is not known.
    pub id: u64,
    /// `e_flags`: its processor and features; 0 where they are not known.
    pub flags: u32,
}

/// Begins the identity in a profile.
pub const IDENTITY: &[u8] = b"hotswap:";

/// The binary IDs of the raw format, a list that LLVM's tools skip. Ours has one entry, a text:
/// `hotswap:id=HASH:flags=E_FLAGS:gpu=PROCESSOR`, numbers in hexadecimal. An entry is its size, its bytes, zeros up to
/// a multiple of eight.
#[derive(Clone, Copy)]
pub struct RawIds {
    bytes: [u8; RawIds::MOST],
    used: usize,
}

impl Default for RawIds {
    fn default() -> Self {
        Self { bytes: [0; Self::MOST], used: 0 }
    }
}

impl RawIds {
    const MOST: usize = 136;

    /// The entry of code on a GPU.
    pub fn new(code: CodeIdentity, processor: &[u8]) -> Self {
        let mut text = Text::<128>::new(IDENTITY);
        text.push(b"id=").hex(code.id, 16).push(b":flags=").hex(u64::from(code.flags), 8);
        text.push(b":gpu=").push(processor);
        let mut made = Self::default();
        let length = text.bytes().len();
        let _ = put(&mut made.bytes, 0, &(length as u64).to_le_bytes());
        let _ = put(&mut made.bytes, 8, text.bytes());
        made.used = padded(length).wrapping_add(8).min(Self::MOST);
        made
    }

    /// The bytes of the list.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

/// The process that wrote a profile, in the padding before the counters, so that it finds its own among those of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessTag {
    pub id: u64,
    /// When it started, in nanoseconds: numbers occur again, and in each container.
    pub start: u64,
}

impl ProcessTag {
    /// Bytes of a tag.
    pub const SIZE: usize = 24;

    /// The bytes in the file.
    pub fn bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let _ = put(&mut bytes, 0, b"HotSwap\0");
        let _ = put(&mut bytes, 8, &self.id.to_le_bytes());
        let _ = put(&mut bytes, 16, &self.start.to_le_bytes());
        bytes
    }
}

/// A profile at the start of bytes.
pub struct MeasuredProfile<'a> {
    /// Bytes of the profile.
    pub size: usize,
    /// The tag of its writer, if it has one.
    pub tag: Option<&'a [u8]>,
}

/// The profile that begins there; `None` where it is damaged or of a host, whose values of value
/// profiling follow without a size.
pub fn measure(bytes: &[u8]) -> Option<MeasuredProfile<'_>> {
    let layout = crate::layout::of_version(word::<8>(bytes, 8))?;
    let (header, uniform) = (header_size(layout), if layout.uniform.is_some() { UNIFORM_WORDS } else { 0 });
    if word::<8>(bytes, 0) != MAGIC || bytes.len() < header {
        return None;
    }
    let counter = if word::<8>(bytes, 8) & BYTE_COVERAGE != 0 { 1 } else { 8 };
    let names = header_size_field(bytes, 9 + uniform)?.checked_add(7)? & !7;
    let record_bytes = header_size_field(bytes, 3)?.checked_mul(layout.record)?;
    let records = header.checked_add(header_size_field(bytes, 2)?)?.checked_add(record_bytes)?;
    let tag = bytes.get(records..records.checked_add(header_size_field(bytes, 4)?)?)?;
    let counter_bytes = header_size_field(bytes, 5)?.checked_mul(counter)?;
    let mut size = records.checked_add(tag.len())?.checked_add(counter_bytes)?;
    for number in 6..9 {
        size = size.checked_add(header_size_field(bytes, number)?)?;
    }
    size = size.checked_add(names)?;
    if uniform > 0 {
        let uniform_bytes = header_size_field(bytes, 9)?.checked_mul(8)?;
        size = size.checked_add(uniform_bytes)?.checked_add(header_size_field(bytes, 10)?)?;
    }
    let has_tables = header_size_field(bytes, 13 + uniform)? != 0 || header_size_field(bytes, 14 + uniform)? != 0;
    let tag = (!tag.is_empty()).then_some(tag);
    (!has_tables && size <= bytes.len()).then_some(MeasuredProfile { size, tag })
}

/// A number of the header that counts bytes or records.
fn header_size_field(bytes: &[u8], number: usize) -> Option<usize> {
    usize::try_from(word::<8>(bytes, number * 8)).ok()
}

/// The parts that do not change while device code runs: everything in a file but the payload.
pub struct Fixed {
    /// The version word, with the flags of the device's own version variable.
    pub version: u64,
    pub code: CodeIdentity,
    /// The same with the GPU, as it is in the file.
    pub ids: RawIds,
    /// Sound records, distances corrected.
    pub data: Bytes,
    /// Names, padded with zeros.
    pub names: Bytes,
    /// Bytes of names without padding.
    pub names_size: usize,
    /// Sizes of the payload's parts.
    pub parts: PayloadParts,
    pub deltas: Deltas,
}

/// The words of a header, and the binary IDs after them.
pub struct RawHeader {
    bytes: [u8; WORDS * 8 + RawIds::MOST],
    used: usize,
}

impl RawHeader {
    /// The header's bytes in the file.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    fn add(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.add_bytes(&word.to_le_bytes()));
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        if put(&mut self.bytes, self.used, bytes).is_some() {
            self.used += bytes.len();
        }
    }
}

impl Fixed {
    /// The header of the file, with so many bytes between records and counters.
    pub fn header(&self, layout: &RecordLayout, before_counters: usize) -> RawHeader {
        let mut header = RawHeader { bytes: [0; WORDS * 8 + RawIds::MOST], used: 0 };
        let records = self.data.len().checked_div(layout.record).unwrap_or(0);
        let per_counter = if self.is_byte_coverage() { 1 } else { 8 };
        let (PayloadParts { counters, bits, uniform }, deltas) = (self.parts, self.deltas);
        let ids = self.ids.bytes();
        header.add(&[MAGIC, self.version, ids.len() as u64, records as u64, before_counters as u64]);
        header.add(&[(counters / per_counter) as u64, padding_bytes(counters)]);
        header.add(&[bits as u64, padding_bytes(bits)]);
        if layout.uniform.is_some() {
            header.add(&[(uniform / 8) as u64, padding_bytes(uniform), deltas.uniform]);
        }
        // Distance of names, tables of virtual functions and their names: none.
        header.add(&[self.names_size as u64, deltas.counters, deltas.bits, 0, 0, 0, LAST_VALUE_KIND]);
        header.add_bytes(ids);
        header
    }

    /// Whether counters are single bytes.
    pub fn is_byte_coverage(&self) -> bool {
        self.version & BYTE_COVERAGE != 0
    }

    /// A hash of the profile's subject: the code object, the names, and the name and shape of each function. It is the
    /// same in every process and on every GPU.
    pub fn identity(&self, layout: &RecordLayout) -> u64 {
        let mut hash = fnv(fnv(FNV_START, &self.version.to_le_bytes()), &self.code.id.to_le_bytes());
        hash = fnv(hash, self.names.get(..self.names_size).unwrap_or_default());
        for record in layout.records(&self.data) {
            hash = fnv(hash, record.get(..KEY).unwrap_or_default());
            hash = fnv(hash, &word::<4>(record, layout.counter_count).to_le_bytes());
        }
        hash
    }
}

fn padding_bytes(size: usize) -> u64 {
    (padded(size) - size) as u64
}

/// Where a hash begins.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of 64 bits.
pub fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Adds the counts of one payload to another of the same parts. Counters saturate.
pub fn add(into: &mut [u8], from: &[u8], parts: PayloadParts, byte_coverage: bool) {
    let counters = 0..parts.counters;
    if byte_coverage {
        each_byte(into, from, counters, |a, b| a & b);
    } else {
        add_words(into, from, counters);
    }
    each_byte(into, from, parts.bits_at()..parts.bits_at().wrapping_add(parts.bits), |a, b| a | b);
    add_words(into, from, parts.uniform_at()..parts.uniform_at().wrapping_add(parts.uniform));
}

fn add_words(into: &mut [u8], from: &[u8], part: Range<usize>) {
    let into = into.get_mut(part.clone()).unwrap_or_default();
    each_word(into, from.get(part).unwrap_or_default(), u64::saturating_add);
}

fn each_byte(into: &mut [u8], from: &[u8], part: Range<usize>, merge: fn(u8, u8) -> u8) {
    let into = into.get_mut(part.clone()).unwrap_or_default();
    let from = from.get(part).unwrap_or_default();
    into.iter_mut().zip(from).for_each(|(into, from)| *into = merge(*into, *from));
}

/// Subtracts the counts that [`add`] added; bits that were set stay.
pub fn subtract(from: &mut [u8], what: &[u8], parts: PayloadParts, byte_coverage: bool) {
    if !byte_coverage {
        let counters = from.get_mut(..parts.counters).unwrap_or_default();
        each_word(counters, what, u64::saturating_sub);
    }
    let range = parts.uniform_at()..parts.size();
    let uniform = from.get_mut(range.clone()).unwrap_or_default();
    each_word(uniform, what.get(range).unwrap_or_default(), u64::saturating_sub);
}

fn each_word(into: &mut [u8], from: &[u8], merge: fn(u64, u64) -> u64) {
    for (into, from) in into.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        let merged = merge(word::<8>(into, 0), word::<8>(from, 0)).to_le_bytes();
        into.iter_mut().zip(merged).for_each(|(place, byte)| *place = byte);
    }
}

/// Whether any counter of a later payload is below the earlier one's: then it is of another load of the same code.
pub fn shrinks(earlier: &[u8], later: &[u8], parts: PayloadParts) -> bool {
    let counters = earlier.chunks_exact(8).zip(later.chunks_exact(8)).take(parts.counters / 8);
    counters.into_iter().any(|(earlier, later)| word::<8>(later, 0) < word::<8>(earlier, 0))
}

/// Whether names are chunks as LLVM writes them: size, size when compressed or zero, bytes; zeros between them.
pub fn names_are_sound(names: &[u8]) -> bool {
    let mut rest = names;
    while let Some(first) = rest.first() {
        if *first == 0 {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let Some(size) = read_uleb128(rest) else { return false };
        let Some(packed) = read_uleb128(size.rest) else { return false };
        let length = if packed.value == 0 { size.value } else { packed.value };
        let next = usize::try_from(length).ok().and_then(|length| packed.rest.get(length..));
        let Some(next) = next else { return false };
        rest = next;
    }
    true
}

/// A ULEB128 number, and the bytes after it.
struct Uleb128Prefix<'a> {
    value: u64,
    rest: &'a [u8],
}

fn read_uleb128(bytes: &[u8]) -> Option<Uleb128Prefix<'_>> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(Uleb128Prefix { value, rest: bytes.get(index + 1..)? });
        }
    }
    None
}
