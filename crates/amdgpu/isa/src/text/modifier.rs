//! Lists of modifier bits, and the modifiers of matrix products.

use super::TextWriter;
use core::fmt::{self, Write};
use hotswap_isa_tables::{TextPart, TextStep};

/// The bit of `op_sel_hi`, which is on unless written in packed arithmetic.
const OP_SEL_HI: u8 = 8;
/// The bit of the first source's modifiers that selects the half of the result.
const RESULT: u64 = 8;

impl TextWriter<'_, '_, '_> {
    /// One bit of each source's modifiers, as a list; nothing if all have the value they have by default.
    pub(super) fn write_packed(&mut self, step: &TextStep) -> fmt::Result {
        let [a, b, c, shape] = step.extra;
        let bit = step.slot;
        let count = usize::from(shape & 3);
        let modifiers = [a, b, c].map(|slot| if slot == 255 { 0 } else { self.reader.raw_operand(usize::from(slot)) });
        let sources = modifiers.get(..count).unwrap_or_default();
        let default = shape & 8 != 0 && bit == OP_SEL_HI;
        let result = (shape & 4 != 0).then_some(modifiers[0] & RESULT != 0);
        if sources.iter().all(|source| is_modifier_set(*source, bit) == default) && result != Some(true) {
            return Ok(());
        }
        self.out.write_block(&step.text)?;
        for (number, source) in sources.iter().enumerate() {
            self.list_item(number == 0, is_modifier_set(*source, bit))?;
        }
        if let Some(result) = result {
            self.list_item(false, result)?;
        }
        self.out.write_char(']')
    }

    fn list_item(&mut self, first: bool, on: bool) -> fmt::Result {
        self.out.write_str(match (first, on) {
            (true, false) => "0",
            (true, true) => "1",
            (false, false) => ",0",
            (false, true) => ",1",
        })
    }

    /// Modifiers that are numbers or have names, and are not written when they are 0.
    pub(super) fn write_matrix_modifier(&mut self, step: &TextStep, raw: u64) -> fmt::Result {
        let (suffix, names): (&str, &[&str]) = match step.part {
            TextPart::MatrixFormat => ("_fmt:", &FORMATS),
            TextPart::MatrixScale => ("_scale:", &SCALES),
            TextPart::MatrixScaleFormat => ("_scale_fmt:", &SCALE_FORMATS),
            _ => ("", &[]),
        };
        let number = match step.part {
            TextPart::BitOp3 => raw & 0xff,
            TextPart::MatrixScale => raw & 1,
            TextPart::MatrixScaleFormat => raw & 3,
            _ => raw & 7,
        };
        if number == 0 {
            return Ok(());
        }
        self.out.write_block(&step.text)?;
        self.out.write_str(suffix)?;
        match names.get(number as usize) {
            Some(name) => self.out.write_str(name),
            None if step.part == TextPart::BitOp3 && number > 10 => self.out.write_hexadecimal(number),
            None => self.out.write_decimal(number),
        }
    }
}

fn is_modifier_set(modifiers: u64, bit: u8) -> bool {
    modifiers & u64::from(bit) != 0
}

const FORMATS: [&str; 5] = ["MATRIX_FMT_FP8", "MATRIX_FMT_BF8", "MATRIX_FMT_FP6", "MATRIX_FMT_BF6", "MATRIX_FMT_FP4"];
const SCALES: [&str; 2] = ["MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1"];
const SCALE_FORMATS: [&str; 3] = ["MATRIX_SCALE_FMT_E8", "MATRIX_SCALE_FMT_E5M3", "MATRIX_SCALE_FMT_E4M3"];
