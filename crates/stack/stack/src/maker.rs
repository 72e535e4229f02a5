//! Makes the outputs of a served tree, by the same steps as `hotswap retarget`.
//!
//! A file with containers gets a further entry in each container that has code for the source. A code object in a file of
//! its own becomes a bundle of it and the new ones, compressed, because its file keeps its name and the runtime chooses
//! the entry. Where the host sees the GPU's own name, such files are renamed, and hold code for that GPU alone. The same is
//! done with each code object of a database.
//!
//! A target whose source fails a check is made from code of another GPU, where that is the same to the host (`other_source`).
//!
//! Invariants: where a container lacks code for the source, the target gets none, as on the source itself. Where
//! the host sees the source's name, code that was compiled for the target must agree with what the host chooses for the
//! source.

use crate::hash;
use crate::kernel_database::{self, DatabaseChange, DatabaseCounts, KernelRow, NewCode};
use crate::made_outputs::MadeOutputs;
use crate::other_source::{OtherFiles, other_source_warning};
use crate::output::{OutputRequest, OutputWay};
use crate::plan::{Action, NameMode, OutputContent, ServeRequest, WantedTarget};
use crate::rules::FileKind;
use crate::source::other_sources;
use crate::stock::targets_of;
use hotswap_bundle::{Compression, FileRope, FoundContainer};
use hotswap_code_object::is_code_object;
use hotswap_compat::RoutePermissions;
use hotswap_compat::names::HostPart;
use hotswap_file_edit::{
    ContainerResult, EditProgress, FileJob, HandledFile, NoProgress, PACKED, host_part, new_file, unsuited,
};
use hotswap_files::{InputFile, Placement, ScratchDirectory};
use hotswap_pipeline::{RetargetRequest, RetargetedBundle, SourcePolicy, TargetOutcome, TargetResult};
use hotswap_plan::RetargetPair;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, TargetId};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The maker of a run's outputs.
pub struct OutputMaker<'m> {
    settings: ServeRequest,
    /// Outputs that need not be made.
    made: Option<MadeOutputs>,
    threads: usize,
    /// Counts the bytes of the inputs.
    pub(crate) progress: &'m dyn EditProgress,
    notes: Mutex<Vec<Diagnostic>>,
}

/// The reasons why a container cannot be made as requested.
type Reasons = Vec<Diagnostic>;

impl<'m> OutputMaker<'m> {
    #[must_use]
    pub fn new(settings: &ServeRequest, threads: usize, progress: &'m dyn EditProgress) -> Self {
        Self { settings: settings.clone(), made: None, threads, progress, notes: Mutex::default() }
    }

    /// The maker that takes outputs of this directory.
    #[must_use]
    pub fn with_made_outputs(self, made: Option<&Path>) -> Self {
        let made = made.map(|directory| MadeOutputs::new(directory, &self.settings));
        Self { made, ..self }
    }

    /// The remarks about outputs that were made since the last call, in the order of their inputs.
    pub fn take_notes(&self) -> Vec<Diagnostic> {
        let mut notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        notes.sort_by(|one, other| one.place.file.cmp(&other.place.file));
        notes.extend(self.made.as_ref().and_then(MadeOutputs::warning));
        notes
    }

    /// Makes an output, replacing it in one step.
    ///
    /// # Errors
    /// The reasons why it cannot be made; [`codes::CANNOT_WRITE`] ends the run.
    pub(crate) fn make_output(&self, order: &OutputRequest<'_>) -> Result<OutputWay, Reasons> {
        if let Some(made) = &self.made
            && let Some(way) = made.take(order).map_err(|error: Diagnostic| vec![error.in_file(&order.action.input)])?
        {
            return Ok(way);
        }
        if order.action.kind == FileKind::KernelDatabase {
            return self.make_database(order);
        }
        let input = hotswap_files::open_input(&order.action.input).map_err(|error| vec![error])?;
        match &order.action.content {
            OutputContent::Served(wanted) if is_code_object(&input) => self.make_bundle(order, &input, wanted),
            OutputContent::Alone(wanted) if is_code_object(&input) => self.make_relabelled(order, &input, wanted),
            OutputContent::Served(wanted) => self.make_host_file(order, &input, wanted),
            OutputContent::Alone(wanted) => self.make_host_file(order, &input, std::slice::from_ref(wanted)),
            OutputContent::Index(_) | OutputContent::Extended(_) | OutputContent::Copied => Ok(OutputWay::Unchanged),
        }
    }

