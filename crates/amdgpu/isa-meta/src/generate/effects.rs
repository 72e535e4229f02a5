//! The operands of a format that are registers, the positions of their numbers, and their roles in the VGPR bank mode.
//!
//! Invariants: one list for each format, in the formats' order, written registers first. An operand without bits of its
//! own (tied) uses the bits of its partner. Operands that cannot be a register are left out.

use super::expand::{Expanded, OperandSlot, PlacedShape};
use super::table::{RecordBytes, TableSet};
use super::{GenerateError, small};
use crate::model::{EncodingLayout, EncodingRow, FieldPiece, Model, OperandShape};
use std::collections::BTreeMap;

/// Kinds whose field never names a register.
const NUMBERS: [&str; 7] = ["imm", "SMEMOffset", "SOPPBrTarget", "VersionImm", "KImmFP", "KImmFP64", "Dpp8FI"];

/// Kinds that name half of a register, with bit 9 for the high one.
const HALVES: [&str; 2] = ["VGPR_16", "VSrcT16<16>"];

/// Encoding classes in which other fields decide how many registers an operand has.
const SIZED_BY_FIELDS: [&str; 3] = ["MIMG", "VIMAGE", "VSAMPLE"];

/// Flags of an entry, see `EntryEffects` of `hotswap-isa`.
const SIZED: u8 = 1;
const SDWA: u8 = 2;
const FETCHES: u8 = 4;
const EXTRA: u8 = 8;
const MANY: u8 = 16;
const FOR_GDS: u8 = 32;

/// Marks of a place, see `PlaceData` of `hotswap-isa-tables`.
const WRITTEN: u8 = 1;
const MASKED: u8 = 2;
const KEEPS: u8 = 4;

/// Places of a group, and the maximum of an entry, which a reader holds without allocating.
const GROUP: usize = 4;
const MOST: usize = 16;

/// Writes the places and their groups, for each entry its part of those, and for each target the arrangement of
/// its scalar register numbers.
pub(super) fn write_effects(out: &mut TableSet, model: &Model, expanded: &Expanded) -> Result<(), GenerateError> {
    let mut formats = Vec::new();
    for format in &expanded.formats {
        let (shape, layout) = (&model.shapes[format.shape], &model.layouts[format.layout]);
        formats.push((FormatEffects::new(model, shape, layout, format)?, sized_by_fields(shape, layout)));
    }
    let mut groups = Groups::default();
    let mut starts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut entries = Vec::new();
    for entry in &expanded.entries {
        let (list, sized) = &formats[entry.format];
        let (row, format) = (&model.rows[entry.row], &expanded.formats[entry.format]);
        let touched = EntryAccesses::new(model, expanded, row, format, list)?;
        let places = touched.all_places();
        if places.len() > MOST {
            return Err(GenerateError::new(&row.mnemonic, "more registers than a reader holds"));
        }
        let many = places.len() > GROUP;
        let start = *starts.entry(places).or_insert_with_key(|places| groups.add_list(places));
        let start = small(start, &row.mnemonic)?;
        let flags =
            touched.reader_flags(model, row, format) | if *sized { SIZED } else { 0 } | if many { MANY } else { 0 };
        entries.push(touched.effect_record(start, flags)?);
    }
    groups.write_groups(out)?;
    out.records(("ENTRY_EFFECTS", "The reads and writes of entries."), "EntryEffectsData", &entries);
    write_arrangements(out, model);
    Ok(())
}

/// Places, each once, and groups of their numbers.
#[derive(Default)]
struct Groups {
    numbers: BTreeMap<String, usize>,
    places: Vec<String>,
    groups: Vec<[usize; GROUP]>,
}

impl Groups {
    /// Adds a list; returns the number of its first group. A list without places has a group all the same: it is read
    /// before the number of places is known.
    fn add_list(&mut self, places: &[String]) -> usize {
        let start = self.groups.len();
        places.chunks(GROUP).for_each(|places| self.add_group(places));
        if places.is_empty() {
            self.add_group(&[]);
        }
        start
    }

    /// Adds a group of places, padded with empty ones.
    fn add_group(&mut self, places: &[String]) {
        let all = places.iter().map(String::as_str).chain(std::iter::repeat("NOTHING"));
        let mut group = [0; GROUP];
        for (number, place) in group.iter_mut().zip(all) {
            let next = self.places.len();
            *number = *self.numbers.entry(place.to_owned()).or_insert(next);
            if *number == next {
                self.places.push(place.to_owned());
            }
        }
        self.groups.push(group);
    }

