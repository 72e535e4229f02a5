//! Copies of system SGPRs at the entries of kernels: each changed place is the first instruction of such a kernel, and
//! its new code is exactly the planned copies before that instruction.
//!
//! The registers that the copies write held the same values in the input when its kernels began, and those that they read
//! held none there: the descriptor did not set them up.

use super::{PlanDifference, PlannedChange, UnitPair};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, Name, OperandValue};

/// Checks the changed places of an old function.
pub(super) fn check_function(pair: &UnitPair<'_, '_, '_>, old: usize) -> Result<(), PlanDifference> {
    let function = &pair.old.program.functions[old];
    let name = pair.old.program.name(function);
    for PlannedChange { offset, old: first, code } in pair.plan.changes_in(function.start..function.end) {
        let shift = pair.shifts.iter().find(|shift| shift.kernel == name);
        let shift = shift
            .filter(|_| *offset == function.start)
            .ok_or_else(|| kernel_fault(*offset, "code is new inside of", &name))?;
        let (last, copies) =
            code.split_last().ok_or_else(|| kernel_fault(*offset, "the first instruction is missing in", &name))?;
        let planned: Vec<_> =
            shift.register_pairs().map(|one| Some(CopiedRegister { to: one.to, from: one.from })).collect();
        // Empty instructions keep the loops after them aligned.
        let copies = copies.iter().filter(|inst| inst.mnemonic() != "s_nop");
        let found: Vec<_> = copies.map(|inst| CopiedRegister::of_instruction(inst, pair.target)).collect();
        if last.words() != first.words() || planned != found {
            return Err(kernel_fault(*offset, "other registers than planned are copied at the entry of", &name));
        }
    }
    Ok(())
}

fn kernel_fault(offset: u32, what: &str, kernel: &str) -> PlanDifference {
    (offset, format!("{what} `{kernel}`"))
}

/// A scalar copy: its destination and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopiedRegister {
    to: u16,
    from: u16,
}

impl CopiedRegister {
    fn of_instruction(inst: &Inst, isa: Isa) -> Option<Self> {
        let (to, from) = (sgpr_operand(inst, isa, Name::Sdst)?, sgpr_operand(inst, isa, Name::Src0)?);
        (inst.mnemonic() == "s_mov_b32").then_some(Self { to, from })
    }
}

fn sgpr_operand(inst: &Inst, isa: Isa, name: Name) -> Option<u16> {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(Reg { file: RegFile::Sgpr, index, count: 1, .. })) => Some(index),
        _ => None,
    }
}
