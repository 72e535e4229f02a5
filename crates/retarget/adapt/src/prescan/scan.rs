//! The prescan for instructions that concern a family: one pass over the code, without a model of the program.
//!
//! Invariants: every dword at which an instruction may start is decoded as one. The pass starts again at each symbol,
//! after undecodable words, and at each branch target. Its findings are checked again on the program's own
//! instructions.

use super::half_mode;
use hotswap_code_object::{CodeObject, CodeStart, CodeStarts};
use hotswap_families::FamilyRewriter;
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::{ClassRule, Classifier, Flag, Implicit, Inst, Isa, Name, Piece, QuickClassifier, TableEntry};
use rayon::prelude::*;
use std::hint::black_box;

/// The candidates in a section.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Candidates {
    /// Number of the section in the file's table; `None` for a segment of a file without sections.
    pub(crate) number: Option<usize>,
    /// Offset of the section in the file.
    pub(crate) file: usize,
    /// Offsets of instructions that concern a family of scope `Instruction`, and of the first undecodable word after
    /// each symbol, in ascending order.
    pub(crate) sites: Vec<u32>,
    /// Offsets of instructions that concern a family of scope `Function`, in ascending order.
    pub(crate) reasons: Vec<u32>,
    /// Offsets of instructions that would be reasons, but are where waves have done nothing yet, in ascending order.
    pub(crate) early: Vec<u32>,
    /// An instruction sets SCHED_MODE.
    pub(crate) schedules: bool,
    /// An instruction sets the parts of MODE for rounding and denormals of 16-bit floats to unusual values.
    pub(crate) sets_half_mode: bool,
}

impl Candidates {
    pub(crate) fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.reasons.is_empty()
    }

    /// All offsets in ascending order.
    pub(crate) fn all_offsets(&self) -> Vec<u32> {
        let mut all = [&self.sites[..], &self.reasons[..]].concat();
        // Two sorted runs, which this sort only merges.
        all.sort();
        all
    }

    fn append(&mut self, mut other: Self) {
        self.sites.append(&mut other.sites);
        self.reasons.append(&mut other.reasons);
        self.early.append(&mut other.early);
        self.schedules |= other.schedules;
        self.sets_half_mode |= other.sets_half_mode;
    }
}

/// Bytes that one task scans.
const PIECE: usize = 1 << 20;

/// Bytes whose instruction starts are bits of one word.
const STRIP: usize = 256;

/// Bytes of the longest instruction.
const LONGEST: usize = 20;

/// Bytes of code from which on building the classifier's tables pays off (two milliseconds).
const MUCH: usize = 1 << 20;

/// Class of instructions that need no closer look.
const PLAIN: u8 = 0;
/// Class of branches whose distance is in the lower half of their only dword.
const LEADS: u8 = 1;

/// Classifies instructions that concern no family. Those without a class may concern one.
fn build_classifier(isa: Isa, rewriter: &FamilyRewriter) -> QuickClassifier {
    QuickClassifier::new(Classifier::new(isa, |entry| {
        let class = if entry.is(Flag::Salu) { scalar_class(entry) } else { Some(PLAIN) };
        match rewriter.unconcerned_fields(entry) {
            Some(except) => {
                let except = except.into_iter().map(|field| (field.pieces, field.number)).collect();
                ClassRule { class, except, without_scalars: false }
            }
            None => ClassRule::default(),
        }
    }))
}

fn scalar_class(entry: TableEntry) -> Option<u8> {
    // Targets of calls and returns matter only where waves have done nothing yet, and there every instruction is
    // decoded.
    if !goes_elsewhere(entry) || entry.is(Flag::Call) || entry.is(Flag::Return) {
        return (!sets_registers(entry)).then_some(PLAIN);
    }
    let lower_half = matches!(entry.branch_distance(), Some([Piece { at: 0, from: 0, width: 16 }]));
    (lower_half && entry.bytes() == 4).then_some(LEADS)
}

