//! A userland in use: its mounts, and commands inside.
//!
//! `HOTSWAP_TEST_ROOT` sets a root directory by hand; otherwise it is the one that `setup` finds or builds.

use crate::outcome::{During, Outcome, fail};
use crate::recipe::{self, Part};
use crate::{paths, rocm, setup};
use hotswap_userland::{ENV_PREFIX, ENV_ROCM, ENV_ROOT, Mount, Namespace, PREFIX, ROCM_DIRECTORY, SOURCE, Userland};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of the session's own directory inside.
const WORK: &str = "/mnt/work";

/// A userland with its mounts. Holds a shared lock: no other task removes the directory meanwhile.
pub(crate) struct Session {
    pub(crate) userland: Userland,
    namespace: Namespace,
    /// HotSwap's installation, as a path inside.
    pub(crate) prefix: PathBuf,
    /// The workspace, as a path inside.
    pub(crate) source: PathBuf,
    /// A writable directory, kept after the session, as a path inside.
    pub(crate) work: PathBuf,
    _lock: File,
}

impl Session {
    /// Opens the userland with this part, built now where needed. `prefix` and `work` are the machine's directories.
    pub(crate) fn open(part: Part, prefix: &Path, work: &Path) -> Outcome<Self> {
        let (userland, lock) = setup::ensure(part)?;
        for directory in [prefix, work] {
            fs::create_dir_all(directory).during("create", directory)?;
        }
        let machine = userland.is_machine();
        let mut namespace = userland.namespace();
        if !machine {
            namespace = namespace
                .with(Mount::Bind { source: prefix.to_owned(), target: target_outside_path(PREFIX, &userland) })
                .with(Mount::Bind { source: work.to_owned(), target: target_outside_path(WORK, &userland) })
                .with(Mount::ReadOnly {
                    source: paths::workspace().to_owned(),
                    target: target_outside_path(SOURCE, &userland),
                });
        }
        Ok(Self {
            prefix: path_inside_session(prefix, PREFIX, machine),
            source: path_inside_session(paths::workspace(), SOURCE, machine),
            work: path_inside_session(work, WORK, machine),
            userland,
            namespace,
            _lock: lock,
        })
    }

    /// The clang that builds HIP programs here without further arguments, as a path inside.
    pub(crate) fn clang(&self) -> Option<PathBuf> {
        if self.userland.is_machine() {
            return rocm::search().found.map(|native| native.clang);
        }
        self.userland.outside(recipe::CLANG).exists().then(|| recipe::CLANG.into())
    }

    /// A command inside; HotSwap's programs are on its `PATH`.
    pub(crate) fn inside(&self, cwd: &Path, program: &str) -> Command {
        let mut command = self.userland.command(cwd, program);
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
        let path = path.unwrap_or_default().to_string_lossy().into_owned();
        command.env("PATH", format!("{}:{path}", self.prefix.join("bin").display()));
        if self.userland.is_machine() { command } else { self.namespace.wrap(&command) }
    }

    /// Prints the command as typed inside, and runs it.
    pub(crate) fn show(&self, cwd: &Path, words: &[&str]) -> Outcome {
        let line = shell_words::join(words);
        println!("$ {line}");
        let status = self.inside(cwd, words[0]).args(&words[1..]).stdin(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { fail(format!("`{line}` failed: {status}")) }
    }

    /// A command of the machine which sees the mounts and is told where the userland is.
    pub(crate) fn beside(&self, program: impl Into<OsString>) -> Command {
        let mut command = self.namespace.command(program);
        command.env(ENV_ROOT, self.userland.root()).env(ENV_PREFIX, &self.prefix);
        let rocm = if self.userland.outside(ROCM_DIRECTORY).exists() { ROCM_DIRECTORY } else { "" };
        command.env(ENV_ROCM, rocm);
        command
    }
}

fn path_inside_session(outside: &Path, seen: &str, machine: bool) -> PathBuf {
    if machine { outside.to_owned() } else { seen.into() }
}

fn target_outside_path(seen: &str, userland: &Userland) -> PathBuf {
    userland.outside(seen)
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let mut words: Vec<&str> = words.iter().skip(1).map(String::as_str).skip_while(|word| *word == "--").collect();
    if matches!(words.first(), Some(&("--help" | "-h"))) {
        println!(
            "Usage: cargo xtask shell [COMMAND…]\n\nRuns the command, or a shell, inside the userland. \
             HotSwap's last installation for tests is {PREFIX}, the sources are {SOURCE}, and {WORK} is kept \
             in the target directory."
        );
        return Ok(());
    }
    let session = Session::open(Part::Base, &paths::scratch("prefix"), &paths::scratch("work"))?;
    if words.is_empty() {
        words = vec!["/bin/bash", "-i"];
    }
    let mut command = session.inside(&session.work, words[0]);
    command.args(&words[1..]);
    if let Some(terminal) = std::env::var_os("TERM") {
        command.env("TERM", terminal);
    }
    let status = command.status()?;
    if status.success() { Ok(()) } else { fail(format!("`{}`: {status}", words.join(" "))) }
}
