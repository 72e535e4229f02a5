//! Every row of the hazard table that `hotswap lint` judges has a planted fault that it finds, and nothing is found where the
//! fault is mended. The table of `docs/evidence/verification.md` says which rows are judged.
//!
//! `rows/ROW.s`, or `rows/ROW.CASE.s`, is code for gfx1250-strict. A comment `//fixed: INSTRUCTION` is what the mended
//! code has in place of its line. With `HOTSWAP_BLESS=1` the table of the page is written.

use hotswap_hazards::distance::{DISTANCES, MATRIX_DISTANCES};
use hotswap_isa::Target;
use hotswap_lint::{LintRule, RowJudgment, RuleJudgment, lint_object, row_judgments, rule_judgments};
use hotswap_rewrite_exam::assembly::{Kernel, assemble_for};
use hotswap_rewrite_exam::compile::TARGET;
use hotswap_targets::PROCESSORS;
use hotswap_userland::{Workbench, blesses, cases_in, say};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A planted fault of a row.
struct PlantedFault {
    row: String,
    kernel: String,
    code: String,
}

fn planted() -> Vec<PlantedFault> {
    let cases = cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rows"), "s");
    let fault = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let row = name.split('.').next().unwrap().to_owned();
        PlantedFault { row, kernel: name.replace(['-', '.'], "_"), code: fs::read_to_string(path).unwrap() }
    };
    cases.iter().map(fault).collect()
}

impl PlantedFault {
    /// The code with the fault, or mended.
    fn kernel(&self, is_mended: bool) -> Kernel {
        let line = |line: &str| match line.split_once("//fixed: ") {
            Some((_, mended)) if is_mended => format!("\t{mended}\n"),
            Some((wrong, _)) => format!("{wrong}\n"),
            None => format!("{line}\n"),
        };
        let code: String = self.code.lines().map(line).collect();
        Kernel { name: self.kernel.clone(), code: format!("{}:\n{code}\ts_endpgm\n", self.kernel) }
    }
}

/// Functions with findings, each with the rule.
fn found(bench: &Workbench, faults: &[PlantedFault], is_mended: bool) -> BTreeSet<(String, &'static str)> {
    let kernels: Vec<Kernel> = faults.iter().map(|fault| fault.kernel(is_mended)).collect();
    let [_, (_, made)] = assemble_for(bench, TARGET, "rows", &kernels);
    let findings = lint_object(&made).unwrap().into_iter();
    findings.map(|finding| (finding.function.unwrap_or_default(), finding.rule.id)).collect()
}

