//! A rewritten file without the relocations that its linker kept (`--emit-relocs`), where the original lacks them.
//!
//! A device link rewrites a copy of its code object that has them, with symbols of sections that they refer to; the code
//! object that the compiler's link made has neither, and stands in the fat binary beside the rewritten one. Nothing loads
//! them, and the comparison numbers sections and symbols.
//!
//! Absent on purpose: files in which sections that are loaded come after such relocations.

use super::symbol_order::{match_names, restore_order};
use super::tables::{
    SectionRow, SymbolEntry, elf_header, section_headers, section_range, symbol_entries, symbol_names,
};
use object::elf::{self, FileHeader64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};

/// The rewritten file without them; `None` where there is nothing to remove.
pub(super) fn remove_kept_sections(original: &[u8], rewritten: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = (section_headers(original)?, section_headers(rewritten)?);
    let first = new.iter().position(is_kept).filter(|_| !old.iter().any(is_kept))?;
    if new[first..].iter().any(is_loaded) {
        return None;
    }
    let numbers = new_section_numbers(new);
    let mut out = rewritten.to_vec();
    clear_removed(rewritten, new, &mut out)?;
    let mut left = Vec::new();
    for numbered in new.iter().filter(|row| !is_kept(row)) {
        let mut row = *numbered;
        row.sh_link = U32::new(LE, renumber_section(&numbers, row.sh_link.get(LE)));
        if row.sh_type.get(LE) == elf::SHT_SYMTAB && !is_loaded(&row) {
            let wanted = old.iter().find(|row| row.sh_type.get(LE) == elf::SHT_SYMTAB);
            let wanted = wanted.and_then(|table| symbol_names(original, old, table, symbol_entries(original, table)?));
            let symbols = sorted_symbols(rewritten, new, numbered, &wanted.unwrap_or_default())?;
            place_symbols(&mut row, &symbols, &numbers, &mut out);
        }
        left.push(row);
    }
    place_table(&left, renumber_section(&numbers, names_section(rewritten)?), &mut out)?;
    let _ = restore_order(original, &mut out);
    Some(out)
}

/// Clears the bytes of what is removed, or has another place in the new file: they would be bytes of no section.
fn clear_removed(rewritten: &[u8], all: &[SectionRow], out: &mut [u8]) -> Option<()> {
    for row in all.iter().filter(|row| is_kept(row) || is_unloaded_symtab(row)) {
        out.get_mut(section_range(rewritten, row)?)?.fill(0);
    }
    let start = usize::try_from(elf_header(rewritten)?.e_shoff.get(LE)).ok()?;
    out.get_mut(start..start.checked_add(size_of_val(all))?)?.fill(0);
    Some(())
}

fn is_unloaded_symtab(row: &&SectionRow) -> bool {
    row.sh_type.get(LE) == elf::SHT_SYMTAB && !is_loaded(row)
}

/// The symbols without those of sections, in the order of these names if they have them.
fn sorted_symbols(data: &[u8], rows: &[SectionRow], table: &SectionRow, wanted: &[&[u8]]) -> Option<Vec<SymbolEntry>> {
    let all = symbol_entries(data, table)?;
    let named = all.iter().zip(symbol_names(data, rows, table, all)?);
    let (symbols, names): (Vec<&SymbolEntry>, Vec<&[u8]>) =
        named.filter(|(symbol, _)| symbol.st_type() != elf::STT_SECTION).unzip();
    let order = match_names(wanted, &names).unwrap_or_else(|| (0..symbols.len()).collect());
    Some(order.into_iter().map(|number| *symbols[number]).collect())
}

/// Appends the table of symbols.
fn place_symbols(row: &mut SectionRow, symbols: &[SymbolEntry], numbers: &[u32], out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
    row.sh_offset = U64::new(LE, out.len() as u64);
    for symbol in symbols {
        let mut symbol = *symbol;
        let section = symbol.st_shndx.get(LE);
        if section < elf::SHN_LORESERVE {
            symbol.st_shndx = U16::new(LE, renumber_section(numbers, u32::from(section)) as u16);
        }
        out.extend_from_slice(bytes_of(&symbol));
    }
    let locals = symbols.iter().filter(|symbol| symbol.st_bind() == elf::STB_LOCAL).count();
    row.sh_size = U64::new(LE, out.len() as u64 - row.sh_offset.get(LE));
    row.sh_info = U32::new(LE, locals as u32);
}

/// Appends the section table.
fn place_table(rows: &[SectionRow], names: u32, out: &mut Vec<u8>) -> Option<()> {
    out.resize(out.len().next_multiple_of(8), 0);
    let mut header = *elf_header(out)?;
    header.e_shoff = U64::new(LE, out.len() as u64);
    header.e_shnum = U16::new(LE, u16::try_from(rows.len()).ok()?);
    header.e_shstrndx = U16::new(LE, u16::try_from(names).ok()?);
    out[..size_of::<FileHeader64<LE>>()].copy_from_slice(bytes_of(&header));
    rows.iter().for_each(|row| out.extend_from_slice(bytes_of(row)));
    Some(())
}

fn is_loaded(row: &SectionRow) -> bool {
    row.sh_flags.get(LE) & u64::from(elf::SHF_ALLOC) != 0
}

fn is_kept(row: &SectionRow) -> bool {
    matches!(row.sh_type.get(LE), elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL) && !is_loaded(row)
}

/// The numbers of the sections when those that were kept are removed.
fn new_section_numbers(rows: &[SectionRow]) -> Vec<u32> {
    rows.iter().scan(0, take_section_number).collect()
}

fn take_section_number(next: &mut u32, row: &SectionRow) -> Option<u32> {
    let own = *next;
    *next += u32::from(!is_kept(row));
    Some(own)
}

/// The new number of a section; one that does not exist keeps its number.
fn renumber_section(numbers: &[u32], number: u32) -> u32 {
    numbers.get(number as usize).copied().unwrap_or(number)
}

fn names_section(data: &[u8]) -> Option<u32> {
    elf_header(data).map(|header| u32::from(header.e_shstrndx.get(LE)))
}
