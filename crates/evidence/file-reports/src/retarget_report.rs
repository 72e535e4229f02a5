//! The report: a table of targets, or JSON with every container.

use hotswap_bundle::FoundContainer;
use hotswap_compat::find_pair;
use hotswap_compat::names::{Disagreement, names_diagnostic};
use hotswap_file_edit::HandledFile;
use hotswap_pipeline::{OutcomeSubject, TargetOutcome, TargetResult};
use hotswap_plan::Policy;
use hotswap_report::text;
use hotswap_report::{Diagnostic, Route};
use hotswap_targets::Processor;
use serde_json::{Value, json};
use std::path::Path;

/// Less than this is alignment.
const WORTH_TELLING: u64 = 1 << 20;

/// The outcome for the targets of one container.
struct ContainerSummary<'a> {
    found: FoundContainer<'a>,
    size: u64,
    outcomes: Vec<TargetOutcome>,
}

impl ContainerSummary<'_> {
    /// The disagreements of the host part with the targets.
    fn disagreements(&self) -> Vec<Disagreement> {
        self.outcomes.iter().flat_map(|outcome| outcome.result.disagreements()).cloned().collect()
    }
}

/// The result for each target in each container.
pub struct RetargetReport<'a> {
    containers: Vec<ContainerSummary<'a>>,
}

impl<'a> RetargetReport<'a> {
    pub fn new(work: &HandledFile<'a, Vec<TargetOutcome>>) -> Self {
        let containers = work.done.iter().map(|handled| ContainerSummary {
            found: handled.found.clone(),
            size: handled.size.unwrap_or(handled.found.bytes.len() as u64),
            outcomes: handled.said.clone(),
        });
        Self { containers: containers.collect() }
    }

    /// The targets that could not be made, with the severity of the policy.
    pub fn problems(&self, policy: Policy, file: &Path) -> Vec<Diagnostic> {
        let Some(severity) = policy.severity() else { return Vec::new() };
        let mut problems = Vec::new();
        for ContainerSummary { found, outcomes, .. } in &self.containers {
            let place = found.place.to_string();
            let reasons = outcomes.iter().flat_map(|outcome| outcome.result.reasons());
            problems.extend(reasons.map(|reason| {
                let mut problem = Diagnostic { severity, ..reason.clone() }.in_file(file);
                let entry = problem.place.entry.take().map_or(place.clone(), |entry| format!("{place}: {entry}"));
                problem.in_entry(entry)
            }));
        }
        let names: Vec<Vec<Disagreement>> = self.containers.iter().map(ContainerSummary::disagreements).collect();
        problems.extend(names_diagnostic(&names, names.len(), severity, file));
        problems
    }

    /// The results for the targets, in the order of the request.
    pub fn rows(&self) -> Vec<ResultRow> {
        let mut rows: Vec<ResultRow> = Vec::new();
        for outcome in self.containers.iter().flat_map(|container| &container.outcomes) {
            let (target, how) = (outcome.subject.to_string(), result_text(outcome));
            add_row(&mut rows, ResultRow { target, how, containers: 1 });
        }
        sort(&mut rows);
        rows
    }

    /// The text; `size`: that of the new file, if it was written.
    pub fn to_text(&self, file: &Path, old: usize, size: Option<u64>) -> String {
        let left_out = self.left_out();
        let file = text::plain(&file.display().to_string());
        let untouched = self.containers.iter().filter(|container| container.outcomes.is_empty()).count();
        let untouched =
            if untouched > 0 { format!(", {untouched} of them without code objects to go by") } else { String::new() };
        let count = self.containers.len();
        let plural = if count == 1 { "" } else { "s" };
        let end = size.map_or("nothing was written".to_owned(), |size| {
            let unused = self.unused(old, size);
            let told = format!(
                ", of which {unused} are zeros in the old place of fat binaries: its linker's layout (LLD's) keeps it; \
                 `--compress`, or retarget in the link"
            );
            format!("{old} to {size} bytes{}", if unused < WORTH_TELLING { "" } else { &told })
        });
        format!("{}{left_out}{file}: {count} container{plural}{untouched}; {end}\n", rows_text(&self.rows()))
    }

    /// A line for each kernel that was left out.
    fn left_out(&self) -> String {
        let outcomes = self.containers.iter().flat_map(|container| &container.outcomes);
        outcomes.map(left_out_kernel_lines).collect()
    }

    /// Bytes by which the file grew more, or shrank less, than its containers.
    fn unused(&self, old: usize, size: u64) -> u64 {
        let (before, now) = self.containers.iter().fold((0, 0), |(before, now), container| {
            (before + container.found.bytes.len() as u64, now + container.size)
        });
        (size + before).saturating_sub(old as u64 + now)
    }

