//! Refusals as diagnostics, with the function and the line of the source.

use super::SectionRewrite;
use crate::MOST_REFUSALS;
use crate::refusal::FunctionRefusal;
use hotswap_code_object::{CodeObject, SourceLines};
use hotswap_report::{Diagnostic, codes};

/// A refusal with its section, and the name of its function.
struct RefusedPlace<'r> {
    section: &'r SectionRewrite<'r>,
    function: String,
    refused: &'r FunctionRefusal,
}

/// Returns all refusals, or `Ok` without any.
pub(crate) fn check_refusals(work: &[SectionRewrite<'_>], object: &CodeObject<'_>) -> Result<(), Vec<Diagnostic>> {
    let mut all: Vec<RefusedPlace<'_>> = Vec::new();
    for one in work {
        for outcome in one.outcomes.iter().filter(|outcome| !outcome.refused.is_empty()) {
            let name = one.unit.program.name(&one.unit.program.functions[outcome.number]);
            let refused = outcome.refused.iter();
            all.extend(refused.map(|refused| RefusedPlace { section: one, function: name.clone(), refused }));
        }
        all.extend(one.unclaimed.iter().map(|refused| RefusedPlace {
            section: one,
            function: format!("code at {:#x}", refused.offset),
            refused,
        }));
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

fn refusal_diagnostic(place: &RefusedPlace<'_>, lines: &SourceLines) -> Diagnostic {
    let unit = &place.section.unit;
    let line = lines.line_at(unit.number, u64::from(place.refused.offset));
    place.refused.to_diagnostic(&place.function, unit.name, line)
}
