//! The whole matrix: rows for people, pairs for programs, a page for the documentation.
//!
//! `docs/reference/compatibility.md` is the output of `hotswap compat --matrix --format markdown`; a test compares the two.

use crate::pair_report::{pair_json, verdict_name};
use crate::{Check, FEATURES, Feature, MATRIX, MatrixRow, MatrixVerdict, PairStatus, Verdict, find_pair, pair_verdict};
use hotswap_report::text;
use hotswap_targets::IsaFamily::{self, *};
use hotswap_targets::{PROCESSORS, Processor, find_processor};
use serde_json::{Value, json};
use std::fmt::Write;

/// Families that share a grid.
struct FamilyGrid {
    title: &'static str,
    families: &'static [IsaFamily],
}

#[rustfmt::skip]
const GRIDS: &[FamilyGrid] = &[
    FamilyGrid { title: "GFX9: Vega, CDNA 1 and CDNA 2", families: &[Vega, Cdna1, Cdna2] },
    FamilyGrid { title: "GFX9.4: CDNA 3 and CDNA 4", families: &[Cdna3, Cdna4] },
    FamilyGrid { title: "GFX10: RDNA 1 and RDNA 2", families: &[Rdna1, Rdna2] },
    FamilyGrid { title: "GFX11: RDNA 3 and RDNA 3.5", families: &[Rdna3, Rdna35] },
    FamilyGrid { title: "GFX11.7", families: &[Gfx117] },
    FamilyGrid { title: "GFX12: RDNA 4", families: &[Rdna4] },
    FamilyGrid { title: "GFX12.5", families: &[Gfx125] },
];

const INTRODUCTION: &str = "\
# Which GPU's code can serve which other GPU

<!-- Printed by `hotswap compat --matrix --format markdown`; do not edit. -->

For users who choose a source GPU: whether code for one GPU can serve another, for all pairs.

`hotswap compat SOURCE TARGET` prints for one pair what this page has for all. Pairs that are not
listed are between families that encode instructions differently, and are unsafe. \"Safe\" means safe by
LLVM's model of the hardware: its tables of instructions, encodings, hazards and resources. Code for a
generic target does not need a pair to run on a GPU that the target covers: the runtime loads it unchanged.
";

const LEGEND: &str = "\
Rows are the GPUs that code was compiled for, columns the GPUs that it is to run on.

| sign | meaning |
| --- | --- |
| **=** | identical: the compiler makes the same code for both; a star means: if the object passes checks |
| **v** | validated: the compiler's code for both is equal on the test corpus, at least once it is told the settings that the checks ask about; applied if the object passes checks |
| **r** | rewritten: the compiler's code differs; HotSwap changes instructions, distances and waits, or refuses |
| e | experimental: safe if the object passes checks, by the tables alone; applied with `--allow-experimental` |
| . | unsafe |
";

fn pairs_of(row: &MatrixRow) -> impl Iterator<Item = (&'static Processor, &'static Processor)> {
    let (sources, targets) = (row.sources.iter(), row.targets);
    let with =
        |source: &'static Processor| targets.iter().filter_map(move |target| Some((source, find_processor(target)?)));
    let pairs = sources.filter_map(|source| find_processor(source)).flat_map(with);
    pairs.filter(|(source, target)| source.name != target.name)
}

/// The status of all pairs of a row.
fn status(row: &MatrixRow) -> String {
    let mut found: Vec<String> = Vec::new();
    for (source, target) in pairs_of(row) {
        let status = find_pair(source, target).map_or("-".to_owned(), |pair| pair.status.to_string());
        if !found.contains(&status) {
            found.push(status);
        }
    }
    found.join(" or ")
}

fn names(checks: &[Check]) -> String {
    checks.iter().map(|check| check.name()).collect::<Vec<_>>().join(" ")
}

/// The verdict of a row as it is shown.
struct VerdictText {
    name: &'static str,
    /// The names of the checks that it depends on.
    checks: String,
}

fn answer(row: &MatrixRow) -> VerdictText {
    let (name, checks) = match row.answer {
        MatrixVerdict::Identical(checks) => ("identical", names(checks)),
        MatrixVerdict::Conditional(checks) => ("conditional", names(checks)),
        MatrixVerdict::Rewrite => ("rewrite", String::new()),
        MatrixVerdict::Unsafe(_) => ("unsafe", String::new()),
    };
    VerdictText { name, checks }
}

pub fn to_text() -> String {
    let mut rows = vec![["FROM", "TO", "VERDICT", "PAIR", "CHECKS"].map(str::to_owned).to_vec()];
    rows.extend(MATRIX.iter().map(|row| {
        let VerdictText { name: verdict, checks } = answer(row);
        vec![row.sources.join(" "), row.targets.join(" "), verdict.to_owned(), status(row), checks]
    }));
    let note = "\nPairs that no line names are unsafe: their families encode instructions differently.\n\
                `hotswap compat SOURCE TARGET` says more about one pair.\n";
    text::table(&rows) + note
}

