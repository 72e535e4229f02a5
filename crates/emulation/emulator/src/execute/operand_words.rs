//! Operands of rare instructions, read from the decoded instruction while it is executed.

use super::ExecContext;
use crate::micro::MicroOp;
use crate::registers::{ScalarName, slot_of};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Isa, Name, OperandValue};
use hotswap_semantics::{LANES, Lanes};

fn device_isa(step: &ExecContext<'_>) -> Isa {
    step.device.isa()
}

/// The operand of that name: its value, and its register in its bank.
fn named_operand(step: &ExecContext<'_>, op: &MicroOp, name: Name) -> Option<OperandValue> {
    let banks = VgprBanks::of_mode(step.wave.banks);
    let (number, operand) = op.inst.operands(device_isa(step)).enumerate().find(|(_, operand)| operand.name == name)?;
    match operand.value {
        OperandValue::Reg(reg) => {
            Some(OperandValue::Reg(banks.resolve_register(reg, bank_role(op.inst.entry(), number as u8))?))
        }
        value => Some(value),
    }
}

/// The dwords of an operand in the first 32 lanes.
pub(crate) fn operand_lanes(step: &ExecContext<'_>, op: &MicroOp, name: Name) -> Vec<Lanes> {
    match named_operand(step, op, name) {
        Some(OperandValue::Reg(reg)) => {
            (0..u16::from(reg.count)).map(|dword| register_lanes(step, reg, dword)).collect()
        }
        Some(OperandValue::Inline(inline)) => vec![[inline.value as u32; LANES]],
        Some(OperandValue::Literal(literal)) => vec![[literal.value as u32; LANES]],
        Some(OperandValue::Imm(number)) => vec![[number as u32; LANES]],
        Some(OperandValue::None) | None => Vec::new(),
    }
}

fn register_lanes(step: &ExecContext<'_>, reg: Reg, dword: u16) -> Lanes {
    if reg.file == RegFile::Vgpr {
        return *step.wave.block(reg.index + dword, 0);
    }
    let slot = slot_of(Reg { half: None, ..reg });
    let value = match slot {
        Some(ScalarName::Slot(slot)) => step.wave.scalars[usize::from(slot) + usize::from(dword)],
        _ => 0,
    };
    [value; LANES]
}

/// The vector register that an operand is.
pub(crate) fn vector_operand(step: &ExecContext<'_>, op: &MicroOp, name: Name) -> Option<Reg> {
    match named_operand(step, op, name)? {
        OperandValue::Reg(reg) if reg.file == RegFile::Vgpr => Some(reg),
        _ => None,
    }
}

/// Whether an operand is the constant 0.
pub(crate) fn is_zero(step: &ExecContext<'_>, op: &MicroOp, name: Name) -> bool {
    matches!(named_operand(step, op, name), Some(OperandValue::Inline(inline)) if inline.code == 128)
}

/// The first operand that is beyond the wave's vector registers.
pub(crate) fn operand_beyond_limit(step: &ExecContext<'_>, op: &MicroOp) -> Option<Reg> {
    let banks = VgprBanks::of_mode(step.wave.banks);
    let operands = op.inst.operands(device_isa(step)).enumerate();
    let registers = operands.filter_map(|(number, operand)| match operand.value {
        OperandValue::Reg(reg) if reg.file == RegFile::Vgpr => {
            banks.resolve_register(reg, bank_role(op.inst.entry(), number as u8))
        }
        _ => None,
    });
    { registers }.find(|reg| reg.index + u16::from(reg.count) > step.wave.vector_count)
}