    fn note(&self, note: Diagnostic) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    fn request(&self, wanted: &[WantedTarget]) -> Result<RetargetRequest, Diagnostic> {
        Ok(RetargetRequest {
            targets: processors_of(wanted)?,
            sources: SourcePolicy::Only(wanted.iter().map(pair_of_row).collect()),
            allow: RoutePermissions { experimental: self.settings.experimental },
            unchecked_names: self.settings.names == NameMode::Source,
            leave_out_kernels: self.settings.leave_out_kernels,
            ..RetargetRequest::default()
        })
    }

    /// A bundle of the code object and of what is made from it.
    fn make_bundle(
        &self,
        order: &OutputRequest<'_>,
        input: &InputFile,
        wanted: &[WantedTarget],
    ) -> Result<OutputWay, Reasons> {
        let file = &order.action.input;
        let request = self.request(wanted).map_err(|error| reason_in_file(error, file))?;
        let request = RetargetRequest { compression: Some(Compression::default()), ..request };
        let mut made =
            hotswap_pipeline::bundle_standalone(input, &[], &request).map_err(|error| reason_in_file(error, file))?;
        let reasons = all_refusals(&made.outcomes);
        if !reasons.is_empty() {
            let others = OtherFiles::read(order.action, input).map_err(|error| vec![error])?;
            let request = others.add_to_request(request);
            made = hotswap_pipeline::bundle_standalone(input, &others.code_objects(), &request)
                .map_err(|error| reason_in_file(error, file))?;
            if !all_refusals(&made.outcomes).is_empty() {
                return Err(reasons.into_iter().map(|reason| reason.in_file(file)).collect());
            }
            self.note_other_sources(order, &made.outcomes);
        }
        let Some(bundle) = made.bundle else { return Ok(OutputWay::Unchanged) };
        write_checked(order, input, &bundle)
    }

    /// The code object for another target.
    fn make_relabelled(
        &self,
        order: &OutputRequest<'_>,
        input: &InputFile,
        wanted: &WantedTarget,
    ) -> Result<OutputWay, Reasons> {
        let file = &order.action.input;
        let request = self.request(std::slice::from_ref(wanted)).map_err(|error| reason_in_file(error, file))?;
        let target = wanted.processor().map_err(|error| reason_in_file(error, file))?;
        let (mut made, result) = hotswap_pipeline::relabel_standalone(&[input], target, &request)
            .map_err(|error| reason_in_file(error, file))?;
        if made.is_none() {
            let others = OtherFiles::read(order.action, input).map_err(|error| vec![error])?;
            let code: Vec<&[u8]> = std::iter::once(&input[..]).chain(others.code_objects()).collect();
            let again = hotswap_pipeline::relabel_standalone(&code, target, &others.add_to_request(request))
                .map_err(|error| reason_in_file(error, file))?;
            made = again.0;
            self.note_other_sources(order, &[TargetOutcome::for_target(target, again.1)]);
        }
        let Some(made) = made else {
            let reasons = refusal_reasons(&result);
            let reasons = if reasons.is_empty() { vec![no_code_for(&wanted.source)] } else { reasons };
            return Err(reasons.into_iter().map(|reason| reason.in_file(file)).collect());
        };
        write_checked(order, input, &made)
    }

    /// Notes the targets that were made from code of another GPU than planned.
    fn note_other_sources(&self, order: &OutputRequest<'_>, results: &[TargetOutcome]) {
        let rows = order.action.content.wanted_targets();
        for outcome in results {
            let TargetResult::Made { source, .. } = outcome.result else { continue };
            if let Some(row) = rows.iter().find(|row| is_about(outcome, row) && row.source != source.name) {
                self.note(other_source_warning(row, source.name).in_file(&order.action.input));
            }
        }
    }

