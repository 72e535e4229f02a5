//! From a [`CodeSource`] to its functions.
//!
//! The section is cut into stretches at the functions that symbols name. Every stretch is followed from its entries,
//! all in parallel. A target in another stretch becomes an entry there, until no new ones appear. Where only some
//! offsets matter, stretches of plain code ([`super::leaf_scan`]) are skipped unless they are called.

use super::clobbers::Clobbers;
use super::const_prop::DefUseList;
use super::context::CfgContext;
use super::draft::{DraftTable, FunctionDraft, GroupedBytes, TAIL_OFFSET};
use super::last_call;
use super::leaf_scan::Sweep;
use super::order::BlockOrder;
use super::tables;
use crate::block::BlockExit;
use crate::calls::{CallDestination, CallSite};
use crate::function::{EntryKind, EntryPoint, Function};
use crate::ops::{AddressOp, Ops};
use crate::place::ProgramByte;
use crate::problem::{AnalysisProblem, ProblemReason};
use crate::source::{CodeSource, FixupKind, LinkerFixup, MarkKind};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// Rounds of finding entries in other functions, by branches or by addresses; each is linear in the new ones.
const ROUNDS: usize = 256;
/// Rounds of finding calls after calls; a chain of calls in one function needs two.
const CALL_ROUNDS: usize = 8;
/// Maximum drafts per task: with fewer tasks one thread would be busy alone at the end.
const DRAFTS: usize = 128;
/// Bytes between the two entries of a kernel with preloaded arguments.
const PRELOADED: u32 = 256;

/// The functions of a section; with offsets, those that [`Program::around`](crate::Program::around) needs.
pub(crate) fn find_functions(source: &CodeSource<'_>, ops: &Ops, offsets: Option<&[u32]>) -> Vec<Function> {
    let context = CfgContext::new(source, ops);
    let mut builder = CfgBuilder::new(context);
    builder.entries_of_symbols();
    if let Some(offsets) = offsets {
        builder.leave_plain(offsets);
    }
    builder.follow_pending();
    builder.follow_calls();
    builder.follow_callers();
    builder.follow_last_calls();
    tables::resolve_jumps(&builder.context, &mut builder.stretches);
    builder.finish_functions()
}

/// A draft moved to another thread and back.
type MovedDraft = Box<FunctionDraft>;

/// An entry that is not followed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PendingEntry {
    /// The number of its stretch.
    stretch: u32,
    offset: u32,
}

struct CfgBuilder<'s, 'a> {
    context: CfgContext<'s, 'a>,
    stretches: Vec<GroupedBytes>,
    entries: BTreeMap<u32, EntryPoint>,
    /// Entries that are not followed yet.
    pending: Vec<PendingEntry>,
    /// Stretches in which addresses in registers are not followed yet.
    due: Vec<u32>,
}

impl<'s, 'a> CfgBuilder<'s, 'a> {
    /// Cuts the section into stretches: the ranges of symbols, and the gaps between them.
    fn new(context: CfgContext<'s, 'a>) -> Self {
        let source = context.source;
        let mut builder =
            Self { context, stretches: Vec::new(), entries: BTreeMap::new(), pending: Vec::new(), due: Vec::new() };
        let length = source.bytes.len() as u32;
        let marks = source.marks.iter().enumerate();
        let mut functions =
            marks.filter(|(_, mark)| is_function(&mark.kind) && mark.offset.is_multiple_of(4)).peekable();
        let mut at = 0;
        while let Some((number, mark)) = functions.next() {
            builder.push_stretch(at, mark.offset, None);
            let mut end = mark.offset.saturating_add(mark.size).next_multiple_of(4).min(length);
            // Names inside the range of another symbol are further entries of it.
            while let Some((_, inner)) = functions.next_if(|(_, next)| next.offset < end || next.offset == mark.offset)
            {
                end = end.max(inner.offset.saturating_add(inner.size).next_multiple_of(4).min(length));
            }
            let next = functions.peek().map_or(length, |(_, next)| next.offset);
            if end <= mark.offset {
                end = next;
            }
            builder.push_stretch(mark.offset, end, Some(number as u32));
            at = end;
        }
        builder.push_stretch(at, length, None);
        builder.context.clobbers = Clobbers::new(&builder.stretches);
        builder
    }

