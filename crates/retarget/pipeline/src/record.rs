//! The third step: the record of the resulting bundle.

use crate::entry::{NewEntry, SourceEntry};
use crate::request::{RetargetRequest, SourcePolicy};
use hotswap_bundle::Bundle;
use hotswap_plan::{IDENTITY, Plan, RetargetPair, TextFindings, VERSION};
use hotswap_report::{Diagnostic, EntryRecord, Record, Route, SourceText, codes};
use hotswap_targets::TargetId;
use sha2::{Digest, Sha256};
use std::thread;

/// Below this many bytes in all, threads cost more than they save (a hash runs at over 1 GB/s).
const WORTH_THREADS: usize = 1 << 20;

/// Bytes that are hashed before their memory is given back.
const BLOCK: usize = 1 << 20;

/// Gives back the memory of bytes that were read.
type ReleaseBytesFn<'r> = dyn Fn(&[u8]) + Sync + 'r;

/// SHA-256 as hexadecimal digits, as `sha256sum` prints it.
fn sha256_of(bytes: &[u8], release: &ReleaseBytesFn<'_>) -> String {
    let mut state = Sha256::new();
    for block in bytes.chunks(BLOCK) {
        state.update(block);
        release(block);
    }
    hotswap_report::hex_digits(&state.finalize())
}

