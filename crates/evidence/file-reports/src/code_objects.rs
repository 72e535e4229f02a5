//! The code objects of a file one by one, for the commands that judge them.

use hotswap_bundle::inventory::{InventoryDepth, visit_to};
use hotswap_bundle::{ContainerForm, ContainerPosition, FoundContents, ImageKind};
use hotswap_lint::{LintFinding, RejectedForm};
use hotswap_report::{Diagnostic, Severity, codes, text};
use serde_json::{Value, json};

/// Calls `each` for the code objects of a file with place and target; returns the problems of unreadable ones. `progress` gets the
/// number of bytes after each container.
///
/// # Errors
/// A file that contains no code object.
pub fn visit_code_objects(
    contents: &FoundContents<'_>,
    progress: &dyn Fn(u64),
    mut each: impl FnMut(&str, &str, &[u8]),
) -> Result<Vec<Diagnostic>, Diagnostic> {
    let is_bare = matches!(contents.found.as_slice(), [one] if one.form == ContainerForm::Bare && one.place == ContainerPosition::default());
    let mut count = 0;
    let unread = visit_to(contents, InventoryDepth::Images, progress, |container| {
        let place = container.found.place.to_string();
        for row in &container.rows {
            if !matches!(row.image.kind, ImageKind::CodeObject | ImageKind::DeviceObject) {
                continue;
            }
            count += 1;
            let entry = row.image.id.clone().unwrap_or_else(|| row.number.to_string());
            let place = if is_bare { String::new() } else { format!("{place}: {entry}") };
            each(&place, row.target.as_deref().unwrap_or("-"), &row.image.data);
        }
    });
    match count == 0 && unread.is_empty() {
        true => Err(Diagnostic::error(codes::NOT_FOUND, "it holds no code object")),
        false => Ok(unread),
    }
}

/// Code objects for processors that are not known are passed over where others of the file were read.
pub fn pass_over_unknown(problems: &mut [Diagnostic], has_others: bool) {
    let unknown = problems.iter_mut().filter(|one| has_others && one.code == codes::UNKNOWN_MACHINE);
    for problem in unknown {
        problem.severity = Severity::Warning;
        problem.what.push_str("; it is passed over");
    }
}

/// Puts the container and the entry before the error's section.
pub fn in_place(mut error: Diagnostic, place: &str) -> Diagnostic {
    if !place.is_empty() {
        let section = error.place.entry.take();
        error.place.entry = Some(section.map_or_else(|| place.to_owned(), |section| format!("{place}: {section}")));
    }
    error
}

/// A finding as JSON.
pub fn finding_json(finding: &LintFinding) -> Value {
    json!({
        "rule": finding.rule.id,
        "section": finding.section,
        "function": finding.function,
        "offset": finding.offset,
        "mnemonic": finding.mnemonic,
        "reason": finding.reason,
        "line": finding.line,
    })
}

/// As many instructions of one form are listed in text.
const LISTED_FORMS: usize = 12;

/// The instructions that a version of LLVM rejects, for readers: one line for each form.
pub fn rejected_text(rejected: &[RejectedForm]) -> String {
    let mut lines = String::new();
    let mut forms: Vec<&str> = rejected.iter().map(|one| one.judgment.form).collect();
    forms.sort_unstable();
    forms.dedup();
    for form in forms {
        let own: Vec<&RejectedForm> = rejected.iter().filter(|one| one.judgment.form == form).collect();
        let Some(first) = own.first() else { continue };
        let mut places = own.iter().take(LISTED_FORMS).map(|one| rejected_place(one)).collect::<Vec<_>>().join(", ");
        if own.len() > LISTED_FORMS {
            places += &format!(" and {} more", own.len() - LISTED_FORMS);
        }
        lines += &format!("  {}: {places}\n", first.judgment);
    }
    lines
}

fn rejected_place(one: &RejectedForm) -> String {
    let function = one.function.as_deref().map_or_else(String::new, |name| format!(" in {}", text::plain(name)));
    format!("`{}` at {} + {:#x}{function}", one.mnemonic, text::plain(&one.section), one.offset)
}

/// The same for programs.
pub fn rejected_json(rejected: &[RejectedForm]) -> Value {
    rejected.iter().map(rejected_row).collect()
}

fn rejected_row(one: &RejectedForm) -> Value {
    json!({
        "section": one.section,
        "function": one.function,
        "offset": one.offset,
        "mnemonic": one.mnemonic,
        "form": one.judgment.form,
        "accepted_by": one.judgment.accepted_by,
        "rejected_by": one.judgment.rejected_by,
    })
}
