//! Compares the instructions of the result with those of the input, function by function.
//!
//! Invariants: instructions outside the plan keep their bytes, except for distances (whose targets are unchanged),
//! literals of computed addresses (see [`super::flow`]), and `s_clause` and `s_delay_alu`, which state less.

use super::branch_targets::{FollowedBranch, check_branch_targets};
use super::offset_map::{CodeOffsetMap, NewPlace, OffsetStep};
use super::plain::{UnchangedMatch, is_matrix};
use super::{PlanDifference, UnitPair};
use hotswap_isa::{Flag, Inst, Isa, Name};
use hotswap_program::{CallDestination, FixupKind, MarkKind, SectionSymbol};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::hint::black_box;

/// Compares all code that function symbols cover.
pub(super) fn follow_unit(pair: &UnitPair<'_, '_, '_>) -> Result<CodeOffsetMap, PlanDifference> {
    let (old, new) = (&pair.old.program.source, &pair.new.program.source);
    if old.marks.len() + pair.left_behind() != new.marks.len() {
        return Err((0, "symbols are missing".to_owned()));
    }
    let mut stretches: Vec<FunctionExtents> = Vec::new();
    let named = old.marks.iter().enumerate();
    for (number, before) in named.filter(|(_, mark)| matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function)) {
        let after = match pair.moved {
            [] => &new.marks[number],
            _ => moved_mark(pair, before)?,
        };
        if before.name != after.name {
            return Err((after.offset, format!("`{}` is where `{}` was", after.name, before.name)));
        }
        // Further symbols of the same code.
        if stretches.last().is_some_and(|last| before.offset < last.end) {
            continue;
        }
        let end = match before.size {
            0 => end_of_code(pair, before.offset),
            size => before.offset.saturating_add(size).min(old.bytes.len() as u32),
        };
        let new_end = (before.size > 0).then(|| after.offset.saturating_add(after.size));
        stretches.push(FunctionExtents { old: before.offset, end, new: after.offset, new_end, name: &after.name });
    }
    let chunks = stretches.par_chunks(STRETCHES).with_max_len(1);
    let walks: Vec<Result<FollowWalk<'_, '_, '_, '_>, PlanDifference>> =
        chunks.map(|stretches| FollowWalk::new(pair).walk_stretches(stretches)).collect();
    let walks: Vec<FollowWalk<'_, '_, '_, '_>> = walks.into_iter().collect::<Result<_, PlanDifference>>()?;
    let mut walk = FollowWalk { followed: merge_walks(&walks), ..FollowWalk::new(pair) };
    // There are many of them, and no single list is needed.
    let mut branches: Vec<Vec<FollowedBranch>> = walks.into_iter().map(|walk| walk.branches).collect();
    walk.without_names()?;
    walk.followed.build_index();
    check_all_visited(pair, &walk.followed)?;
    branches.push(walk.branches);
    check_branch_targets(&branches, &walk.followed)?;
    Ok(walk.followed)
}

/// The results of the walks, each list sorted.
fn merge_walks(walks: &[FollowWalk<'_, '_, '_, '_>]) -> CodeOffsetMap {
    let (steps, places) = rayon::join(
        || concat_lists(walks, |walk| &walk.followed.steps),
        || concat_lists(walks, |walk| &walk.followed.places),
    );
    let moved = concat_lists(walks, |walk| &walk.followed.moved);
    let covered = concat_lists(walks, |walk| &walk.followed.covered);
    let matrices = concat_lists(walks, |walk| &walk.followed.matrices);
    let mut all = CodeOffsetMap { steps, places, moved, covered, matrices, index: Vec::new() };
    all.sort();
    all
}

/// Concatenates one list of all walks.
fn concat_lists<W, T: Copy>(walks: &[W], part: impl Fn(&W) -> &Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(walks.iter().map(|walk| part(walk).len()).sum());
    walks.iter().for_each(|walk| all.extend_from_slice(part(walk)));
    all
}

