//! Loads a relocatable file as if it had been linked alone: its sections get places, and its relocations are applied.
//!
//! Data comes first, then notes, then code, each in the order of the file. So data keeps its place where notes and code have
//! grown, as in files that lld links.
//!
//! Invariants: a symbol that only a link would define is refused. Bytes that no section has are not part of the memory.

use super::{ElfObjectHeader, elf_header, malformed_error};
use crate::memory::{DeviceMemory, SparseMemory};
use hotswap_code_object::image::{Formula, ObjectImage, Rela, SectionPart};
use hotswap_report::Diagnostic;
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, SectionTable, Sym, SymbolTable};
use object::{SectionIndex, SymbolIndex};
use std::collections::BTreeMap;

/// Bytes of an entry of the global offset table.
const SLOT: u64 = 8;

/// A relocation with the section that it changes.
struct AppliedRela {
    target: usize,
    rela: Rela,
    symbols: usize,
}

/// The sections and the global offset table in memory.
struct Placement {
    /// The address of each section; 0 for one that is not loaded.
    sections: Vec<u64>,
    /// The address of a slot for the symbol of a table.
    slots: BTreeMap<SymbolKey, u64>,
}

/// The parts of memory, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Data,
    Note,
    Code,
}

impl PartKind {
    /// The part of a section; `None` if it is not loaded.
    fn classify(section: &SectionPart<'_>) -> Option<Self> {
        match section.kind {
            _ if !section.is_loaded() => None,
            elf::SHT_NOTE => Some(Self::Note),
            _ if section.is_code() => Some(Self::Code),
            _ => Some(Self::Data),
        }
    }
}

/// A symbol: the number of its table, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SymbolKey {
    table: usize,
    number: u32,
}

/// Places the sections in memory and applies the relocations; returns the address of each section.
pub(super) fn place_sections(bytes: &[u8], memory: &mut SparseMemory) -> Result<Vec<u64>, Diagnostic> {
    let image = ObjectImage::parse(bytes)?;
    let relocations = loaded_relocations(&image)?;
    let placement = Placement::allocate(&image, &relocations, memory)?;
    for (section, address) in image.sections.iter().zip(&placement.sections) {
        if section.is_loaded() && section.is_in_file() {
            memory.write(*address, section.bytes).map_err(|_| malformed_error("a section leaves its place"))?;
        }
    }
    let sections = elf_header(bytes)?.sections(LittleEndian, bytes).map_err(unreadable_object_error)?;
    for applied in &relocations {
        let symbols = sections
            .symbol_table_by_index(LittleEndian, bytes, SectionIndex(applied.symbols))
            .map_err(unreadable_object_error)?;
        placement.apply_relocation(&image, applied, &sections, &symbols, memory)?;
    }
    Ok(placement.sections)
}

fn unreadable_object_error(error: object::Error) -> Diagnostic {
    malformed_error(error.to_string())
}

/// The relocations of sections that are loaded.
fn loaded_relocations(image: &ObjectImage<'_>) -> Result<Vec<AppliedRela>, Diagnostic> {
    let mut all = Vec::new();
    for records in image.relocations()? {
        if !image.sections[records.target].is_loaded() {
            continue;
        }
        for rela in records.iter() {
            let rela = rela?;
            if rela.kind.formula != Formula::None {
                all.push(AppliedRela { target: records.target, rela, symbols: records.symbols });
            }
        }
    }
    Ok(all)
}

impl Placement {
    fn allocate(
        image: &ObjectImage<'_>,
        relocations: &[AppliedRela],
        memory: &mut SparseMemory,
    ) -> Result<Self, Diagnostic> {
        let mut sections = vec![0; image.sections.len()];
        let mut end = 0_u64;
        let mut slots = BTreeMap::new();
        for AppliedRela { rela, symbols, .. } in relocations {
            let key = SymbolKey { table: *symbols, number: rela.symbol };
            if rela.kind.formula == Formula::GotRelative && !slots.contains_key(&key) {
                slots.insert(key, place_after(&mut end, SLOT, SLOT)?);
            }
        }
        for kind in [PartKind::Data, PartKind::Note, PartKind::Code] {
            for (number, section) in image.sections.iter().enumerate() {
                if PartKind::classify(section) == Some(kind) {
                    sections[number] = place_after(&mut end, section.size, section.align)?;
                }
            }
        }
        let start = memory.allocate(end);
        for (address, section) in sections.iter_mut().zip(&image.sections) {
            *address += if section.is_loaded() { start } else { 0 };
        }
        slots.values_mut().for_each(|slot| *slot += start);
        Ok(Self { sections, slots })
    }

