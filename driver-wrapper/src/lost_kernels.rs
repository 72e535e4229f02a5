//! Links of relocatable device code, after the link: the output has the kernels of its units for each processor, or it is
//! removed.
//!
//! Invariant: an output that lacks a kernel is never left there.
//!
//! Absent on purpose: the comparison itself (`hotswap_pipeline::find_lost_kernels`); other compilations, whose fat binaries
//! the interposer compares with the request.

use crate::command::ClangCommand;
use crate::judge::{CommandDecision, CommandJudgement, WithPlan};
use crate::units;
use hotswap_files::reads;
use hotswap_pipeline::{LostKernel, UnitKernels, find_lost_kernels};
use hotswap_plan::Policy;
use hotswap_report::Diagnostic;
use std::fs;
use std::path::{Path, PathBuf};

/// Whether the command's output is compared with its units.
pub fn concerns(judgement: &CommandJudgement) -> bool {
    let is_planned = matches!(judgement.decision, CommandDecision::WithPlan(_));
    is_planned && judgement.command.links_relocatable() && !judgement.command.dry_run
}

/// Compares the output of a successful link with its units.
///
/// # Errors
/// [`hotswap_report::codes::LACKS_GPU`]; [`hotswap_report::codes::CANNOT_READ`], since an output that was not compared is not known
/// to be right. The output was removed then.
pub fn check(command: &ClangCommand, with: &WithPlan) -> Result<(), Diagnostic> {
    let output = output(command);
    let units: Vec<UnitKernels> = units::kernels_of_inputs(command).inspect_err(|_| remove_output(&output))?;
    // Probes of build systems write to /dev/null.
    if units.is_empty() || !reads::is_regular(&output).inspect_err(|_| remove_output(&output))? {
        return Ok(());
    }
    let bytes = hotswap_files::open_input(&output).inspect_err(|_| remove_output(&output))?;
    // Under the other policies a target may be left out.
    let is_strict = matches!(with.plan.policy, Policy::Error | Policy::Compile);
    let planned = with.plan.targets().into_iter().filter(|target| is_strict && is_made(command, with, target));
    let targets: Vec<&str> = planned.collect();
    let lost = find_lost_kernels(&bytes, &units, &targets);
    let Some(first) = lost.first().map(LostKernel::lost_kernel_problem) else { return Ok(()) };
    drop(bytes);
    remove_output(&output);
    Err(first.in_file(&output))
}

/// A device, to which probes of build systems write, stays.
fn remove_output(output: &Path) {
    if fs::symlink_metadata(output).is_ok_and(|meta| !meta.file_type().is_file()) {
        return;
    }
    let _ = fs::remove_file(output);
}

/// A link of the old driver makes code for requested processors alone, and what is derived from it.
fn is_made(command: &ClangCommand, with: &WithPlan, target: &str) -> bool {
    let mut pairs = with.plan.pairs.iter().filter(|pair| pair.target == target);
    command.archs.is_empty()
        || command.requests_processor(target)
        || pairs.any(|pair| command.requests_processor(&pair.source))
}

fn output(command: &ClangCommand) -> PathBuf {
    let directory = command.working_directory.as_ref().map(PathBuf::from).unwrap_or_default();
    directory.join(command.output.as_deref().unwrap_or("a.out".as_ref()))
}
