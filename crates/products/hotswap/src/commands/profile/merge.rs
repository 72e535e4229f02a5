//! `hotswap profile merge`: raw profiles into one merged profile.

use super::{Merge, gather};
use crate::outcome::CommandOutcome;
use hotswap_coverage::{llvm_tools, merge_profiles};
use hotswap_report::Diagnostic;

pub(super) fn run(arguments: &Merge) -> Result<CommandOutcome, Diagnostic> {
    let which = &arguments.profiles;
    let gathered = gather(&arguments.files, which, which.target.as_deref())?;
    let llvms = llvm_tools::find_llvms(&which.llvm_bin)?;
    let mut problems = gathered.problems;
    problems.extend(merge_profiles(&gathered.profiles, &llvms, &arguments.output, which.failure_mode.into())?);
    Ok(CommandOutcome { problems, ..CommandOutcome::default() })
}
