//! The ELF64 little-endian layer: header, sections, segments, symbols.
//!
//! Every range is checked against the file before it is used. Sections and segments may overlap
//! each other (they do in every linked file); nothing here depends on their order.

use crate::{malformed, unsupported_format};
use hotswap_report::{Diagnostic, codes};
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::pod::{from_bytes, slice_from_bytes};
use object::{LittleEndian as LE, Pod};
use std::ffi::CStr;
use std::ops::Range;

/// `e_ident[EI_OSABI]` of code objects for the HSA runtime.
const ELFOSABI_AMDGPU_HSA: u8 = 64;

/// Whether a file is linked or relocatable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A device object (`ET_REL`), before the device link.
    Relocatable,
    /// A code object that a runtime can load (`ET_DYN`).
    Linked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfSectionView<'a> {
    /// Name; empty when it is not UTF-8.
    pub name: &'a str,
    /// The section's type, `sh_type`.
    pub kind: u32,
    /// The section's flags, `sh_flags`.
    pub flags: u64,
    /// The address when loaded, `sh_addr`.
    pub address: u64,
    /// Bytes in the file; empty for sections without content there.
    pub range: Range<usize>,
    /// Number of a section, `sh_link`.
    pub link: u32,
    /// Its meaning depends on the type, `sh_info`.
    pub info: u32,
    /// The alignment in bytes, `sh_addralign`.
    pub align: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfSegment {
    /// The segment's type, `p_type`.
    pub kind: u32,
    /// The segment's permissions, `p_flags`.
    pub flags: u32,
    /// The address when loaded, `p_vaddr`.
    pub address: u64,
    /// Bytes in the file.
    pub range: Range<usize>,
    /// Bytes in memory, `p_memsz`.
    pub memory_size: u64,
    /// The alignment in bytes, `p_align`.
    pub align: u64,
}

impl ElfSectionView<'_> {
    /// Whether it holds instructions.
    pub fn is_code(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0
    }
}

/// The file with its tables.
#[derive(Debug, Clone)]
pub(crate) struct Elf<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) kind: ObjectKind,
    pub(crate) abi_version: u8,
    pub(crate) flags: u32,
    pub(crate) sections: Vec<ElfSectionView<'a>>,
    pub(crate) segments: Vec<ElfSegment>,
}

/// A symbol that is defined in a section or at an address.
pub(crate) struct DefinedSymbol<'a> {
    pub(crate) name: &'a str,
    /// Offset of its record in the file.
    pub(crate) offset: usize,
    pub(crate) value: u64,
    pub(crate) section: usize,
    pub(crate) is_local: bool,
}

/// `offset..offset + size` as a range of the file; `at` is the position of the two numbers.
fn file_range_of(data: &[u8], offset: u64, size: u64, at: usize, what: &str) -> Result<Range<usize>, Diagnostic> {
    let end = offset.checked_add(size).ok_or_else(|| range_outside_error(at, what, offset, size))?;
    if end > data.len() as u64 {
        return Err(range_outside_error(at, what, offset, size));
    }
    Ok(offset as usize..end as usize)
}

fn range_outside_error(at: usize, what: &str, offset: u64, size: u64) -> Diagnostic {
    malformed(at, format!("{what} ({offset:#x}, {size:#x} bytes) leaves the file"))
}

/// A table of `count` records at `offset`.
pub(crate) fn record_table<'a, T: Pod>(
    data: &'a [u8],
    offset: u64,
    count: u64,
    at: usize,
    what: &str,
) -> Result<&'a [T], Diagnostic> {
    let size = count.saturating_mul(size_of::<T>() as u64);
    let range = file_range_of(data, offset, size, at, what)?;
    let records = slice_from_bytes(&data[range], count as usize);
    records.map(|(records, _)| records).map_err(|()| malformed(at, format!("{what} cannot be read")))
}

