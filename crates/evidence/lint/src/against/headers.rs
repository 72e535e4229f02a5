//! The headers of the files: the ELF header, program headers, the fields of sections, and bytes that belong to none.
//!
//! Invariants: a field is the same in both files, or has the one value that follows from the new positions of sections.
//! The permitted exceptions are rows of [`super::releases`].

use super::image::ComparedFiles;
use super::names::compare_names;
use super::tables::{SectionRow, elf_header, section_headers};
use hotswap_code_object::ObjectKind;
use hotswap_targets::{Processor, by_mach};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::pod::{bytes_of, slice_from_bytes};
use std::ops::Range;

type SegmentHeader = ProgramHeader64<LE>;

/// The bits of `e_flags` that name the processor.
const MACHINE: u32 = 0xff;
/// The place of the version of a generic target in them.
const GENERIC_VERSION_SHIFT: u32 = 24;
/// `EI_ABIVERSION` of code objects of V5 and V6.
const ABI_V5: u8 = 3;
const ABI_V6: u8 = 4;

/// Compares the headers of both files.
pub(super) fn compare_headers(files: &ComparedFiles<'_, '_, '_>) -> Result<(), String> {
    let tables = HeaderTables {
        files,
        old: elf_header(files.old.bytes()).ok_or_else(missing_elf_header)?,
        new: elf_header(files.new.bytes()).ok_or_else(missing_elf_header)?,
        old_rows: section_headers(files.old.bytes()).ok_or_else(missing_elf_header)?,
        new_rows: section_headers(files.new.bytes()).ok_or_else(missing_elf_header)?,
    };
    tables.file_header()?;
    tables.program_headers()?;
    tables.section_rows()?;
    compare_names(files.old.bytes(), files.new.bytes())?;
    tables.unclaimed_bytes()
}

fn missing_elf_header() -> String {
    "the ELF header cannot be read".to_owned()
}

struct HeaderTables<'f> {
    files: &'f ComparedFiles<'f, 'f, 'f>,
    old: &'f FileHeader64<LE>,
    new: &'f FileHeader64<LE>,
    old_rows: &'f [SectionRow],
    new_rows: &'f [SectionRow],
}

/// The program headers of a file.
fn segment_headers<'a>(data: &'a [u8], header: &FileHeader64<LE>) -> Option<&'a [SegmentHeader]> {
    let at = usize::try_from(header.e_phoff.get(LE)).ok()?;
    let count = usize::from(header.e_phnum.get(LE));
    slice_from_bytes::<SegmentHeader>(data.get(at..)?, count).ok().map(|(rows, _)| rows)
}

/// The version of a generic target, which is a part of `e_flags`; 0 for others.
fn generic_version(header: &FileHeader64<LE>) -> u32 {
    by_mach((header.e_flags.get(LE) & MACHINE) as u8).map_or(0, Processor::generic_version).into()
}

/// The flags are the same but for the processor, and so is the version of the code object: only for a generic target, which
/// V5 cannot state, V5 becomes V6.
fn check_flags(old: &FileHeader64<LE>, new: &FileHeader64<LE>) -> Result<(), String> {
    let versions = (generic_version(old) ^ generic_version(new)) << GENERIC_VERSION_SHIFT;
    if (old.e_flags.get(LE) ^ new.e_flags.get(LE)) & !MACHINE != versions {
        return Err("`e_flags` differs in more than the processor".to_owned());
    }
    let (before, after) = (old.e_ident.abi_version, new.e_ident.abi_version);
    let becomes_generic = (before, after) == (ABI_V5, ABI_V6);
    match before == after || becomes_generic && generic_version(new) != 0 {
        true => Ok(()),
        false => Err(format!("`EI_ABIVERSION` is {after} instead of {before}")),
    }
}

