//! The edit itself: first the checks, then content, section header and symbol sizes.

use super::{ElfObject, no_place};
use crate::bytes::{align_up, malformed_at, slice, u16_at, u32_at, u64_at};
use crate::draft::FileRope;
use crate::elf::{HEADER, MAX_ALIGNMENT, SHT_SYMTAB, SYMBOL, SectionHeader};
use hotswap_report::{Diagnostic, codes};
use object::elf::{SHT_CREL, SHT_REL, SHT_RELA, SHT_SYMTAB_SHNDX};
use std::iter;
use std::ops::Range;
const RELA: u64 = 24;
const REL: u64 = 16;
/// Compilers emit one symbol or two for a fat binary.
const MAX_SYMBOLS: usize = 64;

pub(super) fn replace_section<'a>(
    object: &ElfObject<'a>,
    section: &SectionHeader,
    new: &FileRope<'a>,
) -> Result<FileRope<'a>, Diagnostic> {
    let index = object.fatbin.unwrap_or_default();
    let sizes = symbol_sizes(object, index, section.size)?;
    check_relocations(object, index)?;
    check_apart(object, section, &sizes)?;
    let alignment = section.alignment.max(1);
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(malformed_at(format!("the section's alignment is {alignment}"), section.header));
    }
    let offset = align_up(object.bytes.len() as u64, alignment).ok_or_else(oversized_object_error)?;
    offset.checked_add(new.size()).ok_or_else(oversized_object_error)?;
    let mut out = FileRope::from(object.bytes);
    // Zeros that the file does not hold need no clearing; their offset may be anywhere.
    if section.stored_size() > 0 {
        out.clear(section.file_range());
    }
    out.pad_to(offset);
    out.append_draft(new);
    out.overwrite_at(section.header + 24, offset.to_le_bytes().to_vec());
    for at in [section.header + 32].into_iter().chain(sizes) {
        out.overwrite_at(at, new.size().to_le_bytes().to_vec());
    }
    Ok(out)
}

fn oversized_object_error() -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the object would be larger than memory")
}

/// Requires that each overwritten range belongs to one section or header alone: otherwise something
/// else would change too.
fn check_apart(object: &ElfObject<'_>, section: &SectionHeader, sizes: &[u64]) -> Result<(), Diagnostic> {
    let sections = &object.sections;
    let mut parts = vec![0..HEADER, sections.table..sections.table_end()];
    parts.extend(sections.all.iter().map(SectionHeader::file_range));
    let sizes = sizes.iter().map(|at| *at..at.saturating_add(8));
    let fields = iter::once(section.header..section.header.saturating_add(64)).chain(sizes);
    for edited in fields.chain([section.file_range()]) {
        if !edited.is_empty() && parts.iter().filter(|part| overlaps_edited_range(part, &edited)).count() > 1 {
            return Err(malformed_at("sections or headers overlap", edited.start));
        }
    }
    Ok(())
}

fn overlaps_edited_range(part: &Range<u64>, edited: &Range<u64>) -> bool {
    !part.is_empty() && part.start < edited.end && edited.start < part.end
}

/// Offsets of the `st_size` fields that state the size of the section's content.
fn symbol_sizes(object: &ElfObject<'_>, index: usize, size: u64) -> Result<Vec<u64>, Diagnostic> {
    let mut found = Vec::new();
    for table in object.sections.all.iter().filter(|section| section.kind == SHT_SYMTAB) {
        for number in 0..object.section_content(table)?.len() as u64 / SYMBOL {
            let at = table.offset + number * SYMBOL;
            if u16_at(object.bytes, at + 6).map(usize::from) != Some(index) {
                continue;
            }
            let value = u64_at(object.bytes, at + 8).ok_or_else(|| truncated_symbol_table_error(at))?;
            let symbol_size = u64_at(object.bytes, at + 16).ok_or_else(|| truncated_symbol_table_error(at))?;
            match (value, symbol_size) {
                (0, 0) => {} // the section symbol, or a label without a size
                (0, whole) if whole == size => found.push(at + 16),
                _ => {
                    return Err(no_place(format!("symbol {number} is a part of it (at {value:#x}, {symbol_size:#x})")));
                }
            }
        }
    }
    if found.len() > MAX_SYMBOLS {
        return Err(no_place(format!("{} symbols name it", found.len())));
    }
    if object.sections.all.iter().any(|section| section.kind == SHT_SYMTAB_SHNDX) {
        return Err(no_place("the object has an extended symbol section table"));
    }
    Ok(found)
}

fn truncated_symbol_table_error(at: u64) -> Diagnostic {
    malformed_at("the symbol table is cut off", at)
}

/// Rejects relocations inside of the content, and those that point beyond its start, which would have
/// to follow their targets.
fn check_relocations(object: &ElfObject<'_>, index: usize) -> Result<(), Diagnostic> {
    if object.sections.all.iter().any(|section| section.kind == SHT_CREL) {
        return Err(no_place("the object's relocations are in the compact form (CREL)"));
    }
    for table in object.sections.all.iter().filter(|section| matches!(section.kind, SHT_RELA | SHT_REL)) {
        if table.info as usize == index && table.size > 0 {
            return Err(no_place("relocations change it"));
        }
        let entry = if table.kind == SHT_RELA { RELA } else { REL };
        for number in 0..object.section_content(table)?.len() as u64 / entry {
            let at = table.offset + number * entry;
            let symbol = u32_at(object.bytes, at + 12).ok_or_else(|| malformed_at("a relocation is cut off", at))?;
            if !is_inside(object, table.link, symbol, index)? {
                continue;
            }
            let addend = if entry == RELA { u64_at(object.bytes, at + 16) } else { stored_addend(object, table, at) };
            if addend != Some(0) {
                return Err(no_place("a relocation points past its start"));
            }
        }
    }
    Ok(())
}

/// The addend of a `REL` relocation, which is stored at its target; 64-bit pointers only.
fn stored_addend(object: &ElfObject<'_>, table: &SectionHeader, at: u64) -> Option<u64> {
    let target = object.sections.all.get(table.info as usize)?;
    let offset = u64_at(object.bytes, at)?;
    slice(object.section_content(target).ok()?, offset, 8).and_then(|bytes| u64_at(bytes, 0))
}

fn is_inside(object: &ElfObject<'_>, table: u32, symbol: u32, index: usize) -> Result<bool, Diagnostic> {
    if symbol == 0 {
        return Ok(false);
    }
    let table = object.sections.all.get(table as usize).filter(|section| section.kind == SHT_SYMTAB);
    let table = table.ok_or_else(|| malformed_at("relocations without a symbol table", 0))?;
    let entry = slice(object.section_content(table)?, u64::from(symbol) * SYMBOL, SYMBOL);
    let entry = entry.ok_or_else(|| malformed_at(format!("a relocation names symbol {symbol}"), table.header))?;
    Ok(u16_at(entry, 6).map(usize::from) == Some(index))
}
