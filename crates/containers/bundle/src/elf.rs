//! Headers of ELF64 little-endian files, for the editors of host objects and of linked programs.
//!
//! Invariant: the section headers are in the file. The editors check the positions of the sections themselves.

use crate::bytes::{malformed_at, slice, u16_at, u32_at, u64_at};
use hotswap_report::{Diagnostic, codes};
use std::ops::Range;

/// Size of the file's header, and of a section header.
pub(crate) const HEADER: u64 = 64;
pub(crate) const SECTION_HEADER: u64 = 64;
pub(crate) use object::elf::SHT_NOBITS;
pub(crate) use object::elf::SHT_PROGBITS;
pub(crate) use object::elf::SHT_SYMTAB;
/// The type of section `.llvm.offloading`, `SHT_LLVM_OFFLOADING`.
pub(crate) const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;
/// Size of a symbol.
pub(crate) const SYMBOL: u64 = 24;
/// No compiler or linker sets a larger alignment; it would make a file of zeros.
pub(crate) const MAX_ALIGNMENT: u64 = 2 << 20;
const SHF_ALLOC: u64 = object::elf::SHF_ALLOC as u64;
pub(crate) const SHF_TLS: u64 = object::elf::SHF_TLS as u64;

/// A section header with the fields that matter here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionHeader {
    /// Offset of the header in the file.
    pub(crate) header: u64,
    pub(crate) name: u32,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) alignment: u64,
}

/// The section headers of a file.
#[derive(Debug)]
pub(crate) struct SectionTable {
    /// Offset of the first header.
    pub(crate) table: u64,
    pub(crate) all: Vec<SectionHeader>,
    /// Index of the section that holds the names.
    pub(crate) names: usize,
}

impl SectionHeader {
    pub(crate) fn read(bytes: &[u8], at: u64) -> Option<Self> {
        Some(Self {
            header: at,
            name: u32_at(bytes, at)?,
            kind: u32_at(bytes, at + 4)?,
            flags: u64_at(bytes, at + 8)?,
            address: u64_at(bytes, at + 16)?,
            offset: u64_at(bytes, at + 24)?,
            size: u64_at(bytes, at + 32)?,
            link: u32_at(bytes, at + 40)?,
            info: u32_at(bytes, at + 44)?,
            alignment: u64_at(bytes, at + 48)?,
        })
    }

    /// Whether it is in memory when the program runs.
    pub(crate) fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }

    /// Number of its bytes in the file. The header of index 0 does not describe bytes.
    pub(crate) fn stored_size(&self) -> u64 {
        if self.kind == SHT_NOBITS || self.kind == 0 { 0 } else { self.size }
    }

    /// The range of those bytes.
    pub(crate) fn file_range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.stored_size())
    }

    /// Its bytes in the file; `None` where they exceed it.
    pub(crate) fn content<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.stored_size() == 0 { Some(&[]) } else { slice(bytes, self.offset, self.size) }
    }
}

impl SectionTable {
    /// Reads all headers; there may be none.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] where they exceed the file, [`codes::UNKNOWN_FORMAT`] for headers of another size.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let table = u64_at(bytes, 40).ok_or_else(truncated_header_error)?;
        let (size, count, names) = (
            read_header_halfword(58, bytes)?,
            u64::from(read_header_halfword(60, bytes)?),
            usize::from(read_header_halfword(62, bytes)?),
        );
        if count == 0 || table == 0 {
            return Ok(Self { table: 0, all: Vec::new(), names: 0 });
        }
        if u64::from(size) != SECTION_HEADER {
            let what = format!("the section headers have {size} bytes, not {SECTION_HEADER}");
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(58));
        }
        slice(bytes, table, count * SECTION_HEADER)
            .ok_or_else(|| malformed_at("the section headers leave the file", table))?;
        let all = (0..count).map_while(|index| SectionHeader::read(bytes, table + index * SECTION_HEADER)).collect();
        Ok(Self { table, all, names })
    }

    /// Whether the section has that name.
    pub(crate) fn is_named(&self, bytes: &[u8], section: &SectionHeader, name: &str) -> bool {
        let names = self.all.get(self.names).and_then(|names| names.content(bytes)).unwrap_or_default();
        let rest = names.get(section.name as usize..).unwrap_or_default();
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Whether every section is in the file, no two of them share bytes, and headers share none with a section.
    ///
    /// In other files the effects of a change are unknown.
    pub(crate) fn are_apart(&self, bytes: &[u8]) -> bool {
        let mut ranges = vec![0..HEADER, self.table..self.table_end()];
        ranges.extend(self.all.iter().map(SectionHeader::file_range).filter(|range| !range.is_empty()));
        ranges.sort_by_key(|range| range.start);
        let inside = ranges.iter().all(|range| range.end <= bytes.len() as u64);
        inside && ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// The end of the last header.
    pub(crate) fn table_end(&self) -> u64 {
        self.table + self.all.len() as u64 * SECTION_HEADER
    }
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the ELF header is cut off", 0)
}

fn read_header_halfword(at: u64, bytes: &[u8]) -> Result<u16, Diagnostic> {
    u16_at(bytes, at).ok_or_else(truncated_header_error)
}
