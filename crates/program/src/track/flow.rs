//! Values of the followed registers along all paths.
//!
//! Invariants: a value only moves from "never" to known to unknown, so the rounds are bounded; after too many of them
//! nothing is claimed.

use super::steps::{From, Key, Step, Steps, vgpr_of};
use super::value::{Carry, Value};
use super::{Jump, PcValue, Tracked};
use crate::ops::Op;
use crate::place::Place;
use crate::scan::{Context, Draft, Target, direct};
use crate::source::FixupKind;
use hotswap_isa::Flag;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use std::collections::HashMap;

/// Every value changes at most twice; loops in loops need a round each.
const ROUNDS: usize = 64;

/// What is known at a point: a value for each followed register.
#[derive(Debug, Clone, PartialEq)]
struct State {
    values: Vec<Value>,
    carry: Carry,
}

impl State {
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.values.iter_mut().zip(&other.values) {
            let joined = mine.join(*theirs);
            changed |= joined != *mine;
            *mine = joined;
        }
        let carry = self.carry.join(other.carry);
        changed |= carry != self.carry;
        self.carry = carry;
        changed
    }
}

/// Something that happens to followed registers.
#[derive(Debug, Clone, Copy)]
enum Event {
    Step(u32),
    /// Registers are overwritten by an instruction that is no step.
    Write(u64),
    /// Registers are read by an instruction that is no step.
    Read(u64),
    /// SCC is overwritten by such an instruction.
    Scc,
}

struct Solver<'c, 's, 'a> {
    context: &'c Context<'s, 'a>,
    draft: &'c Draft,
    steps: &'c Steps,
    /// A bit for each followed register of a bit of a [`RegSet`], by register number.
    scalars: [u64; 128],
    vectors: HashMap<u16, u64>,
    /// Every followed lane.
    lanes: u64,
    events: Vec<Event>,
    /// Where the events of each block begin.
    first: Vec<u32>,
    found: Option<Tracked>,
    restored: RegSet,
}

pub(super) fn solve(context: &Context<'_, '_>, draft: &Draft, steps: &Steps) -> Tracked {
    let mut solver = Solver {
        context,
        draft,
        steps,
        scalars: [0; 128],
        vectors: HashMap::new(),
        lanes: 0,
        events: Vec::new(),
        first: Vec::new(),
        found: None,
        restored: RegSet::EMPTY,
    };
    for (key, number) in &steps.keys {
        match vgpr_of(*key) {
            Some(vgpr) => *solver.vectors.entry(vgpr).or_default() |= 1 << number,
            None => solver.scalars[(*key & 127) as usize] |= 1 << number,
        }
    }
    solver.lanes = solver.vectors.values().fold(0, |all, bits| all | bits);
    solver.collect();
    let states = solver.fix();
    solver.found = Some(Tracked::default());
    for (block, state) in states.into_iter().enumerate() {
        if let Some(mut state) = state {
            solver.pass(block, &mut state);
        }
    }
    let mut found = solver.found.unwrap_or_default();
    found.escapes |= steps.overflows;
    found.restored = solver.restored;
    found.jumps.sort_by_key(|jump| jump.0);
    found.calls.sort_by_key(|call| call.0);
    found.values.sort_by_key(|value| (value.high, value.low));
    found.values.dedup();
    found
}