/// The string at `offset` of a string table, up to its NUL; `None` outside or without NUL.
pub(crate) fn string_at(strings: &[u8], offset: u32) -> Option<&[u8]> {
    Some(CStr::from_bytes_until_nul(strings.get(offset as usize..)?).ok()?.to_bytes())
}

/// Checks whether there are strings, without searching for their ends.
#[derive(Clone, Copy)]
pub(crate) struct ElfStrings<'a> {
    bytes: &'a [u8],
    /// Offset of the last NUL: a string that begins after it lacks an end.
    last: Option<usize>,
}

impl<'a> ElfStrings<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, last: bytes.iter().rposition(|byte| *byte == 0) }
    }

    /// Whether [`string`] returns a string that is not empty.
    pub(crate) fn has_string(&self, offset: u32) -> bool {
        let offset = offset as usize;
        self.last.is_some_and(|last| offset < last) && self.bytes[offset] != 0
    }
}

pub(crate) fn file_header(data: &[u8]) -> Option<&FileHeader64<LE>> {
    let header = from_bytes::<FileHeader64<LE>>(data).ok()?.0;
    let ident = &header.e_ident;
    let is_elf = ident.magic == elf::ELFMAG && ident.class == elf::ELFCLASS64 && ident.data == elf::ELFDATA2LSB;
    (is_elf && header.e_machine.get(LE) == elf::EM_AMDGPU).then_some(header)
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self, Diagnostic> {
        let header = file_header(data).ok_or_else(|| not_code_object(data))?;
        if header.e_ident.os_abi != ELFOSABI_AMDGPU_HSA {
            let what = format!("OS ABI {} is not that of the HSA runtime (64)", header.e_ident.os_abi);
            return Err(unsupported_format(7, what));
        }
        Self::parse_any(data)
    }

    /// As [`Elf::parse`], for any OS ABI: objects assembled without one, and code of Mesa and PAL.
    pub(crate) fn parse_any(data: &'a [u8]) -> Result<Self, Diagnostic> {
        let header = file_header(data).ok_or_else(|| not_code_object(data))?;
        let ident = &header.e_ident;
        if ident.version != elf::EV_CURRENT || header.e_version.get(LE) != u32::from(elf::EV_CURRENT) {
            return Err(unsupported_format(6, "the ELF version is not 1"));
        }
        if ident.os_abi == ELFOSABI_AMDGPU_HSA {
            check_abi_version(ident.abi_version)?;
        }
        Self::parse_tables(data)
    }

    /// As [`Elf::parse_any`], for any version of the ABI.
    pub(crate) fn parse_tables(data: &'a [u8]) -> Result<Self, Diagnostic> {
        let header = file_header(data).ok_or_else(|| not_code_object(data))?;
        let abi_version = header.e_ident.abi_version;
        let kind = match header.e_type.get(LE) {
            elf::ET_REL => ObjectKind::Relocatable,
            elf::ET_DYN => ObjectKind::Linked,
            other => {
                return Err(unsupported_format(
                    16,
                    format!("ELF type {other} is neither an object (1) nor linked (3)"),
                ));
            }
        };
        let (sections, segments) = (read_sections(data, header)?, read_segments(data, header)?);
        Ok(Self { data, kind, abi_version, flags: header.e_flags.get(LE), sections, segments })
    }

    /// Calls `visit` with every defined symbol that is `wanted`, of every symbol table.
    pub(crate) fn for_symbols(
        &self,
        wanted: impl Fn(&Sym64<LE>) -> bool,
        mut visit: impl FnMut(DefinedSymbol<'a>) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        for section in self.sections.iter().filter(is_symbol_table_section) {
            let strings = self.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_STRTAB);
            let at = section.range.start;
            let strings = strings.ok_or_else(|| malformed(at, "a symbol table has no string table"))?;
            let strings = &self.data[strings.range.clone()];
            let count = section.range.len() / size_of::<Sym64<LE>>();
            let symbols = record_table::<Sym64<LE>>(self.data, at as u64, count as u64, at, "the symbol table")?;
            for (index, symbol) in symbols.iter().enumerate() {
                let index_of_section = symbol.st_shndx.get(LE);
                if index_of_section == elf::SHN_UNDEF || !wanted(symbol) {
                    continue;
                }
                let offset = at + index * size_of::<Sym64<LE>>();
                let name = string_at(strings, symbol.st_name.get(LE))
                    .ok_or_else(|| malformed(offset, "a symbol's name leaves its string table"))?;
                visit(DefinedSymbol {
                    name: std::str::from_utf8(name).unwrap_or_default(),
                    offset,
                    value: symbol.st_value.get(LE),
                    section: usize::from(index_of_section),
                    is_local: symbol.st_bind() == elf::STB_LOCAL,
                })?;
            }
        }
        Ok(())
    }

    /// The range in the file of `size` bytes at that address; linked files only.
    pub(crate) fn file_range(&self, address: u64, size: u64) -> Option<Range<usize>> {
        let loads = self.segments.iter().filter(|segment| segment.kind == elf::PT_LOAD);
        let ranges = loads.map(|segment| (segment.address, &segment.range));
        ranges.filter_map(|(start, range)| range_within(range, address.checked_sub(start)?, size)).next()
    }

    /// The range in the file of `size` bytes at `offset` of a section.
    pub(crate) fn section_range(&self, section: usize, offset: u64, size: u64) -> Option<Range<usize>> {
        range_within(&self.sections.get(section)?.range, offset, size)
    }
}

