//! Relocations of code sections in relocatable files.

use super::table::table_records;
use super::{SectionNames, left_out};
use crate::elf::{Elf, ElfSectionView, ObjectKind, record_table, string_at};
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{self, Rela64, Sym64};
use std::borrow::Cow;

/// A field that a linker fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation<'a> {
    /// Offset in the section.
    pub offset: usize,
    /// Its type, see [`Relocation::type_name`].
    pub kind: u32,
    /// The symbol, or the name of the section that the symbol denotes.
    pub symbol: Cow<'a, str>,
    /// Added to the symbol's address.
    pub addend: i64,
}

/// The types by number; 12 was never assigned.
const NAMES: [&str; 15] = [
    "R_AMDGPU_NONE",
    "R_AMDGPU_ABS32_LO",
    "R_AMDGPU_ABS32_HI",
    "R_AMDGPU_ABS64",
    "R_AMDGPU_REL32",
    "R_AMDGPU_REL64",
    "R_AMDGPU_ABS32",
    "R_AMDGPU_GOTPCREL",
    "R_AMDGPU_GOTPCREL32_LO",
    "R_AMDGPU_GOTPCREL32_HI",
    "R_AMDGPU_REL32_LO",
    "R_AMDGPU_REL32_HI",
    "",
    "R_AMDGPU_RELATIVE64",
    "R_AMDGPU_REL16",
];

impl Relocation<'_> {
    /// Name of the type; empty for numbers without one.
    pub fn type_name(&self) -> &'static str {
        NAMES.get(self.kind as usize).copied().unwrap_or_default()
    }
}

/// Adds the relocations of each code section. In linked files they are the loader's and concern no code.
pub(super) fn add_relocations<'a>(elf: &Elf<'a>, found: &mut [SectionNames<'a>], problems: &mut Vec<Diagnostic>) {
    if elf.kind == ObjectKind::Linked {
        return;
    }
    for section in elf.sections.iter().filter(|section| section.kind == elf::SHT_RELA) {
        let Some(owner) = found.iter_mut().find(|found| found.section.number == Some(section.info as usize)) else {
            continue;
        };
        match read_relocations(elf, section) {
            Ok(relocations) => owner.section.relocations.extend(relocations),
            Err(error) => problems.push(error),
        }
    }
    found.iter_mut().for_each(|found| found.section.relocations.sort_by_key(|relocation| relocation.offset));
}

fn read_relocations<'a>(elf: &Elf<'a>, section: &ElfSectionView<'a>) -> Result<Vec<Relocation<'a>>, Diagnostic> {
    let at = section.range.start;
    let (symbols, strings) =
        table_records(elf, elf.sections.get(section.link as usize).ok_or_else(|| missing_symbol_table_error(at))?)?;
    let count = section.range.len() / size_of::<Rela64<LE>>();
    let rows = record_table::<Rela64<LE>>(elf.data, at as u64, count as u64, at, "a relocation section");
    let rows = rows.map_err(|error| left_out(at, error.what))?;
    let relocations = rows.iter().enumerate().map(|(index, row)| {
        let symbol = symbols.get(row.r_sym(LE, false) as usize).ok_or_else(|| damaged_relocation_error(at, index))?;
        Ok(Relocation {
            offset: usize::try_from(row.r_offset.get(LE)).map_err(|_| damaged_relocation_error(at, index))?,
            kind: row.r_type(LE, false),
            symbol: name(elf, symbol, strings).ok_or_else(|| damaged_relocation_error(at, index))?,
            addend: row.r_addend.get(LE),
        })
    });
    relocations.collect()
}

fn missing_symbol_table_error(at: usize) -> Diagnostic {
    left_out(at, "a relocation section has no symbol table")
}

fn damaged_relocation_error(at: usize, index: usize) -> Diagnostic {
    left_out(at + index * size_of::<Rela64<LE>>(), "a relocation names no symbol of its table")
}

fn name<'a>(elf: &Elf<'a>, symbol: &Sym64<LE>, strings: &'a [u8]) -> Option<Cow<'a, str>> {
    if symbol.st_type() == elf::STT_SECTION {
        return elf.sections.get(usize::from(symbol.st_shndx.get(LE))).map(|section| section.name.into());
    }
    string_at(strings, symbol.st_name.get(LE)).map(String::from_utf8_lossy)
}