    fn write_groups(mut self, out: &mut TableSet) -> Result<(), GenerateError> {
        // A power of two: a masked index needs no comparison. The padding is never referenced.
        for _ in self.groups.len()..self.groups.len().next_power_of_two() {
            self.add_group(&[]);
        }
        let mut groups = Vec::new();
        for group in self.groups {
            let numbers = group.into_iter().map(|number| small(number, "places"));
            groups
                .push(numbers.collect::<Result<Vec<u16>, _>>()?.into_iter().fold(RecordBytes::new(), RecordBytes::u16));
        }
        out.text(("PLACES", "Places, each once."), "PlaceData", &self.places, String::clone);
        out.records(("PLACE_GROUPS", "Numbers of places, four of a list in a group."), "[u16; 4]", &groups);
        Ok(())
    }
}

/// The reads and writes of an entry.
struct EntryAccesses {
    writes: Vec<String>,
    reads: Vec<String>,
    /// Reads that follow those of registers without an operand.
    late: Vec<String>,
    implicit_writes: u8,
    implicit_reads: u8,
}

impl EntryAccesses {
    fn new(
        model: &Model,
        expanded: &Expanded,
        row: &EncodingRow,
        format: &PlacedShape,
        list: &FormatEffects,
    ) -> Result<Self, GenerateError> {
        let marks = vector_write_marks(model, row, format);
        let (named_writes, named_reads) = list.lines.split_at(list.writes);
        let named_writes = place_expressions(named_writes, marks);
        let named_reads = place_expressions(named_reads, marks);
        let (implicit_writes, other_writes) = implicit_places(expanded, row, true)?;
        let (implicit_reads, other_reads) = implicit_places(expanded, row, false)?;
        let also_written = corrected_accesses(row, &named_reads, "writes_source", "written");
        let also_read = corrected_accesses(row, &named_writes, "reads_result", "read");
        Ok(Self {
            writes: [named_writes, also_written, other_writes].concat(),
            reads: [named_reads, also_read, other_reads].concat(),
            late: for_gds(model, row, format),
            implicit_writes,
            implicit_reads,
        })
    }

    fn all_places(&self) -> Vec<String> {
        [self.writes.as_slice(), &self.reads, &self.late].concat()
    }

    /// The work of a reader beyond taking the places unchanged.
    fn reader_flags(&self, model: &Model, row: &EncodingRow, format: &PlacedShape) -> u8 {
        let operands = &model.shapes[format.shape].operands;
        let fetches = operands.iter().any(|operand| ["tfe", "lwe"].contains(&operand.name.as_str()));
        let extra =
            self.all_places().iter().any(|place| place.starts_with("with_extra") || place.starts_with("in_upper"));
        [
            (reader_row_flag("sdwa", row), SDWA),
            (fetches || reader_row_flag("d16_buf", row), FETCHES),
            (extra, EXTRA),
            (!self.late.is_empty(), FOR_GDS),
        ]
        .into_iter()
        .filter(|(is, _)| *is)
        .fold(0, |flags, (_, flag)| flags | flag)
    }

    fn effect_record(&self, start: u16, flags: u8) -> Result<RecordBytes, GenerateError> {
        let (writes, reads) = (small(self.writes.len(), "places")?, small(self.reads.len(), "places")?);
        let record = RecordBytes::new().u16(start).u16(flags.into()).u8(writes).u8(reads);
        Ok(record.u8(self.implicit_writes).u8(self.implicit_reads))
    }
}

fn place_expressions(lines: &[EffectLine], marks: u8) -> Vec<String> {
    lines.iter().map(|line| line.place_expression(marks)).collect()
}

fn reader_row_flag(flag: &str, row: &EncodingRow) -> bool {
    row.flags.iter().any(|name| name == flag)
}

