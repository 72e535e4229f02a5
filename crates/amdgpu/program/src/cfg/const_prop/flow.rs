//! Values of the followed registers along all paths.
//!
//! Invariants: a value only moves from "never" to known to unknown, so the rounds are bounded; after too many of them
//! nothing is claimed.

use super::def_use::{ChainKind, DefUseList, scalar_registers, scalars_of};
use super::events::{OffsetEvent, RegisterEvent};
use super::steps::{
    AddressStep, AddressSteps, StepSource, TrackedKey, is_address_step, register_of, vector_register_of_key, vgpr_of,
};
use super::value::{Carry, TrackedValue};
use crate::address::{LossPoint, LostAddress};
use crate::bits::{DwordSet, each_bit};
use crate::block::BlockExit;
use crate::cfg::context::{CfgContext, EdgeTarget, direct_target};
use crate::cfg::draft::{FunctionDraft, JumpTarget, Tracked, TrackedCall, TrackedJump};
use crate::dataflow::{self, Dataflow, WorkList};
use crate::ops::AddressOp;
use crate::place::ProgramByte;
use hotswap_isa::effects::{EffectBits, EffectReader};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;

/// Every value changes at most twice; nested loops need a round each.
const ROUNDS: usize = 64;

/// The known values at a point: one for each followed register.
#[derive(Debug)]
pub(super) struct KnownValues {
    values: Vec<TrackedValue>,
    pub(super) carry: Carry,
}

/// The known values at the start of each block.
struct BlockValues {
    /// A row for each block.
    values: Vec<TrackedValue>,
    carries: Vec<Carry>,
    /// Blocks that a path reaches.
    reached: DwordSet,
    /// Values in a row.
    width: usize,
    /// Too many visits were needed.
    is_given_up: bool,
}

impl BlockValues {
    fn row_range(&self, block: usize) -> std::ops::Range<usize> {
        block * self.width..(block + 1) * self.width
    }

    /// Loads the values there. Returns whether a path reaches the block.
    fn load_values(&self, block: usize, state: &mut KnownValues) -> bool {
        if self.reached.get(block) {
            state.values.copy_from_slice(&self.values[self.row_range(block)]);
            state.carry = self.carries[block];
        }
        self.reached.get(block)
    }

    /// Every block is reached, with unknown values.
    fn give_up(&mut self) {
        if !self.is_given_up {
            self.values.fill(TrackedValue::Unknown);
            self.carries.fill(Carry::Unknown);
            self.reached = DwordSet::with_all_set(self.carries.len());
            self.is_given_up = true;
        }
    }

    /// Merges another path into a block. Returns whether less is known than before.
    fn merge_path(&mut self, block: usize, state: &KnownValues) -> bool {
        let row = self.row_range(block);
        let (row, carry) = (&mut self.values[row], &mut self.carries[block]);
        if self.reached.set_bit(block) {
            row.copy_from_slice(&state.values);
            *carry = state.carry;
            return true;
        }
        let mut changed = false;
        for (mine, theirs) in row.iter_mut().zip(&state.values) {
            let joined = mine.join(*theirs);
            changed |= joined != *mine;
            *mine = joined;
        }
        let joined = carry.join(state.carry);
        changed |= joined != *carry;
        *carry = joined;
        changed
    }
}

pub(super) struct ValueSolver<'c, 's, 'a> {
    pub(super) context: &'c CfgContext<'s, 'a>,
    draft: &'c FunctionDraft,
    pub(super) steps: &'c AddressSteps,
    /// Scalar registers that are followed, a bit for each.
    scalars: u128,
    /// The events of all registers, ascending by offset.
    events: Vec<OffsetEvent>,
    /// Where the events of each block begin.
    first: Vec<u32>,
    pub(super) found: Option<Tracked>,
}

