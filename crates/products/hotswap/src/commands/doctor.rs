//! `hotswap doctor`: examines the tool chain that a build through HotSwap would use.
//!
//! | module | task |
//! | --- | --- |
//! | `parts` | the table of the parts and of the packages that have them |
//! | `examine` | the examination of each part |
//! | `caches` | compiler caches and their keys |
//! | `warm_headers` | precompiled headers in the user's cache |
//! | `libraries` | libraries in the file system |
//! | `versions` | versions in the output of tools |
//! | `show` | the report |
//! | `sources` | the test programs |
//!
//! Invariants: nothing is changed outside a scratch directory; the exit code is 0 only if a HIP program was compiled and linked.
//! A part of which something could not be read is neither good nor missing, and is an error with the system's reason.
//!
//! Absent on purpose: installing anything, and the search for a compiler, which `hotswap-clang` does itself.

mod caches;
mod examine;
mod libraries;
mod parts;
mod show;
mod sources;
mod versions;
mod warm_headers;

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::work::probe;
use crate::work::temporary::check_temporary_directory;
use examine::Examination;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};

/// More than the temporary files of one small program, and less than a build needs.
const COMPILER_FILES: usize = 16 << 20;

pub(crate) fn run(output: &OutputOptions) -> Result<CommandOutcome, Diagnostic> {
    check_temporary_directory(COMPILER_FILES)?;
    let scratch = ScratchDirectory::temporary("hotswap-doctor-")?;
    sources::write(scratch.path()).map_err(|error| Diagnostic::cannot_write(scratch.path(), error))?;
    let prefix = probe::prefix()?;
    let mut reports = Examination { prefix: &prefix, scratch: scratch.path() }.run();
    let text = match output.format {
        OutputFormat::Text => show::text(&reports),
        OutputFormat::Json => show::json(&reports),
    };
    let mut problems: Vec<Diagnostic> = reports.iter_mut().filter_map(|report| report.unread.take()).collect();
    let lacking = show::lacking(&reports);
    if problems.is_empty() && !lacking.is_empty() {
        problems.push(Diagnostic::error(codes::TOOLCHAIN, lacking.join(", ")));
    }
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}
