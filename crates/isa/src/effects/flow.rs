//! Where execution goes on.
//!
//! Invariants: a branch counts from the instruction behind it, in dwords; addresses wrap around at 64 bits, as the
//! program counter does.

use crate::kind::{Decode, KINDS};
use crate::value::Value;
use crate::{Entry, Flag, Inst, Isa, Piece, Slot};

/// Where execution goes on after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Behind it.
    Next,
    /// At an address that the instruction states; behind it as well if it is conditional.
    Branch {
        /// The address.
        target: u64,
        /// May also go on behind it.
        conditional: bool,
    },
    /// At an address in a register.
    Indirect {
        /// May also go on behind it.
        conditional: bool,
    },
    /// In a function that comes back behind it.
    Call {
        /// The address, if the instruction states it.
        target: Option<u64>,
    },
    /// Nowhere: the wave ends.
    End,
}

impl Inst {
    /// The address that it states as a place to go on at, if it stands at `pc`. Branches and direct calls.
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
            let bytes = self.operands(isa).find_map(|operand| constant(operand.value))?;
            return Some(next.wrapping_add(bytes));
        }
        None
    }

    /// Where execution goes on, if it stands at `pc`.
    #[must_use]
    pub fn flow(&self, pc: u64, isa: Isa) -> Flow {
        let entry = self.entry();
        let conditional = !entry.is(Flag::NoFallthrough);
        if entry.is(Flag::Call) {
            return Flow::Call { target: self.branch_target(pc, isa) };
        }
        if entry.is(Flag::Return) {
            return Flow::End;
        }
        if !entry.is(Flag::Branch) {
            return Flow::Next;
        }
        match self.branch_target(pc, isa) {
            Some(target) => Flow::Branch { target, conditional },
            None => Flow::Indirect { conditional },
        }
    }
}

impl Entry {
    /// Where instructions of this line state how far they branch: 16 bits, a signed number of dwords from the instruction
    /// behind them.
    pub fn branch_distance(self) -> Option<&'static [Piece]> {
        self.slots().iter().find(|slot| is_branch_distance(slot.kind)).map(Slot::pieces)
    }
}

fn is_branch_distance(kind: u16) -> bool {
    KINDS.get(usize::from(kind)).is_some_and(|kind| kind.decode == Decode::BranchTarget)
}

/// A constant of 64 bits; a literal of 32 bits is a signed number.
fn constant(value: Value) -> Option<u64> {
    match value {
        Value::Inline(inline) => Some(inline.value as u64),
        Value::Literal(literal) if literal.wide => Some(literal.value),
        Value::Literal(literal) => Some(i64::from(literal.value as u32 as i32) as u64),
        _ => None,
    }
}
