//! `hotswap rewrite`: changes the code of a GPU until it runs on another stepping of it.
//!
//! A device ELF, linked or relocatable, becomes one for the target. In programs, libraries, objects, archives and fat
//! binaries the target's code object is added, as by `hotswap retarget`. Both report the changes to each kernel.
//!
//! Invariants: Under the policy `error` nothing is written where anything is refused, and all refusals are reported.
//! Under the others refused code is left unchanged, with the reason. The output does not depend on the number of
//! threads.
//!
//! Absent on purpose: which instructions change, and how (`hotswap-families`, `hotswap-adapt`).

use crate::args::{InPlaceOption, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::terminal_progress::TerminalProgress;
use clap::Args;
use hotswap_adapt::{AdaptRequest, PreparedObject};
use hotswap_bundle::FoundContainer;
use hotswap_code_object::{CodeMap, CodeObject, device_symbols_note, is_code_object};
use hotswap_compat::names::HostPart;
use hotswap_compat::{RoutePermissions, Strategy, Verdict, find_pair, pair_verdict};
use hotswap_device_symbols::note;
use hotswap_file_edit::{
    ContainerResult, FileJob, HandledFile, MAPPED, WrittenFile, host_part, new_file, thread_count, unsuited,
};
use hotswap_file_reports::repro::ReproDirectory;
use hotswap_file_reports::rewrite_report::{ObjectReport, RewriteReport};
use hotswap_files::{InputFile, WriteOptions};
use hotswap_pipeline::{RetargetRequest, TargetOutcome};
use hotswap_plan::Policy;
use hotswap_report::{Diagnostic, Severity, codes, text};
use hotswap_targets::TargetId;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RewriteArguments {
    /// Device ELF (linked or relocatable), program, library, object, archive or fat binary
    #[arg(value_parser = input_file())]
    pub(super) file: PathBuf,
    /// Output file; may be the input
    #[arg(short, value_name = "OUT", value_parser = output_file())]
    pub(super) output: PathBuf,
    #[command(flatten)]
    in_place: InPlaceOption,
    /// The stepping to make code for
    #[arg(long, value_name = "TARGET")]
    pub(super) to: String,
    /// Form of the report
    #[arg(long, value_enum, default_value_t)]
    pub(super) report: OutputFormat,
    /// Action for code that cannot be rewritten: error, warn or keep [default: error]
    #[arg(long)]
    policy: Option<String>,
    /// A device ELF goes on naming its GPU in header and note, for runtimes that report both steppings by that name
    #[arg(long)]
    pub(super) keep_machine: bool,
    /// Write inputs, command and refused functions to this new directory, for a report of a defect
    #[arg(long, value_name = "DIR")]
    save_repro: Option<PathBuf>,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

pub(crate) fn run(arguments: &RewriteArguments) -> Result<CommandOutcome, Diagnostic> {
    let target: TargetId = arguments.to.parse()?;
    if arguments.to != target.processor.name {
        let what = format!("`{}`: features are those of the code and cannot be requested", arguments.to);
        return Err(Diagnostic::error(codes::USAGE, what));
    }
    let policy = arguments.policy.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    let repro = arguments.save_repro.as_deref().map(ReproDirectory::new).transpose()?;
    let other_names =
        new_file::warn_of_other_names(&arguments.file, &arguments.output, arguments.in_place.placement())?;
    let input = hotswap_files::open_to_change(&arguments.file, &arguments.output)?;
    let task = RewriteRequest { arguments, target, policy, input: &input };
    let (report, written) = if is_code_object(&input) { task.device_elf() } else { task.containers() }
        .map_err(|error| error.in_file(&arguments.file))?;
    if let Some(repro) = repro {
        repro.save(&arguments.repeated_command(), &input, &report)?;
    }
    let mut problems = report.problems();
    problems.extend(other_names.filter(|_| written.is_none_or(|written| written.is_changed)));
    let size = written.map(|written| written.size);
    let text = match arguments.report {
        OutputFormat::Text => report.to_text(size),
        OutputFormat::Json => text::json(&report.to_json(size)),
    };
    let outcome = CommandOutcome { text, problems, ..CommandOutcome::default() };
    let is_unchanged = written.is_some_and(|written| !written.is_changed);
    Ok(if is_unchanged { outcome.note_unchanged(&arguments.file, "no code in it was rewritten") } else { outcome })
}

impl RewriteArguments {
    /// The command that does the same with the files of `--save-repro`.
    fn repeated_command(&self) -> String {
        let keep = if self.keep_machine { " --keep-machine" } else { "" };
        format!("hotswap rewrite input -o output --to {}{keep}", self.to)
    }
}

struct RewriteRequest<'t> {
    arguments: &'t RewriteArguments,
    target: TargetId,
    policy: Policy,
    input: &'t InputFile,
}

/// `None` where nothing was written.
type RewrittenFile = Option<WrittenFile>;

impl<'t> RewriteRequest<'t> {
    fn report(&self, objects: Vec<ObjectReport>) -> RewriteReport<'t> {
        RewriteReport {
            file: &self.arguments.file,
            target: self.arguments.to.clone(),
            old: self.input.len() as u64,
            objects,
            severity: self.policy.severity(),
        }
    }

    fn stops(&self, objects: &[ObjectReport]) -> bool {
        self.policy.severity() == Some(Severity::Error) && objects.iter().any(|object| !object.refused.is_empty())
    }

    /// Rewrites a file that is one code object.
    fn device_elf(&self) -> Result<(RewriteReport<'t>, RewrittenFile), Diagnostic> {
        let object = CodeObject::parse(self.input);
        let source = match &object {
            Ok(object) => object.target_id(),
            Err(error) => self.source_of(error)?,
        };
        // Files without metadata have no kernels; other problems are reported by the engine.
        object.as_ref().map_or(Ok(()), CodeObject::check_descriptors)?;
        let (prepared, said) = match self.target_of(source)? {
            None => (None, ObjectReport::already_valid(source)),
            Some(target) => {
                let order = AdaptRequest { target, keep_machine: self.arguments.keep_machine };
                let prepared = object
                    .map_err(single_diagnostic_list)
                    .and_then(|object| hotswap_adapt::prepare_object(object, &order));
                let said = ObjectReport::new(source, &prepared);
                (prepared.ok(), said)
            }
        };
        let objects = vec![said];
        if self.stops(&objects) {
            return Ok((self.report(objects), None));
        }
        let written = self.write(prepared.as_ref())?;
        Ok((self.report(objects), Some(written)))
    }

    /// The target of a file that is not a complete code object.
    fn source_of(&self, error: &Diagnostic) -> Result<TargetId, Diagnostic> {
        // Without one, the original error is reported; a file that cannot be mapped at all has its own error.
        CodeMap::read(self.input)?.target_id.ok_or_else(|| error.clone())
    }

    /// Writes the file, copying unchanged parts from the input, and reads it again; returns its size.
    fn write(&self, prepared: Option<&PreparedObject<'_>>) -> Result<WrittenFile, Diagnostic> {
        let size = prepared.map_or(self.input.len() as u64, PreparedObject::size);
        let parts = prepared.map_or_else(|| vec![(0, &self.input[..])], PreparedObject::parts);
        let (to, like) = (&self.arguments.output, (size, &*self.arguments.file));
        if let Some(prepared) = prepared.filter(|_| device_symbols_note(self.input).is_some()) {
            return self.write_with_functions(prepared);
        }
        let is_changed = size != self.input.len() as u64
            || parts.iter().any(|(at, part)| self.input.get(*at as usize..*at as usize + part.len()) != Some(*part));
        if !is_changed && hotswap_files::is_same_place(&self.arguments.file, to)? {
            return Ok(WrittenFile { size, is_changed });
        }
        let placement = self.arguments.in_place.placement();
        let how = WriteOptions { sources: &[self.input], threads: thread_count(self.arguments.jobs), placement };
        hotswap_files::replace_parts(to, like, how, parts.into_iter(), |made: &InputFile| {
            prepared.map_or(Ok(()), |prepared| prepared.check_written(made))?;
            new_file::check_new_bytes(self.input, made)
        })?;
        Ok(WrittenFile { size, is_changed })
    }

    /// Writes a file whose input has a table of its functions: the new code gets its own.
    fn write_with_functions(&self, prepared: &PreparedObject<'_>) -> Result<WrittenFile, Diagnostic> {
        let mut whole = vec![0; prepared.size() as usize];
        for (offset, part) in prepared.parts() {
            let start = offset as usize;
            whole[start..start + part.len()].copy_from_slice(part);
        }
        prepared.check_written(&whole)?;
        let (made, table) = note::with_table_like(&whole, self.input)?;
        let like = (made.len() as u64, &*self.arguments.file);
        let is_changed = made[..] != self.input[..];
        if !is_changed && hotswap_files::is_same_place(&self.arguments.file, &self.arguments.output)? {
            return Ok(WrittenFile { size: made.len() as u64, is_changed });
        }
        let how = WriteOptions { sources: &[self.input], threads: 1, placement: self.arguments.in_place.placement() };
        let parts = std::iter::once((0, &made[..]));
        hotswap_files::replace_parts(&self.arguments.output, like, how, parts, |written: &InputFile| {
            note::check_written(&whole, written, &table)?;
            new_file::check_new_bytes(self.input, written)
        })?;
        Ok(WrittenFile { size: made.len() as u64, is_changed })
    }

    /// The target for code of `source`; `None` where the code is for it already.
    fn target_of(&self, source: TargetId) -> Result<Option<TargetId>, Diagnostic> {
        let (from, to) = (source.processor, self.target.processor);
        if from == to {
            return Ok(None);
        }
        if let Verdict::Refused { why } = pair_verdict(from, to) {
            return Err(Diagnostic::error(codes::PAIR_REFUSED, format!("{from}=>{to}: {why}")));
        }
        if find_pair(from, to).is_none_or(|pair| pair.strategy != Strategy::Rewrite) {
            let what = format!("{from}=>{to}: no code changes between these");
            return Err(Diagnostic::error(codes::PAIR_REFUSED, what).advise("use `hotswap retarget`"));
        }
        hotswap_compat::derive_target_id_for(&source, to).map(Some)
    }

    /// Rewrites the fat binaries of a file.
    fn containers(&self) -> Result<(RewriteReport<'t>, RewrittenFile), Diagnostic> {
        if self.arguments.keep_machine {
            let what = "--keep-machine is for a device ELF: a fat binary finds its code objects by their targets";
            return Err(Diagnostic::error(codes::USAGE, what)
                .advise("extract the code object, rewrite it, and put it back with `hotswap replace`"));
        }
        let (file, output) = (&self.arguments.file, &self.arguments.output);
        let progress = TerminalProgress::new("rewrite");
        let job = FileJob {
            input: self.input,
            file,
            output,
            placement: self.arguments.in_place.placement(),
            threads: thread_count(self.arguments.jobs),
            quarters: MAPPED,
            streams: false,
            progress: &progress,
        };
        let containers = job.containers()?;
        let request = RetargetRequest {
            targets: vec![self.target.processor],
            allow: RoutePermissions::default(),
            policy: self.policy,
            ..RetargetRequest::default()
        };
        let host = host_part(self.input, &containers);
        let work: HandledFile<'_, Vec<ObjectReport>> =
            job.process(containers, &|_, found| container(found, &request, self.input, &host))?;
        let objects: Vec<ObjectReport> = work.done.iter().flat_map(|handled| handled.said.iter().cloned()).collect();
        if objects.is_empty() {
            return Err(Diagnostic::error(codes::NOT_FOUND, "no fat binary in it has a code object"));
        }
        if self.stops(&objects) {
            return Ok((self.report(objects), None));
        }
        let written = job.write(&work)?;
        Ok((self.report(objects), Some(written)))
    }
}

fn single_diagnostic_list(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

fn container<'a>(
    found: &FoundContainer<'a>,
    request: &RetargetRequest,
    file: &[u8],
    host: &HostPart<'_>,
) -> Result<ContainerResult<'a, Vec<ObjectReport>>, Diagnostic> {
    let place = found.place.to_string();
    if !found.form.is_bundle() {
        return Ok(ContainerResult {
            new: None,
            expected: None,
            said: object_reports_of_results(unsuited::unsuited_results(found, &request.targets, file)?, &place),
        });
    }
    let made = hotswap_pipeline::retarget(found.bytes, request, host)?;
    let outcomes = if made.outcomes.is_empty() {
        unsuited::unsuited_results(found, &request.targets, file)?
    } else {
        made.outcomes
    };
    Ok(ContainerResult { new: made.draft, expected: made.expected, said: object_reports_of_results(outcomes, &place) })
}

fn object_reports_of_results(outcomes: Vec<TargetOutcome>, place: &str) -> Vec<ObjectReport> {
    outcomes.into_iter().flat_map(|outcome| ObjectReport::of_result(place, outcome.result)).collect()
}