impl HeaderTables<'_> {
    fn file_header(&self) -> Result<(), String> {
        let (mut old, mut new) = (*self.old, *self.new);
        let entry = old.e_entry.get(LE);
        let moved = if entry == 0 { Some(0) } else { self.moved_address(entry) };
        check_flags(&old, &new)?;
        if moved != Some(new.e_entry.get(LE)) {
            return Err("`e_entry` leads elsewhere".to_owned());
        }
        // The section table has a row more, for the certificate, and is placed anew; it was read.
        for header in [&mut old, &mut new] {
            header.e_flags = Default::default();
            header.e_ident.abi_version = 0;
            header.e_entry = Default::default();
            header.e_shoff = Default::default();
            header.e_shnum = Default::default();
        }
        match bytes_of(&old) == bytes_of(&new) {
            true => Ok(()),
            false => Err("the ELF header has other fields".to_owned()),
        }
    }

    /// The new position of an address that begins something; addresses before all sections are those of headers.
    fn moved_address(&self, address: u64) -> Option<u64> {
        match self.files.old.section_at(address) {
            Some(section) => self.files.new_position(section, address, false),
            None => Some(address),
        }
    }

    /// The new end of a range of addresses: that of the section that it ends with. Ranges of headers stay.
    fn moved_end(&self, begin: u64, end: u64) -> Option<u64> {
        let rows = self.old_rows.iter().zip(self.new_rows);
        let mut ending = rows.filter(|(old, _)| is_loaded(old) && old.sh_size.get(LE) > 0 && end_of(old) == end);
        match ending.next() {
            Some((_, new)) => Some(end_of(new)),
            None => self.files.old.section_at(begin).is_none().then_some(end),
        }
    }

    /// The same for a range of bytes of the file.
    fn moved_file_end(&self, end: u64) -> u64 {
        let rows = self.old_rows.iter().zip(self.new_rows);
        let mut ending =
            rows.filter(|(old, _)| occupies_file_bytes(old) && old.sh_size.get(LE) > 0 && section_file_end(old) == end);
        ending.next().map_or(end, |(_, new)| section_file_end(new))
    }

    /// The new position in the file of what a segment begins with.
    fn moved_offset(&self, address: u64, offset: u64) -> u64 {
        match self.files.old.section_at(address) {
            Some(section) => {
                let (old, new) = (&self.old_rows[section], &self.new_rows[section]);
                offset.wrapping_sub(old.sh_offset.get(LE)).wrapping_add(new.sh_offset.get(LE))
            }
            None => offset,
        }
    }

    fn program_headers(&self) -> Result<(), String> {
        let old = segment_headers(self.files.old.bytes(), self.old).ok_or_else(missing_program_headers)?;
        let new = segment_headers(self.files.new.bytes(), self.new).ok_or_else(missing_program_headers)?;
        if old.len() != new.len() {
            return Err("the number of program headers differs".to_owned());
        }
        for (number, (before, after)) in old.iter().zip(new).enumerate() {
            let expected = self.expected_segment(before);
            if expected.is_none_or(|expected| bytes_of(&expected) != bytes_of(after)) {
                return Err(format!("program header {number} does not describe what it described"));
            }
        }
        Ok(())
    }

    /// The program header that follows from the new positions of the sections.
    fn expected_segment(&self, old: &SegmentHeader) -> Option<SegmentHeader> {
        let mut expected = *old;
        let range = (old.p_offset.get(LE), old.p_filesz.get(LE));
        if old.p_type.get(LE) == elf::PT_NOTE
            && let Some(number) = self.old_rows.iter().position(|one| matches_note_range(one, &range))
        {
            // Relabelling may move the note out of the loaded part; it lacks an address then.
            let new = self.new_rows.get(number)?;
            expected.p_offset = new.sh_offset;
            (expected.p_vaddr, expected.p_paddr) = (new.sh_addr, new.sh_addr);
            (expected.p_filesz, expected.p_memsz) = (new.sh_size, new.sh_size);
            return Some(expected);
        }
        let (address, size) = (old.p_vaddr.get(LE), old.p_memsz.get(LE));
        if size == 0 {
            return Some(expected);
        }
        let begin = self.moved_address(address)?;
        let offset = self.moved_offset(address, range.0);
        let end = self.moved_end(address, address.checked_add(size)?)?;
        let physical = old.p_paddr.get(LE).wrapping_sub(address).wrapping_add(begin);
        expected.p_vaddr.set(LE, begin);
        expected.p_paddr.set(LE, physical);
        expected.p_offset.set(LE, offset);
        expected.p_memsz.set(LE, end.checked_sub(begin)?);
        if range.1 > 0 {
            expected.p_filesz.set(LE, self.moved_file_end(range.0.checked_add(range.1)?).checked_sub(offset)?);
        }
        Some(expected)
    }

    /// Fields of sections that no comparison of contents covers.
    fn section_rows(&self) -> Result<(), String> {
        let first = self.old_rows.first().zip(self.new_rows.first());
        if first.is_some_and(|(old, new)| bytes_of(old) != bytes_of(new)) {
            return Err("the first row of the section table has other fields".to_owned());
        }
        let linked = self.files.old.kind == ObjectKind::Linked;
        for (number, (old, new)) in self.old_rows.iter().zip(self.new_rows).enumerate().skip(1) {
            let name = self.files.old.sections[number].name;
            let is_fixed = !linked || !is_loaded(old);
            if is_fixed && old.sh_addr.get(LE) != new.sh_addr.get(LE) {
                return Err(format!("the section `{name}` has another address"));
            }
            // A section without bytes, as the code of a file without kernels, is in no segment.
            if !is_fixed && is_loaded(new) && new.sh_size.get(LE) > 0 && !self.is_mapped(new) {
                return Err(format!("no segment loads the section `{name}` to its address"));
            }
            // A note that is not loaded any more does not have an address.
            if !is_fixed && !is_loaded(new) && new.sh_addr.get(LE) != 0 {
                return Err(format!("the section `{name}` is not loaded and has an address"));
            }
            let flags = (old.sh_flags.get(LE), new.sh_flags.get(LE));
            let unloaded = flags.0 & !u64::from(elf::SHF_ALLOC);
            let is_note = old.sh_type.get(LE) == elf::SHT_NOTE;
            if flags.0 != flags.1 && !(is_note && flags.1 == unloaded) {
                return Err(format!("the section `{name}` has other flags"));
            }
            // Names of sections and symbols are compared where they are used. A link with relocations has more names in
            // these tables than the code object of the fat binary.
            if old.sh_type.get(LE) == elf::SHT_STRTAB && is_loaded(old) && !same_bytes(self.files, number) {
                return Err(format!("the names in `{name}` differ"));
            }
        }
        Ok(())
    }

    /// Whether a segment maps the section's bytes to its addresses.
    fn is_mapped(&self, row: &SectionRow) -> bool {
        let Some(all) = segment_headers(self.files.new.bytes(), self.new) else { return false };
        let address = row.sh_addr.get(LE);
        let has_bytes = row.sh_type.get(LE) != elf::SHT_NOBITS;
        all.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD).any(|segment| {
            let start = segment.p_vaddr.get(LE);
            let inside = start <= address && end_of(row) <= start.wrapping_add(segment.p_memsz.get(LE));
            let distance = address.wrapping_sub(start);
            inside && (!has_bytes || row.sh_offset.get(LE).wrapping_sub(segment.p_offset.get(LE)) == distance)
        })
    }

    /// Bytes of the file that belong to no header and no section are zero, or what the original has there.
    fn unclaimed_bytes(&self) -> Result<(), String> {
        let (old, new) = (self.files.old.bytes(), self.files.new.bytes());
        for gap in uncovered_ranges(new, self.new, self.new_rows) {
            let same = old.get(gap.clone()) == new.get(gap.clone());
            if !same && new[gap.clone()].iter().any(|byte| *byte != 0) {
                return Err(format!("bytes at {:#x} that belong to no section differ", gap.start));
            }
        }
        Ok(())
    }
}

