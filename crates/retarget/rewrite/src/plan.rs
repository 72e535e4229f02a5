//! The new layout of one code section, repeated until every branch reaches.
//!
//! Invariants: a branch that was made long stays long, so the rounds end; kernels begin at multiples of 256 bytes.

use crate::code::WordClassTable;
use crate::edit::{CodeEdits, EditPosition, NumberedEdit};
use crate::known::{KnownProgram, ServesPrefetch};
use crate::map::{InsertOrder, MapChange, OffsetRemap};
use crate::padding::{Padding, PaddingStyle, PaddingSuccessor};
use crate::place::{NamedRange, SECOND_ENTRY};
use crate::refuse_layout;
use crate::scan::{
    BranchSite, DistanceEncoding, Fetch, OpenPcUse, PcComputation, PlacedEdit, ScanExtent, Scanner, SectionScan,
    SplitClause, fetches_from,
};
use hotswap_code_object::image::ObjectImage;
use hotswap_isa::Isa;
use hotswap_report::Diagnostic;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

mod long;
mod write;

pub(crate) use long::LongBranchForms;

/// A branch whose target is out of reach: the engine needs two registers to compute it with. SCC is overwritten where
/// the branch is taken, so the provider of the registers must know that it is dead at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongBranch {
    /// Number of the section.
    pub section: usize,
    /// Offset of the branch in the old section.
    pub at: u64,
    /// Offset of its target in the old section.
    pub target: u64,
}

/// Returns the first of two free scalar registers (even, below 106) for a branch that no longer reaches its target;
/// `None` is a refusal.
pub type FreeSgprs<'r> = dyn Fn(&LongBranch) -> Option<u8> + 'r;

/// The content of a change. There are as many as changes: numbers have 32 bits, as those of the bytes of edits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChangeContent {
    /// Number of an edit.
    Edit(u32),
    /// Number of a padding.
    Padding(u32),
    /// Number of a branch that became long, and the first of its two registers.
    Long(u32, u8),
    /// One `s_nop` after a branch whose distance would be a bad one.
    Nop,
}

/// The layout of one code section.
pub(crate) struct CodePlan<'e> {
    pub(crate) section: usize,
    /// Offset of the section in the old file.
    pub(crate) file: u64,
    pub(crate) map: OffsetRemap,
    pub(crate) computations: Vec<PcComputation>,
    pub(crate) fetches: Vec<Fetch>,
    pub(crate) unexplained: Vec<u64>,
    edits: &'e CodeEdits,
    contents: Vec<ChangeContent>,
    paddings: Vec<Padding>,
    pub(crate) branches: Vec<BranchSite>,
    words: Vec<SplitClause>,
    forms: LongBranchForms,
}

/// State that all sections share.
pub(crate) struct SectionsContext<'a> {
    pub(crate) image: &'a ObjectImage<'a>,
    pub(crate) marks: &'a WordClassTable,
    /// Bytes of a line of the instruction cache.
    pub(crate) line: u64,
    pub(crate) registers: &'a FreeSgprs<'a>,
    /// For sections without relocations, or with data, their analysis.
    pub(crate) known: &'a BTreeMap<usize, KnownProgram<'a>>,
    /// The file was linked without its relocations.
    pub(crate) is_bare: bool,
    /// Whether an instruction only serves prefetching.
    pub(crate) serves: &'a ServesPrefetch<'a>,
}

static NO_EDITS: CodeEdits = CodeEdits { rows: Vec::new(), bytes: Vec::new(), fixups: Vec::new() };

