//! Concatenated bundles, as host linkers leave them in `.hip_fatbin`.
//!
//! Each object file contributes one bundle; the linker aligns the next one to 4096 and fills with zeros. The walk uses
//! the size of each bundle and skips zeros, never searching for a magic.

use crate::bundle::BundleParts;
use crate::bytes::{shift_offset, u32_at};
use crate::container::{ContainerForm, ContainerFormat, ContainerImage, DeviceContents, FoundContainer};
use crate::magic::{self, is_bundle};
use crate::plain::EntrySize;
use crate::{Bundle, ccob, parse, parse_lenient};
use hotswap_report::{Diagnostic, codes};

/// A bundle and its position.
#[derive(Debug, Clone)]
pub struct LocatedBundle<'a> {
    /// Offset in the bytes that were walked.
    pub offset: usize,
    /// Number of its bytes.
    pub size: usize,
    pub bundle: Bundle<'a>,
}

type BundleReader = for<'b> fn(&'b [u8]) -> Result<(Bundle<'b>, usize), Diagnostic>;

/// Iterator over bundles; it ends after the first error.
#[derive(Debug)]
pub struct BundleWalk<'a> {
    bytes: &'a [u8],
    at: usize,
    read: BundleReader,
}

/// Walks the content of a `.hip_fatbin` section. Compressed bundles are decompressed one at a time, as
/// the iterator reaches them.
pub fn walk_fatbin(bytes: &[u8]) -> BundleWalk<'_> {
    BundleWalk { bytes, at: 0, read: parse }
}

/// As [`walk_fatbin`], with [`parse_lenient`].
pub fn walk_fatbin_lenient(bytes: &[u8]) -> BundleWalk<'_> {
    BundleWalk { bytes, at: 0, read: parse_lenient }
}

impl<'a> Iterator for BundleWalk<'a> {
    type Item = Result<LocatedBundle<'a>, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = match next_start(self.bytes, self.at).transpose()? {
            Ok(offset) => offset,
            Err(error) => return Some(Err(self.stop_with(error))),
        };
        match (self.read)(&self.bytes[offset..]) {
            Ok((bundle, size)) => {
                self.at = offset + size;
                Some(Ok(LocatedBundle { offset, size, bundle }))
            }
            Err(error) => Some(Err(self.stop_with(shift_offset(error, offset as u64)))),
        }
    }
}

impl BundleWalk<'_> {
    fn stop_with(&mut self, error: Diagnostic) -> Diagnostic {
        self.at = self.bytes.len();
        error
    }
}

/// The start of the next bundle at or after `at`; `None` where only zeros are left.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] where something else than a bundle begins.
pub(crate) fn next_start(bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(zeros) = rest.iter().position(|byte| *byte != 0) else { return Ok(None) };
    let start = at + zeros;
    if is_bundle(&bytes[start..]) {
        return Ok(Some(start));
    }
    let magic = u32_at(bytes, start as u64).unwrap_or_default();
    let what = format!("neither a bundle nor padding (first bytes {:02x?})", magic.to_le_bytes());
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(start as u64))
}

/// Offload bundles, plain and compressed, one after the other.
#[derive(Debug)]
pub(crate) struct BundleFormat;

impl ContainerFormat for BundleFormat {
    fn begins(&self, bytes: &[u8]) -> bool {
        is_bundle(bytes)
    }

    fn is_section(&self, name: &str) -> bool {
        matches!(name, ".hip_fatbin" | "__hip_fatbin" | ".hip_fat")
    }

    fn next(&self, bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        next_start(bytes, at)
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        if bytes.starts_with(magic::COMPRESSED) {
            let header = ccob::read_header(bytes)?;
            return Ok((ContainerForm::CompressedBundle(header.compression.version), header.total as usize));
        }
        parse_lenient(bytes).map(|(_, size)| (ContainerForm::Bundle, size))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        let (bundle, _) = parse_lenient(found.bytes)?;
        let BundleParts { entries, record, hash } = bundle.into_parts();
        let images = entries.into_iter().map(|entry| ContainerImage::new(Some(entry.id), entry.data)).collect();
        Ok(DeviceContents { record, hash, ..found.device(images) })
    }

    fn expanded_size(&self, bytes: &[u8]) -> Option<u64> {
        ccob::read_header(bytes).ok().map(|header| header.uncompressed)
    }

    fn entry(&self, bytes: &[u8], number: usize) -> Result<Option<Vec<u8>>, Diagnostic> {
        if !bytes.starts_with(magic::COMPRESSED) {
            return Ok(None);
        }
        ccob::read_header(bytes).and_then(|header| ccob::decompress_entry(bytes, &header, number))
    }

    fn table(&self, bytes: &[u8]) -> Result<Option<Vec<EntrySize>>, Diagnostic> {
        if !bytes.starts_with(magic::COMPRESSED) {
            return Ok(None);
        }
        ccob::read_header(bytes).and_then(|header| ccob::read_table(bytes, &header))
    }
}

/// Number of bytes of the bundle at the start of `bytes`, without decompressing it.
pub(crate) fn bundle_size(bytes: &[u8]) -> Result<usize, Diagnostic> {
    BundleFormat.extent(bytes).map(|(_, size)| size)
}
