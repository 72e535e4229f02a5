//! The policy `compile`: targets that cannot be derived are reported to the wrapper, which compiles the source for them.
//!
//! Invariant: the step fails, so that clang removes its output. What is in the file is for the next attempt alone.
//!
//! Absent on purpose: whether there is a source to compile, which the wrapper knows.

use crate::context::CallContext;
use crate::message::say;
use hotswap_pipeline::TargetRefusal;
use hotswap_plan::{TextFinding, TextFindings};
use hotswap_report::{Diagnostic, SourceText};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Reports the targets, and returns the last refusal as the step's error.
///
/// # Errors
/// A refusal, where there is any.
pub(crate) fn report(context: &CallContext, refused: &[TargetRefusal], output: &Path) -> Result<(), Diagnostic> {
    let Some((last, others)) = refused.split_last() else { return Ok(()) };
    if let Some(file) = &context.refused {
        append(file, &findings(refused)).map_err(|error| Diagnostic::cannot_write(file, error))?;
    }
    others.iter().for_each(|refusal| say(refusal.why.clone().in_file(output)));
    Err(last.why.clone().in_file(output))
}

fn findings(refused: &[TargetRefusal]) -> TextFindings {
    let mut findings = TextFindings::default();
    for TargetRefusal { target, why } in refused {
        let evidence = Some(why.what.clone());
        findings.push(TextFinding {
            target: target.name.to_owned(),
            status: SourceText::Refused,
            source: None,
            evidence,
        });
    }
    findings
}

/// One write: clang may run the steps of several sources side by side (`--offload-jobs`).
fn append(file: &Path, findings: &TextFindings) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(findings.to_text().as_bytes())
}
