//! The tables of encodings and targets.
//!
//! Invariants: lists that are equal are written once; an index that does not fit its integer is an error.

use super::accept::{DecodeMethod, DecoderFeatures};
use super::expand::{Expanded, OperandSlot};
use super::names::EnumTexts;
use super::settings::{TargetMode, TargetSettings};
use super::table::{RecordBytes, TableSet};
use super::trie::Tries;
use super::{GenerateError, small};
use crate::model::{FieldPiece, Model};
use std::collections::{BTreeMap, BTreeSet};

/// The enums of names.
pub fn write_enums(expanded: &Expanded) -> String {
    let mut out = String::new();
    expanded.names.write(&mut out, "Operands and fields of encodings.");
    expanded.flags.write(&mut out, "What an instruction is.");
    expanded.features.write(&mut out, "What a processor has, in the spelling of LLVM's `-mattr`.");
    expanded.classes.write(&mut out, "Encoding classes.");
    expanded.implicit.write(&mut out, "Registers that are read or written without being named.");
    out
}

/// Lists that are stored once.
struct Pool<T> {
    items: Vec<T>,
    places: BTreeMap<Vec<T>, usize>,
}

impl<T: Clone + Ord> Pool<T> {
    fn new() -> Self {
        Self { items: Vec::new(), places: BTreeMap::new() }
    }

    /// The position of `list`.
    fn intern_list(&mut self, list: &[T]) -> usize {
        if let Some(&place) = self.places.get(list) {
            return place;
        }
        let place = self.items.len();
        self.items.extend_from_slice(list);
        self.places.insert(list.to_vec(), place);
        place
    }
}

/// A step of checking a candidate's operands, see `OperandCheck` of `hotswap-isa-tables`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CandidateCheck {
    what: u8,
    at: u8,
    width: u8,
    pieces: usize,
    count: usize,
    set: usize,
}

/// Writes the tables of encodings and targets.
pub(super) fn write_tables(
    out: &mut TableSet,
    model: &Model,
    expanded: &Expanded,
    settings: &TargetSettings,
    tries: &Tries,
) -> Result<(), GenerateError> {
    let accept = Accept::new(model, settings)?;
    let mut emitter = Emitter { model, expanded, pieces: Pool::new(), checks: Pool::new(), accept, out };
    emitter.shape_templates()?;
    emitter.emit_formats()?;
    emitter.emit_layouts()?;
    emitter.emit_rows()?;
    emitter.emit_entries(settings)?;
    emitter.emit_targets(settings, tries)?;
    emitter.emit_images();
    emitter.emit_pools()?;
    tries.write_tries(out);
    Ok(())
}

struct Emitter<'a> {
    model: &'a Model,
    expanded: &'a Expanded,
    pieces: Pool<FieldPiece>,
    checks: Pool<CandidateCheck>,
    accept: Accept,
    out: &'a mut TableSet,
}

