//! Programs of assembly text as the fast printer runs them: each step states the usual form of its operand, so that
//! most operands are one entry of a table of texts.
//!
//! Invariants: a fast path is only emitted where it writes the same as the slow path, which `hotswap-isa` tests on
//! random instructions of every entry; texts of a step fit in its block, longer ones are split over several steps.
//!
//! Absent on purpose: the content of a line (see [`super::templates`]).

use super::expand::PlacedShape;
use super::kinds::{self, Decoder};
use super::names::EnumTexts;
use super::step::{DecodeStep, SILENT_AT_ZERO};
use super::table::{RecordBytes, TableSet};
use super::{GenerateError, small};
use crate::model::{BitRun, FieldPiece, Model, OperandKind};
use std::collections::BTreeMap;

/// Letters of a step's text; one more byte holds their number.
const LETTERS: usize = 15;
/// Letters of a mnemonic with its constant continuation.
const HEAD_LETTERS: usize = 31;

/// Sizes in dwords that have tables of texts, in the tables' order.
const SIZES: [u16; 6] = [1, 2, 3, 4, 8, 16];
/// Number of the size that a lane mask has.
const LANE_MASK: u8 = 6;
/// The field's number for VCC.
const VCC: u16 = 106;

/// Values of a register's field that exclude the fast path, a bit each.
mod refused {
    pub(super) const VECTOR: u8 = 1;
    pub(super) const ODD: u8 = 2;
    pub(super) const ACCUMULATION: u8 = 4;
    pub(super) const SCALAR: u8 = 8;
    pub(super) const M0: u8 = 16;
    pub(super) const EXEC_LO: u8 = 32;
    pub(super) const OTHER: u8 = 64;
    pub(super) const CONSTANT: u8 = 128;
}

/// The fast path of a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OperandFastPath {
    /// The form that it writes.
    plain: &'static str,
    /// The bits of its half of the instruction that must be clear.
    guard: u64,
    /// The start of the field, and two flags.
    place: u8,
    mask: u16,
    /// Bits of the field that are inverted.
    flip: u16,
    /// Number of the size.
    size: u8,
    /// The rejected kinds where tuples are not aligned and are, then the same where there are matrix cores.
    refuses: [u8; 4],
}

impl OperandFastPath {
    const NONE: OperandFastPath =
        OperandFastPath { plain: "Long", guard: 0, place: 0, mask: 0, flip: 0, size: 0, refuses: [0; 4] };
}

/// Bits of an instruction that are in one half of its first 16 bytes.
#[derive(Clone, Copy)]
struct HalfBits(u128);

impl HalfBits {
    fn of(pieces: &[FieldPiece]) -> Option<HalfBits> {
        pieces.iter().try_fold(HalfBits(0), |bits, piece| {
            let end = u32::from(piece.at) + u32::from(piece.width);
            (end <= 128).then(|| HalfBits(bits.0 | (u128::MAX >> (128 - piece.width)) << piece.at))
        })
    }

    /// The half that has all the bits; `None` where both have some.
    fn single_half(self) -> Option<InstructionHalf> {
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        match (low, high) {
            (low, 0) => Some(InstructionHalf { place: 0, bits: low }),
            (0, high) => Some(InstructionHalf { place: SECOND_HALF, bits: high }),
            _ => None,
        }
    }
}

/// One half of the first 16 bytes of an instruction.
struct InstructionHalf {
    /// The flag of a place in this half.
    place: u8,
    bits: u64,
}

/// Finds fast paths for the operands of one instruction.
pub(super) struct Shortcuts<'a> {
    pub(super) model: &'a Model,
    pub(super) format: &'a PlacedShape,
    /// The policy's "returns" is fixed, so its field is not the whole value.
    pub(super) returns: Option<u8>,
    /// Fields have another meaning in matrix and image instructions.
    pub(super) adjusted: bool,
}

