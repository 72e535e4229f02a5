//! HotSwap's record in a bundle follows what the commands do to its entries.

use hotswap_bundle::{Bundle, EntryId};
use hotswap_report::{Diagnostic, EntryRecord, Record, Route, codes};
use hotswap_targets::TargetId;
use sha2::{Digest, Sha256};

/// The record, where the bundle has one that can be read. One that cannot stays as it is.
fn read(bundle: &Bundle<'_>) -> Option<Record> {
    bundle.record().and_then(|payload| Record::from_json(payload).ok())
}

/// An entry that was put in by hand counts as compiled.
pub(super) fn put(bundle: &mut Bundle<'_>, id: &str, code: &[u8]) -> Result<(), Diagnostic> {
    let Some(mut record) = read(bundle) else { return Ok(()) };
    let entry = EntryId::parse(id)?;
    let target = entry.target().unwrap_or_default();
    let is_generic = target.parse::<TargetId>().is_ok_and(|target| target.processor.is_generic());
    let row = EntryRecord {
        id: id.to_owned(),
        target: target.to_owned(),
        route: if is_generic { Route::Generic } else { Route::Native },
        sha256: Sha256::digest(code).iter().map(|byte| format!("{byte:02x}")).collect(),
        size: u64::try_from(code.len()).map_err(|_| Diagnostic::error(codes::INTERNAL, "a size of 65 bits"))?,
        source: None,
        source_sha256: None,
        text: None,
        text_evidence: None,
        families: Vec::new(),
        code: None,
    };
    match record.entries.iter_mut().find(|row| row.id == id) {
        Some(old) => *old = row,
        None => record.entries.push(row),
    }
    bundle.set_record(Some(record.to_json().into_bytes()));
    Ok(())
}

/// Rows of entries that are no longer there go.
pub(super) fn forget(bundle: &mut Bundle<'_>) {
    let Some(mut record) = read(bundle) else { return };
    record.entries.retain(|row| bundle.entry(&row.id).is_some());
    bundle.set_record(Some(record.to_json().into_bytes()));
}