    pub fn to_json(&self, file: &Path, old: usize, size: Option<u64>) -> Value {
        let containers: Vec<Value> = self.containers.iter().map(container_json).collect();
        json!({
            "schema": 1,
            "file": file.display().to_string(),
            "written": size.is_some(),
            "sizes": [old as u64, size.unwrap_or(old as u64)],
            "unused": self.unused(old, size.unwrap_or(old as u64)),
            "containers": containers,
        })
    }
}

fn container_json(ContainerSummary { found, size, outcomes }: &ContainerSummary<'_>) -> Value {
    json!({
        "place": found.place.to_string(),
        "form": found.form.to_string(),
        "sizes": [found.bytes.len(), size],
        "targets": outcomes.iter().map(outcome_json).collect::<Vec<_>>(),
    })
}

fn left_out_kernel_lines(TargetOutcome { subject, result }: &TargetOutcome) -> String {
    let kernels = result.left_out_kernels().into_iter();
    kernels.map(|kernel| format!("left out for {subject}: {}\n", text::plain(kernel))).collect()
}

/// One line of the table.
#[derive(Debug, Clone)]
pub struct ResultRow {
    target: String,
    how: String,
    containers: usize,
}

/// Adds to the row of the same target and result.
pub fn add_row(rows: &mut Vec<ResultRow>, new: ResultRow) {
    match rows.iter_mut().find(|row| row.target == new.target && row.how == new.how) {
        Some(row) => row.containers += new.containers,
        None => rows.push(new),
    }
}

/// The requested targets are in the same order in every container, so those of one target become adjacent.
fn sort(rows: &mut [ResultRow]) {
    let order: Vec<String> = rows.iter().map(|row| row.target.clone()).collect();
    rows.sort_by_key(|row| order.iter().position(|target| *target == row.target));
}

/// The rows as text.
pub fn rows_text(rows: &[ResultRow]) -> String {
    let mut rows = rows.to_vec();
    sort(&mut rows);
    let mut cells = vec![["TARGET", "HOW", "CONTAINERS"].map(str::to_owned).to_vec()];
    cells.extend(rows.into_iter().map(|row| vec![text::plain(&row.target), row.how, row.containers.to_string()]));
    text::table(&cells)
}

fn result_text(TargetOutcome { subject, result }: &TargetOutcome) -> String {
    match result {
        TargetResult::There => "there already".to_owned(),
        TargetResult::Covered(generic) => format!("covered by {generic}"),
        TargetResult::Made { source, route, left_out, .. } => {
            let verb = if *route == Route::Rewritten { "rewritten" } else { "made" };
            let without = match left_out.len() {
                0 => String::new(),
                1 => ", without one kernel".to_owned(),
                count => format!(", without {count} kernels"),
            };
            format!("{verb} from {source}{}{without}", remark_of_pair(source, subject).map_or("", |pair| pair.remark))
        }
        TargetResult::Dropped => "dropped".to_owned(),
        TargetResult::Superseded(generic) => format!("dropped, covered by {generic}"),
        TargetResult::Refused { reasons, names } if reasons.is_empty() && !names.is_empty() => {
            "refused: the host part chooses by the GPU's name".to_owned()
        }
        TargetResult::Refused { reasons, .. } => format!("refused ({} reasons)", reasons.len()),
    }
}

/// The status of a pair as it is shown.
struct PairRemark {
    status: String,
    /// Empty for a validated pair.
    remark: &'static str,
}

fn remark_of_pair(source: &Processor, made: &OutcomeSubject) -> Option<PairRemark> {
    let pair = find_pair(source, made.target()?)?;
    let word = if pair.status == hotswap_compat::PairStatus::Validated { "" } else { ", experimental" };
    Some(PairRemark { status: pair.status.to_string(), remark: word })
}

fn outcome_json(TargetOutcome { subject, result }: &TargetOutcome) -> Value {
    let mut row = match result {
        TargetResult::There | TargetResult::Dropped => json!({}),
        TargetResult::Covered(generic) | TargetResult::Superseded(generic) => json!({ "generic": generic.name }),
        TargetResult::Made { source, route, entries, code, .. } => {
            let status = remark_of_pair(source, subject).map(|pair| pair.status);
            json!({ "source": source.name, "route": route, "status": status, "entries": entries, "code": code, "left_out": result.left_out_kernels() })
        }
        TargetResult::Refused { reasons, names } => {
            let reasons: Vec<Value> = reasons.iter().map(Diagnostic::to_json).collect();
            json!({ "reasons": reasons, "names": names.iter().map(disagreement_json).collect::<Vec<_>>() })
        }
    };
    row["target"] = subject.to_string().into();
    row["how"] = result.how().into();
    row
}

fn disagreement_json(row: &Disagreement) -> Value {
    json!({ "source": row.source, "gpu": row.gpu, "library": row.library, "kernel": row.kernel, "why": row.why })
}
