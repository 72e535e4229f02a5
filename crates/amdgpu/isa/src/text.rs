//! Assembly text, character by character the output of LLVM 23 for the same bytes.
//!
//! Data flow: [`line`] takes the fast path of each step, a lookup in [`registers`]; steps without one are written by
//! [`TextWriter`].
//!
//! Invariants: nothing is allocated for a line of less than 256 bytes. Every instruction that decodes has a text. The
//! text of an operand depends on the instruction and the target only, except branch targets, for which a caller may
//! have labels.
//!
//! Absent on purpose: columns, addresses, comments with the bytes (see the disassembler).

mod buffer;
mod cache;
mod dpp;
mod fixed_writer;
mod line;
mod message;
mod modifier;
mod operand;
mod program;
mod registers;
mod scalar;
mod swizzle;
mod typed;

pub use buffer::TextBuffer;

use crate::bank::VgprBanks;
use crate::inst::Inst;
use crate::isa::Isa;
use crate::operand::OperandReader;
use crate::tables::Feature;
use crate::value::OperandValue;
use core::fmt::{self, Write};
use fixed_writer::FixedWriter;
use hotswap_isa_tables::{TextBlock, TextPart, TextStep};
use line::LineFailure;

/// Writes the label of a branch's target. Its arguments include the 16 bits of the field; it returns
/// whether it wrote one.
pub type LabelWriter<'a> = &'a dyn Fn(&mut dyn fmt::Write, u16) -> Result<bool, fmt::Error>;

/// Options that change the text.
#[derive(Clone, Copy, Default)]
pub struct PrintOptions<'a> {
    /// Labels for branch targets; without them the number of the field is written.
    pub label: Option<LabelWriter<'a>>,
    /// The mode of the vector register banks before the instruction (gfx12.5). Registers beyond the first 256 are
    /// written after the name in the encoding: `v0 /*v256*/`.
    pub banks: VgprBanks,
}

/// The number of bytes that almost every line fits in.
const SHORT: usize = 256;

/// Displays an instruction, see [`Inst::text`].
#[derive(Debug, Clone, Copy)]
pub struct InstText {
    inst: Inst,
    isa: Isa,
}

impl fmt::Display for InstText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inst.write_text(self.isa, PrintOptions::default(), f)
    }
}

impl Inst {
    /// Its text as printed by `llvm-mc -disassemble`, without the tab before it.
    pub fn text(&self, isa: Isa) -> InstText {
        InstText { inst: *self, isa }
    }

    /// Writes its text. A label may be requested twice, if its line is long.
    pub fn write_text(&self, isa: Isa, options: PrintOptions<'_>, out: &mut impl Write) -> fmt::Result {
        let mut bytes = [0; SHORT];
        match line::write_line(self, isa, &options, &mut bytes) {
            Ok(len) => out.write_str(bytes.get(..len).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or("")),
            Err(LineFailure::Full) => self.write_long_text(isa, options, out),
            Err(LineFailure::Label) => Err(fmt::Error),
        }
    }

    #[cold]
    fn write_long_text(&self, isa: Isa, options: PrintOptions<'_>, out: &mut impl Write) -> fmt::Result {
        let mut buffer = TextBuffer::new();
        self.append_text(isa, options, &mut buffer)?;
        out.write_str(core::str::from_utf8(buffer.as_bytes()).unwrap_or(""))
    }

    /// Appends its text to the buffer, the fastest way to write many. A label may be requested twice.
    #[inline]
    pub fn append_text(&self, isa: Isa, options: PrintOptions<'_>, out: &mut TextBuffer) -> fmt::Result {
        loop {
            match line::write_line(self, isa, &options, out.free_capacity()) {
                Ok(len) => {
                    out.commit_bytes(len);
                    return Ok(());
                }
                Err(LineFailure::Full) => out.grow_capacity(0),
                Err(LineFailure::Label) => return Err(fmt::Error),
            }
        }
    }
}

/// Writes the steps of one instruction.
struct TextWriter<'a, 'b, 'c> {
    reader: OperandReader,
    isa: Isa,
    options: PrintOptions<'b>,
    out: &'a mut FixedWriter<'c>,
}

