//! Finds the code of one function: from its entries along every path, and into blocks.
//!
//! Invariants: an instruction is decoded once, however many entries are added later. Bytes that no path reaches are not
//! visited. A draft's blocks are as complete as the jumps that are known.

mod blocks;

use crate::bits::{Bits, Ranks};
use crate::block::{Block, Blocks, Goes};
use crate::named::Named;
use crate::ops::{Op, Ops};
use crate::place::Place;
use crate::problem::{Problem, Reason};
use crate::sift::{self, Sift, branch_target};
use crate::source::{Fixup, FixupKind, Source};
use crate::tables::Table;
use crate::track::{self, Clobbers, Jump, Touches, Tracked};
use hotswap_isa::bank::{Role, VgprBanks};
use hotswap_isa::effects::Flow;
use hotswap_isa::{Flag, Inst, Isa, Seen};
use std::collections::BTreeSet;
use std::hint::black_box;

/// Rounds of finding jumps and following them within one function.
const ROUNDS: usize = 16;

/// State that all functions share.
pub(crate) struct Context<'s, 'a> {
    pub(crate) source: &'s Source<'a>,
    pub(crate) ops: &'s Ops,
    pub(crate) clobbers: Clobbers,
    pub(crate) sift: Sift,
    /// Numbers of the fixups of branches in a file that is not linked; most files have none.
    branches: Vec<u32>,
}

impl<'s, 'a> Context<'s, 'a> {
    pub(crate) fn new(source: &'s Source<'a>, ops: &'s Ops) -> Self {
        let is_branch = |(_, fixup): &(usize, &Fixup)| fixup.kind == FixupKind::Rel16;
        let fixups = source.fixups.iter().enumerate().filter(|_| !source.linked);
        let branches: Vec<u32> = fixups.filter(is_branch).map(|(number, _)| number as u32).collect();
        let sift = Sift::new(source.isa, ops, source.bytes.len(), !branches.is_empty());
        Self { source, ops, clobbers: Clobbers::default(), sift, branches }
    }

    /// The fixup of the branch at an offset.
    fn branch_fixup(&self, offset: u32) -> Option<&'s Fixup> {
        let at = |number: &u32| self.source.fixups.get(*number as usize).map_or(u32::MAX, |fixup| fixup.offset);
        let number = self.branches.get(self.branches.partition_point(|number| at(number) < offset))?;
        self.source.fixups.get(*number as usize).filter(|fixup| fixup.offset - offset < 4)
    }

    pub(crate) fn isa(&self) -> Isa {
        self.source.isa
    }

    /// The instruction at an offset.
    #[inline]
    pub(crate) fn decode(&self, offset: u32) -> Option<Inst> {
        self.source.isa.decode(self.source.bytes.get(offset as usize..)?).ok()
    }

    /// The classification of the instruction at an offset, if it needs no decoding.
    #[inline(always)]
    pub(crate) fn look(&self, offset: u32) -> Option<Seen> {
        self.sift.look(self.source.bytes.get(offset as usize..)?)
    }

    /// The target of a branch that was classified without decoding.
    #[inline]
    pub(crate) fn seen_target(&self, offset: u32) -> Target {
        let target = u32::try_from(branch_target(self.source.bytes, offset)).ok();
        let inside = target.filter(|target| (*target as usize) < self.source.bytes.len());
        inside.map_or(Target::Wrong, aligned)
    }

    pub(crate) fn address(&self, offset: u32) -> u64 {
        self.source.address.wrapping_add(u64::from(offset))
    }
}

/// The target of a direct branch or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An offset in the section.
    Offset(u32),
    /// An address outside of it.
    Outside(Place),
    /// An address that does not exist.
    Wrong,
}

/// A call or a jump into another function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawCall {
    pub(crate) offset: u32,
    pub(crate) to: Option<Place>,
    /// First register of the return address; 255 for a jump.
    pub(crate) link: u8,
}

