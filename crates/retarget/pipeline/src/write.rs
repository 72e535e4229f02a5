//! The last step: the new bundle, read back.

use crate::entry::NewEntry;
use hotswap_bundle::{Bundle, BundleSummary, EntryBytes, FileRope};
use hotswap_report::{Diagnostic, Record, codes};

/// A bundle that was laid out.
pub(crate) struct WrittenBundle<'a> {
    pub(crate) draft: FileRope<'a>,
    /// The expected summary when it is read from a file; `None` where it was read already.
    pub(crate) expected: Option<BundleSummary>,
}

impl WrittenBundle<'_> {
    /// All of it, read back.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, Diagnostic> {
        let bytes = self.draft.to_vec();
        self.expected.map_or(Ok(()), |expected| expected.check_written(&bytes))?;
        Ok(bytes)
    }
}

/// Adds the derived entries and the record, and lays the bundle out; `None` if neither an entry nor the record is new
/// (a second run that leaves out the same targets as the first). `sources` are the bytes that each was derived from.
///
/// A compressed bundle is read back and compared here; a plain one when it is in its file.
pub(crate) fn write_bundle<'a>(
    mut bundle: Bundle<'a>,
    derived: Vec<NewEntry>,
    sources: &[(String, EntryBytes<'a>)],
    record: &Record,
) -> Result<Option<WrittenBundle<'a>>, Diagnostic> {
    let record = record.to_json().into_bytes();
    if derived.is_empty() && !bundle.is_changed() && bundle.record() == Some(&record) {
        return Ok(None);
    }
    for entry in derived {
        if bundle.entry(&entry.id).is_some() {
            let what = "the bundle has this entry already, without a code object, or the entry of its source twice";
            return Err(Diagnostic::error(codes::MALFORMED, what).in_entry(entry.id));
        }
        bundle.push(entry.id, entry.data)?;
    }
    bundle.set_record(Some(record));
    if bundle.compression().is_none() {
        let draft = bundle.to_draft(sources)?;
        return Ok(Some(WrittenBundle { draft, expected: Some(bundle.summary()) }));
    }
    let bytes = bundle.to_bytes()?.into_owned();
    bundle.check_packed(&bytes)?;
    Ok(Some(WrittenBundle { draft: FileRope::from(bytes), expected: None }))
}
