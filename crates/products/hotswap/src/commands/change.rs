//! `hotswap add`, `replace`, `remove`, `prune`, `compress` and `decompress`: changing the containers of
//! a file of any kind.
//!
//! Each command changes opened containers ([`OpenedContainer`]), several at a time, or leaves them unchanged. Changed
//! containers are written into the file by [`crate::work::containers`], which reads the result again. A record of HotSwap is
//! updated: the rows of removed entries are removed, and added code counts as compiled.
//!
//! `prune`, `compress` and `decompress` take packages and directories as well (`package`); the others refuse them by name.
//!
//! Invariants: a named entry that does not exist is an error, and so is a target that no entry serves; nothing is
//! written unless everything could be done, and no GPU that is kept loses code that HIP loads (`kept_gpus`).

mod merge;
mod package;
mod told;

use crate::args::{InPlaceOption, OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::{input_file, readable_file};
use crate::work::kept_gpus::{self, KeptGpus};
use crate::work::package_tree::FileSet;
use crate::work::terminal_progress::TerminalProgress;
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_bundle::{Compression, CompressionMethod, is_kernel_archive};
use hotswap_file_edit::opened_container::{EntryChange, NewCode, OpenedContainer};
use hotswap_file_edit::{ContainerResult, FileJob, HandledFile, READ, new_file, thread_count, unsuited};
use hotswap_load_model::{FileUse, ReadDepth};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use told::ContainerOperation;

pub(crate) use merge::{Merge, Split, merge, split};

/// File, output, and which container.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Program, library, object, archive or fat binary; `prune`, `compress` and `decompress` take packages and directories, too
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Output file; may be the input
    #[arg(short, value_name = "OUT", value_parser = output_file())]
    output: PathBuf,
    #[command(flatten)]
    in_place: InPlaceOption,
    /// Only the container with this number (1 is the first that `hotswap list` shows)
    #[arg(long, value_name = "N")]
    container: Option<usize>,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    format: OutputOptions,
}

/// `add` and `replace`.
#[derive(Debug, Args)]
pub(crate) struct Put {
    #[command(flatten)]
    common: CommonArguments,
    /// Entry ID or target ID, and the file with its code
    #[arg(required = true, value_name = "ENTRY=CODEOBJECT")]
    entries: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    common: CommonArguments,
    /// Entry IDs or target IDs
    #[arg(required = true, value_name = "ENTRY")]
    entries: Vec<String>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Prune {
    #[command(flatten)]
    common: CommonArguments,
    /// Keep code for these targets only; a name without features means all of its features
    #[arg(long, value_name = "TARGET", num_args = 1, value_delimiter = ',', group = "what")]
    keep: Vec<String>,
    /// Drop code for these targets
    #[arg(long, value_name = "TARGET", num_args = 1, value_delimiter = ',', group = "what")]
    drop: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Compress {
    #[command(flatten)]
    common: CommonArguments,
    /// Level [default: that of clang: 3 for zstd, 6 for zlib]
    #[arg(long)]
    level: Option<i32>,
    /// Method of compression
    #[arg(long, value_enum, default_value = "zstd")]
    method: MethodName,
    /// Version of the header; clang 22 and later write 3
    #[arg(long, value_name = "VERSION", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=3))]
    header: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MethodName {
    Zstd,
    Zlib,
}

/// The operation of a command on one container.
type ChangeStep<'s> = dyn Fn(&mut OpenedContainer<'_>) -> Result<Vec<EntryChange>, Diagnostic> + Sync + 's;

pub(crate) fn add(arguments: &Put) -> Result<CommandOutcome, Diagnostic> {
    arguments.common.refuse_packages()?;
    let new = arguments.read()?;
    arguments.common.apply(
        ContainerOperation::Put,
        &|container| new.iter().map(|one| container.add(&one.entry, &one.code)).collect(),
        &[],
        KeptGpus::AllBut(&[]),
    )
}

pub(crate) fn replace(arguments: &Put) -> Result<CommandOutcome, Diagnostic> {
    arguments.common.refuse_packages()?;
    let new = arguments.read()?;
    let step =
        |container: &mut OpenedContainer<'_>| new.iter().map(|one| container.replace(&one.entry, &one.code)).collect();
    arguments.common.apply(ContainerOperation::Put, &step, &[], KeptGpus::AllBut(&[]))
}

pub(crate) fn remove(arguments: &Remove) -> Result<CommandOutcome, Diagnostic> {
    arguments.common.refuse_packages()?;
    let wanted: Vec<_> = arguments.entries.iter().map(WantedName::new).collect();
    // An entry ID names its target, too.
    let dropped: Vec<TargetId> = arguments.entries.iter().filter_map(|name| kept_gpus::target_of(name)).collect();
    arguments.common.apply(
        ContainerOperation::Remove,
        &|container| Ok(remove_entries(container, &arguments.entries, &wanted)),
        &wanted,
        KeptGpus::AllBut(&dropped),
    )
}

fn remove_entries(
    container: &mut OpenedContainer<'_>,
    entries: &[String],
    wanted: &[WantedName<'_>],
) -> Vec<EntryChange> {
    wanted.iter().for_each(|wanted| wanted.see(container.had(wanted.name)));
    entries.iter().flat_map(|name| container.remove(name)).collect()
}

pub(crate) fn prune(arguments: &Prune) -> Result<CommandOutcome, Diagnostic> {
    let names = if arguments.keep.is_empty() { &arguments.drop } else { &arguments.keep };
    let targets: Vec<TargetId> = names.iter().map(|name| Ok(name.parse()?)).collect::<Result<_, Diagnostic>>()?;
    let keeps = !arguments.keep.is_empty();
    let wanted: Vec<_> = names.iter().map(WantedName::new).collect();
    let kept = if keeps { KeptGpus::Named(&targets) } else { KeptGpus::AllBut(&targets) };
    let pruning = package::Pruning {
        targets: &targets,
        keeps,
        step: &|container| {
            wanted.iter().for_each(|wanted| wanted.see(container.serves(wanted.name)));
            Ok(container.prune(&targets, keeps))
        },
        wanted: &wanted,
        kept,
    };
    match FileSet::of_path(&arguments.common.file)? {
        None => arguments.common.apply(ContainerOperation::Remove, pruning.step, &wanted, kept),
        Some(form) => package::prune(&arguments.common, form, &pruning),
    }
}

/// A file to change: its path, that of the result, and its name in messages.
struct ChangePaths<'p> {
    file: &'p Path,
    output: &'p Path,
    name: &'p Path,
}

/// A name that must occur in at least one container.
struct WantedName<'n> {
    name: &'n str,
    is_there: Mutex<bool>,
}

impl<'n> WantedName<'n> {
    fn new(name: &'n String) -> Self {
        Self { name, is_there: Mutex::new(false) }
    }

