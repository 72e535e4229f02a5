//! One pass over a code section: distances, and the positions of edits.
//!
//! Invariants: an edit is at the start of an instruction of a function. Everything that holds a distance is in one of
//! the lists. Code that cannot be decoded holds no distance that could be executed.

use crate::code::{WordClass, WordClassTable, concerns_counter, fetch_distance, is_fetch_from, is_relative_fetch};
use crate::edit::{CodeEdits, EditPosition, NumberedEdit};
use crate::known::{KnownProgram, ProgramCursor};
use crate::map::InsertOrder;
use crate::padding::{NOP, Padding};
use crate::refuse_layout;
use hotswap_isa::Isa;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_report::Diagnostic;

mod trace;

/// The encoding of a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DistanceEncoding {
    /// Dwords from the end of the instruction, in the low half of its first word.
    Short,
    /// Bytes from the end of the instruction, in a literal of 4 bytes.
    Literal32,
    /// The same, of 8 bytes.
    Literal64,
}

/// A prefetch with a distance in 24 bits. It is a hint: whatever its address, nothing else changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) at: u64,
    /// Start of the instruction from whose end the distance counts: the prefetch itself, or a get-PC.
    pub(crate) from: u64,
    /// Bytes of that instruction.
    pub(crate) size: u8,
    pub(crate) distance: i64,
}

/// An instruction that states a distance: its offset, times four, and the encoding. The distance itself is read from
/// the code; there are too many of these to store it again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchSite(u64);

impl BranchSite {
    /// No section is so large that the offset loses bits.
    fn new(at: u64, reach: DistanceEncoding) -> Self {
        Self(at << 2 | reach as u64)
    }

    pub(crate) fn at(self) -> u64 {
        self.0 >> 2
    }

    pub(crate) fn encoding_reach(self) -> DistanceEncoding {
        match self.0 & 3 {
            0 => DistanceEncoding::Short,
            1 => DistanceEncoding::Literal32,
            _ => DistanceEncoding::Literal64,
        }
    }

    /// Bytes of the instruction.
    pub(crate) fn size(self) -> u64 {
        4 + 4 * (self.0 & 3)
    }

    pub(crate) fn first_word(self, code: &[u8]) -> u32 {
        read_u64(code, self.at()) as u32
    }

    pub(crate) fn target_offset(self, code: &[u8]) -> u64 {
        let distance = match self.encoding_reach() {
            DistanceEncoding::Short => i64::from(self.first_word(code) as u16 as i16) * 4,
            DistanceEncoding::Literal32 => i64::from(read_u64(code, self.at() + 4) as u32 as i32),
            DistanceEncoding::Literal64 => read_u64(code, self.at() + 4).cast_signed(),
        };
        (self.at() + self.size()).wrapping_add_signed(distance)
    }
}

/// Eight bytes at an offset; missing ones are 0.
fn read_u64(code: &[u8], at: u64) -> u64 {
    let rest = usize::try_from(at).ok().and_then(|at| code.get(at..)).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

/// A get-PC and the distance added to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PcComputation {
    pub(crate) at: u64,
    /// The address that it yields: its end.
    pub(crate) base: u64,
    /// Offset of the low half of the distance, or of all of it.
    pub(crate) low: u64,
    /// Offset of the high half.
    pub(crate) high: Option<u64>,
    /// Bytes of the field at `low`.
    pub(crate) size: u8,
    /// Added to the value at `low`.
    pub(crate) bias: i32,
    /// Extension of 32 bits to the distance where a high half does not exist.
    pub(crate) range: Range32,
    /// The distance that it adds.
    pub(crate) distance: u64,
    /// Instructions that add, first and last.
    pub(crate) adds: (u64, u64),
}

/// The possible values of a distance that has only 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range32 {
    /// Anything that has a sign and 32 bits; also where 64 bits hold it.
    Signed,
    /// Distances that are not negative.
    Positive,
    /// Distances that are not positive.
    Negative,
    /// Not negative, with a sign and 32 bits.
    Small,
}

/// An edit with the position of its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedEdit {
    pub(crate) old: u64,
    pub(crate) removed: u64,
    pub(crate) rank: InsertOrder,
    /// Number of the edit.
    pub(crate) edit: u32,
}