    /// A database of code objects.
    fn make_database(&self, order: &OutputRequest<'_>) -> Result<OutputWay, Reasons> {
        let input = &order.action.input;
        let scratch = ScratchDirectory::temporary("hotswap-kdb-").map_err(|error| reason_in_file(error, input))?;
        let made = scratch.path().join("database");
        let Some(row) = order.action.content.wanted_targets().first() else { return Ok(OutputWay::Unchanged) };
        let is_alone = matches!(order.action.content, OutputContent::Alone(_));
        let (source, named) = (&row.source, if is_alone { &row.target } else { &row.source });
        let change = DatabaseChange {
            source,
            named,
            maker: &|row: &KernelRow| self.database_code(&row.code, &order.action.content),
        };
        let counts = kernel_database::rewrite_database(input, &made, &change)
            .map_err(|reasons: Reasons| reasons.into_iter().map(|reason| reason.in_file(input)).collect::<Reasons>())?;
        if counts.left_out > 0 {
            self.note(left_out_warning(&counts).in_file(input));
        }
        let new = hotswap_files::open_input(&made).map_err(|error| reason_in_file(error, input))?;
        (order.before_named)(hash::of_input(&new))
            .and_then(|()| hotswap_files::replace_like(order.output, &new, input))
            .map_err(|error| reason_in_file(error, input))?;
        Ok(OutputWay::Written)
    }

    /// The new code of a row: a bundle, or a code object for the target alone.
    fn database_code(&self, code: &[u8], content: &OutputContent) -> NewCode {
        if !is_code_object(code) {
            return Err(vec![Diagnostic::error(codes::UNKNOWN_FORMAT, "its content is no code object")]);
        }
        let (made, results) = match content {
            OutputContent::Alone(wanted) => {
                let request = self.request(std::slice::from_ref(wanted)).map_err(|error| vec![error])?;
                let made = wanted
                    .processor()
                    .and_then(|target| hotswap_pipeline::relabel_standalone(&[code], target, &request));
                let (made, result) = made.map_err(|error| vec![error])?;
                (made, vec![result])
            }
            other => {
                let made = self
                    .request(other.wanted_targets())
                    .and_then(|request| hotswap_pipeline::bundle_standalone(code, &[], &request))
                    .map_err(|error| vec![error])?;
                (made.bundle, made.outcomes.into_iter().map(|outcome| outcome.result).collect())
            }
        };
        let reasons: Reasons = results.iter().flat_map(refusal_reasons).collect();
        match (made, reasons.is_empty()) {
            (Some(made), true) => Ok(Some(made)),
            (None, true) => Err(vec![no_code_for(content.wanted_targets().first().map_or("", |row| &row.source))]),
            // MIOpen compiles a kernel that the database does not have.
            (_, false) if self.settings.leave_out_kernels => Ok(None),
            (_, false) => Err(reasons),
        }
    }

