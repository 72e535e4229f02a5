//! Implicit operands as register sets.
//!
//! Invariants: MODE and M0 are written in part, everything else as a whole; EXEC and VCC are as wide as the wave.
//! Scalar instructions whose EXEC has a width of its own, and those for which a field decides, report such registers
//! among the effects without an operand instead.

use super::EffectBits;
use super::bits::NO_SLOT;
use super::lookup::Lookup;
use crate::{Implicit, Isa};

const _: () = assert!(Implicit::ALL.len() == 8);

/// A set of implicit registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImplicitSet(u8);

impl ImplicitSet {
    pub(super) const fn new(bits: u8) -> Self {
        Self(bits)
    }

    /// A bit for each [`Implicit`].
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether `register` is in it.
    #[inline]
    #[must_use]
    pub const fn has_register(self, register: Implicit) -> bool {
        self.0 >> (register as u8 & 7) & 1 != 0
    }

    /// Removes and returns the first one. There are eight, so a masked index needs no comparison.
    #[inline(always)]
    pub(super) fn pop_first(&mut self) -> Option<Implicit> {
        if self.0 == 0 {
            return None;
        }
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(Implicit::ALL[first & (Implicit::ALL.len() - 1)])
    }
}

/// The implicit reads and writes of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImplicitEffects {
    pub writes: ImplicitSet,
    pub reads: ImplicitSet,
}

/// The effect of a register that no operand names.
#[inline(always)]
pub(super) fn implicit_effect(lookup: Lookup, register: Implicit, written: bool) -> EffectBits {
    // Instructions that set a part of MODE, or of M0.
    let kept = written && matches!(register, Implicit::Mode | Implicit::M0);
    lookup.register_of_implicit(register).combined_with(EffectBits::of_place(written, kept, false, 0, NO_SLOT))
}

impl ImplicitEffects {
    /// Passes the effects to `each` one at a time: writes first, then reads.
    #[inline]
    pub fn for_each_effect(self, isa: Isa, mut each: impl FnMut(EffectBits)) {
        let lookup = Lookup::of(isa);
        for (mut set, written) in [(self.writes, true), (self.reads, false)] {
            while let Some(register) = set.pop_first() {
                each(implicit_effect(lookup, register, written));
            }
        }
    }
}
