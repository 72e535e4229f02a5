//! The record of an expanded bundle.

use crate::expand::{Derived, Present, route_of};
use hotswap_bundle::Bundle;
use hotswap_plan::{IDENTITY, Plan, VERSION};
use hotswap_report::{Diagnostic, EntryRecord, Record, codes};
use sha2::{Digest, Sha256};

/// SHA-256 as hexadecimal digits, as `sha256sum` prints it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The record for the bundle as it will be: old entries first, then the derived ones.
///
/// An entry that an earlier run derived keeps its row, as long as its bytes are the same.
pub(crate) fn build(
    bundle: &Bundle<'_>,
    present: &[Present<'_>],
    derived: &[Derived],
    refusals: &[Diagnostic],
    plan: &Plan,
) -> Result<Record, Diagnostic> {
    let earlier = earlier_rows(bundle)?;
    let rows = present.iter().map(|entry| row(entry, &earlier));
    Ok(Record {
        schema: 1,
        hotswap: VERSION.to_owned(),
        identity: IDENTITY.to_owned(),
        plan: plan.hash(),
        plan_text: plan.canonical(),
        entries: rows.chain(derived.iter().map(|entry| entry.record.clone())).collect(),
        refused: refusals.iter().map(|diagnostic| diagnostic.what.clone()).collect(),
    })
}

fn earlier_rows(bundle: &Bundle<'_>) -> Result<Vec<EntryRecord>, Diagnostic> {
    let Some(payload) = bundle.record() else { return Ok(Vec::new()) };
    let record = Record::from_json(payload)
        .map_err(|error| Diagnostic::error(codes::MALFORMED, format!("HotSwap's record: {error}")))?;
    Ok(record.entries)
}

fn row(entry: &Present<'_>, earlier: &[EntryRecord]) -> EntryRecord {
    let id = entry.id.to_string();
    let sha256 = entry.sha256().to_owned();
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
        families: Vec::new(),
    }
}
