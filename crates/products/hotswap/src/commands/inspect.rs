//! `hotswap inspect`: the provenance of device code, checked against the records.
//!
//! Absent on purpose: the checks, which `hotswap verify` needs as well ([`crate::work::provenance`]).

use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::inventory::{InventoryDepth, LookProgress};
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_families::manifest::RECORD_SECTIONS;
use hotswap_file_reports::provenance::{FileReport, inspect_contents};
use hotswap_file_reports::statements::{self, NamedReport};
use hotswap_report::Diagnostic;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// Programs, libraries, objects, archives, fat binaries or code objects; `-` is standard input
    #[arg(value_parser = input_file(), required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: InspectFormat,
    /// Decompress large containers, too, to count kernels, tell kinds and check hashes
    #[arg(long)]
    kernels: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum InspectFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// A bill of materials, SPDX 2.3: which code object is in which file, and which was made from which, by which rule
    Spdx,
    /// in-toto statements with SLSA provenance, a line for each code object that HotSwap made
    Intoto,
}

impl InspectArguments {
    fn depth(&self) -> InventoryDepth {
        // A statement names hashes, so everything is read for it.
        let all = self.kernels || matches!(self.format, InspectFormat::Spdx | InspectFormat::Intoto);
        if all { InventoryDepth::Images } else { InventoryDepth::Tables }
    }
}

pub(crate) fn run(arguments: &InspectArguments) -> Result<CommandOutcome, Diagnostic> {
    let mut outcome = CommandOutcome::default();
    let mut files = Vec::new();
    for file in &arguments.files {
        let report = hotswap_files::open_or_stdin(file).map(|bytes| {
            let contents = hotswap_bundle::open_with(&bytes, RECORD_SECTIONS);
            let progress = LookProgress::of_contents(&contents);
            let report = inspect_contents(file, &contents, arguments.depth(), &|bytes| progress.advance(bytes));
            outcome.problems.extend(report.problems.iter().cloned());
            InspectedFile { report, sha256: hotswap_stack::hash::sha256_of(&bytes) }
        });
        match report {
            Ok(report) => files.push(report),
            Err(error) => outcome.problems.push(error),
        }
    }
    outcome.text = match arguments.format {
        InspectFormat::Json => {
            let files: Vec<_> = files.iter().map(|file| file.report.to_json()).collect();
            text::json(&json!({ "schema": 1, "files": files }))
        }
        InspectFormat::Text => files.iter().map(|file| file.report.to_text()).collect(),
        InspectFormat::Spdx => text::json(&statements::spdx(&named_reports(&files))),
        InspectFormat::Intoto => statements::intoto(&named_reports(&files)),
    };
    Ok(outcome)
}

struct InspectedFile {
    report: FileReport,
    sha256: String,
}

fn named_reports(files: &[InspectedFile]) -> Vec<NamedReport<'_>> {
    files.iter().map(|file| NamedReport { json: file.report.to_json(), sha256: &file.sha256 }).collect()
}
