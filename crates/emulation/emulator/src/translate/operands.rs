//! Operands as sources and targets.

use crate::micro::{DestOperand, SourceOperand};
use crate::registers::VectorLimits;
use crate::registers::{DISCARD, NULL, ScalarName, slot_of};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, VgprHalf};
use hotswap_isa::{Inst, Isa, Name, Operand, OperandAccess, OperandValue};

/// The operands of an instruction.
pub(super) struct OperandReader {
    pub(super) inst: Inst,
    pub(super) isa: Isa,
    operands: Vec<Operand>,
    banks: VgprBanks,
    limits: VectorLimits,
}

impl OperandReader {
    pub(super) fn new(inst: Inst, isa: Isa, banks: VgprBanks, limits: VectorLimits) -> Self {
        Self { inst, isa, operands: inst.operands(isa).collect(), banks, limits }
    }

    /// The operands with their numbers.
    pub(super) fn numbered_operands(&self) -> impl Iterator<Item = (usize, &Operand)> {
        self.operands.iter().enumerate()
    }

    fn operand_position(&self, name: Name) -> Option<usize> {
        self.operands.iter().position(|operand| operand.name == name)
    }

    pub(super) fn has(&self, name: Name) -> bool {
        self.operand_position(name).is_some()
    }

    /// Whether an operand is written.
    pub(super) fn is_written(&self, name: Name) -> bool {
        self.operand_position(name).is_some_and(|number| self.operands[number].access != OperandAccess::Read)
    }

    /// Name of the kind of an operand.
    pub(super) fn kind(&self, name: Name) -> &'static str {
        self.operand_position(name).map_or("", |number| self.operands[number].kind().name)
    }

    /// The number that an operand is; 0 if it is not a number.
    pub(super) fn immediate_number(&self, name: Name) -> i64 {
        match self.operand_position(name).map(|number| self.operands[number].value) {
            Some(OperandValue::Imm(value)) => value,
            _ => self.inst.raw(name).unwrap_or(0) as i64,
        }
    }

    /// The register of operand `number` in its bank.
    fn resolve_register(&self, reg: Reg, number: usize) -> Option<Reg> {
        self.banks.resolve_register(reg, bank_role(self.inst.entry(), number as u8))
    }

    /// The operand `name` as a source.
    pub(super) fn source_operand(&self, name: Name) -> Option<SourceOperand> {
        self.source_at(self.operand_position(name)?)
    }

    /// Operand `number` as a source.
    pub(super) fn source_at(&self, number: usize) -> Option<SourceOperand> {
        let reg = match self.operands.get(number)?.value {
            OperandValue::Reg(reg) => self.resolve_register(reg, number)?,
            OperandValue::Inline(inline) => return Some(SourceOperand::Constant(inline.value as u64)),
            OperandValue::Literal(literal) => return Some(SourceOperand::Constant(literal.value)),
            OperandValue::Imm(value) => return Some(SourceOperand::Constant(value as u64)),
            OperandValue::None => return None,
        };
        if let Some(register) = self.limits.register_number(reg) {
            return Some(SourceOperand::Vector { register, high: reg.half == Some(VgprHalf::High) });
        }
        Some(match slot_of(reg)? {
            ScalarName::Slot(NULL) => SourceOperand::Constant(0),
            ScalarName::Slot(slot) => SourceOperand::Scalar(slot),
            ScalarName::Vccz => SourceOperand::Vccz,
            ScalarName::Execz => SourceOperand::Execz,
            ScalarName::Scc => SourceOperand::Scc,
        })
    }

    /// Whether a source names half of a register.
    pub(super) fn is_half(&self, number: usize) -> bool {
        matches!(self.operands.get(number).map(|operand| operand.value), Some(OperandValue::Reg(reg)) if reg.half.is_some())
    }

    /// The operand `name` as a target; NULL is a slot that is never read.
    pub(super) fn target_operand(&self, name: Name) -> Option<DestOperand> {
        let number = self.operand_position(name)?;
        let OperandValue::Reg(reg) = self.operands[number].value else { return None };
        let reg = self.resolve_register(reg, number)?;
        if let Some(register) = self.limits.register_number(reg) {
            return Some(DestOperand::Vector { register, high: reg.half == Some(VgprHalf::High) });
        }
        match slot_of(reg)? {
            ScalarName::Slot(NULL) => Some(DestOperand::Scalar(DISCARD)),
            ScalarName::Slot(slot) => Some(DestOperand::Scalar(slot)),
            _ => None,
        }
    }

    /// The first register of an operand that the wave does not have.
    pub(super) fn missing_register(&self) -> Option<Reg> {
        self.numbered_operands().find_map(|one| register_beyond_limit(one, self))
    }
}

fn register_beyond_limit((number, operand): (usize, &Operand), reader: &OperandReader) -> Option<Reg> {
    match operand.value {
        OperandValue::Reg(reg) => {
            reader.resolve_register(reg, number).and_then(|reg| reader.limits.last_beyond_limit(reg))
        }
        _ => None,
    }
}
