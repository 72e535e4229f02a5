//! Jumps to addresses that were loaded: by tables of addresses, as found in assembly.
//!
//! All memory contents were written by the program or come from the file. So a jump whose address comes whole from
//! memory, without arithmetic, has as its target an address that a word of the file names, or one that code has
//! computed. All such addresses in the jump's function are its successors, whichever table it may read. It leaves the
//! function as well unless the function is a kernel that calls nothing and no such address is outside
//! ([`DraftTable::strays`]). Without other unknown transfers, the addresses are not entries: only these jumps reach
//! them ([`DraftTable::closes`]).
//!
//! Invariants: all jumps of a function are resolved, or none of them. The addresses found in registers stay valid with
//! the new edges, or the jumps stay unknown. They stay unknown, too, where memory may hold an address of code that is
//! not among these.
//!
//! Assumed, as for files without relocations elsewhere: code does not write values that it computes from distances in
//! data, or from loaded addresses, to memory for such jumps to load; relocations of distances into the function are
//! seen.
//!
//! Absent on purpose: which table a jump reads, and its length; distances in tables.

use super::const_prop::{DefUseList, first_scalar_destination};
use super::context::CfgContext;
use super::draft::{DraftTable, FunctionDraft, GroupedBytes, JumpTarget};
use crate::address_slice::{Origins, SliceCode};
use crate::place::ProgramByte;
use crate::problem::{AnalysisProblem, ProblemReason};
use crate::source::{FixupKind, MarkKind};
use hotswap_isa::reg::{Reg, RegFile};
use std::cell::OnceCell;

/// Maximum targets of the jumps of a function.
const MOST_TARGETS: usize = 4096;
/// Maximum edges of the jumps of a function.
const MOST_EDGES: usize = 1 << 16;

/// Resolves the jumps of all functions, as far as that can be proven; obstacles become problems.
pub(crate) fn resolve_jumps(context: &CfgContext<'_, '_>, stretches: &mut [GroupedBytes]) {
    let unknown =
        |stretch: &GroupedBytes| stretch.draft.as_ref().is_some_and(|draft| unknown_jumps(draft).next().is_some());
    let numbers: Vec<usize> = (0..stretches.len()).filter(|number| unknown(&stretches[*number])).collect();
    if numbers.is_empty() {
        return;
    }
    let named = NamedAddresses::of(context, stretches);
    let mut touches = DefUseList::new(context.isa());
    for number in &numbers {
        let Some(mut draft) = stretches[*number].draft.take() else { continue };
        match named.jump_table(context, &draft) {
            Ok(table) => {
                let jumps = table.jumps.clone();
                if !draft.take_table(context, &mut touches, table) {
                    record_faults(&mut draft, &jumps, ProblemReason::UnclearJump);
                }
            }
            Err((jumps, reason)) => record_faults(&mut draft, &jumps, reason),
        }
        stretches[*number].draft = Some(draft);
    }
    if let [only] = numbers[..] {
        close_function(context, stretches, only);
    }
}

fn record_faults(draft: &mut FunctionDraft, jumps: &[u32], reason: ProblemReason) {
    draft.faults.extend(jumps.iter().map(|offset| AnalysisProblem { offset: *offset, reason }));
}

fn unknown_jumps(draft: &FunctionDraft) -> impl Iterator<Item = u32> {
    draft.tracked.jumps.iter().filter(|jump| jump.target == JumpTarget::Unknown).map(|jump| jump.offset)
}

/// Decides for the one function with such jumps whether they are the only paths to the addresses that are
/// named inside of it.
fn close_function(context: &CfgContext<'_, '_>, stretches: &mut [GroupedBytes], number: usize) {
    if stretches.iter().filter_map(|stretch| stretch.draft.as_deref()).any(|one| may_transfer_anywhere(one, context)) {
        return;
    }
    if let Some(table) = stretches[number].draft.as_mut().and_then(|draft| draft.table.as_mut()) {
        table.closes = !table.strays;
    }
}

fn has_unknown_call(draft: &FunctionDraft) -> bool {
    draft.tracked.calls.iter().any(|call| call.to.is_none())
}

fn has_kernel_return(draft: &FunctionDraft, context: &CfgContext<'_, '_>) -> bool {
    is_kernel(context, draft.start)
        && draft.tracked.jumps.iter().any(|jump| matches!(jump.target, JumpTarget::Return(_)))
}

fn may_transfer_anywhere(draft: &FunctionDraft, context: &CfgContext<'_, '_>) -> bool {
    has_unknown_call(draft) || has_kernel_return(draft, context) || !draft.faults.is_empty()
}

/// Addresses of code that memory may hold.
struct NamedAddresses {
    /// Offsets that words of the file name, or literals, ascending.
    words: Vec<u32>,
    /// Offsets that are results of sums, ascending.
    sums: Vec<u32>,
    /// Words or literals name code that is not in this section, or may.
    others: bool,
    /// Addresses are used where they are not tracked.
    escapes: bool,
    /// Offsets that functions reach in others, or call in themselves, ascending.
    led: Vec<u32>,
}

