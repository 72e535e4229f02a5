//! One bundle, whatever its form: read, add entries, write.
//!
//! Invariants: entries keep their order. An unchanged bundle is written as the bytes it was read from; a changed one
//! keeps alignment and form of compression.

use crate::aside;
use crate::bytes::{EntryBytes, malformed_at};
use crate::ccob::{self, CcobHeader, Compression, UnpackedContent};
use crate::draft::FileRope;
use crate::magic;
use crate::plain::{self, EntrySize};
use hotswap_files::MemoryLender;
use hotswap_report::{Diagnostic, codes};
use std::borrow::Cow;

/// One entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleEntry<'a> {
    /// Bundle entry ID as written; [`crate::EntryId::parse`] splits it.
    pub id: String,
    /// Its bytes; empty for the host's dummy.
    pub data: EntryBytes<'a>,
}

/// The validity of the hash in a compressed bundle's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashState {
    /// The bundle is not compressed and lacks a hash.
    Absent,
    /// It is the hash of the content.
    Right,
    /// It is not: content or header are damaged, or another tool did not recompute it.
    Wrong,
    /// The content was not decompressed, see [`crate::FoundContainer::table`].
    Unchecked,
}

/// A clang offload bundle, plain or compressed.
#[derive(Debug, Clone)]
pub struct Bundle<'a> {
    raw: &'a [u8],
    entries: Vec<BundleEntry<'a>>,
    record: Option<EntryBytes<'a>>,
    alignment: u64,
    compression: Option<Compression>,
    hash: HashState,
    changed: bool,
}

/// Reads the bundle at the start of `bytes`; also returns the number of bytes that belong to it.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for another magic, version or method; [`codes::MALFORMED`] for damage,
/// a wrong hash included.
pub fn parse(bytes: &[u8]) -> Result<(Bundle<'_>, usize), Diagnostic> {
    let (bundle, size) = parse_lenient(bytes)?;
    if bundle.hash == HashState::Wrong {
        return Err(malformed_at("the hash of the compressed bundle is not that of its content", 0)
            .advise("build it again: the code objects in it may be damaged, and comgr's cache may mix it up"));
    }
    Ok((bundle, size))
}

/// As [`parse`], but a wrong hash is only reported ([`Bundle::hash`]), as other readers ignore it.
///
/// # Errors
/// The same as those of [`parse`].
pub fn parse_lenient(bytes: &[u8]) -> Result<(Bundle<'_>, usize), Diagnostic> {
    let mut unpacked = is_compressed(bytes).then(|| UnpackedContent::unpack_bundle(bytes));
    ccob::compare_hashes(unpacked.iter_mut().flatten().collect());
    parse_unpacked(bytes, unpacked)
}

/// As [`parse_lenient`], for each of some bundles: the hashes of [`crate::SIDE_BY_SIDE`] contents take a third of the time that they
/// take one after the other. All contents are in memory at once, in a piece of `lender`'s if there is one.
///
/// # Errors
/// The same as those of [`parse`].
pub fn parse_all_lenient<'b>(
    bundles: &[&'b [u8]],
    lender: Option<&'static MemoryLender>,
) -> Vec<Result<(Bundle<'b>, usize), Diagnostic>> {
    let compressed: Vec<&[u8]> = bundles.iter().copied().filter(|bytes| is_compressed(bytes)).collect();
    let mut unpacked = ccob::unpack_all(&compressed, lender);
    ccob::compare_hashes(unpacked.iter_mut().flatten().collect());
    let mut unpacked = unpacked.into_iter();
    let parsed = bundles.iter().map(|bytes| {
        let unpacked = if is_compressed(bytes) { unpacked.next() } else { None };
        parse_unpacked(bytes, unpacked)
    });
    parsed.collect()
}

/// Reads a bundle; `unpacked` is its content where it is compressed.
fn parse_unpacked(
    bytes: &[u8],
    unpacked: Option<Result<UnpackedContent, Diagnostic>>,
) -> Result<(Bundle<'_>, usize), Diagnostic> {
    let Some(unpacked) = unpacked else { return parse_plain(bytes) };
    let UnpackedContent { header, bytes: content, has_hash } = unpacked?;
    from_content(bytes, &header, &content, has_hash)
}

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(magic::COMPRESSED)
}

fn parse_plain(bytes: &[u8]) -> Result<(Bundle<'_>, usize), Diagnostic> {
    let content = EntryBytes::from(bytes);
    let (mut bundle, end) = from_plain(bytes, &content)?;
    bundle.raw = bytes.get(..end).unwrap_or(bytes);
    Ok((bundle, end))
}

/// As [`parse`], with the content of a large compressed bundle in an unnamed file: pages that were read no longer need
/// memory after [`Bundle::release`], and [`Bundle::to_bytes`] compresses a stream.
///
/// # Errors
/// The same as those of [`parse`].
pub fn parse_aside(bytes: &[u8]) -> Result<(Bundle<'_>, usize), Diagnostic> {
    let header = if bytes.starts_with(magic::COMPRESSED) { Some(ccob::read_header(bytes)?) } else { None };
    if let Some(header) = header
        && let Some(content) = aside::unpack_to_file(bytes, &header).filter(|content| content.has_stated_hash)
    {
        return from_content(bytes, &header, &content.bytes, true);
    }
    // Damage is reported by the other reader.
    parse(bytes)
}

