//! `hotswap verify`: whether HIP, comgr and LLVM can read the contents of a file.
//!
//! In addition to the checks of `inspect` (records, hashes, targets), it checks the layout of each bundle: entry IDs,
//! duplicate, empty and overlapping entries, alignment, the length of the entry table. It also checks whether the plans
//! that manifests name were carried out ([`crate::work::kept_plans`]), whether required GPUs are served ([`require`]), and the way
//! that HIP takes in a linked program: wrappers, their pointers, the containers and kernels that they lead to
//! (`hotswap-load-model`).

mod against;
mod offload;
mod require;

use crate::args::{Files, OutputFormat};
use crate::outcome::Outcome;
use crate::work::inventory::Depth;
use crate::work::{provenance, text};
use clap::Args;
use hotswap_bundle::{
    ALIGNMENT, Bundle, BundleEntry, EntryId, FoundContainer, HashState, ImageKind, OffloadKind, TABLE_LIMIT,
    parse_lenient,
};
use hotswap_load_model::{LoadFailure, LoadableContainer, ReadDepth, Registration};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
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
        problems.extend(checks.into_iter().chain(offload::check_images(found)).map(named));
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

/// Checks of the entry IDs as a set.
fn identities(entries: &[BundleEntry<'_>]) -> Vec<Diagnostic> {
    let ids: Vec<EntryId> = entries.iter().filter_map(|entry| EntryId::parse(&entry.id).ok()).collect();
    let mut problems = Vec::new();
    if !ids.iter().any(|id| *id.kind() == OffloadKind::Host) {
        let warning = Diagnostic::warning(codes::MALFORMED, "it has no entry for the host");
        problems
            .push(warning.advise("clang-offload-bundler 22 crashes on such a bundle; bundle with an empty host file"));
    }
    for id in &ids {
        match id.kind() {
            OffloadKind::Other(word) => {
                let what = format!("`{word}` is no kind of entry that HIP looks at");
                problems.push(Diagnostic::warning(codes::MALFORMED, what).in_entry(id.as_str()));
            }
            OffloadKind::Hip | OffloadKind::HipV4 if id.target().is_none() => {
                problems.push(malformed("the ID names no target").in_entry(id.as_str()));
            }
            _ => {}
        }
    }
    let targets: Vec<TargetId> = ids.iter().filter_map(|id| id.target()?.parse().ok()).collect();
    let mixed = |states: fn(&TargetId) -> bool| {
        let some = targets.iter().filter(|target| states(target));
        some.map(|target| target.processor).find(|one| targets.iter().any(|id| id.processor == *one && !states(id)))
    };
    let xnack = mixed(|target| target.xnack.is_some()).map(|processor| (processor, "xnack"));
    let sramecc = mixed(|target| target.sramecc.is_some()).map(|processor| (processor, "sramecc"));
    problems.extend(xnack.into_iter().chain(sramecc).map(|(processor, feature)| {
        let what = format!("{} is listed with and without {feature}", processor.name);
        malformed(what).advise("name the feature in all entries of that processor or in none, as clang demands")
    }));
    problems
}

/// The checks of a bundle's layout, and the container as HIP sees it. Damage that keeps it from being read has been reported
/// already.
fn layout(found: &FoundContainer<'_>) -> (Vec<Diagnostic>, Option<LoadableContainer>) {
    let Ok((bundle, _)) = parse_lenient(found.bytes) else {
        return (Vec::new(), LoadableContainer::read(found, ReadDepth::Kernels).ok());
    };
    let entries = bundle.entries().iter().map(|entry| (entry.id.as_str(), &entry.data[..]));
    let loadable = LoadableContainer::of_entries(found, entries);
    (check_bundle(&bundle), Some(loadable))
}

fn check_bundle(bundle: &Bundle<'_>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    if bundle.hash() == HashState::Wrong {
        problems.push(malformed("the hash in its header is not that of its content"));
    }
    let table: u64 = 32 + bundle.entries().iter().map(|entry| 24 + entry.id.len() as u64).sum::<u64>();
    if bundle.compression().is_none() && table > TABLE_LIMIT {
        problems.push(Diagnostic::error(codes::BUNDLE_FULL, format!("its table has {table} bytes")));
    }
    let entries = bundle.entries();
    problems.extend(identities(entries));
    for (number, entry) in entries.iter().enumerate() {
        let mut wrong = |problem: Diagnostic| problems.push(problem.in_entry(&entry.id));
        let kind = match EntryId::parse(&entry.id) {
            Ok(id) => Some(id.kind().clone()),
            Err(error) => {
                wrong(error);
                None
            }
        };
        if entries[..number].iter().any(|other| other.id == entry.id) {
            wrong(malformed("the ID is there twice"));
        }
        if entry.data.is_empty() && kind.is_some_and(|kind| kind != OffloadKind::Host) {
            wrong(malformed("the entry is empty"));
        }
        let range = |data: &[u8]| (data.as_ptr() as usize, data.as_ptr() as usize + data.len());
        let (start, end) = range(&entry.data);
        let overlaps = |other: &&hotswap_bundle::BundleEntry<'_>| {
            let (from, to) = range(&other.data);
            start < to && from < end && (start, end) != (from, to)
        };
        if let Some(other) = entries[..number].iter().find(overlaps) {
            wrong(malformed(format!("the entry overlaps with {}", other.id)));
        }
    }
    // HIP maps code objects from the file; what it decompresses, and what is linked first, is somewhere else then.
    let is_mapped = bundle.compression().is_none()
        && entries.iter().any(|entry| ImageKind::of(&entry.data) == ImageKind::CodeObject);
    if bundle.alignment() < ALIGNMENT && is_mapped {
        let what = format!("its entries are aligned to {} bytes; HIP expects {ALIGNMENT}", bundle.alignment());
        let warning = Diagnostic::warning(codes::MALFORMED, what);
        problems.push(warning.advise("bundle with -bundle-align=4096, or change it with `hotswap`"));
    }
    problems
}