/// Jumps that stay unknown, and the reason.
type Unexplained = (Vec<u32>, ProblemReason);

impl NamedAddresses {
    fn of(context: &CfgContext<'_, '_>, stretches: &[GroupedBytes]) -> Self {
        let source = context.source;
        let literals = source.fixups.iter().filter(|fixup| is_absolute_fixup_kind(fixup.kind));
        let literals = literals.filter_map(|fixup| source.target(fixup));
        let places: Vec<ProgramByte> = source.slots.iter().map(|slot| slot.to).chain(literals).collect();
        let mut drafts = stretches.iter().filter_map(|stretch| stretch.draft.as_deref());
        let values = drafts.clone().flat_map(|draft| &draft.tracked.values).map(|value| value.to);
        let led = drafts.clone().flat_map(|draft| draft.called.iter().chain(&draft.reached));
        let mut led: Vec<u32> = led.copied().collect();
        led.sort_unstable();
        Self {
            others: !source.alone || places.iter().any(|place| place.base >= ProgramByte::EXTERN),
            words: sorted_place_offsets(&mut places.iter().copied(), source),
            sums: sorted_place_offsets(&mut { values }, source),
            escapes: drafts.any(|draft| draft.tracked.escapes),
            led,
        }
    }

    /// The jumps of a function with their successors.
    fn jump_table(&self, context: &CfgContext<'_, '_>, draft: &FunctionDraft) -> Result<DraftTable, Unexplained> {
        let jumps: Vec<u32> = unknown_jumps(draft).collect();
        if jumps.len() > MOST_TARGETS {
            return Err((jumps, ProblemReason::CrowdedJump));
        }
        let code = draft.slice_code(context);
        let origins: Vec<Option<Origins>> = jumps.iter().map(|jump| code.origins(*jump)).collect();
        let computed = jumps_with_origins(&|origins| origins.is_none(), &jumps, &origins);
        if !computed.is_empty() {
            return Err((computed, ProblemReason::ComputedJump));
        }
        if jumps_with_origins(&Origins::is_loaded, &jumps, &origins).len() < jumps.len() {
            return Err((Vec::new(), ProblemReason::UnknownJump));
        }
        let words = offsets_in_function(&self.words, draft);
        if !words.iter().any(|offset| !is_function(context, *offset)) {
            return Err((jumps, ProblemReason::UnnamedJump));
        }
        let sums = offsets_in_function(&self.sums, draft).iter().copied().filter(|offset| !is_data(context, *offset));
        let mut targets: Vec<u32> = words.iter().copied().chain(sums).collect();
        targets.sort_unstable();
        targets.dedup();
        let are_known =
            targets.iter().all(|target| target.is_multiple_of(4) && draft.blocks.block_starting_at(*target).is_some());
        if self.escapes || !are_known || has_hints(context, draft) || leaks_counter(context, draft) {
            return Err((jumps, ProblemReason::UnclearJump));
        }
        if targets.len() > MOST_TARGETS || targets.len().saturating_mul(jumps.len()) > MOST_EDGES {
            return Err((jumps, ProblemReason::CrowdedJump));
        }
        Ok(DraftTable { strays: self.may_leave_function(context, draft), closes: false, jumps, targets })
    }

    /// Whether loaded addresses may be outside of the function.
    fn may_leave_function(&self, context: &CfgContext<'_, '_>, draft: &FunctionDraft) -> bool {
        self.others
            || !draft.calls.is_empty()
            || !offsets_in_function(&self.led, draft).is_empty()
            || self.words.iter().chain(&self.sums).any(|offset: &u32| !draft.holds(*offset))
            || draft.entries.iter().any(|entry| !is_kernel(context, *entry) && !is_named_entry(*entry, self, context))
    }
}

fn is_absolute_fixup_kind(kind: FixupKind) -> bool {
    use FixupKind::{Abs32, Abs32Hi, Abs32Lo, Abs64};
    matches!(kind, Abs32 | Abs32Lo | Abs32Hi | Abs64)
}

