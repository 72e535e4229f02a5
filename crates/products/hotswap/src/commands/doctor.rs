//! `hotswap doctor`: examines the tool chain that a build through HotSwap would use ([`hotswap_toolchain::examine`]).
//!
//! Invariants: nothing is changed outside a scratch directory; the exit code is 0 only if a HIP program was compiled and linked.
//! A part of which something could not be read is neither good nor missing, and is an error with the system's reason.
//!
//! Absent on purpose: installing anything, and the search for a compiler, which `hotswap-clang` does itself.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes, text};
use hotswap_toolchain::temporary::check_temporary_directory;
use hotswap_toolchain::{examination_report, examine_toolchain, lacking_parts, probe};

/// More than the temporary files of one small program, and less than a build needs.
const COMPILER_FILES: usize = 16 << 20;

pub(crate) fn run(output: &OutputOptions) -> Result<CommandOutcome, Diagnostic> {
    check_temporary_directory(COMPILER_FILES)?;
    let scratch = ScratchDirectory::temporary("hotswap-doctor-")?;
    let prefix = probe::prefix()?;
    let mut reports = examine_toolchain(&prefix, scratch.path())?;
    let shown = match output.format {
        OutputFormat::Text => examination_report::to_text(&reports),
        OutputFormat::Json => text::json(&examination_report::to_json(&reports)),
    };
    let mut problems: Vec<Diagnostic> = reports.iter_mut().filter_map(|report| report.unread.take()).collect();
    let lacking = lacking_parts(&reports);
    if problems.is_empty() && !lacking.is_empty() {
        problems.push(Diagnostic::error(codes::TOOLCHAIN, lacking.join(", ")));
    }
    Ok(CommandOutcome { text: shown, problems, ..CommandOutcome::default() })
}
