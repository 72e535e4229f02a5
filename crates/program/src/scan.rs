//! Finds the code of one function: from its entries along every path, and into blocks.
//!
//! Invariants: an instruction is decoded once, however many entries are added later; bytes that no path reaches are not
//! looked at; a draft's blocks are as complete as the jumps that are known.

use crate::bits::{Bits, Ranks};
use crate::block::{Block, Exit};
use crate::ops::{Line, Op, Ops};
use crate::place::Place;
use crate::problem::{Problem, Reason};
use crate::source::{Fixup, FixupKind, Source};
use crate::track::{self, Clobbers, Jump, Touch, Touches, Tracked};
use hotswap_isa::bank::{Role, VgprBanks};
use hotswap_isa::effects::Flow;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa};
use std::collections::BTreeSet;

/// Rounds of finding jumps and following them within one function.
const ROUNDS: usize = 16;

/// What all functions share.
pub(crate) struct Context<'s, 'a> {
    pub(crate) source: &'s Source<'a>,
    pub(crate) ops: &'s Ops,
    pub(crate) clobbers: Clobbers,
    /// Numbers of the fixups of branches in a file that is not linked; most files have none.
    branches: Vec<u32>,
}

impl<'s, 'a> Context<'s, 'a> {
    pub(crate) fn new(source: &'s Source<'a>, ops: &'s Ops) -> Self {
        let is_branch = |(_, fixup): &(usize, &Fixup)| fixup.kind == FixupKind::Rel16;
        let fixups = source.fixups.iter().enumerate().filter(|_| !source.linked);
        let branches = fixups.filter(is_branch).map(|(number, _)| number as u32).collect();
        Self { source, ops, clobbers: Clobbers::default(), branches }
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

    pub(crate) fn address(&self, offset: u32) -> u64 {
        self.source.address.wrapping_add(u64::from(offset))
    }
}

/// Where a direct branch or call leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An offset in the section.
    Offset(u32),
    /// A place outside of it.
    Outside(Place),
    /// Nowhere that there is.
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
    pub(crate) reads: Box<RegSet>,
    pub(crate) writes: Box<RegSet>,
    /// Registers without an operand that are in these sets.
    implicit: (u8, u8),
    pub(crate) banked: bool,
    /// Offsets of instructions that may set the bank mode.
    pub(crate) modes: Vec<u32>,
    pub(crate) indexed: bool,
    /// Registers that are loaded from scratch or from lanes: it may have saved them.
    pub(crate) restored: Box<RegSet>,
    /// It has jumps or calls to addresses in registers, or asks for the program counter.
    pub(crate) tracks: bool,
    /// Code was found since the blocks were made.
    grown: bool,
    stack: Vec<u32>,
    /// What its instructions touch, while it is open.
    kept: Option<Vec<Touch>>,
    /// Targets of direct calls, wherever they are.
    pub(crate) called: BTreeSet<u32>,
    /// Targets outside of it of branches, and where it runs on into another function.
    pub(crate) reached: BTreeSet<u32>,
    pub(crate) faults: BTreeSet<Problem>,
    pub(crate) tracked: Tracked,
    pub(crate) blocks: Vec<Block>,
    pub(crate) edges: Vec<u32>,
    pub(crate) calls: Vec<RawCall>,
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
            reads: Box::default(),
            writes: Box::default(),
            implicit: (0, 0),
            banked: false,
            modes: Vec::new(),
            indexed: false,
            restored: Box::default(),
            tracks: false,
            grown: true,
            stack: Vec::new(),
            kept: None,
            called: BTreeSet::new(),
            reached: BTreeSet::new(),
            faults: BTreeSet::new(),
            tracked: Tracked::default(),
            blocks: Vec::new(),
            edges: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Whether an address that it goes to may come to be known when more is known of what it calls.
    pub(crate) fn is_open(&self) -> bool {
        self.unknown() != 0
    }

    /// How many addresses that it goes to are not known.
    pub(crate) fn unknown(&self) -> usize {
        self.tracked.calls.iter().filter(|call| call.1.is_none()).count()
            + self.tracked.jumps.iter().filter(|jump| jump.1 == Jump::Unknown).count()
    }

    /// Follows all paths from more entries.
    pub(crate) fn follow(&mut self, context: &Context<'_, '_>, touches: &mut Touches, entries: &[u32]) {
        let kept = self.kept.take();
        let knows_all = self.entries.is_empty() || kept.is_some();
        touches.restore(kept.unwrap_or_default());
        self.follow_all(context, touches, entries, knows_all);
        // It will be followed again.
        if self.is_open() {
            self.kept = Some(touches.keep());
        }
    }

