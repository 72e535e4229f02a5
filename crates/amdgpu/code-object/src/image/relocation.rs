//! Relocations of AMDGPU: one table of their types, and the records of a section.
//!
//! Supported are the forms that lld makes for AMD GPUs: `.rela.*`, the loader's `.rel.dyn` (`-z rel`) and `.relr.dyn`
//! (`-z pack-relative-relocs`), and `.crel.*` of assemblers and `--emit-relocs` (`--crel`). Absent on purpose: records
//! without addends in relocatable files or left by a linker, which no tool writes for these targets, and those packed
//! for Android's loader, which ROCm's does not read.

use super::{ObjectImage, SectionPart};
use crate::elf::record_table;
use crate::{ObjectKind, malformed};
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{self, Rel64, Rela64, Relr64};
use std::ops::Range;

pub mod crel;

/// The relocation type `R_AMDGPU_RELATIVE64` of loaded addresses.
const RELATIVE64: u32 = 13;
/// Bytes of a word of packed addresses, and the number of words covered by a mask.
const WORD: u64 = 8;
const MASKED: u64 = 63;
/// The section types `SHT_ANDROID_REL`, `SHT_ANDROID_RELA` and `SHT_ANDROID_RELR`.
pub(crate) const ANDROID: [u32; 3] = [0x6000_0001, 0x6000_0002, 0x6fff_ff00];

/// The value that a relocation puts into its field. `S` is the symbol's address, `A` the addend, `P` the
/// field's address, `B` the address at which the file is loaded, `G` the address of the symbol's entry of
/// the global offset table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    None,
    /// `S + A`: the address itself.
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
    /// The formula of the value.
    pub formula: Formula,
}

#[rustfmt::skip]
macro_rules! relocations {
    ($($number:literal $name:literal $size:literal $shift:literal $formula:ident;)*) => {
        /// Every type that the psABI defines, by number. 12 was never assigned.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rela {
    /// Address of the field in a linked file, its offset in the section in a relocatable one.
    pub place: u64,
    pub kind: &'static RelocationKind,
    /// Number of the symbol; 0 for none.
    pub symbol: u32,
    pub addend: i64,
}

/// The encoding of a section's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelocationForm {
    /// Rows of 24 bytes.
    Rela,
    /// Rows of 16 bytes; the addend is in the field.
    Rel,
    /// Words: the position of an address that the loader relocates, or a mask for the 63 words after it.
    Relr,
    /// Each record by its differences from the previous one.
    Crel,
}

/// The records of one section.
#[derive(Debug, Clone)]
pub struct RelocationSection<'a> {
    /// Number of their section.
    pub section: usize,
    /// Number of the section to which they apply; 0 for those of the loader, which name addresses.
    pub target: usize,
    /// Number of the symbol table to which they refer.
    pub symbols: usize,
    /// How the records are encoded.
    pub form: RelocationForm,
    at: usize,
    rows: RelocationRows<'a>,
}

#[derive(Debug, Clone)]
enum RelocationRows<'a> {
    /// As stored in the file.
    Plain(&'a [Rela64<LE>]),
    /// Records of the other forms.
    Read(Vec<Rela>),
}

impl<'a> ObjectImage<'a> {
    /// All sections with relocations.
    ///
    /// # Errors
    /// `MALFORMED` for one that names no symbol table or no section or cannot be read, `UNKNOWN_FORMAT` for
    /// forms of relocations that are not made for AMD GPUs: those packed for Android, and those without addend
    /// that are not the loader's.
    pub fn relocations(&self) -> Result<Vec<RelocationSection<'a>>, Diagnostic> {
        let mut found = Vec::new();
        for (number, section) in self.sections.iter().enumerate() {
            let at = section.offset as usize;
            let Some(form) = relocation_form(section)? else { continue };
            let (target, symbols) = (section.info as usize, section.link as usize);
            if target >= self.sections.len() || symbols >= self.sections.len() {
                return Err(malformed(at, format!("`{}` is about a section that does not exist", section.name)));
            }
            let rows = match form {
                RelocationForm::Rela => RelocationRows::Plain(self.record_rows(number, "a relocation section")?),
                RelocationForm::Rel => RelocationRows::Read(self.without_addend(number)?),
                RelocationForm::Relr => RelocationRows::Read(self.packed_words(number)?),
                RelocationForm::Crel => RelocationRows::Read(crel::read_crel(section)?),
            };
            found.push(RelocationSection { section: number, target, symbols, form, at, rows });
        }
        Ok(found)
    }

    /// The rows of a section, all of one size.
    fn record_rows<T: object::Pod>(&self, number: usize, what: &str) -> Result<&'a [T], Diagnostic> {
        let section = &self.sections[number];
        let (at, count) = (section.offset as usize, section.bytes.len() / size_of::<T>());
        if !section.bytes.len().is_multiple_of(size_of::<T>()) {
            return Err(malformed(at, format!("`{}` ends inside a record", section.name)));
        }
        record_table::<T>(self.data, section.offset, count as u64, at, what)
    }

    /// Records of the loader whose addends are in their fields. Linkers write them, assemblers do not.
    fn without_addend(&self, number: usize) -> Result<Vec<Rela>, Diagnostic> {
        let section = &self.sections[number];
        let at = section.offset as usize;
        if self.kind != ObjectKind::Linked || !section.is_loaded() {
            let what =
                format!("`{}` holds relocations without addends, which no tool makes for code of GPUs", section.name);
            return Err(crate::unsupported_format(at, what).advise("link with -z rela"));
        }
        self.record_rows::<Rel64<LE>>(number, "a relocation section")?
            .iter()
            .enumerate()
            .map(|one| read_rel_entry(one, self, at))
            .collect()
    }

    /// The loader's records that only consist of addresses.
    fn packed_words(&self, number: usize) -> Result<Vec<Rela>, Diagnostic> {
        let kind = relocation_kind(RELATIVE64, self.sections[number].offset as usize)?;
        let (mut places, mut next) = (Vec::new(), 0_u64);
        for word in self.record_rows::<Relr64<LE>>(number, "a relocation section")?.iter().map(|word| word.0.get(LE)) {
            if word & 1 == 0 {
                places.push(word);
                next = word.wrapping_add(WORD);
                continue;
            }
            let bits = (0..MASKED).filter(|bit| word >> (bit + 1) & 1 != 0);
            places.extend(bits.map(|bit| next.wrapping_add(bit * WORD)));
            next = next.wrapping_add(MASKED * WORD);
        }
        let places = places.into_iter();
        Ok(places.map(|place| Rela { place, kind, symbol: 0, addend: self.field_value(place, kind.size) }).collect())
    }

    /// The value of a field of a linked file; 0 where the file lacks bytes of it.
    fn field_value(&self, address: u64, size: u8) -> i64 {
        let bytes = self.section_at(address).and_then(|section| {
            let section = &self.sections[section];
            let start = usize::try_from(address.checked_sub(section.address)?).ok()?;
            section.bytes.get(start..start.checked_add(usize::from(size))?)
        });
        bytes.map_or(0, |bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | i64::from(*byte)))
    }
}