/// The symbol of a function, whether it was moved or not.
fn moved_mark<'p>(
    pair: &'p UnitPair<'_, '_, '_>,
    before: &SectionSymbol<'_>,
) -> Result<&'p SectionSymbol<'p>, PlanDifference> {
    let at = pair.moved_to(before.offset);
    let marks = &pair.new.program.source.marks;
    let first = marks.partition_point(|mark| mark.offset < at);
    let found = marks[first..].iter().take_while(|mark| mark.offset == at).find(|mark| mark.name == before.name);
    found.ok_or_else(|| (at, format!("`{}` is nowhere", before.name)))
}

/// The target of a branch, or of the computation of one, at a new offset: the code left at the old position
/// of a moved function.
pub(super) fn led_on(pair: &UnitPair<'_, '_, '_>, at: u32) -> Option<u32> {
    let mut walk = FollowWalk { new: at, ..FollowWalk::new(pair) };
    let inst = walk.decode_for_target(at).ok()?;
    match inst.mnemonic() {
        "s_branch" => inst.branch_target(u64::from(at), pair.target).map(|target| target as u32),
        _ => walk.computed_target().ok(),
    }
}

/// The end of the last known instruction of the function at an offset. Code that the program leaves out extends up
/// to the next function.
fn end_of_code(pair: &UnitPair<'_, '_, '_>, offset: u32) -> u32 {
    let program = &pair.old.program;
    if let Some((_, function)) = program.function_at(offset) {
        return function.blocks().map(|block| block.end).max().unwrap_or(offset);
    }
    let marks = &program.source.marks;
    let mut later = marks[marks.partition_point(|mark| mark.offset <= offset)..].iter();
    let next = later.find(|mark| matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function));
    next.map_or(program.source.bytes.len() as u32, |mark| mark.offset)
}

/// Functions that one task checks.
const STRETCHES: usize = 64;

/// The extent of one function according to its symbols, before and after.
struct FunctionExtents<'p> {
    old: u32,
    end: u32,
    new: u32,
    /// The new end, if its symbol gives it.
    new_end: Option<u32>,
    name: &'p str,
}

struct FollowWalk<'w, 'p, 'a, 'b> {
    pair: &'w UnitPair<'p, 'a, 'b>,
    followed: CodeOffsetMap,
    branches: Vec<FollowedBranch>,
    old: u32,
    new: u32,
    /// Instructions from this offset on were checked.
    covered: u32,
    /// Up to this offset nothing is planned after the old instruction.
    next: u32,
}

impl<'w, 'p, 'a, 'b> FollowWalk<'w, 'p, 'a, 'b> {
    fn new(pair: &'w UnitPair<'p, 'a, 'b>) -> Self {
        Self { pair, followed: CodeOffsetMap::default(), branches: Vec::new(), old: 0, new: 0, covered: 0, next: 0 }
    }

    fn report_difference<T>(&self, what: impl Into<String>) -> Result<T, PlanDifference> {
        Err((self.new, what.into()))
    }

    /// Functions without a symbol in which something changes: their callers refer to them.
    fn without_names(&mut self) -> Result<(), PlanDifference> {
        let functions: BTreeSet<usize> = {
            let mut is_met = visited_places(&self.followed);
            let missed = self.pair.plan.offsets().filter(|offset| !is_met(*offset));
            missed.filter_map(|offset| Some(self.pair.old.program.function_at(offset)?.0)).collect()
        };
        for number in functions {
            let (old, new) = (&self.pair.old.program, &self.pair.new.program);
            let start = old.functions[number].start;
            let found = old.callers(number).find_map(|(_, call)| {
                let at = self.followed.new_offset(call.offset)?;
                let (_, caller) = new.function_at(at)?;
                match (caller.call_at(at)?.callee, call.callee) {
                    (CallDestination::Function { entry: to, .. }, CallDestination::Function { entry, .. }) => {
                        to.checked_sub(entry.checked_sub(start)?)
                    }
                    _ => None,
                }
            });
            let Some(found) = found else { continue };
            (self.old, self.new) = (start, found);
            let place = self.followed.steps.partition_point(|step| step.old < start);
            let later = self.followed.steps.split_off(place);
            self.followed.steps.push(OffsetStep { old: start, new: found });
            self.check_stretch(end_of_code(self.pair, start))?;
            self.followed.steps.extend(later.into_iter().filter(|step| step.old >= self.old));
            self.followed.sort();
        }
        Ok(())
    }

