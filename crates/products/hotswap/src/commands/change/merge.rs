//! `hotswap merge` and `hotswap split`: one library of several that were built of one source for different GPUs, and the other way.
//!
//! Distributions that build for each GPU apart get the same host program each time, so its containers belong together by the
//! wrappers that register them.
//!
//! Packages and directories are merged file by file (`file_sets`), and split as `hotswap prune --keep` does it for each GPU.
//!
//! Invariants: host parts that differ in more than their fat binaries are refused ([`hotswap_load_model::host_comparison`]). What a
//! GPU loads from any of the files it loads from the result.

mod file_sets;

use super::kept_gpus::KeptGpus;
use super::told::ContainerOperation;
use super::{ChangePaths, CommonArguments, Prune, WantedName, prune};
use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::work::package_tree::FileSet;
use crate::work::terminal_progress::TerminalProgress;
use clap::Args;
use hotswap_bundle::{EntryId, FoundContainer, FoundContents};
use hotswap_file_edit::opened_container::{EntryChange, NewCode, OpenedContainer};
use hotswap_file_edit::{ContainerResult, FileJob, HandledFile, PACKED, new_file, thread_count};
use hotswap_files::{InputFile, Placement};
use hotswap_load_model::host_comparison::compare_hosts;
use hotswap_load_model::{FileUse, ReadDepth};
use hotswap_report::{Diagnostic, Record, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The place of the GPU in the name of an output of `split`.
const GPU: &str = "{gpu}";
/// The begin of the ID of the host's entry.
const HOST: &str = "host-";

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Programs or libraries of one source, each built for other GPUs; packages or directories of such files
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output file
    #[arg(short, value_name = "OUT", value_parser = output_file())]
    output: PathBuf,
    #[command(flatten)]
    format: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Split {
    /// Program, library, object, archive, fat binary, package or directory
    file: PathBuf,
    /// Output files; {gpu} is the place of the GPU's name, as in lib-{gpu}.so
    #[arg(short, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    format: OutputOptions,
}

/// An entry to add.
struct MergedEntry {
    id: String,
    code: NewCode,
}

/// A further file, and what the kept GPUs load from it.
struct MergedFile {
    answer: FileUse,
    /// Entries by the container of the first file.
    entries: Vec<Vec<MergedEntry>>,
    /// Warnings of entries that are left out.
    left_out: Vec<Diagnostic>,
}

/// The entries of one container.
#[derive(Default)]
struct ReadEntries {
    entries: Vec<MergedEntry>,
    /// IDs of those with content that is for no GPU and not the host's.
    others: Vec<String>,
}

pub(crate) fn merge(arguments: &Merge) -> Result<CommandOutcome, Diagnostic> {
    let [first, others @ ..] = &arguments.files[..] else {
        return Err(Diagnostic::error(codes::USAGE, "two files are needed"));
    };
    if let Some(form) = FileSet::of_path(first)? {
        return file_sets::merge_sets(arguments, form);
    }
    let paths = ChangePaths { file: first, output: &arguments.output, name: first };
    let (outcome, is_changed) = merge_files(&paths, others, arguments.format)?;
    Ok(if is_changed { outcome } else { outcome.note_unchanged(first, "it has the code of all of the files") })
}

/// Writes the first file with the code of the others; also returns whether that is another file than the first.
fn merge_files(
    paths: &ChangePaths<'_>,
    others: &[PathBuf],
    format: OutputOptions,
) -> Result<(CommandOutcome, bool), Diagnostic> {
    let input = hotswap_files::open_to_change(paths.file, paths.output)?;
    let base = FileUse::read(&input, &hotswap_bundle::find_containers(&input), ReadDepth::Kernels);
    let mut merged = Vec::new();
    for other in others {
        let bytes = hotswap_files::open_input(other)?;
        let mut file = MergedFile::read(&bytes, &input, &base).map_err(|error| error.in_file(other))?;
        file.left_out.iter_mut().for_each(|warning| *warning = warning.clone().in_file(paths.name));
        merged.push(file);
    }
    let other_names = new_file::warn_of_other_names(paths.file, paths.output, Placement::NewFile)?;
    let merge = MergedInput { input: &input, base: &base, merged: &merged };
    let (mut outcome, is_changed) = write(paths, format, &merge).map_err(|error| error.in_file(paths.name))?;
    outcome.problems.extend(merged.into_iter().flat_map(|file| file.left_out));
    outcome.problems.extend(other_names.filter(|_| is_changed));
    Ok((outcome, is_changed))
}

/// The first file, and what the others add to it.
struct MergedInput<'m> {
    input: &'m InputFile,
    base: &'m FileUse,
    merged: &'m [MergedFile],
}

