//! Whether a file has code for each of some GPUs: the answers of [`hotswap_load_model::required_code`] as text and JSON.

use hotswap_bundle::FoundContents;
use hotswap_load_model::required_code::{RequiredCode, read_groups};
use hotswap_report::{Diagnostic, text};
use hotswap_targets::TargetId;
use serde_json::{Value, json};

/// The GPUs that every file must have code for.
pub struct RequiredGpus(Vec<TargetId>);

/// The result of the check of one file.
pub struct RequiredReport {
    pub text: String,
    pub json: Value,
    pub problems: Vec<Diagnostic>,
}

impl RequiredGpus {
    /// # Errors
    /// [`hotswap_report::codes::UNKNOWN_TARGET`] for a name that is not a GPU.
    pub fn parse(names: &[String]) -> Result<Self, Diagnostic> {
        let ids: Result<Vec<TargetId>, _> = names.iter().map(|name| name.parse()).collect();
        Ok(Self(ids?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares the containers of a file with the GPUs.
    pub fn check(&self, contents: &FoundContents<'_>) -> RequiredReport {
        let groups = read_groups(contents);
        let mut report = RequiredReport { text: String::new(), json: json!([]), problems: Vec::new() };
        let mut rows = Vec::new();
        for group in &groups {
            let found: Vec<RequiredCode> = self.0.iter().map(|gpu| group.code_for(*gpu)).collect();
            report.text += &format!("  {}: {}\n", text::plain(&group.place), text_of(&found));
            rows.push(json!({ "place": group.place, "gpus": found.iter().map(json_of).collect::<Vec<_>>() }));
            let problems = found.into_iter().filter_map(|code| code.problem);
            report.problems.extend(problems.map(|problem| problem.in_entry(&group.place)));
        }
        report.json = json!(rows);
        report
    }
}

fn text_of(found: &[RequiredCode]) -> String {
    found.iter().map(text_of_code).collect::<Vec<_>>().join(", ")
}

fn json_of(code: &RequiredCode) -> Value {
    json!({
        "gpu": code.gpu.to_string(),
        "code": code.served_by.iter().map(TargetId::to_string).collect::<Vec<_>>(),
        "kernels": code.kernels,
        "problem": code.problem.as_ref().map(|problem| &problem.what),
    })
}

/// `gfx1031 4 kernels`, with the generic target where that is what HIP loads.
fn text_of_code(code: &RequiredCode) -> String {
    let kernels = match code.kernels {
        _ if code.served_by.is_empty() => "missing".to_owned(),
        None => "not linked yet".to_owned(),
        Some(1) => "1 kernel".to_owned(),
        Some(count) => format!("{count} kernels"),
    };
    let other: Vec<String> =
        code.served_by.iter().filter(|target| **target != code.gpu).map(TargetId::to_string).collect();
    let by = if other.is_empty() { String::new() } else { format!(" by {}", other.join(" and ")) };
    format!("{} {kernels}{by}", code.gpu)
}