fn sorted_place_offsets(places: &mut dyn Iterator<Item = ProgramByte>, source: &crate::CodeSource<'_>) -> Vec<u32> {
    let mut offsets: Vec<u32> = places.filter_map(|place| source.offset_of(place)).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

fn jumps_with_origins(
    wanted: &dyn Fn(Option<Origins>) -> bool,
    jumps: &[u32],
    origins: &[Option<Origins>],
) -> Vec<u32> {
    let found = jumps.iter().zip(origins).filter(|(_, origins)| wanted(**origins));
    found.map(|(jump, _)| *jump).collect()
}

fn is_named_entry(entry: u32, addresses: &NamedAddresses, context: &CfgContext<'_, '_>) -> bool {
    addresses.words.binary_search(&entry).is_ok() && !is_function(context, entry)
}

impl Origins {
    /// Whether an address was loaded, or computed in full: it lacks any other origin.
    fn is_loaded(origins: Option<Self>) -> bool {
        origins.is_some_and(|origins| origins.memory && !origins.others)
    }
}

impl FunctionDraft {
    /// Its code, for the backward search for addresses.
    fn slice_code<'c>(&'c self, context: &'c CfgContext<'_, '_>) -> SliceCode<'c> {
        let mut entries = self.entries.clone();
        entries.sort_unstable();
        SliceCode {
            source: context.source,
            ops: context.ops,
            blocks: &self.blocks,
            starts: &self.starts,
            span: (self.start, self.end),
            entries,
            values: &self.tracked.values,
            before: OnceCell::new(),
        }
    }

    /// Makes blocks with the edges of a table. Returns whether all other results stay the same as without them.
    fn take_table(&mut self, context: &CfgContext<'_, '_>, touches: &mut DefUseList, table: DraftTable) -> bool {
        self.table = Some(table);
        let with_edges = self.track_with_table(context, touches);
        let before = &self.tracked;
        let is_same = with_edges.jumps == before.jumps
            && with_edges.calls == before.calls
            && with_edges.values == before.values
            && with_edges.serving == before.serving
            && with_edges.taken == before.taken
            && with_edges.escapes == before.escapes;
        let code = self.slice_code(context);
        let holds = is_same && unknown_jumps(self).all(|one| has_loaded_origin(one, &code));
        if !holds {
            self.drop_table(context);
        }
        holds
    }
}

fn has_loaded_origin(jump: u32, code: &SliceCode<'_>) -> bool {
    Origins::is_loaded(code.origins(jump))
}

/// The offsets that are in a function.
fn offsets_in_function<'o>(offsets: &'o [u32], draft: &FunctionDraft) -> &'o [u32] {
    let first = offsets.partition_point(|offset| *offset < draft.start);
    let count = offsets[first..].partition_point(|offset| *offset < draft.end);
    &offsets[first..first + count]
}

fn marks_at<'c>(context: &'c CfgContext<'_, '_>, offset: u32) -> impl Iterator<Item = MarkKind> + Clone + 'c {
    let marks = &context.source.marks;
    let first = marks.partition_point(|mark| mark.offset < offset);
    marks[first..].iter().take_while(move |mark| mark.offset == offset).map(|mark| mark.kind)
}

fn is_kernel(context: &CfgContext<'_, '_>, offset: u32) -> bool {
    marks_at(context, offset).any(|kind| matches!(kind, MarkKind::Kernel(_)))
}

fn is_function(context: &CfgContext<'_, '_>, offset: u32) -> bool {
    marks_at(context, offset).any(|kind| matches!(kind, MarkKind::Kernel(_) | MarkKind::Function))
}

/// Whether an offset is in a symbol that names data.
fn is_data(context: &CfgContext<'_, '_>, offset: u32) -> bool {
    let marks = &context.source.marks;
    let before = &marks[..marks.partition_point(|mark| mark.offset <= offset)];
    before.iter().any(|mark| mark.kind == MarkKind::Object && offset - mark.offset < mark.size)
}

/// Whether relocations elsewhere refer to a place inside of the function otherwise than as an address.
fn has_hints(context: &CfgContext<'_, '_>, draft: &FunctionDraft) -> bool {
    offsets_in_function(&context.source.hints, draft).iter().any(|offset| !is_function(context, *offset))
}

/// Whether a program counter itself may be used elsewhere before it becomes part of a sum.
fn leaks_counter(context: &CfgContext<'_, '_>, draft: &FunctionDraft) -> bool {
    draft
        .counters
        .iter()
        .filter(|counter| !is_serving_counter(counter, draft))
        .any(|counter| !is_used_up(context, draft, *counter))
}

fn is_serving_counter(counter: &u32, draft: &FunctionDraft) -> bool {
    draft.tracked.serving.binary_search(counter).is_ok()
}

/// Whether the first sum of a program counter is in its block, overwrites both halves, and they are not read elsewhere.
fn is_used_up(context: &CfgContext<'_, '_>, draft: &FunctionDraft, counter: u32) -> bool {
    let sums = draft.tracked.values.iter().filter(|value| value.pc == counter && value.low > counter);
    let Some(sum) = sums.min_by_key(|value| value.low) else { return false };
    let Some(block) = draft.blocks.block_before(counter).map(|block| draft.block(block)) else { return false };
    let Some(inst) = context.decode_at(counter) else { return false };
    let first = u16::from(first_scalar_destination(&inst, context.isa()));
    let (mut at, mut left) = (counter + u32::from(inst.len()), vec![first, first + 1]);
    while at <= sum.low.max(sum.high) && at < block.end {
        let Some(inst) = context.decode_at(at) else { return false };
        let reads =
            inst.reads(context.isa()).any(|effect| left.iter().any(|index| touches_sgpr_index(effect.reg, index)));
        if reads && at != sum.low && at != sum.high {
            return false;
        }
        inst.writes(context.isa()).for_each(|effect| left.retain(|index| !touches_sgpr_index(effect.reg, index)));
        at += u32::from(inst.len());
    }
    left.is_empty()
}

fn touches_sgpr_index(reg: Reg, index: &u16) -> bool {
    reg.file == RegFile::Sgpr && (reg.index..reg.index + u16::from(reg.count)).contains(index)
}