fn occupies_file_bytes(row: &SectionRow) -> bool {
    is_loaded(row) && row.sh_type.get(LE) != elf::SHT_NOBITS
}

fn section_file_end(row: &SectionRow) -> u64 {
    row.sh_offset.get(LE).wrapping_add(row.sh_size.get(LE))
}

fn missing_program_headers() -> String {
    "the program headers cannot be read".to_owned()
}

fn matches_note_range(row: &SectionRow, range: &(u64, u64)) -> bool {
    row.sh_type.get(LE) == elf::SHT_NOTE && (row.sh_offset.get(LE), row.sh_size.get(LE)) == *range
}

/// Ranges of a file that no header and no section covers.
fn uncovered_ranges(data: &[u8], header: &FileHeader64<LE>, rows: &[SectionRow]) -> Vec<Range<usize>> {
    let mut claimed = vec![
        0..size_of::<FileHeader64<LE>>(),
        header_table_range(header.e_phoff.get(LE), header.e_phentsize.get(LE), usize::from(header.e_phnum.get(LE))),
        header_table_range(header.e_shoff.get(LE), header.e_shentsize.get(LE), rows.len()),
    ];
    claimed.extend(
        rows.iter().filter(occupies_file_range).map(|row| file_byte_range(row.sh_offset.get(LE), row.sh_size.get(LE))),
    );
    claimed.sort_by_key(|range| (range.start, range.end));
    let (mut gaps, mut end) = (Vec::new(), 0);
    for range in claimed.into_iter().chain(std::iter::once(data.len()..data.len())) {
        if range.start > end && end < data.len() {
            gaps.push(end..range.start.min(data.len()));
        }
        end = end.max(range.end);
    }
    gaps
}

fn file_byte_range(at: u64, size: u64) -> Range<usize> {
    at as usize..at.saturating_add(size) as usize
}

fn header_table_range(at: u64, entry: u16, count: usize) -> Range<usize> {
    file_byte_range(at, u64::from(entry) * count as u64)
}

fn occupies_file_range(row: &&SectionRow) -> bool {
    !matches!(row.sh_type.get(LE), elf::SHT_NOBITS | elf::SHT_NULL)
}

fn same_bytes(files: &ComparedFiles<'_, '_, '_>, section: usize) -> bool {
    files.old.sections[section].bytes == files.new.sections[section].bytes
}

fn is_loaded(row: &SectionRow) -> bool {
    row.sh_flags.get(LE) & u64::from(elf::SHF_ALLOC) != 0
}

fn end_of(row: &SectionRow) -> u64 {
    row.sh_addr.get(LE).wrapping_add(row.sh_size.get(LE))
}
