//! Which operands of a format are registers, where their numbers lie, and what the VGPR bank mode means for them.
//!
//! Invariants: one list for each format, in the formats' order, written registers first; an operand without bits of
//! its own (tied) stands at the bits of its partner; operands that cannot be a register are left out.

use super::expand::{Expanded, Format, Slot};
use super::{GenerateError, emit_array};
use crate::model::{Layout, Model, Piece, Row, Shape};
use std::collections::BTreeMap;

/// Kinds whose field never names a register.
const NUMBERS: [&str; 7] = ["imm", "SMEMOffset", "SOPPBrTarget", "VersionImm", "KImmFP", "KImmFP64", "Dpp8FI"];

/// Kinds that name half of a register, with bit 9 for the high one.
const HALVES: [&str; 2] = ["VGPR_16", "VSrcT16<16>"];

/// Encoding classes in which other fields decide how many registers an operand has.
const SIZED_BY_FIELDS: [&str; 3] = ["MIMG", "VIMAGE", "VSAMPLE"];

/// Flags of an entry, see `EntryEffects` of `hotswap-isa`.
const SIZED: u8 = 1;
const KEEPS: u8 = 2;
const SDWA: u8 = 4;
const FETCHES: u8 = 8;
const MASKED: u8 = 16;

/// Writes the lists: `PLACES`, for each entry its part of them (`ENTRY_EFFECTS`), and for each target how the numbers
/// of its scalar registers are arranged.
pub fn write(out: &mut String, model: &Model, expanded: &Expanded) -> Result<(), GenerateError> {
    let mut formats = Vec::new();
    for format in &expanded.formats {
        let (shape, layout) = (&model.shapes[format.shape], &model.layouts[format.layout]);
        formats
            .push((Lists::new(model, shape, layout, format)?, if sized_by_fields(shape, layout) { SIZED } else { 0 }));
    }
    let mut places: Vec<String> = Vec::new();
    let mut starts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut entries = Vec::new();
    for entry in &expanded.entries {
        let (row, (list, sized)) = (&model.rows[entry.row], &formats[entry.format]);
        let (named_writes, named_reads) = list.lines.split_at(list.writes);
        let format = &expanded.formats[entry.format];
        let also_written = corrected(row, named_reads, "writes_source", true);
        let also_read = corrected(row, named_writes, "reads_result", false);
        let writes = [named_writes, &also_written, &implicit(expanded, row, true)?].concat();
        let reads = [named_reads, &also_read, &implicit(expanded, row, false)?, &for_gds(model, row, format)].concat();
        let counts = format!("{}, {}", writes.len(), reads.len());
        let start = *starts.entry([writes, reads].concat()).or_insert_with_key(|lines| {
            places.extend_from_slice(lines);
            places.len() - lines.len()
        });
        if start > usize::from(u16::MAX) {
            return Err(GenerateError::new(&row.mnemonic, "more registers of operands than 16 bits count"));
        }
        let has = |flag: &str| row.flags.iter().any(|name| name == flag);
        let shape = &model.shapes[format.shape];
        // Buffer instructions have forms of their own for `tfe`.
        let fixed = shape.template.contains(" tfe");
        let fetches = shape.operands.iter().any(|operand| ["tfe", "lwe"].contains(&operand.name.as_str()));
        let fetches = if fetches || has("d16_buf") { FETCHES } else { 0 };
        let keeps = if has("dst16") || has("tied_source_not_read") || fixed { KEEPS } else { 0 };
        let sdwa = if has("sdwa") { SDWA } else { 0 };
        // Matrix instructions work on all lanes, whatever EXEC is.
        let whole_wave = has("mai") || has("wmma") || has("swmmac");
        let masked = if row.reads.iter().any(|name| name == "EXEC") && !whole_wave { MASKED } else { 0 };
        entries.push(format!("e({start}, {counts}, {})", sized | keeps | fetches | sdwa | masked));
    }
    // A power of two: a masked index needs no comparison. Nothing refers to what is added.
    let length = places.len().next_power_of_two();
    places.resize(length, "i(0, false)".to_owned());
    emit_array(out, "PLACES", "Place", &places, String::clone);
    emit_array(out, "ENTRY_EFFECTS", "EntryEffects", &entries, String::clone);
    write_arrangements(out, model);
    Ok(())
}