impl<'e> CodePlan<'e> {
    /// Lays a section out. `relocated` has the offsets of branches whose distance comes from a relocation.
    pub(crate) fn new(
        context: &SectionsContext<'_>,
        section: usize,
        functions: Vec<NamedRange>,
        edits: Option<&'e CodeEdits>,
        relocated: &HashSet<u64>,
    ) -> Result<Self, Diagnostic> {
        let edits = edits.unwrap_or(&NO_EDITS);
        let part = &context.image.sections[section];
        let known = context.known.get(&section);
        let SectionParts { extents, mut paddings } = split_section(context, part.bytes, &functions, known);
        let (behind, mut order): (Vec<_>, Vec<_>) = edits
            .rows
            .iter()
            .copied()
            .enumerate()
            .map(|(number, edit)| NumberedEdit { number, edit })
            .partition(|numbered| numbered.edit.place == EditPosition::End);
        order.sort_by_key(|NumberedEdit { edit, .. }| (edit.offset, edit.place == EditPosition::After));
        let SectionScan { mut branches, computations, mut fetches, open, mut placed, mut loops, words } =
            scan_code(&extents, &order, &|order| {
                Scanner::new(context.marks, part.bytes, part.offset, order, edits, known)
            })?;
        drop(order);
        let unexplained = check_unexplained(
            context.marks.isa,
            (part.bytes, part.offset),
            open,
            context.is_bare,
            &|at| (context.serves)(section, at),
            &mut fetches,
        )?;
        placed.extend(behind.into_iter().map(|numbered| PlacedEdit {
            old: part.size,
            removed: 0,
            rank: InsertOrder::Lead,
            edit: numbered.number as u32,
        }));
        placed.sort_by_key(|place| place.old);
        if !relocated.is_empty() {
            branches.retain(|branch| !relocated.contains(&branch.at()));
        }
        // Several branches may have the same loop header as target.
        loops.sort_by_key(|padding| padding.start);
        loops.dedup();
        let entries = functions.iter().filter(|function| function.has_second_entry);
        loops.extend(entries.filter_map(|kernel| Padding::before_entry(part.bytes, kernel.start, SECOND_ENTRY)));
        loops.sort_by_key(|padding| padding.start);
        paddings.extend(loops.into_iter().filter_map(|padding| trim_padding(padding, &placed)));
        let mut plan = Self {
            section,
            file: part.offset,
            map: OffsetRemap::default(),
            computations,
            fetches,
            unexplained,
            edits,
            contents: Vec::with_capacity(placed.len()),
            paddings,
            branches,
            words,
            forms: LongBranchForms::new(context.marks.isa),
        };
        let mut changes: Vec<MapChange> = Vec::with_capacity(placed.len() + plan.paddings.len());
        for place in placed {
            let content = plan.add_content(ChangeContent::Edit(place.edit));
            let (old, removed, rank) = (place.old, place.removed, place.rank);
            changes.push(MapChange { old, removed, rank, new: 0, size: 0, content });
        }
        for number in 0..plan.paddings.len() {
            let (old, end) = (plan.paddings[number].start, plan.paddings[number].end);
            let content = plan.add_content(ChangeContent::Padding(number as u32));
            changes.push(MapChange { old, removed: end - old, rank: InsertOrder::Padding, new: 0, size: 0, content });
        }
        plan.settle_branches(context, changes, part.bytes)?;
        plan.check_entries(&functions)?;
        Ok(plan)
    }

    /// The hardware adds a fixed number to the address of a kernel.
    fn check_entries(&self, functions: &[NamedRange]) -> Result<(), Diagnostic> {
        for function in functions.iter().filter(|function| function.has_second_entry) {
            let (first, second) =
                (self.map.new_start(function.start), self.map.new_start(function.start + SECOND_ENTRY));
            let is_there = function.start + SECOND_ENTRY < self.old_size();
            if is_there && second != first.map(|first| first + SECOND_ENTRY) {
                let what = format!(
                    "`{}` has no room for new instructions before its second entry, which preloaded arguments have \
                     {SECOND_ENTRY} bytes behind the first",
                    function.name
                );
                return Err(refuse_layout(self.file + function.start, what));
            }
        }
        Ok(())
    }

    fn add_content(&mut self, content: ChangeContent) -> u32 {
        self.contents.push(content);
        self.contents.len() as u32 - 1
    }

    /// Releases the parts that only writing needs.
    pub(crate) fn forget_content(&mut self) {
        (self.contents, self.paddings, self.branches, self.words) = Default::default();
    }