fn is_symbol_table_section(s: &&ElfSectionView) -> bool {
    s.kind == elf::SHT_DYNSYM || s.kind == elf::SHT_SYMTAB
}

/// `size` bytes at `offset` inside `outer`.
fn range_within(outer: &Range<usize>, offset: u64, size: u64) -> Option<Range<usize>> {
    let end = offset.checked_add(size).filter(|end| *end <= outer.len() as u64)?;
    Some(outer.start + offset as usize..outer.start + end as usize)
}

fn not_code_object(data: &[u8]) -> Diagnostic {
    let what = match data {
        [] => "it is empty".to_owned(),
        [b'B', b'C', 0xc0, 0xde, ..] => "it is LLVM bitcode; the device link makes the code object".to_owned(),
        [b'C', b'C', b'O', b'B', ..] => "it is a compressed offload bundle".to_owned(),
        _ if data.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") => "it is an offload bundle".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] if data.len() < size_of::<FileHeader64<LE>>() => {
            return malformed(data.len(), "the ELF header is cut off");
        }
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => {
            format!("it is an ELF file for machine {}, not for AMDGPU (224)", u16::from_le_bytes([data[18], data[19]]))
        }
        [0x7f, b'E', b'L', b'F', ..] => "it is not a 64-bit little-endian ELF file".to_owned(),
        _ => "it is not an ELF file".to_owned(),
    };
    Diagnostic::error(codes::NOT_CODE_OBJECT, what).at_offset(0)
}

fn check_abi_version(version: u8) -> Result<(), Diagnostic> {
    match version {
        1..=4 => Ok(()),
        0 => {
            Err(unsupported_format(8, "code object V2 is too old")
                .advise("build the program again with ROCm 4.1 or later"))
        }
        _ => Err(unsupported_format(8, format!("code object ABI version {version} is newer than V6 (4)"))),
    }
}

