//! A directory in the userland in which a test writes files and runs shell scripts.
//!
//! For the tests of the crates, which need compilers and LLVM's tools but no installation of HotSwap.

use crate::{ENV_ROCM, ENV_ROOT, Userland, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A userland, a scratch directory in it, and the installed compilers.
#[derive(Debug)]
pub struct Workbench {
    /// Versions of clang, oldest first.
    pub versions: Vec<u32>,
    userland: Userland,
    directory: TempDir,
}

impl Workbench {
    /// `None` without a userland, after printing the reason.
    ///
    /// # Panics
    /// Where the userland is incomplete.
    pub fn new(test: &str) -> Option<Self> {
        let Some(userland) = Userland::from_env() else {
            skip(test, &format!("{ENV_ROOT} names no userland"));
            return None;
        };
        let versions: Vec<u32> = (22..40).filter(|one| is_clang_installed(one, &userland)).collect();
        assert!(!versions.is_empty(), "{test}: the userland promises a clang of version 22 or later");
        let directory = tempfile::Builder::new().prefix("hotswap-test-").tempdir_in(userland.outside("/tmp"));
        Some(Self { versions, directory: directory.expect("the userland's /tmp is writable"), userland })
    }

    /// The same for tests of one version of LLVM.
    ///
    /// # Panics
    /// Where the userland is incomplete.
    pub fn with_llvm(version: u32, test: &str) -> Option<Self> {
        let bench = Self::new(test)?;
        let is_there = bench.versions.contains(&version);
        if !is_there {
            skip(test, &format!("the userland has no LLVM {version}"));
        }
        is_there.then_some(bench)
    }

    /// The path of the directory on the machine.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a file in it on the machine.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Writes a file.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("scratch is writable");
    }

    /// A file's content.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Deletes a file that is not needed any more, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    /// A program of the userland that runs in the directory.
    pub fn command(&self, program: &str) -> Command {
        let inside = Path::new("/tmp").join(self.directory().file_name().unwrap_or_default());
        self.userland.command(inside, program)
    }

    /// The output of a script that runs in the directory; `$ROCM` is the value of [`ENV_ROCM`].
    ///
    /// # Panics
    /// If the userland lacks a shell.
    pub fn shell(&self, script: &str) -> Output {
        let rocm = std::env::var_os(ENV_ROCM).unwrap_or_default();
        let mut command = self.command("/bin/bash");
        command.args(["-c", script]).env("ROCM", rocm).output().expect("the userland has a shell")
    }

    /// Standard output of a script that must succeed.
    ///
    /// # Panics
    /// If it does not.
    pub fn run(&self, script: &str) -> String {
        let output = self.shell(script);
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script}\n{error}{out}");
        out.into_owned()
    }

    /// Assembles a text: writes `NAME.s` and `NAME.o`, and returns the object. `words` are further arguments of `llvm-mc`.
    ///
    /// # Panics
    /// If the assembler refuses it.
    pub fn assemble(&self, version: u32, words: &str, name: &str, text: &str) -> Vec<u8> {
        self.write(&format!("{name}.s"), text.as_bytes());
        let assembler = tool(version, "llvm-mc");
        self.run(&format!("{assembler} -triple=amdgcn-amd-amdhsa {words} -filetype=obj {name}.s -o {name}.o"));
        self.read(&format!("{name}.o"))
    }

    /// Links `NAME.o` to a code object `NAME.co`, and returns it. `words` are further arguments of `ld.lld`.
    ///
    /// # Panics
    /// If the linker refuses it.
    pub fn link(&self, version: u32, words: &str, name: &str) -> Vec<u8> {
        self.run(&format!("{} -shared {words} {name}.o -o {name}.co", tool(version, "ld.lld")));
        self.read(&format!("{name}.co"))
    }

    /// Builds `lookup`, which asks comgr for a target's code object in a file as the HIP runtime does.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn build_lookup(&self) {
        self.write("lookup.c", include_bytes!("../../comgr/lookup.c"));
        self.run("cc -std=c11 -o lookup lookup.c -lamd_comgr");
    }

    /// LLVM's listing of a file's code. `words` are further arguments of `llvm-objdump`.
    ///
    /// # Panics
    /// If LLVM cannot read it.
    pub fn disassemble(&self, version: u32, words: &str, name: &str) -> String {
        self.run(&format!("{} -d {words} {name}", tool(version, "llvm-objdump")))
    }
}

fn is_clang_installed(version: &u32, userland: &Userland) -> bool {
    userland.outside(format!("/usr/bin/clang-{version}")).symlink_metadata().is_ok()
}

/// The C++ driver of that version as the words of a shell, for HIP without its headers; `$ROCM` is set by [`Workbench::shell`].
pub fn hip_clang(version: u32) -> String {
    // The driver of 22 finds HIP's library by the search path.
    let rocm = if version > 22 { " ${ROCM:+--rocm-path=$ROCM}" } else { "" };
    format!("clang++-{version}{rocm} -nogpuinc")
}

/// The path of a tool of that version of LLVM inside the userland.
pub fn tool(version: u32, name: &str) -> String {
    format!("/usr/lib/llvm-{version}/bin/{name}")
}