#[test]
fn every_judged_row_finds_its_planted_fault() {
    let Some(bench) = Workbench::with_llvm(24, "planted faults of hazard rows") else { return };
    let (rows, faults) = (row_judgments(TARGET), planted());
    let wrong = found(&bench, &faults, false);
    let mut problems: Vec<String> = Vec::new();
    for RowJudgment { row, rule, judgment, .. } in &rows {
        let own: Vec<&PlantedFault> = faults.iter().filter(|fault| fault.row == *row).collect();
        match judgment {
            RuleJudgment::Judged if own.is_empty() => problems.push(format!("{row}: no fault is planted")),
            RuleJudgment::Judged => {
                let missed = own.iter().filter(|fault| !wrong.contains(&(fault.kernel.clone(), rule.id)));
                problems.extend(missed.map(|fault| format!("{}: not found by {}", fault.kernel, rule.id)));
            }
            _ if !own.is_empty() => problems.push(format!("{row}: a fault is planted, and the row is not judged")),
            _ => {}
        }
    }
    let strays = faults.iter().filter(|fault| !rows.iter().any(|row| row.row == fault.row));
    problems.extend(strays.map(|fault| format!("{}: the table has no such row", fault.row)));
    problems.extend(found(&bench, &faults, true).into_iter().map(|(kernel, rule)| format!("{kernel}: mended, {rule}")));
    say(&format!("planted faults of hazard rows: {} of {} rows", faults.len(), rows.len()));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Targets with the same judgments.
struct JudgedTargets {
    targets: Vec<&'static str>,
    rules: Vec<(&'static LintRule, RuleJudgment)>,
}

/// All targets whose code is read, by their judgments.
fn judged_targets() -> Vec<JudgedTargets> {
    let mut all: Vec<JudgedTargets> = Vec::new();
    for processor in PROCESSORS.iter().filter(|processor| !processor.withdrawn) {
        let rules = rule_judgments(processor.name);
        match all.iter_mut().find(|column| column.rules == rules) {
            _ if rules.is_empty() => {}
            Some(column) => column.targets.push(processor.name),
            None => all.push(JudgedTargets { targets: vec![processor.name], rules }),
        }
    }
    all
}

fn cell(judgment: &RuleJudgment) -> &'static str {
    match judgment {
        RuleJudgment::Judged => "judged",
        RuleJudgment::NotConcerned => "–",
        RuleJudgment::NotJudged(_) => "**not judged**",
    }
}

/// The targets of each column, and the reasons for what is not judged.
fn legend(columns: &[JudgedTargets]) -> String {
    let mut text = "\n| column | targets |\n|---|---|\n".to_owned();
    for JudgedTargets { targets, .. } in columns {
        text += &format!("| {} | {} |\n", targets[0], targets.join(", "));
    }
    text += "\n| rule | column | not judged, because |\n|---|---|---|\n";
    for JudgedTargets { targets, rules } in columns {
        for (rule, judgment) in rules {
            if let RuleJudgment::NotJudged(reason) = judgment {
                text += &format!("| `{}` | {} | {reason} |\n", rule.id, targets[0]);
            }
        }
    }
    text
}

/// The rules by target, and the rows of the hazard table for gfx1250 and its first stepping.
fn table() -> String {
    let columns = judged_targets();
    let heads: Vec<&str> = columns.iter().map(|column| column.targets[0]).collect();
    let mut text = format!("| rule | {} |\n|---{}|\n", heads.join(" | "), "|---".repeat(heads.len()));
    for (number, (rule, _)) in columns[0].rules.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| cell(&column.rules[number].1)).collect();
        text += &format!("| `{}` | {} |\n", rule.id, cells.join(" | "));
    }
    text += &legend(&columns);
    text += "\n| row of the hazard table | requirement | gfx1250 | gfx1250-strict | rule |\n|---|---|---|---|---|\n";
    let (second, rules) = (row_judgments("gfx1250"), rule_judgments("gfx1250"));
    for RowJudgment { row, requirement, rule, judgment } in row_judgments(TARGET) {
        let of_rule = rules.iter().find(|(other, _)| *other == rule).map_or("–", |(_, judgment)| cell(judgment));
        let other = second.iter().find(|one| one.row == row).map_or(of_rule, |one| cell(&one.judgment));
        text += &format!("| `{row}` | {requirement} | {other} | {} | `{}` |\n", cell(&judgment), rule.id);
    }
    text + &distance_table()
}

/// The rows of the table of distances.
fn distance_table() -> String {
    let mut text = "\n| row of the table of distances | wait states | targets |\n|---|---|---|\n".to_owned();
    for rule in DISTANCES.iter().chain(MATRIX_DISTANCES) {
        let targets: Vec<&str> = rule.targets.iter().map(|target| target.processor()).collect();
        text += &format!("| `{}` | {} | {} |\n", rule.name, rule.wait_states, targets.join(", "));
    }
    text
}

#[test]
fn the_page_says_what_is_judged_for_each_target_and_row() {
    let judged: Vec<&str> = judged_targets().into_iter().flat_map(|column| column.targets).collect();
    let unread: Vec<&str> =
        PROCESSORS.iter().map(|processor| processor.name).filter(|name| !judged.contains(name)).collect();
    assert!(unread.iter().all(|name| Target::find(name).is_none()), "{unread:?}");
    const MARKS: [&str; 2] = ["<!-- judged: begin -->\n", "<!-- judged: end -->\n"];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence/verification.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).expect("the page has the marks of the table");
    let (_, after) = rest.split_once(MARKS[1]).expect("the page has the marks of the table");
    let expected = format!("{before}{}{}{}{after}", MARKS[0], table(), MARKS[1]);
    if blesses() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(expected == page || blesses(), "docs/evidence/verification.md is old: HOTSWAP_BLESS=1 writes its table");
}