    fn push_stretch(&mut self, start: u32, end: u32, mark: Option<u32>) {
        if start < end {
            self.stretches.push(GroupedBytes { start, end, mark, plain: false, draft: None });
        }
    }

    fn index_of(&self, offset: u32) -> Option<usize> {
        let index = self.stretches.partition_point(|stretch| stretch.start <= offset).checked_sub(1)?;
        self.stretches.get(index).filter(|stretch| offset < stretch.end).map(|_| index)
    }

    fn add_entry(&mut self, offset: u32, kind: EntryKind, open: bool) {
        let Some(index) = self.index_of(offset).filter(|_| offset.is_multiple_of(4)) else { return };
        let is_new = !self.entries.contains_key(&offset);
        if self.stretches[index].plain && (is_new || kind == EntryKind::Target) {
            self.include_stretch(index);
        }
        let entry = self.entries.entry(offset).or_insert(EntryPoint { offset, kind, open });
        (entry.kind, entry.open) = (entry.kind.min(kind), entry.open || open);
        if is_new {
            self.pending.push(PendingEntry { stretch: index as u32, offset });
        }
    }

    /// Includes a stretch that was skipped.
    fn include_stretch(&mut self, index: usize) {
        let stretch = &mut self.stretches[index];
        if !std::mem::take(&mut stretch.plain) {
            return;
        }
        let entries = self.entries.range(stretch.start..stretch.end);
        self.pending.extend(entries.map(|(&offset, _)| PendingEntry { stretch: index as u32, offset }));
    }

    /// Skips stretches that are plain and hold none of the offsets, which ascend.
    fn leave_plain(&mut self, offsets: &[u32]) {
        self.pending.sort_unstable();
        let (context, stretches) = (&self.context, &self.stretches);
        let plain: Vec<u32> = group_by_stretch(&self.pending)
            .par_iter()
            .with_min_len(16)
            .map_init(
                || (Sweep::default(), Vec::new()),
                |(sweep, entries), group| {
                    let index = group[0].stretch;
                    let stretch = &stretches[index as usize];
                    let first = offsets.partition_point(|offset| *offset < stretch.start);
                    let wanted = offsets.get(first).is_some_and(|offset| *offset < stretch.end);
                    entries.clear();
                    entries.extend(group.iter().map(|entry| entry.offset));
                    (!wanted && sweep.is_plain(context, stretch.start, stretch.end, entries)).then_some(index)
                },
            )
            .flatten_iter()
            .collect();
        plain.into_iter().for_each(|index| self.stretches[index as usize].plain = true);
        let stretches = &self.stretches;
        self.pending.retain(|entry| !stretches[entry.stretch as usize].plain);
    }

