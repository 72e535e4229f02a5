//! Outputs that were made apart, which a run takes where they are those that it would make.
//!
//! Invariant: an output is taken only where its record is that of the run's own action and its content is the recorded one;
//! others are made as ever, and one warning counts them.

use crate::hash;
use crate::made::{MadeRecord, SingleAction};
use crate::output::{OutputRequest, OutputWay};
use crate::plan::ServeRequest;
use hotswap_files::InputFile;
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory with outputs that were made apart.
pub(crate) struct MadeOutputs {
    directory: PathBuf,
    settings: ServeRequest,
    /// The outputs that are not there, or are not those of the run.
    not_taken: Mutex<Vec<PathBuf>>,
}

impl MadeOutputs {
    pub(crate) fn new(directory: &Path, settings: &ServeRequest) -> Self {
        Self { directory: directory.to_owned(), settings: settings.clone(), not_taken: Mutex::default() }
    }

    /// Takes an output, where it is the one of the request.
    ///
    /// # Errors
    /// The action's input cannot be read, or the output not be written.
    pub(crate) fn take(&self, order: &OutputRequest<'_>) -> Result<Option<OutputWay>, Diagnostic> {
        let Some(single) = SingleAction::of_plan_action(order.action, &self.settings) else { return Ok(None) };
        let made = self.directory.join(&order.action.output);
        let Some(RecordedOutput { record, content }) = recorded(&made, &single)? else {
            self.not_taken.lock().unwrap_or_else(PoisonError::into_inner).push(order.action.output.clone());
            return Ok(None);
        };
        if record.is_copy {
            return Ok(Some(OutputWay::Unchanged));
        }
        (order.before_named)(record.sha256)?;
        hotswap_files::replace_like(order.output, &content, &order.action.input)?;
        Ok(Some(OutputWay::Written))
    }

    /// A warning about the outputs that the run made itself.
    pub(crate) fn warning(&self) -> Option<Diagnostic> {
        let mut paths = std::mem::take(&mut *self.not_taken.lock().unwrap_or_else(PoisonError::into_inner));
        paths.sort();
        let first = paths.first()?;
        let what = match paths.len() {
            1 => "it is not there, or is not the one that this run makes; it was made anew".to_owned(),
            count => format!(
                "it and {} others are not there, or are not those that this run makes; they were made anew",
                count - 1
            ),
        };
        Some(Diagnostic::warning(codes::NOT_TAKEN, what).in_file(self.directory.join(first)))
    }
}

/// An output that was made before.
struct RecordedOutput {
    record: MadeRecord,
    content: InputFile,
}

/// The output, where record and content are those of the action.
fn recorded(made: &Path, single: &SingleAction) -> Result<Option<RecordedOutput>, Diagnostic> {
    let action = single.action_hash()?;
    let Some(record) = MadeRecord::read(made).filter(|record| record.action == action) else { return Ok(None) };
    let Some(content) = made.is_file().then(|| hotswap_files::open_input(made).ok()).flatten() else { return Ok(None) };
    let sha256 = hash::of_input(&content);
    let is_true = !record.is_copy || sha256 == hash::of_file(&single.input)?;
    Ok((sha256 == record.sha256 && is_true).then_some(RecordedOutput { record, content }))
}
