//! The page of the judges (`docs/evidence/judges.md`).

use crate::judged_corpus::JudgeTable;
use crate::judged_pairs::judged_pairs;
use crate::judges::JudgeTally;
use hotswap_check::CheckOptions;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "# The judges about the same objects

For reviewers of retargeted and rewritten code: whether independent checkers agree about it, pair by pair.

Written by `cargo xtask prove judges --page docs/evidence/judges.md`. For every pair of GPUs that plans apply, code objects go the product's way (the
checks of the pair, then the rewriter, or a new label), and all judges are asked about the result: `hotswap lint` must have no
finding that the original does not have, `hotswap verify --against` must prove all, and `hotswap check` must find no difference. A second
run of the rewriter must change nothing, and in code that it changes a judge must find a fault if it is left unchanged. What one
of them contradicts is a disagreement, and the command fails. The objects of gfx1250 are the tests of rewriting (assembly in every place,
regressions, compiled kernels at four levels in every form), LLVM's tests of code generation that name gfx1250, and the HIP programs of
the tests of emulated GPUs (`tests/emulated-hip/cases/programs`, clang 22, -O2); those of other sources are four of these programs.
[Random kernels](random-kernels.md) have a page of their own.
";

const COLUMNS: &str = "
| pair | objects | refused | changed | of these, wrong if left unchanged | instructions proven | kernels equal | states and launches | kernels not compared completely | disagreements |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The page of a run, with the sources that were judged, of all.
#[must_use]
pub fn page(table: &JudgeTable, options: &CheckOptions, [judged, all]: [usize; 2]) -> String {
    let CheckOptions { states, launches, .. } = options;
    let mut text = format!(
        "{HEAD}\nThe last run judged {judged} of {all} sources, with up to {states} states of each changed instruction and \
         {launches} launches of each kernel.\n{COLUMNS}"
    );
    for pair in judged_pairs() {
        let row = table.get(&pair).map_or_else(|| " – |".repeat(9), pair_row);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{pair}` |{row}");
    }
    text += &reasons("refused with", "objects", table, |tally| &tally.refused);
    text += &reasons("not compared completely by `check`", "kernels", table, |tally| &tally.unchecked);
    text
}

fn pair_row(tally: &JudgeTally) -> String {
    let counts = [
        tally.objects,
        tally.refused.values().sum(),
        tally.changed,
        tally.caught,
        tally.proven,
        tally.equal,
        tally.executed,
        tally.unchecked.values().sum(),
        tally.disagreements.len() as u64,
    ];
    counts.iter().map(|count| format!(" {count} |")).collect()
}

/// The reasons of all pairs.
fn reasons(what: &str, unit: &str, table: &JudgeTable, of: impl Fn(&JudgeTally) -> &BTreeMap<String, u64>) -> String {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in table.values().flat_map(of) {
        *all.entry(reason).or_default() += count;
    }
    let mut text = format!("\n| {what} | {unit} |\n| --- | ---: |\n");
    for (reason, count) in &all {
        let _ = writeln!(text, "| {} | {count} |", reason.replace('|', "\\|"));
    }
    if all.is_empty() { String::new() } else { text }
}
