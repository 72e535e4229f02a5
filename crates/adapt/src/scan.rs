//! Which instructions concern a family: one pass over the code, without a model of the program.
//!
//! Invariants: every dword at which an instruction may begin is looked at as such: the pass begins anew at each symbol, behind
//! words that are no instruction, and where a branch leads; what it finds is judged again on the program's own instructions.

use hotswap_code_object::{CodeMap, Symbol, SymbolKind};
use hotswap_families::Rewriter;
use hotswap_isa::effects::Flow;
use hotswap_isa::{Flag, Inst, Isa, Name};
use rayon::prelude::*;

/// What a section holds.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Offset of the section in the file.
    pub(crate) file: usize,
    /// Offsets of instructions that concern a family of scope `Instruction`, and of words that are no instruction, the first
    /// behind each symbol; rising.
    pub(crate) sites: Vec<u32>,
    /// Offsets of instructions that concern one of scope `Function`; rising.
    pub(crate) reasons: Vec<u32>,
    /// Something sets SCHED_MODE.
    pub(crate) schedules: bool,
}

impl Suspects {
    pub(crate) fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.reasons.is_empty()
    }

    /// All offsets; rising.
    pub(crate) fn places(&self) -> Vec<u32> {
        let mut all = [&self.sites[..], &self.reasons[..]].concat();
        all.sort_unstable();
        all
    }

    fn append(&mut self, mut other: Self) {
        self.sites.append(&mut other.sites);
        self.reasons.append(&mut other.reasons);
        self.schedules |= other.schedules;
    }
}

/// Bytes that one task looks at.
const PIECE: usize = 1 << 20;

/// Looks through the code of a file.
pub(crate) fn suspects(map: &CodeMap<'_>, isa: Isa, rewriter: &Rewriter) -> Vec<Suspects> {
    map.sections
        .iter()
        .map(|section| {
            let kernel = |symbol: &Symbol<'_>| matches!(symbol.kind, SymbolKind::Kernel(_));
            let start = |symbol: &Symbol<'_>| (symbol.offset & !3, kernel(symbol));
            let mut starts: Vec<(usize, bool)> = section.symbols.iter().map(start).collect();
            starts.push((0, false));
            // Of several names of one place, one of a kernel comes last and counts.
            starts.sort_unstable();
            starts.reverse();
            starts.dedup_by_key(|(start, _)| *start);
            starts.reverse();
            starts.retain(|(start, _)| *start < section.bytes.len());
            let pieces = pieces(&starts, section.bytes.len());
            let found: Vec<Suspects> =
                pieces.into_par_iter().map(|starts| stretches(section.bytes, starts, isa, rewriter)).collect();
            let mut all = Suspects { file: section.range.start, ..Suspects::default() };
            found.into_iter().for_each(|part| all.append(part));
            all
        })
        .collect()
}

/// Code from one symbol to the next.
struct Stretch {
    start: usize,
    end: usize,
    kernel: bool,
}

/// Groups of neighbouring stretches, each of about [`PIECE`] bytes.
fn pieces(starts: &[(usize, bool)], size: usize) -> Vec<Vec<Stretch>> {
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([size]);
    let mut pieces: Vec<Vec<Stretch>> = Vec::new();
    let mut held = PIECE;
    for ((start, kernel), end) in starts.iter().copied().zip(ends) {
        if held >= PIECE {
            pieces.push(Vec::new());
            held = 0;
        }
        held += end - start;
        let stretch = Stretch { start, end, kernel };
        if let Some(piece) = pieces.last_mut() {
            piece.push(stretch);
        }
    }
    pieces
}