/// Whether an instruction of that encoding may have a flow other than [`ControlFlow::Next`].
fn goes_elsewhere(entry: TableEntry) -> bool {
    [Flag::Branch, Flag::Call, Flag::Return].into_iter().any(|flag| entry.is(flag))
}

/// Scalar instructions that write MODE or, for LLVM, may do so (`s_setreg` of any register). The one for the bank mode
/// writes no other part.
fn sets_registers(entry: TableEntry) -> bool {
    entry.implicit_writes() >> Implicit::Mode as u32 & 1 != 0 && entry.mnemonic() != "s_set_vgpr_msb"
}

/// Scans the code of a file.
pub(crate) fn find_candidates(object: &CodeObject<'_>, isa: Isa, rewriter: &FamilyRewriter) -> Vec<Candidates> {
    let (code, classifier) = rayon::join(|| CodeStarts::from_object(object), || classifier_for(object, isa, rewriter));
    scan_sections(code, isa, rewriter, classifier.as_ref())
}

/// The classifier, if the file has enough code.
pub(super) fn classifier_for(object: &CodeObject<'_>, isa: Isa, rewriter: &FamilyRewriter) -> Option<QuickClassifier> {
    (code_size(object) >= MUCH).then(|| build_classifier(isa, rewriter))
}

/// Scans sections of code.
pub(super) fn scan_sections(
    code: Vec<CodeStarts<'_>>,
    isa: Isa,
    rewriter: &FamilyRewriter,
    classifier: Option<&QuickClassifier>,
) -> Vec<Candidates> {
    let search = ScanSubject { rewriter, isa, classifier };
    code.into_iter()
        .map(|section| {
            let mut starts = section.starts;
            starts.iter_mut().for_each(|start| start.offset &= !3);
            starts.push(CodeStart { offset: 0, is_kernel: false });
            // Of several symbols at one offset, a kernel's comes last and counts.
            starts.par_sort_unstable();
            starts.reverse();
            starts.dedup_by_key(|start| start.offset);
            starts.reverse();
            starts.retain(|start| start.offset < section.bytes.len());
            let pieces = group_stretches(&starts, section.bytes.len());
            // One piece at a time: with larger shares, one core would be left with the rest at the end.
            let pieces = pieces.into_par_iter().with_max_len(1);
            let found: Vec<Candidates> = pieces.map(|piece| scan_stretches(section.bytes, piece, search)).collect();
            let mut all = Candidates { number: section.number, file: section.range.start, ..Candidates::default() };
            found.into_iter().for_each(|part| all.append(part));
            all
        })
        .collect()
}

/// Approximate size of the code in bytes.
fn code_size(object: &CodeObject<'_>) -> usize {
    match object.sections() {
        [] => object.bytes().len(),
        sections => sections.iter().filter(|section| section.is_code()).map(|section| section.range.len()).sum(),
    }
}

/// Code from one symbol to the next.
struct SymbolRange {
    start: usize,
    end: usize,
    kernel: bool,
}

/// Groups of neighbouring stretches, each of about [`PIECE`] bytes.
fn group_stretches(starts: &[CodeStart], size: usize) -> Vec<Vec<SymbolRange>> {
    let ends = starts.iter().skip(1).map(|start| start.offset).chain([size]);
    let mut pieces: Vec<Vec<SymbolRange>> = Vec::new();
    let mut held = PIECE;
    for (CodeStart { offset: start, is_kernel: kernel }, end) in starts.iter().copied().zip(ends) {
        if held >= PIECE {
            pieces.push(Vec::new());
            held = 0;
        }
        held += end - start;
        let stretch = SymbolRange { start, end, kernel };
        if let Some(piece) = pieces.last_mut() {
            piece.push(stretch);
        }
    }
    pieces
}

