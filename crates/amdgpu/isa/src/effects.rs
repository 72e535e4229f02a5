//! Reads and writes of an instruction: registers named by operands and implicit registers.
//!
//! Terms: an instruction *overwrites* a register if nothing of the old value is left; a *partial* write keeps some bits
//! (16-bit results, loads into one half, SDWA that preserves). The registers live before an instruction are therefore
//! those live after it, minus those it overwrites, plus those it reads.
//!
//! Invariants: a tied operand is both read and written. NULL is neither. Lane masks, VCC and EXEC are as wide as the
//! wave. The iterators do not allocate, and they look up nothing that the build script could compute: one table entry
//! for the instruction, one for each register.
//!
//! A vector write under a partial EXEC keeps the other lanes; such a write is *masked*. DPP with its masks has the old
//! value as a read operand.
//!
//! Absent on purpose: the value of EXEC. Registers selected by M0 are not among the effects of an instruction with
//! [`Flag::Indexed`](crate::Flag::Indexed), but the sets include every register that M0 may select. The index mode of
//! gfx9 is state of the wave, see [`Inst::index_mode`].

mod bits;
mod fetch;
mod flow;
mod implicit;
mod iter;
mod lookup;
mod memory;
mod place;
mod sets;
mod visit;

pub use bits::EffectBits;
pub use flow::ControlFlow;
pub use implicit::{ImplicitEffects, ImplicitSet};
pub use iter::EffectIter;
pub use memory::{CounterSet, MemoryAccess, Space, WaitCounter};
pub(crate) use place::{NamedField, NamedRegisters, half_piece, sized_by_fields};
pub use visit::EffectReader;

use crate::bank::BankRole;
use crate::reg::Reg;
use crate::{Inst, TableEntry};
use place::EntryEffects;

/// A register that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterEffect {
    /// The register as the encoding names it; for banked VGPRs the number within the bank.
    pub reg: Reg,
    /// Written rather than read.
    pub written: bool,
    /// The role that selects its VGPR bank, see [`VgprBanks::resolve`](crate::bank::VgprBanks::resolve).
    pub role: Option<BankRole>,
    /// Written, but something of the old value is left.
    pub partial: bool,
    /// Written in the lanes of EXEC only: the others keep the old value. A caller that proves that EXEC is full may
    /// treat it as overwritten.
    pub masked: bool,
    /// Number of the operand that names it; `None` if no operand does.
    pub slot: Option<u8>,
}

/// The role of operand number `slot` of an entry, `None` where the bank mode does not concern it.
#[must_use]
pub fn bank_role(entry: TableEntry, slot: u8) -> Option<BankRole> {
    EntryEffects::of(entry).all_places().find(|place| place.slot() == Some(slot))?.role()
}

/// An instruction as integers that fit registers. A reference to an [`Inst`] keeps it in memory, where it was written
/// in other pieces than it is read, which defeats store forwarding (10 ns of 38 for decoding with all effects).
#[derive(Debug, Clone, Copy)]
struct InstParts {
    /// The first four words.
    halves: [u64; 2],
    /// The last word, above it the entry and the length.
    rest: u64,
}

impl InstParts {
    #[inline(always)]
    fn of(inst: &Inst) -> Self {
        let [a, b, c, d, last] = *inst.words();
        let halves = [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32];
        Self { halves, rest: u64::from(last) | u64::from(inst.entry().id()) << 32 | u64::from(inst.len()) << 48 }
    }

    #[inline(always)]
    fn entry(self) -> TableEntry {
        TableEntry::new((self.rest >> 32) as u16)
    }

    /// The instruction, without the position of its literal.
    #[cold]
    fn inst(self) -> Inst {
        let [low, high] = self.halves;
        Inst::whole(low, high, self.rest as u32, self.entry().id(), (self.rest >> 48) as u8, 0)
    }
}