    /// `knows_all`: what its instructions touch is written down.
    fn follow_all(&mut self, context: &Context<'_, '_>, touches: &mut Touches, entries: &[u32], mut knows_all: bool) {
        self.stack.extend(entries);
        self.entries.extend(entries);
        for round in 0..=ROUNDS {
            self.run(context, touches);
            if self.grown {
                self.build(context);
            }
            if !self.tracks {
                return;
            }
            if !knows_all {
                self.touch_again(context, touches);
                knows_all = true;
            }
            let tracked = track::track(context, self, touches);
            let is_new = tracked.jumps != self.tracked.jumps || tracked.calls != self.tracked.calls;
            self.tracked = tracked;
            self.take_jumps(context);
            if self.stack.is_empty() {
                if is_new {
                    self.build(context);
                }
                return;
            }
            if round == ROUNDS {
                let offset = self.stack.first().copied().unwrap_or(self.start);
                self.faults.insert(Problem { offset, reason: Reason::TooDeep });
                self.stack.clear();
                self.build(context);
            }
        }
    }

    /// Writes down what all its instructions touch, those of earlier times included.
    fn touch_again(&self, context: &Context<'_, '_>, touches: &mut Touches) {
        touches.clear();
        let mut next = self.starts.next(0);
        while let Some(index) = next {
            next = self.starts.next(index + 1);
            let offset = self.start + index as u32 * 4;
            if let Some(inst) = context.decode(offset) {
                touches.read(offset, &inst, context.ops.line(&inst), |_| {});
            }
        }
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

    /// Decodes whatever can be reached from the offsets on the stack.
    fn run(&mut self, context: &Context<'_, '_>, touches: &mut Touches) {
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
            self.run_from(context, touches, offset);
        }
    }

    /// Whether an offset lies inside of an instruction, of which the longest has five dwords.
    fn is_inside(&self, context: &Context<'_, '_>, offset: u32) -> bool {
        let index = self.index(offset);
        let before = (1..5).map_while(|back| index.checked_sub(back)).find(|before| self.starts.get(*before));
        let before = before.map(|before| self.start + before as u32 * 4);
        before.is_some_and(|before| context.decode(before).is_some_and(|inst| before + u32::from(inst.len()) > offset))
    }

    fn run_from(&mut self, context: &Context<'_, '_>, touches: &mut Touches, mut offset: u32) {
        for (_, inst) in context.isa().walk(context.source.bytes.get(offset as usize..).unwrap_or_default()) {
            let index = self.index(offset);
            if self.starts.get(index) {
                return;
            }
            let Ok(inst) = inst else { return self.fault(offset, Reason::Undecodable) };
            let next = offset + u32::from(inst.len());
            if (1..usize::from(inst.len()) / 4).any(|more| self.starts.get(index + more)) {
                return self.fault(offset, Reason::Overlap);
            }
            self.starts.set(index);
            let line = context.ops.line(&inst);
            self.note_effects(context.isa(), touches, offset, &inst, line);
            if line.op != Op::Other && !self.note(context, offset, &inst, line.op) {
                return;
            }
            if next >= self.end {
                return self.leave(context, next);
            }
            offset = next;
        }
        self.fault(offset, Reason::LeavesSection);
    }

    /// Runs on behind the function's end.
    fn leave(&mut self, context: &Context<'_, '_>, next: u32) {
        if (next as usize) < context.source.bytes.len() {
            self.reached.insert(next);
        } else {
            self.fault(next, Reason::LeavesSection);
        }
    }

    #[inline(always)]
    fn note_effects(&mut self, isa: Isa, touches: &mut Touches, offset: u32, inst: &Inst, line: Line) {
        let (reads, writes) = (&mut *self.reads, &mut *self.writes);
        let implicit = touches.read(offset, inst, line, |effect| {
            let set = if effect.written() { &mut *writes } else { &mut *reads };
            set.insert_effect(effect);
        });
        // EXEC and MODE, which almost everything reads: each is added once.
        let (written, read) = (implicit.writes.bits() & !self.implicit.0, implicit.reads.bits() & !self.implicit.1);
        if written | read != 0 {
            self.implicit = (self.implicit.0 | written, self.implicit.1 | read);
            implicit.each(isa, |effect| {
                if effect.written() { self.writes.insert(effect.reg()) } else { self.reads.insert(effect.reg()) }
            });
        }
        if line.reloads || line.op == Op::ReadLane {
            let restored = &mut *self.restored;
            inst.visit(isa, |effect| {
                if effect.written() {
                    restored.insert_effect(effect);
                }
            });
        }
    }

