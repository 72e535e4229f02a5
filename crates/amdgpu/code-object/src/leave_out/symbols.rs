//! Shortens symbol tables, and updates relocations to the new numbers.

use super::{Leaving, SECTION_INFO, SECTION_ROW, cannot_leave_out, put_bytes, set_size};
use crate::image::ObjectImage;
use hotswap_report::Diagnostic;
use object::elf;
use std::collections::HashMap;

const SYMBOL: usize = 24;

/// New numbers of the symbols of each table, by the number of its section; none for removed ones.
pub(super) type SymbolRenumbering = HashMap<usize, Vec<Option<u32>>>;

/// Removes the names from every symbol table.
pub(super) fn remove_symbols(
    image: &ObjectImage<'_>,
    leaving: &Leaving<'_>,
    out: &mut [u8],
) -> Result<SymbolRenumbering, Diagnostic> {
    let odd = [elf::SHT_GNU_VERSYM, elf::SHT_SYMTAB_SHNDX];
    if image.sections.iter().any(|section| odd.contains(&section.kind)) {
        return Err(cannot_leave_out("its symbol tables have versions or extended numbers"));
    }
    let mut numbers = SymbolRenumbering::new();
    for table in image.symbol_tables()? {
        let section = &image.sections[table.section];
        let (mut new, mut kept, mut locals) = (Vec::new(), Vec::new(), 0_u32);
        for (number, row) in table.rows.iter().enumerate() {
            if leaving.symbols.contains(row.name) {
                new.push(None);
                continue;
            }
            new.push(Some((kept.len() / SYMBOL) as u32));
            locals += u32::from(number < section.info as usize);
            kept.extend_from_slice(&section.bytes[number * SYMBOL..(number + 1) * SYMBOL]);
        }
        let size = kept.len();
        kept.resize(table.rows.len() * SYMBOL, 0);
        put_bytes(out, table.at, &kept)?;
        set_size(image, table.section, size, out)?;
        put_bytes(out, image.sections_at as usize + table.section * SECTION_ROW + SECTION_INFO, &locals.to_le_bytes())?;
        numbers.insert(table.section, new);
    }
    Ok(numbers)
}

/// Relocations refer to symbols by number, in the upper half of their second word.
pub(super) fn renumber_relocations(
    image: &ObjectImage<'_>,
    numbers: &SymbolRenumbering,
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    for section in &image.sections {
        let size = match section.kind {
            elf::SHT_RELA => 24,
            elf::SHT_REL => 16,
            elf::SHT_RELR => continue,
            kind if kind == elf::SHT_CREL || crate::image::ANDROID.contains(&kind) => {
                return Err(cannot_leave_out("its relocations are packed"));
            }
            _ => continue,
        };
        let Some(numbers) = numbers.get(&(section.link as usize)) else { continue };
        for at in (0..section.bytes.len() / size).map(|row| section.offset as usize + row * size + 12) {
            let old = out.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
            let new = numbers.get(old as usize).copied().flatten();
            let new = new.ok_or_else(|| cannot_leave_out("a relocation refers to one that should go"))?;
            put_bytes(out, at, &new.to_le_bytes())?;
        }
    }
    Ok(())
}