fn write(
    paths: &ChangePaths<'_>,
    format: OutputOptions,
    merge: &MergedInput<'_>,
) -> Result<(CommandOutcome, bool), Diagnostic> {
    let progress = TerminalProgress::new("merge");
    let job = FileJob {
        input: merge.input,
        file: paths.file,
        output: paths.output,
        placement: Placement::NewFile,
        threads: thread_count(None),
        quarters: PACKED,
        streams: false,
        progress: &progress,
    };
    let work: HandledFile<'_, Vec<EntryChange>> = job.process(job.containers()?, &|number, found| {
        let mut container = OpenedContainer::read(found)?;
        let mut said = Vec::new();
        for entry in merge.merged.iter().flat_map(|file| &file.entries[number]) {
            said.extend(container.merge(&entry.id, &entry.code)?);
        }
        let (new, expected) = container.into_new()?;
        Ok(ContainerResult { new, expected, said })
    })?;
    let written = job.write_with(&work, &|new| {
        let mut answers = [merge.base].into_iter().chain(merge.merged.iter().map(|file| &file.answer));
        answers.try_for_each(|before| KeptGpus::AllBut(&[]).check(before, new))
    })?;
    let common = CommonArguments::of_output(paths.file, paths.output, format);
    let sizes = [merge.input.len() as u64, written.size];
    Ok((common.show(&work, paths.name, ContainerOperation::Put, sizes), written.is_changed))
}

impl MergedFile {
    fn read(bytes: &InputFile, first: &InputFile, base: &FileUse) -> Result<Self, Diagnostic> {
        let contents = hotswap_bundle::find_containers(bytes);
        let answer = FileUse::read(bytes, &contents, ReadDepth::Kernels);
        if let Some(problem) = answer.problems.first() {
            return Err(problem.clone());
        }
        let pairs = if is_lone_bundle(first) && is_lone_bundle(bytes) {
            vec![ContainerPair { own: 0, other: 0 }]
        } else {
            compare_hosts(first, bytes)?;
            paired_containers(base, &answer)?
        };
        let mut entries: Vec<Vec<MergedEntry>> = base.containers.iter().map(|_| Vec::new()).collect();
        let mut left_out = Vec::new();
        for pair in pairs {
            let read = read_entries(&contents, pair.other)?;
            let own = &base.containers[pair.own].entries;
            let others = read.others.into_iter().filter(|id| own.iter().all(|entry| entry.id != *id));
            left_out.extend(others.map(|id| left_out_warning(&id)));
            entries[pair.own] = read.entries;
        }
        Ok(Self { answer, entries, left_out })
    }
}

/// Whether the file is one bundle and nothing else, as data files of libraries are: such files have no host part.
fn is_lone_bundle(file: &InputFile) -> bool {
    let contents = hotswap_bundle::find_containers(file);
    matches!(&contents.found[..], [one] if one.form.is_bundle() && one.bytes.len() == file.len())
}

/// The indices of two containers that the same wrapper leads to.
struct ContainerPair {
    own: usize,
    other: usize,
}

fn paired_containers(base: &FileUse, other: &FileUse) -> Result<Vec<ContainerPair>, Diagnostic> {
    let (Some(own), Some(theirs)) = (&base.registration, &other.registration) else {
        return Err(merge_refusal(
            "no wrapper leads to its fat binaries, so nothing says which of them belong together",
        ));
    };
    if let Some(fault) = own.faults.iter().chain(&theirs.faults).find(|fault| fault.severity == Severity::Error) {
        return Err(fault.clone());
    }
    let pairs = own.wrappers.iter().zip(&theirs.wrappers).map(|(own, their)| {
        if own.kernels != their.kernels {
            return Err(merge_refusal("its constructors register other kernels"));
        }
        let containers = own.container.zip(their.container);
        containers
            .map(|(own, other)| ContainerPair { own, other })
            .ok_or_else(|| merge_refusal("a wrapper leads to code in a kernel archive"))
    });
    pairs.collect()
}

