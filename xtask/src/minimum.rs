//! The oldest Rust compiler that builds the workspace: `rust-version` in Cargo.toml is at least that of every crate for
//! this platform, those of the tasks and tests included. The job `.ci/msrv` builds with it.

use crate::outcome::{Outcome, fail};
use crate::{paths, registry};

/// Crates that need a newer compiler than the workspace promises.
pub(crate) fn complaints() -> Outcome<Vec<String>> {
    let metadata = registry::metadata(paths::workspace())?;
    let own = metadata.workspace_packages();
    let Some(promised) = own.iter().find_map(|package| package.rust_version.clone()) else {
        return fail("the workspace has no rust-version");
    };
    let newer = metadata.packages.iter().filter_map(|package| {
        let needed = package.rust_version.as_ref().filter(|needed| **needed > promised)?;
        Some(format!("{} {} needs Rust {needed}, and rust-version is {promised}", package.name, package.version))
    });
    Ok(newer.collect())
}
