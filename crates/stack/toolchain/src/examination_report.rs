//! The report of the examination, for people and for programs.

use crate::part_report::{PartReport, PartState};
use crate::parts::ToolchainPart;
use hotswap_report::text;
use serde_json::{Value, json};

/// For people: a table, then one paragraph for each part that something is to be said about.
pub fn to_text(reports: &[PartReport]) -> String {
    let mut rows = vec![["PART", "STATE", "VERSION", "TARGETS", "PATH"].map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(row));
    let mut out = text::table(&rows);
    for report in reports {
        let lines = lines(report);
        if !lines.is_empty() {
            out += &format!("\n{}:\n", report.part.name);
            lines.iter().for_each(|line| out += &format!("  {}\n", text::plain(line)));
        }
    }
    out += &format!("\n{}\n", verdict(reports));
    out
}

fn row(report: &PartReport) -> Vec<String> {
    let targets = (!report.targets.is_empty()).then(|| report.targets.len().to_string());
    vec![
        report.part.name.to_owned(),
        state(report).to_owned(),
        shown_or_dash(report.version.clone()),
        shown_or_dash(targets),
        shown_or_dash(report.path.as_ref().map(|path| path.display().to_string())),
    ]
}

fn shown_or_dash(value: Option<String>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| text::plain(&value))
}

/// Facts, and for a part that is not there the packages that have it.
fn lines(report: &PartReport) -> Vec<String> {
    let mut lines = report.notes.clone();
    if matches!(report.state, PartState::Missing | PartState::Unusable) {
        let ToolchainPart { purpose, debian, fedora, nix, .. } = report.part;
        lines.push(format!("needed for {purpose}"));
        lines.push(format!("packages: {debian} (Debian), {fedora} (Fedora), {nix} (Nix)"));
    }
    lines
}

fn state(report: &PartReport) -> &'static str {
    match (report.state, report.part.is_required) {
        (PartState::Good, _) => "good",
        (PartState::Missing, true) => "missing",
        (PartState::Missing, false) => "absent",
        (PartState::Unusable, _) => "unusable",
        (PartState::NotExamined, _) => "not examined",
        (PartState::Unread, _) => "unread",
    }
}

/// The required parts that are not good.
pub fn lacking_parts(reports: &[PartReport]) -> Vec<&'static str> {
    let bad = reports.iter().filter(|report| report.part.is_required && report.state != PartState::Good);
    bad.map(|report| report.part.name).collect()
}

fn verdict(reports: &[PartReport]) -> String {
    let unread: Vec<_> = reports.iter().filter(|report| report.state == PartState::Unread).collect();
    if !unread.is_empty() {
        let names: Vec<_> = unread.iter().map(|report| report.part.name).collect();
        return format!("What could not be read is neither good nor missing: {}.", names.join(", "));
    }
    let lacking = lacking_parts(reports);
    if lacking.is_empty() {
        return "HIP programs can be built through HotSwap here.".to_owned();
    }
    format!("HIP programs cannot be built through HotSwap here: {}.", lacking.join(", "))
}

/// The reports as the JSON document for programs.
pub fn to_json(reports: &[PartReport]) -> Value {
    let parts: Vec<Value> = reports.iter().map(part_json).collect();
    json!({ "schema": 1, "usable": lacking_parts(reports).is_empty(), "parts": parts })
}

fn part_json(report: &PartReport) -> Value {
    let part = report.part;
    json!({
        "part": part.name,
        "required": part.is_required,
        "purpose": part.purpose,
        "state": state(report),
        "version": report.version,
        "path": report.path.as_ref().map(|path| path.display().to_string()),
        "targets": report.targets,
        "notes": report.notes,
        "packages": { "debian": part.debian, "fedora": part.fedora, "nix": part.nix },
    })
}
