//! Assembly text, character by character what LLVM 23 prints for the same bytes.
//!
//! Invariants: nothing is allocated; every instruction that decodes has a text; the text of an operand depends on the
//! instruction and the target only, except branch targets, for which a caller may have labels.
//!
//! Absent on purpose: columns, addresses, comments with the bytes (see the disassembler).

mod cache;
mod dpp;
mod message;
mod modifier;
pub(crate) mod number;
mod operand;
pub(crate) mod program;
mod scalar;
mod swizzle;
mod typed;

use crate::bank::{Role, VgprBanks};
use crate::inst::Inst;
use crate::isa::Isa;
use crate::operand::Reader;
use crate::tables::Feature;
use crate::value::Value;
use core::fmt::{self, Write};
use number::{decimal, hexadecimal, signed, signed_hexadecimal};
use program::{Part, Step};

/// Writes the label of a branch's target. It is given the 16 bits of the field; it answers whether it wrote one.
pub type Label<'a> = &'a dyn Fn(&mut dyn fmt::Write, u16) -> Result<bool, fmt::Error>;

/// How text may differ from the plain one.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Labels for branch targets; without them the number of the field is written.
    pub label: Option<Label<'a>>,
    /// The mode of the vector register banks before the instruction (gfx12.5). Registers beyond the first 256 are
    /// written behind the name that the encoding has: `v0 /*v256*/`.
    pub banks: VgprBanks,
}

/// Displays an instruction, see [`Inst::text`].
#[derive(Debug, Clone, Copy)]
pub struct Text {
    inst: Inst,
    isa: Isa,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inst.write_text(self.isa, Options::default(), f)
    }
}

impl Inst {
    /// Its text as `llvm-mc -disassemble` has it, without the tab before it.
    pub fn text(&self, isa: Isa) -> Text {
        Text { inst: *self, isa }
    }

    /// Writes its text.
    pub fn write_text(&self, isa: Isa, options: Options<'_>, out: &mut impl Write) -> fmt::Result {
        out.write_str(self.mnemonic())?;
        let beyond = Role::ALL.into_iter().any(|role| options.banks.bank(role).is_some_and(|bank| bank != 0));
        let mut writer = Writer { reader: Reader::new(*self, isa), isa, options, beyond, out };
        program::of(self.entry()).iter().try_for_each(|step| writer.step(step))
    }
}

/// Writes the steps of one instruction.
struct Writer<'a, 'b, W: Write> {
    reader: Reader,
    isa: Isa,
    options: Options<'b>,
    /// Some role has another bank than the first.
    beyond: bool,
    out: &'a mut W,
}

impl<W: Write> Writer<'_, '_, W> {
    /// Text, then what belongs to every instruction; the rest is [`Writer::rare`].
    #[inline]
    fn step(&mut self, step: &Step) -> fmt::Result {
        match step.part {
            Part::Text => self.out.write_str(step.text),
            Part::Operand => {
                self.out.write_str(step.text)?;
                self.operand_at(usize::from(step.slot), step.at, step.width)
            }
            Part::Vector | Part::Data | Part::Source | Part::Scalar => self.register(step),
            Part::Flag => match self.raw(step) {
                0 => Ok(()),
                _ => self.out.write_str(step.text),
            },
            Part::HexAlways | Part::HexNonzero | Part::DecimalAlways | Part::DecimalNonzero => self.number(step),
            _ => self.conditional(step),
        }
    }

    /// Operands that are mostly one register, which is all that is looked for here.
    #[inline]
    fn register(&mut self, step: &Step) -> fmt::Result {
        self.out.write_str(step.text)?;
        let raw = self.raw(step);
        let vector = match step.part {
            Part::Vector => true,
            Part::Data => raw < 256,
            Part::Source => raw >= 256,
            _ => false,
        };
        if vector && !self.beyond {
            return self.out.write_str(number::vector(raw as u16 & 255));
        }
        // gfx9 has 102 scalar registers, the others more.
        if raw < 102 && matches!(step.part, Part::Source | Part::Scalar) {
            return self.out.write_str(number::scalar(raw as u16));
        }
        self.operand_at(usize::from(step.slot), step.at, step.width)
    }

    /// The raw number of a step's operand.
    #[inline]
    fn raw(&self, step: &Step) -> u64 {
        self.reader.raw_at(usize::from(step.slot), step.at, step.width)
    }

    /// Numbers with a name.
    fn number(&mut self, step: &Step) -> fmt::Result {
        let value = self.raw(step) as i64;
        if value == 0 && matches!(step.part, Part::HexNonzero | Part::DecimalNonzero) {
            return Ok(());
        }
        self.out.write_str(step.text)?;
        match step.part {
            Part::HexAlways | Part::HexNonzero => signed_hexadecimal(self.out, value),
            _ => signed(self.out, value),
        }
    }

