//! `hotswap retarget`: adds targets to finished build products.
//!
//! Programs, libraries, objects, archives and fat binaries are changed bundle by bundle; a code object on its own is
//! relabelled, and its record follows it. Either targets are named (`--to`), and each bundle takes the best source that
//! it has, or a plan is followed (`--pairs`, `--plan`), as in the link.
//!
//! Invariants: targets that cannot be made are refused according to the policy, with all findings. Under the policy
//! `error` nothing is written then. The output is the same whatever the number of threads.

pub(crate) mod actions;
mod package;

use crate::args::{InPlaceOption, OutputFormat, OutputOptions, PlanSettings};
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::kept_gpus::KeptGpus;
use crate::work::terminal_progress::TerminalProgress;
use crate::work::{packages, text};
use clap::{Args, ValueEnum};
use hotswap_bundle::{Compression, ContainerForm, FileRope, FoundContainer, is_kernel_archive};
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_compat::RoutePermissions;
use hotswap_compat::names::{Disagreement, HostPart, names_diagnostic};
use hotswap_file_edit::{
    ContainerResult, FileJob, HandledFile, MAPPED, PACKED, host_part, new_file, thread_count, unsuited,
};
use hotswap_file_reports::retarget_report::{ResultRow, RetargetReport};
use hotswap_files::{InputFile, WriteOptions};
use hotswap_load_model::{FileUse, ReadDepth};
use hotswap_pipeline::{RetargetRequest, TargetOutcome, TargetResult};
use hotswap_plan::{Plan, TextFindings};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::{PROCESSORS, Processor, TargetId};
use std::iter;
use std::path::{Path, PathBuf};

/// In `--drop`: all entries that a generic target makes superfluous.
const COVERED: &str = "covered";

/// The note of a file that gets no target.
const NOTHING_ADDED: &str = "nothing is added to it";

/// The settings of a plan that concern finished files, too.
const WITH_TARGETS: &[&str] = &["policy", "allow-experimental"];

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("wish").required(true))]
pub(crate) struct RetargetArguments {
    /// Program, library, object, archive, fat binary or code object; or with --to, a wheel, tar archive or Debian package
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Output file; may be the input
    #[arg(short, value_name = "OUT", value_parser = output_file(), required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    in_place: InPlaceOption,
    /// With --to, for a code object in a file of its own: another code object of the same kernels, for another GPU, that
    /// the target may be made from; the best source that passes the checks of its pair is taken
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pairs", "plan"])]
    source: Vec<PathBuf>,
    /// With --to, for a code object in a file of its own: the output is a fat binary of the code object and of what is
    /// made from it, for any number of targets
    #[arg(long, conflicts_with_all = ["pairs", "plan", "source", "drop"])]
    keep_source: bool,
    /// With --to: say what would be made, and write nothing
    #[arg(long, conflicts_with_all = ["output", "pairs", "plan", "in_place"])]
    dry_run: bool,
    /// With --to: print the command for the file, or for each file with device code below a directory, as a line of JSON
    /// with its inputs and outputs, and run none of them
    #[arg(long, requires = "output", conflicts_with_all = ["pairs", "plan", "dry_run", "in_place"])]
    list_actions: bool,
    /// Processors to serve, native or generic, each from the best that is there
    #[arg(long, value_name = "TARGET", num_args = 1, value_delimiter = ',', group = "wish")]
    to: Vec<String>,
    /// Pairs, for example 'gfx1030=>gfx1031,gfx1032'
    #[arg(long, value_name = "PAIRS", group = "wish")]
    pairs: Vec<String>,
    /// Hash of a plan that `hotswap plan` has written
    #[arg(long, value_name = "HASH", group = "wish")]
    plan: Option<String>,
    /// With --to: drop the code for these targets, after it has served as a source; `covered` stands for all that
    /// generic targets in the same fat binary cover
    #[arg(long, value_name = "TARGET", num_args = 1, value_delimiter = ',', conflicts_with_all = ["pairs", "plan"])]
    drop: Vec<String>,
    /// With --to: compress fat binaries that are not
    #[arg(long, conflicts_with_all = ["pairs", "plan"])]
    compress: bool,
    /// With --to: leave out what cannot be made, where the rest can; the runtime does not find it then
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["pairs", "plan"])]
    leave_out: Option<LeftOut>,
    /// Allow what is refused otherwise, separated by commas
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', conflicts_with = "plan")]
    allow: Vec<Allowed>,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    settings: PlanSettings,
    #[command(flatten)]
    format: OutputOptions,
}

/// The values of `--leave-out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LeftOut {
    /// Kernels that fail a check of their pair
    Kernels,
}

