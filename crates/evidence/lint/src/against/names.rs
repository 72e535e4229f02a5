//! Tables of names: every string that a section or symbol has is compared where it is used. Here: what those comparisons read as
//! the same.
//!
//! Invariants: a table begins with the empty name, which rows without a name refer to by 0, and ends with the end of a
//! name. What the original already does otherwise is its own matter.

use super::tables::{SectionRow, section_headers, section_range, symbol_entries, symbol_names};
use object::LittleEndian as LE;
use object::elf;

/// Compares how both files refer to names.
pub(super) fn compare_names(old: &[u8], new: &[u8]) -> Result<(), String> {
    match (name_fault(old), name_fault(new)) {
        (None, Some(fault)) => Err(fault),
        _ => Ok(()),
    }
}

fn name_fault(data: &[u8]) -> Option<String> {
    let rows = section_headers(data)?;
    rows.iter().find_map(|row| match row.sh_type.get(LE) {
        elf::SHT_STRTAB => table_fault(data, row),
        elf::SHT_SYMTAB | elf::SHT_DYNSYM => symbol_fault(data, rows, row),
        _ => None,
    })
}

fn table_fault(data: &[u8], row: &SectionRow) -> Option<String> {
    let Some(bytes) = section_range(data, row).and_then(|range| data.get(range)) else {
        return Some("a table of names lies outside of the file".to_owned());
    };
    if bytes.first().is_some_and(|first| *first != 0) {
        return Some("a table of names does not begin with the empty one".to_owned());
    }
    let ends_well = bytes.ends_with(&[0]) && !bytes.ends_with(&[0, 0]);
    (!bytes.is_empty() && !ends_well).then(|| "a table of names does not end with a name".to_owned())
}

fn symbol_fault(data: &[u8], rows: &[SectionRow], row: &SectionRow) -> Option<String> {
    let symbols = symbol_entries(data, row).unwrap_or_default();
    let names = symbol_names(data, rows, row, symbols).unwrap_or_default();
    let mut named = symbols.iter().zip(names);
    named
        .any(|(symbol, name)| name.is_empty() && symbol.st_name.get(LE) != 0)
        .then(|| "a symbol without a name does not refer to the empty one".to_owned())
}
