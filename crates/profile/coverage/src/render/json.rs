//! For programs: everything in the report.

use crate::ratio::Ratio;
use crate::union::{CoverageReport, FileCoverage, FunctionCoverage, Totals};
use serde_json::{Map, Value, json};

/// The report as JSON. Targets are in the order of `targets`; `null` is code that a target does not have, or
/// of which it lacks a profile (`lacks_data`).
#[must_use]
pub fn json(report: &CoverageReport) -> Value {
    json!({
        "targets": report.targets,
        "totals": totals(&report.union),
        "by_target": report.known_totals().iter().map(|own| own.as_ref().map(totals)).collect::<Vec<_>>(),
        "lacks_data": report.lacks_data,
        "directories": report.directories().into_iter().map(|(name, union)| json!({ "name": name, "totals": totals(&union) }))
            .collect::<Vec<_>>(),
        "files": report.files.iter().map(file).collect::<Vec<_>>(),
        "functions": report.functions.iter().map(|one| function(report, one)).collect::<Vec<_>>(),
    })
}

fn ratio(ratio: Ratio) -> Value {
    json!({ "covered": ratio.covered, "count": ratio.count })
}

fn totals(totals: &Totals) -> Value {
    Value::Object(totals.rows().into_iter().map(|(name, one)| (name.to_owned(), ratio(one))).collect::<Map<_, _>>())
}

fn file(file: &FileCoverage) -> Value {
    json!({
        "name": file.name,
        "totals": totals(&file.union),
        "by_target": file.by_target.iter().map(|own| own.as_ref().map(totals)).collect::<Vec<_>>(),
        "lacks_data": file.lacks_data,
        "lines": file.lines.iter().map(|(line, counts)| json!({ "line": line, "counts": counts })).collect::<Vec<_>>(),
    })
}

fn function(report: &CoverageReport, function: &FunctionCoverage) -> Value {
    json!({
        "name": function.name,
        "demangled": super::demangled(&function.name),
        "file": report.files[function.file].name,
        "line": function.line,
        "counts": function.counts,
        "lacks_data": function.lacks_data,
        "regions": ratio(function.regions),
        "regions_by_target": function.regions_by_target.iter().map(|own| own.map(ratio)).collect::<Vec<_>>(),
    })
}