pub fn to_json() -> Value {
    let pairs =
        MATRIX.iter().flat_map(|row| pairs_of(row).map(move |(source, target)| judged_pair_json(source, target, row)));
    let checks = Check::ALL.iter().map(|check| json!({ "name": check.name(), "meaning": check.meaning() }));
    json!({ "schema": 1, "checks": checks.collect::<Vec<_>>(), "pairs": pairs.collect::<Vec<_>>() })
}

fn judged_pair_json(source: &'static Processor, target: &'static Processor, row: &MatrixRow) -> Value {
    let verdict = pair_verdict(source, target);
    let why = match &verdict {
        Verdict::Refused { why } => Some(why.as_str()),
        _ => None,
    };
    json!({
        "source": source.name,
        "target": target.name,
        "verdict": verdict_name(&verdict),
        "why": why,
        "checks": verdict.checks().unwrap_or_default().iter().map(|check| check.name()).collect::<Vec<_>>(),
        "evidence": row.evidence,
        "pair": find_pair(source, target).map(|pair| pair_json(&pair)),
    })
}

/// The sign of a pair in a grid.
fn sign(source: &Processor, target: &Processor) -> String {
    if source.name == target.name {
        return String::new();
    }
    match (pair_verdict(source, target), find_pair(source, target).map(|pair| pair.status)) {
        (Verdict::Identical { checks }, _) => format!("**=**{}", checks_footnote_mark(checks)),
        (Verdict::Conditional { .. }, Some(PairStatus::Validated)) => "**v**".to_owned(),
        (Verdict::Conditional { .. }, _) => "e".to_owned(),
        (Verdict::Rewrite, _) => "**r**".to_owned(),
        (Verdict::Refused { .. }, _) => ".".to_owned(),
    }
}

fn checks_footnote_mark(checks: &[Check]) -> &str {
    if checks.is_empty() { "" } else { "\\*" }
}

/// A table row; bars in cells are escaped.
fn cells(cells: &[&str]) -> String {
    format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
}

fn head(titles: &[&str]) -> String {
    cells(titles) + &cells(&vec!["---"; titles.len()])
}

fn grid(families: &[IsaFamily]) -> String {
    let columns: Vec<&Processor> = PROCESSORS
        .iter()
        .filter(|processor: &&Processor| families.contains(&processor.family) && !processor.withdrawn)
        .collect();
    let titles: Vec<String> = columns.iter().map(|column| short_processor_name(column)).collect();
    let titles: Vec<&str> = std::iter::once("gfx").chain(titles.iter().map(String::as_str)).collect();
    let mut text = head(&titles);
    for row in columns.iter().filter(|row| !row.is_generic()) {
        let signs: Vec<String> = columns.iter().map(|column| sign(row, column)).collect();
        let first = short_processor_name(row);
        text += &cells(&std::iter::once(first.as_str()).chain(signs.iter().map(String::as_str)).collect::<Vec<_>>());
    }
    text
}

fn short_processor_name(processor: &Processor) -> String {
    processor.name.trim_start_matches("gfx").to_owned()
}

fn rows() -> String {
    let mut text = head(&["from", "to", "verdict", "pair", "checks, or why not", "evidence"]);
    for row in MATRIX {
        let VerdictText { name: verdict, checks } = answer(row);
        let why = if let MatrixVerdict::Unsafe(why) = row.answer { why.to_owned() } else { checks };
        text += &cells(&[&row.sources.join(", "), &row.targets.join(", "), verdict, &status(row), &why, row.evidence]);
    }
    text
}

fn features() -> String {
    let mut text = head(&["features of LLVM 23", "who has them", "what it is"]);
    for Feature { names, processors, what, .. } in FEATURES {
        text += &cells(&[&names.join(", "), &processors.join(", "), what]);
    }
    text
}

pub fn to_markdown() -> String {
    let mut text = format!("{INTRODUCTION}\n{LEGEND}");
    for FamilyGrid { title, families } in GRIDS {
        let _ = write!(text, "\n## {title}\n\n{}", grid(families));
    }
    let _ = write!(text, "\n## Checks\n\n{}", head(&["check", "the question to a code object"]));
    for check in Check::ALL {
        text += &cells(&[check.name(), check.meaning()]);
    }
    let _ = write!(
        text,
        "\n## Why\n\nOne line for each group of pairs with the same verdict for the same reason.\n\n{}",
        rows()
    );
    let between = "What not all members of a family have. Instructions matter where the source has them and the target has \
                   not, hazards where the target has them and the source has not.";
    let _ = write!(text, "\n## Differences within the families\n\n{between}\n\n{}", features());
    text
}
