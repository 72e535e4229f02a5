//! The list of differences between two processors, made by the compiler: a generated matrix of programs, LLVM's own test lines
//! of assembly and pairs of instructions are given to LLVM 24 for both, and what differs is a *kind* of difference.
//!
//! `steppings.kinds` maps each kind to a family, a row of the hazard table or a reason. A kind that no line names is a failure,
//! and so is a line that no kind needs.
//!
//! Absent on purpose: our decoder, our tables and the families. What LLVM does not know is not found here.

mod assembler;
mod hazards;
mod kinds;
mod programs;

use hotswap_userland::Workbench;
pub use kinds::{KindLine, KindTable};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Two processors that the product takes code from and makes code for.
#[derive(Debug, Clone, Copy)]
pub struct SteppingPair {
    /// Where code is from.
    pub source: &'static str,
    /// Where it is to run.
    pub target: &'static str,
    /// The starts of the names of LLVM's files of assembly that are for these.
    pub assembly: &'static [&'static str],
    /// Whether the corpus of C and the pairs of instructions are for them.
    pub is_gfx1250: bool,
}

const GFX11: &[&str] = &["gfx11_asm_"];
const GFX115: &[&str] = &["gfx1150_asm_", "gfx11_asm_"];
const GFX9: &[&str] = &["gfx950_", "gfx940_", "gfx90a_"];

pub const PAIRS: [SteppingPair; 6] = [
    SteppingPair { source: "gfx1250", target: "gfx1250-strict", assembly: &["gfx1250_asm_"], is_gfx1250: true },
    SteppingPair { source: "gfx1100", target: "gfx1101", assembly: GFX11, is_gfx1250: false },
    SteppingPair { source: "gfx1100", target: "gfx1102", assembly: GFX11, is_gfx1250: false },
    SteppingPair { source: "gfx1100", target: "gfx1103", assembly: GFX11, is_gfx1250: false },
    SteppingPair { source: "gfx1150", target: "gfx1151", assembly: GFX115, is_gfx1250: false },
    SteppingPair { source: "gfx942", target: "gfx950", assembly: GFX9, is_gfx1250: false },
];

/// A kind of difference: how often, and one example.
#[derive(Debug, Clone, Default)]
pub struct FoundKind {
    /// How often it occurs.
    pub count: usize,
    /// The first place.
    pub example: String,
}

/// The differences of one pair.
#[derive(Debug, Clone, Default)]
pub struct PairDifferences {
    /// Cases that were compared, by the part of the matrix.
    pub cases: BTreeMap<&'static str, usize>,
    /// Kinds, by name.
    pub kinds: BTreeMap<String, FoundKind>,
}

impl PairDifferences {
    /// Counts a difference.
    fn add(&mut self, kind: String, example: &str) {
        let found = self.kinds.entry(kind).or_default();
        found.count += 1;
        if found.example.is_empty() {
            example.clone_into(&mut found.example);
        }
    }

    /// Counts a compared case.
    fn count_cases(&mut self, part: &'static str, count: usize) {
        *self.cases.entry(part).or_default() += count;
    }
}

/// All differences of a pair.
///
/// # Panics
/// If the userland has no LLVM 24, or it fails.
#[must_use]
pub fn compare_pair(bench: &Workbench, pair: &SteppingPair, assembly: Option<&Path>) -> PairDifferences {
    let mut found = PairDifferences::default();
    programs::compare_programs(bench, pair, &mut found);
    if let Some(directory) = assembly {
        assembler::compare_assembly(bench, pair, directory, &mut found);
    }
    if pair.is_gfx1250 {
        programs::compare_corpus(bench, pair, &mut found);
        hazards::compare_hazards(bench, pair, &mut found);
    }
    found
}

const HEAD: &str = "# What differs between steppings

For reviewers of the rewriter: every difference that LLVM makes between the processors of a pair, with the rule that covers it.

Written by `cargo xtask steppings`. LLVM 24 compiles a generated matrix for both processors of a pair: loads, stores, atomics and
fences by address space, type, order, scope and hint, alone and in pairs; for gfx1250 also the corpus of matrix and other
instructions in C, and pairs of instructions as MIR before its hazard recognizer. Its assembler gets LLVM's own test lines.
Programs are compiled three times: as LLVM does it, without schedulers, dual instructions and hints (`unscheduled code`), where an order
that follows latencies hides no rule, and in the mode in which programs wait for the vector unit themselves (`expert code`).
Each kind of difference has a family, a row of the hazard table, or a reason. `cargo xtask steppings` fails for a kind without one.
";

/// The page of all pairs.
#[must_use]
pub fn page(found: &[(SteppingPair, PairDifferences)], table: &KindTable) -> String {
    let mut text = HEAD.to_owned();
    for (pair, differences) in found {
        let cases: Vec<String> = differences.cases.iter().map(|(part, count)| format!("{count} {part}")).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {} and {}\n\nCompared: {}.\n\n", pair.source, pair.target, cases.join(", "));
        if differences.kinds.is_empty() {
            text += "No difference.\n";
            continue;
        }
        text += "| kind | times | first | answer |\n| --- | ---: | --- | --- |\n";
        for (kind, found) in &differences.kinds {
            let answer = table.answer_to(pair, kind).unwrap_or("**none**");
            let example = found.example.replace('|', "\\|");
            let _ = writeln!(text, "| `{kind}` | {} | `{example}` | {answer} |", found.count);
        }
    }
    text
}
