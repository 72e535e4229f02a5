//! The compressed bundle (`CCOB`), versions 1 to 3.
//!
//! | field | V1 | V2 | V3 |
//! |---|---|---|---|
//! | magic `CCOB`, u16 version, u16 method (0 zlib, 1 zstd) | 0 | 0 | 0 |
//! | whole size with header | – | u32 at 8 | u64 at 8 |
//! | uncompressed size | u32 at 8 | u32 at 12 | u64 at 16 |
//! | hash: first 8 bytes of the MD5 of the uncompressed bundle | at 12 | at 16 | at 24 |
//! | payload | 20 | 24 | 32 |
//!
//! Invariants: the end of a bundle is known from its header (V1: from its frame), never from a search for the next
//! magic, which may occur inside of a payload. Every written bundle has the right hash, because comgr's disk cache is
//! keyed on the header and would return another bundle's code object for a stale one.

use crate::bytes::{EntryBytes, ReleasePart, malformed_at, shift_offset, slice, u16_at, u32_at, u64_at};
use crate::inflate::{
    CompressionMethod, compressed_size, inflate_beginning, inflate_exactly, inflate_in_place, inflate_part,
};
use crate::magic::COMPRESSED;
use crate::md5_lanes;
use crate::plain::{self, EntrySize};
use hotswap_files::MemoryLender;
use hotswap_report::{Diagnostic, codes};
use md5::{Digest, Md5};
use std::io::Write;
use std::sync::Arc;
use std::thread;
use zstd::zstd_safe::CParameter;

/// Bytes of a bundle that are examined before the rest is decompressed; real tables are shorter.
const BEGINNING: u64 = 64 << 10;
/// From this size on, a separate thread for the hash pays off.
const WORTH_A_THREAD: usize = 1 << 20;
/// Level of zstd that clang uses for bundles.
const ZSTD_LEVEL: i32 = 3;

/// The compression of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Version of the header: 1 to 3 when read; 2 or 3 are written (a changed V1 becomes V3).
    pub version: u16,
    /// Method of the payload.
    pub method: CompressionMethod,
    /// Level; `None` is clang's default. A bundle does not record the level it was made with.
    pub level: Option<i32>,
}

impl Default for Compression {
    /// The output of clang 22 and later: V3, zstd, default level.
    fn default() -> Self {
        Self { version: 3, method: CompressionMethod::Zstd, level: None }
    }
}

/// The header, checked against the available bytes.
#[derive(Debug)]
pub(crate) struct CcobHeader {
    pub(crate) compression: Compression,
    /// Size of header and payload.
    pub(crate) total: u64,
    pub(crate) uncompressed: u64,
    hash: [u8; 8],
    payload: u64,
}

/// Reads the header at the start of `bytes` and finds the bundle's end.
pub(crate) fn read_header(bytes: &[u8]) -> Result<CcobHeader, Diagnostic> {
    if !bytes.starts_with(COMPRESSED) {
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, "it does not begin as a compressed bundle"));
    }
    let version = u16_at(bytes, 4).ok_or_else(truncated_header_error)?;
    let method = match u16_at(bytes, 6).ok_or_else(truncated_header_error)? {
        0 => CompressionMethod::Zlib,
        1 => CompressionMethod::Zstd,
        other => return Err(unknown_form(format!("compression method {other}"))),
    };
    let (total, uncompressed, hash_at) = match version {
        1 => (None, u32_at(bytes, 8).map(u64::from), 12),
        2 => (u32_at(bytes, 8).map(u64::from), u32_at(bytes, 12).map(u64::from), 16),
        3 => (u64_at(bytes, 8), u64_at(bytes, 16), 24),
        other => return Err(unknown_form(format!("version {other} of the compressed bundle"))),
    };
    let hash = slice(bytes, hash_at, 8).ok_or_else(truncated_header_error)?;
    let payload = hash_at + 8;
    let uncompressed = uncompressed.ok_or_else(truncated_header_error)?;
    let total = match total {
        Some(total) => total,
        None => {
            // V1 states no size: its payload determines where it ends.
            let rest = bytes.get(payload as usize..).ok_or_else(truncated_header_error)?;
            payload + compressed_size(rest, method, uncompressed).map_err(|error| shift_offset(error, payload))?
        }
    };
    if total < payload || total > bytes.len() as u64 {
        let what = format!("the compressed bundle claims {total} bytes; {} are there", bytes.len());
        return Err(malformed_at(what, 8));
    }
    let compression = Compression { version, method, level: None };
    let hash = hash.try_into().map_err(|_| truncated_header_error())?;
    Ok(CcobHeader { compression, total, uncompressed, hash, payload })
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the compressed bundle ends in its header", 0)
}

fn unknown_form(what: String) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(4)
}

/// The content of a compressed bundle.
pub(crate) struct UnpackedContent {
    pub(crate) header: CcobHeader,
    pub(crate) bytes: EntryBytes<'static>,
    /// Whether the hash in the header is that of the content; false until [`compare_hashes`].
    pub(crate) has_hash: bool,
}

