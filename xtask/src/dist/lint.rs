//! The packages as lintian and rpmlint judge them: no error and no warning. The RPM is made by `packaging/rpm/hotswap.spec` of the
//! installation that the Debian packages are made of.
//!
//! Both run in the root directory of [`super::maintained`].

use super::maintained::{self, Overlay};
use crate::outcome::{Outcome, fail};
use crate::{libdir, paths, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = include_str!("lint.sh");

/// Where the RPM has libraries for programs.
const LIBDIR: &str = "lib64";

/// Judges the Debian packages among these, and an RPM of the installation.
pub(super) fn judge_packages(packages: &[PathBuf], stage: &Path) -> Outcome {
    if !stage.join("bin/hotswap").exists() {
        return fail(format!("{} is missing: make the packages without --no-build", stage.display()));
    }
    let overlay = Overlay::prepare("dist-lint")?;
    maintained::copy_packages(packages, &overlay.shared)?;
    let copy = overlay.shared.join("stage");
    run::output(Command::new("cp").arg("-a").arg(stage).arg(&copy))?;
    libdir::move_libraries(&copy, Path::new(LIBDIR))?;
    run::output(Command::new("cp").arg("-a").arg(paths::workspace().join("packaging/rpm")).arg(&overlay.shared))?;
    overlay.run(SCRIPT)?;
    overlay.remove()
}
