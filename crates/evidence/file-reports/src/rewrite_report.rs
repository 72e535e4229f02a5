//! The report of changes to each kernel: a table, or JSON.
//!
//! JSON: `{schema: 1, file, target, written, sizes: [before, after], totals: {functions, sites, families: {name:
//! count}, grown, cycles}, objects: [{place, state, source, record, reasons}]}`. `state` is `rewritten`, `unchanged`
//! (no code that differs on the target), `there` (compiled for the target, or rewritten before), `made` (by another
//! route) or `refused`. `record` is `hotswap_adapt::ObjectRecord`, and `reasons` are diagnostics as everywhere.

use crate::function_changes::changes_table;
use hotswap_adapt::{FunctionRecord, ObjectRecord, PreparedObject};
use hotswap_families::ALIAS_FAMILIES;
use hotswap_pipeline::TargetResult;
use hotswap_report::{Diagnostic, Route, Severity, text};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Debug, Clone)]
pub struct ObjectReport {
    /// Container and entry; empty for a file that is one code object.
    pub place: String,
    state: &'static str,
    source: String,
    record: Option<ObjectRecord>,
    pub refused: Vec<Diagnostic>,
}

impl ObjectReport {
    /// An object that is for the target already.
    pub fn already_valid(source: TargetId) -> Self {
        let (place, source) = (String::new(), source.to_string());
        Self { place, state: "there", source, record: None, refused: Vec::new() }
    }

    /// The engine's result for a code object on its own.
    pub fn new(source: TargetId, prepared: &Result<PreparedObject<'_>, Vec<Diagnostic>>) -> Self {
        let (place, source) = (String::new(), source.to_string());
        match prepared {
            Ok(prepared) => {
                let (state, record) = (state(prepared.record()), Some(prepared.record().clone()));
                Self { place, state, source, record, refused: Vec::new() }
            }
            Err(refused) => Self { place, state: "refused", source, record: None, refused: refused.clone() },
        }
    }

    /// The outcome for the target in one container.
    pub fn of_result(place: &str, result: TargetResult) -> Vec<Self> {
        match result {
            TargetResult::Made { route: Route::Rewritten, code, entries, .. } => code
                .into_iter()
                .zip(entries)
                .map(|(record, entry)| Self::of_rewritten_code(place, &entry, record))
                .collect(),
            TargetResult::Dropped | TargetResult::Superseded(_) => Vec::new(),
            other => {
                let source = other.serving().map_or_else(String::new, ToString::to_string);
                let refused = other.refusals();
                vec![Self { refused, ..Self::without_record(place, state_of_result(&other), source) }]
            }
        }
    }

    fn of_rewritten_code(place: &str, entry: &str, record: ObjectRecord) -> Self {
        Self {
            place: format!("{place}: {entry}"),
            state: state(&record),
            source: record.source.clone(),
            record: Some(record),
            refused: Vec::new(),
        }
    }

    fn without_record(place: &str, state: &'static str, source: String) -> Self {
        Self { place: place.to_owned(), state, source, record: None, refused: Vec::new() }
    }
}

impl ObjectReport {
    /// The problem with the place of the object before its own.
    fn place_problem(&self, mut problem: Diagnostic) -> Diagnostic {
        let inner = problem.place.entry.take();
        let parts = [Some(self.place.clone()).filter(|place| !place.is_empty()), inner];
        let entry: Vec<String> = parts.into_iter().flatten().collect();
        problem.place.entry = (!entry.is_empty()).then(|| entry.join(": "));
        problem
    }

    fn to_json(&self) -> Value {
        json!({
            "place": self.place,
            "state": self.state,
            "source": self.source,
            "record": self.record,
            "reasons": self.refused.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })
    }
}

/// The state of an object whose code the engine did not change.
fn state_of_result(result: &TargetResult) -> &'static str {
    match result {
        TargetResult::There | TargetResult::Covered(_) => "there",
        other => other.how(),
    }
}

/// Whether its code was changed, or was valid for the target already.
fn state(record: &ObjectRecord) -> &'static str {
    if record.families.iter().all(|family| is_alias_family(&family.name)) { "unchanged" } else { "rewritten" }
}

fn is_alias_family(name: &str) -> bool {
    ALIAS_FAMILIES.contains(&name)
}

