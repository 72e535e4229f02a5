//! `hotswap lint`: whether code objects follow the rules of their target.
//!
//! A file is a code object or contains some; each is checked for the target in its own header. JSON: `{schema: 1,
//! files: [{file, objects: [{place, target, findings: [{rule, section, function, offset, mnemonic, reason,
//! line}], judged: [rule], not_judged: [{rule, reason}], rejected: [{section, function, offset, mnemonic, form, accepted_by,
//! rejected_by}]}]}]}`, where `rejected` has the instructions that one version of LLVM accepts and a newer one rejects.
//!
//! Absent on purpose: the rules (`hotswap-lint`).

use crate::args::{Files, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::work::code_objects::{
    code_objects, finding_json, in_place, pass_over_unknown, rejected_json, rejected_text,
};
use crate::work::text;
use clap::Args;
use hotswap_lint::{LintReport, LintRule, RULES, RuleJudgment, rule_judgments};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::Path;

/// The arguments of `hotswap lint`.
#[derive(Debug, Args)]
pub(crate) struct LintArguments {
    #[command(flatten)]
    files: Files,
    /// Fail (HS0455) where a rule, or one of `all`, cannot be judged for a target
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule_name)]
    require: Vec<String>,
}

/// The word for every rule.
const ALL_RULES: &str = "all";

fn rule_name(text: &str) -> Result<String, String> {
    match text == ALL_RULES || names_without_original().any(|name| name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("rules are {ALL_RULES}, {}", names_without_original().collect::<Vec<_>>().join(", "))),
    }
}

fn names_without_original() -> impl Iterator<Item = &'static str> {
    RULES.iter().filter(|rule| !rule.needs_original).map(|rule| rule.id)
}

pub(crate) fn run(arguments: &LintArguments) -> Result<CommandOutcome, Diagnostic> {
    let LintArguments { files, require } = arguments;
    run_files(files, require)
}

fn run_files(arguments: &Files, require: &[String]) -> Result<CommandOutcome, Diagnostic> {
    let mut outcome = CommandOutcome::default();
    let mut files = Vec::new();
    for file in &arguments.files {
        let LintedFile { objects, problems } = judged(file);
        if arguments.output.format == OutputFormat::Text {
            outcome.text.extend(objects.iter().map(|object| object.text(file)));
        }
        let told: Vec<Value> = objects.iter().map(LintedObject::json).collect();
        let problems_json: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
        files.push(json!({ "file": file.display().to_string(), "objects": told, "problems": problems_json }));
        outcome.problems.extend(objects.iter().flat_map(|object| object.problems(file)));
        outcome.problems.extend(objects.iter().flat_map(|object| object.unjudged(file, require)));
        outcome.problems.extend(problems);
    }
    if arguments.output.format == OutputFormat::Json {
        outcome.text = text::json(&json!({ "schema": 1, "files": files }));
    }
    Ok(outcome)
}

/// A code object and its findings.
struct LintedObject {
    /// Container and entry; empty for a file that is one code object.
    place: String,
    target: String,
    report: LintReport,
}

/// The code objects of a file.
struct LintedFile {
    objects: Vec<LintedObject>,
    /// The problems of reading it.
    problems: Vec<Diagnostic>,
}

fn judged(file: &Path) -> LintedFile {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    match code_objects(file, |one, other, third| {
        lint_found_object(one, other, third, &mut objects, &mut problems, file)
    }) {
        Ok(unread) => problems.extend(unread),
        Err(error) => problems.push(error.in_file(file)),
    }
    pass_over_unknown(&mut problems, !objects.is_empty());
    LintedFile { objects, problems }
}

fn lint_found_object(
    place: &str,
    target: &str,
    data: &[u8],
    objects: &mut Vec<LintedObject>,
    problems: &mut Vec<Diagnostic>,
    file: &Path,
) {
    match hotswap_lint::report_object(data) {
        Ok(report) => objects.push(LintedObject { place: place.to_owned(), target: target.to_owned(), report }),
        Err(error) => problems.push(in_place(error.in_file(file), place)),
    }
}

/// A rule that is not judged.
struct UnjudgedRule {
    rule: &'static LintRule,
    why: String,
}

impl LintedObject {
    fn problems(&self, file: &Path) -> impl Iterator<Item = Diagnostic> {
        self.report.findings.iter().map(move |finding| in_place(finding.to_diagnostic().in_file(file), &self.place))
    }

    /// The rules that are not judged for the target.
    fn not_judged(&self) -> Vec<UnjudgedRule> {
        // The name of the processor, without features.
        let processor = self.target.split(':').next().unwrap_or_default();
        let judgments = rule_judgments(processor).into_iter();
        judgments
            .filter_map(|(rule, judgment)| match judgment {
                RuleJudgment::NotJudged(why) => Some(UnjudgedRule { rule, why }),
                RuleJudgment::Judged | RuleJudgment::NotConcerned => None,
            })
            .collect()
    }

    /// Rules that must be judged and are not.
    fn unjudged<'o>(&'o self, file: &'o Path, require: &'o [String]) -> impl Iterator<Item = Diagnostic> + 'o {
        let rules = self.not_judged().into_iter().filter(move |one| is_required_rule(one.rule, require));
        rules.map(move |UnjudgedRule { rule, why }| {
            let what = format!("`{}` for {}: {why}", rule.id, self.target);
            in_place(Diagnostic::error(codes::NOT_JUDGED, what).in_file(file), &self.place)
        })
    }

    fn text(&self, file: &Path) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(": {}", self.place) };
        let found = match self.report.findings.len() {
            0 => "no findings".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let name = text::plain(&format!("{}{place}", file.display()));
        let mut text = format!("{name}: {}, {found}\n", text::plain(&self.target));
        for UnjudgedRule { rule, why } in self.not_judged() {
            text += &format!("  not judged: {} ({why})\n", rule.id);
        }
        text + &rejected_text(&self.report.rejected)
    }

    fn json(&self) -> Value {
        let findings: Vec<Value> = self.report.findings.iter().map(finding_json).collect();
        let unjudged = self.not_judged();
        let not_judged: Vec<Value> =
            unjudged.iter().map(|one| json!({ "rule": one.rule.id, "reason": one.why })).collect();
        let processor = self.target.split(':').next().unwrap_or_default();
        let judged = rule_judgments(processor).into_iter().filter(|(_, judgment)| *judgment == RuleJudgment::Judged);
        let judged: Vec<&str> = judged.map(|(rule, _)| rule.id).collect();
        json!({
            "place": self.place, "target": self.target, "findings": findings, "judged": judged,
            "not_judged": not_judged, "rejected": rejected_json(&self.report.rejected),
        })
    }
}

fn is_required_rule(rule: &LintRule, require: &[String]) -> bool {
    require.iter().any(|name| name == ALL_RULES || name == rule.id)
}