/// Lines of registers that no operand names, in the order of their numbers. For LLVM every hardware register is MODE.
fn implicit(expanded: &Expanded, row: &Row, written: bool) -> Result<Vec<String>, GenerateError> {
    let sets = row.mnemonic.starts_with("s_setreg");
    let hardware = sets || row.mnemonic.starts_with("s_getreg");
    let parts = match (hardware, written) {
        (false, _) => 0,
        (true, true) => usize::from(sets),
        (true, false) => 3,
    };
    let names = if written { &row.writes } else { &row.reads };
    let mut numbers = Vec::new();
    for name in names.iter().filter(|name| !hardware || *name != "MODE") {
        numbers.push((expanded.implicit.number(name)?, name.as_str()));
    }
    numbers.sort_unstable();
    let lines = numbers.iter().map(|(number, name)| match (exec_dwords(&row.mnemonic), *name) {
        (Some(dwords), "EXEC") => format!("x({dwords}, {written})"),
        // Instructions that set a part of MODE, or of M0.
        (_, "MODE" | "M0") if written => format!("k({number})"),
        _ => format!("i({number}, {written})"),
    });
    Ok(lines.chain((0..parts).map(|part| format!("h({part}, {written})"))).collect())
}

/// Scalar instructions have EXEC as wide as their name says, whatever the wave.
fn exec_dwords(mnemonic: &str) -> Option<u8> {
    let exec = mnemonic.contains("_saveexec_") || mnemonic.contains("_wrexec_");
    exec.then(|| if mnemonic.ends_with("_b64") { 2 } else { 1 })
}

/// Instructions of LDS read M0 if a bit of theirs says global data share, also where LLVM says so for gfx8 only.
fn for_gds(model: &Model, row: &Row, format: &Format) -> Vec<String> {
    let operands = &model.shapes[format.shape].operands;
    let gds = operands.iter().position(|operand| operand.name == "gds");
    match gds.map(|number| format.slots[number].pieces.as_slice()) {
        Some([piece]) if !row.reads.iter().any(|name| name == "M0") => vec![format!("g({})", piece.at)],
        _ => Vec::new(),
    }
}

/// Operands that are read or written in another way than LLVM says: what the overlay's flags name.
fn corrected(row: &Row, named: &[String], flag: &str, written: bool) -> Vec<String> {
    let has = row.flags.iter().any(|name| name == flag);
    named.iter().filter(|_| has).map(|line| format!("also({line}, {written})")).collect()
}

/// How the numbers of scalar registers are arranged: 0 on gfx9, 1 on gfx10, 2 from gfx11, 3 with literals of 64 bits.
fn write_arrangements(out: &mut String, model: &Model) {
    let mut arrangements: Vec<usize> = model
        .targets
        .iter()
        .map(|target| {
            let has = |feature: &&str| target.features.iter().any(|name| name == feature);
            ["gfx10-insts", "gfx11-insts", "64-bit-literals"].iter().take_while(|feature| has(feature)).count()
        })
        .collect();
    // A power of two, as the table of places.
    arrangements.resize(arrangements.len().next_power_of_two(), 0);
    emit_array(out, "ARRANGEMENTS", "u8", &arrangements, usize::to_string);
    out.push_str(
        "/// The arrangement of scalar registers on a target.\n#[inline(always)]\npub(super) fn arrangement(target: u16) -> u8 {\n    \
         ARRANGEMENTS[usize::from(target) & (ARRANGEMENTS.len() - 1)]\n}\n",
    );
}

/// The registers of one format.
struct Lists {
    lines: Vec<String>,
    writes: usize,
}

impl Lists {
    fn new(model: &Model, shape: &Shape, layout: &Layout, format: &Format) -> Result<Self, GenerateError> {
        let mut lines = Vec::new();
        let mut writes = 0;
        for written in [true, false] {
            for (number, slot) in format.slots.iter().enumerate().filter(|(_, slot)| slot.written == written) {
                let Some((partner, pieces)) = places(model, shape, layout, format, number, slot) else { continue };
                if NUMBERS.contains(&method(model, format, partner)) {
                    continue;
                }
                lines.push(line(shape, layout, format, number, partner, &pieces)?);
            }
            if written {
                writes = lines.len();
            }
        }
        Ok(Self { lines, writes })
    }
}

/// How a slot's field is read, without the words that every name has.
fn method<'a>(model: &'a Model, format: &Format, number: usize) -> &'a str {
    let name = model.kinds[format.slots[number].kind].decode.as_str();
    let name = name.strip_prefix("decode").or(name.strip_prefix("Decode")).unwrap_or(name);
    let name = name.strip_suffix("RegisterClass").unwrap_or(name);
    name.strip_prefix("Operand_").unwrap_or(name)
}