    /// A file with containers.
    fn make_host_file(
        &self,
        order: &OutputRequest<'_>,
        input: &InputFile,
        wanted: &[WantedTarget],
    ) -> Result<OutputWay, Reasons> {
        let file = &order.action.input;
        let threads = if order.is_large { self.threads } else { 1 };
        let quarters = PACKED + 4 * wanted.len() as u64;
        let job = FileJob {
            input,
            file,
            output: order.output,
            placement: Placement::NewFile,
            threads,
            quarters,
            streams: true,
            progress: &NoProgress,
        };
        let containers = job.containers().map_err(|error| reason_in_file(error, file))?;
        let host = host_part(input, &containers);
        let action_input = ActionInput { action: order.action, bytes: input };
        let work: HandledFile<'_, Reasons> = job
            .process(containers, &|_, found| self.extend_container(found, &host, &action_input))
            .map_err(|error| reason_in_file(error, file))?;
        let mut reasons = Vec::new();
        for handled in &work.done {
            let place = handled.found.place.to_string();
            reasons.extend(handled.said.iter().map(|reason: &Diagnostic| {
                let mut reason = reason.clone().in_file(file);
                let entry = reason.place.entry.take().map_or(place.clone(), |entry| format!("{place}: {entry}"));
                reason.in_entry(entry)
            }));
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        if work.done.iter().all(|handled| handled.size.is_none()) {
            return match &order.action.content {
                OutputContent::Alone(wanted) => Err(reason_in_file(no_code_for(&wanted.source), file)),
                _ => Ok(OutputWay::Unchanged),
            };
        }
        job.write_with(&work, &|new| (order.before_named)(hash::of_input(new)))
            .map_err(|error| reason_in_file(error, file))?;
        Ok(OutputWay::Written)
    }

    /// One container; the reasons why a target is refused.
    fn extend_container<'a>(
        &self,
        found: &FoundContainer<'a>,
        host: &HostPart<'_>,
        input: &ActionInput<'_>,
    ) -> Result<ContainerResult<'a, Reasons>, Diagnostic> {
        let content = &input.action.content;
        let wanted = content.wanted_targets();
        if !found.form.takes_targets() {
            let outcomes = unsuited::unsuited_results(found, &processors_of(wanted)?, input.bytes)?;
            return Ok(unchanged_container(all_refusals(&outcomes)));
        }
        let present = targets_of(found)?;
        let wanted: Vec<WantedTarget> = wanted.iter().filter(|row| has_source(&present, row)).cloned().collect();
        if wanted.is_empty() {
            return Ok(unchanged_container(Vec::new()));
        }
        let mut request = self.request(&wanted)?;
        if let OutputContent::Alone(wanted) = content {
            request.drop = vec![wanted.source.parse::<TargetId>()?];
        }
        if !found.form.is_bundle() {
            let made = hotswap_pipeline::retarget_archived(found, &request)?;
            let said = all_refusals(&made.outcomes);
            return Ok(ContainerResult { new: made.bundle.map(FileRope::from), expected: None, said });
        }
        let mut made = hotswap_pipeline::retarget(found.bytes, &request, host)?;
        let mut said = all_refusals(&made.outcomes);
        if !said.is_empty()
            && let Some(SubstitutedBundle { made: again, remarks }) =
                self.made_from_others(found, host, &present, &wanted, &made.outcomes)?
        {
            (made, said) = (again, Vec::new());
            remarks
                .into_iter()
                .for_each(|remark| self.note(remark.in_file(&input.action.input).in_entry(found.place.to_string())));
        }
        said.extend(self.shown_names(found, host, &wanted, &made.outcomes)?);
        Ok(ContainerResult { new: made.draft, expected: made.expected, said })
    }

    /// As the container was made, with code of other GPUs in it for the targets that were refused; `None`
    /// where one still is.
    fn made_from_others<'a>(
        &self,
        found: &FoundContainer<'a>,
        host: &HostPart<'_>,
        present: &[TargetId],
        wanted: &[WantedTarget],
        results: &[TargetOutcome],
    ) -> Result<Option<SubstitutedBundle<'a>>, Diagnostic> {
        if self.settings.names == NameMode::Own {
            return Ok(None);
        }
        let mut request = self.request(wanted)?;
        let SourcePolicy::Only(pairs) = &mut request.sources else { return Ok(None) };
        let mut remarks = Vec::new();
        for row in wanted.iter().filter(|row| is_refused(results, row)) {
            let others = other_sources(&row.target, &row.source, self.settings.experimental);
            for other in others.filter(|other| present.iter().any(|target| target.processor.name == *other)) {
                if hotswap_pipeline::can_stand_in(found.bytes, &row.source, other, host)? {
                    pairs.push(RetargetPair { source: other.to_owned(), target: row.target.clone() });
                }
            }
        }
        let made = hotswap_pipeline::retarget(found.bytes, &request, host)?;
        for outcome in &made.outcomes {
            let row = wanted.iter().find(|row| is_about(outcome, row));
            match (&outcome.result, row) {
                (TargetResult::Refused { .. }, _) => return Ok(None),
                (TargetResult::Made { source, .. }, Some(row)) if row.source != source.name => {
                    remarks.push(other_source_warning(row, source.name));
                }
                _ => {}
            }
        }
        Ok(Some(SubstitutedBundle { made, remarks }))
    }

    /// Whether the host, which sees the source's name, agrees with code that was there before.
    fn shown_names(
        &self,
        found: &FoundContainer<'_>,
        host: &HostPart<'_>,
        wanted: &[WantedTarget],
        outcomes: &[TargetOutcome],
    ) -> Result<Reasons, Diagnostic> {
        let pairs: Vec<RetargetPair> = wanted
            .iter()
            .filter(|row: &&WantedTarget| {
                outcomes.iter().any(|outcome| {
                    is_about(outcome, row) && matches!(outcome.result, TargetResult::There | TargetResult::Covered(_))
                })
            })
            .map(pair_of_row)
            .collect();
        if self.settings.names == NameMode::Own || pairs.is_empty() {
            return Ok(Vec::new());
        }
        let rows = hotswap_pipeline::disagreements_of_shown_names(found.bytes, &pairs, host)?;
        let advice = "leave the library out of --root: it has code for the GPU already";
        Ok(rows.iter().map(|row| Diagnostic::from(row).advise(advice)).collect())
    }
}