impl Emitter<'_> {
    fn shape_templates(&mut self) -> Result<(), GenerateError> {
        let mut templates = Vec::new();
        for shape in &self.model.shapes {
            templates.push(RecordBytes::new().text(self.out.range(&shape.template)?));
        }
        let name = ("SHAPE_TEMPLATES", "Templates after the mnemonic, as LLVM writes them, for each operand list.");
        self.out.records(name, "TextRange", &templates);
        Ok(())
    }

    fn emit_formats(&mut self) -> Result<(), GenerateError> {
        let mut slots = Pool::new();
        let mut formats = Vec::new();
        for format in &self.expanded.formats {
            let place = model_name(self.model, format.shape);
            let list: Vec<RecordBytes> =
                format.slots.iter().map(|slot| self.slot_record(slot, &place)).collect::<Result<_, _>>()?;
            let start = small(slots.intern_list(&list), &place)?;
            let record = RecordBytes::new().u16(small(format.shape, "shapes")?).u16(small(format.layout, "layouts")?);
            formats.push(record.u16(start).u16(small(list.len(), "slots")?));
        }
        self.out.records(("SLOTS", "Operands of formats."), "Slot", &slots.items);
        self.out.records(("FORMATS", "Shapes in layouts."), "FormatData", &formats);
        Ok(())
    }

    fn emit_layouts(&mut self) -> Result<(), GenerateError> {
        let mut layouts = Vec::new();
        let mut fields = Pool::new();
        for layout in &self.model.layouts {
            let mut list = Vec::new();
            for field in &layout.fields {
                let place = small(self.pieces.intern_list(&field.pieces), &field.name)?;
                let record = RecordBytes::new().u16(place).u8(self.expanded.names.number(&field.name)?);
                list.push(record.u8(small(field.pieces.len(), &field.name)?));
            }
            let start = small(fields.intern_list(&list), &layout.name)?;
            let record = RecordBytes::new().u16(start).u8(self.expanded.classes.number(&layout.class)?);
            layouts.push(record.u8(small(list.len(), &layout.name)?));
        }
        self.out.records(("FIELDS", "Fields of layouts."), "LayoutField", &fields.items);
        self.out.records(("LAYOUTS", "Layouts."), "FieldLayout", &layouts);
        Ok(())
    }

    fn slot_record(&mut self, slot: &OperandSlot, place: &str) -> Result<RecordBytes, GenerateError> {
        let pieces = small(self.pieces.intern_list(&slot.pieces), place)?;
        let record = RecordBytes::new().u16(small(slot.kind, place)?).u16(pieces).u8(slot.name).u8(slot.written.into());
        Ok(record.u8(slot.tied.unwrap_or(u8::MAX)).u8(small(slot.pieces.len(), place)?))
    }

    fn emit_rows(&mut self) -> Result<(), GenerateError> {
        let (model, expanded) = (self.model, self.expanded);
        if expanded.flags.len() > 128 || expanded.implicit.len() > 16 {
            return Err(GenerateError::new("rows", "more than 128 flags or 16 implicit registers"));
        }
        let mut rows = Vec::new();
        let mut images = 0;
        for row in &model.rows {
            let image = if row.image.is_some() { small(images, "images")? } else { u32::MAX };
            images += usize::from(row.image.is_some());
            let record = RecordBytes::new().u128(name_bits(&expanded.flags, &row.flags)?);
            let record = record.text(self.out.range(&row.mnemonic)?).u32(image);
            rows.push(
                record
                    .u16(implicit_register_bits(&row.reads, expanded)?)
                    .u16(implicit_register_bits(&row.writes, expanded)?),
            );
        }
        small::<u16>(rows.len(), "rows")?;
        self.out.records(("ROWS", "Instructions, by number."), "RowData", &rows);
        Ok(())
    }

    fn emit_entries(&mut self, settings: &TargetSettings) -> Result<(), GenerateError> {
        let mut high = Pool::new();
        high.intern_list(&[(0, 0)]);
        let mut blocks = Pool::new();
        let mut entries = Vec::new();
        for (number, entry) in self.expanded.entries.iter().enumerate() {
            let checks = self.entry_checks(number)?;
            let start = self.checks.intern_list(&checks);
            let place = &self.model.rows[entry.row].mnemonic;
            let block = if entry.mask >> 64 == 0 { self.check_block(&checks, place)? } else { None };
            let block = block.map_or(NO_BLOCK, |block| blocks.intern_list(&[block]));
            let top = ((entry.value >> 64) as u64, (entry.mask >> 64) as u64);
            let record = RecordBytes::new().u64(entry.value as u64).u64(entry.mask as u64);
            let record = record.u16(small(entry.row, place)?).u16(small(entry.format, place)?);
            let record = record.u16(small(settings.needs[number], place)?).u16(small(high.intern_list(&[top]), place)?);
            let record = record.u16(small(block, place)?).u16(small(start, place)?);
            let record = record.u16(small(settings.tables[number], place)?).u8(small(checks.len(), place)?);
            entries.push(record.u8(self.expanded.formats[entry.format].bytes));
        }
        if entries.len() >= (1 << 15) - 1 {
            return Err(GenerateError::new("entries", "more than 32766"));
        }
        self.out.records(("ENTRIES", "Encodings, by number."), "EntryData", &entries);
        self.out.records(("BLOCKS", "Blocks of checks."), "CheckBlock", &blocks.items);
        let name = ("HIGH_BITS", "Fixed bits of the second eight bytes: value and mask.");
        self.out.text(name, "(u64, u64)", &high.items, |(value, mask)| format!("({value:#x}, {mask:#x})"));
        Ok(())
    }

    /// The checks as a block of four that needs no branches, if they are few, simple and in the first eight bytes.
    fn check_block(&mut self, checks: &[CandidateCheck], place: &str) -> Result<Option<RecordBytes>, GenerateError> {
        if checks.len() > 4 || !checks.iter().all(is_simple_check) {
            return Ok(None);
        }
        let always = small(self.accept.value_set_start(DecodeMethod::Any, 0), place)?;
        let (mut at, mut mask, mut set) = ([0; 4], [0u16; 4], [always; 4]);
        for (number, check) in checks.iter().enumerate() {
            at[number] = check.at;
            mask[number] = (1 << check.width) - 1;
            set[number] = small(check.set, place)?;
        }
        let record = RecordBytes::new().bytes(&at);
        Ok(Some(mask.into_iter().chain(set).fold(record, RecordBytes::u16)))
    }

    /// The checks to make before the entry is taken, in LLVM's operand order.
    fn entry_checks(&mut self, number: usize) -> Result<Vec<CandidateCheck>, GenerateError> {
        let entry = &self.expanded.entries[number];
        let format = &self.expanded.formats[entry.format];
        let mut checks = Vec::new();
        for slot in format.slots.iter().filter(|slot| !slot.pieces.is_empty()) {
            if let Some(check) = self.slot_check(slot) {
                checks.push(check);
            }
        }
        let row = &self.model.rows[entry.row];
        let buffer = row.flags.iter().any(|flag| flag == "mubuf" || flag == "mtbuf")
            || row.flags.iter().any(|flag| flag == "smrd") && row.mnemonic.contains("buffer");
        let offset = self.expanded.names.number("offset").ok();
        let slot =
            format.slots.iter().find(|slot| Some(slot.name) == offset && buffer && value_width(&slot.pieces) == 24);
        if let Some(slot) = slot {
            checks.push(self.check(NOT_NEGATIVE, slot, 0));
        }
        Ok(checks)
    }

    fn slot_check(&mut self, slot: &OperandSlot) -> Option<CandidateCheck> {
        let method = self.accept.methods[slot.kind];
        match method {
            DecodeMethod::Any => None,
            DecodeMethod::Literal32 => Some(self.check(LITERAL32, slot, 0)),
            DecodeMethod::Literal64 => Some(self.check(LITERAL64, slot, 0)),
            DecodeMethod::HalfSource => {
                // The piece that selects the half makes no difference.
                let low = slot.pieces.iter().find(|piece| piece.from == 0 && piece.width >= 8)?;
                let set = self.accept.value_set_start(method, low.width);
                Some(self.check(SOURCE, &OperandSlot { pieces: vec![*low], ..slot.clone() }, set))
            }
            _ => {
                let width = value_width(&slot.pieces).min(10);
                if !method.takes_literal() && self.accept.accepts_all_values(method, width) {
                    return None;
                }
                let set = self.accept.value_set_start(method, width);
                Some(self.check(if method.takes_literal() && width >= 8 { SOURCE } else { VALUE }, slot, set))
            }
        }
    }

    fn check(&mut self, what: u8, slot: &OperandSlot, set: usize) -> CandidateCheck {
        let first = slot.pieces[0];
        let single = slot.pieces.len() == 1 && first.from == 0;
        CandidateCheck {
            what,
            at: first.at,
            width: first.width,
            pieces: self.pieces.intern_list(&slot.pieces),
            count: if single { 0 } else { slot.pieces.len() },
            set,
        }
    }

    fn emit_targets(&mut self, settings: &TargetSettings, tries: &Tries) -> Result<(), GenerateError> {
        let expanded = self.expanded;
        let mut features = Pool::new();
        features.intern_list(&[[0; 4]]);
        let mut available = Pool::new();
        let mut lines = Vec::new();
        for setting in &settings.settings {
            let mut set = [0u64; 4];
            for feature in &setting.features {
                let number = usize::from(expanded.features.number(feature)?);
                set[number / 64] |= 1 << (number % 64);
            }
            let TargetMode { target, wave64, true16, group, max_bytes, .. } = setting;
            let modes = format!("target: {target}, wave64: {wave64}, true16: {true16}, group: {group}");
            let features = features.intern_list(&[set]);
            let (root, available) = (tries.group_root(*group), available.intern_list(&setting.available));
            let accept = self.accept.context_start(&setting.features);
            let places = format!("features: {features}, root: {root:#x}, available: {available}, accept: {accept}");
            lines.push(format!("Subtarget {{ {modes}, {places}, max_bytes: {max_bytes} }}"));
        }
        let out = &mut self.out;
        out.text(("FEATURE_SETS", "Sets of features, a bit each."), "[u64; 4]", &features.items, |set| {
            format!("{set:?}")
        });
        let available: Vec<RecordBytes> =
            available.items.into_iter().map(|held| RecordBytes::new().u8(held.into())).collect();
        out.records(("AVAILABLE", "For each subtarget and need whether it holds."), "u8", &available);
        out.text(("SUBTARGETS", "Processors in their modes."), "Subtarget", &lines, String::clone);
        let targets = self.model.targets.iter().enumerate();
        let targets: Vec<String> = targets
            .map(|(number, target)| format!("Target {{ name: {:?}, subtargets: {} }}", target.name, number * 4))
            .collect();
        out.text(("TARGETS", "Processors, in the order of the rows."), "Target", &targets, String::clone);
        Ok(())
    }

    fn emit_images(&mut self) {
        let bases: BTreeMap<&str, usize> =
            self.model.image_bases.iter().enumerate().map(|(number, base)| (base.name.as_str(), number)).collect();
        let images: Vec<String> = self
            .model
            .rows
            .iter()
            .filter_map(|row| row.image.as_ref())
            .map(|image| {
                let base = bases.get(image.base.as_str()).copied().unwrap_or(0);
                let crate::model::ImageVariant { encoding, data, address, .. } = image;
                format!("Image {{ base: {base}, encoding: {encoding:?}, data: {data}, address: {address} }}")
            })
            .collect();
        self.out.text(("IMAGES", "Variants of image instructions."), "Image", &images, String::clone);
        let bases = &self.model.image_bases;
        self.out.text(("IMAGE_BASES", "Base operations of image instructions."), "ImageBase", bases, |base| {
            let forms = base.variants.iter().map(|form| (&form.encoding, form.data, form.address));
            format!(
                "ImageBase {{ name: {:?}, properties: &{:?}, extra_arguments: {}, variants: &{:?} }}",
                base.name,
                base.properties,
                base.extra_arguments,
                forms.collect::<Vec<_>>()
            )
        });
    }

    fn emit_pools(self) -> Result<(), GenerateError> {
        let pieces: Vec<RecordBytes> = self.pieces.items.iter().map(encoded_piece_record).collect();
        self.out.records(("PIECES", "Positions of fields and operands."), "Piece", &pieces);
        let mut checks = Vec::new();
        for CandidateCheck { what, at, width, pieces, count, set } in self.checks.items {
            let record = RecordBytes::new().u8(what).u8(at).u8(width).u8(small(count, "checks")?);
            checks.push(record.u16(small(pieces, "checks")?).u16(small(set, "checks")?));
        }
        self.out.records(("CHECKS", "Checks of operands."), "OperandCheck", &checks);
        let name =
            ("ACCEPT", "The meaning of every value of a field: a part for each context, in it a list for each method.");
        let meanings: Vec<RecordBytes> =
            self.accept.all_meanings().into_iter().map(|meaning| RecordBytes::new().u8(meaning)).collect();
        self.out.records(name, "u8", &meanings);
        Ok(())
    }
}

