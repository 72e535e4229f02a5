//! `hotswap verify`: whether HIP, comgr and LLVM can read the contents of a file.
//!
//! Each container is read and unpacked once: its record, hashes and targets, the layout of a bundle (entry IDs, duplicate, empty
//! and overlapping entries, alignment, the length of the entry table), its kernels. It also checks whether the plans
//! that manifests name were carried out ([`hotswap_file_reports::kept_plans`]), whether required GPUs are served ([`RequiredGpus`]), and the way
//! that HIP takes in a linked program: wrappers, their pointers, the containers and kernels that they lead to
//! (`hotswap-load-model`).

mod against;

use crate::args::{Files, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::work::inventory::LookProgress;
use crate::work::text;
use clap::Args;
use hotswap_bundle::{FoundContainer, FoundContents, open_with};
use hotswap_families::manifest::RECORD_SECTIONS;
use hotswap_file_edit::container_groups::GroupReading;
use hotswap_file_edit::{memory_budget, thread_count};
use hotswap_file_reports::kept_plans::PlanEvidence;
use hotswap_file_reports::provenance::read_manifests;
use hotswap_file_reports::required_gpus::{RequiredGpus, RequiredReport};
use hotswap_files::{InputFile, MemoryLender};
use hotswap_load_model::acceptance::{self, ContainerJudgement};
use hotswap_load_model::{LoadFailure, LoadableContainer, Registration};
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, Severity, codes};
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
/// Bytes of unpacked containers that one thread has at once at most, unless one container has more: six of the size that
/// most code of libraries has, 64 MB.
const UNPACKED_TOGETHER: u64 = 384 << 20;
/// Their memory, a piece for each thread.
static UNPACKED: MemoryLender = MemoryLender::new(UNPACKED_TOGETHER as usize);
/// Bytes of shorter files that one thread reads together, and their number where the system has enough descriptors.
const BYTES_TOGETHER: u64 = LARGE_FILE;
const FILES_TOGETHER: usize = 64;

/// The result for each file.
fn check_files(files: &[PathBuf], required: &RequiredGpus) -> Vec<FileCheck> {
    let sizes: Vec<Option<u64>> = files.iter().map(|file| short_size(file)).collect();
    let progress = LookProgress::new(sizes.iter().flatten().sum());
    let batches = short_batches(files, &sizes);
    let mut beside = hotswap_files::on_all_cores(batches.len(), |number| {
        check_batch(&batches[number], required, FileReading::Beside(&progress))
    })
    .into_iter()
    .flatten();
    let long: Vec<&Path> =
        files.iter().zip(&sizes).filter(|(_, size)| size.is_none()).map(|(file, _)| &**file).collect();
    let mut alone = long.chunks(files_together()).flat_map(|files| check_batch(files, required, FileReading::Alone));
    let checked = sizes.iter().map(|size| if size.is_some() { beside.next() } else { alone.next() });
    checked.flatten().collect()
}

/// The size of a file that is checked beside others; none for a long one, and for one that has no size.
fn short_size(file: &Path) -> Option<u64> {
    let size = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?.len();
    (size < LARGE_FILE).then_some(size)
}

