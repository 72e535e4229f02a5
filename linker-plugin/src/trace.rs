//! With `HOTSWAP_TRACE=FILE` one JSON line for each step, for tests and for curious users.

use crate::context::CallContext;
use hotswap_report::Diagnostic;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Appends a line about a step for `output`; `more` adds fields.
///
/// One write for the whole line: several device links run at once (`--offload-jobs`).
///
/// # Errors
/// [`codes::CANNOT_WRITE`]: a requested trace that is missing would mislead.
pub(crate) fn step(context: &CallContext, event: &str, output: &Path, more: Value) -> Result<(), Diagnostic> {
    let Some(file) = &context.trace else { return Ok(()) };
    let mut line = json!({
        "tool": context.tool.name(),
        "event": event,
        "plan": context.plan_hash(),
        "output": output.display().to_string(),
    });
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    let text = format!("{line}\n");
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut trace| trace.write_all(text.as_bytes()))
        .map_err(|error| Diagnostic::cannot_write(file, error))
}
