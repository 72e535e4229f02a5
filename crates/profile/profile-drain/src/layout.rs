//! The layouts of raw profiles that we can write: one row for each version of LLVM's format.
//!
//! Source: `llvm/include/llvm/ProfileData/InstrProfData.inc` of LLVM 22 (version 10), 23 and 24 (version 11).
//! All words are little endian. A version without a row is refused, because tools read exactly one version.

/// The positions of the fields of a record. Offsets and sizes in bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// The low half of the version word.
    pub version: u32,
    /// Size of a record.
    pub record: usize,
    /// Counters of the function: distance from the record to the first one.
    pub counters: usize,
    /// The same for counters of uniform waves, where the version has them.
    pub uniform: Option<usize>,
    /// The same for MC/DC bitmaps.
    pub bits: usize,
    /// Addresses of the function and of value-profiling nodes, 16 bytes that are meaningless outside the process.
    pub addresses: usize,
    /// Number of counters, four bytes.
    pub counter_count: usize,
    /// Numbers of value-profiling sites, three times two bytes.
    pub sites: usize,
    /// Size of a wave, two bytes, which device code stores when it runs.
    pub wave: Option<usize>,
    /// Bytes of bitmaps, four bytes.
    pub bit_count: usize,
}

#[rustfmt::skip]
pub static LAYOUTS: [RecordLayout; 2] = [
    RecordLayout { version: 10, record: 64, counters: 16, uniform: None,     bits: 24, addresses: 32,
             counter_count: 48, sites: 52, wave: None,     bit_count: 60 },
    RecordLayout { version: 11, record: 72, counters: 16, uniform: Some(24), bits: 32, addresses: 40,
             counter_count: 56, sites: 60, wave: Some(66), bit_count: 68 },
];

impl RecordLayout {
    /// The records of a data section.
    pub fn records<'a>(&self, data: &'a [u8]) -> core::slice::ChunksExact<'a, u8> {
        data.chunks_exact(self.record.max(1)) // never zero, which the compiler cannot know
    }
}

/// Hash of the function's name and of its shape: the first 16 bytes of every record.
pub const KEY: usize = 16;

/// In the version word: counters are single bytes that are zero where code was executed.
pub const BYTE_COVERAGE: u64 = 1 << 60;

/// The layout of a version word.
pub fn of_version(version: u64) -> Option<&'static RecordLayout> {
    LAYOUTS.iter().find(|layout| u64::from(layout.version) == version & 0xffff_ffff)
}