/// The effect of an entry's flags on the vector registers that it writes.
fn vector_write_marks(model: &Model, row: &EncodingRow, format: &PlacedShape) -> u8 {
    // Buffer instructions have forms of their own for `tfe`.
    let fixed = model.shapes[format.shape].template.contains(" tfe");
    let keeps =
        if vector_row_flag("dst16", row) || vector_row_flag("tied_source_not_read", row) || fixed { KEEPS } else { 0 };
    // Matrix instructions work on all lanes, whatever EXEC is.
    let whole_wave = vector_row_flag("mai", row) || vector_row_flag("wmma", row) || vector_row_flag("swmmac", row);
    keeps | if row.reads.iter().any(|name| name == "EXEC") && !whole_wave { MASKED } else { 0 }
}

fn vector_row_flag(flag: &str, row: &EncodingRow) -> bool {
    row.flags.iter().any(|name| name == flag)
}

/// Implicit registers: a bit for each, and places for those whose width or choice is the instruction's. LLVM takes
/// every hardware register for MODE.
fn implicit_places(expanded: &Expanded, row: &EncodingRow, written: bool) -> Result<(u8, Vec<String>), GenerateError> {
    let sets = row.mnemonic.starts_with("s_setreg");
    let hardware = sets || row.mnemonic.starts_with("s_getreg");
    let parts = match (hardware, written) {
        (false, _) => 0,
        (true, true) => usize::from(sets),
        (true, false) => 3,
    };
    let (mut set, mut lines) = (0, Vec::new());
    let names = if written { &row.writes } else { &row.reads };
    for name in names.iter().filter(|name| !hardware || *name != "MODE") {
        let number = expanded.implicit.number(name)?;
        match exec_dwords(&row.mnemonic).filter(|_| name == "EXEC") {
            Some(dwords) => lines.push(format!("x({dwords}, {written})")),
            None if number < 8 => set |= 1 << number,
            None => return Err(GenerateError::new(&row.mnemonic, "more registers without operands than 8 bits have")),
        }
    }
    lines.extend((0..parts).map(|part| format!("h({part}, {written})")));
    Ok((set, lines))
}

/// Scalar instructions have EXEC in the width that their name states, whatever the wave.
fn exec_dwords(mnemonic: &str) -> Option<u8> {
    let exec = mnemonic.contains("_saveexec_") || mnemonic.contains("_wrexec_");
    exec.then(|| if mnemonic.ends_with("_b64") { 2 } else { 1 })
}

/// Instructions of LDS read M0 if one of their bits selects global data share, even where LLVM models
/// that for gfx8 only.
fn for_gds(model: &Model, row: &EncodingRow, format: &PlacedShape) -> Vec<String> {
    let operands = &model.shapes[format.shape].operands;
    let gds = operands.iter().position(|operand| operand.name == "gds");
    match gds.map(|number| format.slots[number].pieces.as_slice()) {
        Some([piece]) if !row.reads.iter().any(|name| name == "M0") => vec![format!("g({})", piece.at)],
        _ => Vec::new(),
    }
}

/// Operands whose access differs from LLVM's, by the overlay's flags.
fn corrected_accesses(row: &EncodingRow, named: &[String], flag: &str, how: &str) -> Vec<String> {
    let has = row.flags.iter().any(|name| name == flag);
    named.iter().filter(|_| has).map(|line| format!("also_{how}({line})")).collect()
}

/// The arrangement of scalar register numbers: 0 on gfx9, 1 on gfx10, 2 from gfx11, 3 with literals of 64 bits.
fn write_arrangements(out: &mut TableSet, model: &Model) {
    let mut arrangements: Vec<usize> = model
        .targets
        .iter()
        .map(|target| {
            ["gfx10-insts", "gfx11-insts", "64-bit-literals"]
                .iter()
                .take_while(|feature| target_has_feature(feature, target))
                .count()
        })
        .collect();
    // A power of two, like the table of places.
    arrangements.resize(arrangements.len().next_power_of_two(), 0);
    let name = ("ARRANGEMENTS", "For each target the arrangement of its scalar register numbers.");
    out.text(name, "u8", &arrangements, usize::to_string);
}

fn target_has_feature(feature: &&str, target: &crate::model::TargetRow) -> bool {
    target.features.iter().any(|name| name == feature)
}

/// The registers of one format, written ones first.
struct FormatEffects {
    lines: Vec<EffectLine>,
    writes: usize,
}

/// A bit of a register's number outside of its field.
struct NumberBit {
    /// The bit of the instruction.
    at: u8,
    /// The bit of the number.
    from: u8,
}

