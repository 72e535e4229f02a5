//! Values of the followed registers along all paths.
//!
//! Invariants: a value only moves from "never" to known to unknown, so the rounds are bounded; after too many of them
//! nothing is claimed.

use super::steps::{From, Key, Step, Steps, vgpr_of};
use super::value::{Carry, Value};
use super::{Jump, Tracked};
use crate::ops::Op;
use crate::place::Place;
use crate::scan::{Context, Draft, Target, direct};
use hotswap_isa::Flag;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use std::collections::HashMap;

/// Every value changes at most twice; loops in loops need a round each.
const ROUNDS: usize = 64;

/// What is known at a point: a value for each followed register.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    values: Vec<Value>,
    pub(super) carry: Carry,
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

pub(super) struct Solver<'c, 's, 'a> {
    pub(super) context: &'c Context<'s, 'a>,
    draft: &'c Draft,
    pub(super) steps: &'c Steps,
    /// A bit for each followed register of a bit of a [`RegSet`], by register number.
    scalars: [u64; 128],
    vectors: HashMap<u16, u64>,
    /// Every followed lane.
    lanes: u64,
    events: Vec<Event>,
    /// Where the events of each block begin.
    first: Vec<u32>,
    pub(super) found: Option<Tracked>,
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

    pub(super) fn take(&mut self, place: Place) {
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

    pub(super) fn value(&self, state: &State, key: Key) -> Value {
        let number = self.steps.keys.get(&key);
        number.and_then(|number| state.values.get(*number)).copied().unwrap_or(Value::Unknown)
    }

    pub(super) fn set(&self, state: &mut State, key: Key, value: Value) {
        if let Some(slot) = self.steps.keys.get(&key).and_then(|number| state.values.get_mut(*number)) {
            *slot = value;
        }
    }

    pub(super) fn read(&self, state: &State, from: From) -> Value {
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
