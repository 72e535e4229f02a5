//! `hotswap serve --try`: the trials of a served tree ([`hotswap_stack::trial`]), and `--probe`, the computation of one.
//!
//! Invariant: a tree of which nothing could be tried, or that lacks a file, is an error.

use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::text;
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::manifest::TreeManifest;
use hotswap_stack::trial::{TriedLibrary, TryResult, failure, missing_files, try_all};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn run(destination: &Path, format: OutputFormat) -> Result<CommandOutcome, Diagnostic> {
    let destination = std::path::absolute(destination).map_err(|error| Diagnostic::cannot_read(destination, error))?;
    let Some(manifest) = TreeManifest::read(&destination)? else {
        let missing = Diagnostic::error(codes::CANNOT_READ, "it has no manifest of a served tree").in_file(destination);
        return Err(missing.advise("name the directory that `hotswap serve GPU --dest DIR` has written"));
    };
    let mut problems = missing_files(&manifest, &destination);
    let rows = try_all(&manifest, &destination)?;
    problems.extend(rows.iter().filter_map(failure));
    if problems.is_empty() && !rows.iter().any(|row| matches!(row.result, TryResult::Right { .. })) {
        let nothing = Diagnostic::error(codes::NOT_TRIED, "no computation is known for any library of the tree");
        problems.push(nothing.in_file(&destination));
    }
    let text = match format {
        OutputFormat::Text => table(&rows),
        OutputFormat::Json => text::json(&json!({
            "schema": 1,
            "tried": rows.iter().map(row_json).collect::<Vec<_>>(),
            "problems": problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })),
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// Lets a library compute its answer, and prints the result as JSON.
pub(super) fn probe(file: &Path) -> Result<CommandOutcome, Diagnostic> {
    let line = match hotswap_stack::probe::compute(file)? {
        Ok(compared) => json!({ "compared": compared }),
        Err(reason) => json!({ "reason": reason }),
    };
    Ok(format!("{line}\n").into())
}

fn table(rows: &[TriedLibrary]) -> String {
    let mut lines = vec![["GPU", "LIBRARY", "COMPUTED", "RESULT", "KERNELS"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(table_row));
    text::table(&lines)
}

fn table_row(row: &TriedLibrary) -> Vec<String> {
    let (result, kernels) = match &row.result {
        TryResult::Right { values, kernels } => (format!("right, {values} values"), kernels.join(" ")),
        TryResult::Failed(_) => ("FAILED".to_owned(), String::new()),
        TryResult::NotTried => ("not tried".to_owned(), String::new()),
    };
    let computation = row.computation.unwrap_or("-").to_owned();
    vec![row.gpu.clone(), text::plain(&row.library), computation, result, shortened(&text::plain(&kernels))]
}

/// Names of kernels of templates fill a screen; `--format json` has all of them.
fn shortened(names: &str) -> String {
    const SHOWN: usize = 60;
    if names.chars().count() <= SHOWN {
        names.to_owned()
    } else {
        names.chars().take(SHOWN).collect::<String>() + "…"
    }
}

fn row_json(row: &TriedLibrary) -> Value {
    let (result, values, kernels, reason) = match &row.result {
        TryResult::Right { values, kernels } => ("right", Some(values), kernels.as_slice(), None),
        TryResult::Failed(reason) => ("failed", None, [].as_slice(), Some(reason)),
        TryResult::NotTried => ("not tried", None, [].as_slice(), None),
    };
    json!({
        "gpu": row.gpu, "library": row.library, "file": row.file.display().to_string(), "computation": row.computation,
        "result": result, "values": values, "kernels": kernels, "reason": reason,
    })
}
