//! The provenance of a file's device code, checked against the records.
//!
//! A record is trusted only as far as its hashes match: those of each entry's bytes, and of the bytes of the source if
//! that is in the same bundle. A code object for another target than its entry ID names is reported, too.

use crate::container_json::{UNREAD, container_json};
use crate::function_changes::changes_table;
use hotswap_adapt::ObjectRecord;
use hotswap_bundle::inventory::{ImageRow, InventoryContainer, InventoryDepth, hash_problem, visit_to};
use hotswap_bundle::{FoundContents, ImageKind};
use hotswap_code_object::CodeObject;
use hotswap_families::manifest::{self, PlanManifest};
use hotswap_load_model::acceptance::{JudgedContainer, JudgedEntry};
use hotswap_report::{Diagnostic, Record, codes, text};
use serde_json::{Value, json};
use std::path::Path;

/// The report about one file.
pub struct FileReport {
    name: String,
    containers: Vec<ContainerReport>,
    manifests: Vec<PlanManifest>,
    pub problems: Vec<Diagnostic>,
}

struct ContainerReport {
    headline: String,
    is_read: bool,
    json: Value,
    record: Option<Record>,
    entries: Vec<EntryReport>,
}

struct EntryReport {
    cells: Vec<String>,
    json: Value,
}

/// Reads records and hashes of a file, which was opened with the sections of records. `progress` gets the number of bytes after
/// each container.
pub fn inspect_contents(
    file: &Path,
    contents: &FoundContents<'_>,
    depth: InventoryDepth,
    progress: &dyn Fn(u64),
) -> FileReport {
    let mut containers = Vec::new();
    let mut problems = Vec::new();
    let unread = visit_to(contents, depth, progress, |container| {
        problems.extend(hash_problem(&container));
        containers.push(report(&container, &mut problems));
    });
    problems.extend(unread);
    let manifests = read_manifests(contents, &mut problems);
    let problems: Vec<_> = problems.into_iter().map(|problem| problem.in_file(file)).collect();
    FileReport { name: file.display().to_string(), containers, manifests, problems }
}

/// The manifests of a file; damage of one is a problem.
pub fn read_manifests(contents: &FoundContents<'_>, problems: &mut Vec<Diagnostic>) -> Vec<PlanManifest> {
    let mut found = Vec::new();
    for (place, section) in &contents.sections {
        match manifest::read_manifests(section) {
            Ok(manifests) => found.extend(manifests),
            Err(error) => problems.push(error.in_entry(place.to_string())),
        }
    }
    found
}

fn report(container: &InventoryContainer<'_>, problems: &mut Vec<Diagnostic>) -> ContainerReport {
    let place = container.found.place.to_string();
    let before = problems.len();
    let judged = JudgedContainer {
        record: container.record.as_ref(),
        entries: container.rows.iter().map(|row| JudgedEntry::new(row.image.id.as_deref(), &row.image.data)).collect(),
    };
    let rows = container.rows.iter().zip(&judged.entries);
    let entries = match container.is_read {
        true => rows.map(|(row, own)| entry(row, own, judged.entry_faults(own), problems)).collect(),
        false => container.rows.iter().map(unread_entry).collect(),
    };
    if container.is_read {
        problems.extend(judged.missing_entries());
    }
    for problem in &mut problems[before..] {
        let entry = problem.place.entry.take();
        problem.place.entry = Some(entry.map_or(place.clone(), |entry| format!("{place}: {entry}")));
    }
    let count = container.rows.len();
    let images = if count == 1 { "1 image" } else { &format!("{count} images") };
    let made = container.record.as_ref().map_or("no record of HotSwap".to_owned(), |record| {
        format!(
            "plan {}, HotSwap {} ({})",
            text::plain(&record.plan),
            text::plain(&record.hotswap),
            text::plain(&record.identity)
        )
    });
    let form = container.found.form;
    let headline = format!("{}: {form}, {} bytes, {images}, {made}", text::plain(&place), container.found.bytes.len());
    ContainerReport {
        headline,
        json: container_json(container),
        record: container.record.clone(),
        is_read: container.is_read,
        entries,
    }
}

fn entry(
    row: &ImageRow<'_>,
    judged: &JudgedEntry<'_>,
    faults: Vec<Diagnostic>,
    problems: &mut Vec<Diagnostic>,
) -> EntryReport {
    let is_unknown = faults.iter().any(|fault| fault.code == codes::UNKNOWN_MACHINE);
    let is_good = faults.is_empty();
    let id = row.image.id.clone().unwrap_or_else(|| format!("image {}", row.number));
    problems.extend(faults.into_iter().map(|fault| fault.in_entry(&id)));
    let object = match row.image.kind {
        ImageKind::CodeObject => CodeObject::parse(&row.image.data).ok(),
        _ => None,
    };
    let hash = judged.sha256();
    let verdict = match (&row.record, is_good) {
        (_, false) if is_unknown => "not known",
        (_, false) => "WRONG",
        (Some(_), true) => "verified",
        (None, true) => "",
    };
    let kernels = object.as_ref().map(|object| object.note().kernels.len());
    let abi = object.as_ref().map(CodeObject::abi_version);
    EntryReport { cells: cells(row, hash, kernels, verdict), json: entry_json(row, hash, kernels, abi, verdict) }
}

