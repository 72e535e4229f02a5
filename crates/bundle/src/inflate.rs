//! Decompression that a damaged size field cannot lead astray.
//!
//! Invariant: memory is reserved only for a size that the structure of the compressed data admits.

use crate::bytes::malformed;
use crate::zstd_frame;
use hotswap_report::Diagnostic;
use std::io::Read;

/// How a payload is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Deflate with a zlib header.
    Zlib,
    /// One zstd frame.
    Zstd,
}

/// More than any real bundle has; a file that claims more is damaged or hostile.
const MAX_SIZE: u64 = 16 << 30;
/// Deflate cannot expand further than this for each byte (zlib's documentation).
const DEFLATE_RATIO: u64 = 1032;

/// Decompresses exactly `payload` to exactly `size` bytes. Offsets in errors count from the payload.
pub(crate) fn inflate(payload: &[u8], method: Method, size: u64) -> Result<Vec<u8>, Diagnostic> {
    check_claim(payload, method, size)?;
    let room = usize::try_from(size).map_err(|_| too_large(size))?;
    let mut plain: Vec<u8> = Vec::new();
    plain.try_reserve_exact(room).map_err(|_| too_large(size))?;
    match method {
        Method::Zstd => {
            zstd::bulk::Decompressor::new()
                .and_then(|mut decoder| decoder.decompress_to_buffer(payload, &mut plain))
                .map_err(|error| broken(&error))?;
        }
        Method::Zlib => {
            let mut decoder = flate2::read::ZlibDecoder::new(payload);
            // One byte more than claimed: enough to see that the claim is wrong, and to reach the end.
            (&mut decoder).take(size.saturating_add(1)).read_to_end(&mut plain).map_err(|error| broken(&error))?;
            check_end(decoder.total_in(), payload)?;
        }
    }
    if plain.len() != room {
        return Err(malformed(format!("the header claims {room} uncompressed bytes; they are {}", plain.len()), 0));
    }
    Ok(plain)
}

/// The first bytes of the content, at most `size`: what can be judged before memory is spent on the rest.
/// Fewer, where the payload is damaged.
pub(crate) fn beginning(payload: &[u8], method: Method, size: u64) -> Vec<u8> {
    let mut found = Vec::new();
    // Damage shows again, and is told, when the whole is decompressed.
    let _ = match method {
        Method::Zlib => flate2::read::ZlibDecoder::new(payload).take(size).read_to_end(&mut found),
        Method::Zstd => zstd::stream::read::Decoder::with_buffer(payload).and_then(|mut decoder| {
            decoder.window_log_max(31)?;
            decoder.take(size).read_to_end(&mut found)
        }),
    };
    found
}

/// Number of compressed bytes at the start of `bytes`; `size`: what they may expand to.
pub(crate) fn compressed_size(bytes: &[u8], method: Method, size: u64) -> Result<u64, Diagnostic> {
    match method {
        Method::Zstd => zstd_frame::extent(bytes).map(|extent| extent.size).ok_or_else(broken_frame),
        Method::Zlib => {
            let mut decoder = flate2::read::ZlibDecoder::new(bytes);
            let mut limit = (&mut decoder).take(size.saturating_add(1));
            std::io::copy(&mut limit, &mut std::io::sink()).map_err(|error| broken(&error))?;
            Ok(decoder.total_in())
        }
    }
}

fn check_claim(payload: &[u8], method: Method, size: u64) -> Result<(), Diagnostic> {
    if size > MAX_SIZE {
        return Err(too_large(size));
    }
    let bound = match method {
        Method::Zlib => (payload.len() as u64 + 64).saturating_mul(DEFLATE_RATIO),
        Method::Zstd => {
            let extent = zstd_frame::extent(payload).ok_or_else(broken_frame)?;
            check_end(extent.size, payload)?;
            extent.content.unwrap_or(extent.bound).min(extent.bound)
        }
    };
    if size > bound {
        let what = format!("the header claims {size} uncompressed bytes; the payload expands to {bound} at most");
        return Err(malformed(what, 0));
    }
    Ok(())
}

/// Other readers (comgr, clang 22) reject bytes between the compressed data and the end, too.
fn check_end(used: u64, payload: &[u8]) -> Result<(), Diagnostic> {
    if used == payload.len() as u64 {
        return Ok(());
    }
    let left = payload.len() as u64 - used;
    Err(malformed(format!("{left} bytes follow the compressed data inside of the container"), used))
}

fn broken_frame() -> Diagnostic {
    malformed("the structure of the zstd frame is broken", 0)
}

fn broken(error: &std::io::Error) -> Diagnostic {
    malformed(format!("the content does not decompress: {error}"), 0)
}

fn too_large(size: u64) -> Diagnostic {
    malformed(format!("the header claims {size} uncompressed bytes, more than can be held"), 0)
}
