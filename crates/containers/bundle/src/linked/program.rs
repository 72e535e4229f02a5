//! The headers of a linked ELF64 file, checked.

use super::{ET_DYN, is_linked, no_place};
use crate::bytes::{malformed_at, slice, u16_at, u32_at, u64_at};
use crate::elf::{SectionHeader, SectionTable};
use hotswap_report::{Diagnostic, codes};
use object::elf::{PT_DYNAMIC, PT_LOAD};

pub(super) const SEGMENT_HEADER: u64 = 56;

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramSegment {
    /// Offset of the header in the file.
    pub(super) header: u64,
    pub(super) kind: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    /// `p_paddr`, which follows the address and is ignored.
    pub(super) physical: u64,
    pub(super) file_size: u64,
    pub(super) memory_size: u64,
    pub(super) alignment: u64,
}

impl ProgramSegment {
    /// The end of its bytes in the file; loaded segments are checked.
    pub(super) fn file_end(&self) -> u64 {
        self.offset.saturating_add(self.file_size)
    }
}

#[derive(Debug)]
pub(super) struct LinkedProgram<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) sections: SectionTable,
    pub(super) segments: Vec<ProgramSegment>,
    pub(super) loads: Vec<ProgramSegment>,
    pub(super) dynamic: Option<ProgramSegment>,
}

impl<'a> LinkedProgram<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        if !is_linked(bytes) {
            let what = "it is no linked ELF64 program or library for x86-64 or AArch64";
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
        }
        let segments = u64_at(bytes, 32).ok_or_else(truncated_header_error)?;
        let (size, count) = (read_header_halfword(54, bytes)?, read_header_halfword(56, bytes)?);
        let sections = SectionTable::read(bytes)?;
        if sections.all.is_empty() {
            let error = no_place("the section headers are stripped, so its bundles and wrappers cannot be located");
            return Err(error.advise("use the file as it was before `sstrip` or `--strip-sections`"));
        }
        if size != SEGMENT_HEADER {
            return Err(
                Diagnostic::error(codes::UNKNOWN_FORMAT, format!("program headers of {size} bytes")).at_offset(54)
            );
        }
        slice(bytes, segments, count * SEGMENT_HEADER)
            .ok_or_else(|| malformed_at("the program headers leave the file", segments))?;
        let headers = (0..count).map(|number| segments + number * SEGMENT_HEADER);
        let segments: Vec<_> = headers.map_while(|at| read_segment(bytes, at)).collect();
        let loads: Vec<_> = segments.iter().filter(|segment| segment.kind == PT_LOAD).copied().collect();
        let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC).copied();
        let program = Self { bytes, sections, segments, loads, dynamic };
        program.check_ranges()?;
        Ok(program)
    }

    /// Requires that everything is in the file, so that later sums of offsets cannot overflow.
    fn check_ranges(&self) -> Result<(), Diagnostic> {
        for segment in self.loads.iter().chain(&self.dynamic) {
            let inside = slice(self.bytes, segment.offset, segment.file_size).is_some();
            let end = segment.address.checked_add(segment.memory_size);
            if !inside || segment.memory_size < segment.file_size || end.is_none_or(|end| end > 1 << 62) {
                return Err(malformed_at("a segment leaves the file or the address space", segment.header));
            }
        }
        if self.loads.windows(2).any(|pair| pair[0].address + pair[0].memory_size > pair[1].address) {
            return Err(malformed_at("loaded segments overlap or are not in order", 32));
        }
        for section in &self.sections.all {
            let end = section.address.checked_add(section.size).filter(|end| *end <= 1 << 62);
            if section.kind != 0 && (end.is_none() || section.content(self.bytes).is_none()) {
                return Err(malformed_at("a section leaves the file or the address space", section.header));
            }
        }
        Ok(())
    }

    /// Whether the loader may choose its address, so that each stored address needs a relocation.
    pub(super) fn is_movable(&self) -> bool {
        u16_at(self.bytes, 16) == Some(ET_DYN)
    }

    pub(super) fn section_content(&self, section: &SectionHeader) -> &'a [u8] {
        section.content(self.bytes).unwrap_or_default()
    }

    /// Whether the section has that name.
    pub(super) fn is_named(&self, section: &SectionHeader, name: &str) -> bool {
        self.sections.is_named(self.bytes, section, name)
    }

    /// The address at which a byte of the file is loaded.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| (load.offset..load.file_end()).contains(&offset))?;
        Some(load.address + (offset - load.offset))
    }

    /// Offset in the file of `size` bytes that are loaded at that address.
    pub(super) fn offset_of(&self, address: u64, size: u64) -> Option<u64> {
        let end = address.checked_add(size)?;
        self.loads
            .iter()
            .find(|one| segment_holds_range(one, address, end))
            .map(|load| load.offset + (address - load.address))
    }
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the ELF header is cut off", 0)
}

fn read_header_halfword(at: u64, bytes: &[u8]) -> Result<u64, Diagnostic> {
    u16_at(bytes, at).map(u64::from).ok_or_else(truncated_header_error)
}

fn segment_holds_range(load: &&ProgramSegment, address: u64, end: u64) -> bool {
    load.address <= address && end <= load.address + load.file_size
}

fn read_segment(bytes: &[u8], at: u64) -> Option<ProgramSegment> {
    Some(ProgramSegment {
        header: at,
        kind: u32_at(bytes, at)?,
        flags: u32_at(bytes, at + 4)?,
        offset: u64_at(bytes, at + 8)?,
        address: u64_at(bytes, at + 16)?,
        physical: u64_at(bytes, at + 24)?,
        file_size: u64_at(bytes, at + 32)?,
        memory_size: u64_at(bytes, at + 40)?,
        alignment: u64_at(bytes, at + 48)?,
    })
}
