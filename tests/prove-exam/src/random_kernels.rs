//! Random kernels for gfx1250: rewritten, and judged by all judges. The table of `docs/evidence/random-kernels.md`.

use crate::judged_pairs::STEPPINGS;
use crate::judges::{JudgeTally, judge_object};
use crate::workers::on_all_processors;
use hotswap_check::CheckOptions;
use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::random::random_kernel;
use hotswap_userland::Workbench;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

/// Kernels of one object. If it is refused, each is judged alone.
const TOGETHER: u64 = 10;

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct RandomTally {
    /// Kernels that were made.
    pub kernels: u64,
    /// Kernels that the rewriter refused.
    pub refused: u64,
    /// The answers about the objects, each in two forms.
    pub judged: JudgeTally,
}

/// Judges the kernels of the seeds, as object files and linked. Objects about which the judges disagree are kept in a directory
/// where one is given.
#[must_use]
pub fn judge_random(bench: &Workbench, seeds: Range<u64>, options: &CheckOptions, keep: Option<&Path>) -> RandomTally {
    let starts: Vec<u64> = seeds.clone().step_by(TOGETHER as usize).collect();
    let tallies = on_all_processors(&starts, |start| {
        let kernels: Vec<Kernel> = (*start..seeds.end.min(start + TOGETHER)).map(random_kernel).collect();
        let tally = judge_batch(bench, &format!("random-{start}"), &kernels, (options, keep));
        tally.judged.disagreements.iter().for_each(|what| println!("{what}"));
        println!("random {start}: {}", tally.judged.text());
        tally
    });
    let mut sum = RandomTally::default();
    tallies.into_iter().for_each(|tally| sum.merge(tally));
    sum
}

impl RandomTally {
    /// Adds the outcome of other seeds.
    pub fn merge(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.refused += other.refused;
        self.judged.merge(other.judged);
    }
}

fn judge_batch(
    bench: &Workbench,
    name: &str,
    kernels: &[Kernel],
    (options, keep): (&CheckOptions, Option<&Path>),
) -> RandomTally {
    let mut judged = JudgeTally::default();
    for (name, bytes) in assemble(bench, name, kernels) {
        let tally = judge_object(&STEPPINGS, &name, &bytes, options);
        if let Some(directory) = keep.filter(|_| !tally.disagreements.is_empty())
            && let Err(error) = std::fs::write(directory.join(&name), &bytes)
        {
            judged.disagreements.push(format!("{name}: not kept: {error}"));
        }
        judged.merge(tally);
    }
    let count = kernels.len() as u64;
    if judged.refused.is_empty() || count == 1 {
        let refused = u64::from(!judged.refused.is_empty());
        return RandomTally { kernels: count, refused, judged };
    }
    let mut sum = RandomTally::default();
    for kernel in kernels {
        let tally =
            judge_batch(bench, &format!("random-{}", kernel.name), std::slice::from_ref(kernel), (options, keep));
        sum.merge(tally);
    }
    sum
}

const HEAD: &str = "# Random kernels

For reviewers of the rewriter: its results for generated kernels, and what independent checkers say of them.

Written by `cargo xtask prove random`. Kernels for gfx1250 are made by `tests/rewrite-exam/src/random`, assembled by LLVM 24,
rewritten for gfx1250-strict, as object files and linked, and judged: a second run must change nothing, `hotswap lint` must
have no finding that the original does not have, `hotswap verify --against` must prove all, and `hotswap check` must find
no difference. Any answer that contradicts this is a disagreement; so is HS0601. Where something was changed, one of them must
find a fault in the unchanged code under the target's name.
";

/// The page of a run.
#[must_use]
pub fn page(seeds: &Range<u64>, options: &CheckOptions, tally: &RandomTally) -> String {
    let RandomTally { kernels, refused, judged } = tally;
    let mut text = format!("{HEAD}\n| | |\n| --- | ---: |\n");
    let rows: [(String, u64); 9] = [
        (format!("kernels (seeds {} to {})", seeds.start, seeds.end.saturating_sub(1)), *kernels),
        ("kernels that are refused".to_owned(), *refused),
        ("objects".to_owned(), judged.objects),
        ("objects that were changed".to_owned(), judged.changed),
        ("of these, wrong for a judge if they are left unchanged".to_owned(), judged.caught),
        ("instructions proven by `verify --against`".to_owned(), judged.proven),
        ("kernels equal for `check`, in both forms".to_owned(), judged.equal),
        (
            format!("states and launches (up to {} states a site, {} launches)", options.states, options.launches),
            judged.executed,
        ),
        ("disagreements, HS0601 among them".to_owned(), judged.disagreements.len() as u64),
    ];
    for (name, count) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {count} |");
    }
    text += &counts_table("family", "changed instructions", &judged.families);
    text += &counts_table("refused", "objects", &judged.refused);
    text += &counts_table("not compared completely by `check`", "kernels", &judged.unchecked);
    text
}

fn counts_table(name: &str, count: &str, rows: &BTreeMap<String, u64>) -> String {
    let mut text = format!("\n| {name} | {count} |\n| --- | ---: |\n");
    for (name, count) in rows {
        let _ = writeln!(text, "| {name} | {count} |");
    }
    if rows.is_empty() { String::new() } else { text }
}