    /// Makes maps until all branches reach.
    fn settle_branches(
        &mut self,
        context: &SectionsContext<'_>,
        mut changes: Vec<MapChange>,
        old: &[u8],
    ) -> Result<(), Diagnostic> {
        let (mut long, mut padded) = (HashSet::new(), HashSet::new());
        loop {
            changes.sort_by_key(|change| (change.old, change.rank));
            if let Some(pair) = changes.windows(2).find(|pair| pair[1].old < pair[0].old + pair[0].removed) {
                return Err(refuse_layout(
                    self.file + pair[1].old,
                    "an edit is in bytes that another edit or padding takes",
                ));
            }
            self.map = OffsetRemap::new(changes, old.len() as u64, |change, new| self.size_of(change, new, old));
            let (far, mut bad) = self.far_branches(context, &long, old)?;
            bad.retain(|number| padded.insert(*number));
            if far.is_empty() && bad.is_empty() {
                return Ok(());
            }
            changes = self.map.changes().to_vec();
            for number in bad {
                let (old, content) = (self.branches[number].at() + 4, self.add_content(ChangeContent::Nop));
                changes.push(MapChange { old, removed: 0, rank: InsertOrder::Tail, new: 0, size: 0, content });
            }
            for number in far {
                let registers = self.request_register(context, number, old)?;
                let branch = self.branches[number];
                long.insert(number);
                let content = self.add_content(ChangeContent::Long(number as u32, registers));
                let (old, removed) = (branch.at(), branch.size());
                changes.push(MapChange { old, removed, rank: InsertOrder::Swap, new: 0, size: 0, content });
            }
        }
    }

    fn size_of(&self, change: &MapChange, new: u64, old: &[u8]) -> u64 {
        match self.contents[change.content as usize] {
            ChangeContent::Edit(number) => self.edits.bytes_of(&self.edits.rows[number as usize]).len() as u64,
            ChangeContent::Padding(number) => self.paddings[number as usize].size(new),
            ChangeContent::Long(number, _) => {
                self.forms.long_branch_size(self.forms.is_conditional(self.branches[number as usize].first_word(old)))
            }
            ChangeContent::Nop => 4,
        }
    }

    /// Branches that do not reach their targets, and those that would have a forbidden distance.
    fn far_branches(
        &self,
        context: &SectionsContext<'_>,
        long: &HashSet<usize>,
        old: &[u8],
    ) -> Result<(Vec<usize>, Vec<usize>), Diagnostic> {
        let pieces = self.branches.par_chunks(BRANCHES).enumerate().map(|(number, branches)| {
            let (mut far, mut bad): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for (number, branch) in (number * BRANCHES..).zip(branches) {
                let Some(at) = self.map.new_bytes(branch.at()) else { continue };
                let target = self.branch_target(*branch, old)?;
                let distance = target.wrapping_sub(at + branch.size()) as i64;
                if !branch.encoding_reach().can_encode(distance) && !long.contains(&number) {
                    far.push(number);
                }
                let is_bad = context.marks.bad_distance.is_some_and(|bad| distance == bad * 4);
                if is_bad && branch.encoding_reach() == DistanceEncoding::Short && !long.contains(&number) {
                    bad.push(number);
                }
            }
            Ok((far, bad))
        });
        let pieces: Vec<Result<_, Diagnostic>> = pieces.collect();
        let (mut far, mut bad) = (Vec::new(), Vec::new());
        for piece in pieces {
            let (mut more, mut worse) = piece?;
            far.append(&mut more);
            bad.append(&mut worse);
        }
        Ok((far, bad))
    }

    /// The new target of a branch.
    fn branch_target(&self, branch: BranchSite, old: &[u8]) -> Result<u64, Diagnostic> {
        let target = branch.target_offset(old);
        self.map.new_start(target).filter(|_| target <= self.old_size()).ok_or_else(|| {
            let what = format!("a branch goes to {target:#x} of its section, where there is no instruction now");
            refuse_layout(self.file + branch.at(), what)
        })
    }

    fn old_size(&self) -> u64 {
        let last = self.map.changes().last();
        last.map_or(self.map.size(), |last| last.old + last.removed + (self.map.size() - last.new - last.size))
    }

