//! From a [`Source`] to its functions.
//!
//! The section is cut where symbols say that functions are; every function is followed from its entries, all in
//! parallel; what one leads to in another becomes an entry there, until nothing new comes up.

use crate::block::Exit;
use crate::calls::{CallSite, Callee, bottom_up};
use crate::function::{Entry, EntryKind, Function};
use crate::ops::{Op, Ops};
use crate::place::Place;
use crate::problem::{Problem, Reason};
use crate::scan::{Context, Draft, RawCall, TAIL_OFFSET};
use crate::source::{Fixup, FixupKind, MarkKind, Source};
use crate::track::Clobbers;
use hotswap_isa::Inst;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of finding entries in other functions; each is linear in what is new.
const ROUNDS: usize = 128;
/// Rounds of finding calls behind calls; a chain of calls in one function needs two.
const CALL_ROUNDS: usize = 8;
/// Bytes between the two entries of a kernel with preloaded arguments.
const PRELOADED: u32 = 256;

/// The program in one section of code.
#[derive(Debug)]
pub struct Program<'a> {
    /// What it was made of.
    pub source: Source<'a>,
    /// Its functions by offset.
    pub functions: Vec<Function>,
    pub(crate) ops: Ops,
    /// Functions that call each other, callees before callers.
    pub(crate) groups: Vec<Vec<u32>>,
    /// For each function the calls of it: the caller, and the call's number there.
    pub(crate) callers: Vec<Vec<(u32, u32)>>,
}

/// Sums over a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Functions.
    pub functions: usize,
    /// Functions of which all control flow is known.
    pub closed: usize,
    /// Kernels among the functions.
    pub kernels: usize,
    /// Instructions that an entry reaches.
    pub instructions: usize,
    /// Basic blocks.
    pub blocks: usize,
    /// Edges between blocks of one function.
    pub edges: usize,
    /// Calls and jumps into other functions: of known functions, of places outside, of unknown ones.
    pub calls: [usize; 3],
    /// Problems of each reason.
    pub problems: BTreeMap<Reason, usize>,
    /// Bytes of memory that the functions take.
    pub memory: usize,
}

impl<'a> Program<'a> {
    /// Finds the functions of a section.
    #[must_use]
    pub fn build(source: Source<'a>) -> Self {
        let ops = Ops::new();
        let context = Context { source: &source, ops: &ops, clobbers: Clobbers::default() };
        let mut builder = Builder::new(context);
        builder.entries_of_symbols();
        builder.follow();
        builder.follow_calls();
        let functions = builder.finish();
        let callees = |function: usize| {
            let calls: &Vec<CallSite> = &functions[function].calls;
            calls.iter().filter_map(|call| match call.callee {
                Callee::Function { function, .. } => Some(function),
                _ => None,
            })
        };
        let groups = bottom_up(functions.len(), callees);
        let callers = callers(&functions);
        let mut program = Self { source, functions, ops, groups, callers };
        program.check_returns();
        program
    }

