//! Registers, constants and literals in text.
//!
//! Invariants: a literal that a constant could replace is written as `lit(…)`, so that text assembles to the same
//! bytes. A register or constant that is invalid for its operand is written with a comment, as LLVM does.

use super::TextWriter;
use super::program::source_number;
use super::registers::RegisterNames;
use crate::effects;
use crate::kind::{KindRow, OperandType};
use crate::operand::image;
use crate::reg::{Reg, RegFile};
use crate::tables::{Feature, Slot};
use crate::target_class::TargetClass;
use crate::value::{self, OperandValue};
use core::fmt::{self, Write};
use hotswap_isa_tables::{ShortForm, TextStep};

impl TextWriter<'_, '_, '_> {
    /// The kind of the operand in a slot.
    fn slot_kind(&self, slot: usize) -> Option<&'static KindRow> {
        self.reader.slots.get(slot).map(Slot::operand_kind)
    }

    /// Writes an operand in the usual form.
    pub(super) fn write_operand(&mut self, slot: usize) -> fmt::Result {
        self.operand_at(slot, 0, 0)
    }

    /// The same with the position of its field, width 0 if that is not one run of bits.
    #[inline]
    pub(super) fn operand_at(&mut self, slot: usize, at: u8, width: u8) -> fmt::Result {
        let Some(kind) = self.slot_kind(slot) else { return Ok(()) };
        let value = self.reader.value_at(slot, kind, at, width);
        match value {
            OperandValue::Reg(reg) => self.classed_register(slot, reg, kind),
            _ => self.write_value(value, kind),
        }
    }

    fn write_value(&mut self, value: OperandValue, kind: &KindRow) -> fmt::Result {
        match value {
            OperandValue::Reg(reg) => reg.write(self.out),
            OperandValue::Inline(inline) => self.write_constant(inline.value as u64, kind.operand_type),
            OperandValue::Literal(literal) if literal.explicit => {
                self.out.write_str(if literal.wide { "lit64(" } else { "lit(" })?;
                self.out.write_hexadecimal(literal.value)?;
                self.out.write_char(')')
            }
            OperandValue::Literal(literal) => self.write_constant(literal.value, kind.operand_type),
            OperandValue::Imm(value) => match kind.operand_type {
                OperandType::Unknown | OperandType::Pcrel => self.out.write_signed(value),
                _ => self.write_constant32(value as u32),
            },
            OperandValue::None => self.out.write_str("/*INV_OP*/"),
        }
    }

    /// Writes a register, with a comment if it is not in the operand's class.
    fn classed_register(&mut self, slot: usize, reg: Reg, kind: &KindRow) -> fmt::Result {
        reg.write(self.out)?;
        self.beyond_first_bank(slot, reg)?;
        let class = TargetClass::new(kind.class, self.isa);
        if class.contains(reg) {
            return Ok(());
        }
        let name = class.name(reg.count);
        self.out.write_str("/*Invalid register, operand has '")?;
        self.out.write_str(name.stem)?;
        if let Some(bits) = name.bits {
            self.out.write_decimal(u64::from(bits))?;
        }
        self.out.write_str(name.suffix)?;
        self.out.write_str("' register class*/")
    }

    /// Writes the physical register, if the bank mode makes it another than the encoding names.
    fn beyond_first_bank(&mut self, slot: usize, reg: Reg) -> fmt::Result {
        if !self.options.banks.any_beyond() || reg.file != RegFile::Vgpr {
            return Ok(());
        }
        let role = effects::bank_role(self.reader.inst.entry(), slot as u8);
        match self.options.banks.resolve_register(reg, role) {
            Some(meant) if meant != reg => {
                self.out.write_str(" /*")?;
                meant.write(self.out)?;
                self.out.write_str("*/")
            }
            _ => Ok(()),
        }
    }

    /// Writes a register of an operand whose class is not checked.
    pub(super) fn register_only(&mut self, slot: usize) -> fmt::Result {
        match self.reader.operand_value(slot) {
            OperandValue::Reg(reg) => reg.write(self.out),
            _ => Ok(()),
        }
    }

    /// Writes bits in the form for the operand's type.
    fn write_constant(&mut self, bits: u64, operand_type: OperandType) -> fmt::Result {
        use OperandType as T;
        let low = bits as u16;
        match operand_type {
            T::RegImmInt64 | T::RegInlineCInt64 | T::RegImmV2int64 => self.write_constant64(bits, false),
            T::RegImmFp64 | T::RegInlineCFp64 | T::RegInlineAcFp64 | T::RegImmV2fp64 => {
                self.write_constant64(bits, true)
            }
            T::RegInlineCInt16 | T::RegImmInt16 => {
                let known = value::single_text(bits as u32);
                self.constant_or(i64::from(bits as u32 as i32), known, u64::from(low))
            }
            T::RegInlineCFp16 | T::RegImmFp16 => {
                self.constant_or(i64::from(low as i16), value::half_text(low), u64::from(low))
            }
            T::RegInlineCBf16 | T::RegImmBf16 => {
                self.constant_or(i64::from(low as i16), value::brain_text(low), bits & 0xffff_ffff)
            }
            T::Register => {
                self.write_constant32(bits as u32)?;
                self.out.write_str("/*Invalid immediate*/")
            }
            _ => self.packed_constant(bits as u32, operand_type),
        }
    }

    /// Two values of 16 bits, or one of 32.
    fn packed_constant(&mut self, bits: u32, operand_type: OperandType) -> fmt::Result {
        use OperandType as T;
        let low = bits as u16;
        let upper = bits >> 16;
        let known = match operand_type {
            T::RegImmV2fp16 | T::RegInlineCV2fp16 if upper == 0 => value::half_text(low),
            T::RegImmV2fp16Splat if self.isa.has(Feature::Gfx11Insts) => {
                if upper == u32::from(low) {
                    value::half_text(low)
                } else {
                    None
                }
            }
            T::RegImmV2fp16Splat if upper == 0 => value::half_text(low),
            T::RegImmV2bf16 | T::RegInlineCV2bf16 if upper == 0 => value::brain_text(low),
            T::RegImmV2fp16 | T::RegInlineCV2fp16 | T::RegImmV2fp16Splat | T::RegImmV2bf16 | T::RegInlineCV2bf16 => {
                None
            }
            T::RegImmNoinlineV2fp16 => None,
            _ => value::single_text(bits),
        };
        self.constant_or(i64::from(bits as i32), known, u64::from(bits))
    }

    /// A value of 32 bits.
    pub(super) fn write_constant32(&mut self, bits: u32) -> fmt::Result {
        self.constant_or(i64::from(bits as i32), value::single_text(bits), u64::from(bits))
    }

    fn write_constant64(&mut self, bits: u64, float: bool) -> fmt::Result {
        let rest = if float && bits as u32 == 0 { bits >> 32 } else { bits };
        self.constant_or(bits as i64, value::double_text(bits), rest)
    }

    /// An integer constant in decimal, a float constant by name, anything else in hexadecimal.
    fn constant_or(&mut self, integer: i64, known: Option<&str>, otherwise: u64) -> fmt::Result {
        if value::is_inline_integer(integer) {
            return self.out.write_signed(integer);
        }
        match known {
            Some(text) => self.out.write_str(text),
            None => self.out.write_hexadecimal(otherwise),
        }
    }

    /// A source with negation and absolute value before and around it. The modifiers are the step's operand, the source
    /// is the next one.
    pub(super) fn float_modifiers(&mut self, step: &TextStep, modifiers: u64) -> fmt::Result {
        let slot = usize::from(step.slot) + 1;
        if modifiers & 3 == 0 {
            return self.write_operand(slot);
        }
        let (negative, absolute) = (modifiers & 1 != 0, modifiers & 2 != 0);
        if let Some(name) = self.short_register(step) {
            if negative {
                self.out.write_letters(b"-", 1)?;
            }
            if absolute {
                self.out.write_letters(b"|", 1)?;
            }
            self.out.write_letters(name, usize::from(name[15]))?;
            return if absolute { self.out.write_letters(b"|", 1) } else { Ok(()) };
        }
        let value = self.reader.operand_value(slot);
        let plain = match value {
            OperandValue::Inline(_) | OperandValue::Imm(_) => true,
            OperandValue::Literal(literal) => !literal.explicit,
            _ => false,
        };
        // `-1` is another constant than the negation of 1, so the latter is written out.
        let spelled = negative && !absolute && plain;
        if negative {
            self.out.write_str(if spelled { "neg(" } else { "-" })?;
        }
        if absolute {
            self.out.write_char('|')?;
        }
        self.write_operand(slot)?;
        if absolute {
            self.out.write_char('|')?;
        }
        if spelled { self.out.write_char(')') } else { Ok(()) }
    }

    /// The name of the register after the step's modifiers, if it has a fast path.
    fn short_register(&self, step: &TextStep) -> Option<&'static [u8; 16]> {
        if step.form != ShortForm::Register {
            return None;
        }
        let number = source_number(step, self.reader.encoding_half(step.place & TextStep::SECOND_HALF != 0));
        // Parts of the field that are elsewhere are included, too.
        let whole = self.reader.raw_operand(usize::from(step.slot) + 1) as u16 ^ step.flip;
        if whole != number {
            return None;
        }
        RegisterNames::of(self.isa, self.options.banks).register(number, step)
    }

    /// A source that may be sign-extended.
    pub(super) fn integer_modifiers(&mut self, step: &TextStep, modifiers: u64) -> fmt::Result {
        let slot = usize::from(step.slot) + 1;
        let extended = modifiers & 16 != 0;
        if extended {
            self.out.write_str("sext(")?;
        }
        self.write_operand(slot)?;
        if extended { self.out.write_char(')') } else { Ok(()) }
    }

    /// Addresses of an image in registers of their own; only those that the dimension needs.
    pub(super) fn address_list(&mut self, slot: usize, count: u8) -> fmt::Result {
        let mut wanted = count;
        if let Some(image) = self.reader.inst.entry().image() {
            let sizes = image::image_sizes(&self.reader, image);
            if sizes.address < image.address {
                wanted = sizes.address;
            }
        }
        if wanted == 1 {
            return self.write_operand(slot);
        }
        for number in 0..usize::from(wanted) {
            self.out.write_str(if number == 0 { "[" } else { ", " })?;
            self.write_operand(slot + number)?;
        }
        self.out.write_char(']')
    }

    /// A number of 16 bits, or the version of `s_version`.
    pub(super) fn write_number16(&mut self, slot: usize, raw: u64) -> fmt::Result {
        let decode = self.slot_kind(slot).map(|kind| kind.decode);
        if decode == Some(crate::kind::Decode::Version) {
            return self.version(raw as u16);
        }
        self.out.write_hexadecimal(raw & 0xffff_ffff)
    }

    /// A literal of 64 bits that the encoding always has, as a float.
    pub(super) fn literal_fp64(&mut self, slot: usize) -> fmt::Result {
        match self.reader.operand_value(slot) {
            OperandValue::Literal(literal) if literal.explicit => {
                self.out.write_str("lit64(")?;
                self.out.write_hexadecimal(literal.value)?;
                self.out.write_char(')')
            }
            OperandValue::Literal(literal) if literal.value as u32 == 0 => {
                self.out.write_hexadecimal(literal.value >> 32)
            }
            OperandValue::Literal(literal) => self.out.write_hexadecimal(literal.value),
            _ => Ok(()),
        }
    }

    /// `blgp`, or negations of the double-precision products of gfx940.
    pub(super) fn write_blgp(&mut self, raw: u64, negates: bool) -> fmt::Result {
        if raw == 0 {
            return Ok(());
        }
        if negates && self.isa.has(Feature::Gfx940Insts) {
            let [first, second, third] = [0, 1, 2].map(|number| if raw >> number & 1 != 0 { "1" } else { "0" });
            for text in [" neg:[", first, ",", second, ",", third, "]"] {
                self.out.write_str(text)?;
            }
            return Ok(());
        }
        self.out.write_str(" blgp:")?;
        self.out.write_decimal(raw)
    }

    /// Writes `r128` or `a16`, which share a bit.
    pub(super) fn r128_a16(&mut self) -> fmt::Result {
        self.out.write_str(if self.isa.has(Feature::R128A16) { " a16" } else { " r128" })
    }

    /// A source of an export, or `off`. Compressed exports have two sources that are written twice.
    pub(super) fn export_source(&mut self, slot: usize, extra: [u8; 4]) -> fmt::Result {
        let [number, enable, compressed, _] = extra.map(usize::from);
        if self.reader.raw_operand(enable) >> number & 1 == 0 {
            return self.out.write_str("off");
        }
        let compressed = compressed != 255 && self.reader.raw_operand(compressed) != 0;
        self.register_only(if compressed { slot - number + number / 2 } else { slot })
    }

    /// The target of an export.
    pub(super) fn export_target(&mut self, raw: u64) -> fmt::Result {
        let (gfx10, gfx11) = (self.isa.has(Feature::Gfx10Insts), self.isa.has(Feature::Gfx11Insts));
        let (name, index) = match raw & 63 {
            id @ 0..=7 => (" mrt", Some(id)),
            8 => (" mrtz", None),
            9 if !gfx11 => (" null", None),
            id @ 12..=15 => (" pos", Some(id - 12)),
            16 if gfx10 => (" pos", Some(4)),
            20 if gfx10 => (" prim", None),
            id @ 21..=22 if gfx11 => (" dual_src_blend", Some(id - 21)),
            id @ 32..=63 if !gfx11 => (" param", Some(id - 32)),
            id => (" invalid_target_", Some(id)),
        };
        self.out.write_str(name)?;
        index.map_or(Ok(()), |index| self.out.write_decimal(index))
    }

    /// The parameter of an interpolation.
    pub(super) fn attribute_parameter(&mut self, raw: u64) -> fmt::Result {
        match raw {
            0 => self.out.write_str("p10"),
            1 => self.out.write_str("p20"),
            2 => self.out.write_str("p0"),
            _ => {
                self.out.write_str("invalid_param_")?;
                self.out.write_decimal(raw)
            }
        }
    }
}
