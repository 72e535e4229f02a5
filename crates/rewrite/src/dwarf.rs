//! Debug information and call frames: everything that states distances in code.
//!
//! Addresses have relocations and move with them. What states a distance as a plain number is handled here: line
//! tables, lists of ranges and locations, call frames, and the sizes of functions and blocks in the tree of entries.
//!
//! Invariants: what does not change keeps its bytes; a section that cannot be read is a refusal, never half done.

mod cursor;
mod frame;
mod info;
mod line;
mod list;

use crate::fix::{Maps, Place, Replaced};
use crate::tables::place_of;
use hotswap_code_object::Kind;
use hotswap_code_object::image::{Formula, Image, Relocations, SymbolRows};
use hotswap_report::Diagnostic;
use std::collections::HashMap;

/// A distance of 32 bits from its own place that no relocation is about: to write when everything has its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Distance {
    /// Section, and offset in its new content.
    pub(crate) section: usize,
    pub(crate) offset: u64,
    pub(crate) target: Place,
}

/// New content of sections.
#[derive(Default)]
pub(crate) struct Dwarf {
    pub(crate) replaced: Vec<(usize, Replaced)>,
    pub(crate) distances: Vec<Distance>,
}

/// What addresses in debug sections mean.
pub(crate) struct Source<'s> {
    pub(crate) image: &'s Image<'s>,
    pub(crate) maps: &'s Maps<'s>,
    /// Fields with relocations: by section and offset, symbol's section, and its value with the addend.
    fields: HashMap<(usize, u64), (Option<usize>, u64)>,
}

impl<'s> Source<'s> {
    fn new(
        image: &'s Image<'s>,
        maps: &'s Maps<'s>,
        symbols: &[SymbolRows<'_>],
        relocations: &[Relocations<'_>],
    ) -> Result<Self, Diagnostic> {
        let mut fields = HashMap::new();
        let is_debug = |section: usize| {
            let name = image.sections[section].name;
            name.starts_with(".debug_") || name == ".eh_frame"
        };
        for records in relocations.iter().filter(|records| records.target != 0 && is_debug(records.target)) {
            // Names need no place: they are most of the relocations.
            if matches!(image.sections[records.target].name, ".debug_str_offsets" | ".debug_names") {
                continue;
            }
            let Some(table) = symbols.iter().find(|table| table.section == records.symbols) else { continue };
            let base = image.sections[records.target].address;
            for rela in records.iter() {
                let rela = rela?;
                let Some(symbol) = table.rows.get(rela.symbol as usize) else { continue };
                if matches!(rela.kind.formula, Formula::Absolute | Formula::Relative) {
                    let value = symbol.value.wrapping_add_signed(rela.addend);
                    fields.insert((records.target, rela.place.wrapping_sub(base)), (symbol.section, value));
                }
            }
        }
        Ok(Self { image, maps, fields })
    }

    /// The place that the address in a field means. `stated` is what the field holds.
    pub(crate) fn address(&self, section: usize, offset: u64, stated: u64) -> Option<Place> {
        match self.fields.get(&(section, offset)) {
            Some((owner, value)) => {
                let section = (*owner)?;
                let offset = value.checked_sub(self.image.sections[section].address)?;
                (offset <= self.image.sections[section].size).then_some(Place { section, offset })
            }
            // Addresses near 0 stand for code that was thrown away.
            None if self.image.kind == Kind::Linked && stated > 1 => place_of(self.image, stated),
            None => None,
        }
    }

    /// The number in a field that leads into another section.
    pub(crate) fn number(&self, section: usize, offset: u64, stated: u64) -> u64 {
        self.fields.get(&(section, offset)).map_or(stated, |(_, value)| *value)
    }

    /// Whether a relocation is about the field.
    pub(crate) fn is_relocated(&self, section: usize, offset: u64) -> bool {
        self.fields.contains_key(&(section, offset))
    }

    /// `size` bytes from `place` on, afterwards.
    pub(crate) fn size(&self, place: Place, size: u64) -> Option<u64> {
        self.size_between(place, place.offset.checked_add(size)?)
    }

    fn size_between(&self, place: Place, end: u64) -> Option<u64> {
        if !self.maps.moves(place.section) {
            return Some(end - place.offset);
        }
        // One past the end of a section is the most that can be meant.
        let end = Place { offset: end, ..place };
        if end.offset > self.image.sections[place.section].size {
            return Some(end.offset - place.offset);
        }
        self.maps.end(end)?.checked_sub(self.maps.begin(place)?)
    }

    /// From what begins at `base` to what begins `distance` behind it, afterwards.
    pub(crate) fn distance(&self, base: Place, distance: u64) -> Option<u64> {
        let offset = base.offset.checked_add(distance)?;
        if !self.maps.moves(base.section) || offset > self.image.sections[base.section].size {
            return Some(distance);
        }
        self.maps.begin(Place { offset, ..base })?.checked_sub(self.maps.begin(base)?)
    }
}

/// Encodes what has to be encoded again.
pub(crate) fn rewrite(
    image: &Image<'_>,
    maps: &Maps<'_>,
    symbols: &[SymbolRows<'_>],
    relocations: &[Relocations<'_>],
) -> Result<Dwarf, Diagnostic> {
    let mut dwarf = Dwarf::default();
    let source = Source::new(image, maps, symbols, relocations)?;
    let units = info::rewrite(&source, &mut dwarf)?;
    for (number, section) in image.sections.iter().enumerate().filter(|(_, section)| !section.bytes.is_empty()) {
        let replaced = match section.name {
            ".debug_line" => Some(line::rewrite(&source, number)?),
            ".debug_rnglists" | ".debug_loclists" => Some(list::rewrite(&source, number, &units)?),
            ".debug_ranges" | ".debug_loc" => Some(list::rewrite_pairs(&source, number, &units)?),
            ".eh_frame" | ".debug_frame" => Some(frame::rewrite(&source, number, &mut dwarf.distances)?),
            ".debug_aranges" => Some(list::rewrite_addresses(&source, number)?),
            _ => None,
        };
        if let Some(replaced) = replaced.filter(|replaced| replaced.bytes != section.bytes) {
            dwarf.replaced.push((number, replaced));
        }
    }
    Ok(dwarf)
}