impl TextWriter<'_, '_, '_> {
    /// Writes the text, then the parts common to every instruction; the rest is in [`TextWriter::rare`].
    fn write_step(&mut self, step: &TextStep) -> fmt::Result {
        match step.part {
            TextPart::Text => self.out.write_block(&step.text),
            TextPart::Operand => {
                self.out.write_block(&step.text)?;
                self.operand_at(usize::from(step.slot), step.at, step.width)
            }
            TextPart::Flag => match self.raw_value(step) {
                0 => Ok(()),
                _ => self.out.write_block(&step.text),
            },
            TextPart::HexAlways | TextPart::HexNonzero | TextPart::DecimalAlways | TextPart::DecimalNonzero => {
                self.write_named_number(step)
            }
            _ => self.write_conditional(step),
        }
    }

    /// The raw number of a step's operand.
    #[inline]
    fn raw_value(&self, step: &TextStep) -> u64 {
        self.reader.raw_at(usize::from(step.slot), step.at, step.width)
    }

    /// Numbers with a name.
    fn write_named_number(&mut self, step: &TextStep) -> fmt::Result {
        let value = self.raw_value(step) as i64;
        if value == 0 && matches!(step.part, TextPart::HexNonzero | TextPart::DecimalNonzero) {
            return Ok(());
        }
        self.out.write_block(&step.text)?;
        match step.part {
            TextPart::HexAlways | TextPart::HexNonzero => self.out.signed_hexadecimal(value),
            _ => self.out.write_signed(value),
        }
    }

    /// A number that is read as a signed one.
    fn signed_number(&mut self, slot: usize) -> fmt::Result {
        match self.reader.operand_value(slot) {
            OperandValue::Imm(value) => self.out.signed_hexadecimal(value),
            _ => Ok(()),
        }
    }

    /// Parts whose text is only written under a condition.
    fn write_conditional(&mut self, step: &TextStep) -> fmt::Result {
        let raw = if step.part == TextPart::Packed { 0 } else { self.raw_value(step) };
        let text = &step.text;
        match step.part {
            // Without a global data share, its bit is meaningless.
            TextPart::GdsFlag if raw == 0 || !self.isa.has(Feature::Gds) => Ok(()),
            TextPart::GdsFlag => self.out.write_block(text),
            TextPart::CachePolicy => self.cache_policy(raw, step.extra),
            TextPart::Offset => self.write_offset(raw, step),
            TextPart::FlatOffset => self.flat_offset(raw, step),
            TextPart::DppFetchInvalid if raw == 1 || raw == 0xea => self.out.write_block(text),
            TextPart::DppFetchInvalid => Ok(()),
            TextPart::Packed => self.write_packed(step),
            TextPart::OpSelConvert => self.write_bit_pair(text, raw & 4 != 0, raw & 8 != 0),
            TextPart::OpSelPermute => {
                let other = self.reader.raw_operand(usize::from(step.extra[0]));
                self.write_bit_pair(text, raw & 4 != 0, other & 4 != 0)
            }
            TextPart::OutputModifier => self.out.write_str(["", " mul:2", " mul:4", " div:2"][raw as usize & 3]),
            TextPart::R128a16 if raw == 0 => Ok(()),
            TextPart::R128a16 => self.r128_a16(),
            TextPart::Blgp => self.write_blgp(raw, step.extra[0] != 0),
            TextPart::BitOp3
            | TextPart::IndexKey
            | TextPart::MatrixFormat
            | TextPart::MatrixScale
            | TextPart::MatrixScaleFormat => self.write_matrix_modifier(step, raw),
            TextPart::Swizzle => self.swizzle(text, raw as u16),
            TextPart::EndProgram if raw == 0 => Ok(()),
            TextPart::TypedFormat => self.typed_format(raw),
            _ => {
                self.out.write_block(text)?;
                self.write_rare(step, raw)
            }
        }
    }

    /// Writes parts whose text has been written.
    fn write_rare(&mut self, step: &TextStep, raw: u64) -> fmt::Result {
        let slot = usize::from(step.slot);
        match step.part {
            TextPart::Register => self.register_only(slot),
            TextPart::Branch => self.write_branch(raw as u16),
            TextPart::FloatModifiers => self.float_modifiers(step, raw),
            TextPart::IntegerModifiers => self.integer_modifiers(step, raw),
            TextPart::Vcc => self.write_vcc(),
            TextPart::AddressList => self.address_list(slot, step.extra[0]),
            TextPart::U16 => self.write_number16(slot, raw),
            TextPart::U32 => self.out.write_hexadecimal(raw & 0xffff_ffff),
            TextPart::Fp64 => self.literal_fp64(slot),
            TextPart::ScalarOffset => self.signed_number(slot),
            TextPart::DppControl => self.dpp_control(raw, step.extra[0]),
            TextPart::Dpp8 => self.write_dpp8(raw),
            TextPart::SdwaSelect => self.out.write_str(dpp::SDWA_SELECTS.get(raw as usize).unwrap_or(&"")),
            TextPart::SdwaUnused => self.out.write_str(dpp::SDWA_UNUSED[raw as usize & 3]),
            TextPart::Dim => self.out.write_str(DIMENSIONS[raw as usize & 7]),
            TextPart::Attribute => self.out.write_decimal(raw),
            TextPart::AttributeComponent => self.out.write_str([".x", ".y", ".z", ".w"][raw as usize & 3]),
            TextPart::AttributeParameter => self.attribute_parameter(raw),
            TextPart::ExportTarget => self.export_target(raw),
            TextPart::ExportSource => self.export_source(slot, step.extra),
            TextPart::EndProgram => self.out.write_decimal(raw & 0xffff),
            _ => self.scalar_control(step.part, raw as u16),
        }
    }

    /// The name of VCC in the size of a wave.
    fn write_vcc(&mut self) -> fmt::Result {
        self.out.write_str(match crate::kind::lane_mask_dwords(self.isa) {
            1 => "vcc_lo",
            _ => "vcc",
        })
    }

    /// The label of a branch's target, or the number of the field.
    fn write_branch(&mut self, field: u16) -> fmt::Result {
        match self.options.label {
            Some(label) if label(self.out, field)? => Ok(()),
            _ => self.out.write_decimal(u64::from(field)),
        }
    }

    /// ` op_sel:[a,b]` unless both are off.
    fn write_bit_pair(&mut self, text: &TextBlock, a: bool, b: bool) -> fmt::Result {
        if !a && !b {
            return Ok(());
        }
        self.out.write_block(text)?;
        self.out.write_str(if a { "1," } else { "0," })?;
        self.out.write_str(if b { "1]" } else { "0]" })
    }
}

const DIMENSIONS: [&str; 8] = ["1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY", "2D_MSAA", "2D_MSAA_ARRAY"];
