//! Directories of the workspace and of the machine. No other file decides about locations.

use crate::outcome::{Outcome, fail};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

/// Cargo's target directory, as cargo itself resolves it.
pub(crate) fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let metadata =
            cargo_metadata::MetadataCommand::new().manifest_path(workspace().join("Cargo.toml")).no_deps().exec();
        metadata.map_or_else(|_| workspace().join("target"), |metadata| metadata.target_directory.into())
    })
}

/// Directory for outputs of tasks: installations for tests, the demo's build.
pub(crate) fn scratch(name: &str) -> PathBuf {
    target().join("xtask").join(name)
}

/// HotSwap's cache directory, which survives clones.
pub(crate) fn cache() -> Outcome<PathBuf> {
    match hotswap_files::cache_dir() {
        Some(directory) => Ok(directory),
        None => fail("no cache directory: neither XDG_CACHE_HOME nor HOME is an absolute path"),
    }
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