/// The values of `--allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Allowed {
    /// Experimental pairs, as --allow-experimental does
    Experimental,
    /// Code for GPUs whose names lead the library's host part to other kernels than the code was compiled for
    Names,
}

pub(crate) fn run(arguments: &RetargetArguments) -> Result<CommandOutcome, Diagnostic> {
    if arguments.list_actions {
        return arguments.actions();
    }
    match packages::format_of(&arguments.file)? {
        Some(format) => arguments.package(format),
        None if arguments.to.is_empty() => arguments.follow_plan(),
        None => {
            let done = arguments.serve(&arguments.request()?, &arguments.paths())?;
            Ok(done.into_outcome(arguments))
        }
    }
}

/// A file to retarget: its path, that of the result, and its name in messages.
struct RetargetPaths<'p> {
    file: &'p Path,
    output: &'p Path,
    name: &'p Path,
    /// Whether a code object becomes a fat binary.
    keeps_source: bool,
}

/// The result for a file.
struct RetargetedFile {
    report: FileReport,
    problems: Vec<Diagnostic>,
    /// Whether a container has changed, or would in a dry run.
    is_changed: bool,
}

/// The report in the requested form.
enum FileReport {
    Json(serde_json::Value),
    /// The text, and the rows of its table.
    Text(String, Vec<ResultRow>),
}

impl RetargetedFile {
    /// A dry run is a question, and its answer is printed.
    fn into_outcome(self, arguments: &RetargetArguments) -> CommandOutcome {
        let text = match self.report {
            FileReport::Json(value) => text::json(&value),
            FileReport::Text(text, _) => text,
        };
        let outcome = CommandOutcome { text, problems: self.problems, ..CommandOutcome::default() };
        if self.is_changed || arguments.dry_run {
            outcome
        } else {
            outcome.note_unchanged(&arguments.file, NOTHING_ADDED)
        }
    }
}