    /// The function that holds an offset, with its number.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<(usize, &Function)> {
        let number = self.functions.partition_point(|function| function.start <= offset).checked_sub(1)?;
        self.functions.get(number).filter(|function| offset < function.end).map(|function| (number, function))
    }

    /// The name of a function: its symbol's, or one made of its offset.
    #[must_use]
    pub fn name(&self, function: &Function) -> String {
        let mark = function.mark.and_then(|mark| self.source.marks.get(mark as usize));
        mark.map_or_else(|| format!("code at {:#x}", function.start), |mark| mark.name.clone().into_owned())
    }

    /// The calls of a function from known places: the caller's number and the call.
    pub fn callers(&self, function: usize) -> impl Iterator<Item = (usize, &CallSite)> {
        self.callers.get(function).into_iter().flatten().filter_map(|(caller, call)| {
            let site = self.functions.get(*caller as usize)?.calls.get(*call as usize)?;
            Some((*caller as usize, site))
        })
    }

    /// Groups of functions that call each other, callees before callers.
    #[must_use]
    pub fn bottom_up(&self) -> &[Vec<u32>] {
        &self.groups
    }

    /// Sums.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let mut facts = Facts { functions: self.functions.len(), ..Facts::default() };
        for function in &self.functions {
            facts.closed += usize::from(function.is_closed());
            facts.kernels += usize::from(function.is_kernel());
            facts.instructions += function.instruction_count();
            facts.blocks += function.blocks.len();
            facts.edges += function.edges.len();
            facts.memory += function.memory();
            for call in &function.calls {
                let kind = match call.callee {
                    Callee::Function { .. } => 0,
                    Callee::Outside(_) => 1,
                    Callee::Unknown => 2,
                };
                facts.calls[kind] += 1;
            }
            for problem in &function.problems {
                *facts.problems.entry(problem.reason).or_default() += 1;
            }
        }
        facts
    }

    /// The instruction at an offset.
    #[must_use]
    pub fn decode(&self, offset: u32) -> Option<Inst> {
        self.source.isa.decode(self.source.bytes.get(offset as usize..)?).ok()
    }

    /// Whether an instruction is a call or a jump through registers.
    #[must_use]
    pub fn is_indirect(&self, inst: &Inst) -> bool {
        matches!(self.ops.of(inst), Op::SetPc | Op::SwapPc)
    }

    /// A jump to what a register held at the entry is a return only where somebody puts a return address there.
    fn check_returns(&mut self) {
        for number in 0..self.functions.len() {
            let function = &self.functions[number];
            if !function.blocks.iter().any(|block| block.exit == Exit::Return) {
                continue;
            }
            let links: BTreeSet<u8> = self.callers(number).filter_map(|(_, call)| call.link).collect();
            // LLVM's functions are called with the return address in s[30:31].
            let by_convention = function.entries.iter().any(|entry| !entry.is_kernel());
            let function = &mut self.functions[number];
            for block in function.blocks.iter_mut().filter(|block| block.exit == Exit::Return) {
                let known =
                    if links.is_empty() { by_convention && block.link == 30 } else { links.contains(&block.link) };
                if !known {
                    block.exit = Exit::Unknown;
                    function.problems.push(Problem { offset: block.last, reason: Reason::UnknownReturn });
                }
            }
            function.problems.sort();
        }
    }
}

fn callers(functions: &[Function]) -> Vec<Vec<(u32, u32)>> {
    let mut callers = vec![Vec::new(); functions.len()];
    for (caller, function) in functions.iter().enumerate() {
        for (number, call) in function.calls.iter().enumerate() {
            if let Callee::Function { function, .. } = call.callee {
                callers[function as usize].push((caller as u32, number as u32));
            }
        }
    }
    callers
}

struct Builder<'s, 'a> {
    context: Context<'s, 'a>,
    drafts: Vec<Draft>,
    /// The mark that names each draft.
    marks: Vec<Option<u32>>,
    entries: BTreeMap<u32, Entry>,
    /// Entries that are not followed yet.
    pending: Vec<Vec<u32>>,
}

impl<'s, 'a> Builder<'s, 'a> {
    /// Cuts the section into stretches: what symbols cover, and what lies between.
    fn new(context: Context<'s, 'a>) -> Self {
        let source = context.source;
        let mut builder =
            Self { context, drafts: Vec::new(), marks: Vec::new(), entries: BTreeMap::new(), pending: Vec::new() };
        let length = source.bytes.len() as u32;
        let marks = source.marks.iter().enumerate();
        let mut functions =
            marks.filter(|(_, mark)| is_function(&mark.kind) && mark.offset.is_multiple_of(4)).peekable();
        let mut at = 0;
        while let Some((number, mark)) = functions.next() {
            builder.stretch(at, mark.offset, None);
            let mut end = mark.offset.saturating_add(mark.size).next_multiple_of(4).min(length);
            // Names inside of what another covers are further entries of it.
            while let Some((_, inner)) = functions.next_if(|(_, next)| next.offset < end || next.offset == mark.offset)
            {
                end = end.max(inner.offset.saturating_add(inner.size).next_multiple_of(4).min(length));
            }
            let next = functions.peek().map_or(length, |(_, next)| next.offset);
            if end <= mark.offset {
                end = next;
            }
            builder.stretch(mark.offset, end, Some(number as u32));
            at = end;
        }
        builder.stretch(at, length, None);
        builder
    }

    fn stretch(&mut self, start: u32, end: u32, mark: Option<u32>) {
        if start < end {
            self.drafts.push(Draft::new(start, end));
            self.marks.push(mark);
            self.pending.push(Vec::new());
        }
    }

