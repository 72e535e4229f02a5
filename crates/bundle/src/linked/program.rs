//! The headers of a linked ELF64 file, checked.

use super::{ET_DYN, is_linked, no_place};
use crate::bytes::{malformed, slice, u16_at, u32_at, u64_at};
use hotswap_report::{Diagnostic, codes};

pub(super) const SECTION_HEADER: u64 = 64;
const SEGMENT_HEADER: u64 = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
pub(super) const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
pub(super) const SHF_TLS: u64 = 0x400;

#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    /// Offset of the header in the file.
    pub(super) header: u64,
    pub(super) name: u32,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) alignment: u64,
}

impl Section {
    pub(super) fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }

    /// Offset behind its last byte in the file; its header is checked.
    pub(super) fn end(&self) -> u64 {
        self.offset + if self.kind == SHT_NOBITS { 0 } else { self.size }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Offset of the header in the file.
    pub(super) header: u64,
    kind: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) file_size: u64,
    pub(super) memory_size: u64,
}

#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) sections: Vec<Section>,
    /// What is loaded.
    pub(super) loads: Vec<Segment>,
    pub(super) dynamic: Option<Segment>,
    /// Offset of the section headers.
    pub(super) table: u64,
    names: usize,
}

impl<'a> Program<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        if !is_linked(bytes) {
            let what = "it is no linked ELF64 program or library for x86-64 or AArch64";
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
        }
        let cut = || malformed("the ELF header is cut off", 0);
        let (segments, table) = (u64_at(bytes, 32).ok_or_else(cut)?, u64_at(bytes, 40).ok_or_else(cut)?);
        let number = |at| u16_at(bytes, at).map(u64::from).ok_or_else(cut);
        let (segment_size, segment_count) = (number(54)?, number(56)?);
        let (section_size, section_count, names) = (number(58)?, number(60)?, number(62)? as usize);
        if section_count == 0 || table == 0 {
            let error = no_place("the section headers are stripped, so its bundles and wrappers cannot be told");
            return Err(error.advise("use the file as it was before `sstrip` or `--strip-sections`"));
        }
        if segment_size != SEGMENT_HEADER || section_size != SECTION_HEADER {
            let what = format!("program headers of {segment_size} and section headers of {section_size} bytes");
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
        }
        let leave = |what: &str, at| malformed(format!("the {what} headers leave the file"), at);
        slice(bytes, segments, segment_count * SEGMENT_HEADER).ok_or_else(|| leave("program", segments))?;
        slice(bytes, table, section_count * SECTION_HEADER).ok_or_else(|| leave("section", table))?;
        let all: Vec<_> = (0..segment_count).map_while(|at| segment(bytes, segments + at * SEGMENT_HEADER)).collect();
        let sections: Vec<_> = (0..section_count).map_while(|at| section(bytes, table + at * SECTION_HEADER)).collect();
        let loads: Vec<_> = all.iter().filter(|segment| segment.kind == PT_LOAD).copied().collect();
        let dynamic = all.iter().find(|segment| segment.kind == PT_DYNAMIC).copied();
        let program = Self { bytes, sections, loads, dynamic, table, names };
        program.check()?;
        Ok(program)
    }

    /// Everything lies in the file, so that later sums of offsets cannot overflow.
    fn check(&self) -> Result<(), Diagnostic> {
        for segment in self.loads.iter().chain(&self.dynamic) {
            let inside = slice(self.bytes, segment.offset, segment.file_size).is_some();
            let end = segment.address.checked_add(segment.memory_size);
            if !inside || segment.memory_size < segment.file_size || end.is_none_or(|end| end > 1 << 62) {
                return Err(malformed("a segment leaves the file or the address space", segment.header));
            }
        }
        if self.loads.windows(2).any(|pair| pair[0].address + pair[0].memory_size > pair[1].address) {
            return Err(malformed("loaded segments overlap or are not in order", 32));
        }
        for section in &self.sections {
            let size = if section.kind == SHT_NOBITS { 0 } else { section.size };
            // The header of index 0 says nothing about bytes.
            let end = section.address.checked_add(section.size).filter(|end| *end <= 1 << 62);
            if section.kind != 0 && (end.is_none() || slice(self.bytes, section.offset, size).is_none() && size > 0) {
                return Err(malformed("a section leaves the file", section.header));
            }
        }
        Ok(())
    }

    /// Whether the loader may put it anywhere, so that each stored address needs a relocation.
    pub(super) fn is_movable(&self) -> bool {
        u16_at(self.bytes, 16) == Some(ET_DYN)
    }

    pub(super) fn content(&self, section: &Section) -> &'a [u8] {
        if section.kind == SHT_NOBITS || section.kind == 0 {
            return &[];
        }
        slice(self.bytes, section.offset, section.size).unwrap_or_default()
    }

    /// Whether the section has that name.
    pub(super) fn is_named(&self, section: &Section, name: &str) -> bool {
        let table = self.sections.get(self.names).map(|table| self.content(table)).unwrap_or_default();
        let rest = table.get(section.name as usize..).unwrap_or_default();
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Offset in the file of `size` bytes that are loaded at that address.
    pub(super) fn offset_of(&self, address: u64, size: u64) -> Option<u64> {
        let end = address.checked_add(size)?;
        let holds = |load: &&Segment| load.address <= address && end <= load.address + load.file_size;
        self.loads.iter().find(holds).map(|load| load.offset + (address - load.address))
    }
}

fn segment(bytes: &[u8], at: u64) -> Option<Segment> {
    Some(Segment {
        header: at,
        kind: u32_at(bytes, at)?,
        offset: u64_at(bytes, at + 8)?,
        address: u64_at(bytes, at + 16)?,
        file_size: u64_at(bytes, at + 32)?,
        memory_size: u64_at(bytes, at + 40)?,
    })
}

fn section(bytes: &[u8], at: u64) -> Option<Section> {
    Some(Section {
        header: at,
        name: u32_at(bytes, at)?,
        kind: u32_at(bytes, at + 4)?,
        flags: u64_at(bytes, at + 8)?,
        address: u64_at(bytes, at + 16)?,
        offset: u64_at(bytes, at + 24)?,
        size: u64_at(bytes, at + 32)?,
        alignment: u64_at(bytes, at + 48)?,
    })
}