impl RetargetArguments {
    fn paths(&self) -> RetargetPaths<'_> {
        RetargetPaths { file: &self.file, output: self.output(), name: &self.file, keeps_source: self.keep_source }
    }

    /// The path of the result; large parts are kept in its directory meanwhile.
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.file)
    }

    fn file_job<'j>(
        &self,
        input: &'j InputFile,
        paths: &RetargetPaths<'j>,
        progress: &'j TerminalProgress,
    ) -> FileJob<'j> {
        let (file, output) = (paths.file, paths.output);
        let quarters = if self.compress { PACKED } else { MAPPED };
        FileJob {
            input,
            file,
            output,
            placement: self.in_place.placement(),
            threads: thread_count(self.jobs),
            quarters,
            streams: true,
            progress,
        }
    }

    /// The plan of the options, with these pairs.
    fn plan(&self, pairs: &[String]) -> Result<Plan, Diagnostic> {
        let mut plan = self.settings.plan(pairs, self.allow.contains(&Allowed::Experimental))?;
        plan.unchecked_names = self.allow.contains(&Allowed::Names);
        Ok(plan)
    }

    fn request(&self) -> Result<RetargetRequest, Diagnostic> {
        if let Some(option) = self.settings.other_than(WITH_TARGETS) {
            let what = format!("--{option} can be used with --pairs, not with --to");
            return Err(Diagnostic::error(codes::USAGE, what));
        }
        let settings = self.plan(&[])?;
        let asked = self.to.iter().map(|name| requested_processor(name)).collect::<Result<Vec<_>, _>>()?;
        // The order of the output is that of the table, not that of the command line.
        let targets = PROCESSORS.iter().filter(|processor| asked.contains(processor)).collect();
        let named = self.drop.iter().filter(|name| *name != COVERED);
        let drop = named.map(|name| Ok(name.parse()?)).collect::<Result<_, Diagnostic>>()?;
        Ok(RetargetRequest {
            targets,
            drop,
            drop_covered: self.drop.iter().any(|name| name == COVERED),
            allow: RoutePermissions { experimental: settings.experimental },
            unchecked_names: settings.unchecked_names,
            leave_out_kernels: self.leave_out.is_some(),
            compression: self.compress.then(Compression::default),
            policy: settings.policy,
            ..RetargetRequest::default()
        })
    }

    /// The code objects of `--source`, each read once here so that a damaged one is reported by its own name.
    fn other_sources(&self, file: &[u8], name: &Path) -> Result<Vec<InputFile>, Diagnostic> {
        if !self.source.is_empty() && !is_code_object(file) {
            return Err(only_code_objects().in_file(name));
        }
        self.source.iter().map(|path| open_source(path).map_err(|error| error.in_file(path))).collect()
    }

    /// Does what `--to` asks for.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn serve(&self, request: &RetargetRequest, paths: &RetargetPaths<'_>) -> Result<RetargetedFile, Diagnostic> {
        let other_names = new_file::warn_of_other_names(paths.file, paths.output, self.in_place.placement())?;
        let bytes = hotswap_files::open_to_change(paths.file, paths.output)?;
        let others = self.other_sources(&bytes, paths.name)?;
        if paths.keeps_source && !is_code_object(&bytes) {
            let what = "--keep-source is for a code object in a file of its own";
            let error = Diagnostic::error(codes::USAGE, what).in_file(paths.name);
            return Err(error.advise("a fat binary keeps its entries anyway, unless they are dropped"));
        }
        let progress = TerminalProgress::new("retarget");
        let job = self.file_job(&bytes, paths, &progress);
        let containers = job.containers().map_err(|error| error.in_file(paths.name))?;
        let host = host_part(&bytes, &containers);
        let work: HandledFile<'_, TargetOutcomes> = job
            .process(containers, &|_, found| match found.form {
                ContainerForm::Bundle | ContainerForm::CompressedBundle(_) => {
                    let made = hotswap_pipeline::retarget(found.bytes, request, &host)?;
                    let mut said = made.outcomes;
                    if !said.iter().any(|outcome| outcome.subject.target().is_some()) {
                        said.extend(unsuited::unsuited_results(found, &request.targets, &bytes)?);
                    }
                    // A dry run writes nothing, so nothing needs to be kept on disk.
                    let new = made.draft.filter(|_| !self.dry_run);
                    Ok(ContainerResult { new, expected: made.expected, said })
                }
                ContainerForm::KernelArchive => archived(found, request),
                ContainerForm::Bare if found.bytes.len() == bytes.len() && paths.keeps_source => {
                    keep_source(found.bytes, request)
                }
                ContainerForm::Bare if found.bytes.len() == bytes.len() => relabel(found.bytes, &others, request),
                ContainerForm::OffloadBinary(_) | ContainerForm::ObjectVariant | ContainerForm::Bare => {
                    let said = unsuited::unsuited_results(found, &request.targets, &bytes)?;
                    Ok(ContainerResult { new: None, expected: None, said })
                }
            })
            .map_err(|error| error.in_file(paths.name))?;
        if work.done.iter().all(|handled| handled.said.is_empty()) {
            return Err(unsuited::no_code_error(work.done.len()).in_file(paths.name));
        }
        let report = RetargetReport::new(&work);
        let mut problems = report.problems(request.policy, paths.name);
        if is_kernel_archive(&bytes) && !self.allow.contains(&Allowed::Names) {
            problems.push(unchecked_host().in_file(paths.name));
        }
        if is_code_object(&bytes) && !paths.keeps_source {
            problems.extend(unrecorded(&work).map(|problem| problem.in_file(paths.name)));
        }
        // A dry run keeps nothing, and knows the number of the changed containers only.
        let is_changed =
            if self.dry_run { work.done.iter().any(|handled| handled.size.is_some()) } else { work.is_changed() };
        problems.extend(other_names.filter(|_| is_changed && !self.dry_run));
        let stops = problems.iter().any(|problem| problem.severity == Severity::Error);
        let size = if stops || self.dry_run { None } else { Some(self.write(&job, &work, paths, &request.drop)?) };
        let report = match self.format.format {
            OutputFormat::Json => FileReport::Json(report.to_json(paths.name, bytes.len(), size)),
            OutputFormat::Text => FileReport::Text(report.to_text(paths.name, bytes.len(), size), report.rows()),
        };
        Ok(RetargetedFile { report, problems, is_changed })
    }

    /// Does what `--pairs` or `--plan` asks for.
    fn follow_plan(&self) -> Result<CommandOutcome, Diagnostic> {
        let mut outcome = CommandOutcome::default();
        let other_names = new_file::warn_of_other_names(&self.file, self.output(), self.in_place.placement())?;
        let plan = match &self.plan {
            Some(_) if !self.settings.is_empty() => {
                return Err(Diagnostic::error(codes::USAGE, "--plan has its own policy, patches and what it allows"));
            }
            Some(hash) => hotswap_plan::find_plan(hash, &mut |skipped| outcome.problems.push(skipped))?,
            None => self.plan(&self.pairs)?,
        };
        let bytes = hotswap_files::open_to_change(&self.file, self.output())?;
        let paths = self.paths();
        let progress = TerminalProgress::new("retarget");
        let job = self.file_job(&bytes, &paths, &progress);
        let containers = job.containers().map_err(|error| error.in_file(&self.file))?;
        let host = host_part(&bytes, &containers);
        let work: HandledFile<'_, ContainerOutcome> = job
            .process(containers, &|_, found| expand(found, &plan, &host, &bytes))
            .map_err(|error| error.in_file(&self.file))?;
        if work.done.iter().all(|handled| !handled.said.has_code) {
            return Err(unsuited::no_code_error(work.done.len()).in_file(&self.file));
        }
        if let Some(severity) = plan.policy.severity() {
            let names: Vec<Vec<Disagreement>> = work.done.iter().map(|handled| handled.said.names.clone()).collect();
            outcome.problems.extend(names_diagnostic(&names, names.len(), severity, &self.file));
        }
        let mut problems = outcome.problems.iter().chain(work.done.iter().flat_map(|handled| &handled.said.problems));
        let stops = problems.any(|problem| problem.severity == Severity::Error);
        let is_changed = work.is_changed();
        if !stops {
            self.write(&job, &work, &paths, &[])?;
        }
        outcome.problems.extend(other_names.filter(|_| is_changed));
        let several = work.done.len() > 1;
        for handled in work.done {
            let place = text::plain(&handled.found.place.to_string());
            let place = if several { format!("{place}: ") } else { String::new() };
            if !stops {
                handled.said.text.lines().for_each(|line| outcome.text += &format!("{place}{line}\n"));
            }
            outcome.problems.extend(handled.said.problems);
        }
        Ok(if is_changed { outcome } else { outcome.note_unchanged(&self.file, NOTHING_ADDED) })
    }

    /// A code object of its own is written unchanged. Of a fat binary, no GPU loses code but those of `dropped`.
    fn write<T>(
        &self,
        job: &FileJob<'_>,
        work: &HandledFile<'_, T>,
        paths: &RetargetPaths<'_>,
        dropped: &[TargetId],
    ) -> Result<u64, Diagnostic> {
        match work.only() {
            Some(relabelled) if is_code_object(job.input) => {
                let new = relabelled.to_vec();
                new_file::check_new_bytes(job.input, &new).map_err(|error| error.in_file(paths.name))?;
                let how = WriteOptions { sources: &[], threads: 1, placement: job.placement };
                let like = (new.len() as u64, paths.file);
                hotswap_files::replace_parts(paths.output, like, how, [(0, &new[..])].into_iter(), |_| Ok(()))?;
                Ok(new.len() as u64)
            }
            _ => {
                let before = FileUse::read(job.input, &hotswap_bundle::find_containers(job.input), ReadDepth::Headers);
                let written = job.write_with(work, &|new| {
                    KeptGpus::AllBut(dropped).check(&before, new).map_err(|error| error.in_file(paths.name))
                })?;
                Ok(written.size)
            }
        }
    }
}