pub(super) fn solve_values(
    context: &CfgContext<'_, '_>,
    draft: &FunctionDraft,
    steps: &AddressSteps,
    touches: &DefUseList,
) -> Tracked {
    let scalars = steps.keys.iter().filter(|(_, key)| *key < 128).fold(0, |all, (_, key)| all | 1 << key);
    let mut solver = ValueSolver { context, draft, steps, scalars, events: Vec::new(), first: Vec::new(), found: None };
    solver.collect_events(touches);
    let states = solver.solve_fixpoint();
    solver.found = Some(Tracked::default());
    let mut state = solver.unknown_state();
    for block in 0..draft.blocks.len() {
        match states.load_values(block, &mut state) {
            true => {
                solver.apply_block(block, &mut state);
                solver.lose_behind(block, &state, &states);
            }
            false => solver.mark_unreached(block),
        }
    }
    let mut found = solver.found.unwrap_or_default();
    found.lost.sort_unstable();
    found.lost.dedup();
    found.escapes |= steps.overflows;
    found.serving.clone_from(&steps.serving);
    found.jumps.sort_by_key(|jump| jump.offset);
    found.calls.sort_by_key(|call| call.offset);
    found.values.sort_by_key(|value| (value.high, value.low));
    found.values.dedup();
    found
}

/// The forward problem: the values at the start of each block.
struct ValueDataflow<'f, 'c, 's, 'a> {
    solver: &'f mut ValueSolver<'c, 's, 'a>,
    states: BlockValues,
    /// The values after the block that was visited last.
    state: KnownValues,
    /// Its only successor, if its branch tests a known SCC.
    only: Option<u32>,
    /// The visits that are left.
    budget: usize,
}

impl Dataflow for ValueDataflow<'_, '_, '_, '_> {
    type Flow = ();

    fn transfer(&mut self, block: usize) -> Option<()> {
        if self.budget == 0 {
            // Nothing is merged from here on.
            self.states.give_up();
            return None;
        }
        self.budget -= 1;
        self.states.load_values(block, &mut self.state);
        self.solver.apply_block(block, &mut self.state);
        self.only = self.solver.only_way(block, self.state.carry);
        Some(())
    }

    fn meet(&mut self, block: usize, (): &()) -> bool {
        let is_taken = self.only.is_none_or(|only| self.solver.draft.blocks.block_start(block) == only);
        is_taken && self.states.merge_path(block, &self.state)
    }
}