/// The operand whose bits say which register slot `number` is, and those bits.
fn places(
    model: &Model,
    shape: &Shape,
    layout: &Layout,
    format: &Format,
    number: usize,
    slot: &Slot,
) -> Option<(usize, Vec<Piece>)> {
    let partner = if slot.pieces.is_empty() { partner(shape, format, number, slot)? } else { number };
    let mut pieces = format.slots[partner].pieces.clone();
    if method(model, format, partner) == "OperandVOPDDstY" {
        // Bit 0 of the second result is the opposite of the first result's.
        let first = layout.fields.iter().find(|field| field.name == "vdstX")?;
        pieces.extend(first.pieces.first().map(|piece| Piece { at: piece.at, from: 0, width: 1 }));
    }
    if HALVES.contains(&method(model, format, partner)) {
        pieces.extend(half_in_modifiers(shape, format, partner));
    }
    Some((partner, pieces))
}

/// The bit that says which half of a register, where it lies among the modifiers: bit 2 of the operand's own, bit 3
/// of the first source's for the result.
fn half_in_modifiers(shape: &Shape, format: &Format, number: usize) -> Option<Piece> {
    if format.slots[number].pieces.iter().any(|piece| piece.from + piece.width > 9) {
        return None;
    }
    let (modifiers, bit) = match shape.operands[number].name.as_str() {
        "vdst" => ("src0_modifiers".to_owned(), 3),
        name => (format!("{name}_modifiers"), 2),
    };
    let found = shape.operands.iter().position(|operand| operand.name == modifiers)?;
    let holds = |piece: &&Piece| (piece.from..piece.from + piece.width).contains(&bit);
    let piece = format.slots[found].pieces.iter().find(holds)?;
    Some(Piece { at: piece.at + (bit - piece.from), from: 9, width: 1 })
}

/// The operand whose register slot `number` shares: tied either way, or the result whose old value it stands for.
fn partner(shape: &Shape, format: &Format, number: usize, slot: &Slot) -> Option<usize> {
    let placed = |partner: usize| (!format.slots[partner].pieces.is_empty()).then_some(partner);
    let tied_to_it = |other: &Slot| other.tied.map(usize::from) == Some(number) && !other.pieces.is_empty();
    let result = match shape.operands[number].name.as_str() {
        "old" => "vdst",
        name => name.strip_suffix("_in").unwrap_or_default(),
    };
    let by_name = || shape.operands.iter().position(|operand| operand.written && operand.name == result);
    let tied = slot.tied.and_then(|partner| placed(usize::from(partner)));
    tied.or_else(|| format.slots.iter().position(tied_to_it)).or_else(|| placed(by_name()?))
}

fn line(
    shape: &Shape,
    layout: &Layout,
    format: &Format,
    number: usize,
    partner: usize,
    pieces: &[Piece],
) -> Result<String, GenerateError> {
    let (first, second) = match pieces {
        [first] => (*first, None),
        [first, second] if second.width == 1 => (*first, Some(*second)),
        [first, second] if first.width == 1 => (*second, Some(*first)),
        _ => return Err(GenerateError::new(&shape.name, "a register's number lies in places that are not foreseen")),
    };
    // The parity of a dual result's partner, which lies at bit 0, is handed over as bit 9.
    let from = |piece: Piece| if piece.from == 0 { 9 } else { piece.from };
    let (extra, extra_from) = second.map_or((255, 9), |second| (second.at, from(second)));
    // Address registers of their own behind the instruction are read with the image's sizes.
    let at = first.at.min(127);
    let (kind, role) = (format.slots[partner].kind, role(shape, layout, partner));
    let Piece { width, from, .. } = first;
    if at < 64 && at + width > 64 {
        return Err(GenerateError::new(&shape.name, "a register's number lies across bit 64"));
    }
    let written = format.slots[number].written;
    Ok(format!("p(KINDS[{kind}].decode, {at}, {width}, {from}, {extra}, {extra_from}, {role}, {number}, {written})"))
}

/// What the operand is to the bank mode, see `bank::Role` of `hotswap-isa`.
fn role(shape: &Shape, layout: &Layout, number: usize) -> u8 {
    let names: Vec<&str> = shape.operands.iter().map(|operand| operand.name.as_str()).collect();
    // The halves of a scaled WMMA that load the scales read v0 to v255 in every mode (llvm#157526).
    if names.contains(&"matrix_a_scale") && !names.contains(&"vdst") {
        return 4;
    }
    // `v_fmamk` has its literal in the middle, and the operand behind it is the third source.
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
fn sized_by_fields(shape: &Shape, layout: &Layout) -> bool {
    let has = |name: &str| shape.operands.iter().any(|operand| operand.name == name);
    SIZED_BY_FIELDS.contains(&layout.class.as_str()) || has("matrix_a_fmt") || has("cbsz") && has("blgp")
}
