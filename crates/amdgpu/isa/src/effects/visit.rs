//! All effects of an instruction at once, for callers that process every instruction.
//!
//! Invariants: the same registers as [`Inst::effects`] lists. Four places are always processed, whatever the
//! instruction has, and a constant is an empty effect: a mispredicted branch would cost more than all the rest.

use super::implicit::{ImplicitEffects, ImplicitSet};
use super::lookup::Lookup;
use super::place::EntryEffects;
use super::{EffectBits, InstParts, fetch};
use crate::value::OperandValue;
use crate::{Inst, Isa, Name};

/// The maximum number of places of an entry, a multiple of four; checked by the build script.
const MOST: usize = 16;

/// Reads the effects of one instruction after another, all on one target.
#[derive(Debug, Clone, Copy)]
pub struct EffectReader {
    isa: Isa,
    lookup: Lookup,
}

impl EffectReader {
    /// A reader for code of `isa`.
    #[inline]
    #[must_use]
    pub fn new(isa: Isa) -> Self {
        Self { isa, lookup: Lookup::of(isa) }
    }

    /// Passes to `each` the reads and writes of an instruction: every register that an operand names and, where the
    /// width or the choice is the instruction's own, registers without an operand, interspersed with empty effects. The
    /// remaining registers, which it always accesses implicitly, are the result.
    #[inline(always)]
    pub fn visit(self, inst: &Inst, mut each: impl FnMut(EffectBits)) -> ImplicitEffects {
        let (parts, line, lookup) = (InstParts::of(inst), EntryEffects::of(inst.entry()), self.lookup);
        if line.is_plain() {
            for place in line.first_places() {
                each(place.plain_effect(parts.halves, lookup));
            }
        } else if line.is_placed() {
            for group in line.place_groups() {
                for place in group.places() {
                    each(place.effect_in(parts.halves, lookup));
                }
            }
        } else {
            let [low, high] = parts.halves;
            let effects = effects_by_rules(low, high, parts.rest, self.isa);
            for bits in effects.found.iter().take(effects.count) {
                each(*bits);
            }
        }
        ImplicitEffects {
            writes: ImplicitSet::new(line.implicit_writes()),
            reads: ImplicitSet::new(line.implicit_reads()),
        }
    }
}

impl Inst {
    /// Its reads and writes, see [`EffectReader::visit`]; for one instruction.
    #[inline(always)]
    pub fn visit(&self, isa: Isa, each: impl FnMut(EffectBits)) -> ImplicitEffects {
        EffectReader::new(isa).visit(self, each)
    }
}

/// The first `count` of the effects are those of an instruction.
struct RuleEffects {
    found: [EffectBits; MOST],
    count: usize,
}

/// Effects of an instruction whose fields decide more than the numbers of registers. It is passed as single integers,
/// because a reference would force every other instruction to memory as well.
#[inline(never)]
fn effects_by_rules(low: u64, high: u64, rest: u64, isa: Isa) -> RuleEffects {
    let parts = InstParts { halves: [low, high], rest };
    let (line, lookup) = (EntryEffects::of(parts.entry()), Lookup::of(isa));
    let rules = EffectRules::of(parts, line);
    let mut found = [EffectBits::NONE; MOST];
    let mut count = 0;
    for (place, slot) in line.all_places().zip(&mut found) {
        *slot = rules.apply_rules(place.effect_in(parts.halves, lookup), parts, isa);
        count += 1;
    }
    RuleEffects { found, count }
}

/// Properties of an instruction's registers that its fields decide beyond their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct EffectRules {
    /// Vector results keep bits.
    keeps: bool,
    /// Other fields decide how many registers an operand has.
    sized: bool,
}

impl EffectRules {
    #[inline(always)]
    pub(super) fn of(parts: InstParts, line: EntryEffects) -> Self {
        if line.is_placed() { Self { keeps: false, sized: false } } else { Self::of_fields(parts, line) }
    }

    #[cold]
    fn of_fields(parts: InstParts, line: EntryEffects) -> Self {
        let keeps =
            line.is_sdwa() && preserves_unselected_bits(parts) || line.is_fetch() && fetch::in_part(&parts.inst());
        Self { keeps, sized: line.is_sized() }
    }

    /// Whether no rule applies.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        !self.keeps && !self.sized
    }

    /// The effect adjusted by the rules.
    #[cold]
    pub(super) fn apply_rules(self, bits: EffectBits, parts: InstParts, isa: Isa) -> EffectBits {
        if bits.is_none() {
            return bits;
        }
        let bits = if self.sized { with_size(bits, parts, isa) } else { bits };
        if self.keeps && bits.written() && bits.is_vector() { bits.with_kept() } else { bits }
    }
}

/// SDWA: the result is narrower than the dword (`dst_sel` 6), and the other bits are preserved (`dst_unused` 2).
fn preserves_unselected_bits(parts: InstParts) -> bool {
    let inst = parts.inst();
    inst.raw(Name::DstUnused) == Some(2) && inst.raw(Name::DstSel) != Some(6)
}

/// The same register with the number of dwords that the instruction's other fields determine.
fn with_size(bits: EffectBits, parts: InstParts, isa: Isa) -> EffectBits {
    let slot = bits.slot().and_then(|slot| parts.entry().slots().get(usize::from(slot)));
    let Some(slot) = slot else { return bits };
    let inst = parts.inst();
    match inst.operand(isa, slot.name) {
        Some(OperandValue::Reg(reg)) => {
            bits.with_register(fetch::touched_register(&inst, reg, slot.name, bits.written()))
        }
        _ => bits,
    }
}