impl ValueSolver<'_, '_, '_> {
    /// Collects the events in each block, in order.
    fn collect_events(&mut self, touches: &DefUseList) {
        let steps = &self.steps.steps;
        self.events.extend(
            steps
                .iter()
                .enumerate()
                .map(|(number, step)| OffsetEvent { offset: step.offset, event: RegisterEvent::Step(number as u32) }),
        );
        let carries = steps.iter().any(|step| step.op.carries());
        for touch in touches.iter() {
            match touch.kind {
                ChainKind::Other => self.record_other_access(touch.offset, touch.effect),
                ChainKind::Scc if carries && !is_address_step(touch.offset, steps) => {
                    self.events.push(OffsetEvent { offset: touch.offset, event: RegisterEvent::Scc })
                }
                ChainKind::Indexed => {
                    let both = [RegisterEvent::Write(u64::MAX), RegisterEvent::Scc];
                    self.events.extend(both.map(|event| OffsetEvent { offset: touch.offset, event }));
                }
                ChainKind::Scc | ChainKind::Step | ChainKind::Seed | ChainKind::Always | ChainKind::Lane => {}
            }
        }
        if self.steps.keys.iter().any(|(_, key)| vgpr_of(key).is_some()) {
            self.collect_lanes();
        }
        self.events.sort_unstable();
        let mut at = 0;
        for block in 0..self.draft.blocks.len() {
            let start = self.draft.blocks.block_start(block);
            at += self.events[at..].iter().take_while(|event| event.offset < start).count();
            self.first.push(at as u32);
        }
        self.first.push(self.events.len() as u32);
    }

    /// An instruction that is not a step reads or writes scalar registers.
    fn record_other_access(&mut self, offset: u32, effect: EffectBits) {
        let touched = scalar_registers(effect) & self.scalars;
        if touched != 0 {
            let numbers = self.steps.keys.iter().filter(|(_, key)| *key < 128 && touched >> key & 1 != 0);
            self.push_event(offset, effect, numbers.fold(0, |bits, (number, _)| bits | 1 << number));
        }
    }

    fn push_event(&mut self, offset: u32, effect: EffectBits, bits: u64) {
        let event = if effect.written() { RegisterEvent::Write(bits) } else { RegisterEvent::Read(bits) };
        self.events.push(OffsetEvent { offset, event });
    }

    /// Adds instructions that are not steps and read or write vector registers of which a lane is followed.
    fn collect_lanes(&mut self) {
        let reader = EffectReader::new(self.context.isa());
        let (context, draft, steps) = (self.context, self.draft, self.steps);
        let followed: RegSet = steps.keys.iter().filter_map(|(_, key)| vector_register_of_key(key)).collect();
        for block in (0..draft.blocks.len()).map(|number| draft.block(number)) {
            let bytes = context.source.bytes.get(block.start as usize..).unwrap_or_default();
            for (at, inst) in context.isa().walk(bytes) {
                let (Ok(inst), offset) = (inst, block.start + at as u32) else { break };
                if offset >= block.end {
                    break;
                }
                reader.visit(&inst, |effect| {
                    // Few registers are followed: most effects end here.
                    if followed.has_bits(effect) && effect.reg().file == RegFile::Vgpr {
                        self.lane_effect(offset, effect);
                    }
                });
            }
        }
    }

    /// A vector register of which a lane is followed is read or written, perhaps by a step.
    fn lane_effect(&mut self, offset: u32, effect: EffectBits) {
        if self.steps.steps.binary_search_by_key(&offset, |step| step.offset).is_ok() {
            return;
        }
        let reg = effect.reg();
        let numbers = self.steps.keys.iter().filter(|(_, key)| {
            vgpr_of(*key).is_some_and(|vgpr: u16| (reg.index..reg.index + u16::from(reg.count)).contains(&vgpr))
        });
        let bits = numbers.fold(0, |bits, (number, _)| bits | 1 << number);
        if bits != 0 {
            self.push_event(offset, effect, bits);
        }
    }

    fn unknown_state(&self) -> KnownValues {
        KnownValues { values: vec![TrackedValue::Unknown; self.steps.keys.len()], carry: Carry::Unknown }
    }

    /// The state at the start of each block that a path reaches.
    fn solve_fixpoint(&mut self) -> BlockValues {
        let (blocks, width) = (&self.draft.blocks, self.steps.keys.len());
        let mut states = BlockValues {
            values: vec![TrackedValue::Unknown; blocks.len() * width],
            carries: vec![Carry::Unknown; blocks.len()],
            reached: DwordSet::new(blocks.len()),
            width,
            is_given_up: false,
        };
        let mut state = self.unknown_state();
        for (number, key) in self.steps.keys.iter() {
            if let Ok(register @ 0..108) = u8::try_from(key) {
                state.values[number] = TrackedValue::Entry(register);
            }
        }
        let mut pending = DwordSet::new(blocks.len());
        for offset in &self.draft.entries {
            if let Some(block) = blocks.block_starting_at(*offset) {
                states.merge_path(block, &state);
                pending.set_bit(block);
            }
        }
        let (draft, budget) = (self.draft, blocks.len().saturating_mul(ROUNDS));
        let mut problem = ValueDataflow { solver: self, states, state, only: None, budget };
        dataflow::solve(&mut problem, |block| draft.blocks.block_successors(block), WorkList::of(pending));
        problem.states
    }

    /// The only successor of a block whose branch tests a known SCC.
    fn only_way(&self, block: usize, carry: Carry) -> Option<u32> {
        let (Carry::Bit(scc), block) = (carry, self.draft.block(block)) else { return None };
        if block.exit != BlockExit::Conditional {
            return None;
        }
        let inst = self.context.decode_at(block.last)?;
        let wanted = match inst.mnemonic() {
            "s_cbranch_scc0" => false,
            "s_cbranch_scc1" => true,
            _ => return None,
        };
        match direct_target(self.context, block.last, &inst)? {
            EdgeTarget::Offset(target) if scc == wanted => Some(target),
            _ if scc != wanted => Some(block.end),
            _ => None,
        }
    }

    /// Marks the transfers in a block that no path reaches.
    fn mark_unreached(&mut self, block: usize) {
        let events = self.first[block] as usize..self.first[block + 1] as usize;
        let Some(found) = &mut self.found else { return };
        for OffsetEvent { event, .. } in &self.events[events] {
            let RegisterEvent::Step(number) = *event else { continue };
            let step = &self.steps.steps[number as usize];
            if step.op == AddressOp::SetPc {
                found.jumps.push(TrackedJump { offset: step.offset, target: JumpTarget::Never });
            }
        }
    }

    /// The state after a block.
    fn apply_block(&mut self, block: usize, state: &mut KnownValues) {
        let events = self.first[block] as usize..self.first[block + 1] as usize;
        for event in events {
            match self.events[event].event {
                RegisterEvent::Step(step) => self.apply_step(&self.steps.steps[step as usize], state),
                RegisterEvent::Write(bits) => self.forget_values(bits, state),
                RegisterEvent::Read(bits) => self.escape_values(bits, state),
                RegisterEvent::Scc => state.carry = Carry::Unknown,
            }
        }
    }

    fn forget_values(&self, bits: u64, state: &mut KnownValues) {
        each_bit(bits, |number| {
            if let Some(value) = state.values.get_mut(number) {
                *value = TrackedValue::Unknown;
            }
        });
    }

    /// Marks addresses that are read by an instruction that is not a step: they are not tracked any more.
    fn escape_values(&mut self, bits: u64, state: &KnownValues) {
        let mut places = Vec::new();
        each_bit(bits, |number| places.extend(state.values.get(number).and_then(|value| value.address_of_half())));
        for place in places {
            self.take_address(place);
        }
    }

    pub(super) fn take_address(&mut self, place: ProgramByte) {
        let Some(found) = &mut self.found else { return };
        if let Some(offset) = self.context.source.offset_of(place) {
            let marks = &self.context.source.marks;
            let named = marks.binary_search_by_key(&offset, |mark| mark.offset).is_ok();
            if named { found.taken.push(offset) } else { found.escapes = true }
        }
    }

    /// Applies the effects of a call.
    fn apply_call(&mut self, step: &AddressStep, callee: Option<ProgramByte>, state: &mut KnownValues) {
        if let Some(link) = step.to {
            self.set_value(state, link, TrackedValue::Unknown);
            self.set_value(state, link + 1, TrackedValue::Unknown);
        }
        self.lose_all(LossPoint::Callee(step.offset), state);
        let source = self.context.source;
        let changed = match callee {
            // For code outside only the convention is known.
            Some(place) => self.context.clobbers.of_call(source.offset_of(place)),
            None => self.context.clobbers.of_call(None),
        };
        let scalars = changed.map_or(u128::MAX, scalars_of);
        for (number, key) in self.steps.keys.iter() {
            let is_changed = match vgpr_of(key) {
                Some(vgpr) => changed.is_none_or(|changed| changed.touches(Reg::new(RegFile::Vgpr, vgpr, 1))),
                None => scalars >> (key & 127) & 1 != 0,
            };
            if is_changed {
                self.record_lost_address(number, LossPoint::Block(step.next), state);
                state.values[number] = TrackedValue::Unknown;
            }
        }
        state.carry = Carry::Unknown;
    }

    /// Notes the address that a followed register holds, if it holds one, as lost.
    fn record_lost_address(&mut self, number: usize, at: LossPoint, state: &KnownValues) {
        let Some(found) = &mut self.found else { return };
        let place = state.values.get(number).and_then(|value| value.address_of_half());
        let to = place.and_then(|place| self.context.source.offset_of(place));
        let reg = self.steps.keys.get(number).map(register_of);
        found.lost.extend(to.zip(reg).map(|(to, reg)| LostAddress { to, reg, at }));
    }

    fn lose_all(&mut self, at: LossPoint, state: &KnownValues) {
        (0..state.values.len()).for_each(|number| self.record_lost_address(number, at, state));
    }

    /// Notes the addresses that are known at a block's end but not in its successors.
    fn lose_behind(&mut self, block: usize, state: &KnownValues, states: &BlockValues) {
        if !state.values.iter().any(|value| value.address_of_half().is_some()) {
            return;
        }
        let (draft, only) = (self.draft, self.only_way(block, state.carry));
        for to in draft.blocks.block_successors(block).into_iter().map(|to| to as usize) {
            let start = draft.blocks.block_start(to);
            if only.is_some_and(|only| only != start) {
                continue;
            }
            for (number, joined) in states.values[states.row_range(to)].iter().enumerate() {
                if state.values[number].join(*joined) == TrackedValue::Unknown {
                    self.record_lost_address(number, LossPoint::Block(start), state);
                }
            }
        }
        match draft.blocks.exit_of_block(block) {
            // A jump that this pass resolves still counts as unknown here.
            BlockExit::Return | BlockExit::Unknown | BlockExit::Table | BlockExit::Tail => {
                self.lose_all(LossPoint::Callee(draft.block(block).last), state);
                self.lose_all(LossPoint::Exit, state);
            }
            BlockExit::Fall
            | BlockExit::Branch
            | BlockExit::Conditional
            | BlockExit::Jump
            | BlockExit::Call
            | BlockExit::End => {}
        }
    }

    pub(super) fn value_of_key(&self, state: &KnownValues, key: TrackedKey) -> TrackedValue {
        let number = self.steps.keys.number_of_key(key);
        number.and_then(|number| state.values.get(number)).copied().unwrap_or(TrackedValue::Unknown)
    }

    pub(super) fn set_value(&self, state: &mut KnownValues, key: TrackedKey, value: TrackedValue) {
        if let Some(slot) = self.steps.keys.number_of_key(key).and_then(|number| state.values.get_mut(number)) {
            *slot = value;
        }
    }

    pub(super) fn read_source(&self, state: &KnownValues, from: StepSource) -> TrackedValue {
        match from {
            StepSource::Key(key) => self.value_of_key(state, key),
            StepSource::Number(number) => TrackedValue::Number(number as u32),
            StepSource::Fixup(_) | StepSource::Unknown => TrackedValue::Unknown,
        }
    }

    fn apply_step(&mut self, step: &AddressStep, state: &mut KnownValues) {
        let followed = step.to.is_some_and(|key| self.steps.keys.has(key));
        match step.op {
            AddressOp::SetPc | AddressOp::SwapPc => return self.apply_transfer(step, state),
            AddressOp::Call => {
                let inst = self.context.decode_at(step.offset);
                let target = inst.and_then(|inst| direct_target(self.context, step.offset, &inst));
                let callee = match target {
                    Some(EdgeTarget::Offset(offset)) => Some(self.context.source.place_of(offset)),
                    Some(EdgeTarget::Outside(place)) => Some(place),
                    _ => None,
                };
                return self.apply_call(step, callee, state);
            }
            // A load from the code reads data; its address is not used elsewhere.
            AddressOp::Load => return self.apply_load(step, state),
            op if op.compares() => return self.apply_compare(step, state),
            _ if !followed => self.escape_sources(step, state),
            _ => {}
        }
        let a = self.read_source(state, step.a);
        let Some(to) = step.to else { return self.clear_carry(step, state) };
        match step.op {
            AddressOp::GetPc if self.steps.serving.binary_search(&step.offset).is_ok() => {
                self.set_value(state, to, TrackedValue::Unknown);
                self.set_value(state, to + 1, TrackedValue::Unknown);
            }
            AddressOp::GetPc => {
                let place = self.context.source.place_of(step.next);
                self.set_value(state, to, TrackedValue::Low(place, step.offset));
                self.set_value(state, to + 1, TrackedValue::High(place, step.offset));
            }
            AddressOp::Move if matches!(step.a, StepSource::Fixup(_)) => self.apply_absolute(step, state, to),
            AddressOp::Move | AddressOp::ReadLane | AddressOp::WriteLane => self.set_value(state, to, a),
            AddressOp::Move64 => self.apply_move64(step, state, to),
            AddressOp::SignExtend16 => {
                // Addresses have 48 bits and the high half already contains the sign.
                let extended = match a {
                    TrackedValue::Number(number) => TrackedValue::Number(number as i16 as u32),
                    TrackedValue::High(..) => a,
                    _ => TrackedValue::Unknown,
                };
                self.set_value(state, to, extended);
            }
            AddressOp::Absolute => {
                let absolute = match a {
                    TrackedValue::Number(number) => TrackedValue::Number((number as i32).unsigned_abs()),
                    _ => TrackedValue::Unknown,
                };
                self.set_value(state, to, absolute);
            }
            AddressOp::Select => {
                let joined = a.join(self.read_source(state, step.b));
                self.set_value(state, to, joined);
            }
            AddressOp::Add | AddressOp::AddSigned | AddressOp::Sub => return self.add_low(step, state, to),
            AddressOp::AddWithCarry | AddressOp::SubWithBorrow => self.add_high(step, state, to),
            AddressOp::Add64 | AddressOp::Sub64 => self.add_both(step, state, to),
            _ => (0..u32::from(step.dwords)).for_each(|more| self.set_value(state, to + more, TrackedValue::Unknown)),
        }
        self.clear_carry(step, state);
    }

    /// The result for two numbers; an address that is compared is not tracked any more.
    fn apply_compare(&mut self, step: &AddressStep, state: &mut KnownValues) {
        self.escape_sources(step, state);
        state.carry = match (self.read_source(state, step.a), self.read_source(state, step.b)) {
            (TrackedValue::Number(a), TrackedValue::Number(b)) => {
                let (a, b) = (a as i32, b as i32);
                Carry::Bit(match step.op {
                    AddressOp::Greater => a > b,
                    AddressOp::GreaterEqual => a >= b,
                    AddressOp::Less => a < b,
                    _ => a <= b,
                })
            }
            _ => Carry::Unknown,
        };
    }

    /// SCC of steps that set it without a meaning for addresses.
    fn clear_carry(&self, step: &AddressStep, state: &mut KnownValues) {
        if matches!(
            step.op,
            AddressOp::AddWithCarry
                | AddressOp::SubWithBorrow
                | AddressOp::Absolute
                | AddressOp::Add
                | AddressOp::Sub
                | AddressOp::AddSigned
        ) {
            state.carry = Carry::Unknown;
        }
    }

    fn escape_sources(&mut self, step: &AddressStep, state: &KnownValues) {
        for source in [step.a, step.b] {
            if let StepSource::Key(key) = source {
                let wide = matches!(step.op, AddressOp::Move64 | AddressOp::Add64 | AddressOp::Sub64);
                for key in key..=key + u32::from(wide) {
                    if let Some(place) = self.value_of_key(state, key).address_of_half() {
                        self.take_address(place);
                    }
                }
            }
        }
    }

    fn apply_transfer(&mut self, step: &AddressStep, state: &mut KnownValues) {
        let pair = match step.a {
            StepSource::Key(key) => (self.value_of_key(state, key), self.value_of_key(state, key + 1)),
            _ => (TrackedValue::Unknown, TrackedValue::Unknown),
        };
        let to = TrackedValue::address_of_halves(pair.0, pair.1);
        if let Some(found) = &mut self.found {
            if step.op == AddressOp::SwapPc {
                let link = step.to.and_then(|key| u8::try_from(key).ok()).unwrap_or(255);
                found.calls.push(TrackedCall { offset: step.offset, to, link });
            } else {
                let jump = match (to, pair) {
                    (Some(place), _) => JumpTarget::To(place),
                    (None, (TrackedValue::Entry(low), TrackedValue::Entry(high))) if high == low + 1 => {
                        JumpTarget::Return(low)
                    }
                    _ => JumpTarget::Unknown,
                };
                found.jumps.push(TrackedJump { offset: step.offset, target: jump });
            }
        }
        if step.op == AddressOp::SwapPc {
            self.apply_call(step, to, state);
        }
    }
}
