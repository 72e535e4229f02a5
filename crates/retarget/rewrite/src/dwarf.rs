//! Debug information and call frames: everything that states distances in code.
//!
//! Addresses have relocations and move with them. In a file that was linked without, they are recorded as they are read
//! ([`AbsoluteField`]), and so are offsets into a section that is encoded again. Distances stated as plain numbers are
//! handled here in any file: line tables, lists of ranges and locations, call frames, and the sizes of functions and
//! blocks in the tree of entries. The index that a linker makes for debuggers (`.gdb_index`) has addresses and no
//! relocations. `.debug_names` only refers to the tree of entries, whose size does not change, and is kept.
//!
//! Invariants: unchanged contents keep their bytes; a section that cannot be read is a refusal, never half done.

mod cursor;
mod expression;
mod frame;
mod index;
mod info;
mod line;
mod list;

use crate::fix::{ReplacedSection, SectionMaps, SectionOffset};
use crate::tables::place_of;
use hotswap_code_object::ObjectKind;
use hotswap_code_object::image::{Formula, ObjectImage, RelocationSection, SymbolRows};
use hotswap_report::Diagnostic;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A 32-bit distance from its own position, without a relocation: written once the layout is final.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DwarfDistance {
    /// Section, and offset in its new content.
    pub(crate) section: usize,
    pub(crate) offset: u64,
    pub(crate) target: SectionOffset,
}

/// An address or an offset into a section, without a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AbsoluteField {
    /// The field, in the old file.
    pub(crate) field: SectionOffset,
    pub(crate) size: u8,
    pub(crate) target: SectionOffset,
    /// The target is the end of something.
    pub(crate) is_end: bool,
}

/// New content of sections.
#[derive(Default)]
pub(crate) struct Dwarf {
    pub(crate) replaced: Vec<ReplacedSection>,
    pub(crate) distances: Vec<DwarfDistance>,
    pub(crate) absolutes: Vec<AbsoluteField>,
}

/// Targets of addresses in debug sections.
pub(crate) struct DebugTargets<'s> {
    pub(crate) image: &'s ObjectImage<'s>,
    pub(crate) maps: &'s SectionMaps<'s>,
    /// Fields with relocations: by section and offset, symbol's section, and its value with the addend.
    fields: HashMap<(usize, u64), (Option<usize>, u64)>,
    /// Sections with such fields.
    relocated: HashSet<usize>,
    /// Fields that lack a relocation.
    absolutes: RefCell<Vec<AbsoluteField>>,
}

