//! The place of this program, by which it finds the rest of its installation.
//!
//! Absent on purpose: a guess (by the name that the program was started by) where the system does not say it: the files beside another
//! program of that name may be of another version.

use crate::reads;
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::path::{Path, PathBuf};

/// The directory of this process in `/proc`.
const OWN_PROCESS: &str = "/proc/self";

/// The path of this program.
///
/// # Errors
/// [`codes::NO_PROC`]; [`codes::NO_INSTALL`] with the system's reason.
pub fn own_program() -> Result<PathBuf, Diagnostic> {
    env::current_exe().map_err(|error| {
        no_proc().unwrap_or_else(|| Diagnostic::error(codes::NO_INSTALL, format!("own path: {error}")))
    })
}

/// The error of what needs `/proc`, where it is not mounted.
pub fn no_proc() -> Option<Diagnostic> {
    let is_missing = matches!(reads::is_there(Path::new(OWN_PROCESS)), Ok(false));
    is_missing.then(|| Diagnostic::error(codes::NO_PROC, format!("{OWN_PROCESS} does not exist")))
}