    fn index_of(&self, offset: u32) -> Option<usize> {
        let index = self.drafts.partition_point(|draft| draft.start <= offset).checked_sub(1)?;
        self.drafts.get(index).filter(|draft| draft.holds(offset)).map(|_| index)
    }

    fn enter(&mut self, offset: u32, kind: EntryKind, open: bool) {
        let Some(index) = self.index_of(offset).filter(|_| offset.is_multiple_of(4)) else { return };
        match self.entries.get_mut(&offset) {
            Some(entry) => (entry.kind, entry.open) = (entry.kind.min(kind), entry.open || open),
            None => {
                self.entries.insert(offset, Entry { offset, kind, open });
                self.pending[index].push(offset);
            }
        }
    }

    /// Everything that the file says is an entry.
    fn entries_of_symbols(&mut self) {
        let source = self.context.source;
        for mark in &source.marks {
            match mark.kind {
                MarkKind::Kernel(needs) => {
                    self.enter(mark.offset, EntryKind::Kernel, false);
                    if needs.preloads {
                        self.enter(mark.offset.saturating_add(PRELOADED), EntryKind::Preloaded, false);
                    }
                }
                MarkKind::Function => self.enter(mark.offset, EntryKind::Function, mark.exported),
                MarkKind::Object | MarkKind::Label => {}
            }
        }
        // The function symbol of a kernel is exported, too; nobody calls it.
        for mark in source.marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Kernel(_))) {
            if let Some(entry) = self.entries.get_mut(&mark.offset) {
                entry.open = false;
            }
        }
        // An address as a number is not followed: it may go anywhere.
        let absolute = |fixup: &&Fixup| {
            use FixupKind::{Abs32, Abs32Hi, Abs32Lo, Abs64};
            matches!(fixup.kind, Abs32 | Abs32Lo | Abs32Hi | Abs64)
        };
        for fixup in source.fixups.iter().filter(absolute) {
            if let Some(offset) = source.target(fixup).and_then(|place| source.offset_of(place)) {
                self.enter(offset, EntryKind::Address, true);
            }
        }
        for slot in &source.slots {
            if let Some(offset) = source.offset_of(slot.to) {
                self.enter(offset, EntryKind::Address, true);
            }
        }
    }

    fn follow(&mut self) {
        for _ in 0..ROUNDS {
            let context = &self.context;
            let pending = std::mem::replace(&mut self.pending, vec![Vec::new(); self.drafts.len()]);
            let work: Vec<(&mut Draft, Vec<u32>)> =
                self.drafts.iter_mut().zip(pending).filter(|(_, pending)| !pending.is_empty()).collect();
            if work.is_empty() {
                return;
            }
            let found: Vec<(Vec<u32>, Vec<u32>)> = work
                .into_par_iter()
                .map(|(draft, pending)| {
                    draft.follow(context, &pending);
                    let targets = draft.called.iter().chain(&draft.reached).copied().collect();
                    (targets, draft.tracked.taken.clone())
                })
                .collect();
            for (targets, taken) in found {
                targets.into_iter().for_each(|target| self.enter(target, EntryKind::Target, false));
                taken.into_iter().for_each(|target| self.enter(target, EntryKind::Address, true));
            }
        }
        for (draft, pending) in self.drafts.iter_mut().zip(&mut self.pending) {
            for offset in pending.drain(..) {
                draft.faults.insert(Problem { offset, reason: Reason::TooDeep });
            }
        }
    }

    /// Follows again what could not be followed because nothing was known of what is called in between.
    fn follow_calls(&mut self) {
        for _ in 0..CALL_ROUNDS {
            let open: Vec<usize> = (0..self.drafts.len()).filter(|index| self.drafts[*index].is_open()).collect();
            if open.is_empty() {
                return;
            }
            let source = self.context.source;
            self.context.clobbers = Clobbers::of(&self.drafts, |place| match place.base {
                TAIL_OFFSET => u32::try_from(place.at).ok(),
                _ => source.offset_of(place),
            });
            let context = &self.context;
            let before: usize = open.iter().map(|index| self.drafts[*index].unknown()).sum();
            self.drafts.par_iter_mut().filter(|draft| draft.is_open()).for_each(|draft| draft.follow(context, &[]));
            for index in &open {
                let draft = &self.drafts[*index];
                let targets: Vec<u32> = draft.called.iter().chain(&draft.reached).copied().collect();
                let taken = draft.tracked.taken.clone();
                targets.into_iter().for_each(|target| self.enter(target, EntryKind::Target, false));
                taken.into_iter().for_each(|target| self.enter(target, EntryKind::Address, true));
            }
            self.follow();
            if open.iter().map(|index| self.drafts[*index].unknown()).sum::<usize>() == before {
                return;
            }
        }
    }

    fn finish(self) -> Vec<Function> {
        let escapes = self.drafts.iter().any(|draft| draft.tracked.escapes);
        let mut numbers = Vec::with_capacity(self.drafts.len());
        let mut count = 0;
        for draft in &self.drafts {
            let entered = !draft.entries.is_empty() || !draft.faults.is_empty();
            numbers.push(entered.then_some(count));
            count += u32::from(entered);
        }
        let spans: Vec<(u32, u32)> = self.drafts.iter().map(|draft| (draft.start, draft.end)).collect();
        let finder = Finder { context: &self.context, spans, numbers };
        let (entries, finder) = (&self.entries, &finder);
        let drafts: Vec<_> = self.drafts.into_iter().zip(self.marks).collect();
        let made = drafts.into_par_iter().zip(&finder.numbers).filter_map(|((draft, mark), number)| {
            number.is_some().then(|| finder.function(draft, mark, entries, escapes))
        });
        made.collect()
    }
}