impl Shortcuts<'_> {
    fn slot_pieces(&self, slot: u8) -> Option<&[FieldPiece]> {
        let found = self.format.slots.get(usize::from(slot))?;
        (found.tied.is_none() && self.returns != Some(slot)).then_some(&found.pieces)
    }

    /// The fast path of a step.
    pub(super) fn short_form(&self, step: &DecodeStep) -> Result<OperandFastPath, GenerateError> {
        let short = match step.part {
            "Text" => Some(OperandFastPath { plain: "Text", ..OperandFastPath::NONE }),
            "Operand" => self.register_form(step.slot, HalfBits(0))?,
            "FloatModifiers" => self.unmodified_source(step.slot, 3)?,
            "IntegerModifiers" => self.unmodified_source(step.slot, 16)?,
            "Vcc" => Some(OperandFastPath {
                plain: "Register",
                flip: VCC,
                size: LANE_MASK,
                refuses: [refused::OTHER; 4],
                ..OperandFastPath::NONE
            }),
            "Packed" => self.packed_form(step),
            "U16" | "U32" => self.hexadecimal_form(step)?,
            part if SILENT_AT_ZERO.contains(&part) => self.omitted_at_zero(step.slot),
            _ => None,
        };
        Ok(short.unwrap_or(OperandFastPath::NONE))
    }

    /// An operand that is omitted for 0.
    fn omitted_at_zero(&self, slot: u8) -> Option<OperandFastPath> {
        let InstructionHalf { place, bits: guard } = HalfBits::of(self.slot_pieces(slot)?)?.single_half()?;
        Some(OperandFastPath { plain: "Nothing", guard, place, ..OperandFastPath::NONE })
    }

    /// A number that is always written as hexadecimal.
    fn hexadecimal_form(&self, step: &DecodeStep) -> Result<Option<OperandFastPath>, GenerateError> {
        let BitRun { at, width } = step.place;
        let kind = &self.model.kinds[self.format.slots[usize::from(step.slot)].kind];
        let simple = kinds::decoder(kind)? != Decoder::Other("Version") && (1..=32).contains(&width);
        let one_half = at / 64 == (at + width.max(1) - 1) / 64;
        Ok((simple && one_half).then_some(OperandFastPath {
            plain: "Hexadecimal",
            place: at & SECOND_HALF,
            ..OperandFastPath::NONE
        }))
    }

    /// The bits of a field that hold the bits `wanted` of its value.
    fn value_bits(&self, slot: u8, wanted: u64) -> Option<HalfBits> {
        let mut bits = HalfBits(0);
        for piece in self.slot_pieces(slot)? {
            for bit in 0..piece.width {
                if wanted >> (piece.from + bit) & 1 != 0 {
                    bits.0 |= 1u128.checked_shl(u32::from(piece.at + bit))?;
                }
            }
        }
        Some(bits)
    }

    /// A source without modifiers.
    fn unmodified_source(&self, slot: u8, modifiers: u64) -> Result<Option<OperandFastPath>, GenerateError> {
        match self.value_bits(slot, modifiers) {
            Some(guard) => self.register_form(slot + 1, guard),
            None => Ok(None),
        }
    }

    /// Lists of modifier bits that all have their usual value.
    fn packed_form(&self, step: &DecodeStep) -> Option<OperandFastPath> {
        let ([a, b, c, shape], bit) = (step.extra, step.slot);
        let mut all = HalfBits(0);
        for slot in [a, b, c].into_iter().take(usize::from(shape & 3)).filter(|slot| *slot != u8::MAX) {
            let bits = self.value_bits(slot, u64::from(bit))?;
            all.0 |= bits.0;
        }
        let on = shape & 8 != 0 && bit == 8;
        if on {
            let known = [a, b, c].into_iter().take(usize::from(shape & 3));
            // A source without modifiers has all bits clear.
            let complete =
                known.clone().all(|slot| self.value_bits(slot, u64::from(bit)).is_some_and(|bits| bits.0 != 0));
            if !complete {
                return None;
            }
        }
        if shape & 4 != 0 {
            all.0 |= self.value_bits(a, 8)?.0;
        }
        let InstructionHalf { place, bits: guard } = all.single_half()?;
        Some(OperandFastPath {
            plain: if on { "NothingIfSet" } else { "Nothing" },
            guard,
            place,
            ..OperandFastPath::NONE
        })
    }

    /// A register or constant that is one entry of a table.
    fn register_form(&self, slot: u8, guard: HalfBits) -> Result<Option<OperandFastPath>, GenerateError> {
        let (Some(pieces), false) = (self.slot_pieces(slot), self.adjusted) else { return Ok(None) };
        let kind = &self.model.kinds[self.format.slots[usize::from(slot)].kind];
        let Some(FieldForm { size, known, flip }) = field_form(kinds::decoder(kind)?) else { return Ok(None) };
        let [field, rest @ ..] = pieces else { return Ok(None) };
        let split = u32::from(field.at) / 64 != (u32::from(field.at) + u32::from(field.width) - 1) / 64;
        if field.from + field.width > 16 || split {
            return Ok(None);
        }
        let (Some(rest), Some(own)) = (HalfBits::of(rest), HalfBits::of(&[*field])) else { return Ok(None) };
        let mask = (((1u32 << field.width) - 1) << field.from) as u16 & known;
        // Bits that the field itself may have cannot be inverted.
        if flip == 512 && mask & flip != 0 {
            return Ok(None);
        }
        let guard = guard.0 | rest.0;
        // The field and its guard are tested in one number.
        let Some(InstructionHalf { place: half, .. }) = HalfBits(guard | own.0).single_half() else { return Ok(None) };
        Ok(Some(OperandFastPath {
            plain: "Register",
            guard: (guard >> half) as u64,
            place: half | (field.at.wrapping_sub(field.from) & 63) | literal_flag(kind)?,
            mask,
            flip,
            size,
            refuses: refused_kinds(kind)?,
        }))
    }
}