/// An entry of which the table alone was read: the report has nothing about its bytes.
fn unread_entry(row: &ImageRow<'_>) -> EntryReport {
    let target = text::plain(row.target.as_deref().unwrap_or("-"));
    let cells = vec![format!("  {}", row.number), target, "-".to_owned(), format!("{} bytes", row.size)];
    let json = json!({
        "number": row.number, "id": row.image.id, "target": row.target, "kind": null, "size": row.size, "sha256": null,
        "kernels": null, "abi_version": null, "route": null, "source": null, "source_sha256": null, "families": null,
        "verdict": "not read",
    });
    EntryReport { cells, json }
}

fn cells(row: &ImageRow<'_>, hash: &str, kernels: Option<usize>, verdict: &str) -> Vec<String> {
    let families = row.record.iter().flat_map(|record| &record.families);
    let families: Vec<_> = families.map(|family| format!("{} {}", text::plain(&family.name), family.sites)).collect();
    vec![
        format!("  {}", row.number),
        text::plain(row.target.as_deref().unwrap_or("-")),
        row.image.kind.to_string(),
        format!("{} bytes", row.image.data.len()),
        kernels.map_or(String::new(), |count| format!("{count} kernel{}", if count == 1 { "" } else { "s" })),
        format!("sha256 {}", &hash[..12]),
        text::plain(&row.route()),
        families.join(", "),
        verdict.to_owned(),
    ]
}

fn entry_json(row: &ImageRow<'_>, hash: &str, kernels: Option<usize>, abi: Option<u8>, verdict: &str) -> Value {
    json!({
        "number": row.number,
        "id": row.image.id,
        "target": row.target,
        "kind": row.image.kind.to_string(),
        "size": row.image.data.len(),
        "sha256": hash,
        "kernels": kernels,
        "abi_version": abi,
        "route": row.record.as_ref().map(|record| record.route),
        "source": row.record.as_ref().and_then(|record| record.source.as_ref()),
        "source_sha256": row.record.as_ref().and_then(|record| record.source_sha256.as_ref()),
        "families": row.record.as_ref().map(|record| &record.families),
        "verdict": match verdict { "" => "unrecorded", "WRONG" => "wrong", other => other },
    })
}

/// The plan's pairs in one line, without the header.
fn plan_line(plan: &str) -> String {
    plan.lines().skip(1).map(text::plain).collect::<Vec<_>>().join("; ")
}

impl ContainerReport {
    fn text(&self) -> String {
        let rows: Vec<_> = self.entries.iter().map(|entry| entry.cells.clone()).collect();
        let mut out = format!("{}\n{}", self.headline, text::table(&rows));
        if let Some(record) = &self.record {
            out += &format!("  plan: {}\n", plan_line(&record.plan_text));
            let rewritten = record.entries.iter().filter_map(|entry| {
                let code: ObjectRecord = serde_json::from_value(entry.code.clone()?).ok()?;
                Some((text::plain(&entry.target), changes_table(&code, "--format json")))
            });
            for (target, table) in rewritten.filter(|(_, table)| !table.is_empty()) {
                out += &format!("  {target}, what was done to its code:\n{table}");
            }
            out.extend(record.refused.iter().map(|refused| format!("  left out: {}\n", text::plain(refused))));
        }
        out
    }

    fn json(&self) -> Value {
        let mut value = self.json.clone();
        value["entries"] = self.entries.iter().map(|entry| entry.json.clone()).collect();
        value["record"] = json!(self.record);
        value
    }
}

impl FileReport {
    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}:\n", text::plain(&self.name));
        out.extend(self.containers.iter().map(ContainerReport::text));
        if self.containers.iter().any(|container| !container.is_read) {
            out += UNREAD;
        }
        for manifest in &self.manifests {
            let families = manifest.families.join(", ");
            out += &format!(
                "manifest: plan {}, HotSwap {} ({}), families {}\n  plan: {}\n",
                text::plain(&manifest.plan),
                text::plain(&manifest.hotswap),
                text::plain(&manifest.identity),
                text::plain(if families.is_empty() { "none" } else { &families }),
                plan_line(&manifest.plan_text)
            );
        }
        out
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.name,
            "containers": self.containers.iter().map(ContainerReport::json).collect::<Vec<_>>(),
            "manifests": self.manifests,
            "problems": self.problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })
    }
}