/// The report about a file.
pub struct RewriteReport<'r> {
    pub file: &'r Path,
    pub target: String,
    pub old: u64,
    pub objects: Vec<ObjectReport>,
    /// The severity of a refusal.
    pub severity: Option<Severity>,
}

impl RewriteReport<'_> {
    /// All refusals, by the policy.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let Some(severity) = self.severity else { return Vec::new() };
        let refused = self.objects.iter().flat_map(|object| object.refused.iter().map(move |reason| (object, reason)));
        refused
            .map(|(object, reason)| object.place_problem(Diagnostic { severity, ..reason.clone() }.in_file(self.file)))
            .collect()
    }

    fn records(&self) -> impl Iterator<Item = &ObjectRecord> {
        self.objects.iter().filter_map(|object| object.record.as_ref())
    }

    fn functions(&self) -> impl Iterator<Item = &FunctionRecord> {
        self.records().flat_map(|record| &record.functions)
    }

    /// Numbers of changed sites, by family.
    fn families(&self) -> BTreeMap<&str, u64> {
        let mut families = BTreeMap::new();
        let all = self.records().flat_map(|record| &record.families);
        for family in all.filter(|family| !ALIAS_FAMILIES.contains(&family.name.as_str())) {
            *families.entry(family.name.as_str()).or_default() += family.sites;
        }
        families
    }

    pub fn to_json(&self, written: Option<u64>) -> Value {
        let families = self.families();
        json!({
            "schema": 1,
            "file": self.file.display().to_string(),
            "target": self.target,
            "written": written.is_some(),
            "sizes": [self.old, written.unwrap_or(self.old)],
            "totals": {
                "functions": self.functions().count(),
                "sites": families.values().sum::<u64>(),
                "families": families,
                "grown": self.records().map(|record| record.grown).sum::<i64>(),
                "cycles": self.functions().map(|function| function.cycles).sum::<u64>(),
            },
            "objects": self.objects.iter().map(ObjectReport::to_json).collect::<Vec<_>>(),
        })
    }

    pub fn to_text(&self, written: Option<u64>) -> String {
        let mut out = String::new();
        for object in &self.objects {
            out += &self.object(object);
        }
        let assumed: BTreeSet<&str> =
            self.functions().flat_map(|function| &function.assumes).map(String::as_str).collect();
        out.extend(assumed.iter().map(|assumption| format!("taken for granted: {assumption}\n")));
        let file = text::plain(&self.file.display().to_string());
        let end = written.map_or("nothing was written".to_owned(), |size| format!("{} to {size} bytes", self.old));
        out += &format!("{file}: {}; {end}\n", self.totals());
        out
    }

    fn totals(&self) -> String {
        let families = self.families();
        let told = [
            ("rewritten", "rewritten"),
            ("unchanged", "right as it is"),
            ("made", "made by another route"),
            ("there", "there already"),
            ("refused", "refused"),
        ];
        let told: Vec<String> = told
            .iter()
            .map(|(state, words)| (self.count_in_state(state), words))
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        let told = if told.is_empty() { "no code object".to_owned() } else { told.join(", ") };
        let sites: u64 = families.values().sum();
        if sites == 0 {
            return told;
        }
        let by_family: Vec<String> = families.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let grown: i64 = self.records().map(|record| record.grown).sum();
        format!("{told}; {sites} places changed ({}), code grown by {grown} bytes", by_family.join(", "))
    }

    fn count_in_state(&self, state: &str) -> usize {
        self.objects.iter().filter(|object| object.state == state).count()
    }

    fn object(&self, object: &ObjectReport) -> String {
        let place = if object.place.is_empty() { String::new() } else { format!("{}: ", text::plain(&object.place)) };
        let state = match object.state {
            "rewritten" => format!("rewritten from {}", object.source),
            "unchanged" => format!("the code for {} is right as it is", object.source),
            "made" => format!("made from {} by another route", object.source),
            "there" if object.source.is_empty() || object.source == self.target => "there already".to_owned(),
            "there" => format!("covered by {}", object.source),
            _ => format!("refused ({} reasons)", object.refused.len()),
        };
        let label = object.record.as_ref().is_some_and(|record| !record.labelled);
        let label = if label { ", header and note name the source" } else { "" };
        let mut out = format!("{place}{}: {state}{label}\n", self.target);
        out += &object.record.as_ref().map_or_else(String::new, |record| changes_table(record, "--report json"));
        out
    }
}