/// The processor of a name in `--to`.
fn requested_processor(name: &str) -> Result<&'static Processor, Diagnostic> {
    let id: TargetId = name.parse()?;
    if name != id.processor.name {
        let what = format!("`{name}`: features are those of the code and cannot be requested");
        return Err(Diagnostic::error(codes::USAGE, what));
    }
    Ok(id.processor)
}

type TargetOutcomes = Vec<TargetOutcome>;

/// The fat binary of a kernel archive with further targets.
fn archived<'a>(
    found: &FoundContainer<'a>,
    request: &RetargetRequest,
) -> Result<ContainerResult<'a, TargetOutcomes>, Diagnostic> {
    let made = hotswap_pipeline::retarget_archived(found, request)?;
    Ok(ContainerResult { new: made.bundle.map(FileRope::from), expected: None, said: made.outcomes })
}

/// The host part of an archive's code is another file.
fn unchecked_host() -> Diagnostic {
    let what =
        "whether it chooses kernels by the name of the GPU, and would choose others for the new targets, is unknown";
    Diagnostic::warning(codes::HOST_UNCHECKED, what)
}

/// The code object was made, and its file has no record of it.
fn unrecorded(work: &HandledFile<'_, TargetOutcomes>) -> Option<Diagnostic> {
    let made = work.only()?.to_vec();
    let lost = hotswap_bundle::split_record(&made).is_ok_and(|(_, record)| record.is_none());
    let what = "bytes follow the code object that its headers do not name, so there is no place for its record";
    lost.then(|| Diagnostic::warning(codes::MALFORMED, what).advise("strip the file first, or build it again"))
}

/// One file of `--source`.
fn open_source(path: &Path) -> Result<InputFile, Diagnostic> {
    let input = hotswap_files::open_input(path)?;
    if !is_code_object(&input) {
        return Err(only_code_objects());
    }
    let (object, _) = hotswap_bundle::split_record(&input)?;
    CodeObject::parse(object)?;
    Ok(input)
}