    /// Adds all entries that the file names.
    fn entries_of_symbols(&mut self) {
        let source = self.context.source;
        for mark in &source.marks {
            match mark.kind {
                MarkKind::Kernel(needs) => {
                    self.add_entry(mark.offset, EntryKind::Kernel, false);
                    if needs.preloads {
                        self.add_entry(mark.offset.saturating_add(PRELOADED), EntryKind::Preloaded, false);
                    }
                }
                MarkKind::Function => self.add_entry(mark.offset, EntryKind::Function, mark.exported),
                MarkKind::Object | MarkKind::Label => {}
            }
        }
        // The function symbol of a kernel is exported, too, but kernels are never called.
        for mark in source.marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Kernel(_))) {
            if let Some(entry) = self.entries.get_mut(&mark.offset) {
                entry.open = false;
            }
        }
        for offset in &source.entries {
            self.add_entry(*offset, EntryKind::Address, true);
        }
        for fixup in source.fixups.iter().filter(is_absolute_fixup) {
            if let Some(offset) = source.target(fixup).and_then(|place| source.offset_of(place)) {
                self.add_entry(offset, EntryKind::Address, true);
            }
        }
        for slot in &source.slots {
            if let Some(offset) = source.offset_of(slot.to) {
                self.add_entry(offset, EntryKind::Address, true);
            }
        }
    }

    /// Follows all pending entries, and everything reached from them.
    fn follow_pending(&mut self) {
        for _ in 0..ROUNDS {
            if !self.pending.is_empty() {
                self.walk_pending();
            } else if !self.due.is_empty() {
                let due = std::mem::take(&mut self.due);
                self.track_functions(&due, &[]);
            } else {
                return;
            }
        }
        let mut left = std::mem::take(&mut self.pending);
        let due = std::mem::take(&mut self.due).into_iter();
        left.extend(due.map(|stretch| PendingEntry { stretch, offset: self.stretches[stretch as usize].start }));
        for PendingEntry { stretch, offset } in left {
            let stretch = &mut self.stretches[stretch as usize];
            let mut draft = stretch.take();
            draft.faults.insert(AnalysisProblem { offset, reason: ProblemReason::TooDeep });
            stretch.draft = Some(draft);
        }
    }

    /// Follows pending entries, except for addresses in registers.
    fn walk_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        let groups = group_by_stretch(&pending);
        let known: Vec<Option<MovedDraft>> =
            groups.iter().map(|group| self.stretches[group[0].stretch as usize].draft.take()).collect();
        let (context, stretches) = (&self.context, &self.stretches);
        // New ones are allocated where they are filled: a new page of memory costs as much as reading its code.
        let walked = known.into_par_iter().zip(&groups).with_max_len(DRAFTS).map(|(draft, group)| {
            let mut draft = draft.unwrap_or_else(|| stretches[group[0].stretch as usize].new_draft());
            let entries: Vec<u32> = group.iter().map(|entry| entry.offset).collect();
            draft.walk_entries(context, &entries);
            draft
        });
        let drafts: Vec<MovedDraft> = walked.collect();
        let numbers: Vec<u32> = groups.iter().map(|group| group[0].stretch).collect();
        self.due.extend(numbers.iter().zip(&drafts).filter(|(_, draft)| draft.due).map(|(number, _)| *number));
        let stretches = &self.stretches;
        let led = drafts.iter().flat_map(|draft| &draft.leads).filter(|number| stretches[**number as usize].plain);
        let led: Vec<u32> = led.copied().collect();
        self.put_back(&numbers, drafts);
        led.into_iter().for_each(|number| self.include_stretch(number as usize));
    }

    /// Follows the addresses in registers of the functions in some stretches, callees before callers, and records
    /// the registers written by called functions, `called` among them. Functions for which all is known, or
    /// nothing new, are skipped.
    fn track_functions(&mut self, numbers: &[u32], called: &[u32]) {
        let order = BlockOrder::of(&self.context, &self.stretches, numbers, called);
        for level in &order.levels {
            let clock = self.context.clobbers.clock();
            let wanted = level.iter().flatten().copied().filter(|number| {
                let draft = self.stretches[*number as usize].draft.as_deref();
                draft.is_some_and(|draft| draft.due || draft.is_open() && draft.clock != clock)
            });
            let wanted: Vec<u32> = wanted.collect();
            let mut drafts: Vec<MovedDraft> =
                wanted.iter().map(|number| self.stretches[*number as usize].take()).collect();
            let context = &self.context;
            let due = drafts.par_iter_mut().with_max_len(DRAFTS);
            due.for_each_init(
                || DefUseList::new(context.isa()),
                |touches, draft| draft.track_addresses(context, touches),
            );
            self.put_back(&wanted, drafts);
            self.record_clobbers(level, &order);
        }
    }

    /// Records the registers that called functions write.
    fn record_clobbers(&mut self, level: &[Vec<u32>], order: &BlockOrder) {
        let called: Vec<u32> = level.iter().flatten().copied().filter(|number| order.is_called(*number)).collect();
        let context = &self.context;
        let mut drafts: Vec<MovedDraft> = called.iter().map(|number| self.stretches[*number as usize].take()).collect();
        drafts.par_iter_mut().for_each(|draft| draft.name(context));
        for (number, draft) in called.iter().zip(drafts) {
            self.stretches[*number as usize].draft = Some(draft);
        }
        for group in level.iter().filter(|group| group.iter().any(|number| order.is_called(*number))) {
            self.context.clobbers.update_group(self.context.source, &self.stretches, group);
        }
    }

    /// Takes the results of following drafts, and keeps the drafts.
    fn put_back(&mut self, numbers: &[u32], drafts: Vec<MovedDraft>) {
        let (stretches, known) = (&self.stretches, &self.entries);
        let found: Vec<FollowedDraft> = drafts
            .par_iter()
            .with_min_len(64)
            .map(|draft| FollowedDraft::of(draft, |one| is_known_target(one, known, stretches)))
            .collect();
        for (number, draft) in numbers.iter().zip(drafts) {
            self.stretches[*number as usize].draft = Some(draft);
        }
        for found in found {
            found.targets.into_iter().for_each(|target| self.add_entry(target, EntryKind::Target, false));
            found.taken.into_iter().for_each(|target| self.add_entry(target, EntryKind::Address, true));
        }
    }

    fn all_drafts(&self) -> impl Iterator<Item = &FunctionDraft> {
        self.stretches.iter().filter_map(|stretch| stretch.draft.as_deref())
    }

    /// Follows again the drafts in which an address stayed unknown because too little was known about
    /// the callees in between.
    fn follow_calls(&mut self) {
        for _ in 0..CALL_ROUNDS {
            let numbers =
                (0..self.stretches.len() as u32).filter(|number| has_open_draft(&self.stretches[*number as usize]));
            let open: Vec<u32> = numbers.collect();
            if open.is_empty() {
                return;
            }
            let before = self.unknown_count(&open);
            let called = self.callable_functions();
            self.track_functions(&open, &called);
            self.follow_pending();
            if self.unknown_count(&open) == before {
                return;
            }
        }
    }

    /// How much is unknown in the drafts of these stretches together.
    fn unknown_count(&self, stretches: &[u32]) -> usize {
        let drafts = stretches.iter().filter_map(|number| self.stretches[*number as usize].draft.as_ref());
        drafts.map(|draft| draft.unknown()).sum()
    }

    /// Follows again the callers of functions that write more registers than was known when
    /// these callers were followed.
    fn follow_callers(&mut self) {
        for _ in 0..CALL_ROUNDS {
            let stale = (0..self.stretches.len() as u32).filter(|number| {
                let draft = self.stretches[*number as usize].draft.as_deref();
                self.context.clobbers.is_known(*number) && draft.is_some_and(|draft| draft.named.is_none())
            });
            let stale: Vec<u32> = stale.collect();
            if !stale.is_empty() {
                self.track_functions(&[], &stale);
            }
            let grown = self.context.clobbers.take_grown();
            if grown.is_empty() {
                return;
            }
            let callers = self.callers_of(&grown);
            for number in &callers {
                self.stretches[*number as usize].draft.iter_mut().for_each(|draft| draft.due = true);
            }
            let called = self.callable_functions();
            self.track_functions(&callers, &called);
            self.follow_pending();
        }
        let grown = self.context.clobbers.take_grown();
        for number in self.callers_of(&grown) {
            let GroupedBytes { start, draft, .. } = &mut self.stretches[number as usize];
            draft.iter_mut().for_each(|draft| {
                draft.faults.insert(AnalysisProblem { offset: *start, reason: ProblemReason::TooDeep });
            });
        }
    }

    /// Follows the code after calls at the ends of functions, where they may return.
    fn follow_last_calls(&mut self) {
        loop {
            let numbers = last_call::returning(&self.context, &self.stretches);
            if numbers.is_empty() {
                return;
            }
            let mut drafts: Vec<MovedDraft> =
                numbers.iter().map(|number| self.stretches[*number as usize].take()).collect();
            drafts.iter_mut().for_each(|draft| draft.follow_last_call(&self.context));
            self.put_back(&numbers, drafts);
            self.follow_pending();
            self.follow_calls();
            self.follow_callers();
        }
    }

    /// Functions with calls of these, in any order.
    fn callers_of(&self, callees: &[u32]) -> Vec<u32> {
        let callees: HashSet<u32> = callees.iter().copied().collect();
        let (source, clobbers) = (self.context.source, &self.context.clobbers);
        let callers = (0..self.stretches.len() as u32).filter(|number| {
            let Some(draft) = self.stretches[*number as usize].draft.as_deref() else { return false };
            let mut called = draft.calls.iter().filter_map(|call| clobbers.callee_stretch(source, call.to));
            draft.tracks && called.any(|callee| callees.contains(&callee))
        });
        callers.collect()
    }

    /// Functions that may be called; kernels are not, unless code is found that does so.
    fn callable_functions(&self) -> Vec<u32> {
        let called = self.entries.values().filter(|entry| !entry.is_kernel());
        called.filter_map(|entry| self.context.clobbers.index_of(entry.offset)).collect()
    }

    fn finish_functions(self) -> Vec<Function> {
        let escapes = self.all_drafts().any(|draft| draft.tracked.escapes);
        let mut numbers = Vec::with_capacity(self.stretches.len());
        let mut count = 0;
        for stretch in &self.stretches {
            numbers.push(stretch.draft.is_some().then_some(count));
            count += u32::from(stretch.draft.is_some());
        }
        let starts: Vec<u32> = self.stretches.iter().map(|stretch| stretch.start).collect();
        let finder = FunctionFinder { context: &self.context, starts, numbers };
        let (entries, finder) = (&self.entries, &finder);
        let made = self.stretches.into_par_iter().with_min_len(64).filter_map(|stretch| {
            let draft = stretch.draft?;
            Some(finder.build_function(*draft, stretch.mark, entries, escapes))
        });
        made.collect()
    }
}