/// The hashes of several code objects, in their order.
fn hash_all(objects: &[&[u8]], release: &ReleaseBytesFn<'_>) -> Vec<String> {
    let total: usize = objects.iter().map(|object| object.len()).sum();
    let threads = if total < WORTH_THREADS { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    hotswap_files::on_threads(threads, objects.len(), |number| sha256_of(objects[number], release))
}

/// The record of the resulting bundle: old entries first, then the derived ones, of both those that `is_kept`
/// accepts by their IDs.
///
/// An entry that an earlier run derived keeps its row, as long as its bytes are the same.
pub(crate) fn build_record(
    bundle: &Bundle<'_>,
    (present, derived): (&[SourceEntry<'_>], &[NewEntry]),
    refusals: &[Diagnostic],
    request: &RetargetRequest,
    is_kept: impl Fn(&str) -> bool,
) -> Result<Record, Diagnostic> {
    let earlier = earlier_rows(bundle)?;
    let objects: Vec<&[u8]> = present.iter().map(|e| e.data).chain(derived.iter().map(|e| &e.data[..])).collect();
    let mut hashes = hash_all(&objects, &|part| {
        bundle.release(part);
        derived.iter().for_each(|entry| entry.data.release(part));
    })
    .into_iter();
    let old: Vec<_> =
        present.iter().zip(&mut hashes).map(|(entry, hash)| row_of_source(entry, hash, &earlier)).collect();
    let new = derived.iter().zip(hashes).map(|(entry, hash)| derived_row(entry, hash, present, &old));
    let new: Vec<EntryRecord> = new.collect::<Result<_, _>>()?;
    let mut entries: Vec<EntryRecord> = old.into_iter().chain(new).filter(|row| is_kept(&row.id)).collect();
    let plan = match &request.sources {
        SourcePolicy::Best | SourcePolicy::Only(_) => &plan_of(&entries, request),
        SourcePolicy::Plan { plan, findings } => {
            note_findings(&mut entries, findings);
            plan
        }
    };
    let refused = refusals.iter().map(|diagnostic| diagnostic.what.clone()).collect();
    Ok(written_now(plan, entries, refused))
}

/// A record of this version of HotSwap.
fn written_now(plan: &Plan, entries: Vec<EntryRecord>, refused: Vec<String>) -> Record {
    Record {
        schema: 1,
        hotswap: VERSION.to_owned(),
        identity: IDENTITY.to_owned(),
        plan: plan.hash(),
        plan_text: plan.canonical_text(),
        entries,
        refused,
    }
}

/// The plan that requests the pairs of the record's rows.
fn plan_of(rows: &[EntryRecord], request: &RetargetRequest) -> Plan {
    let aliases = rows.iter().filter(|row| row.route.is_made());
    let pairs = aliases.filter_map(|row| {
        Some(RetargetPair {
            source: processor_of_target(row.source.as_ref()?),
            target: processor_of_target(&row.target),
        })
    });
    let pairs = pairs.collect();
    Plan {
        pairs,
        policy: request.policy,
        experimental: request.allow.experimental,
        unchecked_names: request.unchecked_names,
        ..Plan::default()
    }
}

fn processor_of_target(target: &str) -> String {
    target.split(':').next().unwrap_or_default().to_owned()
}

/// The record of code objects that come from several files, each with the rows of its own record.
pub(crate) fn of_rows(entries: Vec<EntryRecord>) -> Record {
    written_now(&plan_of(&entries, &RetargetRequest::default()), entries, Vec::new())
}

fn earlier_rows(bundle: &Bundle<'_>) -> Result<Vec<EntryRecord>, Diagnostic> {
    rows_of_record(bundle.record())
}

/// The rows of a record, if there is one.
pub(crate) fn rows_of_record(payload: Option<&[u8]>) -> Result<Vec<EntryRecord>, Diagnostic> {
    let Some(payload) = payload else { return Ok(Vec::new()) };
    let record = Record::from_json(payload)
        .map_err(|error| Diagnostic::error(codes::MALFORMED, format!("HotSwap's record: {error}")))?;
    Ok(record.entries)
}

/// IDs of the entries that an earlier run has made.
pub(crate) fn made_before(bundle: &Bundle<'_>) -> Result<Vec<String>, Diagnostic> {
    let rows = earlier_rows(bundle)?.into_iter();
    Ok(rows.filter(|row| row.route.is_made()).map(|row| row.id).collect())
}

/// An entry that an earlier run has made by changing the code of another one.
pub(crate) struct EntryOrigin {
    /// The ID of the entry.
    pub(crate) made: String,
    /// The target of the other one.
    pub(crate) source: String,
}

/// The entries that an earlier run has made by changing the code of others.
pub(crate) fn derived_origins(bundle: &Bundle<'_>) -> Result<Vec<EntryOrigin>, Diagnostic> {
    let rows = earlier_rows(bundle)?.into_iter().filter(is_derived_row);
    Ok(rows.filter_map(|row| Some(EntryOrigin { made: row.id, source: row.source? })).collect())
}

/// Code that the link compiled again was compiled for its own target.
fn is_derived_row(row: &EntryRecord) -> bool {
    row.route.is_made() && row.route != Route::Recompiled
}

fn row_of_source(entry: &SourceEntry<'_>, sha256: String, earlier: &[EntryRecord]) -> EntryRecord {
    let id = entry.id.to_string();
    if let Some(row) = earlier.iter().find(|row| row.id == id && row.sha256 == sha256) {
        return row.clone();
    }
    EntryRecord {
        id,
        target: entry.target.to_string(),
        route: route_of(&entry.target),
        sha256,
        size: entry.data.len() as u64,
        source: None,
        source_sha256: None,
        text: None,
        text_evidence: None,
        families: Vec::new(),
        code: None,
    }
}

/// `present` and `rows` are the same entries.
fn derived_row(
    entry: &NewEntry,
    sha256: String,
    present: &[SourceEntry<'_>],
    rows: &[EntryRecord],
) -> Result<EntryRecord, Diagnostic> {
    let source = present.iter().zip(rows).find(|(source, _)| source.id == entry.source);
    let code = entry.code.as_ref().map(serde_json::to_value).transpose();
    let code = code.map_err(|error| Diagnostic::error(codes::INTERNAL, error.to_string()))?;
    Ok(EntryRecord {
        id: entry.id.clone(),
        target: entry.target.to_string(),
        route: entry.route,
        sha256,
        size: entry.data.len() as u64,
        source: source.map(|(source, _)| source.target.to_string()),
        source_sha256: source.map(|(_, row)| row.sha256.clone()),
        text: Some(SourceText::NotChecked),
        text_evidence: None,
        families: entry.families.clone(),
        code,
    })
}

/// Writes the findings about the source's text into the rows concerned. Rows of earlier runs keep theirs.
fn note_findings(rows: &mut [EntryRecord], findings: &TextFindings) {
    for row in rows {
        let processor = row.target.split(':').next().unwrap_or_default();
        let Some(finding) = findings.find(processor) else { continue };
        let is_made = row.route.is_made();
        if is_made != finding.status.is_compiled() {
            row.text = Some(finding.status);
            row.text_evidence.clone_from(&finding.evidence);
        }
    }
}

/// The name of a route in the record, for an entry that existed before.
fn route_of(target: &TargetId) -> Route {
    if target.processor.is_generic() { Route::Generic } else { Route::Native }
}
