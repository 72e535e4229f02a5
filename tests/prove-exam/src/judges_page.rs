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

/// Columns with numbers.
const COUNTED: usize = 9;
/// The heads of the tables of reasons.
const REFUSED: &str = "| refused with | objects |";
const UNCHECKED: &str = "| not compared completely by `check` | kernels |";

/// The numbers of a page: those of a run, with those of the page of an earlier run that was stopped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PageCounts {
    /// Sources that were judged.
    judged: usize,
    /// The columns of each pair.
    pairs: BTreeMap<String, [u64; COUNTED]>,
    refused: BTreeMap<String, u64>,
    unchecked: BTreeMap<String, u64>,
}

impl PageCounts {
    /// The numbers of a page that judged the first sources.
    ///
    /// # Errors
    /// A page of another number of sources.
    pub fn read_page(text: &str, sources: usize) -> Result<Self, String> {
        let mut read = Self { judged: sources, ..Self::default() };
        let mut lines = text.lines();
        if !text.contains(&format!("The last run judged {sources} of ")) {
            return Err(format!("the page is not about the first {sources} sources"));
        }
        for line in lines.by_ref().take_while(|line| *line != REFUSED && *line != UNCHECKED) {
            if let Some((pair, counts)) = pair_of_row(line) {
                read.pairs.insert(pair, counts);
            }
        }
        read.refused = reasons_of_page(text, REFUSED);
        read.unchecked = reasons_of_page(text, UNCHECKED);
        Ok(read)
    }

    /// Adds the numbers of a run.
    pub fn add_run(&mut self, table: &JudgeTable, sources: usize) {
        self.judged += sources;
        for (pair, tally) in table {
            let sums = self.pairs.entry(pair.to_string()).or_default();
            sums.iter_mut().zip(pair_counts(tally)).for_each(|(sum, count)| *sum += count);
            add_reasons(&mut self.refused, &tally.refused);
            add_reasons(&mut self.unchecked, &tally.unchecked);
        }
    }
}

fn add_reasons(into: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    more.iter().for_each(|(reason, count)| *into.entry(reason.clone()).or_default() += count);
}

fn pair_of_row(line: &str) -> Option<(String, [u64; COUNTED])> {
    let (pair, cells) = line.strip_prefix("| `")?.split_once("` |")?;
    let counts: Vec<u64> = cells.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
    Some((pair.to_owned(), counts.try_into().ok()?))
}

fn reasons_of_page(text: &str, head: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().skip_while(|line| *line != head).skip(2).take_while(|line| !line.is_empty());
    let row = |line: &str| {
        let (reason, count) = line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | ")?;
        Some((reason.replace("\\|", "|"), count.parse().ok()?))
    };
    rows.filter_map(row).collect()
}

/// The page of a run, of so many sources in all.
#[must_use]
pub fn page(counts: &PageCounts, options: &CheckOptions, all: usize) -> String {
    let CheckOptions { states, launches, .. } = options;
    let judged = counts.judged;
    let mut text = format!(
        "{HEAD}\nThe last run judged {judged} of {all} sources, with up to {states} states of each changed instruction and \
         {launches} launches of each kernel.\n{COLUMNS}"
    );
    for pair in judged_pairs() {
        let row = counts.pairs.get(&pair.to_string());
        let row: String =
            row.map_or_else(|| " – |".repeat(COUNTED), |counts| counts.map(|count| format!(" {count} |")).concat());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{pair}` |{row}");
    }
    text + &reasons(REFUSED, &counts.refused) + &reasons(UNCHECKED, &counts.unchecked)
}

fn pair_counts(tally: &JudgeTally) -> [u64; COUNTED] {
    [
        tally.objects,
        tally.refused.values().sum(),
        tally.changed,
        tally.caught,
        tally.proven,
        tally.equal,
        tally.executed,
        tally.unchecked.values().sum(),
        tally.disagreements.len() as u64,
    ]
}

/// The reasons of all pairs.
fn reasons(head: &str, all: &BTreeMap<String, u64>) -> String {
    let mut text = format!("\n{head}\n| --- | ---: |\n");
    for (reason, count) in all {
        let _ = writeln!(text, "| {} | {count} |", reason.replace('|', "\\|"));
    }
    if all.is_empty() { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judged_pairs::STEPPINGS;

    fn table_of_run(changed: u64) -> JudgeTable {
        let refused = [("HS0408".to_owned(), 2)].into();
        let unchecked = [("a | b".to_owned(), 3)].into();
        JudgeTable::from([(STEPPINGS, JudgeTally { objects: 5, changed, refused, unchecked, ..JudgeTally::default() })])
    }

    #[test]
    fn a_run_goes_on_from_the_page_of_a_stopped_one() {
        let options = CheckOptions::default();
        let (mut first, mut whole) = (PageCounts::default(), PageCounts::default());
        first.add_run(&table_of_run(3), 7);
        whole.add_run(&table_of_run(3), 7);
        whole.add_run(&table_of_run(4), 2);
        let mut second = PageCounts::read_page(&page(&first, &options, 9), 7).unwrap();
        assert_eq!(second, first);
        second.add_run(&table_of_run(4), 2);
        assert_eq!(page(&second, &options, 9), page(&whole, &options, 9));
        assert!(PageCounts::read_page(&page(&first, &options, 9), 6).is_err());
    }
}
