//! Refusals as diagnostics, with the function and the line of the source.

use super::SectionRewrite;
use crate::MOST_REFUSALS;
use crate::refusal::FunctionRefusal;
use hotswap_code_object::{CodeObject, SourceLines};
use hotswap_report::{Diagnostic, codes};

/// Returns all refusals, or `Ok` without any.
pub(crate) fn check_refusals(work: &[SectionRewrite<'_>], object: &CodeObject<'_>) -> Result<(), Vec<Diagnostic>> {
    let mut all: Vec<(&SectionRewrite<'_>, String, &FunctionRefusal)> = Vec::new();
    for one in work {
        for outcome in one.outcomes.iter().filter(|outcome| !outcome.refused.is_empty()) {
            let name = one.unit.program.name(&one.unit.program.functions[outcome.number]);
            all.extend(outcome.refused.iter().map(|refused| (one, name.clone(), refused)));
        }
        all.extend(one.unclaimed.iter().map(|refused| (one, format!("code at {:#x}", refused.offset), refused)));
    }
    if all.is_empty() {
        return Ok(());
    }
    let lines = SourceLines::read(object.bytes());
    let mut told: Vec<Diagnostic> = all.iter().take(MOST_REFUSALS).map(|one| refusal_diagnostic(one, &lines)).collect();
    if all.len() > told.len() {
        told.push(Diagnostic::error(
            codes::NOT_SAFE,
            format!("{} more places cannot be made to run there", all.len() - told.len()),
        ));
    }
    Err(told)
}

fn refusal_diagnostic(
    (one, name, refused): &(&SectionRewrite<'_>, String, &FunctionRefusal),
    lines: &SourceLines,
) -> Diagnostic {
    let line = lines.line_at(one.unit.number, u64::from(refused.offset));
    refused.to_diagnostic(name, one.unit.name, line)
}