    fn request_register(&self, context: &SectionsContext<'_>, number: usize, old: &[u8]) -> Result<u8, Diagnostic> {
        let branch = self.branches[number];
        let (at, target) = (branch.at(), branch.target_offset(old));
        let request = LongBranch { section: self.section, at, target };
        let registers =
            if self.forms.can_be_long(branch.first_word(old)) { (context.registers)(&request) } else { None };
        registers.filter(|first| first % 2 == 0 && *first < 106).ok_or_else(|| {
            let what = format!(
                "the branch to {target:#x} is out of reach by {} bytes of new code, and there are no two free \
                 scalar registers to compute the target with",
                self.map.size() as i64 - self.old_size() as i64
            );
            refuse_layout(self.file + at, what)
        })
    }
}

/// Branches that one task handles.
const BRANCHES: usize = 1 << 14;
/// Bytes of code scanned per task.
const PIECE: u64 = 1 << 20;

/// The contents of some code, which is cut between functions.
fn scan_code<'a>(
    extents: &[ScanExtent<'_>],
    order: &'a [NumberedEdit],
    scanner: &(impl Fn(&'a [NumberedEdit]) -> Scanner<'a> + Sync),
) -> Result<SectionScan, Diagnostic> {
    let mut rest = order;
    let mut pieces = Vec::new();
    let mut left = extents;
    while let Some(first) = left.first() {
        let count = left.partition_point(|extent| extent.start < first.start + PIECE).max(1);
        let (own, behind) = left.split_at(count);
        let end = behind.first().map_or(u64::MAX, |next| next.start);
        let (edits, more) = rest.split_at(rest.partition_point(|numbered| numbered.edit.offset < end));
        pieces.push((own, edits));
        (left, rest) = (behind, more);
    }
    let found: Option<Vec<SectionScan>> =
        pieces.into_par_iter().map(|(extents, edits)| scan_piece(extents, scanner(edits)).ok()).collect();
    let Some(found) = found.filter(|_| rest.is_empty()) else {
        // Messages about a fault must not depend on where the code was cut.
        return scan_piece(extents, scanner(order));
    };
    Ok(SectionScan::join_scans(found))
}

/// Each edit of the scanner must be in one of the extents.
fn scan_piece(extents: &[ScanExtent<'_>], mut scanner: Scanner<'_>) -> Result<SectionScan, Diagnostic> {
    extents.iter().try_for_each(|extent| scanner.scan_extent(extent))?;
    match scanner.left_over() {
        Some(offset) => Err(refuse_layout(scanner.file_offset() + offset, "an edit is in no function")),
        None => Ok(scanner.found),
    }
}

/// Instructions for which the scan found no use of the program counter: those that serve prefetching do no harm. Where
/// relocations explain the rest, others are refused; without any they matter only if something moves.
fn check_unexplained(
    isa: Isa,
    (bytes, file): (&[u8], u64),
    open: Vec<OpenPcUse>,
    is_bare: bool,
    serves: &dyn Fn(u64) -> bool,
    fetches: &mut Vec<Fetch>,
) -> Result<Vec<u64>, Diagnostic> {
    let mut unexplained = Vec::new();
    for one in open {
        match one.pair {
            Some(pair) if serves(one.at) => fetches.extend(fetches_from(isa, &bytes[..one.end as usize], one.at, pair)),
            _ if is_bare => unexplained.push(one.at),
            _ => {
                let what = format!("it is not known what `{}` computes from the program counter", one.name);
                let mut error = refuse_layout(file + one.at, what);
                error.place.mnemonic = Some(one.mnemonic.to_owned());
                return Err(error);
            }
        }
    }
    Ok(unexplained)
}

impl DistanceEncoding {
    /// Whether the form can encode that distance in bytes from the end of the instruction.
    pub(crate) fn can_encode(self, distance: i64) -> bool {
        match self {
            Self::Short => distance % 4 == 0 && i16::try_from(distance / 4).is_ok(),
            Self::Literal32 => i32::try_from(distance).is_ok(),
            Self::Literal64 => true,
        }
    }
}

/// Padding before a loop, without edited instructions: they were not padding.
fn trim_padding(mut padding: Padding, placed: &[PlacedEdit]) -> Option<Padding> {
    let first = placed.partition_point(|place| place.old < padding.start);
    let inside = placed[first..].iter().take_while(|place| place.old < padding.end);
    let edited = inside.filter(|place| place.removed > 0 || place.old > padding.start);
    let start = edited.map(|place| place.old + place.removed).max().unwrap_or(padding.start);
    padding.start = start;
    (start <= padding.end).then_some(padding)
}

/// The parts of a section.
struct SectionParts<'f> {
    /// Those that are code.
    extents: Vec<ScanExtent<'f>>,
    paddings: Vec<Padding>,
}

fn split_section<'f>(
    context: &SectionsContext<'_>,
    bytes: &[u8],
    functions: &'f [NamedRange],
    known: Option<&KnownProgram<'_>>,
) -> SectionParts<'f> {
    let gap = Gaps { habit: padding_style(context.line, bytes, functions), bytes, known };
    let gaps: Vec<CodeGap> = (0..functions.len() + 1)
        .into_par_iter()
        .with_min_len(GAPS)
        .map(|one| gap_before_function(one, functions, &gap, bytes))
        .collect();
    let (mut extents, mut paddings) = (Vec::with_capacity(functions.len()), Vec::with_capacity(functions.len()));
    for (number, CodeGap { code, padding }) in gaps.into_iter().enumerate() {
        extents.extend(code.map(|code| ScanExtent { start: code.start, end: code.end, name: "code without a symbol" }));
        paddings.extend(padding);
        let function = functions.get(number);
        extents.extend(function.map(|one| ScanExtent { start: one.start, end: one.end, name: &one.name }));
    }
    SectionParts { extents, paddings }
}

