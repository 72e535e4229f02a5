//! Programs of the userland: their paths, their start, a directory that both sides see.

use hotswap_userland::{Inherit, Userland, expression};
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// The userland with a scratch directory in its `/tmp`.
#[derive(Debug)]
pub struct Tools {
    userland: Userland,
    directory: tempfile::TempDir,
}

impl Tools {
    /// The userland that `cargo xtask` prepared; `None` without one.
    ///
    /// # Errors
    /// If the userland's `/tmp` cannot be written.
    pub fn from_env() -> io::Result<Option<Self>> {
        let Some(userland) = Userland::from_env() else { return Ok(None) };
        let directory = tempfile::Builder::new().prefix("hotswap-isa-exam-").tempdir_in(userland.outside("/tmp"))?;
        Ok(Some(Self { userland, directory }))
    }

    /// The path of a file in the scratch directory on the machine.
    pub fn outside(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// The path of a file in the scratch directory inside the userland.
    pub fn inside(&self, name: &str) -> String {
        let directory = self.directory.path().file_name().unwrap_or_default();
        Path::new("/tmp").join(directory).join(name).display().to_string()
    }

    /// Whether the userland has that program or file.
    pub fn has(&self, inside: &str) -> bool {
        self.userland.outside(inside).exists()
    }

    /// A command inside the userland, in the scratch directory.
    pub fn command(&self, program: &str) -> Command {
        self.userland.command(self.inside("."), program)
    }

    /// Runs a command to its end with that standard input.
    ///
    /// # Errors
    /// If it cannot be started. Its exit code is left to the caller.
    pub fn run(&self, words: &[&str], input: &[u8]) -> io::Result<Output> {
        let (program, words) = words.split_first().unwrap_or((&"true", &[]));
        let mut command = self.command(program);
        command.args(words);
        // A program may end without having read everything.
        expression(&command, Inherit::Nothing).stdin_bytes(input).stdout_capture().stderr_capture().run()
    }

    /// Path of LLVM's library of that version, as seen inside.
    pub fn library(&self, version: u32) -> Option<String> {
        let directories = [format!("/usr/lib/llvm-{version}/lib"), "/usr/lib/x86_64-linux-gnu".to_owned()];
        let names = [format!("libLLVM-{version}.so"), "libLLVM.so".to_owned()];
        let all = directories.iter().flat_map(|directory| names.iter().map(move |name| format!("{directory}/{name}")));
        all.into_iter().find(|path| path.contains(&version.to_string()) && self.is_there(path))
    }

    /// Links are absolute inside, so the machine cannot follow all of them.
    fn is_there(&self, inside: &str) -> bool {
        self.userland.outside(inside).symlink_metadata().is_ok()
    }
}
