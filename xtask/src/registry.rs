//! The crates that the workspace is made of: downloaded first, then read.
//!
//! Invariants: whatever needs the crates of `Cargo.lock` asks here, and they are downloaded before it is answered. A machine
//! on which nothing was ever built lacks them, and a build only downloads those it compiles. So no other file may
//! tell cargo to do without the network, which `tidy` checks.
//!
//! Absent on purpose: the choice of a registry, which is that of cargo's own configuration.

use crate::outcome::{Outcome, fail};
use crate::{paths, run};
use cargo_metadata::{Metadata, MetadataCommand};
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Ways to tell cargo to do without the network.
const WITHOUT_NETWORK: &[&str] = &["--offline", "--frozen", "CARGO_NET_OFFLINE"];

/// Downloads the crates of a workspace's lock file that this machine's programs, tests and tasks need; at once where they are there.
pub(crate) fn fetch(workspace: &Path) -> Outcome {
    static FETCHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut fetched = FETCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if fetched.contains(workspace) {
        return Ok(());
    }
    let mut command = Command::new(paths::cargo());
    command.current_dir(workspace).args(["fetch", "--locked", "--target", &host_target()]);
    if let Err(failure) = run::output(&mut command) {
        return fail(format!(
            "the crates of Cargo.lock cannot be downloaded, and nothing was built: cargo needs the network, or a registry in its \
             configuration (`[source]` in ~/.cargo/config.toml)\n{failure}"
        ));
    }
    fetched.insert(workspace.to_owned());
    Ok(())
}

/// The packages of a workspace and all crates that this machine's programs, tests and tasks need.
pub(crate) fn metadata(workspace: &Path) -> Outcome<Metadata> {
    fetch(workspace)?;
    // Without the network: what `fetch` missed is a failure on every machine, and the answer does not change meanwhile.
    let words = ["--offline", "--locked", "--filter-platform", &host_target()].map(str::to_owned);
    Ok(MetadataCommand::new().current_dir(workspace).other_options(words).exec()?)
}

/// The directory of downloaded crates, where cargo's home directory is known.
pub(crate) fn directory() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"))).map(|home| home.join("registry"))
}

/// The platform that cargo builds for.
fn host_target() -> String {
    format!("{}-unknown-linux-gnu", env::consts::ARCH)
}

/// Lines of a task or job that tell cargo to do without the network. Tests of crates run after a build, which has them all.
pub(crate) fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    let is_checked = name.starts_with("xtask/") || name.starts_with(".ci/") || name.starts_with(".cargo/");
    if !is_checked || name == "xtask/src/registry.rs" {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for word in WITHOUT_NETWORK.iter().filter(|word| line.contains(*word)) {
            let advice = "a machine may have no crates yet: use crate::registry";
            complaints.push(format!("{name}:{}: `{word}`: {advice}", number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_task_that_does_without_the_network_is_complained_about() {
        for word in WITHOUT_NETWORK {
            let mut complaints = Vec::new();
            check_text("xtask/src/licences.rs", &format!("//! Purpose.\nlet words = [\"{word}\"];\n"), &mut complaints);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
            assert!(complaints[0].starts_with("xtask/src/licences.rs:2: "), "{complaints:?}");
            check_text("crates/retarget/families/tests/listed.rs", word, &mut complaints);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
        }
    }

    /// A workspace with one crate that no registry has: the sentence comes before any build, and names the crate.
    #[test]
    fn crates_that_cannot_be_had_are_one_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = "[package]\nname = \"x\"\nversion = \"1.0.0\"\n[lib]\npath = \"lib.rs\"\n[dependencies]\nabsent-crate = { path = \"absent\" }\n";
        fs::write(directory.path().join("Cargo.toml"), manifest).unwrap();
        fs::write(directory.path().join("lib.rs"), "").unwrap();
        let failure = metadata(directory.path()).unwrap_err().to_string();
        assert!(
            failure.starts_with("the crates of Cargo.lock cannot be downloaded, and nothing was built"),
            "{failure}"
        );
        assert!(failure.contains("absent-crate"), "{failure}");
    }
}