/// A function while its code is being found.
pub(crate) struct Draft {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) entries: Vec<u32>,
    pub(crate) starts: Bits,
    leaders: Bits,
    /// Numbers of the blocks, while they are made.
    ranks: Ranks,
    /// Registers that its instructions name, computed on demand.
    pub(crate) named: Option<Box<Named>>,
    pub(crate) banked: bool,
    /// An instruction of it may select another bank than the first.
    pub(crate) beyond: bool,
    /// Offsets of instructions that may set the bank mode.
    pub(crate) modes: Vec<u32>,
    pub(crate) indexed: bool,
    /// It has jumps or calls to addresses in registers, or reads the program counter.
    pub(crate) tracks: bool,
    /// Offsets of the instructions that read the program counter, in the order found.
    pub(crate) counters: Vec<u32>,
    /// Its addresses are still to be followed.
    pub(crate) due: bool,
    /// Until then: numbers of the stretches to which it seems to refer.
    pub(crate) leads: Vec<u32>,
    /// The knowledge of calls when its addresses were followed; see [`Clobbers::clock`].
    pub(crate) clock: u32,
    /// Code was found since the blocks were made.
    grown: bool,
    stack: Vec<u32>,
    /// Targets of direct calls, wherever they are.
    pub(crate) called: BTreeSet<u32>,
    /// Targets of branches outside of it, and the offset at which it runs on into another function.
    pub(crate) reached: BTreeSet<u32>,
    pub(crate) faults: BTreeSet<Problem>,
    pub(crate) tracked: Tracked,
    pub(crate) blocks: Blocks,
    /// Successors of the current block.
    goes: Goes,
    pub(crate) calls: Vec<RawCall>,
    /// Its jumps to addresses that were loaded, once they are resolved.
    pub(crate) table: Option<Table>,
}

impl Draft {
    pub(crate) fn new(start: u32, end: u32) -> Self {
        let dwords = (end - start).div_ceil(4) as usize;
        Self {
            start,
            end,
            entries: Vec::new(),
            starts: Bits::new(dwords),
            leaders: Bits::new(dwords),
            ranks: Ranks::default(),
            named: None,
            banked: false,
            beyond: false,
            modes: Vec::new(),
            indexed: false,
            tracks: false,
            counters: Vec::new(),
            due: false,
            leads: Vec::new(),
            clock: 0,
            grown: true,
            stack: Vec::new(),
            called: BTreeSet::new(),
            reached: BTreeSet::new(),
            faults: BTreeSet::new(),
            tracked: Tracked::default(),
            blocks: Blocks::default(),
            goes: Goes::default(),
            calls: Vec::new(),
            table: None,
        }
    }

    /// Whether an unknown target of it may be found when more is known about its callees.
    pub(crate) fn is_open(&self) -> bool {
        self.unknown() != 0
    }

    /// Whether it has an unknown successor that is not a call.
    pub(crate) fn goes_astray(&self) -> bool {
        !self.faults.is_empty() || self.tracked.jumps.iter().any(|jump| jump.1 == Jump::Unknown)
    }

    /// The number of its unknown targets.
    pub(crate) fn unknown(&self) -> usize {
        self.tracked.calls.iter().filter(|call| call.1.is_none()).count()
            + self.tracked.jumps.iter().filter(|jump| jump.1 == Jump::Unknown).count()
    }

    /// Follows all paths from more entries, as far as no addresses in registers are needed.
    pub(crate) fn walk(&mut self, context: &Context<'_, '_>, entries: &[u32]) {
        self.stack.extend(entries);
        self.entries.extend(entries);
        self.advance(context);
        if self.tracks {
            self.due = true;
            self.leads = track::leads(context, self);
        }
    }

    /// Follows all known paths. Returns whether there were some.
    fn advance(&mut self, context: &Context<'_, '_>) -> bool {
        self.run(context);
        let grown = self.grown;
        if grown {
            self.build(context);
            self.named = None;
        }
        grown
    }

    /// Follows addresses, and all paths that result from them.
    pub(crate) fn track(&mut self, context: &Context<'_, '_>, touches: &mut Touches) {
        (self.due, self.leads, self.clock) = (false, Vec::new(), context.clobbers.clock());
        self.touch(context, touches);
        for round in 0..=ROUNDS {
            let tracked = track::track(context, self, touches);
            let has_new_jumps = tracked.jumps != self.tracked.jumps;
            self.tracked = tracked;
            self.take_jumps(context);
            if self.stack.is_empty() {
                match has_new_jumps {
                    true => self.build(context),
                    false => self.link(),
                }
                return;
            }
            if round == ROUNDS {
                let offset = self.stack.first().copied().unwrap_or(self.start);
                self.faults.insert(Problem { offset, reason: Reason::TooDeep });
                self.stack.clear();
                self.build(context);
            } else if self.advance(context) {
                self.touch(context, touches);
            }
        }
    }

    /// The result of following addresses with the edges of a table, whose blocks are made.
    pub(crate) fn track_with_table(&mut self, context: &Context<'_, '_>, touches: &mut Touches) -> Tracked {
        self.build(context);
        self.touch(context, touches);
        track::track(context, self, touches)
    }

    /// Removes a table again.
    pub(crate) fn drop_table(&mut self, context: &Context<'_, '_>) {
        self.table = None;
        self.build(context);
    }