    /// Looks at an instruction of interest; whether execution goes on behind it.
    fn note(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst, op: Op) -> bool {
        let next = offset + u32::from(inst.len());
        match op {
            Op::Mode => {
                self.modes.push(offset);
                // What stands at the end counts, too: it may spoil a change of the mode that comes next.
                self.banked = self.banked || next >= self.end || sets_banks(inst, context.isa());
                self.indexed |= inst.index_mode(context.isa()) == Some(true);
            }
            Op::GetPc => self.tracks = true,
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
        if let Some(Target::Offset(target)) = resolved(context, offset, target) {
            if self.holds(target) {
                self.stack.push(target);
            } else {
                self.reached.insert(target);
            }
        }
        if conditional {
            self.lead(next);
        }
        conditional
    }

    /// Follows the jumps that were found; those into other functions are theirs.
    fn take_jumps(&mut self, context: &Context<'_, '_>) {
        for (_, jump) in &self.tracked.jumps {
            let Jump::To(place) = jump else { continue };
            let Some(target) = context.source.offset_of(*place).filter(|target| target.is_multiple_of(4)) else {
                continue;
            };
            if !self.holds(target) {
                self.reached.insert(target);
            } else if !self.starts.get(self.index(target)) || !self.leaders.get(self.index(target)) {
                // What overlaps an instruction was a fault already and stays one.
                if !self.faults.contains(&Problem { offset: target, reason: Reason::Overlap }) {
                    self.stack.push(target);
                }
            }
        }
        for (_, to, _) in &self.tracked.calls {
            self.called.extend(to.and_then(|place| context.source.offset_of(place)));
        }
    }

    /// Makes blocks of what was decoded.
    fn build(&mut self, context: &Context<'_, '_>) {
        self.grown = false;
        self.blocks.clear();
        self.edges.clear();
        self.calls.clear();
        // Not where somebody leads to, but no instruction begins.
        let ranks = Ranks::of(&self.leaders, &self.starts);
        self.blocks.reserve(ranks.count());
        let mut heads = ranks.iter().peekable();
        while let Some(head) = heads.next() {
            let limit = heads.peek().copied().unwrap_or(usize::MAX);
            if let Some(last) = self.starts.previous(limit) {
                self.blocks.push(Block {
                    start: self.start + head as u32 * 4,
                    last: self.start + last as u32 * 4,
                    end: 0,
                    first_edge: 0,
                    edges: 0,
                    exit: Exit::Unknown,
                    link: 255,
                });
            }
        }
        drop(heads);
        self.ranks = ranks;
        for number in 0..self.blocks.len() {
            self.finish(context, number);
        }
        self.ranks = Ranks::default();
    }

    /// How a block ends, and where it goes on.
    fn finish(&mut self, context: &Context<'_, '_>, number: usize) {
        let offset = self.blocks[number].last;
        let Some(inst) = context.decode(offset) else { return };
        let next = offset + u32::from(inst.len());
        let first_edge = self.edges.len() as u32;
        let (exit, link) = self.exit(context, offset, &inst, next);
        let edges = (self.edges.len() as u32 - first_edge) as u8;
        let block = &mut self.blocks[number];
        *block = Block { end: next, first_edge, edges, exit, link, ..*block };
    }

    fn exit(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst, next: u32) -> (Exit, u8) {
        match context.ops.of(inst) {
            Op::Branch | Op::AddPc => {}
            Op::SetPc => return self.jump_exit(context, offset),
            Op::SwapPc => {
                let found = self.tracked.calls.binary_search_by_key(&offset, |call| call.0).ok();
                let (_, to, link) = found.map_or((0, None, 255), |found| self.tracked.calls[found]);
                self.calls.push(RawCall { offset, to, link });
                return (self.go_on(offset, next, Exit::Call), 255);
            }
            Op::Call => {
                let link = track::destination(inst, context.isa());
                let to = match direct(context, offset, inst) {
                    Some(Target::Offset(target)) => Some(context.source.place_of(target)),
                    Some(Target::Outside(place)) => Some(place),
                    _ => None,
                };
                self.calls.push(RawCall { offset, to, link });
                return (self.go_on(offset, next, Exit::Call), 255);
            }
            _ => return (self.go_on(offset, next, Exit::Fall), 255),
        }
        let exit = match inst.flow(context.address(offset), context.isa()) {
            Flow::Next => self.go_on(offset, next, Exit::Fall),
            Flow::End => Exit::End,
            Flow::Call { .. } => {
                self.calls.push(RawCall { offset, to: None, link: 255 });
                self.go_on(offset, next, Exit::Call)
            }
            Flow::Indirect { conditional } => {
                if conditional {
                    self.go_on(offset, next, Exit::Fall);
                }
                self.fault(offset, Reason::Exception);
                Exit::Unknown
            }
            Flow::Branch { conditional, target } => {
                let taken = resolved(context, offset, Some(target)).unwrap_or(Target::Wrong);
                self.branch_exit(offset, taken, conditional.then_some(next))
            }
        };
        (exit, 255)
    }

    fn branch_exit(&mut self, offset: u32, taken: Target, next: Option<u32>) -> Exit {
        let exit = self.edge_to(offset, taken, Exit::Branch);
        match next {
            None => exit,
            Some(next) => match (exit, self.go_on(offset, next, Exit::Conditional)) {
                (Exit::Unknown, _) | (_, Exit::Unknown) => Exit::Unknown,
                // One way leaves the function: its own edges tell which stays.
                (Exit::Tail, _) | (_, Exit::Tail) => Exit::Tail,
                _ => Exit::Conditional,
            },
        }
    }

    fn edge_to(&mut self, offset: u32, target: Target, exit: Exit) -> Exit {
        match target {
            Target::Offset(target) if self.holds(target) => self.inner_edge(target, exit),
            Target::Offset(target) => {
                let to = Some(target);
                self.tail(offset, to)
            }
            Target::Outside(_) => {
                self.fault(offset, Reason::Undefined);
                Exit::Unknown
            }
            Target::Wrong => {
                self.fault(offset, Reason::TargetOutside);
                Exit::Unknown
            }
        }
    }

    fn tail(&mut self, offset: u32, target: Option<u32>) -> Exit {
        // The place is made from the offset when the draft is finished; see `RawCall`.
        let to = target.map(|target| Place { base: TAIL_OFFSET, at: u64::from(target) });
        self.calls.push(RawCall { offset, to, link: 255 });
        Exit::Tail
    }

    /// An edge to an offset of this function; where nothing could be decoded there is a fault already.
    fn inner_edge(&mut self, target: u32, exit: Exit) -> Exit {
        match self.ranks.number(self.index(target)) {
            Some(block) => {
                self.edges.push(block as u32);
                exit
            }
            None => Exit::Unknown,
        }
    }

    fn go_on(&mut self, offset: u32, next: u32, exit: Exit) -> Exit {
        if self.holds(next) {
            return self.inner_edge(next, exit);
        }
        if self.reached.contains(&next) {
            return self.tail(offset, Some(next));
        }
        Exit::Unknown
    }

    fn jump_exit(&mut self, context: &Context<'_, '_>, offset: u32) -> (Exit, u8) {
        let found = self.tracked.jumps.binary_search_by_key(&offset, |jump| jump.0).ok();
        match found.map(|found| self.tracked.jumps[found].1) {
            Some(Jump::To(place)) => match context.source.offset_of(place) {
                Some(target) if target.is_multiple_of(4) => {
                    (self.edge_to(offset, Target::Offset(target), Exit::Jump), 255)
                }
                Some(_) => (self.edge_to(offset, Target::Wrong, Exit::Jump), 255),
                None => {
                    self.calls.push(RawCall { offset, to: Some(place), link: 255 });
                    (Exit::Tail, 255)
                }
            },
            Some(Jump::Return(link)) => (Exit::Return, link),
            Some(Jump::Unknown) | None => (Exit::Unknown, 255),
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

/// Where a direct branch or call at an offset leads; `None` for other instructions.
pub(crate) fn direct(context: &Context<'_, '_>, offset: u32, inst: &Inst) -> Option<Target> {
    resolved(context, offset, inst.branch_target(context.address(offset), context.isa()))
}

/// Where an instruction leads that states this address.
pub(crate) fn resolved(context: &Context<'_, '_>, offset: u32, stated: Option<u64>) -> Option<Target> {
    let source = context.source;
    if let Some(fixup) = context.branch_fixup(offset) {
        let place = source.target(fixup)?;
        // The distance counts from the fixup, and the hardware counts from behind the instruction.
        return Some(source.offset_of(place).map_or(Target::Outside(place), aligned));
    }
    let place = Place { base: Place::CODE, at: stated? };
    Some(source.offset_of(place).map_or(Target::Wrong, aligned))
}

fn aligned(offset: u32) -> Target {
    if offset.is_multiple_of(4) { Target::Offset(offset) } else { Target::Wrong }
}