    fn see(&self, is_there: bool) {
        *self.is_there.lock().unwrap_or_else(PoisonError::into_inner) |= is_there;
    }

    fn check(&self) -> Result<(), Diagnostic> {
        if *self.is_there.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(());
        }
        Err(Diagnostic::error(codes::NO_ENTRY, format!("nothing is for `{}`", self.name)))
    }
}

pub(crate) fn compress(arguments: &Compress) -> Result<CommandOutcome, Diagnostic> {
    let (method, levels) = match arguments.method {
        MethodName::Zstd => (CompressionMethod::Zstd, 1..=22),
        MethodName::Zlib => (CompressionMethod::Zlib, 0..=9),
    };
    if let Some(level) = arguments.level.filter(|level| !levels.contains(level)) {
        let what = format!("level {level} is not one of {} to {}", levels.start(), levels.end());
        return Err(Diagnostic::error(codes::USAGE, what));
    }
    let how = Compression { version: arguments.header, method, level: arguments.level };
    arguments.common.apply_to_each(ContainerOperation::Compress, &|container| container.compress(Some(how)))
}

pub(crate) fn decompress(arguments: &CommonArguments) -> Result<CommandOutcome, Diagnostic> {
    arguments.apply_to_each(ContainerOperation::Decompress, &|container| container.compress(None))
}

/// The file of an entry, which may be a stream.
fn readable(file: &str) -> Result<PathBuf, Diagnostic> {
    readable_file(file.into())
}

/// The content of a file for an entry.
struct NamedCode {
    /// Entry ID or target ID, as the command has it.
    entry: String,
    code: NewCode,
}

impl Put {
    fn read(&self) -> Result<Vec<NamedCode>, Diagnostic> {
        let mut read = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let (name, file) =
                entry.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty()).ok_or_else(|| {
                    Diagnostic::error(codes::USAGE, format!("`{entry}` is not of the form ENTRY=CODEOBJECT"))
                })?;
            read.push(NamedCode { entry: name.to_owned(), code: NewCode::read(&readable(file)?)? });
        }
        Ok(read)
    }
}

impl CommonArguments {
    /// The arguments of a command that changes every container of a file.
    fn of_output(file: &Path, output: &Path, format: OutputOptions) -> Self {
        Self {
            file: file.to_owned(),
            output: output.to_owned(),
            in_place: InPlaceOption::default(),
            container: None,
            jobs: None,
            format,
        }
    }

    /// Commands that name entries concern one file: in others the same name is another entry.
    fn refuse_packages(&self) -> Result<(), Diagnostic> {
        if FileSet::of_path(&self.file)?.is_none() {
            return Ok(());
        }
        let what = "it is a package or directory, and the command is for the containers of one file";
        let error = Diagnostic::error(codes::USAGE, what).in_file(&self.file);
        Err(error.advise("`hotswap prune --keep` or `--drop` takes code of GPUs out of each of its files"))
    }

    /// As [`CommonArguments::apply`] for a change that no GPU loses code by: of a file, or of each file of a package or directory.
    fn apply_to_each(&self, verb: ContainerOperation, step: &ChangeStep<'_>) -> Result<CommandOutcome, Diagnostic> {
        match FileSet::of_path(&self.file)? {
            Some(form) => package::change_each(self, form, verb, step),
            None => self.apply(verb, step, &[], KeptGpus::AllBut(&[])),
        }
    }

