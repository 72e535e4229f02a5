//! Relocations, and the fields that a linker filled by them.
//!
//! A relocation defines the meaning of a field; the field of a linked file must have the value that the linker
//! computed, or the file is inconsistent. The target of a distance that instructions add to the program counter counts
//! from the end of the get-PC, not from the field: so the two may move apart.
//!
//! Invariants: a field is written only if its old value was understood.

use crate::fix::{FieldPatch, LayoutContext, SectionOffset};
use crate::known::KnownProgram;
use crate::plan::CodePlan;
use crate::tables::NamedObject;
use crate::{distances, refuse_layout};
use hotswap_code_object::image::{Formula, Rela, RelocationForm, RelocationSection, SymbolRow, SymbolRows, pack_words};
use hotswap_report::Diagnostic;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Everything that fields can depend on.
pub(crate) struct FieldInputs<'w> {
    pub(crate) world: &'w LayoutContext<'w>,
    pub(crate) symbols: &'w [SymbolRows<'w>],
    /// New values, by table and symbol.
    pub(crate) values: &'w [Vec<u64>],
    pub(crate) plans: &'w [CodePlan<'w>],
    /// For a section: its plan.
    pub(crate) plan_of: HashMap<usize, usize>,
    /// Named data, sorted.
    pub(crate) objects: Vec<NamedObject>,
    /// Starts of kernel descriptors.
    pub(crate) descriptors: HashSet<SectionOffset>,
    /// In a linked file without relocations the analysis of its code.
    pub(crate) known: &'w BTreeMap<usize, KnownProgram<'w>>,
}

/// Offset in a kernel descriptor of the distance to its code, which counts from the descriptor.
const ENTRY: u64 = 16;

/// Bytes of a word of packed relocations.
const WORD: usize = 8;

/// The space that a section with packed relocations needs.
pub(crate) struct PackedSize {
    pub(crate) section: usize,
    pub(crate) size: u64,
}

/// The space that packed relocations need in that layout.
pub(crate) fn packed_sizes(
    world: &LayoutContext<'_>,
    all: &[RelocationSection<'_>],
) -> Result<Vec<PackedSize>, Diagnostic> {
    let mut sizes = Vec::new();
    for relocations in all.iter().filter(|relocations| relocations.form == RelocationForm::Relr) {
        let mut places = Vec::with_capacity(relocations.len());
        for rela in relocations.iter() {
            let place = world.place_of_address(rela?.place);
            // A missing place is refused when it is written.
            places.extend(place.and_then(|place| {
                Some(world.maps.new_bytes(place, WORD as u64)? + world.layout.addresses[place.section])
            }));
        }
        let size = (pack_words(&places).len() * WORD) as u64;
        sizes.push(PackedSize { section: relocations.section, size });
    }
    Ok(sizes)
}

/// Records checked before they are written: a megabyte of results.
const ROUND: usize = 1 << 14;

/// Records checked per task.
const PIECE: usize = 1 << 9;

/// The new form of a record.
struct MovedRelocation {
    /// Its position in the new file.
    record: usize,
    place: SectionOffset,
    new_place: u64,
    addend: i64,
    /// In a linked file, the new content of its field.
    field: Option<FieldPatch>,
}

impl MovedRelocation {
    /// Writes the record and its field; the places of packed relocations are collected in a list.
    fn write_record(&self, form: RelocationForm, packed: &mut Vec<u64>, out: &mut [u8]) {
        let at = self.record;
        match form {
            RelocationForm::Rela => Rela::write(&mut out[at..at + 24], self.new_place, self.addend),
            RelocationForm::Rel => out[at..at + 8].copy_from_slice(&self.new_place.to_le_bytes()),
            RelocationForm::Relr | RelocationForm::Crel => packed.push(self.new_place),
        }
        self.field.into_iter().for_each(|field| field.write(out));
    }
}

/// One relocation with its symbol and place.
struct RelocateCase<'c> {
    rela: Rela,
    /// Offset of the record in the old file.
    at: usize,
    place: SectionOffset,
    symbol: SymbolRow<'c>,
    value: u64,
    /// The base of a relative value before the change, as an old value.
    base: u64,
    /// The base after the change.
    new_base: u64,
    new_place: u64,
}

