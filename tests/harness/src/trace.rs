//! The reports of HotSwap's tools: the JSON lines of `HOTSWAP_TRACE`.

use serde_json::Value;
use std::path::Path;

/// One step of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The name under which the tool ran.
    pub tool: String,
    /// `device-link`, `expand`, `pass-through` or `keep`.
    pub event: String,
    pub line: Value,
}

/// Reads a trace; a missing file is an empty one.
///
/// # Errors
/// The line that is not a JSON object with `tool` and `event`.
pub fn read(file: &Path) -> Result<Vec<Step>, String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| step(line).ok_or_else(|| format!("not a trace line: {line}"))).collect()
}

fn step(line: &str) -> Option<Step> {
    let value: Value = serde_json::from_str(line).ok()?;
    Some(Step { tool: step_text_field("tool", &value)?, event: step_text_field("event", &value)?, line: value.clone() })
}

fn step_text_field(key: &str, value: &Value) -> Option<String> {
    Some(value.get(key)?.as_str()?.to_owned())
}

/// Steps of that kind.
pub fn count(steps: &[Step], event: &str) -> usize {
    steps.iter().filter(|step| step.event == event).count()
}
