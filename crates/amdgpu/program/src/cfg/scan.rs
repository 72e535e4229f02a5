//! Finds the code of one function: from its entries along every path, and into blocks.
//!
//! Invariants: an instruction is decoded once, however many entries are added later. Bytes that no path reaches are not
//! visited. A draft's blocks are as complete as the jumps that are known.

mod blocks;

use super::const_prop::{self, DefUseList};
use super::context::{CfgContext, EdgeTarget, direct_target, resolve_target};
use super::draft::{FunctionDraft, JumpTarget, Tracked};
use super::sift;
use crate::named::NamedRegisterSets;
use crate::ops::AddressOp;
use crate::problem::{AnalysisProblem, ProblemReason};
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::{ClassifiedInst, Flag, Inst, Isa};
use std::hint::black_box;

/// Rounds of finding jumps and following them within one function.
const ROUNDS: usize = 16;

impl FunctionDraft {
    /// Follows all paths from more entries, as far as no addresses in registers are needed.
    pub(crate) fn walk_entries(&mut self, context: &CfgContext<'_, '_>, entries: &[u32]) {
        self.stack.extend(entries);
        self.entries.extend(entries);
        self.follow_known_paths(context);
        if self.tracks {
            self.due = true;
            self.leads = const_prop::referenced_stretches(context, self);
        }
    }

    /// Follows all known paths. Returns whether there were some.
    fn follow_known_paths(&mut self, context: &CfgContext<'_, '_>) -> bool {
        self.decode_reachable(context);
        let grown = self.grown;
        if grown {
            self.build_blocks(context);
            self.named = None;
        }
        grown
    }

    /// Follows addresses, and all paths that result from them.
    pub(crate) fn track_addresses(&mut self, context: &CfgContext<'_, '_>, touches: &mut DefUseList) {
        (self.due, self.leads, self.clock) = (false, Vec::new(), context.clobbers.clock());
        self.record_touches(context, touches);
        for round in 0..=ROUNDS {
            let tracked = const_prop::track_addresses(context, self, touches);
            let has_new_jumps = tracked.jumps != self.tracked.jumps;
            self.tracked = tracked;
            self.take_jumps(context);
            if self.stack.is_empty() {
                match has_new_jumps {
                    true => self.build_blocks(context),
                    false => self.link_calls(),
                }
                return;
            }
            if round == ROUNDS {
                let offset = self.stack.first().copied().unwrap_or(self.start);
                self.faults.insert(AnalysisProblem { offset, reason: ProblemReason::TooDeep });
                self.stack.clear();
                self.build_blocks(context);
            } else if self.follow_known_paths(context) {
                self.record_touches(context, touches);
            }
        }
    }

    /// The result of following addresses with the edges of a table, whose blocks are made.
    pub(crate) fn track_with_table(&mut self, context: &CfgContext<'_, '_>, touches: &mut DefUseList) -> Tracked {
        self.build_blocks(context);
        self.record_touches(context, touches);
        const_prop::track_addresses(context, self, touches)
    }

    /// Removes a table again.
    pub(crate) fn drop_table(&mut self, context: &CfgContext<'_, '_>) {
        self.table = None;
        self.build_blocks(context);
    }

    /// Records the registers that all its instructions touch.
    fn record_touches(&self, context: &CfgContext<'_, '_>, touches: &mut DefUseList) {
        touches.clear();
        let quiet = context.sift.quiet(context.ops);
        for index in self.starts.iter() {
            let offset = self.start + index as u32 * 4;
            let bytes = context.source.bytes.get(offset as usize..).unwrap_or_default();
            if quiet.is_some_and(|quiet| bytes.first_chunk().is_some_and(|bytes| quiet.classify_bytes(bytes).is_some()))
            {
                continue;
            }
            if let Ok(inst) = context.isa().decode(bytes) {
                touches.record_touches(offset, &inst, context.ops.line(&inst));
            }
        }
    }

    /// Collects the registers that its instructions name.
    pub(crate) fn name(&mut self, context: &CfgContext<'_, '_>) {
        let bytes = context.source.bytes.get(self.start as usize..).unwrap_or_default();
        self.named
            .get_or_insert_with(|| Box::new(NamedRegisterSets::of(context.isa(), context.ops, bytes, &self.starts)));
    }

