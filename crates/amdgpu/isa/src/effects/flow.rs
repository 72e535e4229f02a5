//! Control flow after an instruction.
//!
//! Invariants: a branch offset counts dwords from the next instruction; addresses wrap around at 64 bits, as the
//! program counter does. `s_trap 2` ends the wave: AMDGPUUsage's trap handler ABI halts it and puts its queue into the error
//! state (`llvm.trap`), and LLVM emits nothing after it. The other traps are breakpoints and continue.

use crate::kind::{Decode, KINDS};
use crate::value::OperandValue;
use crate::{Flag, Inst, Isa, Name, Piece, Slot, TableEntry};

/// The trap ID of `llvm.trap` (AMDGPUUsage, "Trap Handler ABI"; `GCNSubtarget::TrapID::LLVMAMDHSATrap`).
const TRAP_ENDS_WAVE: u64 = 2;

/// Processors on which a privileged wave passes over `s_trap 2`: LLVM emits instructions after it that
/// halt the wave (`FeaturePrivEnabledTrap2NopBug`).
const TRAP_MAY_CONTINUE: &[&str] = &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx11-generic"];

/// The successors of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlow {
    /// Falls through to the next instruction.
    Next,
    /// Branches to an address that the instruction states; falls through as well if it is conditional.
    Branch {
        target: u64,
        /// May also fall through.
        conditional: bool,
    },
    /// Branches to an address in a register.
    Indirect {
        /// May also fall through.
        conditional: bool,
    },
    /// Calls a function that returns to the next instruction.
    Call {
        /// The address, if the instruction states it.
        target: Option<u64>,
    },
    /// No successor: the wave ends.
    End,
}

impl Inst {
    /// The branch target that the instruction states when it is at `pc`. Branches and direct calls.
    #[must_use]
    pub fn branch_target(&self, pc: u64, isa: Isa) -> Option<u64> {
        let entry = self.entry();
        if !entry.is(Flag::Salu) {
            return None;
        }
        let next = pc.wrapping_add(u64::from(self.len()));
        if let Some(pieces) = entry.branch_distance() {
            let dwords = self.gather(pieces) as u16 as i16;
            return Some(next.wrapping_add_signed(i64::from(dwords) * 4));
        }
        if entry.mnemonic() == "s_add_pc_i64" {
            let bytes = self.operands(isa).find_map(|operand| constant_value(operand.value))?;
            return Some(next.wrapping_add(bytes));
        }
        None
    }

    /// The successors of the instruction when it is at `pc`.
    #[must_use]
    pub fn control_flow(&self, pc: u64, isa: Isa) -> ControlFlow {
        let entry = self.entry();
        let conditional = !entry.is(Flag::NoFallthrough);
        if entry.is(Flag::Call) {
            return ControlFlow::Call { target: self.branch_target(pc, isa) };
        }
        if entry.is(Flag::Return) || entry.is(Flag::Trap) && self.trap_ends_wave(isa) {
            return ControlFlow::End;
        }
        if !entry.is(Flag::Branch) {
            return ControlFlow::Next;
        }
        match self.branch_target(pc, isa) {
            Some(target) => ControlFlow::Branch { target, conditional },
            None => ControlFlow::Indirect { conditional },
        }
    }

    fn trap_ends_wave(&self, isa: Isa) -> bool {
        self.raw(Name::Simm16) == Some(TRAP_ENDS_WAVE) && !TRAP_MAY_CONTINUE.contains(&isa.target().name)
    }
}

impl TableEntry {
    /// The field in which instructions of this entry state their branch offset: 16 bits, a signed number of dwords
    /// from the next instruction.
    pub fn branch_distance(self) -> Option<&'static [Piece]> {
        self.slots().iter().find(|slot| is_branch_distance(slot.kind)).map(Slot::pieces)
    }
}

fn is_branch_distance(kind: u16) -> bool {
    KINDS.get(usize::from(kind)).is_some_and(|kind| kind.decode == Decode::BranchTarget)
}

/// A constant of 64 bits; a literal of 32 bits is a signed number.
fn constant_value(value: OperandValue) -> Option<u64> {
    match value {
        OperandValue::Inline(inline) => Some(inline.value as u64),
        OperandValue::Literal(literal) if literal.wide => Some(literal.value),
        OperandValue::Literal(literal) => Some(i64::from(literal.value as u32 as i32) as u64),
        _ => None,
    }
}
