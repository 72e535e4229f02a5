//! `hotswap verify`: whether HIP, comgr and LLVM can read the contents of a file.
//!
//! Each container is read and unpacked once: its record, hashes and targets, the layout of a bundle (entry IDs, duplicate, empty
//! and overlapping entries, alignment, the length of the entry table), its kernels. It also checks whether the plans
//! that manifests name were carried out ([`crate::work::kept_plans`]), whether required GPUs are served ([`require`]), and the way
//! that HIP takes in a linked program: wrappers, their pointers, the containers and kernels that they lead to
//! (`hotswap-load-model`).

mod against;
mod require;

use crate::args::{Files, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::work::containers::threads;
use crate::work::each_container::each_container;
use crate::work::inventory::LookProgress;
use crate::work::kept_plans::PlanEvidence;
use crate::work::{memory_budget, provenance, text};
use clap::Args;
use hotswap_bundle::{FoundContainer, FoundContents};
use hotswap_families::manifest::RECORD_SECTIONS;
use hotswap_load_model::acceptance::{self, ContainerJudgement};
use hotswap_load_model::{LoadFailure, LoadableContainer, Registration};
use hotswap_report::limit::Charge;
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

pub(crate) fn run(arguments: &VerifyArguments) -> Result<CommandOutcome, Diagnostic> {
    let files = &arguments.files;
    match (&arguments.against, &files.files[..]) {
        (None, _) => Ok(check(files, &RequiredGpus::parse(&arguments.require)?)),
        (Some(original), [rewritten]) => against::run(original, rewritten, files.output.format),
        (Some(_), _) => Err(Diagnostic::error(codes::USAGE, "--against takes one original and one rewritten file")),
    }
}

/// Checks the files; what is told of them is in their order.
fn check(arguments: &Files, required: &RequiredGpus) -> CommandOutcome {
    let mut outcome = CommandOutcome::default();
    let mut files = Vec::new();
    for (file, checked) in arguments.files.iter().zip(check_files(&arguments.files, required)) {
        let FileCheck { containers: count, problems, required } = checked;
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

/// Files that are shorter are checked side by side, and each by one thread; the containers of a longer one are.
const LARGE_FILE: u64 = 64 << 20;

/// The result for each file.
fn check_files(files: &[PathBuf], required: &RequiredGpus) -> Vec<FileCheck> {
    let sizes: Vec<Option<u64>> = files.iter().map(|file| short_size(file)).collect();
    let progress = LookProgress::new(sizes.iter().flatten().sum());
    let short: Vec<&PathBuf> = files.iter().zip(&sizes).filter_map(|(file, size)| size.map(|_| file)).collect();
    let mut beside = hotswap_files::on_all_cores(short.len(), |number| {
        verify(short[number], required, FileReading::Beside(&progress)).unwrap_or_else(FileCheck::failed)
    })
    .into_iter();
    let mut checked = Vec::with_capacity(files.len());
    for (file, size) in files.iter().zip(sizes) {
        checked.push(match size.and_then(|_| beside.next()) {
            Some(one) => one,
            None => verify(file, required, FileReading::Alone).unwrap_or_else(FileCheck::failed),
        });
    }
    checked
}

/// The size of a file that is checked beside others; none for a long one, and for one that has no size.
fn short_size(file: &Path) -> Option<u64> {
    let size = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?.len();
    (size < LARGE_FILE).then_some(size)
}

/// How a file is read.
#[derive(Clone, Copy)]
enum FileReading<'p> {
    /// Its containers are read by all threads.
    Alone,
    /// By one thread, beside other files; their progress is shared.
    Beside(&'p LookProgress),
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

fn verify(file: &Path, required: &RequiredGpus, reading: FileReading<'_>) -> Result<FileCheck, Diagnostic> {
    hotswap_files::check_finished(file)?;
    let bytes = hotswap_files::open_or_stdin(file)?;
    let contents = hotswap_bundle::open_with(&bytes, RECORD_SECTIONS);
    let judged = judge_containers(&contents.found, reading);
    let mut problems = broken_plans(&contents, &judged);
    problems.extend(judged.iter().flat_map(|container| container.faults.iter().cloned()));
    if !judged.iter().any(|container| container.has_known_code) {
        refuse_unknown(&mut problems);
    }
    problems.extend(contents.problems.iter().cloned());
    if contents.found.is_empty() && contents.sections.is_empty() && problems.is_empty() {
        problems.push(contents.missing_container());
    }
    let containers: Vec<LoadableContainer> = judged.into_iter().filter_map(|container| container.loadable).collect();
    problems.extend(way_of_hip(&bytes, &containers));
    let mut required = (!required.is_empty()).then(|| required.check(&contents));
    problems.extend(required.iter_mut().flat_map(|required| required.problems.drain(..)));
    let problems = problems.into_iter().map(|problem| problem.in_file(file)).collect();
    Ok(FileCheck { containers: contents.found.len(), problems, required })
}

/// Reads each container once, as many as the limit of decompressed bytes allows.
fn judge_containers(found: &[FoundContainer<'_>], reading: FileReading<'_>) -> Vec<ContainerJudgement> {
    let mut charge = Charge::default();
    let charged = found.iter().map(|container| charge.add(container.bytes.len(), container.expands_to()));
    let refused: Vec<Option<Diagnostic>> = charged.map(Result::err).collect();
    match reading {
        FileReading::Alone => {
            let progress = LookProgress::new(found.iter().map(|container| container.bytes.len() as u64).sum());
            each_container(found, threads(None), &|number, container| {
                let judged = judge_charged(container, &refused[number]);
                progress.advance(container.bytes.len() as u64);
                judged
            })
        }
        FileReading::Beside(progress) => {
            let judged = found.iter().enumerate().map(|(number, container)| {
                // All of it: other files have memory besides.
                let _taken = memory_budget::shared().take(container.plain_size());
                judge_charged(container, &refused[number])
            });
            let judged = judged.collect();
            progress.advance(found.iter().map(|container| container.bytes.len() as u64).sum());
            judged
        }
    }
}

/// `refused`: why it must not be unpacked.
fn judge_charged(container: &FoundContainer<'_>, refused: &Option<Diagnostic>) -> ContainerJudgement {
    match refused {
        Some(error) => unread_container(error.clone(), container),
        None => acceptance::judge_container(container),
    }
}

/// Where no code of a file is known, passing over is not a verdict.
fn refuse_unknown(problems: &mut [Diagnostic]) {
    for problem in problems.iter_mut().filter(|problem| problem.code == codes::UNKNOWN_MACHINE) {
        problem.severity = Severity::Error;
    }
}

fn unread_container(error: Diagnostic, container: &FoundContainer<'_>) -> ContainerJudgement {
    let faults = vec![error.in_entry(container.place.to_string())];
    ContainerJudgement { faults, ..ContainerJudgement::default() }
}

/// The plans of manifests that were not carried out. Code that was not read is not missing.
fn broken_plans(contents: &FoundContents<'_>, judged: &[ContainerJudgement]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let manifests = provenance::manifests(contents, &mut problems);
    let is_whole = judged.iter().all(|container| container.loadable.is_some())
        && contents.problems.iter().all(|problem| problem.severity != Severity::Error);
    if is_whole {
        let records = judged.iter().filter_map(|container| container.record.as_ref()).collect();
        let targets = judged.iter().flat_map(|container| &container.targets).map(String::as_str).collect();
        problems.extend(PlanEvidence { records, targets }.check(&manifests));
    }
    problems
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