/// Operand types of 32 and 64 bits whose literals are written unchanged.
const SIMPLE_LITERALS: &[&str] = &["RegImmInt32", "RegImmFp32", "RegImmInt64", "RegImmFp64"];

/// Flag for a place in the second half.
const SECOND_HALF: u8 = 64;
/// Flag for a literal that is written unchanged.
const SIMPLE_LITERAL: u8 = 128;

/// The flag of a source that may be a literal.
fn literal_flag(kind: &OperandKind) -> Result<u8, GenerateError> {
    let source = matches!(kinds::decoder(kind)?, Decoder::Source { .. });
    let simple = source && SIMPLE_LITERALS.contains(&kinds::operand_type(kind)?.as_str());
    Ok(if simple { SIMPLE_LITERAL } else { 0 })
}

/// How the field of a register or source is read.
struct FieldForm {
    /// Number of the size.
    size: u8,
    /// The bits of the field that count.
    known: u16,
    /// The bits that the field lacks, or that are inverted in it.
    flip: u16,
}

fn field_form(decoder: Decoder) -> Option<FieldForm> {
    let (dwords, known, flip) = match decoder {
        Decoder::Source { dwords, plus: 256 } => (dwords, !256, 256),
        Decoder::Source { dwords, plus } => (dwords, u16::MAX, plus),
        Decoder::Vgpr { dwords } => (dwords, 255, 256),
        Decoder::Agpr { dwords } => (dwords, 255, 768),
        Decoder::Other("LaneMask") => return Some(FieldForm { size: LANE_MASK, known: u16::MAX, flip: 0 }),
        // Vector registers have the low numbers here.
        Decoder::Other("SdwaSource") => (1, u16::MAX, 256),
        Decoder::Other(_) => return None,
    };
    SIZES.iter().position(|size| *size == dwords).map(|size| FieldForm { size: size as u8, known, flip })
}

/// The kinds that the fast path must reject, because they are not in the class.
fn refused_kinds(kind: &OperandKind) -> Result<[u8; 4], GenerateError> {
    let operand_type = kinds::operand_type(kind)?;
    let constants = operand_type.starts_with("RegI") && operand_type != "RegImmNoinlineV2fp16";
    let other = refused::OTHER | if constants { 0 } else { refused::CONSTANT };
    let content = if kind.class.is_empty() { "LANE_MASK".to_string() } else { kinds::register_class_of(kind)?.content };
    if content_has_word("LANE_MASK", &content) {
        return Ok([other; 4]);
    }
    let fixed = other
        | lacked_kind_bit("SCALAR", refused::SCALAR, &content)
        | lacked_kind_bit("M0", refused::M0, &content)
        | lacked_kind_bit("EXEC_LO", refused::EXEC_LO, &content);
    let vector = if content_has_word("LOW_128", &content) {
        refused::VECTOR
    } else {
        lacked_kind_bit("VECTOR", refused::VECTOR, &content)
    };
    Ok([0, 1, 2, 3].map(|target| {
        let (aligned, matrix) = (target & 1 != 0, target & 2 != 0);
        let even = content_has_word("EVEN", &content) || content_has_word("EVEN_ON_TARGET", &content) && aligned;
        let both = content_has_word("VECTOR", &content) && content_has_word("EVEN_ON_TARGET", &content);
        let accumulation = match content_has_word("ACCUMULATION_LOADS", &content) {
            true => aligned && matrix,
            false => content_has_word("ACCUMULATION", &content) && !(both && aligned && !matrix),
        };
        fixed | vector | if even { refused::ODD } else { 0 } | if accumulation { 0 } else { refused::ACCUMULATION }
    }))
}

fn content_has_word(wanted: &str, content: &str) -> bool {
    kinds::words(content).any(|word| word == wanted)
}

fn lacked_kind_bit(wanted: &str, bit: u8, content: &str) -> u8 {
    if content_has_word(wanted, content) { 0 } else { bit }
}

/// A step of a line, and the path by which most of its operands are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineStep {
    pub(super) step: DecodeStep,
    pub(super) short: OperandFastPath,
}

/// Heads of lines and programs, each stored once.
#[derive(Default)]
pub(super) struct DecodeLines {
    heads: BTreeMap<String, usize>,
    head_texts: Vec<String>,
    programs: BTreeMap<Vec<LineStep>, usize>,
    steps: Vec<LineStep>,
    entries: Vec<RecordBytes>,
}