/// The subject of the scan and its tools.
#[derive(Clone, Copy)]
struct ScanSubject<'s> {
    rewriter: &'s FamilyRewriter,
    isa: Isa,
    classifier: Option<&'s QuickClassifier>,
}

fn scan_stretches(bytes: &[u8], stretches: Vec<SymbolRange>, search: ScanSubject<'_>) -> Candidates {
    let mut found = Candidates::default();
    let mut look = PrescanState::new(search);
    for stretch in stretches {
        let begin = (found.sites.len(), found.reasons.len());
        look.begin_stretch(&stretch);
        look.from(bytes, stretch.start, &mut found);
        // Data that looks like instructions may have hidden the start of the code after it. Branches point to that.
        look.quiet = false;
        look.is_again = true;
        look.leads_elsewhere();
        let mut again = false;
        while let Some(target) = look.targets.pop() {
            if !look.is_start(target) {
                again = true;
                look.from(bytes, target, &mut found);
            }
        }
        found.early.append(&mut look.early);
        if again {
            in_order(&mut found.sites, begin.0);
            in_order(&mut found.reasons, begin.1);
        }
    }
    found
}

fn in_order(offsets: &mut Vec<u32>, begin: usize) {
    let mut own = offsets.split_off(begin);
    own.sort_unstable();
    own.dedup();
    offsets.append(&mut own);
}

struct PrescanState<'s> {
    search: ScanSubject<'s>,
    range: (usize, usize),
    /// A bit for each of its dwords that was taken for the start of an instruction.
    starts: Vec<u64>,
    /// A bit for each dword that is the target of a branch seen in the first pass over the stretch.
    leads: Vec<u64>,
    /// The first pass over the stretch is complete.
    is_again: bool,
    /// Targets of branches that were seen since.
    targets: Vec<usize>,
    /// One of its words is undecodable.
    opaque: bool,
    /// A wave starts here, and only scalar instructions without a branch have followed so far.
    quiet: bool,
    /// Reasons in the quiet part: compilers set MODE at the start of every kernel.
    early: Vec<u32>,
}

/// Number of SCHED_MODE in the operand of `s_setreg`.
const SCHED_MODE: u64 = 26;

/// The numbers of the bits that are set in a mask, in ascending order.
fn set_bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

impl<'s> PrescanState<'s> {
    fn new(search: ScanSubject<'s>) -> Self {
        Self {
            search,
            range: (0, 0),
            starts: Vec::new(),
            leads: Vec::new(),
            is_again: false,
            targets: Vec::new(),
            opaque: false,
            quiet: false,
            early: Vec::new(),
        }
    }

    fn begin_stretch(&mut self, stretch: &SymbolRange) {
        self.range = (stretch.start, stretch.end);
        let words = (stretch.end - stretch.start) / 256 + 1;
        for bits in [&mut self.starts, &mut self.leads] {
            bits.clear();
            bits.resize(words, 0);
        }
        (self.is_again, self.opaque, self.quiet) = (false, false, stretch.kernel);
    }

    fn is_start(&self, at: usize) -> bool {
        let dword = (at - self.range.0) / 4;
        self.starts[dword / 64] >> (dword % 64) & 1 != 0
    }

    /// Collects the branch targets that were not taken for the start of an instruction.
    fn leads_elsewhere(&mut self) {
        for (number, (leads, starts)) in self.leads.iter().zip(&self.starts).enumerate() {
            let dwords = set_bits(leads & !starts).map(|bit| number * 64 + bit as usize);
            self.targets.extend(dwords.map(|dword| self.range.0 + 4 * dword));
        }
    }

    /// Scans up to the end of the stretch, or to a position that was scanned before.
    fn from(&mut self, bytes: &[u8], mut at: usize, found: &mut Candidates) {
        while at < self.range.1 && !self.is_start(at) {
            // Earlier visits are not checked for each instruction, but only in the second pass, which is rare.
            at = match self.search.classifier.filter(|_| !self.quiet && !self.is_again) {
                Some(classifier) => self.classify_strip(classifier, bytes, at, found),
                None => self.scan_one(bytes, at, found),
            };
        }
    }