fn left_out_warning(id: &str) -> Diagnostic {
    let what = "the entry of another file is not code for a GPU, and is left out";
    Diagnostic::warning(codes::NO_PLACE, what).in_entry(id).advise("name the file with that entry first")
}

fn merge_refusal(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what)
}

/// The entries for GPUs of one container, with the records of how they were made.
fn read_entries(contents: &FoundContents<'_>, index: usize) -> Result<ReadEntries, Diagnostic> {
    let found = contents.found.get(index).ok_or_else(|| Diagnostic::error(codes::INTERNAL, "a container is gone"))?;
    let device = found.read()?;
    let made: Option<Record> = device.record.as_deref().map(hotswap_file_edit::record_of_file).transpose()?;
    let mut read = ReadEntries::default();
    for image in device.images.into_iter().filter(|image| !image.data.is_empty()) {
        let Some(id) = image.id else { continue };
        if EntryId::parse(&id).is_ok_and(|id| id.target().is_some()) {
            let code = NewCode::of_entry(image.data.to_vec(), made.clone());
            read.entries.push(MergedEntry { id, code });
        } else if !id.starts_with(HOST) {
            read.others.push(id);
        }
    }
    Ok(read)
}

pub(crate) fn split(arguments: &Split) -> Result<CommandOutcome, Diagnostic> {
    let pattern = arguments.output.to_string_lossy().into_owned();
    if !pattern.contains(GPU) {
        let error = Diagnostic::error(codes::USAGE, format!("`{pattern}` has no {GPU}, the place of the GPU's name"));
        return Err(error.advise("name the outputs as in -o lib-{gpu}.so"));
    }
    if let Some(form) = FileSet::of_path(&arguments.file)? {
        return split_set(arguments, form);
    }
    let input = hotswap_files::open_input(&arguments.file)?;
    let targets = targets_of_file(&hotswap_bundle::find_containers(&input).found)?;
    if targets.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no container has code for a GPU").in_file(&arguments.file));
    }
    let mut outcome = CommandOutcome::default();
    for name in targets {
        let target: TargetId = name.parse()?;
        let output = arguments.output_for(&name);
        let common = CommonArguments::of_output(&arguments.file, &output, arguments.format);
        let wanted = [WantedName::new(&name)];
        let kept = [target];
        let paths = ChangePaths { file: &arguments.file, output: &output, name: &output };
        let (one, _) = common.apply_to(
            &paths,
            ContainerOperation::Remove,
            &|one| split_off_entries(one, &wanted, &kept),
            &wanted,
            KeptGpus::Named(&kept),
        )?;
        outcome.text += &one.text;
        outcome.problems.extend(one.problems);
    }
    Ok(outcome)
}

impl Split {
    fn output_for(&self, gpu: &str) -> PathBuf {
        PathBuf::from(self.output.to_string_lossy().replace(GPU, &gpu.replace(':', "-")))
    }
}

/// Prunes a package or directory once for each GPU that has code or data files in it.
fn split_set(arguments: &Split, form: FileSet) -> Result<CommandOutcome, Diagnostic> {
    let gpus = file_sets::gpus_of_set(&arguments.file, form)?;
    if gpus.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no file has code for a GPU").in_file(&arguments.file));
    }
    let mut outcome = CommandOutcome::default();
    for gpu in gpus {
        let common = CommonArguments::of_output(&arguments.file, &arguments.output_for(&gpu), arguments.format);
        let one = prune(&Prune { common, keep: vec![gpu], drop: Vec::new() })?;
        outcome.text += &one.text;
        outcome.problems.extend(one.problems);
    }
    Ok(outcome)
}

fn split_off_entries(
    container: &mut OpenedContainer<'_>,
    wanted: &[WantedName<'_>; 1],
    kept: &[TargetId; 1],
) -> Result<Vec<EntryChange>, Diagnostic> {
    wanted.iter().for_each(|wanted| wanted.see(container.serves(wanted.name)));
    Ok(container.prune(kept, true))
}

/// The targets of all containers.
fn targets_of_file(found: &[FoundContainer<'_>]) -> Result<BTreeSet<String>, Diagnostic> {
    let mut targets = BTreeSet::new();
    for container in found {
        targets.extend(hotswap_stack::targets_of(container)?.iter().map(TargetId::to_string));
    }
    Ok(targets)
}