/// An absolute address is not followed: it may be used anywhere.
fn is_absolute_fixup(fixup: &&LinkerFixup) -> bool {
    use FixupKind::{Abs32, Abs32Hi, Abs32Lo, Abs64};
    matches!(fixup.kind, Abs32 | Abs32Lo | Abs32Hi | Abs64)
}

fn is_known_target(target: u32, known: &BTreeMap<u32, EntryPoint>, stretches: &[GroupedBytes]) -> bool {
    known.contains_key(&target) && !is_plain(stretches, target)
}

fn has_open_draft(stretch: &GroupedBytes) -> bool {
    stretch.draft.as_ref().is_some_and(|draft| draft.is_open())
}

/// The result of following a draft.
struct FollowedDraft {
    targets: Vec<u32>,
    taken: Vec<u32>,
}

impl FollowedDraft {
    /// Targets that are known already add nothing new.
    fn of(draft: &FunctionDraft, is_known: impl Fn(u32) -> bool) -> Self {
        let targets = draft.called.iter().chain(&draft.reached).copied().filter(|target| !is_known(*target)).collect();
        Self { targets, taken: draft.tracked.taken.clone() }
    }
}

/// Whether an offset is in a stretch that is skipped.
fn is_plain(stretches: &[GroupedBytes], offset: u32) -> bool {
    let index = stretches.partition_point(|stretch| stretch.start <= offset).checked_sub(1);
    index.and_then(|index| stretches.get(index)).is_some_and(|stretch| stretch.plain)
}