fn is_function(kind: &MarkKind) -> bool {
    matches!(kind, MarkKind::Kernel(_) | MarkKind::Function)
}

/// Turns drafts into functions.
struct Finder<'c, 's, 'a> {
    context: &'c Context<'s, 'a>,
    spans: Vec<(u32, u32)>,
    numbers: Vec<Option<u32>>,
}

impl Finder<'_, '_, '_> {
    fn callee(&self, to: Option<Place>) -> Callee {
        let Some(place) = to else { return Callee::Unknown };
        let offset = match place.base {
            TAIL_OFFSET => u32::try_from(place.at).ok(),
            _ => self.context.source.offset_of(place),
        };
        let Some(entry) = offset else { return Callee::Outside(place) };
        let index = self.spans.partition_point(|(start, _)| *start <= entry).checked_sub(1);
        let function = index.and_then(|index| self.numbers.get(index).copied().flatten());
        function.map_or(Callee::Unknown, |function| Callee::Function { function, entry })
    }

    fn function(&self, draft: Draft, mark: Option<u32>, entries: &BTreeMap<u32, Entry>, escapes: bool) -> Function {
        let call = |raw: &RawCall| CallSite {
            offset: raw.offset,
            callee: self.callee(raw.to),
            link: (raw.link != 255).then_some(raw.link),
        };
        let mut calls: Vec<CallSite> = draft.calls.iter().map(call).collect();
        calls.sort_by_key(|call| call.offset);
        let mut problems = draft.faults;
        for block in draft.blocks.iter().filter(|block| block.exit == Exit::Unknown) {
            let is_jump = self.context.decode(block.last).is_some_and(|inst| self.context.ops.of(&inst) == Op::SetPc);
            let is_told = problems.range(at(block.last)).next().is_some();
            if is_jump && !is_told {
                problems.insert(Problem { offset: block.last, reason: Reason::UnknownJump });
            }
        }
        let own = entries
            .range(draft.start..draft.end)
            .map(|(_, entry)| Entry { open: entry.open || escapes && !entry.is_kernel(), ..*entry });
        let mut entries: Vec<Entry> = own.collect();
        entries.shrink_to_fit();
        let (mut blocks, mut edges) = (draft.blocks, draft.edges);
        blocks.shrink_to_fit();
        edges.shrink_to_fit();
        Function {
            start: draft.start,
            end: draft.end,
            mark,
            entries,
            blocks,
            edges,
            calls,
            problems: problems.into_iter().collect(),
            pc_values: draft.tracked.values,
            starts: draft.starts,
            reads: draft.reads,
            writes: draft.writes,
            banked: draft.banked,
            indexed: draft.indexed,
            escapes: draft.tracked.escapes,
        }
    }
}

/// All problems that an instruction can have.
fn at(offset: u32) -> std::ops::RangeInclusive<Problem> {
    Problem { offset, reason: Reason::Undecodable }..=Problem { offset, reason: Reason::Undefined }
}