fn read_sections<'a>(data: &'a [u8], header: &FileHeader64<LE>) -> Result<Vec<ElfSectionView<'a>>, Diagnostic> {
    let (offset, mut count) = (header.e_shoff.get(LE), u64::from(header.e_shnum.get(LE)));
    if offset == 0 {
        return Ok(Vec::new());
    }
    if usize::from(header.e_shentsize.get(LE)) != size_of::<SectionHeader64<LE>>() {
        return Err(malformed(58, "section headers do not have 64 bytes"));
    }
    let mut names_index = u32::from(header.e_shstrndx.get(LE));
    // Files with more than 65279 sections keep both numbers in the first, otherwise empty, section.
    let first = record_table::<SectionHeader64<LE>>(data, offset, 1, 40, "the section table")?;
    if count == 0 {
        count = first[0].sh_size.get(LE);
    }
    if names_index == u32::from(elf::SHN_XINDEX) {
        names_index = first[0].sh_link.get(LE);
    }
    let headers = record_table::<SectionHeader64<LE>>(data, offset, count, 40, "the section table")?;
    let names = match headers.get(names_index as usize) {
        Some(names) if names_index != 0 => {
            &data[section_bytes(data, names, section_header_offset(names_index as usize, offset))?]
        }
        _ => &[],
    };
    let headers = headers.iter().enumerate();
    headers.map(|(index, header)| read_section(data, header, section_header_offset(index, offset), names)).collect()
}

fn section_header_offset(index: usize, offset: u64) -> usize {
    offset as usize + index * size_of::<SectionHeader64<LE>>()
}

fn section_bytes(data: &[u8], header: &SectionHeader64<LE>, at: usize) -> Result<Range<usize>, Diagnostic> {
    match header.sh_type.get(LE) {
        elf::SHT_NULL | elf::SHT_NOBITS => Ok(0..0),
        _ => file_range_of(data, header.sh_offset.get(LE), header.sh_size.get(LE), at, "a section"),
    }
}

fn read_section<'a>(
    data: &[u8],
    header: &SectionHeader64<LE>,
    at: usize,
    names: &'a [u8],
) -> Result<ElfSectionView<'a>, Diagnostic> {
    let name = string_at(names, header.sh_name.get(LE));
    let name = if names.is_empty() { Some(&[][..]) } else { name };
    let name = name.ok_or_else(|| malformed(at, "a section's name leaves the string table"))?;
    Ok(ElfSectionView {
        name: std::str::from_utf8(name).unwrap_or_default(),
        kind: header.sh_type.get(LE),
        flags: header.sh_flags.get(LE),
        address: header.sh_addr.get(LE),
        range: section_bytes(data, header, at)?,
        link: header.sh_link.get(LE),
        info: header.sh_info.get(LE),
        align: header.sh_addralign.get(LE),
    })
}

pub(crate) fn read_segments(data: &[u8], header: &FileHeader64<LE>) -> Result<Vec<ElfSegment>, Diagnostic> {
    let (offset, count) = (header.e_phoff.get(LE), u64::from(header.e_phnum.get(LE)));
    if count == 0 {
        return Ok(Vec::new());
    }
    if usize::from(header.e_phentsize.get(LE)) != size_of::<ProgramHeader64<LE>>() {
        return Err(malformed(54, "program headers do not have 56 bytes"));
    }
    let headers = record_table::<ProgramHeader64<LE>>(data, offset, count, 32, "the program header table")?;
    let segments = headers.iter().enumerate().map(|(index, header)| {
        let at = offset as usize + index * size_of::<ProgramHeader64<LE>>();
        Ok(ElfSegment {
            kind: header.p_type.get(LE),
            flags: header.p_flags.get(LE),
            address: header.p_vaddr.get(LE),
            range: file_range_of(data, header.p_offset.get(LE), header.p_filesz.get(LE), at, "a segment")?,
            memory_size: header.p_memsz.get(LE),
            align: header.p_align.get(LE),
        })
    });
    segments.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_are_told_without_their_ends(bytes in proptest::collection::vec(0..3u8, 0..20), offset in 0..25u32) {
            let is_there = string_at(&bytes, offset).is_some_and(|name| !name.is_empty());
            prop_assert_eq!(ElfStrings::new(&bytes).has_string(offset), is_there);
        }
    }
}
