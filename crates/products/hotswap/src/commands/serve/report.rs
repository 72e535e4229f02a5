//! The reports: a table of libraries and the environment, or JSON.

use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::text;
use hotswap_report::Diagnostic;
use hotswap_stack::check::TreeCheck;
use hotswap_stack::environment::ENVIRONMENT;
use hotswap_stack::tree_report::{
    library_json, library_table, nothing_served, planned_json, planned_row, served_row, source_lines,
};
use hotswap_stack::undo::Undone;
use hotswap_stack::{ServeRequest, Served, ServedLibrary, TreePlan};
use serde_json::json;
use std::path::Path;

/// The table of libraries, and the problems.
pub(super) fn of_libraries(plan: &TreePlan, settings: &ServeRequest, served: &Served, place: &Path) -> CommandOutcome {
    let reasons = served.libraries.iter().flat_map(|library| library.refused.iter().chain(&library.foreign));
    let mut problems: Vec<Diagnostic> = reasons.cloned().collect();
    problems.extend(served.problems.iter().cloned());
    let is_native = !served.libraries.is_empty() && served.libraries.iter().all(|library| library.needs_nothing);
    if !is_any_served(served) && problems.is_empty() && !is_native {
        problems.push(nothing_served(plan));
    }
    problems.extend(served.notes.iter().cloned());
    let text = library_table(served.libraries.iter().map(served_row)) + &source_lines(plan, settings);
    let outcome = CommandOutcome { text, problems, ..CommandOutcome::default() };
    match () {
        () if is_native => outcome.note_unchanged(place, "its libraries have code for the GPU already"),
        () if served.is_unchanged => outcome.note_unchanged(place, "the tree is up to date"),
        () => outcome,
    }
}

fn is_any_served(served: &Served) -> bool {
    served.libraries.iter().any(is_served_library)
}

fn is_served_library(library: &ServedLibrary) -> bool {
    let is_held = !library.unread.is_empty() || !library.foreign.is_empty();
    library.refused.is_empty() && library.remark.is_none() && (!is_held || library.kept > 0)
}

/// The result of a run.
pub(super) fn served(
    plan: &TreePlan,
    settings: &ServeRequest,
    served: &Served,
    dest: &Path,
    format: OutputFormat,
) -> CommandOutcome {
    let CommandOutcome { text: libraries, problems, is_unchanged } = of_libraries(plan, settings, served, dest);
    let is_any = is_any_served(served);
    let text = match format {
        OutputFormat::Json => text::json(&json!({
            "schema": 1, "written": is_any, "names": settings.names, "wanted": plan.wanted, "removed": served.removed,
            "libraries": served.libraries.iter().map(library_json).collect::<Vec<_>>(),
            "environment": served.environment.variables.iter().map(|v| (v.name, v.value.clone())).collect::<std::collections::BTreeMap<_, _>>(),
            "HOTSWAP_NAMES": served.environment.names,
            "problems": problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })),
        OutputFormat::Text => {
            let mut text = libraries;
            if served.removed > 0 {
                text += &format!(
                    "removed: {} of earlier runs, or of refused libraries\n",
                    text::counted(served.removed, "file")
                );
            }
            if is_any {
                let script = shell_word(&dest.join(ENVIRONMENT));
                text += &format!("\nin the shell that starts programs: . {script}\n");
                text += &served
                    .environment
                    .shell_text()
                    .lines()
                    .filter(|line| line.starts_with("export"))
                    .map(|line| format!("  {line}\n"))
                    .collect::<String>();
            }
            text
        }
    };
    CommandOutcome { text, problems, is_unchanged }
}

/// The plan of a dry run.
pub(super) fn planned(plan: &TreePlan, settings: &ServeRequest, format: OutputFormat) -> CommandOutcome {
    let mut problems: Vec<Diagnostic> = plan.libraries.iter().flat_map(|library| library.refused.clone()).collect();
    problems.extend(plan.problems.iter().cloned());
    let text = match format {
        OutputFormat::Json => text::json(&json!({
            "schema": 1, "written": false, "names": settings.names, "wanted": plan.wanted,
            "libraries": plan.libraries.iter().map(planned_json).collect::<Vec<_>>(),
            "problems": problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })),
        OutputFormat::Text => {
            library_table(plan.libraries.iter().map(planned_row))
                + &source_lines(plan, settings)
                + "nothing was written; whether each kernel passes the checks of its pair is found when it is made\n"
        }
    };
    CommandOutcome { text, problems, ..CommandOutcome::default() }
}

/// The result of `--check`.
pub(super) fn checked(checked: TreeCheck, dest: &Path, format: OutputFormat) -> CommandOutcome {
    let TreeCheck { files, stale } = checked;
    let text = match format {
        OutputFormat::Json => text::json(
            &json!({ "schema": 1, "files": files, "stale": stale.iter().map(Diagnostic::to_json).collect::<Vec<_>>() }),
        ),
        OutputFormat::Text if stale.is_empty() => {
            let are = if files == 1 { "is" } else { "are" };
            format!("{}: {} {are} up to date\n", text::plain(&dest.display().to_string()), text::counted(files, "file"))
        }
        OutputFormat::Text => String::new(),
    };
    CommandOutcome { text, problems: stale, ..CommandOutcome::default() }
}

/// The result of `--undo`.
pub(super) fn undone(undone: Undone, dest: &Path, format: OutputFormat) -> CommandOutcome {
    let Undone { removed, kept } = undone;
    let text = match format {
        OutputFormat::Json => text::json(
            &json!({ "schema": 1, "removed": removed, "kept": kept.iter().map(Diagnostic::to_json).collect::<Vec<_>>() }),
        ),
        OutputFormat::Text => {
            format!("{}: {} removed\n", text::plain(&dest.display().to_string()), text::counted(removed, "file"))
        }
    };
    CommandOutcome { text, problems: kept, ..CommandOutcome::default() }
}

fn shell_word(path: &Path) -> String {
    text::shell_word(&path.to_string_lossy())
}