    /// Records the registers that all its instructions touch.
    fn touch(&self, context: &Context<'_, '_>, touches: &mut Touches) {
        touches.clear();
        let quiet = context.sift.quiet(context.ops);
        for index in self.starts.iter() {
            let offset = self.start + index as u32 * 4;
            let bytes = context.source.bytes.get(offset as usize..).unwrap_or_default();
            if quiet.is_some_and(|quiet| bytes.first_chunk().is_some_and(|bytes| quiet.look(bytes).is_some())) {
                continue;
            }
            if let Ok(inst) = context.isa().decode(bytes) {
                touches.read(offset, &inst, context.ops.line(&inst));
            }
        }
    }

    /// Collects the registers that its instructions name.
    pub(crate) fn name(&mut self, context: &Context<'_, '_>) {
        let bytes = context.source.bytes.get(self.start as usize..).unwrap_or_default();
        self.named.get_or_insert_with(|| Box::new(Named::of(context.isa(), context.ops, bytes, &self.starts)));
    }

    /// The block with that number.
    #[inline]
    pub(crate) fn block(&self, number: usize) -> Block {
        self.blocks.get(number, &self.starts, (self.start, self.end))
    }

    fn index(&self, offset: u32) -> usize {
        (offset - self.start) as usize / 4
    }

    pub(crate) fn holds(&self, offset: u32) -> bool {
        (self.start..self.end).contains(&offset)
    }

    fn fault(&mut self, offset: u32, reason: Reason) {
        self.faults.insert(Problem { offset, reason });
    }

    /// Decodes everything that is reachable from the offsets on the stack.
    fn run(&mut self, context: &Context<'_, '_>) {
        while let Some(offset) = self.stack.pop() {
            self.grown = true;
            let index = self.index(offset);
            self.leaders.set(index);
            if self.starts.get(index) {
                continue;
            }
            if self.is_inside(context, offset) {
                self.fault(offset, Reason::Overlap);
                continue;
            }
            self.run_from(context, offset);
        }
    }

    /// Whether an offset is inside of an instruction, of which the longest has five dwords.
    fn is_inside(&self, context: &Context<'_, '_>, offset: u32) -> bool {
        let index = self.index(offset);
        let before = (1..5).map_while(|back| index.checked_sub(back)).find(|before| self.starts.get(*before));
        let before = before.map(|before| self.start + before as u32 * 4);
        before.is_some_and(|before| context.decode(before).is_some_and(|inst| before + u32::from(inst.len()) > offset))
    }

    fn run_from(&mut self, context: &Context<'_, '_>, mut offset: u32) {
        while !self.starts.get(self.index(offset)) {
            let next = match context.look(offset) {
                Some(seen) => self.pass(context, offset, seen),
                None => self.read(context, offset),
            };
            match next {
                Some(next) if next < self.end => offset = next,
                Some(next) => return self.leave(context, next),
                None => return,
            }
        }
    }