impl<'s> DebugTargets<'s> {
    fn new(
        image: &'s ObjectImage<'s>,
        maps: &'s SectionMaps<'s>,
        symbols: &[SymbolRows<'_>],
        relocations: &[RelocationSection<'_>],
    ) -> Result<Self, Diagnostic> {
        let mut fields = HashMap::new();
        for records in
            relocations.iter().filter(|records| records.target != 0 && is_debug_section(records.target, image))
        {
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
        let relocated = fields.keys().map(|(section, _)| *section).collect();
        Ok(Self { image, maps, fields, relocated, absolutes: RefCell::default() })
    }

    /// The place to which the address in a field refers, which is written again. `stated` is the field's content.
    pub(crate) fn record_address(&self, section: usize, offset: u64, stated: u64) -> Option<SectionOffset> {
        let target = self.referenced_place(section, offset, stated)?;
        self.record_field(section, offset, 8, target, false);
        Some(target)
    }

    /// Records a field of a linked file that lacks a relocation.
    pub(crate) fn record_field(&self, section: usize, offset: u64, size: u8, target: SectionOffset, is_end: bool) {
        if self.image.kind == ObjectKind::Linked && !self.is_relocated(section, offset) {
            let field = SectionOffset { section, offset };
            self.absolutes.borrow_mut().push(AbsoluteField { field, size, target, is_end });
        }
    }

    /// Records an offset into a section of that name.
    pub(crate) fn note_number(&self, section: usize, offset: u64, size: usize, name: &str, stated: u64) {
        if let Some(owner) = self.image.find(name).filter(|owner| stated <= self.image.sections[*owner].size) {
            self.record_field(section, offset, size as u8, SectionOffset { section: owner, offset: stated }, false);
        }
    }

    /// The place to which the address in a field refers.
    pub(crate) fn referenced_place(&self, section: usize, offset: u64, stated: u64) -> Option<SectionOffset> {
        match self.fields.get(&(section, offset)) {
            // The linker left no address: it folded the code into other code, which the relocation names, or threw it away.
            Some((_, value)) if self.is_left_out(section, stated) && *value != stated => None,
            Some((owner, value)) => {
                let section = (*owner)?;
                let offset = value.checked_sub(self.image.sections[section].address)?;
                (offset <= self.image.sections[section].size).then_some(SectionOffset { section, offset })
            }
            // Addresses near 0 denote code that was discarded.
            None if self.image.kind == ObjectKind::Linked && stated > 1 => place_of(self.image, stated),
            None => None,
        }
    }

    fn is_left_out(&self, section: usize, stated: u64) -> bool {
        let is_debug = self.image.kind == ObjectKind::Linked && !self.image.sections[section].is_loaded();
        is_debug && [0, 1, u64::MAX].contains(&stated)
    }

    /// The offset into another section that a field holds.
    pub(crate) fn section_reference(&self, section: usize, offset: u64, stated: u64) -> u64 {
        self.fields.get(&(section, offset)).map_or(stated, |(_, value)| *value)
    }

    /// Whether the section is of a linked file and lacks relocations.
    pub(crate) fn is_bare(&self, section: usize) -> bool {
        self.image.kind == ObjectKind::Linked && !self.relocated.contains(&section)
    }

    /// Whether the field has a relocation.
    pub(crate) fn is_relocated(&self, section: usize, offset: u64) -> bool {
        self.fields.contains_key(&(section, offset))
    }

    /// The new size of `size` bytes at `place`.
    pub(crate) fn new_size(&self, place: SectionOffset, size: u64) -> Option<u64> {
        self.size_between(place, place.offset.checked_add(size)?)
    }

    fn size_between(&self, place: SectionOffset, end: u64) -> Option<u64> {
        if !self.maps.moves_places(place.section) {
            return Some(end - place.offset);
        }
        // One past the end of a section is the last position that can be meant.
        let end = SectionOffset { offset: end, ..place };
        if end.offset > self.image.sections[place.section].size {
            return Some(end.offset - place.offset);
        }
        self.maps.new_end(end)?.checked_sub(self.maps.new_start(place)?)
    }

    /// The new distance from `base` to the position `distance` after it.
    pub(crate) fn new_distance(&self, base: SectionOffset, distance: u64) -> Option<u64> {
        let offset = base.offset.checked_add(distance)?;
        if !self.maps.moves_places(base.section) || offset > self.image.sections[base.section].size {
            return Some(distance);
        }
        self.maps.new_start(SectionOffset { offset, ..base })?.checked_sub(self.maps.new_start(base)?)
    }
}

fn is_debug_section(section: usize, image: &ObjectImage<'_>) -> bool {
    let name = image.sections[section].name;
    name.starts_with(".debug_") || name == ".eh_frame"
}

/// Encodes the changed sections again.
pub(crate) fn rewrite_debug_info(
    image: &ObjectImage<'_>,
    maps: &SectionMaps<'_>,
    symbols: &[SymbolRows<'_>],
    relocations: &[RelocationSection<'_>],
) -> Result<Dwarf, Diagnostic> {
    let mut dwarf = Dwarf::default();
    let source = DebugTargets::new(image, maps, symbols, relocations)?;
    let units = info::rewrite_units(&source, &mut dwarf)?;
    for (number, section) in image.sections.iter().enumerate().filter(|(_, section)| !section.bytes.is_empty()) {
        let replaced = match section.name {
            ".debug_line" => Some(line::rewrite_lines(&source, number)?),
            ".debug_rnglists" | ".debug_loclists" => Some(list::rewrite_lists(&source, number, &units)?),
            ".debug_ranges" | ".debug_loc" => Some(list::rewrite_pairs(&source, number, &units)?),
            ".eh_frame" | ".debug_frame" => Some(frame::rewrite_frames(&source, number, &mut dwarf.distances)?),
            ".debug_aranges" => Some(list::rewrite_addresses(&source, number)?),
            ".debug_addr" => {
                list::note_addresses(&source, number, &units)?;
                None
            }
            ".gdb_index" => {
                index::record_addresses(&source, number)?;
                None
            }
            _ => None,
        };
        if let Some(content) = replaced.filter(|replaced| replaced.bytes != section.bytes) {
            dwarf.replaced.push(ReplacedSection { section: number, content });
        }
    }
    dwarf.absolutes = source.absolutes.into_inner();
    dwarf.absolutes.sort_unstable();
    dwarf.absolutes.dedup();
    Ok(dwarf)
}