/// An action with the bytes of its input.
struct ActionInput<'i> {
    action: &'i Action,
    bytes: &'i [u8],
}

/// A container with code of other GPUs than planned.
struct SubstitutedBundle<'a> {
    made: RetargetedBundle<'a>,
    /// Which code took the place of which.
    remarks: Vec<Diagnostic>,
}

fn processors_of(wanted: &[WantedTarget]) -> Result<Vec<&'static Processor>, Diagnostic> {
    wanted.iter().map(WantedTarget::processor).collect()
}

/// Whether it is the outcome for the target of that row.
fn is_about(outcome: &TargetOutcome, row: &WantedTarget) -> bool {
    outcome.subject.target().is_some_and(|target| target.name == row.target)
}

fn pair_of_row(row: &WantedTarget) -> RetargetPair {
    RetargetPair { source: row.source.clone(), target: row.target.clone() }
}

fn write_checked(order: &OutputRequest<'_>, input: &InputFile, new: &[u8]) -> Result<OutputWay, Reasons> {
    let file = &order.action.input;
    new_file::check_new_bytes(input, new)
        .and_then(|()| (order.before_named)(hash::sha256_of(new)))
        .and_then(|()| hotswap_files::replace_like(order.output, new, file))
        .map_err(|error| reason_in_file(error, file))?;
    Ok(OutputWay::Written)
}

/// The error as the only reason why an output is not made.
fn reason_in_file(error: Diagnostic, file: &Path) -> Reasons {
    vec![error.in_file(file)]
}

fn unchanged_container<'a>(said: Reasons) -> ContainerResult<'a, Reasons> {
    ContainerResult { new: None, expected: None, said }
}

/// Whether a container has code for the source, its own or generic.
fn has_source(present: &[TargetId], row: &WantedTarget) -> bool {
    let Some(source) = hotswap_targets::find_processor(&row.source) else { return false };
    present.iter().any(|target| target.processor == source || target.processor.covers(source))
}

/// The reasons of a target that was not made.
fn refusal_reasons(result: &TargetResult) -> Reasons {
    let advice = "serve it with --names source, so that host part and code agree";
    let by_name = result.disagreements().first();
    result.reasons().iter().cloned().chain(by_name.map(|row| Diagnostic::from(row).advise(advice))).collect()
}

fn all_refusals(results: &[TargetOutcome]) -> Reasons {
    results.iter().flat_map(|outcome| refusal_reasons(&outcome.result)).collect()
}

fn is_refused(results: &[TargetOutcome], row: &WantedTarget) -> bool {
    results.iter().any(|one| is_about(one, row) && matches!(one.result, TargetResult::Refused { .. }))
}

/// A file that names a GPU whose code it does not have.
fn no_code_for(source: &str) -> Diagnostic {
    Diagnostic::error(codes::OTHER_TARGET, format!("its name is for {source}, its code is not"))
}

fn left_out_warning(counts: &DatabaseCounts) -> Diagnostic {
    let what =
        format!("{} of {} kernels fail a check and were left out", counts.left_out, counts.rows + counts.left_out);
    Diagnostic::warning(codes::NOT_SERVED, what).advise("MIOpen compiles what it does not find")
}

/// Bytes of an action's input, for the progress.
pub(crate) fn input_size(action: &Action) -> u64 {
    fs::metadata(&action.input).map_or(0, |meta| meta.len())
}