    /// Writes nothing unless every requested name exists.
    fn apply(
        &self,
        verb: ContainerOperation,
        step: &ChangeStep<'_>,
        wanted: &[WantedName<'_>],
        kept: KeptGpus<'_>,
    ) -> Result<CommandOutcome, Diagnostic> {
        let at = ChangePaths { file: &self.file, output: &self.output, name: &self.file };
        let (outcome, is_changed) = self.apply_to(&at, verb, step, wanted, kept)?;
        Ok(if is_changed { outcome } else { outcome.note_unchanged(&self.file, "it is as requested already") })
    }

    /// As [`CommonArguments::apply`], for a file that messages call otherwise; also returns whether it changed.
    fn apply_to(
        &self,
        at: &ChangePaths<'_>,
        verb: ContainerOperation,
        step: &ChangeStep<'_>,
        wanted: &[WantedName<'_>],
        kept: KeptGpus<'_>,
    ) -> Result<(CommandOutcome, bool), Diagnostic> {
        let (file, output) = (at.file, at.output);
        let other_names = new_file::warn_of_other_names(file, output, self.in_place.placement())?;
        let input = hotswap_files::open_to_change(file, output)?;
        let threads = thread_count(self.jobs);
        let progress = TerminalProgress::new("change");
        let job = FileJob {
            input: &input,
            file,
            output,
            placement: self.in_place.placement(),
            threads,
            quarters: READ,
            streams: false,
            progress: &progress,
        };
        let found = job.containers().map_err(|error| error.in_file(at.name))?;
        if is_kernel_archive(&input) && matches!(verb, ContainerOperation::Compress | ContainerOperation::Decompress) {
            let what = "a kernel archive has one compression for all of its code, which HotSwap keeps";
            return Err(Diagnostic::error(codes::NO_PLACE, what).in_file(at.name));
        }
        self.check_number(found.len(), verb).map_err(|error| error.in_file(at.name))?;
        let work = job.process(found, &|number, found| {
            if self.container.is_some_and(|chosen| chosen != number + 1) {
                return Ok(ContainerResult { new: None, expected: None, said: Vec::new() });
            }
            let mut container = OpenedContainer::read(found)?;
            let said = step(&mut container)?;
            let (new, expected) = container.into_new()?;
            if new.is_some() && unsuited::is_fixed(found, &input) {
                return Err(unsuited::fixed_images_error());
            }
            Ok(ContainerResult { new, expected, said })
        });
        let work = work.map_err(|error| error.in_file(at.name))?;
        wanted.iter().try_for_each(WantedName::check)?;
        let before = FileUse::read(&input, &hotswap_bundle::find_containers(&input), ReadDepth::Headers);
        let written = job.write_with(&work, &|new| kept.check(&before, new).map_err(|error| error.in_file(at.name)))?;
        let mut outcome = self.show(&work, at.name, verb, [input.len() as u64, written.size]);
        outcome.problems.extend(other_names.filter(|_| written.is_changed));
        Ok((outcome, written.is_changed))
    }

    fn check_number(&self, count: usize, verb: ContainerOperation) -> Result<(), Diagnostic> {
        if let Some(number) = self.container.filter(|number| !(1..=count).contains(number)) {
            let what = format!("it has {count} containers and no number {number}");
            return Err(Diagnostic::error(codes::NO_ENTRY, what));
        }
        // New code is put into a single container.
        if verb == ContainerOperation::Put && count > 1 && self.container.is_none() {
            let what = format!("it has {count} containers");
            return Err(Diagnostic::error(codes::USAGE, what).advise("name one by --container"));
        }
        Ok(())
    }

    fn show(
        &self,
        work: &HandledFile<'_, Vec<EntryChange>>,
        name: &Path,
        verb: ContainerOperation,
        sizes: [u64; 2],
    ) -> CommandOutcome {
        let notice = told::notice(verb, work, sizes);
        let changes = work.done.iter().flat_map(|handled| {
            let place = handled.found.place.to_string();
            handled.said.iter().map(move |change| (place.clone(), change))
        });
        if self.format.format == OutputFormat::Json {
            let changes: Vec<_> = changes.map(|(place, change)| change_json(&place, change)).collect();
            let value = json!({ "schema": 1, "file": name.display().to_string(), "changes": changes, "sizes": sizes, "notice": notice });
            return text::json(&value).into();
        }
        let lines =
            changes.map(|(place, change)| format!("{}: {}\n", text::plain(&place), text::plain(&change.to_string())));
        let file = text::plain(&name.display().to_string());
        let notice = notice.map(|notice| format!("{file}: {notice}\n"));
        lines.chain(notice).collect::<String>().into()
    }
}

fn change_json(place: &str, change: &EntryChange) -> Value {
    json!({ "place": place, "what": change.what, "entry": change.id, "sizes": change.sizes })
}
