//! Tables of an ELF file as they stand there: sections and symbols by number.

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SectionHeader64, Sym64};
use object::pod::{from_bytes, slice_from_bytes};
use std::ops::Range;

/// A row of the section table.
pub(super) type SectionRow = SectionHeader64<LE>;
/// A row of a table of symbols.
pub(super) type SymbolEntry = Sym64<LE>;

pub(super) fn elf_header(data: &[u8]) -> Option<&FileHeader64<LE>> {
    Some(from_bytes::<FileHeader64<LE>>(data).ok()?.0)
}

pub(super) fn section_headers(data: &[u8]) -> Option<&[SectionRow]> {
    let header = elf_header(data)?;
    let (at, count) = (usize::try_from(header.e_shoff.get(LE)).ok()?, usize::from(header.e_shnum.get(LE)));
    let table = data.get(at..).filter(|_| usize::from(header.e_shentsize.get(LE)) == size_of::<SectionRow>())?;
    slice_from_bytes::<SectionRow>(table, count).ok().map(|(rows, _)| rows)
}

/// The rows of a table of symbols.
pub(super) fn symbol_entries<'a>(data: &'a [u8], row: &SectionRow) -> Option<&'a [SymbolEntry]> {
    let bytes = data.get(section_range(data, row)?)?;
    slice_from_bytes::<SymbolEntry>(bytes, bytes.len() / size_of::<SymbolEntry>()).ok().map(|(symbols, _)| symbols)
}

pub(super) fn symbol_names<'a>(
    data: &'a [u8],
    rows: &[SectionRow],
    table: &SectionRow,
    symbols: &[SymbolEntry],
) -> Option<Vec<&'a [u8]>> {
    let strings = data.get(section_range(data, rows.get(table.sh_link.get(LE) as usize)?)?)?;
    symbols
        .iter()
        .map(|symbol: &SymbolEntry| strings.get(symbol.st_name.get(LE) as usize..)?.split(|byte| *byte == 0).next())
        .collect()
}

/// Bytes of a section in the file.
pub(super) fn section_range(data: &[u8], row: &SectionRow) -> Option<Range<usize>> {
    let start = usize::try_from(row.sh_offset.get(LE)).ok()?;
    let end = start.checked_add(usize::try_from(row.sh_size.get(LE)).ok()?)?;
    (end <= data.len()).then_some(start..end)
}