    fn apply_relocation(
        &self,
        image: &ObjectImage<'_>,
        applied: &AppliedRela,
        sections: &SectionTable<'_, ElfObjectHeader>,
        symbols: &SymbolTable<'_, ElfObjectHeader>,
        memory: &SparseMemory,
    ) -> Result<(), Diagnostic> {
        let AppliedRela { target, rela, symbols: table } = applied;
        let size = usize::from(rela.kind.size);
        let fits = rela.place.checked_add(size as u64).is_some_and(|end| end <= image.sections[*target].size);
        if !fits {
            return Err(malformed_error("a relocation leaves its section"));
        }
        let place = self.sections[*target].wrapping_add(rela.place);
        let symbol = self.symbol_address(rela.symbol, sections, symbols)?;
        let sum = symbol.wrapping_add_signed(rela.addend);
        let value = match rela.kind.formula {
            Formula::None => return Ok(()),
            Formula::Absolute => sum,
            Formula::Relative => sum.wrapping_sub(place),
            Formula::Branch => sum.wrapping_sub(place).wrapping_sub(4),
            Formula::LoadRelative => return Err(malformed_error("a relocatable file has a relocation of a loader")),
            Formula::GotRelative => {
                let key = SymbolKey { table: *table, number: rela.symbol };
                let slot = self.slots.get(&key).copied().unwrap_or_default();
                memory
                    .write(slot, &symbol.to_le_bytes())
                    .map_err(|_| malformed_error("the global offset table has no place"))?;
                slot.wrapping_add_signed(rela.addend).wrapping_sub(place)
            }
        };
        let field = (value >> rela.kind.shift).to_le_bytes();
        memory.write(place, &field[..size]).map_err(|_| malformed_error("a relocation is outside of the sections"))
    }

    /// The address of a symbol.
    fn symbol_address(
        &self,
        number: u32,
        sections: &SectionTable<'_, ElfObjectHeader>,
        symbols: &SymbolTable<'_, ElfObjectHeader>,
    ) -> Result<u64, Diagnostic> {
        if number == 0 {
            return Ok(0);
        }
        let index = SymbolIndex(number as usize);
        let symbol = symbols.symbol(index).map_err(unreadable_object_error)?;
        let value = symbol.st_value(LittleEndian);
        if symbol.st_shndx(LittleEndian) == elf::SHN_ABS {
            return Ok(value);
        }
        match symbols.symbol_section(LittleEndian, symbol, index).map_err(unreadable_object_error)? {
            Some(SectionIndex(section)) if section < sections.len() => match self.sections.get(section) {
                Some(start) if *start != 0 => Ok(start.wrapping_add(value)),
                _ => Err(malformed_error("a symbol is in a section that is not loaded")),
            },
            _ => {
                let name = symbols.symbol_name(LittleEndian, symbol).unwrap_or_default();
                let what = format!(
                    "the relocatable file leaves the place of the symbol {} to a link",
                    String::from_utf8_lossy(name)
                );
                Err(malformed_error(what).advise("link it first"))
            }
        }
    }
}

/// The next free place for so many bytes.
fn place_after(end: &mut u64, size: u64, align: u64) -> Result<u64, Diagnostic> {
    let start =
        end.checked_next_multiple_of(align.max(1)).filter(|start| *start <= 1 << 31).ok_or_else(too_large_error)?;
    *end = start.checked_add(size).filter(|end| *end <= 1 << 31).ok_or_else(too_large_error)?;
    Ok(start)
}

fn too_large_error() -> Diagnostic {
    malformed_error("the sections take more than 2 GiB of memory")
}