    /// Classifies instructions up to the end of a strip of the stretch, or up to one that is not plain. Returns
    /// the offset after them.
    fn classify_strip(
        &mut self,
        classifier: &QuickClassifier,
        bytes: &[u8],
        at: usize,
        found: &mut Candidates,
    ) -> usize {
        let number = (at - self.range.0) / STRIP;
        let base = self.range.0 + number * STRIP;
        // At the end of the section there may not be enough bytes for a strip and the longest instruction after it.
        let Some(strip) = bytes[base..].first_chunk::<{ STRIP + LONGEST }>() else {
            return self.scan_one(bytes, at, found);
        };
        let last = ((self.range.1 - base) / 4).min(STRIP / 4);
        // With constants after predicted branches, the next instruction can start before this length is known, but the
        // compiler must not know them.
        let steps = black_box([1, 2, 3]);
        let mut starts = self.starts[number];
        let mut dword = (at - base) / 4;
        while dword < last {
            let chunk = &strip[4 * dword..];
            let Some(seen) = chunk.first_chunk().and_then(|chunk| classifier.classify_bytes(chunk)) else {
                self.starts[number] = starts;
                return self.scan_one(bytes, base + 4 * dword, found);
            };
            starts |= 1 << dword;
            dword += match seen.bytes() {
                4 => steps[0],
                8 => steps[1],
                12 => steps[2],
                more => usize::from(more / 4),
            };
            if seen.class() == LEADS {
                let distance = isize::from(i16::from_le_bytes([chunk[0], chunk[1]]));
                self.record_branch_target((base + 4 * dword).wrapping_add_signed(4 * distance), found);
            }
        }
        self.starts[number] = starts;
        base + 4 * dword
    }

    /// Offsets outside the stretch lack a bit, or have one after its end that is never read.
    #[inline(always)]
    fn mark_lead(&mut self, target: usize) {
        let dword = target.wrapping_sub(self.range.0) / 4;
        if let Some(leads) = self.leads.get_mut(dword / 64) {
            *leads |= 1 << (dword % 64);
        }
    }

    /// Records the target of a branch in the first pass over a stretch.
    #[inline(always)]
    fn record_branch_target(&mut self, target: usize, found: &mut Candidates) {
        self.mark_lead(target);
        if !self.early.is_empty() {
            self.leads_back(target as u64, found);
        }
    }

    fn mark_start(&mut self, at: usize) {
        let dword = (at - self.range.0) / 4;
        self.starts[dword / 64] |= 1 << (dword % 64);
    }

    /// Scans one instruction. Returns the offset after it.
    fn scan_one(&mut self, bytes: &[u8], at: usize, found: &mut Candidates) -> usize {
        self.mark_start(at);
        let Ok(inst) = self.search.isa.decode(&bytes[at..]) else {
            // Only the program can tell whether this is reachable. One such place is enough to query it.
            if !self.opaque {
                found.sites.push(at as u32);
            }
            self.opaque = true;
            return at + 4;
        };
        let end = at + usize::from(inst.len());
        self.scan_instruction(at, &inst, &bytes[end..], found);
        end
    }

    fn scan_instruction(&mut self, at: usize, inst: &Inst, following: &[u8], found: &mut Candidates) {
        if self.search.rewriter.concerns_instruction(inst) {
            found.sites.push(at as u32);
        }
        if inst.is(Flag::Salu) {
            self.scan_scalar(at, inst, following, found);
        } else {
            self.quiet = false;
            if self.search.rewriter.concerns_function_with(inst, self.search.isa, following) {
                found.reasons.push(at as u32);
            }
        }
    }