impl UnpackedContent {
    /// Reads the header and decompresses.
    pub(crate) fn unpack_bundle(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let header = read_header(bytes)?;
        let content = EntryBytes::from(decompress_unhashed(bytes, &header)?);
        Ok(Self { header, bytes: content, has_hash: false })
    }
}

/// The contents of compressed bundles. Where `lender` is there and the system provides the memory, all of them are in one piece of it.
pub(crate) fn unpack_all(
    bundles: &[&[u8]],
    lender: Option<&'static MemoryLender>,
) -> Vec<Result<UnpackedContent, Diagnostic>> {
    match lender.and_then(|lender| unpack_in_lent_memory(bundles, lender)) {
        Some(unpacked) => unpacked,
        None => bundles.iter().map(|bytes| UnpackedContent::unpack_bundle(bytes)).collect(),
    }
}

fn unpack_in_lent_memory(
    bundles: &[&[u8]],
    lender: &'static MemoryLender,
) -> Option<Vec<Result<UnpackedContent, Diagnostic>>> {
    let headers: Vec<Result<CcobHeader, Diagnostic>> = bundles.iter().map(|bytes| read_header(bytes)).collect();
    let sizes = headers.iter().flatten().map(|header| usize::try_from(header.uncompressed).ok());
    let whole = sizes.clone().try_fold(0usize, |sum, size| sum.checked_add(size?))?;
    let mut memory = lender.lend(whole)?;
    let mut left = &mut memory[..];
    let mut inflated = Vec::with_capacity(bundles.len());
    for (bytes, header) in bundles.iter().zip(&headers) {
        inflated.push(match header {
            Ok(header) => {
                let plain = left.split_off_mut(..usize::try_from(header.uncompressed).ok()?)?;
                decompress_in_place(bytes, header, plain)
            }
            Err(_) => Ok(()),
        });
    }
    let memory = Arc::new(memory);
    let mut start = 0;
    let unpacked = headers.into_iter().zip(inflated).map(|(header, inflated)| {
        let header = header?;
        let place = start..start + header.uncompressed as usize;
        start = place.end;
        inflated?;
        Ok(UnpackedContent { header, bytes: EntryBytes::of_lent(&memory, place), has_hash: false })
    });
    Some(unpacked.collect())
}

fn decompress_in_place(bytes: &[u8], header: &CcobHeader, plain: &mut [u8]) -> Result<(), Diagnostic> {
    let payload = checked_payload(bytes, header)?;
    inflate_in_place(payload, header.compression.method, plain).map_err(|error| shift_offset(error, header.payload))
}

/// Compares the hashes of contents, which are computed side by side.
pub(crate) fn compare_hashes(mut contents: Vec<&mut UnpackedContent>) {
    let bytes: Vec<&[u8]> = contents.iter().map(|content| &*content.bytes).collect();
    let digests = md5_lanes::digest_all(&bytes);
    for (content, digest) in contents.iter_mut().zip(digests) {
        content.has_hash = digest.starts_with(&content.header.hash);
    }
}

impl CcobHeader {
    /// Whether its hash is that of the content.
    pub(crate) fn has_hash(&self, content: ContentHash) -> bool {
        content.finish() == self.hash
    }
}

/// As [`decompress`], for content that is known and compared by the caller.
pub(crate) fn decompress_unhashed(bytes: &[u8], header: &CcobHeader) -> Result<Vec<u8>, Diagnostic> {
    let payload = checked_payload(bytes, header)?;
    inflate_exactly(payload, header.compression.method, header.uncompressed)
        .map_err(|error| shift_offset(error, header.payload))
}

/// The payload of a bundle, whose first bytes are plausible.
pub(crate) fn checked_payload<'b>(bytes: &'b [u8], header: &CcobHeader) -> Result<&'b [u8], Diagnostic> {
    let payload = slice(bytes, header.payload, header.total - header.payload)
        .ok_or_else(|| malformed_at("the compressed bundle is cut off", header.payload))?;
    let start = inflate_beginning(payload, header.compression.method, BEGINNING);
    if start.len() as u64 == BEGINNING.min(header.uncompressed) {
        plain::check_beginning(&start, header.uncompressed)?;
    }
    Ok(payload)
}

/// The entry table, read from the first bytes of the content. `None` where they do not hold all of it, or where
/// something follows the last entry: then the whole has to be read.
pub(crate) fn read_table(bytes: &[u8], header: &CcobHeader) -> Result<Option<Vec<EntrySize>>, Diagnostic> {
    let payload = slice(bytes, header.payload, header.total - header.payload)
        .ok_or_else(|| malformed_at("the compressed bundle is cut off", header.payload))?;
    let start = inflate_beginning(payload, header.compression.method, BEGINNING.min(header.uncompressed));
    if start.len() as u64 != BEGINNING.min(header.uncompressed) {
        return Ok(None);
    }
    let table = plain::read_table(&start, header.uncompressed)?;
    Ok(table.filter(|table| table.end == header.uncompressed).map(|table| table.entries))
}

