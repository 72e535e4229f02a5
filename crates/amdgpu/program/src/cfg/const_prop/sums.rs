//! Sums of addresses and numbers: the steps that make an address from a program counter.

use super::flow::{KnownValues, ValueSolver};
use super::steps::{AddressStep, StepSource, TrackedKey};
use super::value::{Carry, TrackedValue};
use crate::address::PcValue;
use crate::ops::AddressOp;
use crate::place::ProgramByte;
use crate::source::{CodeSource, FixupKind};

impl ValueSolver<'_, '_, '_> {
    pub(super) fn apply_move64(&self, step: &AddressStep, state: &mut KnownValues, to: TrackedKey) {
        let (low, high) = match step.a {
            StepSource::Key(key) => (self.value_of_key(state, key), self.value_of_key(state, key + 1)),
            StepSource::Number(number) => {
                (TrackedValue::Number(number as u32), TrackedValue::Number((number >> 32) as u32))
            }
            StepSource::Fixup(fixup) => match self.resolve_fixup(fixup, 0) {
                Some(FixupTarget { kind: FixupKind::Abs64, place }) => {
                    (TrackedValue::Low(place, step.offset), TrackedValue::High(place, step.offset))
                }
                _ => (TrackedValue::Unknown, TrackedValue::Unknown),
            },
            StepSource::Unknown => (TrackedValue::Unknown, TrackedValue::Unknown),
        };
        self.set_value(state, to, low);
        self.set_value(state, to + 1, high);
    }

    pub(super) fn apply_absolute(&self, step: &AddressStep, state: &mut KnownValues, to: TrackedKey) {
        let StepSource::Fixup(fixup) = step.a else { return };
        let value = match self.resolve_fixup(fixup, 0) {
            Some(FixupTarget { kind: FixupKind::Abs32Lo | FixupKind::Abs32, place }) => {
                TrackedValue::Low(place, step.offset)
            }
            Some(FixupTarget { kind: FixupKind::Abs32Hi, place }) => TrackedValue::High(place, step.offset),
            _ => TrackedValue::Unknown,
        };
        self.set_value(state, to, value);
    }

    fn resolve_fixup(&self, number: u32, pc: u64) -> Option<FixupTarget> {
        fixup_target(self.context.source, number, pc)
    }

    pub(super) fn add_low(&mut self, step: &AddressStep, state: &mut KnownValues, to: TrackedKey) {
        let (a, b) = (self.read_source(state, step.a), self.read_source(state, step.b));
        let subtracts = step.op == AddressOp::Sub;
        let (value, carry) = match (a, b, step.b) {
            (TrackedValue::Low(place, pc), _, StepSource::Fixup(fixup)) if !subtracts => {
                match self.resolve_fixup(fixup, place.at).filter(|_| place.base == ProgramByte::CODE) {
                    Some(FixupTarget { place: after, .. }) => {
                        (TrackedValue::Low(after, pc), Carry::Of { before: place, after, at: step.offset })
                    }
                    None => (TrackedValue::Unknown, Carry::Unknown),
                }
            }
            (TrackedValue::Low(place, pc), TrackedValue::Number(number), _) => {
                let distance = if subtracts { u64::from(number).wrapping_neg() } else { u64::from(number) };
                let after = place.plus(distance);
                (TrackedValue::Low(after, pc), Carry::Of { before: place, after, at: step.offset })
            }
            (TrackedValue::Number(number), TrackedValue::Low(place, pc), _) if !subtracts => {
                let after = place.plus(u64::from(number));
                (TrackedValue::Low(after, pc), Carry::Of { before: place, after, at: step.offset })
            }
            (TrackedValue::Number(a), TrackedValue::Number(b), _) => {
                let (value, carry) = if subtracts { a.overflowing_sub(b) } else { a.overflowing_add(b) };
                (TrackedValue::Number(value), Carry::Bit(carry))
            }
            _ => {
                self.take_unknown([a, b]);
                (TrackedValue::Unknown, Carry::Unknown)
            }
        };
        self.set_value(state, to, value);
        state.carry = if step.op == AddressOp::AddSigned { Carry::Unknown } else { carry };
    }

    /// Marks addresses as taken that are operands of a sum with an unknown result.
    fn take_unknown(&mut self, values: [TrackedValue; 2]) {
        for place in values.into_iter().filter_map(TrackedValue::address_of_half) {
            self.take_address(place);
        }
    }

    pub(super) fn add_high(&mut self, step: &AddressStep, state: &mut KnownValues, to: TrackedKey) {
        let (a, b) = (self.read_source(state, step.a), self.read_source(state, step.b));
        let subtracts = step.op == AddressOp::SubWithBorrow;
        let value = match (a, b, step.b, state.carry) {
            (TrackedValue::High(place, pc), _, StepSource::Fixup(fixup), Carry::Of { at, .. }) if !subtracts => {
                match self.resolve_fixup(fixup, place.at).filter(|_| place.base == ProgramByte::CODE) {
                    Some(FixupTarget { place: after, .. }) => self.record_high_half(step, at, after, pc),
                    None => TrackedValue::Unknown,
                }
            }
            (TrackedValue::High(place, pc), TrackedValue::Number(number), _, Carry::Of { before, after, at })
                if place == before =>
            {
                let distance = u64::from(number) << 32;
                let distance = if subtracts { distance.wrapping_neg() } else { distance };
                self.record_high_half(step, at, after.plus(distance), pc)
            }
            (TrackedValue::Number(number), TrackedValue::High(place, pc), _, Carry::Of { before, after, at })
                if !subtracts && place == before =>
            {
                self.record_high_half(step, at, after.plus(u64::from(number) << 32), pc)
            }
            (TrackedValue::Number(a), TrackedValue::Number(b), _, Carry::Bit(bit)) => match subtracts {
                true => TrackedValue::Number(a.wrapping_sub(b).wrapping_sub(u32::from(bit))),
                false => TrackedValue::Number(a.wrapping_add(b).wrapping_add(u32::from(bit))),
            },
            _ => {
                self.take_unknown([a, b]);
                TrackedValue::Unknown
            }
        };
        self.set_value(state, to, value);
    }

    fn record_high_half(&mut self, step: &AddressStep, low: u32, to: ProgramByte, pc: u32) -> TrackedValue {
        if let Some(found) = &mut self.found {
            found.values.push(PcValue { pc, low, high: step.offset, to });
        }
        TrackedValue::High(to, pc)
    }

    pub(super) fn add_both(&mut self, step: &AddressStep, state: &mut KnownValues, to: TrackedKey) {
        let (base, other) = match (key_value_pair(step.a, self, state), key_value_pair(step.b, self, state)) {
            (Some(base), None) => (base, step.b),
            (None, Some(base)) if step.op == AddressOp::Add64 => (base, step.a),
            (Some(base), Some(_)) => (base, step.b),
            _ => ((TrackedValue::Unknown, TrackedValue::Unknown), StepSource::Unknown),
        };
        let pc = match base.0 {
            TrackedValue::Low(_, pc) => pc,
            _ => 0,
        };
        let distance = match other {
            StepSource::Number(number) => Some(number),
            StepSource::Key(key) => match (self.value_of_key(state, key), self.value_of_key(state, key + 1)) {
                (TrackedValue::Number(low), TrackedValue::Number(high)) => Some(u64::from(low) | u64::from(high) << 32),
                _ => None,
            },
            _ => None,
        };
        let subtracts = step.op == AddressOp::Sub64;
        let result = match (TrackedValue::address_of_halves(base.0, base.1), distance, other) {
            (Some(place), _, StepSource::Fixup(fixup)) if !subtracts && place.base == ProgramByte::CODE => {
                self.resolve_fixup(fixup, place.at).map(|target| target.place)
            }
            (Some(place), Some(distance), _) => {
                Some(place.plus(if subtracts { distance.wrapping_neg() } else { distance }))
            }
            _ => None,
        };
        match result {
            Some(place) => {
                let high = self.record_high_half(step, step.offset, place, pc);
                self.set_value(state, to, TrackedValue::Low(place, pc));
                self.set_value(state, to + 1, high);
            }
            None => {
                self.take_unknown([base.0, base.1]);
                self.set_value(state, to, TrackedValue::Unknown);
                self.set_value(state, to + 1, TrackedValue::Unknown);
            }
        }
    }

    pub(super) fn apply_load(&self, step: &AddressStep, state: &mut KnownValues) {
        let address = match (step.a, step.b) {
            (StepSource::Key(key), StepSource::Number(distance)) => {
                TrackedValue::address_of_halves(self.value_of_key(state, key), self.value_of_key(state, key + 1))
                    .map(|place| place.plus(distance))
            }
            _ => None,
        };
        let Some(to) = step.to else { return };
        for pair in 0..u32::from(step.dwords).div_ceil(2) {
            let loaded = address.and_then(|place| self.context.source.loaded(place.plus(u64::from(pair) * 8)));
            let (low, high) = match loaded {
                Some(place) => (TrackedValue::Low(place, step.offset), TrackedValue::High(place, step.offset)),
                None => (TrackedValue::Unknown, TrackedValue::Unknown),
            };
            self.set_value(state, to + pair * 2, low);
            if pair * 2 + 1 < u32::from(step.dwords) {
                self.set_value(state, to + pair * 2 + 1, high);
            }
        }
    }
}

