//! Keeps HotSwap's record in a bundle consistent with the commands' changes to its entries.

use hotswap_bundle::{Bundle, BundleEntry, EntryId};
use hotswap_report::{Diagnostic, EntryRecord, Record, Route, codes};
use hotswap_targets::TargetId;

/// The record, where the bundle has one that can be read. An unreadable one stays unchanged.
fn read(bundle: &Bundle<'_>) -> Option<Record> {
    bundle.record().and_then(|payload| Record::from_json(payload).ok())
}

/// The record of a code object in a file of its own.
///
/// # Errors
/// [`codes::MALFORMED`].
pub fn of_file(payload: &[u8]) -> Result<Record, Diagnostic> {
    Record::from_json(payload).map_err(damaged_record_error)
}

fn damaged_record_error(error: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("HotSwap's record: {error}"))
}

/// An entry that was added by hand counts as compiled, unless its file has a record of how it was made.
pub(crate) fn put(bundle: &mut Bundle<'_>, id: &str, code: &[u8], made: Option<&Record>) -> Result<(), Diagnostic> {
    let record = read(bundle).map(Ok).or_else(|| begin_absent(bundle, made)).transpose()?;
    let Some(mut record) = record else { return Ok(()) };
    let compiled = compiled_row(id, code)?;
    let made = made.and_then(|made| made.entries.iter().find(|row| row.sha256 == compiled.sha256));
    let row = match made {
        Some(made) => EntryRecord { id: compiled.id, target: compiled.target, ..made.clone() },
        None => compiled,
    };
    match record.entries.iter_mut().find(|old| old.id == id) {
        Some(old) => *old = row,
        None => record.entries.push(row),
    }
    bundle.set_record(Some(record.to_json().into_bytes()));
    Ok(())
}

fn begin_absent(bundle: &Bundle<'_>, made: Option<&Record>) -> Option<Result<Record, Diagnostic>> {
    made.filter(|_| bundle.record().is_none()).map(|made| begin(bundle, made))
}

/// Creates the record of a bundle that lacks one, from the plan by which the new entry was made.
fn begin(bundle: &Bundle<'_>, made: &Record) -> Result<Record, Diagnostic> {
    let others = bundle.entries().iter().filter(is_device_entry).map(|entry| compiled_row(&entry.id, &entry.data));
    Ok(Record { entries: others.collect::<Result<_, _>>()?, ..made.clone() })
}

fn is_device_entry(entry: &&BundleEntry<'_>) -> bool {
    EntryId::parse(&entry.id).is_ok_and(|id| id.target().is_some())
}

fn compiled_row(id: &str, code: &[u8]) -> Result<EntryRecord, Diagnostic> {
    let entry = EntryId::parse(id)?;
    let target = entry.target().unwrap_or_default();
    let is_generic = target.parse::<TargetId>().is_ok_and(|target| target.processor.is_generic());
    Ok(EntryRecord {
        id: id.to_owned(),
        target: target.to_owned(),
        route: if is_generic { Route::Generic } else { Route::Native },
        sha256: hotswap_load_model::acceptance::sha256_of(code),
        size: u64::try_from(code.len()).map_err(|_| Diagnostic::error(codes::INTERNAL, "a size of 65 bits"))?,
        source: None,
        source_sha256: None,
        text: None,
        text_evidence: None,
        families: Vec::new(),
        code: None,
    })
}

/// Removes the rows of entries that no longer exist.
pub(crate) fn forget(bundle: &mut Bundle<'_>) {
    let Some(mut record) = read(bundle) else { return };
    record.entries.retain(|row| bundle.entry(&row.id).is_some());
    bundle.set_record(Some(record.to_json().into_bytes()));
}