/// A clause that contains an edit: its members before the edit and from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitClause {
    /// Offset of the `s_clause`.
    pub(crate) at: u64,
    pub(crate) word: u32,
}

/// An instruction whose use of the program counter is unknown.
#[derive(Debug, Clone)]
pub(crate) struct OpenPcUse {
    pub(crate) at: u64,
    /// The first of the two registers that it writes, if it is a get-PC.
    pub(crate) pair: Option<u16>,
    /// The end of its function.
    pub(crate) end: u64,
    /// Name of the function.
    pub(crate) name: String,
    pub(crate) mnemonic: &'static str,
}

/// The contents of a section.
#[derive(Debug, Default)]
pub(crate) struct SectionScan {
    pub(crate) branches: Vec<BranchSite>,
    pub(crate) computations: Vec<PcComputation>,
    pub(crate) fetches: Vec<Fetch>,
    pub(crate) open: Vec<OpenPcUse>,
    pub(crate) placed: Vec<PlacedEdit>,
    pub(crate) loops: Vec<Padding>,
    /// Words that count instructions, and must be changed.
    pub(crate) words: Vec<SplitClause>,
}

impl SectionScan {
    /// The contents of consecutive ranges of code.
    pub(crate) fn join_scans(all: Vec<Self>) -> Self {
        let mut one = Self::default();
        // The long lists: without spare capacity, and without a copy each time they grow.
        one.branches.reserve_exact(all.iter().map(|scan| scan.branches.len()).sum());
        one.placed.reserve_exact(all.iter().map(|scan| scan.placed.len()).sum());
        all.into_iter().for_each(|scan| one.append(scan));
        one
    }

    /// Appends the contents that follow.
    fn append(&mut self, mut behind: Self) {
        self.branches.append(&mut behind.branches);
        self.computations.append(&mut behind.computations);
        self.fetches.append(&mut behind.fetches);
        self.open.append(&mut behind.open);
        self.placed.append(&mut behind.placed);
        self.loops.append(&mut behind.loops);
        self.words.append(&mut behind.words);
    }
}

/// Sizes in bytes of loops whose start LLVM aligns on targets with an instruction prefetch setting.
const LOOP_SIZES: std::ops::RangeInclusive<u64> = 65..=192;

/// A range that is scanned: a function, or code without a name.
pub(crate) struct ScanExtent<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: &'a str,
}

/// Scans the code of one section.
pub(crate) struct Scanner<'a> {
    marks: &'a WordClassTable,
    bytes: &'a [u8],
    /// Offset of the section in the file, for messages.
    file: u64,
    /// The edits by place, with their numbers.
    edits: &'a [NumberedEdit],
    list: &'a CodeEdits,
    /// The executed code, where that is known.
    known: Option<&'a KnownProgram<'a>>,
    /// The same, for consecutive offsets.
    near: Option<ProgramCursor<'a>>,
    pub(crate) found: SectionScan,
    /// First edit without a position.
    next: usize,
}

/// An instruction that counts those after it.
#[derive(Clone, Copy)]
struct CountingInst {
    at: u64,
    word: u32,
    /// The number of instructions before it.
    before: u64,
}

/// Effects of the previous instructions on the next ones.
#[derive(Default)]
struct ScanState {
    /// Number of instructions so far.
    passed: u64,
    /// The last `s_clause` whose instructions are still counted.
    clause: Option<CountingInst>,
    /// The last `s_delay_alu` whose instructions are still counted.
    delay: Option<CountingInst>,
    /// The insertions after the last instruction.
    behind: Inserted,
}

/// New instructions at one position.
#[derive(Debug, Default, Clone, Copy)]
struct Inserted {
    any: bool,
    count: u32,
    /// Some of them may change the instructions that a delay counts, or old ones were removed.
    counts: bool,
}

impl PcComputation {
    /// Whether one of its adding instructions is at that offset.
    pub(crate) fn adds_at(&self, at: u64) -> bool {
        self.adds.0 == at || self.adds.1 == at
    }

    /// The low half of the distance as the code has it.
    pub(crate) fn written(&self) -> u32 {
        (self.distance as u32).wrapping_sub(self.bias.cast_unsigned())
    }
}

