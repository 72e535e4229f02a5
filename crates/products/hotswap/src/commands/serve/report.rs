//! The reports: a table of libraries and the environment, or JSON.

use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::text;
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::check::TreeCheck;
use hotswap_stack::environment::ENVIRONMENT;
use hotswap_stack::undo::Undone;
use hotswap_stack::{
    LibraryPlan, NameMode, OtherSource, OutputContent, ServeRequest, Served, ServedLibrary, TreePlan, WantedTarget,
};
use serde_json::{Value, json};
use std::path::Path;

const HEADINGS: [&str; 5] = ["LIBRARY", "FILES", "MADE", "COPIED", "RESULT"];

/// The table of libraries, and the problems.
pub(super) fn of_libraries(plan: &TreePlan, settings: &ServeRequest, served: &Served, place: &Path) -> CommandOutcome {
    let reasons = served.libraries.iter().flat_map(|library| library.refused.iter().chain(&library.foreign));
    let mut problems: Vec<Diagnostic> = reasons.cloned().collect();
    problems.extend(served.problems.iter().cloned());
    let is_native = !served.libraries.is_empty() && served.libraries.iter().all(|library| library.needs_nothing);
    if !is_any_served(served) && problems.is_empty() && !is_native {
        problems.push(nothing(plan));
    }
    problems.extend(served.notes.iter().cloned());
    let text = table(served.libraries.iter().map(row)) + &sources(plan, settings);
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
                text += &format!("removed: {} of earlier runs, or of refused libraries\n", file_count(served.removed));
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
            table(plan.libraries.iter().map(planned_row))
                + &sources(plan, settings)
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
            format!("{}: {} {are} up to date\n", text::plain(&dest.display().to_string()), file_count(files))
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
            format!("{}: {} removed\n", text::plain(&dest.display().to_string()), file_count(removed))
        }
    };
    CommandOutcome { text, problems: kept, ..CommandOutcome::default() }
}

fn file_count(count: usize) -> String {
    format!("{count} file{}", if count == 1 { "" } else { "s" })
}

fn nothing(plan: &TreePlan) -> Diagnostic {
    let remarks: Vec<String> = plan
        .libraries
        .iter()
        .map(|library| format!("{} {}", library.name, library.remark.as_deref().unwrap_or("is refused")))
        .collect();
    Diagnostic::error(codes::NOT_SERVED, format!("nothing is to be served: {}", remarks.join("; ")))
        .advise("see the table; the GPU may need nothing")
}

fn table(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut cells = vec![HEADINGS.map(str::to_owned).to_vec()];
    cells.extend(rows);
    text::table(&cells)
}

fn cells(name: &str, counts: [usize; 3], result: String) -> Vec<String> {
    let counts = counts.map(|count| if count == 0 { "-".to_owned() } else { count.to_string() });
    let mut cells = vec![text::plain(name)];
    cells.extend(counts);
    cells.push(result);
    cells
}

fn row(library: &ServedLibrary) -> Vec<String> {
    let ServedLibrary { name, made, copied, kept, refused, unread, foreign, remark, .. } = library;
    let result = match (refused.len(), remark) {
        _ if !unread.is_empty() && *kept == 0 => "NOT READ: it is not served".to_owned(),
        _ if !unread.is_empty() => format!("NOT READ: {} as before", file_count(*kept)),
        _ if !foreign.is_empty() => format!("CHANGED BY OTHERS: {} as before", file_count(*kept)),
        (0, None) if *kept == 0 => "served".to_owned(),
        (0, None) => format!("served ({} as before)", file_count(*kept)),
        (0, Some(remark)) => remark.clone(),
        (count, _) => format!(
            "REFUSED ({count} reason{}): programs that use it fail on this GPU",
            if count == 1 { "" } else { "s" }
        ),
    };
    cells(name, [made + copied + kept, *made, *copied], result)
}

fn planned_row(library: &LibraryPlan) -> Vec<String> {
    let made = library.actions.iter().filter(|action| action.content != OutputContent::Copied).count();
    let result = match (&library.remark, library.refused.is_empty()) {
        _ if !library.unread.is_empty() => "NOT READ".to_owned(),
        (Some(remark), _) => remark.clone(),
        (None, true) => "would be served".to_owned(),
        (None, false) => "REFUSED".to_owned(),
    };
    cells(&library.name, [library.actions.len(), made, library.actions.len() - made], result)
}

fn sources(plan: &TreePlan, settings: &ServeRequest) -> String {
    plan.wanted.iter().map(|row| source_summary_line(row, settings) + &others(plan, row)).collect()
}

fn source_summary_line(row: &WantedTarget, settings: &ServeRequest) -> String {
    let seen = match settings.names {
        NameMode::Source => format!("; its libraries see the name {}", row.source),
        NameMode::Own => "; its libraries see its own name".to_owned(),
    };
    format!("{} is served by code for {}{seen}\n", row.target, row.source)
}

/// The files of other GPUs that a target may be made from.
fn others(plan: &TreePlan, row: &WantedTarget) -> String {
    let all = plan.all_actions().flat_map(|action| &action.others).filter(|other| other.wanted.target == row.target);
    let mut named: Vec<&str> = Vec::new();
    for other in all {
        if !named.contains(&other.wanted.source.as_str()) {
            named.push(&other.wanted.source);
        }
    }
    if named.is_empty() {
        return String::new();
    }
    let named = named.join(", else ");
    format!("  where a code object for {} fails a check: that for {named}, if it has the same kernels\n", row.source)
}

pub(super) fn library_json(library: &ServedLibrary) -> Value {
    json!({
        "library": library.name, "made": library.made, "copied": library.copied, "kept": library.kept,
        "remark": library.remark, "refused": library.refused.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "unread": library.unread.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "changed-by-others": library.foreign.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
    })
}

fn planned_json(library: &LibraryPlan) -> Value {
    json!({
        "library": library.name, "files": library.actions.iter().map(planned_file_json).collect::<Vec<_>>(),
        "remark": library.remark, "refused": library.refused.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "unread": library.unread.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
    })
}

fn planned_file_json(action: &hotswap_stack::Action) -> Value {
    json!({
        "input": action.input, "output": action.output, "served": action.content != OutputContent::Copied,
        "others": action.others.iter().map(other_source_json).collect::<Vec<_>>(),
    })
}

fn other_source_json(other: &OtherSource) -> Value {
    json!({ "target": other.wanted.target, "source": other.wanted.source, "input": other.input })
}

fn shell_word(path: &Path) -> String {
    text::shell_word(&path.to_string_lossy())
}
