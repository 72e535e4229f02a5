//! A rewritten file without the relocations that its linker kept (`--emit-relocs`), where the original has none.
//!
//! A device link rewrites a copy of its code object that has them, with symbols of sections that they refer to; the code
//! object that the compiler's link made has neither, and stands in the fat binary beside the rewritten one. Nothing loads
//! them, and the comparison numbers sections and symbols.
//!
//! Absent on purpose: files in which sections that are loaded come after such relocations.

use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::pod::{bytes_of, from_bytes, slice_from_bytes};
use object::{LittleEndian as LE, U16, U32, U64};

type SectionRow = SectionHeader64<LE>;
type SymbolEntry = Sym64<LE>;

/// The rewritten file without them; `None` where there is nothing to remove.
pub(super) fn without(original: &[u8], rewritten: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = (rows(original)?, rows(rewritten)?);
    let first = new.iter().position(is_kept).filter(|_| !old.iter().any(is_kept))?;
    if new[first..].iter().any(is_loaded) {
        return None;
    }
    let numbers = numbers(new);
    let mut out = rewritten.to_vec();
    let mut left = Vec::new();
    for row in new.iter().filter(|row| !is_kept(row)) {
        let mut row = *row;
        row.sh_link = U32::new(LE, renumbered(&numbers, row.sh_link.get(LE)));
        if row.sh_type.get(LE) == elf::SHT_SYMTAB && !is_loaded(&row) {
            place_symbols(&mut row, &numbers, rewritten, &mut out)?;
        }
        left.push(row);
    }
    place_table(&left, renumbered(&numbers, names_section(rewritten)?), &mut out)?;
    Some(out)
}

/// Appends the table of symbols without those of sections.
fn place_symbols(row: &mut SectionRow, numbers: &[u32], rewritten: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (start, size) = (usize::try_from(row.sh_offset.get(LE)).ok()?, usize::try_from(row.sh_size.get(LE)).ok()?);
    let table = rewritten.get(start..start.checked_add(size)?)?;
    let (symbols, _) = slice_from_bytes::<SymbolEntry>(table, size / size_of::<SymbolEntry>()).ok()?;
    let left = symbols.iter().filter(|symbol| symbol.st_type() != elf::STT_SECTION);
    out.resize(out.len().next_multiple_of(8), 0);
    row.sh_offset = U64::new(LE, out.len() as u64);
    let mut locals = 0;
    for symbol in left {
        let mut symbol = *symbol;
        let section = symbol.st_shndx.get(LE);
        if section < elf::SHN_LORESERVE {
            symbol.st_shndx = U16::new(LE, renumbered(numbers, u32::from(section)) as u16);
        }
        locals += u32::from(symbol.st_bind() == elf::STB_LOCAL);
        out.extend_from_slice(bytes_of(&symbol));
    }
    row.sh_size = U64::new(LE, out.len() as u64 - row.sh_offset.get(LE));
    row.sh_info = U32::new(LE, locals);
    Some(())
}

/// Appends the section table.
fn place_table(rows: &[SectionRow], names: u32, out: &mut Vec<u8>) -> Option<()> {
    out.resize(out.len().next_multiple_of(8), 0);
    let mut header = *header(out)?;
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
fn numbers(rows: &[SectionRow]) -> Vec<u32> {
    let next = |next: &mut u32, row: &SectionRow| {
        let own = *next;
        *next += u32::from(!is_kept(row));
        Some(own)
    };
    rows.iter().scan(0, next).collect()
}

/// The new number of a section; one that does not exist keeps its number.
fn renumbered(numbers: &[u32], number: u32) -> u32 {
    numbers.get(number as usize).copied().unwrap_or(number)
}

fn names_section(data: &[u8]) -> Option<u32> {
    header(data).map(|header| u32::from(header.e_shstrndx.get(LE)))
}

fn header(data: &[u8]) -> Option<&FileHeader64<LE>> {
    Some(from_bytes::<FileHeader64<LE>>(data).ok()?.0)
}

fn rows(data: &[u8]) -> Option<&[SectionRow]> {
    let header = header(data)?;
    let (at, count) = (usize::try_from(header.e_shoff.get(LE)).ok()?, usize::from(header.e_shnum.get(LE)));
    let table = data.get(at..).filter(|_| usize::from(header.e_shentsize.get(LE)) == size_of::<SectionRow>())?;
    slice_from_bytes::<SectionRow>(table, count).ok().map(|(rows, _)| rows)
}
