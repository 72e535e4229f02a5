//! Clang as a child process, where something is known only after its run.
//!
//! Invariant: the exit code is that of clang, or of its last run; only outputs of a run that succeeded are completed.
//!
//! Absent on purpose: when this process becomes clang instead ([`crate::exec`]).

use crate::answers::Consequences;
use crate::command_parts::CommandParts;
use crate::compile_refused::{self, Attempts};
use crate::dependencies::DependencyOutput;
use crate::exec::run_clang;
use crate::judge::{CommandDecision, CommandJudgement};
use crate::profile_use::ProfileUse;
use crate::source_text::IncludedFiles;
use crate::{RemainingWork, lost_kernels, unit_plans};
use hotswap_plan::TextFindings;
use hotswap_report::Diagnostic;
use std::path::Path;
use std::process;

/// Clang as a child, once for each state of the cache directory.
pub(crate) struct CompilerRun<'r> {
    pub(crate) judgement: &'r CommandJudgement,
    pub(crate) asked: &'r Consequences,
    pub(crate) used: Option<&'r ProfileUse>,
    /// The consequences of further findings.
    pub(crate) ask: &'r dyn Fn(&TextFindings) -> Result<Consequences, Diagnostic>,
    pub(crate) warn: &'r dyn Fn(&str),
}

impl CompilerRun<'_> {
    /// Whether it is known only afterwards that clang has to run once more, or what is to be said about its run.
    pub(crate) fn may_repeat(&self, parts: &CommandParts) -> bool {
        let is_link = !parts.cached_files.is_empty() && !compile_refused::reads_standard_input(&self.judgement.command);
        compile_refused::concerns(self.judgement) || self.used.is_some() || is_link
    }

    /// The exit code of clang, or of the last attempt.
    pub(crate) fn run(&self, parts: &CommandParts) -> Result<i32, Diagnostic> {
        if compile_refused::concerns(self.judgement) {
            let attempts = Attempts { parts, ask: self.ask, used: self.used, warn: self.warn };
            return attempts.run(self.asked.clone());
        }
        let launch = parts.launch(self.asked);
        match self.used {
            Some(used) => used.run(launch, run_clang, self.warn),
            None => run_clang(&launch),
        }
    }

    /// A file of a cache that was deleted while clang, which failed, ran.
    ///
    /// # Errors
    /// The file cannot be looked for.
    pub(crate) fn deleted_file<'p>(&self, parts: &'p CommandParts, code: i32) -> Result<Option<&'p Path>, Diagnostic> {
        match code == 0 || compile_refused::reads_standard_input(&self.judgement.command) {
            true => Ok(None),
            false => parts.deleted_file(),
        }
    }
}

/// Units get their marks, and links are compared with their units.
pub(crate) fn complete_output(judgement: &CommandJudgement, code: i32) -> Result<(), Diagnostic> {
    let CommandDecision::WithPlan(plan) = &judgement.decision else { return Ok(()) };
    if code == 0 && unit_plans::concerns(judgement) {
        unit_plans::mark_outputs(&judgement.command, plan)?;
    } else if code == 0 && lost_kernels::concerns(judgement) {
        lost_kernels::check(&judgement.command, plan)?;
    }
    Ok(())
}

/// Ends this process as clang ended, with dependencies on all files that its sources read.
///
/// # Errors
/// Those of the dependency file.
pub(crate) fn end(
    code: i32,
    dependencies: Option<&DependencyOutput>,
    files: &IncludedFiles,
) -> Result<RemainingWork, Diagnostic> {
    if let Some(output) = dependencies.filter(|_| code == 0) {
        output.complete_file(files)?;
    }
    process::exit(code)
}