fn key_value_pair(
    from: StepSource,
    solver: &ValueSolver<'_, '_, '_>,
    state: &KnownValues,
) -> Option<(TrackedValue, TrackedValue)> {
    match from {
        StepSource::Key(key) => Some((solver.value_of_key(state, key), solver.value_of_key(state, key + 1))),
        _ => None,
    }
}

/// The place that a fixup leads to.
pub(super) struct FixupTarget {
    kind: FixupKind,
    pub(super) place: ProgramByte,
}

/// The result of a fixup for an address to which its literal is added; `pc` is that address.
pub(super) fn fixup_target(source: &CodeSource<'_>, number: u32, pc: u64) -> Option<FixupTarget> {
    let fixup = source.fixups.get(number as usize)?;
    let here = source.address.wrapping_add(u64::from(fixup.offset));
    let moved = (fixup.addend as u64).wrapping_add(pc.wrapping_sub(here));
    let place = match fixup.kind {
        FixupKind::Abs64 | FixupKind::Abs32 | FixupKind::Abs32Lo | FixupKind::Abs32Hi => source.target(fixup)?,
        FixupKind::GotRel | FixupKind::GotRelLo | FixupKind::GotRelHi => {
            ProgramByte { base: ProgramByte::GOT | fixup.symbol, at: moved }
        }
        _ => source.symbols.get(fixup.symbol as usize)?.plus(moved),
    };
    Some(FixupTarget { kind: fixup.kind, place })
}