    /// A number that is read as a signed one.
    fn signed_number(&mut self, slot: usize) -> fmt::Result {
        match self.reader.value(slot) {
            Value::Imm(value) => signed_hexadecimal(self.out, value),
            _ => Ok(()),
        }
    }

    /// Parts whose text is only written under a condition.
    fn conditional(&mut self, step: &Step) -> fmt::Result {
        let raw = if step.part == Part::Packed { 0 } else { self.raw(step) };
        let text = step.text;
        match step.part {
            // Where there is no global data share, its bit says nothing.
            Part::GdsFlag if raw == 0 || !self.isa.has(Feature::Gds) => Ok(()),
            Part::GdsFlag => self.out.write_str(text),
            Part::CachePolicy => self.cache_policy(raw, step.extra),
            Part::Offset => self.offset(raw, step),
            Part::FlatOffset => self.flat_offset(raw, step),
            Part::DppFetchInvalid if raw == 1 || raw == 0xea => self.out.write_str(text),
            Part::DppFetchInvalid => Ok(()),
            Part::Packed => self.packed(step),
            Part::OpSelConvert => self.pair(text, raw & 4 != 0, raw & 8 != 0),
            Part::OpSelPermute => {
                let other = self.reader.raw(usize::from(step.extra[0]));
                self.pair(text, raw & 4 != 0, other & 4 != 0)
            }
            Part::OutputModifier => self.out.write_str(["", " mul:2", " mul:4", " div:2"][raw as usize & 3]),
            Part::R128A16 if raw == 0 => Ok(()),
            Part::R128A16 => self.r128_a16(),
            Part::Blgp => self.blgp(raw, step.extra[0] != 0),
            Part::BitOp3 | Part::IndexKey | Part::MatrixFormat | Part::MatrixScale | Part::MatrixScaleFormat => {
                self.matrix(step, raw)
            }
            Part::Swizzle => self.swizzle(text, raw as u16),
            Part::EndProgram if raw == 0 => Ok(()),
            Part::TypedFormat => self.typed_format(raw),
            _ => {
                self.out.write_str(text)?;
                self.rare(step, raw)
            }
        }
    }

    /// Parts whose text was written.
    fn rare(&mut self, step: &Step, raw: u64) -> fmt::Result {
        let slot = usize::from(step.slot);
        match step.part {
            Part::Register => self.register_only(slot),
            Part::Branch => self.branch(raw as u16),
            Part::FloatModifiers => self.float_modifiers(step, raw),
            Part::IntegerModifiers => self.integer_modifiers(step, raw),
            Part::Vcc => self.vcc(),
            Part::AddressList => self.address_list(slot, step.extra[0]),
            Part::U16 => self.number16(slot, raw),
            Part::U32 => hexadecimal(self.out, raw & 0xffff_ffff),
            Part::Fp64 => self.literal_fp64(slot),
            Part::ScalarOffset => self.signed_number(slot),
            Part::DppControl => self.dpp_control(raw, step.extra[0]),
            Part::Dpp8 => self.dpp8(raw),
            Part::SdwaSelect => self.out.write_str(dpp::SDWA_SELECTS.get(raw as usize).unwrap_or(&"")),
            Part::SdwaUnused => self.out.write_str(dpp::SDWA_UNUSED[raw as usize & 3]),
            Part::Dim => self.out.write_str(DIMENSIONS[raw as usize & 7]),
            Part::Attribute => decimal(self.out, raw),
            Part::AttributeComponent => self.out.write_str([".x", ".y", ".z", ".w"][raw as usize & 3]),
            Part::AttributeParameter => self.attribute_parameter(raw),
            Part::ExportTarget => self.export_target(raw),
            Part::ExportSource => self.export_source(slot, step.extra),
            Part::EndProgram => decimal(self.out, raw & 0xffff),
            _ => self.scalar_control(step.part, raw as u16),
        }
    }

    /// The name of VCC in the size of a wave.
    fn vcc(&mut self) -> fmt::Result {
        self.out.write_str(match crate::kind::lane_mask_dwords(self.isa) {
            1 => "vcc_lo",
            _ => "vcc",
        })
    }

    /// The label of a branch's target, or the number of the field.
    fn branch(&mut self, field: u16) -> fmt::Result {
        match self.options.label {
            Some(label) if label(self.out, field)? => Ok(()),
            _ => decimal(self.out, u64::from(field)),
        }
    }

    /// ` op_sel:[a,b]` unless both are off.
    fn pair(&mut self, text: &str, a: bool, b: bool) -> fmt::Result {
        if !a && !b {
            return Ok(());
        }
        self.out.write_str(text)?;
        self.out.write_str(if a { "1," } else { "0," })?;
        self.out.write_str(if b { "1]" } else { "0]" })
    }
}

/// Dimensions of images.
const DIMENSIONS: [&str; 8] = ["1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY", "2D_MSAA", "2D_MSAA_ARRAY"];
