//! The sources as a distribution gets them: a tree without a repository, all of whose files have the time of the last commit, and
//! the crates of `Cargo.lock` in a directory of it (`cargo vendor`).
//!
//! Invariant: what is built there needs neither a network nor cargo's own directory of downloaded crates.

use crate::outcome::{During, Outcome};
use crate::{paths, registry, run, sources};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The directory of the crates.
const VENDORED: &str = "vendored";

/// Unpacks the sources of the workspace with the changes to them, and the crates, in a directory.
pub(super) fn unpack(directory: &Path, epoch: &str) -> Outcome {
    fs::create_dir_all(directory).during("create", directory)?;
    let list = directory.with_extension("list");
    fs::write(&list, sources::tracked_files(paths::workspace())?.join("\0")).during("write", &list)?;
    let archive = directory.with_extension("tar");
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&archive).arg(format!("--mtime=@{epoch}")).arg("-C").arg(paths::workspace());
    run::output(pack.args(["--null", "--verbatim-files-from", "-T"]).arg(&list))?;
    run::output(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(directory))?;
    for file in [&list, &archive] {
        fs::remove_file(file).during("delete", file)?;
    }
    vendor_crates(directory)
}

/// Adds the crates to a tree of sources, and cargo's settings for them.
pub(super) fn vendor_crates(directory: &Path) -> Outcome {
    registry::fetch(directory)?;
    let mut vendor = Command::new(paths::cargo());
    let settings = run::output(vendor.args(["vendor", "--locked", VENDORED]).current_dir(directory))?;
    let file = directory.join(".cargo/config.toml");
    let old = fs::read_to_string(&file).during("read", &file)?;
    fs::write(&file, format!("{old}\n{settings}")).during("write", &file)
}