fn stretches(bytes: &[u8], stretches: Vec<Stretch>, isa: Isa, rewriter: &Rewriter) -> Suspects {
    let mut found = Suspects::default();
    for Stretch { start, end, kernel } in stretches {
        let starts = vec![0; (end - start) / 256 + 1];
        let begin = (found.sites.len(), found.reasons.len());
        let mut look = Look {
            rewriter,
            isa,
            range: (start, end),
            starts,
            opaque: false,
            quiet: kernel,
            early: Vec::new(),
            targets: Vec::new(),
        };
        look.from(bytes, start, &mut found);
        // Data that looks like instructions may have hidden the begin of what comes behind it; branches lead there.
        look.quiet = false;
        let mut again = false;
        while let Some(target) = look.targets.pop() {
            if !look.is_start(target) {
                again = true;
                look.from(bytes, target, &mut found);
            }
        }
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

struct Look<'r> {
    rewriter: &'r Rewriter,
    isa: Isa,
    /// The stretch.
    range: (usize, usize),
    /// A bit for each dword of it that was taken for the begin of an instruction.
    starts: Vec<u64>,
    /// A word of it is no instruction.
    opaque: bool,
    /// Where branches lead.
    targets: Vec<usize>,
    /// A wave began here, and nothing but scalar instructions that go straight on has come so far.
    quiet: bool,
    /// Reasons in the quiet part: compilers set MODE at the begin of every kernel.
    early: Vec<u32>,
}

/// Number of SCHED_MODE in the operand of `s_setreg`.
const SCHED_MODE: u64 = 26;

impl Look<'_> {
    fn is_start(&self, at: usize) -> bool {
        let dword = (at - self.range.0) / 4;
        self.starts[dword / 64] >> (dword % 64) & 1 != 0
    }

    /// Goes on to the end of the stretch, or to where it was before.
    fn from(&mut self, bytes: &[u8], mut at: usize, found: &mut Suspects) {
        while at < self.range.1 && !self.is_start(at) {
            let dword = (at - self.range.0) / 4;
            self.starts[dword / 64] |= 1 << (dword % 64);
            let Ok(inst) = self.isa.decode(&bytes[at..]) else {
                // Whether somebody comes here is for the program to say; one such place is enough to ask it.
                if !self.opaque {
                    found.sites.push(at as u32);
                }
                self.opaque = true;
                at += 4;
                continue;
            };
            self.inst(at, &inst, found);
            at += usize::from(inst.len());
        }
    }

    fn inst(&mut self, at: usize, inst: &Inst, found: &mut Suspects) {
        if self.rewriter.suspects(inst) {
            found.sites.push(at as u32);
        }
        if inst.is(Flag::Salu) {
            self.scalar(at, inst, found);
        } else {
            self.quiet = false;
            if self.rewriter.concerns_function(inst) {
                found.reasons.push(at as u32);
            }
        }
    }

    fn scalar(&mut self, at: usize, inst: &Inst, found: &mut Suspects) {
        if self.rewriter.concerns_function(inst) {
            if self.quiet {
                self.early.push(at as u32);
            } else {
                found.reasons.push(at as u32);
            }
        }
        let sets = matches!(inst.mnemonic(), "s_setreg_b32" | "s_setreg_imm32_b32");
        found.schedules |= sets && inst.raw(Name::Simm16).is_some_and(|register| register & 63 == SCHED_MODE);
        let flow = inst.flow(at as u64, self.isa);
        let goes_on = flow == Flow::Next;
        self.quiet &= goes_on;
        if let Flow::Branch { target, .. } = flow
            && let Some(target) =
                usize::try_from(target).ok().filter(|target| (self.range.0..self.range.1).contains(target))
            && target.is_multiple_of(4)
        {
            self.targets.push(target);
        }
        // Somebody may come back to before the early ones.
        if !goes_on && !self.early.is_empty() {
            let last = self.early.last().copied().unwrap_or(0);
            let back = match flow {
                Flow::Branch { target, .. } => target <= u64::from(last),
                Flow::Indirect { .. } => true,
                _ => false,
            };
            if back {
                found.reasons.append(&mut self.early);
                found.reasons.sort_unstable();
            }
        }
    }
}