    fn scan_scalar(&mut self, at: usize, inst: &Inst, following: &[u8], found: &mut Candidates) {
        if self.search.rewriter.concerns_function_with(inst, self.search.isa, following) {
            if self.quiet && sets_registers(inst.entry()) {
                self.early.push(at as u32);
            } else {
                found.reasons.push(at as u32);
            }
        }
        if sets_registers(inst.entry()) {
            let register = inst.raw(Name::Simm16).unwrap_or(0);
            found.schedules |= inst.is(Flag::Sopk) && register & 63 == SCHED_MODE;
            found.sets_half_mode |= half_mode::sets_other(inst);
        }
        if !goes_elsewhere(inst.entry()) {
            return;
        }
        self.quiet = false;
        match inst.control_flow(at as u64, self.search.isa) {
            ControlFlow::Branch { target, .. } => self.scan_branch(target, found),
            ControlFlow::Indirect { .. } => self.comes_back(found),
            ControlFlow::Next | ControlFlow::Call { .. } | ControlFlow::End => {}
        }
    }

    /// Records the target of a branch.
    fn scan_branch(&mut self, target: u64, found: &mut Candidates) {
        let inside = usize::try_from(target).ok().filter(|target| (self.range.0..self.range.1).contains(target));
        if let Some(target) = inside.filter(|target| target.is_multiple_of(4)) {
            if self.is_again {
                self.targets.push(target);
            } else {
                self.mark_lead(target);
            }
        }
        self.leads_back(target, found);
    }

    /// A branch to that offset may return to a point before the early ones.
    fn leads_back(&mut self, target: u64, found: &mut Candidates) {
        if self.early.last().is_some_and(|last| target <= u64::from(*last)) {
            self.comes_back(found);
        }
    }

    /// Control flow may return to a point before the early ones.
    fn comes_back(&mut self, found: &mut Candidates) {
        if !self.early.is_empty() {
            found.reasons.append(&mut self.early);
            found.reasons.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_families::FamilyRegistry;
    use hotswap_isa::Target;

    /// Random instructions of every encoding, most with registers as operands, and a few undecodable words.
    fn code(isa: Isa, mut next: impl FnMut() -> u64) -> Vec<u8> {
        let entries: Vec<TableEntry> = TableEntry::all_entries().filter(|entry| entry.available(isa)).collect();
        let mut bytes = Vec::new();
        for _ in 0..100_000 {
            let entry = entries[next() as usize % entries.len()];
            let (value, mask) = entry.fixed();
            let wild = u128::from(next()) << 64 | u128::from(next());
            let tame = wild & !(0x1ff | 0x7ff_ffff << 32) | 0x101 | (0x402_0101 << 32);
            // Branches get short distances.
            let tame = if entry.branch_distance().is_some() {
                tame & !0xffff | wild & 0x3f | wild & 0xffc0 << 16
            } else {
                tame
            };
            let random = if next().is_multiple_of(8) { wild } else { tame };
            bytes.extend_from_slice(&(random & !mask | value).to_le_bytes()[..usize::from(entry.bytes())]);
        }
        bytes
    }

    #[test]
    fn the_classifier_changes_nothing() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 29
        };
        let isa = Isa::new(Target::find("gfx1250").unwrap());
        let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
        let classifier = build_classifier(isa, &rewriter);
        let bytes = code(isa, &mut next);
        let mut all = Candidates::default();
        let mut start = 0;
        while start < bytes.len() {
            let end = (start + 4 * (1 + next() as usize % 500)).min(bytes.len());
            for kernel in [false, true] {
                let look = |classifier| {
                    let stretch = vec![SymbolRange { start, end, kernel }];
                    scan_stretches(&bytes, stretch, ScanSubject { rewriter: &rewriter, isa, classifier })
                };
                let (with, without) = (look(Some(&classifier)), look(None));
                assert_eq!(with, without, "{start:#x} to {end:#x}");
                all.append(with);
            }
            start = end;
        }
        assert!(all.sites.len() > 1000 && all.reasons.len() > 1000 && all.schedules);
    }
}
