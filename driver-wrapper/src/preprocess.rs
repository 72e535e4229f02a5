//! Runs of the preprocessor under a plan: clang's output, then what the plan's GPUs read.
//!
//! Compiler caches take the preprocessor's output for all that a compilation reads. Clang's own has the text of the GPUs
//! that it compiles for, under the new offload driver only the host's, so an edit of a target's text would be answered
//! with an old object. The additions are line markers of the included files, which caches follow, and comments with a
//! hash of each text. Every reader of preprocessed text passes over both, clang as well.
//!
//! Invariants: clang's own output is unchanged; a failure of clang's is returned as it is. The same inputs give the same
//! additions on every machine.
//!
//! Absent on purpose: lists of macros (`-dM`), and sources on standard input, which can be read once.

use crate::dependencies::DependencyOutput;
use crate::exec::{LaunchCommand, run_captured, run_clang};
use crate::judge::{CommandJudgement, WithPlan};
use crate::source_text::TextFingerprints;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A run of the preprocessor with what the plan's GPUs read.
pub struct PreprocessorRun<'a> {
    /// The real clang's command.
    pub launch: &'a LaunchCommand,
    /// The decision about it.
    pub judgement: &'a CommandJudgement,
    /// Its arguments, response files expanded.
    pub words: &'a [OsString],
    /// The plan of the compilation.
    pub plan: &'a WithPlan,
    /// The texts of the GPUs.
    pub texts: &'a TextFingerprints,
    pub toolchain: &'a str,
}

impl PreprocessorRun<'_> {
    /// Runs clang and adds to its output; clang's exit code.
    ///
    /// # Errors
    /// Those of starting clang; [`codes::CANNOT_WRITE`] for the additions.
    pub fn run(&self) -> Result<i32, Diagnostic> {
        let dependencies = DependencyOutput::new(&self.judgement.command, self.words);
        match &dependencies {
            Some(output) if output.is_output && output.path.is_none() => {
                let captured = run_captured(self.launch)?;
                let rules = output.complete(&captured.text, &self.texts.files);
                io::stdout().write_all(&rules).map_err(|error| cannot_write(&error))?;
                return Ok(captured.code);
            }
            _ => {}
        }
        let code = run_clang(self.launch)?;
        if code != 0 {
            return Ok(code);
        }
        if let Some(output) = &dependencies {
            output.complete_file(&self.texts.files)?;
        }
        if !dependencies.is_some_and(|output| output.is_output) {
            self.add_text()?;
        }
        Ok(code)
    }

    fn add_text(&self) -> Result<(), Diagnostic> {
        let text = self.text();
        let output = self.judgement.command.output.as_deref().filter(|output| *output != "-");
        let written = match output {
            Some(path) => File::options().append(true).open(path).and_then(|mut file| file.write_all(&text)),
            None => io::stdout().write_all(&text).and_then(|()| io::stdout().flush()),
        };
        written.map_err(|error| match output {
            Some(path) => cannot_write(&error).in_file(Path::new(path)),
            None => cannot_write(&error),
        })
    }

    fn text(&self) -> Vec<u8> {
        let mut text = b"\n".to_vec();
        // Without markers in clang's output, ours would be the only ones.
        if !self.words.iter().any(|word| word == "-P" || word == "--no-line-commands") {
            let source = self.judgement.command.hip_sources().next();
            let main = source.map_or(&b"<stdin>"[..], |source| source.path.as_bytes());
            text.extend(self.texts.files.markers(&escape(main)));
        }
        text.extend(format!("// hotswap: plan {}\n", self.plan.hash).bytes());
        text.extend(format!("// hotswap: toolchain {}\n", self.toolchain).bytes());
        text.extend(self.texts.lines().bytes());
        text
    }
}

/// A name as line markers spell it.
fn escape(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for byte in name {
        if b"\\\"".contains(byte) {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text
}

fn cannot_write(error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string())
}
