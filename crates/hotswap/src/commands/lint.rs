//! `hotswap lint`: whether code objects follow the rules of their target.
//!
//! A file is a code object or contains some; each is checked for the target in its own header. JSON: `{schema: 1,
//! files: [{file, objects: [{place, target, findings: [{rule, section, function, offset, mnemonic, reason,
//! line}]}]}]}`.
//!
//! Absent on purpose: the rules (`hotswap-lint`).

use crate::args::{Files, OutputFormat};
use crate::outcome::Outcome;
use crate::work::code_objects::{code_objects, finding_json, in_place};
use crate::work::text;
use hotswap_lint::Finding;
use hotswap_report::Diagnostic;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(arguments: &Files) -> Result<Outcome, Diagnostic> {
    let mut outcome = Outcome::default();
    let mut files = Vec::new();
    for file in &arguments.files {
        let (objects, problems) = judged(file);
        if arguments.output.format == OutputFormat::Text {
            outcome.text.extend(objects.iter().map(|object| object.text(file)));
        }
        let told: Vec<Value> = objects.iter().map(LintedObject::json).collect();
        let problems_json: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
        files.push(json!({ "file": file.display().to_string(), "objects": told, "problems": problems_json }));
        outcome.problems.extend(objects.iter().flat_map(|object| object.problems(file)));
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
    findings: Vec<Finding>,
}

/// The code objects of a file, and the problems of reading it.
fn judged(file: &Path) -> (Vec<LintedObject>, Vec<Diagnostic>) {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    let each = |place: &str, target: &str, data: &[u8]| match hotswap_lint::lint(data) {
        Ok(findings) => objects.push(LintedObject { place: place.to_owned(), target: target.to_owned(), findings }),
        Err(error) => problems.push(in_place(error.in_file(file), place)),
    };
    match code_objects(file, each) {
        Ok(unread) => problems.extend(unread),
        Err(error) => problems.push(error.in_file(file)),
    }
    (objects, problems)
}

impl LintedObject {
    fn problems(&self, file: &Path) -> impl Iterator<Item = Diagnostic> {
        self.findings.iter().map(move |finding| in_place(finding.diagnostic().in_file(file), &self.place))
    }

    fn text(&self, file: &Path) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(": {}", self.place) };
        let found = match self.findings.len() {
            0 => "no findings".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let name = text::plain(&format!("{}{place}", file.display()));
        format!("{name}: {}, {found}\n", text::plain(&self.target))
    }

    fn json(&self) -> Value {
        let findings: Vec<Value> = self.findings.iter().map(finding_json).collect();
        json!({ "place": self.place, "target": self.target, "findings": findings })
    }
}