fn from_content<'a>(
    bytes: &'a [u8],
    header: &CcobHeader,
    content: &EntryBytes<'a>,
    matches: bool,
) -> Result<(Bundle<'a>, usize), Diagnostic> {
    let raw = bytes.get(..header.total as usize).unwrap_or(bytes);
    let (bundle, end) = from_plain(raw, content)?;
    if content.get(end..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)) {
        // Our writer would not keep such bytes, so they must not be lost silently.
        return Err(malformed_at("bytes follow the last entry of the compressed bundle", end as u64));
    }
    let hash = if matches { HashState::Right } else { HashState::Wrong };
    Ok((Bundle { compression: Some(header.compression), hash, ..bundle }, raw.len()))
}

impl BundleEntry<'_> {
    /// Its ID and its size.
    pub fn id_and_size(&self) -> EntrySize {
        (self.id.clone(), self.data.len() as u64)
    }
}

/// The contents of a bundle, each owned.
pub(crate) struct BundleParts<'a> {
    pub(crate) entries: Vec<BundleEntry<'a>>,
    /// The payload of HotSwap's record.
    pub(crate) record: Option<EntryBytes<'a>>,
    pub(crate) hash: HashState,
}

/// The table of a bundle, without the bytes of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSummary {
    entries: Vec<EntrySize>,
    record: Option<Vec<u8>>,
}

impl BundleSummary {
    /// Checks that `bytes` hold this bundle and nothing else. The bytes of its entries are compared
    /// elsewhere, with their sources.
    ///
    /// # Errors
    /// [`codes::VERIFY_FAILED`], or the error that makes it unreadable.
    pub fn check_written(&self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let (again, size) = parse(bytes)?;
        if size == bytes.len() && again.summary() == *self { Ok(()) } else { Err(bundle_differs()) }
    }
}

fn bundle_differs() -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, "the bundle differs")
}

fn from_plain<'a>(raw: &'a [u8], content: &EntryBytes<'a>) -> Result<(Bundle<'a>, usize), Diagnostic> {
    let plain = plain::read_plain(content)?;
    let bundle = Bundle {
        raw,
        entries: plain.entries,
        record: plain.record,
        alignment: plain.alignment,
        compression: None,
        hash: HashState::Absent,
        changed: false,
    };
    Ok((bundle, plain.end as usize))
}

impl Default for Bundle<'_> {
    /// An empty, uncompressed bundle with HIP's alignment.
    fn default() -> Self {
        Self {
            raw: &[],
            entries: Vec::new(),
            record: None,
            alignment: plain::ALIGNMENT,
            compression: None,
            hash: HashState::Absent,
            changed: true,
        }
    }
}

impl<'a> Bundle<'a> {
    /// The entries in the order of the table; the host's comes first in bundles made by clang.
    pub fn entries(&self) -> &[BundleEntry<'a>] {
        &self.entries
    }

    /// The first entry with that ID (comgr takes the first, too).
    pub fn entry(&self, id: &str) -> Option<&BundleEntry<'a>> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Appends an entry after all others.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] where the ID exists already.
    pub fn push(&mut self, id: impl Into<String>, data: impl Into<EntryBytes<'a>>) -> Result<(), Diagnostic> {
        let id = id.into();
        if self.entry(&id).is_some() {
            return Err(Diagnostic::error(codes::INTERNAL, "the bundle has an entry with this ID").in_entry(id));
        }
        self.entries.push(BundleEntry { id, data: data.into() });
        self.changed = true;
        Ok(())
    }