fn read_rel_entry((number, row): (usize, &Rel64<LE>), image: &ObjectImage<'_>, at: usize) -> Result<Rela, Diagnostic> {
    let (place, kind) = (row.r_offset.get(LE), relocation_kind(row.r_type(LE), at + number * size_of::<Rel64<LE>>())?);
    Ok(Rela { place, kind, symbol: row.r_sym(LE), addend: image.field_value(place, kind.size) })
}

/// The form of a section's records; `None` if it holds none.
fn relocation_form(section: &SectionPart<'_>) -> Result<Option<RelocationForm>, Diagnostic> {
    Ok(Some(match section.kind {
        elf::SHT_RELA => RelocationForm::Rela,
        elf::SHT_REL => RelocationForm::Rel,
        elf::SHT_RELR => RelocationForm::Relr,
        elf::SHT_CREL => RelocationForm::Crel,
        kind if ANDROID.contains(&kind) => {
            let what = format!(
                "`{}` holds relocations as Android's loader reads them, which no loader of GPUs does",
                section.name
            );
            return Err(crate::unsupported_format(section.offset as usize, what)
                .advise("link without --pack-dyn-relocs=android"));
        }
        _ => return Ok(None),
    }))
}

fn relocation_kind(number: u32, at: usize) -> Result<&'static RelocationKind, Diagnostic> {
    RelocationKind::find(number).ok_or_else(|| unknown_relocation_error(at, number))
}

fn unknown_relocation_error(at: usize, number: u32) -> Diagnostic {
    crate::unsupported_format(at + 8, format!("relocation type {number} is not known"))
}

/// The words that encode those addresses, sorted, as linkers write them.
pub fn pack_words(places: &[u64]) -> Vec<u64> {
    let mut words = Vec::new();
    let mut rest = places;
    while let Some((first, behind)) = rest.split_first() {
        words.push(*first);
        let mut next = first.wrapping_add(WORD);
        rest = behind;
        loop {
            let mut mask = 0_u64;
            while let Some((place, behind)) = rest.split_first() {
                let distance = place.wrapping_sub(next);
                if distance % WORD != 0 || distance / WORD >= MASKED {
                    break;
                }
                mask |= 1 << (distance / WORD);
                rest = behind;
            }
            if mask == 0 {
                break;
            }
            words.push(mask << 1 | 1);
            next = next.wrapping_add(MASKED * WORD);
        }
    }
    words
}

impl RelocationSection<'_> {
    /// The number of records.
    pub fn len(&self) -> usize {
        match &self.rows {
            RelocationRows::Plain(rows) => rows.len(),
            RelocationRows::Read(rows) => rows.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The offset in the file of the record with that number; of the section where records lack fixed positions.
    pub fn record_offset(&self, number: usize) -> usize {
        self.at + number * self.form.row_size()
    }

    /// The record with that number.
    ///
    /// # Errors
    /// `UNKNOWN_FORMAT` for a type that is not in the table.
    pub fn get(&self, number: usize) -> Result<Rela, Diagnostic> {
        let row = match &self.rows {
            RelocationRows::Plain(rows) => &rows[number],
            RelocationRows::Read(rows) => return Ok(rows[number]),
        };
        let kind = relocation_kind(row.r_type(LE, false), self.record_offset(number))?;
        Ok(Rela { place: row.r_offset.get(LE), kind, symbol: row.r_sym(LE, false), addend: row.r_addend.get(LE) })
    }

    /// All records, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Rela, Diagnostic>> + '_ {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl RelocationForm {
    /// Bytes of a row; 0 where rows lack positions of their own.
    pub fn row_size(self) -> usize {
        match self {
            Self::Rela => size_of::<Rela64<LE>>(),
            Self::Rel => size_of::<Rel64<LE>>(),
            Self::Relr | Self::Crel => 0,
        }
    }
}

/// Ranges of place and addend in a record.
pub(crate) const PLACE: Range<usize> = 0..8;
pub(crate) const ADDEND: Range<usize> = 16..24;

impl Rela {
    /// Writes a changed place and addend into the bytes of a record.
    pub fn write(record: &mut [u8], place: u64, addend: i64) {
        record[PLACE].copy_from_slice(&place.to_le_bytes());
        record[ADDEND].copy_from_slice(&addend.to_le_bytes());
    }
}
