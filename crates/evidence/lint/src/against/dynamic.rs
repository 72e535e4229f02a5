//! Tables that the loader reads beside segments: the dynamic section, and the fields of symbols.
//!
//! Invariants: entries keep their order and tags; an address is the new position of the same place.

use super::image::ComparedFiles;
use super::tables::{SymbolEntry, section_headers, symbol_entries};
use object::LittleEndian as LE;
use object::elf::{self, Dyn64};
use object::pod::slice_from_bytes;

type DynamicEntry = Dyn64<LE>;

/// `DT_RELR`, the tag of packed relative relocations.
const DT_RELR: u32 = 36;
/// Tags whose value is an address.
const ADDRESSES: [u32; 13] = [
    elf::DT_PLTGOT,
    elf::DT_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_RELA,
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_REL,
    elf::DT_JMPREL,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
    DT_RELR,
    elf::DT_GNU_HASH,
];

/// Compares the dynamic sections.
pub(super) fn compare_dynamic(files: &ComparedFiles<'_, '_, '_>) -> Result<(), String> {
    for (old, new) in files.old.sections.iter().zip(&files.new.sections).filter(|(old, _)| old.kind == elf::SHT_DYNAMIC)
    {
        let ((before, rest), (after, other_rest)) =
            (read_dynamic_entries(old.bytes)?, read_dynamic_entries(new.bytes)?);
        if before.len() != after.len() || rest != other_rest {
            return Err("the number of entries differs".to_owned());
        }
        for (before, after) in before.iter().zip(after) {
            let (tag, value) = (before.d_tag.get(LE), before.d_val.get(LE));
            let is_address = u32::try_from(tag).is_ok_and(|tag| ADDRESSES.contains(&tag));
            let moved = files.old.section_at(value).filter(|_| is_address);
            let expected = moved.map_or(Some(value), |section| files.new_position(section, value, false));
            if after.d_tag.get(LE) != tag || Some(after.d_val.get(LE)) != expected {
                return Err(format!("the entry of tag {tag:#x} has another value"));
            }
        }
    }
    Ok(())
}

fn read_dynamic_entries(bytes: &[u8]) -> Result<(&[Dyn64<LE>], &[u8]), String> {
    let count = <[u8]>::len(bytes) / size_of::<DynamicEntry>();
    slice_from_bytes::<DynamicEntry>(bytes, count).map_err(|()| "it cannot be read".to_owned())
}

/// Compares the fields of symbols beside name, value and size: binding, type, visibility, and sections that do not exist.
pub(super) fn symbol_fields(files: &ComparedFiles<'_, '_, '_>) -> Result<(), String> {
    let (old, new) = (files.old.bytes(), files.new.bytes());
    let pairs = section_headers(old)
        .ok_or_else(unreadable_symbols)?
        .iter()
        .zip(section_headers(new).ok_or_else(unreadable_symbols)?);
    for (before, after) in pairs.filter(|(row, _)| matches!(row.sh_type.get(LE), elf::SHT_SYMTAB | elf::SHT_DYNSYM)) {
        let (before, after) = (
            symbol_entries(old, before).ok_or_else(unreadable_symbols)?,
            symbol_entries(new, after).ok_or_else(unreadable_symbols)?,
        );
        if before.len() != after.len() {
            return Err("some are missing, or new".to_owned());
        }
        if let Some(number) =
            before.iter().zip(after).position(|(before, after)| !has_same_symbol_fields(before, after))
        {
            return Err(format!("symbol {number} has another binding, type, visibility or section"));
        }
    }
    Ok(())
}

fn unreadable_symbols() -> String {
    "they cannot be read".to_owned()
}

fn has_same_symbol_fields(one: &SymbolEntry, other: &SymbolEntry) -> bool {
    one.st_info == other.st_info && one.st_other == other.st_other && one.st_shndx.get(LE) == other.st_shndx.get(LE)
}
