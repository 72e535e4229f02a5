//! Relocations of AMDGPU: one table of their types, and the records of a section.

use super::Image;
use crate::elf::table;
use crate::malformed;
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{self, Rela64};
use std::ops::Range;

/// What a relocation puts into its field. `S` is the symbol's address, `A` the addend, `P` the field's address, `B`
/// the address at which the file is loaded, `G` the address of the symbol's entry of the global offset table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// Nothing.
    None,
    /// `S + A`.
    Absolute,
    /// `S + A - P`.
    Relative,
    /// `G + A - P`.
    GotRelative,
    /// `B + A`; only a loader applies it.
    LoadRelative,
    /// `(S + A - P - 4) / 4`: the distance of a branch.
    Branch,
}

/// A type of relocation.
#[derive(Debug, PartialEq, Eq)]
pub struct RelocationKind {
    /// `R_AMDGPU_…` as a number.
    pub number: u32,
    /// Its name without `R_AMDGPU_`.
    pub name: &'static str,
    /// Bytes of the field.
    pub size: u8,
    /// Bit of the value that is the field's lowest.
    pub shift: u8,
    /// What the value is.
    pub formula: Formula,
}

#[rustfmt::skip]
macro_rules! relocations {
    ($($number:literal $name:literal $size:literal $shift:literal $formula:ident;)*) => {
        /// Every type that the psABI defines, by number. 12 was never given out.
        pub const RELOCATIONS: &[RelocationKind] = &[$(
            RelocationKind { number: $number, name: $name, size: $size, shift: $shift, formula: Formula::$formula },
        )*];
    };
}

// Source: "Relocation Records" of LLVM's AMDGPU usage guide.
relocations! {
     0 "NONE"          0  0 None;
     1 "ABS32_LO"      4  0 Absolute;
     2 "ABS32_HI"      4 32 Absolute;
     3 "ABS64"         8  0 Absolute;
     4 "REL32"         4  0 Relative;
     5 "REL64"         8  0 Relative;
     6 "ABS32"         4  0 Absolute;
     7 "GOTPCREL"      4  0 GotRelative;
     8 "GOTPCREL32_LO" 4  0 GotRelative;
     9 "GOTPCREL32_HI" 4 32 GotRelative;
    10 "REL32_LO"      4  0 Relative;
    11 "REL32_HI"      4 32 Relative;
    13 "RELATIVE64"    8  0 LoadRelative;
    14 "REL16"         2  2 Branch;
}

impl RelocationKind {
    /// The type with that number.
    pub fn find(number: u32) -> Option<&'static Self> {
        RELOCATIONS.iter().find(|kind| kind.number == number)
    }

    /// Whether the field's own address is part of the value.
    pub fn is_relative(&self) -> bool {
        matches!(self.formula, Formula::Relative | Formula::GotRelative | Formula::Branch)
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rela {
    /// Address of the field in a linked file, its offset in the section in a relocatable one.
    pub place: u64,
    /// Its type.
    pub kind: &'static RelocationKind,
    /// Number of the symbol; 0 for none.
    pub symbol: u32,
    /// What is added.
    pub addend: i64,
}

/// The records of one section.
#[derive(Debug, Clone, Copy)]
pub struct Relocations<'a> {
    /// Number of their section.
    pub section: usize,
    /// Number of the section that they are about; 0 for those of the loader, which name addresses.
    pub target: usize,
    /// Number of the symbol table that they name.
    pub symbols: usize,
    at: usize,
    rows: &'a [Rela64<LE>],
}

impl<'a> Image<'a> {
    /// All sections with relocations.
    ///
    /// # Errors
    /// `MALFORMED` for one that names no symbol table or no section, `UNKNOWN_FORMAT` for forms of relocations that AMD
    /// GPUs have no use for (without addend, compact).
    pub fn relocations(&self) -> Result<Vec<Relocations<'a>>, Diagnostic> {
        let mut found = Vec::new();
        for (number, section) in self.sections.iter().enumerate() {
            let at = section.offset as usize;
            match section.kind {
                elf::SHT_RELA => {}
                elf::SHT_REL | elf::SHT_RELR | elf::SHT_CREL => {
                    let what = format!("`{}` holds relocations in a form that is not read", section.name);
                    return Err(crate::unknown(at, what).advise("link without options that pack relocations"));
                }
                _ => continue,
            }
            let count = section.bytes.len() / size_of::<Rela64<LE>>();
            if section.bytes.len() % size_of::<Rela64<LE>>() != 0 {
                return Err(malformed(at, format!("`{}` ends inside a record", section.name)));
            }
            let rows = table::<Rela64<LE>>(self.data, section.offset, count as u64, at, "a relocation section")?;
            let (target, symbols) = (section.info as usize, section.link as usize);
            if target >= self.sections.len() || symbols >= self.sections.len() {
                return Err(malformed(at, format!("`{}` is about a section that does not exist", section.name)));
            }
            found.push(Relocations { section: number, target, symbols, at, rows });
        }
        Ok(found)
    }
}

impl Relocations<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The offset in the file of the record with that number.
    pub fn offset(&self, number: usize) -> usize {
        self.at + number * size_of::<Rela64<LE>>()
    }

    /// The record with that number.
    ///
    /// # Errors
    /// `UNKNOWN_FORMAT` for a type that is not in the table.
    pub fn get(&self, number: usize) -> Result<Rela, Diagnostic> {
        let row = &self.rows[number];
        let number_of_kind = row.r_type(LE, false);
        let kind = RelocationKind::find(number_of_kind).ok_or_else(|| {
            let what = format!("relocation type {number_of_kind} is not known");
            crate::unknown(self.offset(number) + 8, what)
        })?;
        Ok(Rela { place: row.r_offset.get(LE), kind, symbol: row.r_sym(LE, false), addend: row.r_addend.get(LE) })
    }

    /// All records, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Rela, Diagnostic>> + '_ {
        (0..self.rows.len()).map(|number| self.get(number))
    }
}

/// Where in a record place and addend are.
pub(crate) const PLACE: Range<usize> = 0..8;
pub(crate) const ADDEND: Range<usize> = 16..24;

impl Rela {
    /// Writes a changed place and addend into the bytes of a record.
    pub fn write(record: &mut [u8], place: u64, addend: i64) {
        record[PLACE].copy_from_slice(&place.to_le_bytes());
        record[ADDEND].copy_from_slice(&addend.to_le_bytes());
    }
}