impl Inserted {
    fn count_inserted(&mut self, isa: Isa, bytes: &[u8], removed: bool) {
        self.any = true;
        self.counts |= removed;
        for (_, inst) in isa.walk(bytes) {
            self.count += 1;
            self.counts |= inst.map_or(true, |inst| inst.words()[0] >> 30 != 2);
        }
    }
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(
        marks: &'a WordClassTable,
        bytes: &'a [u8],
        file: u64,
        edits: &'a [NumberedEdit],
        list: &'a CodeEdits,
        known: Option<&'a KnownProgram<'a>>,
    ) -> Self {
        Self {
            marks,
            bytes,
            file,
            edits,
            list,
            known,
            near: known.map(ProgramCursor::new),
            found: SectionScan::default(),
            next: 0,
        }
    }

    fn word_at(&self, at: u64) -> u32 {
        let word = self.bytes.get(at as usize..).and_then(|bytes| bytes.first_chunk());
        word.map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// Scans one function. Extents must come in their order.
    pub(crate) fn scan_extent(&mut self, extent: &ScanExtent<'_>) -> Result<(), Diagnostic> {
        let mut state = ScanState::default();
        let mut at = extent.start;
        while at < extent.end {
            let rest = &self.bytes[at as usize..extent.end as usize];
            if let Some(end) = self.near.as_mut().and_then(|near| near.data_end(at)) {
                state = ScanState::default();
                at = end.min(extent.end);
                continue;
            }
            let Some(size) = self.marks.isa.instruction_size(rest).filter(|size| self.is_one(at, *size)) else {
                self.check_opaque(at, extent)?;
                state = ScanState::default();
                at += 4;
                continue;
            };
            let word = self.word_at(at);
            state.insert(state.behind, &mut self.found.words);
            state.behind = Inserted::default();
            if self.edits.get(self.next).is_some_and(|next| next.edit.offset < at + u64::from(size)) {
                self.place_edits(at, u64::from(size), extent, &mut state)?;
            }
            state.passed += 1;
            self.visit_word(at, word, size, extent, &mut state)?;
            at += u64::from(size);
        }
        Ok(())
    }

    /// Whether bytes can be one instruction: no other executed one begins inside.
    #[inline]
    fn is_one(&mut self, at: u64, size: u8) -> bool {
        let Some(near) = self.near.as_mut().filter(|_| size > 4) else { return true };
        near.is_reached(at) || !(4..u64::from(size)).step_by(4).any(|more| near.is_reached(at + more))
    }

    /// An edit must not be in undecodable bytes; they do not affect anything else.
    fn check_opaque(&self, at: u64, extent: &ScanExtent<'_>) -> Result<(), Diagnostic> {
        // Executed code is known without skipping over the rest.
        if self.known.is_some_and(|known| !known.is_reached(at)) {
            return Ok(());
        }
        let inside =
            self.edits.iter().any(|NumberedEdit { edit, .. }| extent.start <= edit.offset && edit.offset < extent.end);
        if inside {
            let what = format!("`{}` is to be changed and holds bytes that are no instruction", extent.name);
            return Err(refuse_layout(self.file + at, what));
        }
        Ok(())
    }

    fn visit_word(
        &mut self,
        at: u64,
        word: u32,
        size: u8,
        extent: &ScanExtent<'_>,
        state: &mut ScanState,
    ) -> Result<(), Diagnostic> {
        match self.marks.mark_of_word(word) {
            WordClass::Plain => {}
            WordClass::Branch => self.scan_branch(at, word, size, extent),
            WordClass::Counter | WordClass::Fetch if self.marks.may_count(word) => self.scan_special(at, extent)?,
            WordClass::Counter | WordClass::Fetch => {}
            WordClass::Clause => state.clause = Some(CountingInst { at, word, before: state.passed }),
            WordClass::Delay => state.delay = Some(CountingInst { at, word, before: state.passed }),
        }
        Ok(())
    }

    fn scan_branch(&mut self, at: u64, word: u32, size: u8, extent: &ScanExtent<'_>) {
        let distance = i64::from(word as u16 as i16) * 4;
        let target = (at + u64::from(size)).wrapping_add_signed(distance);
        self.found.branches.push(BranchSite::new(at, DistanceEncoding::Short));
        if self.marks.aligns_loops && extent.start < target && target < at {
            self.loop_begin(target, at + u64::from(size) - target, extent.start);
        }
    }

    /// A backward branch: compilers align the start of a loop that fits into few lines of the cache.
    fn loop_begin(&mut self, begin: u64, size: u64, least: u64) {
        let mut start = begin;
        while start > least && self.word_at(start - 4) == NOP {
            start -= 4;
        }
        if start < begin || LOOP_SIZES.contains(&size) {
            self.found.loops.extend(Padding::before_loop(start, begin));
        }
    }

    fn scan_special(&mut self, at: u64, extent: &ScanExtent<'_>) -> Result<(), Diagnostic> {
        let rest = &self.bytes[at as usize..extent.end as usize];
        let Ok(inst) = self.marks.isa.decode(rest) else { return Ok(()) };
        if is_relative_fetch(&inst) {
            self.found.fetches.extend(fetch_distance(&inst).map(|one| fetch_at_distance(one, at, &inst)));
        } else if inst.mnemonic() == "s_add_pc_i64" {
            let target = inst.branch_target(at, self.marks.isa).filter(|_| inst.len() > 4);
            if target.is_none() && self.known.is_some_and(|known| !known.is_reached(at)) {
                return Ok(());
            }
            let branch = BranchSite::new(
                at,
                if inst.len() == 12 { DistanceEncoding::Literal64 } else { DistanceEncoding::Literal32 },
            );
            match target.filter(|target| *target == branch.target_offset(self.bytes)) {
                Some(_) => self.found.branches.push(branch),
                None => self.record_open(at, None, extent, inst.mnemonic()),
            }
        } else if concerns_counter(&inst) {
            let pair = self.word_at(at) >> 16 & 127;
            let found = trace::trace_get_pc(self.marks.isa, &self.bytes[..extent.end as usize], at, pair);
            if found.is_none() && self.known.is_some_and(|known| !known.is_reached(at)) {
                return Ok(());
            }
            match found {
                Some(found) => self.found.computations.push(found),
                None => self.record_open(at, Some(pair as u16), extent, inst.mnemonic()),
            }
        }
        Ok(())
    }

    fn record_open(&mut self, at: u64, pair: Option<u16>, extent: &ScanExtent<'_>, mnemonic: &'static str) {
        self.found.open.push(OpenPcUse { at, pair, end: extent.end, name: extent.name.to_owned(), mnemonic });
    }

    /// Sets the positions of the edits of one instruction, in the order of ranks.
    fn place_edits(
        &mut self,
        at: u64,
        size: u64,
        extent: &ScanExtent<'_>,
        state: &mut ScanState,
    ) -> Result<(), Diagnostic> {
        let mut before = Inserted::default();
        while let Some(NumberedEdit { number, edit }) =
            self.edits.get(self.next).filter(|next| next.edit.offset < at + size)
        {
            if edit.offset != at {
                let what = format!("an edit of `{}` is not at an instruction", extent.name);
                return Err(refuse_layout(self.file + edit.offset, what));
            }
            let (old, removed, rank) = match edit.place {
                EditPosition::Before => (at, 0, InsertOrder::Lead),
                EditPosition::After => (at + size, 0, InsertOrder::Tail),
                EditPosition::Instead(removed) => (at, self.replaced_size(at, removed, extent)?, InsertOrder::Swap),
                EditPosition::End => (at, 0, InsertOrder::Lead),
            };
            let inserted = if rank == InsertOrder::Tail { &mut state.behind } else { &mut before };
            inserted.count_inserted(self.marks.isa, self.list.bytes_of(edit), removed > 0);
            self.found.placed.push(PlacedEdit { old, removed, rank, edit: *number as u32 });
            self.next += 1;
        }
        state.insert(before, &mut self.found.words);
        Ok(())
    }

    /// The size of the replaced bytes, which must be whole instructions.
    fn replaced_size(&self, at: u64, removed: u64, extent: &ScanExtent<'_>) -> Result<u64, Diagnostic> {
        let mut end = at;
        while end < at.saturating_add(removed) && end < extent.end {
            let size = self.marks.isa.instruction_size(&self.bytes[end as usize..extent.end as usize]);
            end += u64::from(size.unwrap_or(u8::MAX));
        }
        if removed == 0 || end != at + removed {
            let what =
                format!("an edit of `{}` replaces {removed} bytes, which are no whole instructions", extent.name);
            return Err(refuse_layout(self.file + at, what));
        }
        Ok(removed)
    }

    /// Offset of the section in the file.
    pub(crate) fn file_offset(&self) -> u64 {
        self.file
    }

    /// An edit that is in no extent.
    pub(crate) fn left_over(&self) -> Option<u64> {
        self.edits.get(self.next).map(|next| next.edit.offset)
    }
}

fn fetch_at_distance(distance: i64, at: u64, inst: &hotswap_isa::Inst) -> Fetch {
    Fetch { at, from: at, size: inst.len(), distance }
}

/// Prefetches relative to the get-PC at an offset of some code, as long as its result stays in its registers and
/// the code is straight-line.
pub(crate) fn fetches_from(isa: Isa, code: &[u8], from: u64, pair: u16) -> Vec<Fetch> {
    let own = Reg::new(RegFile::Sgpr, pair, 2);
    let mut found = Vec::new();
    for (at, inst) in isa.walk(&code[from as usize + 4..]) {
        let Ok(inst) = inst else { break };
        if is_fetch_from(&inst, isa, pair) {
            found.extend(fetch_distance(&inst).map(|one| fetch_from_counter(one, from, at)));
        }
        if inst.written_set(isa, VgprBanks::UNKNOWN).touches(own)
            || !matches!(inst.control_flow(0, isa), ControlFlow::Next)
        {
            break;
        }
    }
    found
}

fn fetch_from_counter(distance: i64, from: u64, at: usize) -> Fetch {
    Fetch { at: from + 4 + at as u64, from, size: 4, distance }
}

impl ScanState {
    /// Number of instructions since then.
    fn passed_since(&self, before: u64) -> u32 {
        u32::try_from(self.passed - before).unwrap_or(u32::MAX)
    }