fn implicit_register_bits(list: &[String], expanded: &Expanded) -> Result<u16, GenerateError> {
    name_bits(&expanded.implicit, list).map(|bits| bits as u16)
}

fn is_simple_check(check: &CandidateCheck) -> bool {
    check.what <= SOURCE && check.count == 0 && check.width <= 10 && check.at + check.width <= 64
}

fn encoded_piece_record(piece: &FieldPiece) -> RecordBytes {
    RecordBytes::new().u8(piece.at).u8(piece.from).u8(piece.width)
}

/// A bit for each name of the list.
fn name_bits(names: &EnumTexts, list: &[String]) -> Result<u128, GenerateError> {
    list.iter().try_fold(0, |bits, name| names.number(name).map(|number| bits | 1u128 << (number & 127)))
}

/// The number of the block of entries whose checks are not simple.
const NO_BLOCK: usize = 0xffff;
const VALUE: u8 = 0;
const SOURCE: u8 = 1;
const LITERAL32: u8 = 2;
const LITERAL64: u8 = 3;
const NOT_NEGATIVE: u8 = 4;

fn model_name(model: &Model, shape: usize) -> String {
    model.shapes[shape].name.clone()
}

/// Bits of the value that the pieces hold.
fn value_width(pieces: &[FieldPiece]) -> u8 {
    pieces.iter().map(|piece| piece.from + piece.width).max().unwrap_or(0)
}