/// A register of an operand: the arguments of its place, and the bit of its number that is elsewhere.
struct EffectLine {
    arguments: String,
    written: bool,
    extra: Option<NumberBit>,
    upper: bool,
}

impl EffectLine {
    fn place_expression(&self, marks: u8) -> String {
        let marks = if self.written { marks | WRITTEN } else { 0 };
        let place = format!("p({}, {marks})", self.arguments);
        let place = if self.upper { format!("in_upper({place})") } else { place };
        match self.extra {
            None => place,
            Some(NumberBit { at, from }) => format!("with_extra({place}, {at}, {from})"),
        }
    }
}

impl FormatEffects {
    fn new(
        model: &Model,
        shape: &OperandShape,
        layout: &EncodingLayout,
        format: &PlacedShape,
    ) -> Result<Self, GenerateError> {
        let mut lines = Vec::new();
        let mut writes = 0;
        for written in [true, false] {
            for (number, slot) in format.slots.iter().enumerate().filter(|(_, slot)| slot.written == written) {
                let Some(RegisterField { slot: partner, pieces }) =
                    register_pieces(model, shape, layout, format, number, slot)
                else {
                    continue;
                };
                if NUMBERS.contains(&decoder_method(model, format, partner)) {
                    continue;
                }
                lines.push(effect_line(shape, layout, format, number, partner, &pieces)?);
            }
            if written {
                writes = lines.len();
            }
        }
        Ok(Self { lines, writes })
    }
}

/// The decoder method of a slot, without the prefix and suffix that every name has.
fn decoder_method<'a>(model: &'a Model, format: &PlacedShape, number: usize) -> &'a str {
    let name = model.kinds[format.slots[number].kind].decode.as_str();
    let name = name.strip_prefix("decode").or(name.strip_prefix("Decode")).unwrap_or(name);
    let name = name.strip_suffix("RegisterClass").unwrap_or(name);
    name.strip_prefix("Operand_").unwrap_or(name)
}

/// The operand whose bits determine a register, and those bits.
struct RegisterField {
    slot: usize,
    pieces: Vec<FieldPiece>,
}

/// The field that determines the register of slot `number`.
fn register_pieces(
    model: &Model,
    shape: &OperandShape,
    layout: &EncodingLayout,
    format: &PlacedShape,
    number: usize,
    slot: &OperandSlot,
) -> Option<RegisterField> {
    let partner = if slot.pieces.is_empty() { shared_register_slot(shape, format, number, slot)? } else { number };
    let mut pieces = format.slots[partner].pieces.clone();
    if decoder_method(model, format, partner) == "OperandVOPDDstY" {
        // Bit 0 of the second result is the opposite of the first result's.
        let first = layout.fields.iter().find(|field| field.name == "vdstX")?;
        pieces.extend(first.pieces.first().map(|piece| FieldPiece { at: piece.at, from: 0, width: 1 }));
    }
    if HALVES.contains(&decoder_method(model, format, partner)) {
        pieces.extend(half_in_modifiers(shape, format, partner));
    }
    Some(RegisterField { slot: partner, pieces })
}

/// The bit that selects the half of a register, where it is among the modifiers: bit 2 of the operand's own, bit 3 of
/// the first source's for the result.
fn half_in_modifiers(shape: &OperandShape, format: &PlacedShape, number: usize) -> Option<FieldPiece> {
    if format.slots[number].pieces.iter().any(|piece| piece.from + piece.width > 9) {
        return None;
    }
    let (modifiers, bit) = match shape.operands[number].name.as_str() {
        "vdst" => ("src0_modifiers".to_owned(), 3),
        name => (format!("{name}_modifiers"), 2),
    };
    let found = shape.operands.iter().position(|operand| operand.name == modifiers)?;
    let piece = format.slots[found].pieces.iter().find(|piece| piece.has_value_bit(bit))?;
    Some(FieldPiece { at: piece.at + (bit - piece.from), from: 9, width: 1 })
}

/// The operand whose register slot `number` shares: tied in either direction, or the result whose old value it is.
fn shared_register_slot(
    shape: &OperandShape,
    format: &PlacedShape,
    number: usize,
    slot: &OperandSlot,
) -> Option<usize> {
    let result = match shape.operands[number].name.as_str() {
        "old" => "vdst",
        name => name.strip_suffix("_in").unwrap_or_default(),
    };
    let tied = slot.tied.and_then(|partner| placed_partner_slot(usize::from(partner), format));
    tied.or_else(|| format.slots.iter().position(|one| is_tied_to_slot(one, number)))
        .or_else(|| placed_partner_slot(result_operand_position(shape, result)?, format))
}

