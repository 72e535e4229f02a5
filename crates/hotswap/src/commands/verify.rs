//! `hotswap verify`: whether HIP, comgr and LLVM can read the contents of a file.
//!
//! In addition to the checks of `inspect` (records, hashes, targets), it checks the layout of each bundle: entry IDs,
//! duplicate, empty and overlapping entries, alignment, the length of the entry table. It also checks whether the plans
//! that manifests name were carried out ([`crate::work::kept_plans`]), whether required GPUs are served ([`require`]), and the way
//! that HIP takes in a linked program: wrappers, their pointers, the containers and kernels that they lead to
//! (`hotswap-load-model`).

mod against;
mod require;

use crate::args::{Files, OutputFormat};
use crate::outcome::Outcome;
use crate::work::inventory::Depth;
use crate::work::{provenance, text};
use clap::Args;
use hotswap_bundle::{FoundContainer, parse_lenient};
use hotswap_load_model::{LoadFailure, LoadableContainer, ReadDepth, Registration, acceptance, offload_images};
use hotswap_report::{Diagnostic, Severity, codes};
use require::{RequiredGpus, RequiredReport};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The file from which FILE was made by `hotswap rewrite`: prove that the code of both does the same
    #[arg(long, value_name = "ORIGINAL")]
    against: Option<PathBuf>,
    /// Each fat binary of each FILE must have code that HIP loads on these GPUs, a generic target's included, with the
    /// kernels that its other GPUs have
    #[arg(long, value_name = "GPU", value_delimiter = ',', conflicts_with = "against")]
    require: Vec<String>,
    #[command(flatten)]
    files: Files,
}

pub(crate) fn run(arguments: &VerifyArguments) -> Result<Outcome, Diagnostic> {
    let files = &arguments.files;
    match (&arguments.against, &files.files[..]) {
        (None, _) => Ok(check(files, &RequiredGpus::parse(&arguments.require)?)),
        (Some(original), [rewritten]) => against::run(original, rewritten, files.output.format),
        (Some(_), _) => Err(Diagnostic::error(codes::USAGE, "--against takes one original and one rewritten file")),
    }
}

/// Checks the files one by one.
fn check(arguments: &Files, required: &RequiredGpus) -> Outcome {
    let mut outcome = Outcome::default();
    let mut files = Vec::new();
    for file in &arguments.files {
        let FileCheck { containers: count, problems, required } =
            verify(file, required).unwrap_or_else(FileCheck::failed);
        let is_good = problems.iter().all(|problem| problem.severity != Severity::Error);
        if arguments.output.format == OutputFormat::Text && (is_good || required.is_some()) {
            let containers = if count == 1 { "1 container" } else { &format!("{count} containers") };
            let verdict = if is_good { "verified" } else { "NOT VERIFIED" };
            outcome.text += &format!("{}: {containers}, {verdict}\n", text::plain(&file.display().to_string()));
            outcome.text += &required.as_ref().map_or_else(String::new, |required| required.text.clone());
        }
        let told: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
        let mut row =
            json!({ "file": file.display().to_string(), "containers": count, "verified": is_good, "problems": told });
        if let Some(required) = required {
            row["required"] = required.json;
        }
        files.push(row);
        outcome.problems.extend(problems);
    }
    if arguments.output.format == OutputFormat::Json {
        outcome.text = text::json(&json!({ "schema": 1, "files": files }));
    }
    outcome
}

/// The result for one file.
struct FileCheck {
    /// Number of its containers.
    containers: usize,
    problems: Vec<Diagnostic>,
    /// The comparison with the required GPUs, if there are any.
    required: Option<RequiredReport>,
}

impl FileCheck {
    fn failed(error: Diagnostic) -> Self {
        Self { containers: 0, problems: vec![error], required: None }
    }
}

fn verify(file: &Path, required: &RequiredGpus) -> Result<FileCheck, Diagnostic> {
    let bytes = hotswap_files::open_or_stdin(file)?;
    let contents = hotswap_bundle::open(&bytes);
    let report = provenance::inspect(file, &bytes, Depth::Images, &mut Vec::new());
    let plans = report.broken_plans().into_iter().map(|problem| problem.in_file(file));
    let mut problems: Vec<Diagnostic> = plans.collect();
    problems.extend(report.problems);
    let mut containers = Vec::new();
    for found in &contents.found {
        let place = found.place.to_string();
        let named = |mut problem: Diagnostic| {
            let entry = problem.place.entry.take();
            problem.in_entry(entry.map_or(place.clone(), |entry| format!("{place}: {entry}"))).in_file(file)
        };
        let (checks, loadable) = layout(found);
        problems.extend(checks.into_iter().chain(offload_images::check_images(found)).map(named));
        containers.extend(loadable);
    }
    problems.extend(way_of_hip(&bytes, &containers).into_iter().map(|problem| problem.in_file(file)));
    // `inspect` only warns about a wrong hash; here it is an error.
    problems.retain(|problem| !(problem.severity == Severity::Warning && problem.what.contains("hash in the header")));
    let mut required = (!required.is_empty()).then(|| required.check(&contents));
    let lacking = required.iter_mut().flat_map(|required| required.problems.drain(..));
    problems.extend(lacking.map(|problem| problem.in_file(file)));
    Ok(FileCheck { containers: contents.found.len(), problems, required })
}

/// Faults on the way from the host program to its containers, and containers that HIP cannot read.
fn way_of_hip(file: &[u8], containers: &[LoadableContainer]) -> Vec<Diagnostic> {
    let mut problems = match Registration::read(file, containers) {
        Ok(registration) => registration.map(|registration| registration.faults).unwrap_or_default(),
        Err(error) => vec![error],
    };
    for container in containers {
        if let Some(failure @ LoadFailure::CompressedVersion(_)) = container.unreadable() {
            let advice = "write it anew by `hotswap compress`, or by a compiler of LLVM 19 or later";
            problems.push(malformed(failure.to_string()).in_entry(&container.place).advise(advice));
        }
    }
    problems
}

fn malformed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what)
}

/// The checks of a bundle's layout, and the container as HIP sees it. Damage that keeps it from being read has been reported
/// already.
fn layout(found: &FoundContainer<'_>) -> (Vec<Diagnostic>, Option<LoadableContainer>) {
    let Ok((bundle, _)) = parse_lenient(found.bytes) else {
        return (Vec::new(), LoadableContainer::read(found, ReadDepth::Kernels).ok());
    };
    let entries = bundle.entries().iter().map(|entry| (entry.id.as_str(), &entry.data[..]));
    let loadable = LoadableContainer::of_entries(found, entries);
    (acceptance::bundle_faults(&bundle), Some(loadable))
}
