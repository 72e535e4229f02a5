//! The parts of the real compiler's command, from which it is put together for each answer about the sources.
//!
//! Invariant: the command is a pure function of the parts and the answers.
//!
//! Absent on purpose: deciding what is added.

use crate::answers::Consequences;
use crate::exec::{Env, LaunchCommand};
use crate::words::ClangArgument;
use hotswap_files::reads;
use hotswap_plan::words::{ENV_LENT, ENV_SKIPPED, ENV_TEXT, ENV_UNIT_IMAGES};
use hotswap_report::Diagnostic;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The parts that do not depend on the answers.
#[derive(Debug, Clone)]
pub struct CommandParts {
    /// The path of the real compiler.
    pub program: PathBuf,
    /// Arguments before the user's.
    pub front: Vec<OsString>,
    pub user: Vec<ClangArgument>,
    /// Arguments behind the user's.
    pub back: Vec<OsString>,
    /// Nothing but inputs may follow the user's arguments.
    pub only_inputs_follow: bool,
    /// Variables of the tools of the device link.
    pub env: Env,
    /// Files of the cache directory that the host linker reads.
    pub cached_files: Vec<PathBuf>,
    /// The command has a plan, so the tools are told what the answers are.
    pub has_plan: bool,
    /// Prints the command line first.
    pub verbose: bool,
}

impl CommandParts {
    /// The command with the consequences of the answers.
    pub fn launch(&self, asked: &Consequences) -> LaunchCommand {
        // After the arguments that request processors, since the last one wins, unless only inputs may follow there.
        let answers = asked.all_words();
        let (early, late) = if self.only_inputs_follow { (&answers[..], &[][..]) } else { (&[][..], &answers[..]) };
        let before = self.front.iter().chain(early).cloned().map(ClangArgument::Plain);
        let behind = late.iter().chain(&self.back).cloned().map(ClangArgument::Plain);
        let words = before.chain(self.user.iter().cloned()).chain(behind).collect();
        LaunchCommand { program: self.program.clone(), words, env: self.env(asked), verbose: self.verbose }
    }

    /// The same with further arguments before the user's.
    #[must_use]
    pub fn with_front(&self, words: &[OsString]) -> Self {
        Self { front: [&self.front[..], words].concat(), ..self.clone() }
    }

    /// A file of the cache directory that was deleted since, for example by a user who empties the cache during a build.
    ///
    /// # Errors
    /// [`hotswap_report::codes::CANNOT_READ`] where one cannot be examined.
    pub fn deleted_file(&self) -> Result<Option<&Path>, Diagnostic> {
        for file in &self.cached_files {
            if !reads::is_regular(file)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    fn env(&self, asked: &Consequences) -> Env {
        let mut env = self.env.clone();
        if self.has_plan {
            // A finding of an outer command does not apply to this one.
            let findings = Some(&asked.findings).filter(|findings| !findings.is_empty());
            env.push((ENV_TEXT, findings.map(|findings| findings.to_text().into())));
            let lent = Some(asked.lent.join(" ")).filter(|lent| !lent.is_empty());
            env.push((ENV_LENT, lent.map(OsString::from)));
            let skipped = Some(asked.skipped.join(" ")).filter(|skipped| !skipped.is_empty());
            env.push((ENV_SKIPPED, skipped.map(OsString::from)));
            let images: Vec<String> =
                asked.images.iter().map(|image| format!("{}={}", image.target, image.source)).collect();
            env.push((ENV_UNIT_IMAGES, (!images.is_empty()).then(|| images.join(" ").into())));
        }
        env
    }
}
