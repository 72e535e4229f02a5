//! The rows of the table of libraries, and the same for programs.

use crate::{LibraryPlan, NameMode, OtherSource, OutputContent, ServeRequest, ServedLibrary, TreePlan, WantedTarget};
use hotswap_report::{Diagnostic, codes, text};
use serde_json::{Value, json};

const HEADINGS: [&str; 5] = ["LIBRARY", "FILES", "MADE", "COPIED", "RESULT"];

pub fn nothing_served(plan: &TreePlan) -> Diagnostic {
    let remarks: Vec<String> = plan
        .libraries
        .iter()
        .map(|library| format!("{} {}", library.name, library.remark.as_deref().unwrap_or("is refused")))
        .collect();
    Diagnostic::error(codes::NOT_SERVED, format!("nothing is to be served: {}", remarks.join("; ")))
        .advise("see the table; the GPU may need nothing")
}

pub fn library_table(rows: impl Iterator<Item = Vec<String>>) -> String {
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

pub fn served_row(library: &ServedLibrary) -> Vec<String> {
    let ServedLibrary { name, made, copied, kept, refused, unread, foreign, remark, .. } = library;
    let result = match (refused.len(), remark) {
        _ if !unread.is_empty() && *kept == 0 => "NOT READ: it is not served".to_owned(),
        _ if !unread.is_empty() => format!("NOT READ: {} as before", text::counted(*kept, "file")),
        _ if !foreign.is_empty() => format!("CHANGED BY OTHERS: {} as before", text::counted(*kept, "file")),
        (0, None) if *kept == 0 => "served".to_owned(),
        (0, None) => format!("served ({} as before)", text::counted(*kept, "file")),
        (0, Some(remark)) => remark.clone(),
        (count, _) => format!(
            "REFUSED ({count} reason{}): programs that use it fail on this GPU",
            if count == 1 { "" } else { "s" }
        ),
    };
    cells(name, [made + copied + kept, *made, *copied], result)
}

pub fn planned_row(library: &LibraryPlan) -> Vec<String> {
    let made = library.actions.iter().filter(|action| action.content != OutputContent::Copied).count();
    let result = match (&library.remark, library.refused.is_empty()) {
        _ if !library.unread.is_empty() => "NOT READ".to_owned(),
        (Some(remark), _) => remark.clone(),
        (None, true) => "would be served".to_owned(),
        (None, false) => "REFUSED".to_owned(),
    };
    cells(&library.name, [library.actions.len(), made, library.actions.len() - made], result)
}

pub fn source_lines(plan: &TreePlan, settings: &ServeRequest) -> String {
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

pub fn library_json(library: &ServedLibrary) -> Value {
    json!({
        "library": library.name, "made": library.made, "copied": library.copied, "kept": library.kept,
        "remark": library.remark, "refused": library.refused.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "unread": library.unread.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "changed-by-others": library.foreign.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
    })
}

pub fn planned_json(library: &LibraryPlan) -> Value {
    json!({
        "library": library.name, "files": library.actions.iter().map(planned_file_json).collect::<Vec<_>>(),
        "remark": library.remark, "refused": library.refused.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        "unread": library.unread.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
    })
}

fn planned_file_json(action: &crate::Action) -> Value {
    json!({
        "input": action.input, "output": action.output, "served": action.content != OutputContent::Copied,
        "others": action.others.iter().map(other_source_json).collect::<Vec<_>>(),
    })
}

fn other_source_json(other: &OtherSource) -> Value {
    json!({ "target": other.wanted.target, "source": other.wanted.source, "input": other.input })
}