/// The short files in their order, as many in a batch as one thread reads together.
fn short_batches<'f>(files: &'f [PathBuf], sizes: &[Option<u64>]) -> Vec<Vec<&'f Path>> {
    let mut batches: Vec<Vec<&Path>> = Vec::new();
    let count = files_together();
    let mut bytes = 0;
    for (file, size) in files.iter().zip(sizes) {
        let Some(size) = size else { continue };
        match batches.last_mut() {
            Some(batch) if batch.len() < count && bytes + size <= BYTES_TOGETHER => batch.push(file),
            _ => {
                batches.push(vec![file]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    batches
}

/// The number of files that each thread has open: a quarter of the descriptors is enough for all threads.
fn files_together() -> usize {
    (hotswap_files::descriptor_limit() / 4 / thread_count(None)).clamp(1, FILES_TOGETHER)
}

/// How a file is read.
#[derive(Clone, Copy)]
enum FileReading<'p> {
    /// Its containers, and those of other long files, are read by all threads.
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

/// The result for each of some files.
fn check_batch(files: &[&Path], required: &RequiredGpus, reading: FileReading<'_>) -> Vec<FileCheck> {
    let opened: Vec<Result<InputFile, Diagnostic>> = files.iter().map(|file| open_finished(file)).collect();
    let contents = opened.iter().map(|bytes| bytes.as_ref().ok().map(|bytes| open_with(bytes, RECORD_SECTIONS)));
    let contents: Vec<Option<FoundContents>> = contents.collect();
    let charged: Vec<ChargedContainer> = contents.iter().flatten().flat_map(charge_containers).collect();
    let files_read: Vec<&InputFile> = opened.iter().flatten().collect();
    let mut judged = judge_charged(&charged, &files_read, reading).into_iter();
    let mut checked = Vec::with_capacity(files.len());
    for ((file, opened), contents) in files.iter().zip(&opened).zip(&contents) {
        checked.push(match (opened, contents) {
            (Ok(bytes), Some(contents)) => {
                let judged = judged.by_ref().take(contents.found.len()).collect();
                check_file(file, bytes, contents, judged, required)
            }
            (Err(error), _) => FileCheck::failed(error.clone()),
            (Ok(_), None) => unreachable!("each file that was opened was searched"),
        });
    }
    checked
}

fn open_finished(file: &Path) -> Result<InputFile, Diagnostic> {
    hotswap_files::check_finished(file)?;
    hotswap_files::open_or_stdin(file)
}

fn check_file(
    file: &Path,
    bytes: &[u8],
    contents: &FoundContents<'_>,
    judged: Vec<ContainerJudgement>,
    required: &RequiredGpus,
) -> FileCheck {
    let mut problems = broken_plans(contents, &judged);
    problems.extend(judged.iter().flat_map(|container| container.faults.iter().cloned()));
    if !judged.iter().any(|container| container.has_known_code) {
        refuse_unknown(&mut problems);
    }
    problems.extend(contents.problems.iter().cloned());
    if contents.found.is_empty() && contents.sections.is_empty() && problems.is_empty() {
        problems.push(contents.missing_container());
    }
    let containers: Vec<LoadableContainer> = judged.into_iter().filter_map(|container| container.loadable).collect();
    problems.extend(way_of_hip(bytes, &containers));
    let mut required = (!required.is_empty()).then(|| required.check(contents));
    problems.extend(required.iter_mut().flat_map(|required| required.problems.drain(..)));
    let problems = problems.into_iter().map(|problem| problem.in_file(file)).collect();
    FileCheck { containers: contents.found.len(), problems, required }
}

/// A container, and why it must not be unpacked.
struct ChargedContainer<'f, 'b> {
    found: &'f FoundContainer<'b>,
    refused: Option<Diagnostic>,
}

/// The containers of a file, as many as the limit of decompressed bytes allows.
fn charge_containers<'f, 'b>(contents: &'f FoundContents<'b>) -> Vec<ChargedContainer<'f, 'b>> {
    let mut charge = Charge::default();
    let charged = contents.found.iter().map(|found| {
        let refused = charge.add(found.bytes.len(), found.expands_to()).err();
        ChargedContainer { found, refused }
    });
    charged.collect()
}

/// Reads each container once.
fn judge_charged(
    containers: &[ChargedContainer<'_, '_>],
    files: &[&InputFile],
    reading: FileReading<'_>,
) -> Vec<ContainerJudgement> {
    let allowed = containers.iter().filter(|one| one.refused.is_none());
    let allowed: Vec<&FoundContainer> = allowed.map(|one| one.found).collect();
    let judged = match reading {
        FileReading::Alone => {
            let progress = LookProgress::new(packed_size(&allowed));
            read_groups(&allowed, files, thread_count(None), &progress)
        }
        FileReading::Beside(progress) => read_groups(&allowed, files, 1, progress),
    };
    let mut judged = judged.into_iter();
    let all = containers.iter().map(|one| match &one.refused {
        Some(error) => unread_container(error.clone(), one.found),
        None => judged.next().unwrap_or_default(),
    });
    all.collect()
}

/// Reads containers by some threads; their pages of the files are given back.
fn read_groups(
    containers: &[&FoundContainer<'_>],
    files: &[&InputFile],
    readers: usize,
    progress: &LookProgress,
) -> Vec<ContainerJudgement> {
    // Also where files are read beside others, there are that many threads.
    let share = memory_budget::for_reading().share_of(thread_count(None));
    let reading = GroupReading { threads: readers, group_bytes: share.min(UNPACKED_TOGETHER) };
    reading.read_all(containers, &|group| {
        let judged = acceptance::judge_containers(group, Some(&UNPACKED));
        for container in group {
            files.iter().for_each(|file| file.release(container.bytes));
        }
        progress.advance(packed_size(group));
        judged
    })
}

fn packed_size(containers: &[&FoundContainer<'_>]) -> u64 {
    containers.iter().map(|container| container.bytes.len() as u64).sum()
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
    let manifests = read_manifests(contents, &mut problems);
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
