//! `hotswap inspect`: the provenance of device code, checked against the records.
//!
//! Absent on purpose: the checks, which `hotswap verify` needs as well ([`crate::work::provenance`]).

use crate::args::{Look, OutputFormat};
use crate::outcome::Outcome;
use crate::work::provenance::{self, FileReport};
use crate::work::text;
use hotswap_report::Diagnostic;
use serde_json::json;

pub(crate) fn run(arguments: &Look) -> Result<Outcome, Diagnostic> {
    let mut outcome = Outcome::default();
    let mut files = Vec::new();
    for file in &arguments.files.files {
        let report = hotswap_files::open_or_stdin(file)
            .map(|bytes| provenance::inspect(file, &bytes, arguments.depth(), &mut outcome.problems));
        match report {
            Ok(report) => files.push(report),
            Err(error) => outcome.problems.push(error),
        }
    }
    outcome.text = match arguments.files.output.format {
        OutputFormat::Json => {
            text::json(&json!({ "schema": 1, "files": files.iter().map(FileReport::json).collect::<Vec<_>>() }))
        }
        OutputFormat::Text => files.iter().map(FileReport::text).collect(),
    };
    Ok(outcome)
}
