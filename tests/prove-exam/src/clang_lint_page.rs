//! The page of `hotswap lint` on what compilers make (`docs/evidence/lint-of-compilers.md`), and the findings that are explained.

use crate::clang_lint::{LintSetting, LintTable, LintTally, SourceFinding};
use hotswap_lint::{RuleJudgment, rule_judgments};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Lint of what compilers make

For users of `hotswap lint`: its findings in code that compilers make, each of which is explained.

Written by `cargo xtask prove lint --page docs/evidence/lint-of-compilers.md --checkouts DIRECTORY`, where the directory has checkouts of
rocm-examples and HeCBench. For each target, clang 22, 23 and 24 compile HIP programs (of these projects, of the tests of emulated GPUs and
of the examples, at -O2, -O3 and -O0 in turn), and llc of the same version compiles LLVM 23's own tests of code generation; `hotswap lint`
judges each code object. Left out are tests whose functions name another processor, that run into `unreachable` (LLVM emits no
instruction for it), that use images on a target without, or that have a kernel without a name.
What a compiler does not compile for a target is replaced by the next program. A finding is a false alarm, or a
fault of the compiler's: the command fails for one that is not explained. What a column's rules do not judge is in
[verification.md](verification.md).
";

const COLUMNS: &str = "
| target | compiler | programs | LLVM's tests | not compiled | MB of code objects | findings | explained | not judged completely |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

/// The findings that are no failures.
pub const EXPLAINED: &str = include_str!("../clang.explained");

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExplainedFinding<'t> {
    /// A target, `*` for all.
    target: &'t str,
    /// Versions of the compiler, `*` for all.
    versions: &'t str,
    rule: &'t str,
    /// A part of the line about the finding.
    part: &'t str,
    pub why: &'t str,
}

impl<'t> ExplainedFinding<'t> {
    /// The lines of the list, without comments.
    ///
    /// # Errors
    /// A line without its five parts.
    pub fn read_all(text: &'t str) -> Result<Vec<Self>, String> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let explained = lines.map(|line| match line.split(" | ").collect::<Vec<_>>()[..] {
            [target, versions, rule, part, why] => Ok(Self { target, versions, rule, part, why }),
            _ => Err(format!("clang.explained: {line}")),
        });
        explained.collect()
    }

    fn explains(&self, setting: LintSetting, found: &SourceFinding) -> bool {
        self.is_of_setting(setting) && self.rule == found.finding.rule.id && finding_line(found).contains(self.part)
    }
}

impl ExplainedFinding<'_> {
    fn is_of_setting(&self, setting: LintSetting) -> bool {
        let version = setting.version.to_string();
        (self.target == "*" || self.target == setting.target)
            && (self.versions == "*" || self.versions.split(' ').any(|one| one == version))
    }

    /// Whether a run could have found it: a part that names a source needs that source.
    fn could_be_found(&self, table: &LintTable) -> bool {
        let names_source = Path::new(self.part).extension().is_some();
        let mut settings = table.iter().filter(|(setting, _)| self.is_of_setting(**setting));
        settings.any(|(_, tally)| !names_source || tally.sources.iter().any(|source| source.contains(self.part)))
    }
}

fn finding_line(found: &SourceFinding) -> String {
    format!("{}: {}", found.source, found.finding.to_diagnostic())
}

/// The findings without an explanation, objects that cannot be read, and explanations that are not needed.
#[must_use]
pub fn lint_problems(table: &LintTable, explained: &[ExplainedFinding<'_>], is_whole: bool) -> Vec<String> {
    let (mut problems, mut needed) = (Vec::new(), BTreeSet::new());
    for (setting, tally) in table {
        let LintSetting { target, version } = setting;
        problems.extend(tally.unread.iter().map(|line| format!("{target} clang {version}: {line}")));
        for found in &tally.findings {
            match explained.iter().find(|one| one.explains(*setting, found)) {
                Some(one) => {
                    needed.insert(*one);
                }
                None => problems.push(format!("{target} clang {version}: {}", finding_line(found))),
            }
        }
    }
    let needless = explained.iter().filter(|one| is_whole && !needed.contains(*one) && one.could_be_found(table));
    problems.extend(needless.map(|one| format!("clang.explained: nothing is found that this line explains: {one:?}")));
    problems
}

/// The page of a run.
#[must_use]
pub fn lint_page(table: &LintTable, explained: &[ExplainedFinding<'_>]) -> String {
    let mut text = format!("{HEAD}{COLUMNS}");
    for (setting, tally) in table {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", setting_row(*setting, tally, explained));
    }
    let mut by_target: BTreeMap<&str, usize> = BTreeMap::new();
    table.iter().for_each(|(setting, tally)| *by_target.entry(setting.target).or_default() += tally.programs);
    let fewest = by_target.values().min().copied().unwrap_or(0);
    let objects: usize = table.values().map(|tally| tally.programs + tally.tests).sum();
    let findings: usize = table.values().map(|tally| tally.findings.len()).sum();
    let _ = writeln!(text, "\n{objects} code objects, {fewest} programs or more for each target, {findings} findings.");
    text + &explanations(table, explained)
}

fn setting_row(setting: LintSetting, tally: &LintTally, explained: &[ExplainedFinding<'_>]) -> String {
    let is_explained = |found: &&SourceFinding| explained.iter().any(|one| one.explains(setting, found));
    let not_judged: Vec<String> = rule_judgments(setting.target)
        .into_iter()
        .filter(|(_, judgment)| matches!(judgment, RuleJudgment::NotJudged(_)))
        .map(|(rule, _)| format!("`{}`", rule.id))
        .collect();
    format!(
        "| {} | {} | {} | {} | {} | {:.1} | {} | {} | {} |",
        setting.target,
        setting.version,
        tally.programs,
        tally.tests,
        tally.not_compiled,
        tally.bytes as f64 / 1e6,
        tally.findings.len(),
        tally.findings.iter().filter(is_explained).count(),
        if not_judged.is_empty() { "–".to_owned() } else { not_judged.join(", ") }
    )
}

fn explanations(table: &LintTable, explained: &[ExplainedFinding<'_>]) -> String {
    let mut text =
        "\n| target | compiler | rule | finding | findings | why |\n| --- | --- | --- | --- | ---: | --- |\n"
            .to_owned();
    for one in explained {
        let own = table.iter().flat_map(|(setting, tally)| tally.findings.iter().map(move |found| (*setting, found)));
        let count = own.filter(|(setting, found)| one.explains(*setting, found)).count();
        let ExplainedFinding { target, versions, rule, part, why } = one;
        let _ = writeln!(text, "| {target} | {versions} | `{rule}` | `{part}` | {count} | {why} |");
    }
    if explained.is_empty() { String::new() } else { text }
}
