//! The policy `compile`: targets that the device link could not derive are compiled from the source, by the same command
//! with further `--offload-arch` words.
//!
//! Invariants: each attempt is a whole command of clang's, which removes its outputs where the device link refuses, so
//! an output never lacks a target. An attempt is repeated only with a target that it lacked, and only where its inputs
//! can be read again. Messages of an attempt that is repeated are not shown.
//!
//! Absent on purpose: finding the refusals (the interposer).

use crate::answers::Consequences;
use crate::command::ClangCommand;
use crate::command_parts::CommandParts;
use crate::exec::{LaunchCommand, Transcript, run_recorded};
use crate::judge::{CommandDecision, CommandJudgement};
use crate::profile_use::ProfileUse;
use hotswap_files::{ScratchDirectory, reads};
use hotswap_plan::{Policy, TextFindings, words};
use hotswap_report::Diagnostic;
use std::fs;
use std::path::Path;

/// Whether targets of the command may have to be compiled after its device link.
pub fn concerns(judgement: &CommandJudgement) -> bool {
    let CommandDecision::WithPlan(with) = &judgement.decision else { return false };
    let command = &judgement.command;
    let links = command.links_device_code() || command.links_relocatable();
    with.plan.policy == Policy::Compile && links && !command.dry_run && !reads_standard_input(command)
}

/// Whether the command can be run only once.
pub(crate) fn reads_standard_input(command: &ClangCommand) -> bool {
    command.inputs.iter().any(|input| input.path == "-")
}

/// A command that is repeated where targets have to be compiled.
pub struct Attempts<'a> {
    /// The command without the answers about the sources.
    pub parts: &'a CommandParts,
    /// The answers, with the targets that were refused.
    pub ask: &'a dyn Fn(&TextFindings) -> Result<Consequences, Diagnostic>,
    /// The profile that the command uses.
    pub used: Option<&'a ProfileUse>,
    pub warn: &'a dyn Fn(&str),
}

impl Attempts<'_> {
    /// Runs the command with these answers, and again until no further target can be compiled; clang's exit code.
    ///
    /// # Errors
    /// Those of starting clang, of the temporary directory, and of the answers.
    pub fn run(&self, mut asked: Consequences) -> Result<i32, Diagnostic> {
        let directory = ScratchDirectory::temporary("hotswap-refused.")?;
        let report = directory.path().join("targets");
        let mut refused = TextFindings::default();
        loop {
            let (code, transcript) = self.attempt(&asked, &report)?;
            let found = reported(&report).inspect_err(|_| transcript.show())?;
            if code != 0 && !found.is_empty() {
                found.iter().for_each(|finding| refused.set(finding.clone()));
                let next = (self.ask)(&refused).inspect_err(|_| transcript.show())?;
                if next.words != asked.words {
                    self.say(&found, &next);
                    asked = next;
                    continue;
                }
            }
            transcript.show();
            return Ok(code);
        }
    }

    fn attempt(&self, asked: &Consequences, report: &Path) -> Result<(i32, Transcript), Diagnostic> {
        let mut launch = self.parts.launch(asked);
        launch.env.push((words::ENV_REFUSED, Some(report.into())));
        let Some(used) = self.used else { return run_recorded(&launch) };
        let mut transcript = Transcript::default();
        let mut compile = |launch: &LaunchCommand| {
            let (code, recorded) = run_recorded(launch)?;
            transcript = recorded;
            Ok(code)
        };
        let code = used.run(launch, &mut compile, self.warn)?;
        Ok((code, transcript))
    }

    /// Says which targets the next attempt compiles.
    fn say(&self, found: &TextFindings, next: &Consequences) {
        for finding in found.iter().filter(|finding| is_compiled_finding(&finding.target, next)) {
            let why = finding.evidence.as_deref().unwrap_or_default();
            (self.warn)(&format!("note: the source is compiled for {}: {why}", finding.target));
        }
    }
}

fn is_compiled_finding(target: &str, next: &Consequences) -> bool {
    next.findings.find(target).is_some_and(|known| known.status.is_compiled())
}

/// The targets that the interposer reported; each report is for one attempt.
fn reported(report: &Path) -> Result<TextFindings, Diagnostic> {
    let text = match fs::read_to_string(report) {
        Ok(text) => text,
        Err(error) if reads::is_absent(&error) => return Ok(TextFindings::default()),
        Err(error) => return Err(reads::unread_file(report, &error)),
    };
    let _ = fs::remove_file(report);
    TextFindings::parse(&text)
}