/// The values of the fields of one width that a method reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FieldValues {
    method: DecodeMethod,
    width: u8,
}

/// The meaning of every value of a field: one part for each context, in each a list for each method and field width.
struct Accept {
    methods: Vec<DecodeMethod>,
    contexts: Vec<DecoderFeatures>,
    sets: Vec<FieldValues>,
    starts: BTreeMap<FieldValues, usize>,
    length: usize,
}

impl Accept {
    fn new(model: &Model, settings: &TargetSettings) -> Result<Self, GenerateError> {
        let methods = super::accept::accept_methods(model)?;
        let mut contexts: Vec<DecoderFeatures> = Vec::new();
        for setting in &settings.settings {
            let context = DecoderFeatures::new(&setting.features);
            if !contexts.contains(&context) {
                contexts.push(context);
            }
        }
        Ok(Self { methods, contexts, sets: Vec::new(), starts: BTreeMap::new(), length: 0 })
    }

    fn accepts_all_values(&self, method: DecodeMethod, width: u8) -> bool {
        self.contexts.iter().all(|&context| (0..1 << width).all(|raw| method.accepts_value(raw, context)))
    }

    /// The start of the list in a part.
    fn value_set_start(&mut self, method: DecodeMethod, width: u8) -> usize {
        let set = FieldValues { method, width };
        if let Some(&start) = self.starts.get(&set) {
            return start;
        }
        let start = self.length;
        self.length += 1 << width;
        self.sets.push(set);
        self.starts.insert(set, start);
        start
    }

    /// The start of the part of the context of `features`, once all lists are known.
    fn context_start(&self, features: &BTreeSet<String>) -> usize {
        let context = DecoderFeatures::new(features);
        self.contexts.iter().position(|&other| other == context).unwrap_or(0) * self.length
    }

    /// The parts one after another.
    fn all_meanings(&self) -> Vec<u8> {
        let mut meanings = Vec::with_capacity(self.length * self.contexts.len());
        for &context in &self.contexts {
            for &FieldValues { method, width } in &self.sets {
                meanings.extend((0..1 << width).map(|raw| method.classify_value(raw, context)));
            }
        }
        meanings
    }
}
