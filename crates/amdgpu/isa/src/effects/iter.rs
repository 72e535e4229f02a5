//! Effects one by one, in a fixed order.
//!
//! Invariants: writes come before reads; in each, operands in LLVM's order precede registers without one; the registers
//! are the same as those of [`Inst::visit`].

use super::implicit::{self, ImplicitSet};
use super::lookup::Lookup;
use super::place::{EntryEffects, PlaceRange};
use super::visit::EffectRules;
use super::{InstParts, RegisterEffect};
use crate::{Inst, Isa};

impl Inst {
    /// Registers that it writes, then registers that it reads. [`Inst::visit`] is faster.
    #[inline(always)]
    #[must_use]
    pub fn effects(&self, isa: Isa) -> EffectIter {
        EffectIter::new(self, isa, true, true)
    }

    /// Registers that it reads.
    #[inline(always)]
    #[must_use]
    pub fn reads(&self, isa: Isa) -> EffectIter {
        EffectIter::new(self, isa, false, true)
    }

    /// Registers that it writes.
    #[inline(always)]
    #[must_use]
    pub fn writes(&self, isa: Isa) -> EffectIter {
        EffectIter::new(self, isa, true, false)
    }
}

/// Iterator over the reads or writes of an instruction: operands in LLVM's order, then registers without an operand.
#[derive(Debug, Clone)]
pub struct EffectIter {
    parts: InstParts,
    isa: Isa,
    line: EntryEffects,
    rules: EffectRules,
    lookup: Lookup,
    /// The next items: places, and then registers without an operand.
    places: PlaceRange,
    implicit: ImplicitSet,
    written: bool,
    /// Then the reads, and the reads that follow those.
    reads: bool,
    late: bool,
}

impl EffectIter {
    #[inline(always)]
    fn new(inst: &Inst, isa: Isa, writes: bool, reads: bool) -> Self {
        let (parts, line) = (InstParts::of(inst), EntryEffects::of(inst.entry()));
        let mut effects = Self {
            parts,
            isa,
            line,
            rules: EffectRules::of(parts, line),
            lookup: Lookup::of(isa),
            places: line.written_places(),
            implicit: ImplicitSet::new(line.implicit_writes()),
            written: true,
            reads,
            late: false,
        };
        if !writes {
            effects.advance();
        }
        effects
    }

    /// Advances to the next part; `false` if it does not exist.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        if self.reads {
            (self.reads, self.late, self.written) = (false, self.line.has_late(), false);
            (self.places, self.implicit) = (self.line.read_places(), ImplicitSet::new(self.line.implicit_reads()));
            return true;
        }
        let late = core::mem::take(&mut self.late);
        if late {
            self.places = self.line.late_places();
        }
        late
    }
}

impl Iterator for EffectIter {
    type Item = RegisterEffect;

    #[inline(always)]
    fn next(&mut self) -> Option<RegisterEffect> {
        loop {
            if let Some(place) = self.places.next() {
                let bits = place.effect_in(self.parts.halves, self.lookup);
                let bits =
                    if self.rules.is_plain() { bits } else { self.rules.apply_rules(bits, self.parts, self.isa) };
                if !bits.is_none() {
                    return bits.effect();
                }
            } else if let Some(register) = self.implicit.pop_first() {
                return implicit::implicit_effect(self.lookup, register, self.written).effect();
            } else if !self.advance() {
                return None;
            }
        }
    }
}
