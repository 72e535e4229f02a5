//! `hotswap merge` and `hotswap split`: one library of several that were built of one source for different GPUs, and the other way.
//!
//! Distributions that build for each GPU apart get the same host program each time, so its containers belong together by the
//! wrappers that register them.
//!
//! Invariants: host parts that differ in more than their fat binaries are refused ([`hotswap_load_model::host_comparison`]). What a
//! GPU loads from any of the files it loads from the result.

use super::kept_gpus::KeptGpus;
use super::open::{EntryChange, NewCode, OpenedContainer};
use super::told::ContainerOperation;
use super::{ChangePaths, CommonArguments, WantedName, record};
use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::work::containers::{ContainerResult, FileJob, HandledFile, PACKED, threads};
use clap::Args;
use hotswap_bundle::{EntryId, FoundContainer, FoundContents};
use hotswap_files::{InputFile, Placement};
use hotswap_load_model::host_comparison::compare_hosts;
use hotswap_load_model::{FileUse, ReadDepth};
use hotswap_report::{Diagnostic, Record, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The place of the GPU in the name of an output of `split`.
const GPU: &str = "{gpu}";

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Programs or libraries of one source, each built for other GPUs
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
    /// Program, library, object, archive or fat binary
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
}

pub(crate) fn merge(arguments: &Merge) -> Result<CommandOutcome, Diagnostic> {
    let [first, others @ ..] = &arguments.files[..] else {
        return Err(Diagnostic::error(codes::USAGE, "two files are needed"));
    };
    let input = hotswap_files::open_to_change(first, &arguments.output)?;
    let base = FileUse::read(&input, &hotswap_bundle::find_containers(&input), ReadDepth::Kernels);
    let read = |other: &PathBuf| {
        let bytes = hotswap_files::open_input(other)?;
        MergedFile::read(&bytes, &input, &base).map_err(|error| error.in_file(other))
    };
    let merged = others.iter().map(read).collect::<Result<Vec<_>, Diagnostic>>()?;
    write(arguments, first, &input, &base, &merged).map_err(|error| error.in_file(first))
}

fn write(
    arguments: &Merge,
    first: &Path,
    input: &InputFile,
    base: &FileUse,
    merged: &[MergedFile],
) -> Result<CommandOutcome, Diagnostic> {
    let job = FileJob {
        input,
        file: first,
        output: &arguments.output,
        placement: Placement::NewFile,
        threads: threads(None),
        verb: "merge",
        quarters: PACKED,
        streams: false,
        is_quiet: false,
    };
    let work: HandledFile<'_, Vec<EntryChange>> = job.work(job.containers()?, &|number, found| {
        let mut container = OpenedContainer::read(found)?;
        let mut said = Vec::new();
        for entry in merged.iter().flat_map(|file| &file.entries[number]) {
            said.extend(container.merge(&entry.id, &entry.code)?);
        }
        let (new, expected) = container.into_new()?;
        Ok(ContainerResult { new, expected, said })
    })?;
    let written = job.write_with(&work, &|new| {
        let mut answers = [base].into_iter().chain(merged.iter().map(|file| &file.answer));
        answers.try_for_each(|before| KeptGpus::AllBut(&[]).check(before, new))
    })?;
    let common = CommonArguments::of_output(first, &arguments.output, arguments.format);
    let outcome = common.show(&work, first, ContainerOperation::Put, [input.len() as u64, written.size]);
    Ok(if written.is_changed { outcome } else { outcome.note_unchanged(first, "it has the code of all of the files") })
}

impl MergedFile {
    fn read(bytes: &InputFile, first: &InputFile, base: &FileUse) -> Result<Self, Diagnostic> {
        compare_hosts(first, bytes)?;
        let contents = hotswap_bundle::find_containers(bytes);
        let answer = FileUse::read(bytes, &contents, ReadDepth::Kernels);
        if let Some(problem) = answer.problems.first() {
            return Err(problem.clone());
        }
        let mut entries: Vec<Vec<MergedEntry>> = base.containers.iter().map(|_| Vec::new()).collect();
        for pair in paired_containers(base, &answer)? {
            entries[pair.own] = read_entries(&contents, pair.other)?;
        }
        Ok(Self { answer, entries })
    }
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
    if let Some(fault) = own.faults.iter().chain(&theirs.faults).next() {
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

fn merge_refusal(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what)
}

/// The entries for GPUs of one container, with the records of how they were made.
fn read_entries(contents: &FoundContents<'_>, index: usize) -> Result<Vec<MergedEntry>, Diagnostic> {
    let found = contents.found.get(index).ok_or_else(|| Diagnostic::error(codes::INTERNAL, "a container is gone"))?;
    let device = found.read()?;
    let made: Option<Record> = device.record.as_deref().map(record::of_file).transpose()?;
    let mut entries = Vec::new();
    for image in device.images.into_iter().filter(|image| !image.data.is_empty()) {
        let Some(id) = image.id.filter(|id| EntryId::parse(id).is_ok_and(|id| id.target().is_some())) else { continue };
        let code = NewCode::of_entry(image.data.to_vec(), made.clone());
        entries.push(MergedEntry { id, code });
    }
    Ok(entries)
}

pub(crate) fn split(arguments: &Split) -> Result<CommandOutcome, Diagnostic> {
    let pattern = arguments.output.to_string_lossy().into_owned();
    if !pattern.contains(GPU) {
        let error = Diagnostic::error(codes::USAGE, format!("`{pattern}` has no {GPU}, the place of the GPU's name"));
        return Err(error.advise("name the outputs as in -o lib-{gpu}.so"));
    }
    let input = hotswap_files::open_input(&arguments.file)?;
    let targets = targets_of_file(&hotswap_bundle::find_containers(&input).found)?;
    if targets.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no container has code for a GPU").in_file(&arguments.file));
    }
    let mut outcome = CommandOutcome::default();
    for name in targets {
        let target: TargetId = name.parse()?;
        let output = PathBuf::from(pattern.replace(GPU, &name.replace(':', "-")));
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