impl DecodeLines {
    /// Adds an entry: its mnemonic, its steps, the quirks that its operand reader has to handle.
    pub(super) fn add_entry(
        &mut self,
        mnemonic: &str,
        mut steps: Vec<LineStep>,
        quirks: u8,
    ) -> Result<(), GenerateError> {
        let mut head = mnemonic.to_string();
        // Constant text after the mnemonic is part of the head, and every other text fits in a step.
        if let Some(first) = steps.first_mut().filter(|line| line.step.has_fixed_text()) {
            head.push_str(&std::mem::take(&mut first.step.text));
        }
        let rest = head.split_off(head.len().min(HEAD_LETTERS));
        if !rest.is_empty() {
            steps.insert(0, text_step(&rest));
        }
        let steps: Vec<_> = steps.into_iter().flat_map(split_text).filter(|line| !line.step.is_empty()).collect();
        let next = self.head_texts.len();
        let head_number = *self.heads.entry(head.clone()).or_insert(next);
        if head_number == next {
            self.head_texts.push(head);
        }
        let (next, count) = (self.steps.len(), steps.len());
        let start = *self.programs.entry(steps.clone()).or_insert(next);
        if start == next {
            self.steps.extend(steps);
        }
        let record = RecordBytes::new().u16(small(head_number, mnemonic)?).u16(small(start, mnemonic)?);
        self.entries.push(record.u8(small(count, mnemonic)?).u8(quirks));
        Ok(())
    }

    /// Writes the tables, and the enums of parts and short forms.
    pub(super) fn write_lines(&self, out: &mut TableSet, enums: &mut String) -> Result<(), GenerateError> {
        let parts = EnumTexts::new("TextPart", self.steps.iter().map(|line| line.step.part.to_owned()).collect())?;
        parts.write(enums, "The part that follows a text of a step.");
        let forms = EnumTexts::new("ShortForm", self.steps.iter().map(|line| line.short.plain.to_owned()).collect())?;
        forms.write(enums, "The output of a step if the bits of its guard are clear.");
        let heads: Vec<RecordBytes> =
            self.head_texts.iter().map(|head| letter_block(head, HEAD_LETTERS)).collect::<Result<_, _>>()?;
        out.records(("HEADS", "Starts of lines: at most 31 letters, then their number."), "[u8; 32]", &heads);
        let mut steps = Vec::new();
        for LineStep { step, short } in &self.steps {
            steps.push(step_record(step, short, &parts, &forms)?);
        }
        out.records(("STEPS", "Steps of lines."), "TextStep", &steps);
        out.records(("LINES", "For each entry its line."), "TextLine", &self.entries);
        Ok(())
    }
}

/// A step with its short form.
fn step_record(
    step: &DecodeStep,
    short: &OperandFastPath,
    parts: &EnumTexts,
    forms: &EnumTexts,
) -> Result<RecordBytes, GenerateError> {
    let DecodeStep { text, part, slot, place: BitRun { at, width }, extra } = step;
    let OperandFastPath { plain, guard, place, mask, flip, size, refuses } = short;
    let extra = if *plain == "Register" { refuses } else { extra };
    let record =
        letter_block(text, LETTERS)?.u64(*guard).u16(*mask).u16(*flip).u8(forms.number(plain)?).u8(*place).u8(*size);
    Ok(record.u8(parts.number(part)?).u8(*slot).u8(*at).u8(*width).u8(0).bytes(extra))
}

/// A block of at most `most` letters, with their number after it.
fn letter_block(text: &str, most: usize) -> Result<RecordBytes, GenerateError> {
    let padding = vec![0; most.checked_sub(text.len()).ok_or_else(|| too_many_letters_error(text, most))?];
    Ok(RecordBytes::new().bytes(text.as_bytes()).bytes(&padding).u8(text.len() as u8))
}

fn too_many_letters_error(text: &str, most: usize) -> GenerateError {
    GenerateError::new(text, format!("more than {most} letters"))
}

fn text_step(text: &str) -> LineStep {
    let short = OperandFastPath { plain: "Text", ..OperandFastPath::NONE };
    LineStep { step: DecodeStep::text(text), short }
}

/// Splits the text before a step into pieces that fit.
fn split_text(line: LineStep) -> Vec<LineStep> {
    let LineStep { mut step, short } = line;
    let mut steps = Vec::new();
    while step.text.len() > LETTERS && step.has_fixed_text() {
        let rest = step.text.split_off(LETTERS);
        steps.push(text_step(&std::mem::replace(&mut step.text, rest)));
    }
    steps.push(LineStep { step, short });
    steps
}