impl Solver<'_, '_, '_> {
    /// What happens in each block, in order.
    fn collect(&mut self) {
        let reader = EffectReader::new(self.context.isa());
        let mut step = 0;
        for block in &self.draft.blocks {
            self.first.push(self.events.len() as u32);
            let mut offset = block.start;
            while offset < block.end {
                let Some(inst) = self.context.decode(offset) else { break };
                while self.steps.steps.get(step).is_some_and(|step| step.offset < offset) {
                    step += 1;
                }
                if self.steps.steps.get(step).is_some_and(|step| step.offset == offset) {
                    self.events.push(Event::Step(step as u32));
                    let step = &self.steps.steps[step];
                    if let (Op::ReadLane, Some(key)) = (step.op, step.to) {
                        self.restored.insert(Reg::new(RegFile::Sgpr, key as u16, 1));
                    }
                } else {
                    self.effects(reader, &inst);
                }
                offset += u32::from(inst.len());
            }
        }
        self.first.push(self.events.len() as u32);
    }

    fn effects(&mut self, reader: EffectReader, inst: &hotswap_isa::Inst) {
        let (mut written, mut read) = (0, 0);
        let reloads = inst.is(Flag::FlatScratch) || inst.is(Flag::Mubuf);
        let restored = &mut self.restored;
        if reloads {
            reader.visit(inst, |effect| {
                if effect.written() {
                    restored.insert(effect.reg());
                }
            });
        }
        let implicit = reader.visit(inst, |effect| {
            let bits = self.bits(effect.reg());
            if effect.written() { written |= bits } else { read |= bits }
        });
        let mut scc = inst.is(Flag::Indexed);
        if scc {
            written = u64::MAX;
        }
        implicit.each(self.context.isa(), |effect| {
            scc |= effect.written() && effect.reg().is(Special::Scc);
            if effect.written() {
                written |= self.bits(effect.reg());
            }
        });
        if read != 0 {
            self.events.push(Event::Read(read));
        }
        if written != 0 {
            self.events.push(Event::Write(written));
        }
        if scc {
            self.events.push(Event::Scc);
        }
    }

    /// The followed registers among those of an operand.
    fn bits(&self, reg: Reg) -> u64 {
        if reg.file == RegFile::Vgpr {
            if self.lanes == 0 {
                return 0;
            }
            let all = (reg.index..reg.index + u16::from(reg.count)).filter_map(|vgpr| self.vectors.get(&vgpr));
            return all.fold(0, |bits, more| bits | more);
        }
        /// Words of a set with scalar registers and VCC.
        const SCALARS: usize = 20;
        let (word, low, high) = reg.set_bits();
        if !(SCALARS..SCALARS + 2).contains(&word) {
            return 0;
        }
        let mut bits = 0;
        each(low, |bit| bits |= self.scalars[((word - SCALARS) * 64 + bit) & 127]);
        if word == SCALARS {
            each(high, |bit| bits |= self.scalars[(64 + bit) & 127]);
        }
        bits
    }

    /// The state at the start of each block that a path comes to.
    fn fix(&mut self) -> Vec<Option<State>> {
        let blocks = &self.draft.blocks;
        let mut states: Vec<Option<State>> = vec![None; blocks.len()];
        let mut values = vec![Value::Unknown; self.steps.keys.len()];
        for (key, number) in &self.steps.keys {
            if let (Some(value), Ok(register @ 0..108)) = (values.get_mut(*number), u8::try_from(*key)) {
                *value = Value::Entry(register);
            }
        }
        let entry = State { values, carry: Carry::Unknown };
        let mut work = std::collections::BTreeSet::new();
        for offset in &self.draft.entries {
            if let Ok(block) = blocks.binary_search_by_key(offset, |block| block.start) {
                merge(&mut states[block], &entry);
                work.insert(block);
            }
        }
        let mut budget = blocks.len().saturating_mul(ROUNDS);
        while let Some(block) = work.pop_first() {
            if budget == 0 {
                states.iter_mut().flatten().for_each(|state| state.values.fill(Value::Unknown));
                break;
            }
            budget -= 1;
            let Some(mut state) = states[block].clone() else { continue };
            self.pass(block, &mut state);
            let first = self.draft.blocks[block].first_edge as usize;
            let edges = first..first + usize::from(self.draft.blocks[block].edges);
            for to in self.draft.edges.get(edges).unwrap_or_default() {
                if merge(&mut states[*to as usize], &state) {
                    work.insert(*to as usize);
                }
            }
        }
        states
    }

    /// The state behind a block.
    fn pass(&mut self, block: usize, state: &mut State) {
        let events = self.first[block] as usize..self.first[block + 1] as usize;
        for event in events {
            match self.events[event] {
                Event::Step(step) => self.step(&self.steps.steps[step as usize], state),
                Event::Write(bits) => self.forget(bits, state),
                Event::Read(bits) => self.escape(bits, state),
                Event::Scc => state.carry = Carry::Unknown,
            }
        }
    }

    fn forget(&self, bits: u64, state: &mut State) {
        each(bits, |number| {
            if let Some(value) = state.values.get_mut(number) {
                *value = Value::Unknown;
            }
        });
    }

    /// Addresses that an instruction reads which is no step go where they are not followed.
    fn escape(&mut self, bits: u64, state: &State) {
        let mut places = Vec::new();
        each(bits, |number| places.extend(state.values.get(number).and_then(|value| value.place())));
        for place in places {
            self.take(place);
        }
    }

    fn take(&mut self, place: Place) {
        let Some(found) = &mut self.found else { return };
        if let Some(offset) = self.context.source.offset_of(place) {
            let marks = &self.context.source.marks;
            let named = marks.binary_search_by_key(&offset, |mark| mark.offset).is_ok();
            if named { found.taken.push(offset) } else { found.escapes = true }
        }
    }

    /// What a call leaves.
    fn call(&self, callee: Option<Place>, state: &mut State) {
        let source = self.context.source;
        let changed = match callee {
            // Of code outside nothing is known but the convention.
            Some(place) => self.context.clobbers.of_call(source.offset_of(place)),
            None => self.context.clobbers.of_call(None),
        };
        for (key, number) in &self.steps.keys {
            let reg = match vgpr_of(*key) {
                Some(vgpr) => Reg::new(RegFile::Vgpr, vgpr, 1),
                None => Reg::new(RegFile::Sgpr, *key as u16, 1),
            };
            if changed.is_none_or(|changed| changed.touches(reg)) {
                state.values[*number] = Value::Unknown;
            }
        }
        state.carry = Carry::Unknown;
    }

    fn value(&self, state: &State, key: Key) -> Value {
        let number = self.steps.keys.get(&key);
        number.and_then(|number| state.values.get(*number)).copied().unwrap_or(Value::Unknown)
    }

    fn set(&self, state: &mut State, key: Key, value: Value) {
        if let Some(slot) = self.steps.keys.get(&key).and_then(|number| state.values.get_mut(*number)) {
            *slot = value;
        }
    }

    fn read(&self, state: &State, from: From) -> Value {
        match from {
            From::Key(key) => self.value(state, key),
            From::Number(number) => Value::Number(number as u32),
            From::Fixup(_) | From::Unknown => Value::Unknown,
        }
    }

    fn step(&mut self, step: &Step, state: &mut State) {
        let followed = step.to.is_some_and(|key| self.steps.keys.contains_key(&key));
        match step.op {
            Op::SetPc | Op::SwapPc => return self.transfer(step, state),
            Op::Call => {
                let inst = self.context.decode(step.offset);
                let target = inst.and_then(|inst| direct(self.context, step.offset, &inst));
                let callee = match target {
                    Some(Target::Offset(offset)) => Some(self.context.source.place_of(offset)),
                    Some(Target::Outside(place)) => Some(place),
                    _ => None,
                };
                return self.call(callee, state);
            }
            // A load from the code reads data; its address goes nowhere.
            Op::Load => return self.load(step, state),
            _ if !followed => self.escape_sources(step, state),
            _ => {}
        }
        let a = self.read(state, step.a);
        let Some(to) = step.to else { return self.flags(step, state) };
        match step.op {
            Op::GetPc => {
                let place = self.context.source.place_of(step.next);
                self.set(state, to, Value::Low(place, step.offset));
                self.set(state, to + 1, Value::High(place, step.offset));
            }
            Op::Move if matches!(step.a, From::Fixup(_)) => self.absolute(step, state, to),
            Op::Move | Op::ReadLane | Op::WriteLane => self.set(state, to, a),
            Op::Move64 => self.move64(step, state, to),
            Op::SignExtend16 => {
                // Addresses have 48 bits and the high half's sign stands there already.
                let extended = match a {
                    Value::Number(number) => Value::Number(number as i16 as u32),
                    Value::High(..) => a,
                    _ => Value::Unknown,
                };
                self.set(state, to, extended);
            }
            Op::Absolute => {
                let absolute = match a {
                    Value::Number(number) => Value::Number((number as i32).unsigned_abs()),
                    _ => Value::Unknown,
                };
                self.set(state, to, absolute);
            }
            Op::Select => {
                let joined = a.join(self.read(state, step.b));
                self.set(state, to, joined);
            }
            Op::Add | Op::AddSigned | Op::Sub => return self.add_low(step, state, to),
            Op::AddWithCarry | Op::SubWithBorrow => self.add_high(step, state, to),
            Op::Add64 | Op::Sub64 => self.add_both(step, state, to),
            _ => (0..u32::from(step.dwords)).for_each(|more| self.set(state, to + more, Value::Unknown)),
        }
        self.flags(step, state);
    }

    /// SCC of steps that set it without a meaning for addresses.
    fn flags(&self, step: &Step, state: &mut State) {
        if matches!(step.op, Op::AddWithCarry | Op::SubWithBorrow | Op::Absolute | Op::Add | Op::Sub | Op::AddSigned) {
            state.carry = Carry::Unknown;
        }
    }

    fn escape_sources(&mut self, step: &Step, state: &State) {
        for source in [step.a, step.b] {
            if let From::Key(key) = source {
                let wide = matches!(step.op, Op::Move64 | Op::Add64 | Op::Sub64);
                for key in key..=key + u32::from(wide) {
                    if let Some(place) = self.value(state, key).place() {
                        self.take(place);
                    }
                }
            }
        }
    }

    fn move64(&self, step: &Step, state: &mut State, to: Key) {
        let (low, high) = match step.a {
            From::Key(key) => (self.value(state, key), self.value(state, key + 1)),
            From::Number(number) => (Value::Number(number as u32), Value::Number((number >> 32) as u32)),
            From::Fixup(fixup) => match self.fixup(fixup, 0) {
                Some((FixupKind::Abs64, place)) => (Value::Low(place, step.offset), Value::High(place, step.offset)),
                _ => (Value::Unknown, Value::Unknown),
            },
            From::Unknown => (Value::Unknown, Value::Unknown),
        };
        self.set(state, to, low);
        self.set(state, to + 1, high);
    }

    fn absolute(&self, step: &Step, state: &mut State, to: Key) {
        let From::Fixup(fixup) = step.a else { return };
        let value = match self.fixup(fixup, 0) {
            Some((FixupKind::Abs32Lo | FixupKind::Abs32, place)) => Value::Low(place, step.offset),
            Some((FixupKind::Abs32Hi, place)) => Value::High(place, step.offset),
            _ => Value::Unknown,
        };
        self.set(state, to, value);
    }

    /// What a fixup makes of an address to which its literal is added; `pc` is that address.
    fn fixup(&self, number: u32, pc: u64) -> Option<(FixupKind, Place)> {
        let source = self.context.source;
        let fixup = source.fixups.get(number as usize)?;
        let here = source.address.wrapping_add(u64::from(fixup.offset));
        let moved = (fixup.addend as u64).wrapping_add(pc.wrapping_sub(here));
        let place = match fixup.kind {
            FixupKind::Abs64 | FixupKind::Abs32 | FixupKind::Abs32Lo | FixupKind::Abs32Hi => source.target(fixup)?,
            FixupKind::GotRel | FixupKind::GotRelLo | FixupKind::GotRelHi => {
                Place { base: Place::GOT | fixup.symbol, at: moved }
            }
            _ => source.symbols.get(fixup.symbol as usize)?.plus(moved),
        };
        Some((fixup.kind, place))
    }

    fn add_low(&mut self, step: &Step, state: &mut State, to: Key) {
        let (a, b) = (self.read(state, step.a), self.read(state, step.b));
        let subtracts = step.op == Op::Sub;
        let (value, carry) = match (a, b, step.b) {
            (Value::Low(place, pc), _, From::Fixup(fixup)) if !subtracts => {
                match self.fixup(fixup, place.at).filter(|_| place.base == Place::CODE) {
                    Some((_, after)) => (Value::Low(after, pc), Carry::Of { before: place, after, at: step.offset }),
                    None => (Value::Unknown, Carry::Unknown),
                }
            }
            (Value::Low(place, pc), Value::Number(number), _) => {
                let distance = if subtracts { u64::from(number).wrapping_neg() } else { u64::from(number) };
                let after = place.plus(distance);
                (Value::Low(after, pc), Carry::Of { before: place, after, at: step.offset })
            }
            (Value::Number(number), Value::Low(place, pc), _) if !subtracts => {
                let after = place.plus(u64::from(number));
                (Value::Low(after, pc), Carry::Of { before: place, after, at: step.offset })
            }
            (Value::Number(a), Value::Number(b), _) => {
                let (value, carry) = if subtracts { a.overflowing_sub(b) } else { a.overflowing_add(b) };
                (Value::Number(value), Carry::Bit(carry))
            }
            _ => {
                self.take_unknown([a, b]);
                (Value::Unknown, Carry::Unknown)
            }
        };
        self.set(state, to, value);
        state.carry = if step.op == Op::AddSigned { Carry::Unknown } else { carry };
    }

    /// Addresses that went into a sum of which nothing is known.
    fn take_unknown(&mut self, values: [Value; 2]) {
        for place in values.into_iter().filter_map(Value::place) {
            self.take(place);
        }
    }

    fn add_high(&mut self, step: &Step, state: &mut State, to: Key) {
        let (a, b) = (self.read(state, step.a), self.read(state, step.b));
        let subtracts = step.op == Op::SubWithBorrow;
        let value = match (a, b, step.b, state.carry) {
            (Value::High(place, pc), _, From::Fixup(fixup), Carry::Of { at, .. }) if !subtracts => {
                match self.fixup(fixup, place.at).filter(|_| place.base == Place::CODE) {
                    Some((_, after)) => self.high(step, at, after, pc),
                    None => Value::Unknown,
                }
            }
            (Value::High(place, pc), Value::Number(number), _, Carry::Of { before, after, at }) if place == before => {
                let distance = u64::from(number) << 32;
                let distance = if subtracts { distance.wrapping_neg() } else { distance };
                self.high(step, at, after.plus(distance), pc)
            }
            (Value::Number(number), Value::High(place, pc), _, Carry::Of { before, after, at })
                if !subtracts && place == before =>
            {
                self.high(step, at, after.plus(u64::from(number) << 32), pc)
            }
            (Value::Number(a), Value::Number(b), _, Carry::Bit(bit)) => match subtracts {
                true => Value::Number(a.wrapping_sub(b).wrapping_sub(u32::from(bit))),
                false => Value::Number(a.wrapping_add(b).wrapping_add(u32::from(bit))),
            },
            _ => {
                self.take_unknown([a, b]);
                Value::Unknown
            }
        };
        self.set(state, to, value);
    }

    fn high(&mut self, step: &Step, low: u32, to: Place, pc: u32) -> Value {
        if let Some(found) = &mut self.found {
            found.values.push(PcValue { pc, low, high: step.offset, to });
        }
        Value::High(to, pc)
    }

    fn add_both(&mut self, step: &Step, state: &mut State, to: Key) {
        let pair = |from: From| match from {
            From::Key(key) => Some((self.value(state, key), self.value(state, key + 1))),
            _ => None,
        };
        let (base, other) = match (pair(step.a), pair(step.b)) {
            (Some(base), None) => (base, step.b),
            (None, Some(base)) if step.op == Op::Add64 => (base, step.a),
            (Some(base), Some(_)) => (base, step.b),
            _ => ((Value::Unknown, Value::Unknown), From::Unknown),
        };
        let pc = match base.0 {
            Value::Low(_, pc) => pc,
            _ => 0,
        };
        let distance = match other {
            From::Number(number) => Some(number),
            From::Key(key) => match (self.value(state, key), self.value(state, key + 1)) {
                (Value::Number(low), Value::Number(high)) => Some(u64::from(low) | u64::from(high) << 32),
                _ => None,
            },
            _ => None,
        };
        let subtracts = step.op == Op::Sub64;
        let result = match (Value::address(base.0, base.1), distance, other) {
            (Some(place), _, From::Fixup(fixup)) if !subtracts && place.base == Place::CODE => {
                self.fixup(fixup, place.at).map(|(_, after)| after)
            }
            (Some(place), Some(distance), _) => {
                Some(place.plus(if subtracts { distance.wrapping_neg() } else { distance }))
            }
            _ => None,
        };
        match result {
            Some(place) => {
                let high = self.high(step, step.offset, place, pc);
                self.set(state, to, Value::Low(place, pc));
                self.set(state, to + 1, high);
            }
            None => {
                self.take_unknown([base.0, base.1]);
                self.set(state, to, Value::Unknown);
                self.set(state, to + 1, Value::Unknown);
            }
        }
    }

    fn load(&self, step: &Step, state: &mut State) {
        let address = match (step.a, step.b) {
            (From::Key(key), From::Number(distance)) => {
                Value::address(self.value(state, key), self.value(state, key + 1)).map(|place| place.plus(distance))
            }
            _ => None,
        };
        let Some(to) = step.to else { return };
        for pair in 0..u32::from(step.dwords).div_ceil(2) {
            let loaded = address.and_then(|place| self.context.source.loaded(place.plus(u64::from(pair) * 8)));
            let (low, high) = match loaded {
                Some(place) => (Value::Low(place, step.offset), Value::High(place, step.offset)),
                None => (Value::Unknown, Value::Unknown),
            };
            self.set(state, to + pair * 2, low);
            if pair * 2 + 1 < u32::from(step.dwords) {
                self.set(state, to + pair * 2 + 1, high);
            }
        }
    }

    fn transfer(&mut self, step: &Step, state: &mut State) {
        let pair = match step.a {
            From::Key(key) => (self.value(state, key), self.value(state, key + 1)),
            _ => (Value::Unknown, Value::Unknown),
        };
        let to = Value::address(pair.0, pair.1);
        if let Some(found) = &mut self.found {
            if step.op == Op::SwapPc {
                let link = step.to.and_then(|key| u8::try_from(key).ok()).unwrap_or(255);
                found.calls.push((step.offset, to, link));
            } else {
                let jump = match (to, pair) {
                    (Some(place), _) => Jump::To(place),
                    (None, (Value::Entry(low), Value::Entry(high))) if high == low + 1 => Jump::Return(low),
                    _ => Jump::Unknown,
                };
                found.jumps.push((step.offset, jump));
            }
        }
        if let Some(key) = step.to {
            self.set(state, key, Value::Unknown);
            self.set(state, key + 1, Value::Unknown);
        }
        if step.op == Op::SwapPc {
            self.call(to, state);
        }
    }
}

fn merge(slot: &mut Option<State>, state: &State) -> bool {
    match slot {
        Some(mine) => mine.join(state),
        None => {
            *slot = Some(state.clone());
            true
        }
    }
}

fn each(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
