//! Which operands of a format are registers, where their numbers lie, and what the VGPR bank mode means for them.
//!
//! Invariants: one list for each format, in the formats' order, written registers first; an operand without bits of
//! its own (tied) stands at the bits of its partner; operands that cannot be a register are left out.

use super::GenerateError;
use super::expand::{Expanded, Format, Slot};
use crate::model::{Layout, Model, Piece, Shape};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Kinds whose field never names a register.
const NUMBERS: [&str; 7] = ["imm", "SMEMOffset", "SOPPBrTarget", "VersionImm", "KImmFP", "KImmFP64", "Dpp8FI"];

/// Kinds that name half of a register, with bit 9 for the high one.
const HALVES: [&str; 2] = ["VGPR_16", "VSrcT16<16>"];

/// Encoding classes in which other fields decide how many registers an operand has.
const SIZED_BY_FIELDS: [&str; 3] = ["MIMG", "VIMAGE", "VSAMPLE"];

/// Writes the lists: `PLACES`, and for each format its part of them (`FORMAT_PLACES`).
pub fn write(out: &mut String, model: &Model, expanded: &Expanded) -> Result<(), GenerateError> {
    let mut places: Vec<String> = Vec::new();
    let mut starts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut formats = String::new();
    for format in &expanded.formats {
        let (shape, layout) = (&model.shapes[format.shape], &model.layouts[format.layout]);
        let list = Lists::new(model, shape, layout, format)?;
        let (writes, reads, sized) = (list.writes, list.lines.len() - list.writes, sized_by_fields(shape, layout));
        let start = *starts.entry(list.lines).or_insert_with_key(|lines| {
            places.extend_from_slice(lines);
            places.len() - lines.len()
        });
        let _ = writeln!(formats, "    Places {{ start: {start}, writes: {writes}, reads: {reads}, sized: {sized} }},");
    }
    let _ = writeln!(out, "/// Registers of operands.\npub(crate) static PLACES: [Place; {}] = [", places.len());
    for place in &places {
        let _ = writeln!(out, "    {place},");
    }
    let count = expanded.formats.len();
    let _ =
        writeln!(out, "];\n\n/// Each format's part of them.\npub(crate) static FORMAT_PLACES: [Places; {count}] = [");
    let _ = writeln!(out, "{formats}];");
    Ok(())
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
    let piece = |index: usize| {
        let none = Piece { at: 0, from: 0, width: 0 };
        let Piece { at, from, width } = pieces.get(index).copied().unwrap_or(none);
        format!("Piece {{ at: {at}, from: {from}, width: {width} }}")
    };
    if pieces.len() > 2 {
        return Err(GenerateError::new(&shape.name, "a register's number lies in more than two places"));
    }
    let (kind, role) = (format.slots[partner].kind, role(shape, layout, partner));
    let (first, second) = (piece(0), piece(1));
    Ok(format!("Place {{ decode: KINDS[{kind}].decode, slot: {number}, role: {role}, pieces: [{first}, {second}] }}"))
}

/// What the operand is to the bank mode, see `bank::Role` of `hotswap-isa`.
fn role(shape: &Shape, layout: &Layout, number: usize) -> &'static str {
    let names: Vec<&str> = shape.operands.iter().map(|operand| operand.name.as_str()).collect();
    // The halves of a scaled WMMA that load the scales read v0 to v255 in every mode (llvm#157526).
    if names.contains(&"matrix_a_scale") && !names.contains(&"vdst") {
        return "None";
    }
    // `v_fmamk` has its literal in the middle, and the operand behind it is the third source.
    let after_literal = number > 0 && names[number - 1].starts_with("imm");
    match names[number] {
        "src0" | "src0X" | "src0Y" | "addr" | "vaddr" | "vaddr0" => "Some(Role::Source0)",
        "src1" | "vsrc1X" | "vsrc1Y" if after_literal => "Some(Role::Source2)",
        "src1" | "vsrc1X" | "vsrc1Y" | "data0" | "vaddr1" => "Some(Role::Source1)",
        "src2" | "vsrc2X" | "vsrc2Y" | "data1" | "vaddr2" => "Some(Role::Source2)",
        "vdst" | "vdstX" | "vdstY" => "Some(Role::Destination)",
        "vdata" if layout.class.starts_with("FLAT") || layout.class.starts_with("VFLAT") => "Some(Role::Source1)",
        "vdata" => "Some(Role::Destination)",
        _ => "None",
    }
}

/// Whether the sizes of registers depend on other fields: images, and matrices with formats.
fn sized_by_fields(shape: &Shape, layout: &Layout) -> bool {
    let has = |name: &str| shape.operands.iter().any(|operand| operand.name == name);
    SIZED_BY_FIELDS.contains(&layout.class.as_str()) || has("matrix_a_fmt") || has("cbsz") && has("blgp")
}