/// One entry, decompressed no further than its end; the hash is not compared. `None` where the table does not tell its
/// place, or the content ends before it: then the whole has to be read.
pub(crate) fn decompress_entry(
    bytes: &[u8],
    header: &CcobHeader,
    number: usize,
) -> Result<Option<Vec<u8>>, Diagnostic> {
    let Some(entries) = read_table(bytes, header)? else { return Ok(None) };
    let payload = slice(bytes, header.payload, header.total - header.payload).unwrap_or_default();
    let start = inflate_beginning(payload, header.compression.method, BEGINNING.min(header.uncompressed));
    let Some(range) = plain::entry_range(&start, number).filter(|_| number < entries.len()) else { return Ok(None) };
    inflate_part(payload, header.compression.method, range)
}

/// Bytes that are hashed before their memory is given back.
const HASH_BLOCK: usize = 1 << 20;

/// The hash of a content, part by part: the first half of the MD5, in digest order.
#[derive(Default)]
pub(crate) struct ContentHash(Md5);

impl ContentHash {
    /// Adds the next part.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    fn finish(self) -> [u8; 8] {
        let digest: [u8; 16] = self.0.finalize().into();
        std::array::from_fn(|index| digest[index])
    }
}

fn hash_releasing(plain: &[u8], release: &ReleasePart<'_>) -> [u8; 8] {
    let mut hash = ContentHash::default();
    for block in plain.chunks(HASH_BLOCK) {
        hash.add(block);
        release(block);
    }
    hash.finish()
}

/// Compresses the bytes of a plain bundle.
///
/// # Errors
/// [`codes::NO_PLACE`] from 4 GiB on: HIP reads 32 bits of the size.
pub(crate) fn compress_bundle(plain: &[u8], how: Compression) -> Result<Vec<u8>, Diagnostic> {
    compress_releasing(plain, how, &|_| {})
}

/// As [`compress`]; `release` gives back the memory of what was hashed.
pub(crate) fn compress_releasing(
    plain: &[u8],
    how: Compression,
    release: &ReleasePart<'_>,
) -> Result<Vec<u8>, Diagnostic> {
    // The hash takes half as long as the compression at the default level, and has to process the bytes sequentially.
    let (payload, hash) = thread::scope(|scope| {
        let hash = (plain.len() >= WORTH_A_THREAD)
            .then(|| thread::Builder::new().spawn_scoped(scope, || hash_releasing(plain, release)).ok())
            .flatten();
        let payload = match how.method {
            CompressionMethod::Zstd => zstd_payload(plain, how.level),
            CompressionMethod::Zlib => zlib_payload(plain, how.level),
        };
        (payload, hash.and_then(|thread| thread.join().ok()).unwrap_or_else(|| hash_releasing(plain, release)))
    });
    frame_payload(payload.map_err(compression_error)?, hash, plain.len() as u64, how)
}

fn compression_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("compression: {error}"))
}

/// The payload with its header.
///
/// # Errors
/// The same as those of [`compress`].
fn frame_payload(mut payload: Vec<u8>, hash: [u8; 8], plain: u64, how: Compression) -> Result<Vec<u8>, Diagnostic> {
    // V2 has 32 bits for both sizes; a V1 header would make HIP read past the end.
    let short_plain = u32::try_from(plain).ok().filter(|_| how.version == 2);
    let total = payload.len() as u64 + if short_plain.is_some() { 24 } else { 32 };
    let Ok(short) = u32::try_from(total) else {
        return Err(Diagnostic::error(codes::NO_PLACE, format!("the compressed bundle would have {total} bytes")));
    };
    let mut out = COMPRESSED.to_vec();
    out.extend_from_slice(&if short_plain.is_some() { 2u16 } else { 3 }.to_le_bytes());
    out.extend_from_slice(&u16::from(how.method == CompressionMethod::Zstd).to_le_bytes());
    if let Some(plain) = short_plain {
        out.extend_from_slice(&short.to_le_bytes());
        out.extend_from_slice(&plain.to_le_bytes());
    } else {
        out.extend_from_slice(&total.to_le_bytes());
        out.extend_from_slice(&plain.to_le_bytes());
    }
    out.extend_from_slice(&hash);
    // The payload has room: its buffer was made for content that does not compress.
    payload.splice(0..0, out);
    Ok(payload)
}

/// Like clang: one frame with content size and without checksum, long-distance matching, so that similar code
/// objects cost almost nothing.
fn zstd_payload(plain: &[u8], level: Option<i32>) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level.unwrap_or(ZSTD_LEVEL))?;
    compressor.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
    compressor.set_parameter(CParameter::ChecksumFlag(false))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(true))?;
    compressor.compress(plain)
}

fn zlib_payload(plain: &[u8], level: Option<i32>) -> std::io::Result<Vec<u8>> {
    let level = level
        .and_then(|level| u32::try_from(level).ok())
        .map_or(flate2::Compression::default(), |level| flate2::Compression::new(level.min(9)));
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(plain)?;
    encoder.finish()
}
