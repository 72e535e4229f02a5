//! The products of a cargo build, from its messages: programs, shared libraries, test programs, directories of build
//! scripts.

use crate::outcome::{Outcome, fail};
use crate::programs::Program;
use crate::{paths, run};
use cargo_metadata::{Message, TargetKind};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How cargo compiles (profiles of the root Cargo.toml).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For users: link-time optimisation.
    Dist,
    /// For tests: optimised, with debug assertions and overflow checks.
    Checked,
    /// Without optimisation, sooner there.
    Dev,
    /// As the profile dev, with the fewest seconds until a small program is retargeted and emulated.
    Demo,
}

impl Profile {
    /// Its name for cargo.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Checked => "checked",
            Self::Dev | Self::Demo => "dev",
        }
    }

    /// cargo's arguments for it.
    pub(crate) fn arguments(self) -> Vec<&'static str> {
        let mut words = vec!["--profile", self.name()];
        if self == Self::Demo {
            words.extend(["--config", "xtask/demo.toml"]);
        }
        words
    }
}

/// The products of one run of cargo, fresh or up to date.
#[derive(Default)]
pub(crate) struct Built {
    /// Programs that are not tests.
    pub(crate) programs: Vec<PathBuf>,
    /// Libraries that programs load, and archives that they link.
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) tests: Vec<Program>,
    /// Where build scripts leave what they make.
    pub(crate) directories: Vec<PathBuf>,
}

impl Built {
    /// Runs cargo with these words behind its own.
    pub(crate) fn new(mut command: Command, words: &[&str]) -> Outcome<Self> {
        command.args(words);
        Self::of(command, paths::workspace())
    }

    /// Runs this command of cargo in the directory of a workspace.
    pub(crate) fn of(mut command: Command, workspace: &Path) -> Outcome<Self> {
        command.current_dir(workspace).arg("--message-format=json-render-diagnostics");
        println!("$ {}", run::line(&command));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut built = Self::default();
        for message in child.stdout.take().into_iter().flat_map(|pipe| Message::parse_stream(BufReader::new(pipe))) {
            built.see(message?);
        }
        let status = child.wait()?;
        if status.success() { Ok(built) } else { fail(format!("`{}` failed: {status}", run::line(&command))) }
    }

    fn see(&mut self, message: Message) {
        match message {
            Message::CompilerArtifact(artifact) if artifact.profile.test => self.tests.extend(Program::of(&artifact)),
            Message::CompilerArtifact(artifact) => {
                if artifact.target.kind.iter().any(is_c_library_kind) {
                    self.libraries.extend(artifact.filenames.into_iter().map(PathBuf::from));
                }
                self.programs.extend(artifact.executable.map(PathBuf::from));
            }
            Message::BuildScriptExecuted(script) => self.directories.push(script.out_dir.into()),
            _ => {}
        }
    }
}

fn is_c_library_kind(kind: &TargetKind) -> bool {
    [TargetKind::CDyLib, TargetKind::StaticLib].contains(kind)
}
