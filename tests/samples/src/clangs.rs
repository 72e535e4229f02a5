//! Finds real compilers for tests, and runs a script in their environment.
//!
//! They are those of the userland (`HOTSWAP_TEST_ROOT`, see `hotswap-userland`), or the one in the directory that
//! `HOTSWAP_TEST_LLVM_BIN` names. Without either there is nothing to compare with; the test prints that and ends.

use hotswap_userland::{ENV_ROOT, Userland, skip};
use std::path::{Path, PathBuf};

/// Names a directory with `clang` in it, on the machine itself.
const ENV_LLVM_BIN: &str = "HOTSWAP_TEST_LLVM_BIN";
/// Oldest version that these tests are written for.
const OLDEST: u32 = 22;

/// One compiler.
pub struct Clang {
    /// The command by which the scripts call it.
    pub command: String,
    /// Major version.
    pub version: u32,
    userland: Userland,
}

/// Every available compiler, newest first; prints the reason on standard error if there is none.
pub fn clangs(test: &str) -> Vec<Clang> {
    let bin = std::env::var_os(ENV_LLVM_BIN).filter(|bin| !bin.is_empty()).map(PathBuf::from);
    let found = match (Userland::from_env(), bin) {
        (Some(userland), _) => in_userland(&userland),
        (None, Some(bin)) => one(&Userland::new("/"), &bin.join("clang").display().to_string()).into_iter().collect(),
        (None, None) => {
            skip(test, &format!("neither {ENV_ROOT} nor {ENV_LLVM_BIN} names a compiler"));
            return Vec::new();
        }
    };
    assert!(!found.is_empty(), "{test}: the environment promises clang {OLDEST} or later, and there is none");
    found
}

fn in_userland(userland: &Userland) -> Vec<Clang> {
    let versioned = (OLDEST..40).rev().map(|version| format!("clang-{version}"));
    let found: Vec<Clang> = versioned.filter_map(|command| one(userland, &command)).collect();
    let other = || ["clang", "/opt/rocm/llvm/bin/clang"].iter().find_map(|command| one(userland, command));
    if found.is_empty() { other().into_iter().collect() } else { found }
}

fn one(userland: &Userland, command: &str) -> Option<Clang> {
    let script = "command -v \"$0\" > /dev/null && \"$0\" -dumpversion";
    let output = userland.command("/", "bash").args(["-c", script, command]).output().expect("the shell starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split('.').next()?.trim().parse().ok().filter(|version| *version >= OLDEST)?;
    Some(Clang { command: command.to_owned(), version, userland: userland.clone() })
}

impl Clang {
    /// A new scratch directory that the compiler can see.
    pub fn scratch(&self) -> tempfile::TempDir {
        let parent = self.userland.outside("/tmp");
        tempfile::Builder::new().prefix("hotswap-test-").tempdir_in(parent).expect("scratch directory")
    }

    /// Runs a script with that scratch directory as its working directory and `$CLANG` set; returns its standard output.
    pub fn run(&self, directory: &Path, script: &str) -> String {
        let inside = Path::new("/tmp").join(directory.file_name().expect("a scratch directory"));
        let script = format!("set -e; CLANG='{}'; {script}", self.command);
        let output = self.userland.command(inside, "bash").args(["-c", &script]).output().expect("the shell starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} failed: {error}", self.command);
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}