/// Groups of entries in the same stretch; they are sorted.
fn group_by_stretch(pending: &[PendingEntry]) -> Vec<&[PendingEntry]> {
    pending.chunk_by(|a, b| a.stretch == b.stretch).collect()
}

fn is_function(kind: &MarkKind) -> bool {
    matches!(kind, MarkKind::Kernel(_) | MarkKind::Function)
}

/// Turns drafts into functions.
struct FunctionFinder<'c, 's, 'a> {
    context: &'c CfgContext<'s, 'a>,
    /// Starts of the stretches; they cover the section.
    starts: Vec<u32>,
    numbers: Vec<Option<u32>>,
}

impl FunctionFinder<'_, '_, '_> {
    fn resolve_callee(&self, to: Option<ProgramByte>) -> CallDestination {
        let Some(place) = to else { return CallDestination::Unknown };
        let offset = match place.base {
            TAIL_OFFSET => u32::try_from(place.at).ok(),
            _ => self.context.source.offset_of(place),
        };
        let Some(entry) = offset else { return CallDestination::Outside(place) };
        let index = self.starts.partition_point(|start| *start <= entry).checked_sub(1);
        let function = index.and_then(|index| self.numbers.get(index).copied().flatten());
        function.map_or(CallDestination::Unknown, |function| CallDestination::Function { function, entry })
    }

    fn build_function(
        &self,
        mut draft: FunctionDraft,
        mark: Option<u32>,
        entries: &BTreeMap<u32, EntryPoint>,
        escapes: bool,
    ) -> Function {
        let calls = draft.calls.iter().map(|raw| CallSite {
            offset: raw.offset,
            callee: self.resolve_callee(raw.to),
            link: (raw.link != 255).then_some(raw.link),
        });
        let mut calls: Vec<CallSite> = calls.collect();
        calls.sort_by_key(|call| call.offset);
        let mut problems = std::mem::take(&mut draft.faults);
        for block in (0..draft.blocks.len()).filter(|block| draft.blocks.exit_of_block(*block) == BlockExit::Unknown) {
            let last = draft.block(block).last;
            let is_jump =
                self.context.decode_at(last).is_some_and(|inst| self.context.ops.address_op(&inst) == AddressOp::SetPc);
            let is_told = problems.range(problems_at(last)).next().is_some();
            if is_jump && !is_told {
                problems.insert(AnalysisProblem { offset: last, reason: ProblemReason::UnknownJump });
            }
        }
        // An offset reached only by jumps by tables that have edges is not an entry.
        let table = draft.table.take().unwrap_or_default();
        let own = entries
            .range(draft.start..draft.end)
            .filter(|(_, entry)| !is_table_entry_point(entry, &table))
            .map(|(_, entry)| EntryPoint { open: entry.open || escapes && !entry.is_kernel(), ..*entry });
        let mut entries: Vec<EntryPoint> = own.collect();
        entries.shrink_to_fit();
        let mut modes = if draft.banked { draft.modes } else { Vec::new() };
        modes.sort_unstable();
        modes.shrink_to_fit();
        Function {
            start: draft.start,
            end: draft.end,
            mark,
            entries,
            blocks: draft.blocks,
            calls,
            problems: problems.into_iter().collect(),
            pc_values: draft.tracked.values,
            serving: draft.tracked.serving,
            starts: draft.starts,
            banked: draft.banked,
            modes,
            indexed: draft.indexed,
            escapes: draft.tracked.escapes,
            strays: table.strays,
            lost: draft.tracked.lost,
        }
    }
}

fn is_table_entry_point(entry: &EntryPoint, table: &DraftTable) -> bool {
    entry.kind == EntryKind::Address && table.closes && table.targets.binary_search(&entry.offset).is_ok()
}

/// All problems that an instruction can have.
fn problems_at(offset: u32) -> std::ops::RangeInclusive<AnalysisProblem> {
    AnalysisProblem { offset, reason: ProblemReason::Undecodable }..=AnalysisProblem {
        offset,
        reason: ProblemReason::Undefined,
    }
}