impl FieldInputs<'_> {
    /// Writes all records, and in a linked file the fields. Returns the places in code that have a relocation, sorted.
    pub(crate) fn write_relocations(
        &self,
        all: &[RelocationSection<'_>],
        out: &mut [u8],
    ) -> Result<Vec<SectionOffset>, Diagnostic> {
        let mut seen = Vec::new();
        for relocations in all {
            let mut packed = Vec::new();
            for start in (0..relocations.len()).step_by(ROUND) {
                for fixed in self.fix_records(relocations, start..relocations.len().min(start + ROUND))? {
                    fixed.write_record(relocations.form, &mut packed, out);
                    if self.plan_of.contains_key(&fixed.place.section) {
                        seen.push(fixed.place);
                    }
                }
            }
            if relocations.form == RelocationForm::Relr {
                self.write_packed(relocations, &packed, out)?;
            }
        }
        // Tables of relocations are usually in ascending order.
        seen.sort();
        Ok(seen)
    }

    /// The new forms of the records with these numbers.
    fn fix_records(
        &self,
        relocations: &RelocationSection<'_>,
        numbers: Range<usize>,
    ) -> Result<Vec<MovedRelocation>, Diagnostic> {
        let pieces: Vec<Range<usize>> =
            numbers.clone().step_by(PIECE).map(|start| start..numbers.end.min(start + PIECE)).collect();
        let found: Vec<Result<Vec<MovedRelocation>, Diagnostic>> = pieces
            .into_par_iter()
            .map(|piece| piece.filter_map(|number| self.fix_record(relocations, number).transpose()).collect())
            .collect();
        let mut all = Vec::with_capacity(numbers.len());
        for piece in found {
            all.append(&mut piece?);
        }
        Ok(all)
    }

    fn fix_record(
        &self,
        relocations: &RelocationSection<'_>,
        number: usize,
    ) -> Result<Option<MovedRelocation>, Diagnostic> {
        let (rela, at) = (relocations.get(number)?, relocations.record_offset(number));
        if rela.kind.formula == Formula::None {
            return Ok(None);
        }
        let case = self.relocation_case(relocations, rela, at)?;
        let addend = self.new_addend(&case)?;
        if relocations.form == RelocationForm::Crel {
            // Made plain before anything else.
            return Err(refuse_layout(at as u64, "compact relocations were not made plain"));
        }
        let field = match self.world.is_linked() {
            true if relocations.target != 0 => self.field_patch(&case, addend)?,
            true => self.applied_patch(&case, relocations.form, addend),
            false => None,
        };
        let record = self.world.layout.offsets[relocations.section] as usize + number * relocations.form.row_size();
        Ok(Some(MovedRelocation { record, place: case.place, new_place: case.new_place, addend, field }))
    }

    /// Writes the words that give the places of addresses. Their space is the one computed by [`packed_sizes`]; the
    /// excess is filled with empty masks, as linkers do.
    fn write_packed(
        &self,
        relocations: &RelocationSection<'_>,
        places: &[u64],
        out: &mut [u8],
    ) -> Result<(), Diagnostic> {
        let words = pack_words(places);
        let room = &mut out[self.world.layout.section_range(relocations.section)];
        if words.len() * WORD > room.len() {
            return Err(refuse_layout(
                relocations.record_offset(0) as u64,
                "the table of packed relocations has no room",
            ));
        }
        let filled = words.into_iter().chain(std::iter::repeat(1));
        room.chunks_exact_mut(WORD).zip(filled).for_each(|(room, word)| room.copy_from_slice(&word.to_le_bytes()));
        Ok(())
    }

    fn relocation_case<'c>(
        &'c self,
        relocations: &RelocationSection<'_>,
        rela: Rela,
        at: usize,
    ) -> Result<RelocateCase<'c>, Diagnostic> {
        let world = self.world;
        let place = match relocations.target {
            0 => world.place_of_address(rela.place),
            target => world.place_in_section(target, rela.place),
        };
        let size = u64::from(rela.kind.size);
        let place = place.ok_or_else(|| lost_field(&rela, at))?;
        // Sections without bytes have fields of the loader.
        let moved = world.maps.new_bytes(place, size).ok_or_else(|| lost_field(&rela, at))?;
        let new_place = world.layout.addresses[place.section] + moved;
        let (symbol, value) = self.relocation_symbol(relocations, rela.symbol, at)?;
        let (base, new_base) = match self.code_base(place, &rela) {
            Some(base) if rela.kind.formula != Formula::Branch => {
                let start = world.maps.new_bytes(SectionOffset { offset: base - 4, ..place }, 4);
                let moved = start.ok_or_else(|| lost_field(&rela, at))? + 4;
                (world.base_address(place.section) + base, world.layout.addresses[place.section] + moved)
            }
            _ => match self.entry_distance(place) {
                Some(distance) => (rela.place - distance, new_place - distance),
                None => (rela.place, new_place),
            },
        };
        Ok(RelocateCase { rela, at, place, symbol, value, base, new_base, new_place })
    }

    fn relocation_symbol(
        &self,
        relocations: &RelocationSection<'_>,
        number: u32,
        at: usize,
    ) -> Result<(SymbolRow<'_>, u64), Diagnostic> {
        let table = self.symbols.iter().position(|table| table.section == relocations.symbols);
        let row = table.and_then(|table| {
            let row = self.symbols[table].rows.get(number as usize)?;
            Some((*row, *self.values[table].get(number as usize)?))
        });
        match row {
            Some(row) => Ok(row),
            // The loader's own records may do without symbols.
            None if number == 0 => {
                Ok((SymbolRow { name: "", value: 0, size: 0, section: None, kind: 0, is_global: false }, 0))
            }
            None => Err(refuse_layout(at as u64, "a relocation names no symbol of its table")),
        }
    }

    /// The base of the distance in a field of code, as an offset in its section.
    fn code_base(&self, place: SectionOffset, rela: &Rela) -> Option<u64> {
        let plan = &self.plans[*self.plan_of.get(&place.section)?];
        if !rela.kind.is_relative() {
            return None;
        }
        let found = plan.computations.iter();
        // Sorted by place: a computation's fields follow its get-PC.
        let near = plan.computations.partition_point(|computation| computation.at <= place.offset);
        found
            .take(near)
            .rev()
            .take(8)
            .find(|one| one.low == place.offset || one.high == Some(place.offset))
            .map(|one| one.base)
    }

    /// The new addend: the distance from the symbol to the target.
    fn new_addend(&self, case: &RelocateCase<'_>) -> Result<i64, Diagnostic> {
        let (world, rela) = (self.world, &case.rela);
        let bias = if rela.kind.is_relative() { case.rela.place.wrapping_sub(case.base) } else { 0 };
        let new_bias = if rela.kind.is_relative() { case.new_place.wrapping_sub(case.new_base) } else { 0 };
        if bias == 0 && rela.kind.formula == Formula::Relative && self.is_moving_code(case.place.section) {
            return Err(refuse_layout(
                case.at as u64,
                "it is not known from where the distance of a relocation in code counts",
            ));
        }
        if rela.kind.formula == Formula::GotRelative {
            return Ok(rela.addend.wrapping_add_unsigned(new_bias).wrapping_sub_unsigned(bias));
        }
        let target = case.symbol.value.wrapping_add_signed(rela.addend).wrapping_sub(bias);
        if rela.kind.formula == Formula::LoadRelative && !self.known.is_empty() {
            let new = distances::moved_address(world, self.known, target);
            return new.map(|new| new as i64).ok_or_else(|| {
                refuse_layout(
                    case.at as u64,
                    format!("it is not certain what the address {target:#x} of the loader belongs to"),
                )
            });
        }
        let owner = match rela.kind.formula {
            Formula::LoadRelative => world.image.section_at(target),
            _ => case.symbol.section,
        };
        let place = owner.and_then(|section| world.place_in_section(section, target));
        let new = match place {
            Some(place) if self.is_end(case) => world.end_address(place),
            Some(place) => world.start_address(place).filter(|new| self.is_certain(case, place, *new)),
            // At the same distance from the symbol as before: an absolute number, or a place outside of the symbol's
            // section.
            None => Some(case.value.wrapping_add(target.wrapping_sub(case.symbol.value))),
        };
        let new = new.ok_or_else(|| {
            let what = format!(
                "a relocation leads to {target:#x}, where no instruction is any more, or it is not known \
                from where its distance counts"
            );
            refuse_layout(case.at as u64, what)
        })?;
        Ok(new.wrapping_sub(case.value).wrapping_add(new_bias) as i64)
    }

    /// The distance of an entry field from its descriptor.
    fn entry_distance(&self, place: SectionOffset) -> Option<u64> {
        let start = SectionOffset { offset: place.offset.checked_sub(ENTRY)?, ..place };
        self.descriptors.contains(&start).then_some(ENTRY)
    }

    /// A distance in data may count from its own place or from the start of the enclosing object (tables of distances):
    /// both must have the same meaning. Call frames count from the place.
    fn is_certain(&self, case: &RelocateCase<'_>, place: SectionOffset, new: u64) -> bool {
        let data = case.place.section;
        if case.rela.kind.formula != Formula::Relative
            || case.base != case.rela.place
            || !self.world.maps.moves_places(place.section)
            || [".eh_frame", ".debug_frame"].contains(&self.world.image.sections[data].name)
        {
            return true;
        }
        let before = self.objects.partition_point(|object| object.start <= case.place);
        let object = before.checked_sub(1).map(|last| self.objects[last]);
        let object = object.filter(|object| object.start.section == data && case.place.offset < object.end);
        let Some(NamedObject { start, .. }) = object else { return false };
        let distance = case.place.offset - start.offset;
        let other = place.offset.checked_sub(distance).map(|offset| SectionOffset { offset, ..place });
        let other = other.and_then(|other| self.world.start_address(other));
        distance == 0 || other == new.checked_sub(distance)
    }

    fn is_moving_code(&self, section: usize) -> bool {
        self.plan_of.contains_key(&section) && self.world.maps.moves_places(section)
    }

    /// DWARF 4 writes ranges as pairs: the second address is an end.
    fn is_end(&self, case: &RelocateCase<'_>) -> bool {
        let name = self.world.image.sections[case.place.section].name;
        matches!(name, ".debug_ranges" | ".debug_loc") && case.place.offset % 16 == 8
    }

    /// The field of a linked file.
    fn field_patch(&self, case: &RelocateCase<'_>, addend: i64) -> Result<Option<FieldPatch>, Diagnostic> {
        let size = usize::from(case.rela.kind.size);
        let section = &self.world.image.sections[case.place.section];
        let old = section.bytes.get(case.place.offset as usize..).and_then(|bytes| bytes.get(..size));
        let (Some(old), Some(at)) = (old, self.world.file_offset(case.place, size as u64)) else {
            return Err(refuse_layout(case.at as u64, "the field of a relocation leaves its section"));
        };
        let old = read_little_endian(old);
        let new = match case.rela.kind.formula {
            Formula::GotRelative => self.got_field(case)?,
            Formula::Branch | Formula::LoadRelative | Formula::None => return Ok(None),
            Formula::Absolute | Formula::Relative => {
                let was = relocated_field_value(case.symbol.value, case.rela.addend, case.rela.place, case.rela.kind);
                if truncate_to_size(was, size) != old {
                    return self.other_field(case, old).map(|()| None);
                }
                relocated_field_value(case.value, addend, case.new_place, case.rela.kind)
            }
        };
        self.check_width(case, new)?;
        Ok(Some(FieldPatch { at, size: case.rela.kind.size, value: new }))
    }

    /// Linkers may put into the field the value that the loader will write there, and must where the
    /// record lacks an addend.
    fn applied_patch(&self, case: &RelocateCase<'_>, form: RelocationForm, addend: i64) -> Option<FieldPatch> {
        let bytes = self.world.image.sections[case.place.section].bytes;
        let old = bytes.get(case.place.offset as usize..).and_then(|bytes| bytes.get(..8)).map(read_little_endian);
        let is_written = form != RelocationForm::Rela && case.rela.kind.size == 8;
        let is_applied = case.rela.kind.formula == Formula::LoadRelative && old == Some(case.rela.addend as u64);
        let at = self.world.file_offset(case.place, 8).filter(|_| is_applied || is_written)?;
        Some(FieldPatch { at, size: 8, value: addend as u64 })
    }

    /// A field that differs from the relocation's value: left to the loader, or for something that was discarded.
    fn other_field(&self, case: &RelocateCase<'_>, old: u64) -> Result<(), Diagnostic> {
        let section = &self.world.image.sections[case.place.section];
        let thrown_away = !section.is_loaded() && (case.symbol.section.is_none() || [0, 1, u64::MAX].contains(&old));
        // Nothing yet, or the loader's addend.
        let is_left = old == 0 || old == case.rela.addend as u64;
        let by_loader = section.is_loaded() && is_left && case.rela.kind.size == 8;
        if thrown_away || by_loader || self.is_dropped_frame(case) {
            return Ok(());
        }
        let what = format!(
            "`{}` holds {old:#x} at {:#x}, which is not what its relocation ({}) says",
            section.name, case.place.offset, case.rela.kind.name
        );
        Err(refuse_layout(case.at as u64, what))
    }

    /// The relocation of a call frame that the linker dropped, because it folded the function into another one or collected
    /// it: lld gives it a place in the common part at the begin of `.eh_frame`, which holds no address.
    fn is_dropped_frame(&self, case: &RelocateCase<'_>) -> bool {
        let section = &self.world.image.sections[case.place.section];
        let (Some(size), Some(0)) = (frame_section_word(0, section.bytes), frame_section_word(4, section.bytes)) else {
            return false;
        };
        // The address of a personality routine would be in the common part.
        let letters = section.bytes.get(9..).unwrap_or_default().iter().take_while(|letter| **letter != 0);
        let is_inside = case.place.offset + u64::from(case.rela.kind.size) <= 4 + size;
        section.name == ".eh_frame" && is_inside && !letters.into_iter().any(|letter| *letter == b'P')
    }

    /// Distances of 32 bits must still fit.
    fn check_width(&self, case: &RelocateCase<'_>, new: u64) -> Result<(), Diagnostic> {
        let fits = case.rela.kind.size == 8 || case.rela.kind.name != "REL32" || i32::try_from(new as i64).is_ok();
        if fits {
            Ok(())
        } else {
            Err(refuse_layout(case.at as u64, "a distance does not fit into its 32 bits any more"))
        }
    }

    /// The distance to an entry of the global offset table, whose position is only known from the old field.
    fn got_field(&self, case: &RelocateCase<'_>) -> Result<u64, Diagnostic> {
        let plan = self.plan_of.get(&case.place.section).map(|plan| &self.plans[*plan]);
        let base = case.base.wrapping_sub(self.world.base_address(case.place.section));
        let computation = plan.and_then(|plan| plan.computations.iter().find(|one| one.base == base));
        let computation = computation.ok_or_else(|| {
            refuse_layout(case.at as u64, "it is not known from where the distance to the global offset table counts")
        })?;
        let place = self.world.place_of_address(case.base.wrapping_add(computation.distance));
        let new = place.and_then(|place| self.world.start_address(place));
        let new =
            new.ok_or_else(|| refuse_layout(case.at as u64, "the entry of the global offset table is nowhere"))?;
        Ok(new.wrapping_sub(case.new_base) >> case.rela.kind.shift)
    }
}

fn relocated_field_value(
    value: u64,
    addend: i64,
    place: u64,
    case_rela_kind: &hotswap_code_object::image::RelocationKind,
) -> u64 {
    let place = if case_rela_kind.is_relative() { place } else { 0 };
    value.wrapping_add_signed(addend).wrapping_sub(place) >> case_rela_kind.shift
}

fn frame_section_word(at: usize, section_bytes: &[u8]) -> Option<u64> {
    section_bytes.get(at..at + 4).map(read_little_endian)
}

fn read_little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn truncate_to_size(value: u64, size: usize) -> u64 {
    if size >= 8 { value } else { value & ((1 << (size * 8)) - 1) }
}

/// The field of the relocation at an offset in the file.
fn lost_field(rela: &Rela, at: usize) -> Diagnostic {
    refuse_layout(at as u64, format!("the field of a relocation ({}) is not there, or is edited", rela.kind.name))
}
