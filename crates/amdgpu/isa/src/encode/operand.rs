//! Changing one operand of an instruction in place.
//!
//! Invariants: only the operand's bits change, with the bit elsewhere that selects the half of its register; a literal
//! changes only if no other operand reads it; the length never changes.
//!
//! Absent on purpose: rules about several operands at once (constant bus), which [`super::rebuild`] checks.

use super::build::{PlacedOperand, literal_bits, place_operand, put_register, put_value};
use super::constant::HeldLiteral;
use super::{EncodeError, OperandArg};
use crate::kind::Decode;
use crate::value::OperandValue;
use crate::{Inst, Isa, Name, Slot};

impl Inst {
    /// The same instruction with another operand `name`: register, constant, literal or number, checked as
    /// [`super::InstructionBuilder`] checks it. Of tied operands, changing the one that has its own bits changes both.
    ///
    /// # Errors
    /// The operand does not exist or does not take the value; the result is not the same instruction.
    pub fn with_operand(&self, isa: Isa, name: Name, arg: impl Into<OperandArg>) -> Result<Self, EncodeError> {
        let slots = self.entry().slots();
        let number = slots.iter().position(|slot| slot.name == name).ok_or(EncodeError::NoSuchOperand(name))?;
        let slot = slots.get(number).ok_or(EncodeError::NoSuchOperand(name))?;
        if slot.pieces().is_empty() {
            return Err(EncodeError::Implied(name));
        }
        let mut words = *self.words();
        match place_operand(self.entry(), slot, arg.into(), isa)? {
            None => return Err(EncodeError::Implied(name)),
            Some(PlacedOperand::Bits(bits)) => put_value(slot, &mut words, bits)?,
            Some(PlacedOperand::Reg(reg)) => put_register(self.entry(), number as u8, reg, isa, &mut words)?,
            Some(PlacedOperand::Literal(literal)) => {
                put_value(slot, &mut words, literal_bits(slot.operand_kind(), name, literal)?)?;
                self.put_literal(isa, slot, literal, &mut words)?;
            }
        }
        self.decode_same_entry(isa, &words)
    }

    /// Replaces the literal after the instruction, if only this operand reads it, or keeps an equal one.
    fn put_literal(&self, isa: Isa, slot: &Slot, new: HeldLiteral, words: &mut [u32; 5]) -> Result<(), EncodeError> {
        let (value, bytes) = match new {
            HeldLiteral::Short(value) => (u64::from(value), 4),
            HeldLiteral::Long(value) => (value, 8),
        };
        let field = matches!(slot.operand_kind().decode, Decode::Literal32 | Decode::Literal64);
        let wide = if self.literal_is_64() { 8 } else { 4 };
        match self.literal() {
            Some(old) if old == value && wide == bytes => return Ok(()),
            Some(_) if field || wide == bytes => {}
            _ => return Err(EncodeError::OtherLength { before: self.len(), after: self.len() + bytes }),
        }
        let others = self.operands(isa).filter(|operand| matches!(operand.value, OperandValue::Literal(_)));
        if others.into_iter().any(|operand| operand.name != slot.name) {
            return Err(EncodeError::TwoLiterals(slot.name));
        }
        if field {
            return Ok(());
        }
        let start = usize::from(self.len() - bytes) / 4;
        for (word, half) in
            words.iter_mut().skip(start).zip([value as u32, (value >> 32) as u32]).take(bytes as usize / 4)
        {
            *word = half;
        }
        Ok(())
    }
}