    /// Execution runs on after the call at the end.
    pub(super) fn follow_last_call(&mut self, context: &CfgContext<'_, '_>) {
        let Some(call) = &mut self.last_call else { return };
        call.returns = true;
        let offset = call.offset;
        if let Some(inst) = context.decode_at(offset) {
            self.run_past_end(context, offset + u32::from(inst.len()));
        }
        self.build_blocks(context);
    }

    fn record_fault(&mut self, offset: u32, reason: ProblemReason) {
        self.faults.insert(AnalysisProblem { offset, reason });
    }

    /// Decodes everything that is reachable from the offsets on the stack.
    fn decode_reachable(&mut self, context: &CfgContext<'_, '_>) {
        while let Some(offset) = self.stack.pop() {
            self.grown = true;
            let index = self.index(offset);
            self.leaders.set_bit(index);
            if self.starts.get(index) {
                continue;
            }
            if self.is_inside(context, offset) {
                self.record_fault(offset, ProblemReason::Overlap);
                continue;
            }
            self.run_from(context, offset);
        }
    }

    /// Whether an offset is inside of an instruction, of which the longest has five dwords.
    fn is_inside(&self, context: &CfgContext<'_, '_>, offset: u32) -> bool {
        let index = self.index(offset);
        let before = (1..5).map_while(|back| index.checked_sub(back)).find(|before| self.starts.get(*before));
        let before = before.map(|before| self.start + before as u32 * 4);
        before
            .is_some_and(|before| context.decode_at(before).is_some_and(|inst| before + u32::from(inst.len()) > offset))
    }

    fn run_from(&mut self, context: &CfgContext<'_, '_>, mut offset: u32) {
        while !self.starts.get(self.index(offset)) {
            let next = match context.classify_at(offset) {
                Some(seen) => self.skip_undecoded(context, offset, seen),
                None => self.decode_instruction(context, offset),
            };
            match next {
                Some(next) if next < self.end => offset = next,
                Some(_) if self.keep_last_call(context, offset) => return,
                Some(next) => return self.run_past_end(context, next),
                None => return,
            }
        }
    }

    /// Handles an instruction that was not decoded. Returns the offset at which execution continues after it.
    #[inline(always)]
    fn skip_undecoded(&mut self, context: &CfgContext<'_, '_>, offset: u32, seen: ClassifiedInst) -> Option<u32> {
        // Constants after predicted branches let the next instruction begin before this length is known.
        let next = match seen.len {
            4 => black_box(offset + 4),
            8 => black_box(offset + 8),
            len => offset + u32::from(len),
        };
        self.mark_instruction(offset, seen.len)?;
        if seen.class == sift::PLAIN {
            return Some(next);
        }
        if seen.class == sift::END {
            return None;
        }
        let conditional = seen.class == sift::CONDITIONAL;
        self.goes_to(context.seen_target(offset), conditional.then_some(next));
        conditional.then_some(next)
    }

    /// Decodes an instruction. Returns the offset at which execution continues after it.
    fn decode_instruction(&mut self, context: &CfgContext<'_, '_>, offset: u32) -> Option<u32> {
        let Some(inst) = context.decode_at(offset) else {
            self.record_fault(offset, ProblemReason::Undecodable);
            return None;
        };
        self.mark_instruction(offset, inst.len())?;
        let op = context.ops.address_op(&inst);
        (op.is_passed() || self.handle_op(context, offset, &inst, op)).then_some(offset + u32::from(inst.len()))
    }

    /// Marks an instruction there; `None` if another one begins inside of it.
    #[inline(always)]
    fn mark_instruction(&mut self, offset: u32, len: u8) -> Option<()> {
        let index = self.index(offset);
        if (1..usize::from(len) / 4).any(|more| self.starts.get(index + more)) {
            self.record_fault(offset, ProblemReason::Overlap);
            return None;
        }
        self.starts.set_bit(index);
        Some(())
    }

    /// Runs past the function's end.
    fn run_past_end(&mut self, context: &CfgContext<'_, '_>, next: u32) {
        if (next as usize) < context.source.bytes.len() {
            self.reached.insert(next);
        } else {
            self.record_fault(next, ProblemReason::LeavesSection);
        }
    }

