//! Finds real compilers for tests, and runs a script where they live.
//!
//! `HOTSWAP_TEST_ROOT` names a root folder with `/usr/bin/clang-NN` in it (entered by chroot),
//! `HOTSWAP_TEST_LLVM_BIN` a folder with `clang` in it. Without either there is nothing to compare
//! with; the test says so and ends.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One compiler.
pub(crate) struct Clang {
    /// How the scripts call it.
    pub(crate) command: String,
    /// Major version.
    #[allow(dead_code, reason = "not every test that includes this file asks")]
    pub(crate) version: u32,
    root: Option<PathBuf>,
}

/// Every compiler that can be reached, newest first; says on standard error why there is none.
pub(crate) fn clangs(test: &str) -> Vec<Clang> {
    let found = match (var("HOTSWAP_TEST_ROOT"), var("HOTSWAP_TEST_LLVM_BIN")) {
        (Some(root), _) => in_root(&root),
        (None, Some(bin)) => in_bin(&bin),
        (None, None) => {
            eprintln!("{test}: skipped, neither HOTSWAP_TEST_ROOT nor HOTSWAP_TEST_LLVM_BIN names a compiler");
            return Vec::new();
        }
    };
    assert!(!found.is_empty(), "{test}: the environment promises a clang of version 22 or later, and there is none");
    found
}

fn var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn in_root(root: &Path) -> Vec<Clang> {
    let there = |version: &u32| root.join(format!("usr/bin/clang-{version}")).symlink_metadata().is_ok();
    let clang = |version| Clang { command: format!("clang-{version}"), version, root: Some(root.to_owned()) };
    (22..40).rev().filter(there).map(clang).collect()
}

fn in_bin(bin: &Path) -> Vec<Clang> {
    let command = bin.join("clang").display().to_string();
    let Ok(output) = Command::new(&command).arg("-dumpversion").output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split('.').next().and_then(|major| major.trim().parse().ok()).unwrap_or(0);
    if version < 22 { Vec::new() } else { vec![Clang { command, version, root: None }] }
}

impl Clang {
    /// A new scratch folder that the compiler can see.
    pub(crate) fn scratch(&self) -> tempfile::TempDir {
        let parent = self.root.as_ref().map_or_else(std::env::temp_dir, |root| root.join("tmp"));
        tempfile::Builder::new().prefix("hotswap-test-").tempdir_in(parent).expect("scratch folder")
    }

    /// Runs a script with that folder as its working folder and `$CLANG` set; gives its standard output.
    pub(crate) fn run(&self, folder: &Path, script: &str) -> String {
        let inside = match &self.root {
            Some(root) => Path::new("/").join(folder.strip_prefix(root).expect("the scratch folder lies in the root")),
            None => folder.to_owned(),
        };
        let script = format!("set -e; cd '{}'; CLANG='{}'; {script}", inside.display(), self.command);
        let mut command = match &self.root {
            Some(root) => {
                let mut chroot = Command::new("chroot");
                chroot.arg(root).arg("bash");
                chroot
            }
            None => Command::new("bash"),
        };
        let output = command.args(["-c", &script]).output().expect("the shell starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} failed: {error}", self.command);
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}