fn placed_partner_slot(partner: usize, format: &PlacedShape) -> Option<usize> {
    (!format.slots[partner].pieces.is_empty()).then_some(partner)
}

fn is_tied_to_slot(other: &OperandSlot, number: usize) -> bool {
    other.tied.map(usize::from) == Some(number) && !other.pieces.is_empty()
}

fn result_operand_position(shape: &OperandShape, result: &str) -> Option<usize> {
    shape.operands.iter().position(|operand| operand.written && operand.name == result)
}

fn effect_line(
    shape: &OperandShape,
    layout: &EncodingLayout,
    format: &PlacedShape,
    number: usize,
    partner: usize,
    pieces: &[FieldPiece],
) -> Result<EffectLine, GenerateError> {
    let (first, second) = match pieces {
        [first] => (*first, None),
        [first, second] if second.width == 1 => (*first, Some(*second)),
        [first, second] if first.width == 1 => (*second, Some(*first)),
        _ => return Err(GenerateError::new(&shape.name, "a register's number is in fields that are not foreseen")),
    };
    let extra = second.map(|second| NumberBit { at: second.at, from: arranged_source_bit(second) });
    // Address registers of their own after the instruction are read with the image's sizes.
    let at = first.at.min(127);
    let (kind, role) = (format.slots[partner].kind, bank_role(shape, layout, partner));
    let FieldPiece { width, from, .. } = first;
    if at < 64 && at + width > 64 {
        return Err(GenerateError::new(&shape.name, "a register's number crosses bit 64"));
    }
    if number >= NO_SLOT {
        return Err(GenerateError::new(&shape.name, "more operands than five bits count"));
    }
    let written = format.slots[number].written;
    let arguments = format!("{kind}, {at}, {width}, {from}, {role}, {number}");
    Ok(EffectLine { arguments, written, extra, upper: at >= 64 })
}

/// The parity of a dual result's partner, which is at bit 0, is passed as bit 9.
fn arranged_source_bit(piece: FieldPiece) -> u8 {
    if piece.from == 0 { 9 } else { piece.from }
}

/// The number of operands that means none.
const NO_SLOT: usize = 31;

/// The bank-mode role of the operand, see `bank::Role` of `hotswap-isa`.
fn bank_role(shape: &OperandShape, layout: &EncodingLayout, number: usize) -> u8 {
    let names: Vec<&str> = shape.operands.iter().map(|operand| operand.name.as_str()).collect();
    // The halves of a scaled WMMA that load the scales read v0 to v255 in every mode (llvm#157526).
    if names.contains(&"matrix_a_scale") && !names.contains(&"vdst") {
        return 4;
    }
    // `v_fmamk` has its literal in the middle, and the operand after it is the third source.
    let after_literal = number > 0 && names[number - 1].starts_with("imm");
    match names[number] {
        "src0" | "src0X" | "src0Y" | "addr" | "vaddr" | "vaddr0" => 0,
        "src1" | "vsrc1X" | "vsrc1Y" if after_literal => 2,
        "src1" | "vsrc1X" | "vsrc1Y" | "data0" | "vaddr1" => 1,
        "src2" | "vsrc2X" | "vsrc2Y" | "data1" | "vaddr2" => 2,
        // Both are written and read, the second in place of the first source.
        "vdst1" => 0,
        "vdst" | "vdstX" | "vdstY" => 3,
        "vdata" if layout.class.starts_with("FLAT") || layout.class.starts_with("VFLAT") => 1,
        "vdata" => 3,
        _ => 4,
    }
}

/// Whether the sizes of registers depend on other fields: images, and matrices with formats.
fn sized_by_fields(shape: &OperandShape, layout: &EncodingLayout) -> bool {
    SIZED_BY_FIELDS.contains(&layout.class.as_str())
        || shape_has_operand("matrix_a_fmt", shape)
        || shape_has_operand("cbsz", shape) && shape_has_operand("blgp", shape)
}

fn shape_has_operand(name: &str, shape: &OperandShape) -> bool {
    shape.operands.iter().any(|operand| operand.name == name)
}
