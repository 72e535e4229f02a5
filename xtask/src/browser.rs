//! A browser for the tests of pages: the machine's, or Debian's headless one, installed once.

use crate::outcome::{Outcome, fail};
use crate::userland;
use hotswap_userland::ENV_BROWSER;
use std::path::PathBuf;
use std::process::Command;

/// Programs that serve, and Debian's package of the first one (100 MB).
const PROGRAMS: &[&str] = &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// Sets the variable of a command for the browser of tests.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    if find().is_none() && rustix::process::geteuid().is_root() {
        userland::install(&PROGRAMS[..1])?;
    }
    let Some(program) = find() else { return fail("install chromium-headless-shell, or Chromium") };
    command.env(ENV_BROWSER, program);
    Ok(())
}

fn find() -> Option<PathBuf> {
    PROGRAMS.iter().find_map(|program| which::which(program).ok())
}