/// The bytes before a function, or after the last one.
fn gap_before_function(number: usize, functions: &[NamedRange], gap: &Gaps<'_>, bytes: &[u8]) -> CodeGap {
    let at = number.checked_sub(1).map_or(0, |last| functions[last].end);
    match functions.get(number) {
        Some(function) if function.is_kernel => gap.gap_between(at, function.start, PaddingSuccessor::Kernel),
        Some(function) => gap.gap_between(at, function.start, PaddingSuccessor::Function),
        None => gap.gap_between(at, bytes.len() as u64, PaddingSuccessor::End),
    }
}

/// Gaps between functions per task.
const GAPS: usize = 256;

/// The bytes between two functions.
struct CodeGap {
    /// Code without a name.
    code: Option<Range<u64>>,
    padding: Option<Padding>,
}

/// The gaps between functions.
struct Gaps<'g> {
    habit: PaddingStyle,
    bytes: &'g [u8],
    known: Option<&'g KnownProgram<'g>>,
}

impl Gaps<'_> {
    /// Bytes between two functions: code without a name, or data, then padding.
    fn gap_between(&self, start: u64, end: u64, behind: PaddingSuccessor) -> CodeGap {
        let code = start + crate::place::code_before_padding(&self.bytes[start as usize..end as usize]);
        // Zeros of a table are not padding.
        let code = self.known.and_then(|known| known.last_data(start, end)).map_or(code, |data| data.max(code));
        // At the very start of the section there is nothing to align.
        let padding = if code > 0 || end > 0 { self.habit.read_padding(self.bytes, code, end, behind) } else { None };
        CodeGap {
            code: (code > start).then_some(start..code),
            padding: padding.filter(|padding| !padding.runs.is_empty()),
        }
    }
}

/// Compilers align all functions of a file to a line of the cache; older ones to a word.
fn padding_style(line: u64, bytes: &[u8], functions: &[NamedRange]) -> PaddingStyle {
    let none = PaddingStyle { line, function: 0 };
    let mut end = 0;
    for function in functions {
        let code = end + crate::place::code_before_padding(&bytes[end as usize..function.start as usize]);
        if !function.is_kernel && code.next_multiple_of(line) != function.start && function.start != 0 {
            // A fixed amount may precede the alignment: the end of a source file's code.
            if function.start % line != 0 {
                return none;
            }
        }
        end = function.end;
    }
    PaddingStyle { line, function: line }
}