    /// Handles an instruction of interest. Returns whether execution continues after it.
    fn handle_op(&mut self, context: &CfgContext<'_, '_>, offset: u32, inst: &Inst, op: AddressOp) -> bool {
        let next = offset + u32::from(inst.len());
        match op {
            AddressOp::Mode => {
                self.modes.push(offset);
                // One at the end counts, too: it may spoil a change of the mode that comes next.
                self.banked = self.banked || next >= self.end || sets_banks(inst, context.isa());
                self.beyond |= VgprBanks::ENTRY.mode_after(inst, context.isa()).mode() != Some(0);
                self.indexed |= inst.index_mode(context.isa()) == Some(true);
            }
            AddressOp::GetPc => {
                self.tracks = true;
                self.counters.push(offset);
            }
            AddressOp::SetPc => {
                self.tracks = true;
                return false;
            }
            AddressOp::SwapPc => {
                self.tracks = true;
                self.mark_leader(next);
            }
            AddressOp::Call => {
                if let Some(EdgeTarget::Offset(target)) = direct_target(context, offset, inst) {
                    self.called.insert(target);
                }
                self.mark_leader(next);
            }
            AddressOp::AddPc | AddressOp::Branch => {
                if inst.is(Flag::Call) {
                    self.modes.push(offset);
                }
                return self.follow_branch(context, offset, inst);
            }
            _ => {}
        }
        true
    }

    fn mark_leader(&mut self, offset: u32) {
        if self.holds(offset) {
            self.leaders.set_bit(self.index(offset));
        }
    }

    fn follow_branch(&mut self, context: &CfgContext<'_, '_>, offset: u32, inst: &Inst) -> bool {
        let next = offset + u32::from(inst.len());
        let (conditional, target) = match inst.control_flow(context.address_of_offset(offset), context.isa()) {
            ControlFlow::Next => return true,
            ControlFlow::End => return false,
            ControlFlow::Call { target } => (true, target),
            ControlFlow::Branch { conditional, target } => (conditional, Some(target)),
            ControlFlow::Indirect { conditional } => (conditional, None),
        };
        self.goes_to(resolve_target(context, offset, target).unwrap_or(EdgeTarget::Wrong), conditional.then_some(next));
        conditional
    }

    /// Adds the target of a branch; execution continues after the branch unless it is always taken.
    fn goes_to(&mut self, target: EdgeTarget, next: Option<u32>) {
        if let EdgeTarget::Offset(target) = target {
            if self.holds(target) {
                self.stack.push(target);
            } else {
                self.reached.insert(target);
            }
        }
        if let Some(next) = next {
            self.mark_leader(next);
        }
    }

    /// Follows the jumps that were found; those into other functions belong to these.
    fn take_jumps(&mut self, context: &CfgContext<'_, '_>) {
        for jump in &self.tracked.jumps {
            let JumpTarget::To(place) = &jump.target else { continue };
            let Some(target) = context.source.offset_of(*place).filter(|target| target.is_multiple_of(4)) else {
                continue;
            };
            if !self.holds(target) {
                self.reached.insert(target);
            } else if !self.starts.get(self.index(target)) || !self.leaders.get(self.index(target)) {
                // An offset that overlaps an instruction was a fault already and remains one.
                if !self.faults.contains(&AnalysisProblem { offset: target, reason: ProblemReason::Overlap }) {
                    self.stack.push(target);
                }
            }
        }
        for call in &self.tracked.calls {
            self.called.extend(call.to.and_then(|place| context.source.offset_of(place)));
        }
    }
}

/// Whether an instruction changes some bank mode.
fn sets_banks(inst: &Inst, isa: Isa) -> bool {
    let all = [VgprBanks::ENTRY, VgprBanks::of_mode(0xff), VgprBanks::UNKNOWN];
    all.into_iter().any(|mode| mode_register_banks(mode.mode_after(inst, isa)) != mode_register_banks(mode))
}

fn mode_register_banks(mode: VgprBanks) -> [Option<u8>; 4] {
    BankRole::ALL.map(|role| mode.bank(role))
}