    /// Handles an instruction that was not decoded. Returns the offset at which execution continues after it.
    #[inline(always)]
    fn pass(&mut self, context: &Context<'_, '_>, offset: u32, seen: Seen) -> Option<u32> {
        // Constants after predicted branches let the next instruction begin before this length is known.
        let next = match seen.len {
            4 => black_box(offset + 4),
            8 => black_box(offset + 8),
            len => offset + u32::from(len),
        };
        self.take(offset, seen.len)?;
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
    fn read(&mut self, context: &Context<'_, '_>, offset: u32) -> Option<u32> {
        let Some(inst) = context.decode(offset) else {
            self.fault(offset, Reason::Undecodable);
            return None;
        };
        self.take(offset, inst.len())?;
        let op = context.ops.of(&inst);
        (op.is_passed() || self.note(context, offset, &inst, op)).then_some(offset + u32::from(inst.len()))
    }

    /// Marks an instruction there; `None` if another one begins inside of it.
    #[inline(always)]
    fn take(&mut self, offset: u32, len: u8) -> Option<()> {
        let index = self.index(offset);
        if (1..usize::from(len) / 4).any(|more| self.starts.get(index + more)) {
            self.fault(offset, Reason::Overlap);
            return None;
        }
        self.starts.set(index);
        Some(())
    }

    /// Runs past the function's end.
    fn leave(&mut self, context: &Context<'_, '_>, next: u32) {
        if (next as usize) < context.source.bytes.len() {
            self.reached.insert(next);
        } else {
            self.fault(next, Reason::LeavesSection);
        }
    }

    /// Handles an instruction of interest. Returns whether execution continues after it.
    fn note(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst, op: Op) -> bool {
        let next = offset + u32::from(inst.len());
        match op {
            Op::Mode => {
                self.modes.push(offset);
                // One at the end counts, too: it may spoil a change of the mode that comes next.
                self.banked = self.banked || next >= self.end || sets_banks(inst, context.isa());
                self.beyond |= VgprBanks::ENTRY.after(inst, context.isa()).mode() != Some(0);
                self.indexed |= inst.index_mode(context.isa()) == Some(true);
            }
            Op::GetPc => {
                self.tracks = true;
                self.counters.push(offset);
            }
            Op::SetPc => {
                self.tracks = true;
                return false;
            }
            Op::SwapPc => {
                self.tracks = true;
                self.lead(next);
            }
            Op::Call => {
                if let Some(Target::Offset(target)) = direct(context, offset, inst) {
                    self.called.insert(target);
                }
                self.lead(next);
            }
            Op::AddPc | Op::Branch => {
                if inst.is(Flag::Call) {
                    self.modes.push(offset);
                }
                return self.branch(context, offset, inst);
            }
            _ => {}
        }
        true
    }

    fn lead(&mut self, offset: u32) {
        if self.holds(offset) {
            self.leaders.set(self.index(offset));
        }
    }

    fn branch(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst) -> bool {
        let next = offset + u32::from(inst.len());
        let (conditional, target) = match inst.flow(context.address(offset), context.isa()) {
            Flow::Next => return true,
            Flow::End => return false,
            Flow::Call { target } => (true, target),
            Flow::Branch { conditional, target } => (conditional, Some(target)),
            Flow::Indirect { conditional } => (conditional, None),
        };
        self.goes_to(resolved(context, offset, target).unwrap_or(Target::Wrong), conditional.then_some(next));
        conditional
    }

    /// Adds the target of a branch; execution continues after the branch unless it is always taken.
    fn goes_to(&mut self, target: Target, next: Option<u32>) {
        if let Target::Offset(target) = target {
            if self.holds(target) {
                self.stack.push(target);
            } else {
                self.reached.insert(target);
            }
        }
        if let Some(next) = next {
            self.lead(next);
        }
    }

    /// Follows the jumps that were found; those into other functions belong to these.
    fn take_jumps(&mut self, context: &Context<'_, '_>) {
        for (_, jump) in &self.tracked.jumps {
            let Jump::To(place) = jump else { continue };
            let Some(target) = context.source.offset_of(*place).filter(|target| target.is_multiple_of(4)) else {
                continue;
            };
            if !self.holds(target) {
                self.reached.insert(target);
            } else if !self.starts.get(self.index(target)) || !self.leaders.get(self.index(target)) {
                // An offset that overlaps an instruction was a fault already and stays one.
                if !self.faults.contains(&Problem { offset: target, reason: Reason::Overlap }) {
                    self.stack.push(target);
                }
            }
        }
        for (_, to, _) in &self.tracked.calls {
            self.called.extend(to.and_then(|place| context.source.offset_of(place)));
        }
    }
}

/// Whether an instruction changes some bank mode.
fn sets_banks(inst: &Inst, isa: Isa) -> bool {
    let banks = |mode: VgprBanks| Role::ALL.map(|role| mode.bank(role));
    let all = [VgprBanks::ENTRY, VgprBanks::of_mode(0xff), VgprBanks::UNKNOWN];
    all.into_iter().any(|mode| banks(mode.after(inst, isa)) != banks(mode))
}

/// Base of a [`Place`] that is an offset in the section, in a draft's calls only.
pub(crate) const TAIL_OFFSET: u32 = u32::MAX;

/// The target of a direct branch or call at an offset; `None` for other instructions.
pub(crate) fn direct(context: &Context<'_, '_>, offset: u32, inst: &Inst) -> Option<Target> {
    resolved(context, offset, inst.branch_target(context.address(offset), context.isa()))
}

/// The target of an instruction that states this address.
pub(crate) fn resolved(context: &Context<'_, '_>, offset: u32, stated: Option<u64>) -> Option<Target> {
    let source = context.source;
    if let Some(fixup) = context.branch_fixup(offset) {
        let place = source.target(fixup)?;
        // The distance counts from the fixup, and the hardware counts from the end of the instruction.
        return Some(source.offset_of(place).map_or(Target::Outside(place), aligned));
    }
    let place = Place { base: Place::CODE, at: stated? };
    Some(source.offset_of(place).map_or(Target::Wrong, aligned))
}

fn aligned(offset: u32) -> Target {
    if offset.is_multiple_of(4) { Target::Offset(offset) } else { Target::Wrong }
}
