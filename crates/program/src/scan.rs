//! Finds the code of one function: from its entries along every path, and into blocks.
//!
//! Invariants: an instruction is decoded once, however many entries are added later; bytes that no path reaches are not
//! looked at; a draft's blocks are as complete as the jumps that are known.

use crate::bits::Bits;
use crate::block::{Block, Exit};
use crate::ops::{Op, Ops};
use crate::place::Place;
use crate::problem::{Problem, Reason};
use crate::source::{FixupKind, Source};
use crate::track::{self, Clobbers, Jump, Tracked};
use hotswap_isa::bank::{Role, VgprBanks};
use hotswap_isa::effects::{EffectReader, Flow};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa};
use std::collections::BTreeSet;

/// Rounds of finding jumps and following them within one function.
const ROUNDS: usize = 16;

/// What all functions share.
pub(crate) struct Context<'s, 'a> {
    pub(crate) source: &'s Source<'a>,
    pub(crate) ops: &'s Ops,
    pub(crate) clobbers: Clobbers,
}

impl<'s, 'a> Context<'s, 'a> {
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
    pub(crate) reads: Box<RegSet>,
    pub(crate) writes: Box<RegSet>,
    /// Registers without an operand that are in these sets.
    implicit: (u8, u8),
    pub(crate) banked: bool,
    pub(crate) indexed: bool,
    /// Offsets of instructions through which addresses may go.
    pub(crate) points: Vec<u32>,
    /// It has jumps or calls to addresses in registers, or asks for the program counter.
    tracks: bool,
    /// Code was found since the blocks were made.
    grown: bool,
    stack: Vec<u32>,
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
            reads: Box::default(),
            writes: Box::default(),
            implicit: (0, 0),
            banked: false,
            indexed: false,
            points: Vec::new(),
            tracks: false,
            grown: true,
            stack: Vec::new(),
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
    pub(crate) fn follow(&mut self, context: &Context<'_, '_>, entries: &[u32]) {
        self.stack.extend(entries);
        self.entries.extend(entries);
        for round in 0..=ROUNDS {
            self.run(context);
            if self.grown {
                self.build(context);
            }
            if !self.tracks {
                return;
            }
            self.points.sort_unstable();
            let tracked = track::track(context, self);
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
    fn run(&mut self, context: &Context<'_, '_>) {
        let reader = EffectReader::new(context.isa());
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
            self.run_from(context, reader, offset);
        }
    }

    /// Whether an offset lies inside of an instruction, of which the longest has five dwords.
    fn is_inside(&self, context: &Context<'_, '_>, offset: u32) -> bool {
        let index = self.index(offset);
        let before = (1..5).map_while(|back| index.checked_sub(back)).find(|before| self.starts.get(*before));
        let before = before.map(|before| self.start + before as u32 * 4);
        before.is_some_and(|before| context.decode(before).is_some_and(|inst| before + u32::from(inst.len()) > offset))
    }

    fn run_from(&mut self, context: &Context<'_, '_>, reader: EffectReader, mut offset: u32) {
        let bytes = context.source.bytes;
        loop {
            let index = self.index(offset);
            if self.starts.get(index) {
                return;
            }
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let inst = match context.isa().decode(rest) {
                Ok(inst) => inst,
                Err(_) if rest.is_empty() => return self.fault(offset, Reason::LeavesSection),
                Err(_) => return self.fault(offset, Reason::Undecodable),
            };
            let next = offset + u32::from(inst.len());
            if (1..usize::from(inst.len()) / 4).any(|more| self.starts.get(index + more)) {
                return self.fault(offset, Reason::Overlap);
            }
            self.starts.set(index);
            self.note_effects(context.isa(), reader, &inst);
            let op = context.ops.of(&inst);
            if op != Op::Other && !self.note(context, offset, &inst, op) {
                return;
            }
            if next >= self.end {
                return self.leave(context, next);
            }
            offset = next;
        }
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
    fn note_effects(&mut self, isa: Isa, reader: EffectReader, inst: &Inst) {
        let (reads, writes) = (&mut *self.reads, &mut *self.writes);
        let implicit =
            reader.visit(
                inst,
                |effect| {
                    if effect.written() { writes.insert(effect.reg()) } else { reads.insert(effect.reg()) }
                },
            );
        // EXEC and MODE, which almost everything reads: each is added once.
        let (written, read) = (implicit.writes.bits() & !self.implicit.0, implicit.reads.bits() & !self.implicit.1);
        if written | read != 0 {
            self.implicit = (self.implicit.0 | written, self.implicit.1 | read);
            implicit.each(isa, |effect| {
                if effect.written() { self.writes.insert(effect.reg()) } else { self.reads.insert(effect.reg()) }
            });
        }
    }

    /// Looks at an instruction of interest; whether execution goes on behind it.
    fn note(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst, op: Op) -> bool {
        if op.moves_addresses() {
            self.points.push(offset);
        }
        let next = offset + u32::from(inst.len());
        match op {
            Op::Mode => {
                // What stands at the end counts, too: it may spoil a change of the mode that comes next.
                self.banked |= next >= self.end || sets_banks(inst, context.isa());
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
            Op::AddPc | Op::Branch => return self.branch(context, offset, inst),
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
        let conditional = match inst.flow(context.address(offset), context.isa()) {
            Flow::Next => return true,
            Flow::End => return false,
            Flow::Call { .. } => true,
            Flow::Branch { conditional, .. } | Flow::Indirect { conditional } => conditional,
        };
        if let Some(Target::Offset(target)) = direct(context, offset, inst) {
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

    /// The first block that begins at a dword or behind it: not where somebody leads to, but no instruction begins.
    fn leader(&self, from: usize) -> Option<usize> {
        let mut leader = self.leaders.next(from)?;
        while !self.starts.get(leader) {
            leader = self.leaders.next(leader + 1)?;
        }
        Some(leader)
    }

    /// Makes blocks of what was decoded.
    fn build(&mut self, context: &Context<'_, '_>) {
        self.grown = false;
        self.blocks.clear();
        self.edges.clear();
        self.calls.clear();
        let mut next = self.leader(0);
        while let Some(leader) = next {
            next = self.leader(leader + 1);
            let limit = next.unwrap_or(usize::MAX);
            if let Some(last) = self.starts.previous(limit) {
                self.blocks.push(Block {
                    start: self.start + leader as u32 * 4,
                    last: self.start + last as u32 * 4,
                    end: 0,
                    first_edge: 0,
                    edges: 0,
                    exit: Exit::Unknown,
                    link: 255,
                });
            }
        }
        for number in 0..self.blocks.len() {
            self.finish(context, number);
        }
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
            _ => {}
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
            Flow::Branch { conditional, .. } => self.branch_exit(context, offset, inst, conditional.then_some(next)),
        };
        (exit, 255)
    }

    fn branch_exit(&mut self, context: &Context<'_, '_>, offset: u32, inst: &Inst, next: Option<u32>) -> Exit {
        let taken = direct(context, offset, inst).unwrap_or(Target::Wrong);
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
        match self.blocks.binary_search_by_key(&target, |block| block.start) {
            Ok(block) => {
                self.edges.push(block as u32);
                exit
            }
            Err(_) => Exit::Unknown,
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
    let source = context.source;
    if !source.linked {
        let fixups = source.fixups_in(offset..offset + 4);
        if let Some(fixup) = fixups.iter().find(|fixup| fixup.kind == FixupKind::Rel16) {
            let place = source.target(fixup)?;
            // The distance counts from the fixup, and the hardware counts from behind the instruction.
            return Some(source.offset_of(place).map_or(Target::Outside(place), aligned));
        }
    }
    let target = inst.branch_target(context.address(offset), context.isa())?;
    let place = Place { base: Place::CODE, at: target };
    Some(source.offset_of(place).map_or(Target::Wrong, aligned))
}

fn aligned(offset: u32) -> Target {
    if offset.is_multiple_of(4) { Target::Offset(offset) } else { Target::Wrong }
}