    fn walk_stretches(mut self, stretches: &[FunctionExtents<'_>]) -> Result<Self, PlanDifference> {
        if let [first, .., last] = stretches {
            // Growing a list copies it, while another thread waits for the allocator.
            let planned = self.pair.plan.changes_in(first.old..last.end.max(first.old)).len();
            self.followed.places.reserve_exact(planned);
            self.followed.steps.reserve_exact(planned + stretches.len() + 64);
            self.followed.covered.reserve_exact(stretches.len() + 16);
        }
        for FunctionExtents { old, end, new, new_end, name } in stretches {
            (self.old, self.new) = (*old, *new);
            self.followed.steps.push(OffsetStep { old: *old, new: *new });
            self.check_stretch(*end)?;
            let moved = self.pair.moved;
            let found = moved.binary_search_by_key(&u64::from(*old), |one| one.from);
            if let Some(one) = found.ok().map(|found| moved[found]) {
                // After it every offset is as before.
                let behind = (one.from + one.size) as u32;
                self.followed.steps.push(OffsetStep { old: behind, new: behind });
            }
            if new_end.is_some_and(|end| self.new != end) {
                return self.report_difference(format!("`{name}` does not end with its last instruction"));
            }
        }
        Ok(self)
    }

    /// Checks code up to an old offset.
    fn check_stretch(&mut self, end: u32) -> Result<(), PlanDifference> {
        self.covered = self.new;
        self.check_code(end)?;
        self.followed.covered.push([self.covered, self.new]);
        Ok(())
    }

    fn check_code(&mut self, end: u32) -> Result<(), PlanDifference> {
        let isa = self.pair.old.isa();
        let mut planned = self.pair.plan.changes_in(self.old..end.max(self.old)).iter().peekable();
        let mut data = self.pair.data_in(self.old..end).iter().peekable();
        while self.old < end {
            if let Some(data) = data.next_if(|data| data.start <= self.old) {
                self.check_data(data.end.min(end))?;
                continue;
            }
            while planned.next_if(|change| change.offset < self.old).is_some() {}
            let place = planned.next_if(|change| change.offset == self.old);
            self.next = planned.peek().map_or(end, |change| change.offset).min(end);
            if let Some(place) = place {
                self.check_place(place.code)?;
                continue;
            }
            let next = self.next.min(data.peek().map_or(end, |data| data.start));
            if self.skip_plain(next, end) {
                continue;
            }
            match self.pair.old.program.decode(self.old).filter(|inst| self.old + u32::from(inst.len()) <= end) {
                Some(inst) => self.check_unchanged(&inst, isa)?,
                None => {
                    let (old, new) = (&self.pair.old.program.source, &self.pair.new.program.source);
                    if bytes_from(old.bytes, self.old, 4) != bytes_from(new.bytes, self.new, 4) {
                        return self.report_difference("bytes that are no instruction have changed");
                    }
                    // Its decoding on the target is unknown.
                    self.followed.covered.push([self.covered, self.new]);
                    self.old += 4;
                    self.new += 4;
                    self.covered = self.new;
                }
            }
        }
        Ok(())
    }

    /// Checks data up to an old offset: its bytes are unchanged.
    fn check_data(&mut self, end: u32) -> Result<(), PlanDifference> {
        let Some(size) = end.checked_sub(self.old) else { return Ok(()) };
        let (old, new) = (self.pair.old.program.source.bytes, self.pair.new.program.source.bytes);
        if bytes_from(old, self.old, size) != bytes_from(new, self.new, size) {
            return self.report_difference("data between the instructions has changed");
        }
        // It could decode as anything.
        self.followed.covered.push([self.covered, self.new]);
        (self.old, self.new) = (end, self.new + size);
        self.covered = self.new;
        Ok(())
    }

    /// Skips unchanged instructions, up to the next planned place or one that needs a closer look. Returns
    /// whether there were any.
    fn skip_plain(&mut self, next: u32, end: u32) -> bool {
        let (old, new) = (self.pair.old.program.source.bytes, self.pair.new.program.source.bytes);
        let (Some(before), Some(after)) = (old.get(self.old as usize..), new.get(self.new as usize..)) else {
            return false;
        };
        let (first, plain) = ((self.old, self.new), self.pair.plain);
        let (next, end) = (next - first.0, end - first.0);
        // Both sides advance alike, so one number is enough.
        let mut at = 0;
        while at < next
            && let Some(before) = chunk_from(before, at)
            && let Some(after) = chunk_from(after, at)
            && let Some(same) = plain.compare_instructions(before, after)
        {
            let len = match same {
                // With constants after predicted branches, the next instruction can start before this length is known.
                UnchangedMatch::Bytes(4) => black_box(4),
                UnchangedMatch::Bytes(8) => black_box(8),
                UnchangedMatch::Bytes(len) | UnchangedMatch::Matrix(len) => len,
                UnchangedMatch::Branch(_) => 4,
            };
            if at + len > end || !self.record_unchanged(same, (first.0 + at, first.1 + at)) {
                break;
            }
            at += len;
        }
        (self.old, self.new) = (first.0 + at, first.1 + at);
        at > 0
    }

    /// Records what an unchanged instruction implies, given its offsets before and now. Returns whether nothing else
    /// is to be checked.
    #[inline(always)]
    fn record_unchanged(&mut self, same: UnchangedMatch, (was, is): (u32, u32)) -> bool {
        match same {
            UnchangedMatch::Bytes(_) => {}
            UnchangedMatch::Matrix(_) => self.followed.matrices.push(is),
            // A branch over one instruction may skip a long branch. Distances may be left for a linker to fill in.
            UnchangedMatch::Branch([_, 1]) => return false,
            UnchangedMatch::Branch(_) if !self.pair.old.program.source.linked => return false,
            UnchangedMatch::Branch([old, new]) => {
                let [target, to] = [(was, old), (is, new)]
                    .map(|(at, distance)| at.wrapping_add(4).wrapping_add_signed(i32::from(distance) * 4));
                self.branches.push(FollowedBranch { target, at: is, to });
            }
        }
        true
    }

    /// Checks a planned place.
    fn check_place(&mut self, code: &[Inst]) -> Result<(), PlanDifference> {
        let Some(old) = self.pair.old.program.decode(self.old) else {
            return self.report_difference("a change of no instruction");
        };
        let (at, begin) = (self.old, self.new);
        let kept = code.iter().position(|inst| inst.words() == old.words());
        for (number, inst) in code.iter().enumerate() {
            if kept == Some(number) {
                self.followed.moved.push(OffsetStep { old: at, new: self.new });
                self.old = at;
                self.check_unchanged(&old, self.pair.old.isa())?;
                continue;
            }
            if self.decode_for_target(self.new)? != *inst {
                return self.report_difference(format!("`{}` is not what was planned", inst.mnemonic()));
            }
            self.record_matrix(inst);
            self.new += u32::from(inst.len());
        }
        self.old = at + u32::from(old.len());
        self.followed.places.push(NewPlace { old: at, start: begin, end: self.new });
        self.followed.steps.push(OffsetStep { old: self.old, new: self.new });
        Ok(())
    }

    /// Decodes the instruction at a new offset for the target.
    fn decode_for_target(&self, at: u32) -> Result<Inst, PlanDifference> {
        let rest = self.pair.new.program.source.bytes.get(at as usize..).unwrap_or_default();
        self.pair.target.decode(rest).map_err(|error| (at, format!("the target has no such instruction: {error}")))
    }

    /// Checks an unchanged instruction.
    fn check_unchanged(&mut self, old: &Inst, isa: Isa) -> Result<(), PlanDifference> {
        let new = self.decode_for_target(self.new)?;
        let target = old.branch_target(u64::from(self.old), isa);
        if let Some(target) = target.filter(|_| !self.is_linked_later()) {
            return self.check_branch(old, &new, target as u32);
        }
        let is_same = old.words() == new.words() && old.mnemonic() == new.mnemonic();
        if !is_same && !self.may_differ(old, &new) {
            return self.report_difference(format!("`{}` has changed to `{}`", old.mnemonic(), new.mnemonic()));
        }
        if new.mnemonic() == "s_clause" {
            self.check_clause(old, &new)?;
        }
        self.record_matrix(&new);
        self.old += u32::from(old.len());
        self.new += u32::from(new.len());
        Ok(())
    }

    /// Records a new matrix instruction, before the walk passes it.
    fn record_matrix(&mut self, new: &Inst) {
        if is_matrix(new.mnemonic()) {
            self.followed.matrices.push(self.new);
        }
    }

    /// Whether a linker fills in the distance.
    fn is_linked_later(&self) -> bool {
        let source = &self.pair.old.program.source;
        let fixups = source.fixups_in(self.old..self.old + 4);
        !source.linked && fixups.iter().any(|fixup| fixup.kind == FixupKind::Rel16)
    }

    fn may_differ(&self, old: &Inst, new: &Inst) -> bool {
        match old.mnemonic() {
            "s_clause" | "s_delay_alu" => [old.mnemonic(), "s_nop"].contains(&new.mnemonic()),
            // Prefetches are hints. The distance is in the low 24 bits of the second dword.
            "s_prefetch_inst_pc_rel" | "s_prefetch_data_pc_rel" => is_same_but(old, new, FETCH),
            "s_prefetch_inst" | "s_prefetch_data" if self.serves_prefetch(self.old) => is_same_but(old, new, FETCH),
            // Literals hold addresses, which the linker's relocations or the program's additions explain.
            _ => {
                let whole = usize::from(old.entry().bytes()) / 4;
                let fixed = old.words()[..whole] == new.words()[..whole];
                let source = &self.pair.old.program.source;
                let range = self.old..self.old + u32::from(old.len());
                fixed && old.len() == new.len() && (!source.fixups_in(range).is_empty() || self.is_sum(old))
            }
        }
    }

    /// Whether the instruction may take part in adding a distance to the program counter. [`super::flow`] checks that
    /// the sum is right.
    fn is_sum(&self, old: &Inst) -> bool {
        let found = self.pair.old.program.function_at(self.old).filter(|_| old.is(Flag::Salu));
        let mut values = found.into_iter().flat_map(|(_, function)| &function.pc_values);
        self.serves_prefetch(self.old) || values.any(|value| (value.pc..=value.low.max(value.high)).contains(&self.old))
    }

    /// Whether only prefetches depend on the instruction.
    fn serves_prefetch(&self, at: u32) -> bool {
        self.pair.old.program.function_at(at).is_some_and(|(_, function)| function.serves_fetching(at))
    }

    /// Members of a clause follow it as before, with no new instruction among them.
    fn check_clause(&self, old: &Inst, new: &Inst) -> Result<(), PlanDifference> {
        let [had, has] = [old, new].map(|inst| (inst.raw(Name::Simm16).unwrap_or(0) & 63) + 1);
        let mut at = self.old + u32::from(old.len());
        if has > had {
            return self.report_difference("a clause has grown");
        }
        // No instruction is longer than this.
        let most = at.saturating_add(LONGEST * has as u32);
        if self.next >= most || self.pair.plan.changes_in(at..most).is_empty() {
            return Ok(());
        }
        for _ in 0..has {
            if self.pair.plan.contains(at) {
                return self.report_difference("a clause holds a new instruction");
            }
            let Some(inst) = self.pair.old.program.decode(at) else { break };
            at += u32::from(inst.len());
        }
        Ok(())
    }

    fn check_branch(&mut self, old: &Inst, new: &Inst, target: u32) -> Result<(), PlanDifference> {
        let isa = self.pair.target;
        if new.entry() == old.entry()
            && let Some(to) = new.branch_target(u64::from(self.new), isa)
            && !self.skips_a_long_one(new)
        {
            self.branches.push(FollowedBranch { target, at: self.new, to: to as u32 });
            self.old += u32::from(old.len());
            self.new += u32::from(new.len());
            return Ok(());
        }
        let start = self.new;
        if new.entry() == old.entry() {
            // If taken, it branches over the branch around the computation.
            self.new += 8;
        }
        let to = self.computed_target()?;
        self.branches.push(FollowedBranch { target, at: start, to });
        self.old += u32::from(old.len());
        self.followed.steps.push(OffsetStep { old: self.old, new: self.new });
        Ok(())
    }

    /// Whether a conditional branch skips the branch after it, which skips a computation.
    fn skips_a_long_one(&self, new: &Inst) -> bool {
        new.raw(Name::Simm16) == Some(1)
            && self.decode_for_target(self.new + 4).is_ok_and(|inst| inst.mnemonic() == "s_branch")
            && self.decode_for_target(self.new + 8).is_ok_and(|inst| inst.mnemonic() == "s_get_pc_i64")
            && self.pair.old.program.decode(self.old + 8).map(|inst| inst.mnemonic()) != Some("s_get_pc_i64")
    }

    /// The target that `s_get_pc_i64`, two additions and `s_set_pc_i64` compute.
    fn computed_target(&mut self) -> Result<u32, PlanDifference> {
        let mut distance = 0_u64;
        let base = u64::from(self.new) + 4;
        for (mnemonic, shift) in
            [("s_get_pc_i64", None), ("s_add_co_u32", Some(0)), ("s_add_co_ci_u32", Some(32)), ("s_set_pc_i64", None)]
        {
            let inst = self.decode_for_target(self.new)?;
            if inst.mnemonic() != mnemonic {
                return self.report_difference(format!("`{}` is no part of a long branch", inst.mnemonic()));
            }
            if let Some(shift) = shift {
                distance |= inst.literal().unwrap_or(0) << shift;
            }
            self.new += u32::from(inst.len());
        }
        Ok(base.wrapping_add(distance) as u32)
    }
}

/// Bytes of the longest instruction.
const LONGEST: u32 = 20;

/// The distance of a fetch ahead, in its second word.
const FETCH: u32 = 0xff_ffff;

/// Whether two instructions of two dwords differ at most in `bits` of the second.
fn is_same_but(old: &Inst, new: &Inst, bits: u32) -> bool {
    let (before, after) = (old.words(), new.words());
    old.len() == 8 && new.len() == 8 && before[0] == after[0] && (before[1] ^ after[1]) & !bits == 0
}

/// Returns a function that checks, for old offsets in ascending order, whether a planned place was visited there.
fn visited_places(followed: &CodeOffsetMap) -> impl FnMut(u32) -> bool {
    let mut places = followed.places.iter().map(|place| place.old).peekable();
    move |offset| {
        while places.next_if(|place| *place < offset).is_some() {}
        places.peek() == Some(&offset)
    }
}

/// Checks that every planned place was visited.
fn check_all_visited(pair: &UnitPair<'_, '_, '_>, followed: &CodeOffsetMap) -> Result<(), PlanDifference> {
    let mut is_met = visited_places(followed);
    match pair.plan.offsets().find(|offset| !is_met(*offset)) {
        Some(offset) => Err((offset, "a change is missing".to_owned())),
        None => Ok(()),
    }
}

#[inline(always)]
fn chunk_from<const SIZE: usize>(bytes: &[u8], at: u32) -> Option<&[u8; SIZE]> {
    bytes.get(at as usize..)?.first_chunk()
}

fn bytes_from(bytes: &[u8], at: u32, size: u32) -> Option<&[u8]> {
    bytes.get(at as usize..)?.get(..size as usize)
}