    /// Handles new instructions before the next one. A clause ends there: its members before stay together. A delay is
    /// a hint: it is adjusted where its fields can encode that, and dropped otherwise.
    fn insert(&mut self, new: Inserted, words: &mut Vec<SplitClause>) {
        if !new.any {
            return;
        }
        let clause = self.clause.take().map(|one| (one.at, one.word, self.passed_since(one.before)));
        if let Some((at, word, passed)) = clause.filter(|(_, word, passed)| *passed <= word & 63) {
            // One member is not a clause.
            let word = if passed < 2 { NOP } else { word & !63 | (passed - 1) };
            words.push(SplitClause { at, word });
        }
        // Without instructions, the insertion only ends a clause.
        if new.count == 0 && !new.counts {
            return;
        }
        let delay = self.delay.map(|one| (one.at, one.word, self.passed_since(one.before)));
        if let Some((at, word, passed)) = delay.filter(|(_, word, passed)| *passed <= last_delayed(*word).min(6)) {
            let moved = moved_delay(word, passed, new).unwrap_or(NOP);
            words.push(SplitClause { at, word: moved });
            self.delay = None;
        }
    }
}

/// The last instruction after an `s_delay_alu` to which it refers; 0 is the next one.
fn last_delayed(word: u32) -> u32 {
    let (skip, second) = (word >> 4 & 7, word >> 7 & 15);
    if second == 0 { 0 } else { skip }
}

/// The word of an `s_delay_alu` with new instructions before the instruction `passed` after it.
fn moved_delay(word: u32, passed: u32, new: Inserted) -> Option<u32> {
    let (first, skip, second) = (word & 15, word >> 4 & 7, word >> 7 & 15);
    match (passed, second) {
        // Only the second part can refer to an instruction that is not the next one.
        (0, 0) => Some(word & !0x7ff | far_delay_skip(0, new.count, new.counts)? << 4 | first << 7),
        (0, _) => None,
        _ => Some(word & !0x70 | far_delay_skip(skip, new.count, new.counts)? << 4),
    }
}

fn far_delay_skip(skip: u32, new_count: u32, new_counts: bool) -> Option<u32> {
    Some(skip + new_count).filter(|skip| *skip <= 5 && !new_counts)
}