fn only_code_objects() -> Diagnostic {
    let what = "--source takes code objects in files of their own, for a file that is one itself";
    Diagnostic::error(codes::USAGE, what).advise("a fat binary has its sources in itself; `hotswap add` adds more")
}

/// The code object for one other target, made from this one or from one of the other sources.
fn relabel<'a>(
    bytes: &'a [u8],
    others: &[InputFile],
    request: &RetargetRequest,
) -> Result<ContainerResult<'a, TargetOutcomes>, Diagnostic> {
    let [target] = request.targets[..] else {
        let what = format!("a code object has room for one target, and {} are requested", request.targets.len());
        return Err(Diagnostic::error(codes::USAGE, what));
    };
    let sources: Vec<&[u8]> = iter::once(bytes).chain(others.iter().map(|other| &**other)).collect();
    let (new, result) = hotswap_pipeline::relabel_standalone(&sources, target, request)?;
    if !others.is_empty() && matches!(result, TargetResult::There | TargetResult::Covered(_)) {
        let what = format!("one of the sources serves {target} as it is, so nothing is made");
        return Err(Diagnostic::error(codes::USAGE, what).advise("use that file"));
    }
    Ok(ContainerResult {
        new: new.map(FileRope::from),
        expected: None,
        said: vec![TargetOutcome::for_target(target, result)],
    })
}

/// The bundle of a code object and of what is made from it.
fn keep_source<'a>(
    bytes: &'a [u8],
    request: &RetargetRequest,
) -> Result<ContainerResult<'a, TargetOutcomes>, Diagnostic> {
    let made = hotswap_pipeline::bundle_standalone(bytes, &[], request)?;
    Ok(ContainerResult { new: made.bundle.map(FileRope::from), expected: None, said: made.outcomes })
}

/// The outcome of a plan in one container.
struct ContainerOutcome {
    text: String,
    problems: Vec<Diagnostic>,
    /// The disagreements of the host part with pairs of the plan.
    names: Vec<Disagreement>,
    /// It has device code to which the plan can apply.
    has_code: bool,
}

/// Follows the plan except for pairs that the host part contradicts.
fn expand<'a>(
    found: &FoundContainer<'a>,
    plan: &Plan,
    host: &HostPart<'_>,
    file: &[u8],
) -> Result<ContainerResult<'a, ContainerOutcome>, Diagnostic> {
    if matches!(found.form, ContainerForm::Bare) && found.bytes.len() == file.len() {
        let what = "it is a code object and no fat binary";
        return Err(Diagnostic::error(codes::NO_PLACE, what).advise("name the target by --to"));
    }
    let names = hotswap_pipeline::disagreements_of_plan(found.bytes, plan, host)?;
    let mut followed = plan.clone();
    followed.pairs.retain(|pair| !names.iter().any(|row| row.source == pair.source && row.target == pair.target));
    let expansion = hotswap_pipeline::expand_bundle(found.bytes, &followed, &TextFindings::default(), None)?;
    if expansion.kept.is_some_and(|why| why != hotswap_pipeline::NOTHING_TO_ADD) {
        return Ok(ContainerResult { new: None, expected: None, said: not_followed(found, plan, file)? });
    }
    let mut text: String = expansion.derived.iter().map(|id| format!("added {id}\n")).collect();
    if let Some(kept) = expansion.kept {
        text += &format!("unchanged: {kept}\n");
    }
    let said = ContainerOutcome { text, problems: expansion.warnings, names, has_code: true };
    Ok(ContainerResult { new: expansion.bytes.map(FileRope::from), expected: None, said })
}

/// The result for a container to which nothing can be added.
fn not_followed(found: &FoundContainer<'_>, plan: &Plan, file: &[u8]) -> Result<ContainerOutcome, Diagnostic> {
    let outcomes = unsuited::unsuited_results(found, &hotswap_pipeline::plan_targets(plan)?, file)?;
    let has_code = !outcomes.is_empty();
    let place = found.place.to_string();
    // One line for the container: the reason is the same for all targets.
    let reason =
        outcomes.iter().flat_map(|outcome| outcome.result.reasons()).next().cloned().zip(plan.policy.severity());
    let problems = reason.map(|(reason, severity)| Diagnostic { severity, ..reason }.in_entry(place));
    let text = if has_code { "unchanged: no target can be added\n" } else { "unchanged: no device code\n" };
    Ok(ContainerOutcome {
        text: text.to_owned(),
        problems: problems.into_iter().collect(),
        names: Vec::new(),
        has_code,
    })
}