    /// Removes the entry with that ID and returns it.
    pub fn remove(&mut self, id: &str) -> Option<BundleEntry<'a>> {
        let index = self.entries.iter().position(|entry| entry.id == id)?;
        self.changed = true;
        Some(self.entries.remove(index))
    }

    /// Keeps the entries for which `keep` returns true; returns the number of removed ones.
    pub fn retain(&mut self, keep: impl FnMut(&BundleEntry<'a>) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(keep);
        self.changed |= self.entries.len() != before;
        before - self.entries.len()
    }

    /// Replaces the bytes of the first entry with that ID; `false` where it does not exist.
    pub fn set_data(&mut self, id: &str, data: impl Into<EntryBytes<'a>>) -> bool {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) else { return false };
        entry.data = data.into();
        self.changed = true;
        true
    }

    /// Payload of HotSwap's record block (JSON of `hotswap_report::Record`).
    pub fn record(&self) -> Option<&[u8]> {
        self.record.as_deref()
    }

    /// Sets or removes the payload of HotSwap's record block.
    pub fn set_record(&mut self, payload: Option<Vec<u8>>) {
        if self.record.as_deref() != payload.as_deref() {
            self.record = payload.map(EntryBytes::from);
            self.changed = true;
        }
    }

    pub(crate) fn into_parts(self) -> BundleParts<'a> {
        BundleParts { entries: self.entries, record: self.record, hash: self.hash }
    }

    /// Its compression; `None` for a plain bundle.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Sets its compression, or none.
    pub fn set_compression(&mut self, compression: Option<Compression>) {
        if self.compression != compression {
            self.compression = compression;
            self.changed = true;
        }
    }

    /// Alignment of the entries inside the (uncompressed) bundle.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Whether the hash in the header of a compressed bundle is right.
    pub fn hash(&self) -> HashState {
        self.hash
    }

    /// Whether it differs from the input.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Takes the entries for those of the input, which has them in another form than a bundle.
    pub(crate) fn mark_unchanged(&mut self) {
        self.changed = false;
    }

    /// Whether the bytes of the input are those of the bundle.
    fn is_input(&self) -> bool {
        !self.changed && !self.raw.is_empty()
    }

    /// The bundle's bytes: those of the input where nothing was changed.
    ///
    /// # Errors
    /// [`codes::BUNDLE_FULL`] where the table of an uncompressed bundle is longer than [`crate::TABLE_LIMIT`];
    /// [`codes::NO_PLACE`] for sizes that no reader accepts.
    pub fn to_bytes(&self) -> Result<Cow<'a, [u8]>, Diagnostic> {
        if self.is_input() {
            return Ok(Cow::Borrowed(self.raw));
        }
        self.written_bytes().map(Cow::Owned)
    }

    /// As [`Bundle::to_bytes`] without a copy of existing bytes. `like` lists the entries that are edited copies, with
    /// their originals: those bytes are shared, too. Compressed data is in memory.
    ///
    /// # Errors
    /// The same as those of [`Bundle::to_bytes`].
    pub fn to_draft(&self, like: &[(String, EntryBytes<'a>)]) -> Result<FileRope<'a>, Diagnostic> {
        match (self.is_input(), self.compression) {
            (true, _) => Ok(FileRope::from(self.raw)),
            (false, None) => self.plain_draft(like),
            (false, Some(_)) => self.written_bytes().map(FileRope::from),
        }
    }

    /// Whether its content is in an unnamed file ([`parse_aside`]).
    pub fn is_aside(&self) -> bool {
        self.entries.iter().any(|entry| entry.data.is_aside())
    }

    /// Gives back the memory of the part of an entry, see [`Bytes::release`].
    pub fn release(&self, part: &[u8]) {
        self.entries.iter().for_each(|entry| entry.data.release(part));
    }

    /// Its expected summary after it is written.
    pub fn summary(&self) -> BundleSummary {
        let entries = self.entries.iter().map(BundleEntry::id_and_size).collect();
        BundleSummary { entries, record: self.record().map(<[u8]>::to_vec) }
    }

    /// Whether `bytes`, which [`Bundle::to_bytes`] has compressed, decompress to this bundle.
    ///
    /// # Errors
    /// [`codes::VERIFY_FAILED`], or the error that makes them unreadable.
    pub fn check_packed(&self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let (header, draft) = (ccob::read_header(bytes)?, self.plain_draft(&[])?);
        // The bytes of its entries are compared with their sources, its table and its record are read back.
        let aside = if self.is_aside() { aside::unpack_same(bytes, &header, &draft) } else { None };
        let (content, is_compared) = match aside {
            Some(content) => (content, true),
            None => (EntryBytes::from(ccob::decompress_unhashed(bytes, &header)?), false),
        };
        let (again, end) = from_plain(bytes, &content)?;
        let is_same = header.total == bytes.len() as u64 && end == content.len() && again.summary() == self.summary();
        if is_same && (is_compared || draft.equals_bytes(&content)) { Ok(()) } else { Err(bundle_differs()) }
    }

    fn plain_draft(&self, like: &[(String, EntryBytes<'a>)]) -> Result<FileRope<'a>, Diagnostic> {
        plain::draft_plain(&self.entries, self.record(), (self.alignment, self.compression.is_none()), like)
    }

    fn written_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        let draft = self.plain_draft(&[])?;
        match self.compression {
            None => draft.try_to_vec().ok_or_else(plain::too_large),
            // Often nothing but the compression changes.
            Some(how) if draft.equals_bytes(self.raw) => ccob::compress_bundle(self.raw, how),
            Some(how) => {
                let aside = if self.is_aside() { aside::pack_in_file(&draft, how) } else { None };
                aside.unwrap_or_else(|| ccob::compress_bundle(&draft.try_to_vec().ok_or_else(plain::too_large)?, how))
            }
        }
    }

    /// The bundle laid out again, not compressed.
    ///
    /// # Errors
    /// The same as those of [`Bundle::to_bytes`].
    pub fn to_plain_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        self.plain_draft(&[])?.try_to_vec().ok_or_else(plain::too_large)
    }
}
