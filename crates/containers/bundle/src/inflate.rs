//! Decompression that is robust against a damaged size field.
//!
//! Invariant: memory is reserved only for a size that the structure of the compressed data admits.

use crate::bytes::malformed_at;
use crate::zstd_frame;
use hotswap_files::ScratchBuffer;
use hotswap_report::Diagnostic;
use hotswap_report::limit::{Charge, MOST};
use std::io::{self, Read};
use std::ops::Range;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// The compression of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionMethod {
    /// Deflate with a zlib header.
    Zlib,
    Zstd,
}

/// Deflate cannot expand further than this for each byte (zlib's documentation).
const DEFLATE_RATIO: u64 = 1032;

/// Decompresses exactly `payload` to exactly `size` bytes. Offsets in errors count from the payload.
pub(crate) fn inflate_exactly(payload: &[u8], method: CompressionMethod, size: u64) -> Result<Vec<u8>, Diagnostic> {
    inflate_behind(&[], payload, method, size)
}

/// The same into memory of exactly that size.
pub(crate) fn inflate_in_place(payload: &[u8], method: CompressionMethod, plain: &mut [u8]) -> Result<(), Diagnostic> {
    let size = plain.len() as u64;
    check_claim(payload, method, size)?;
    let found = match method {
        CompressionMethod::Zstd => {
            let mut decoder = zstd::bulk::Decompressor::new().map_err(broken_payload_error)?;
            decoder.decompress_to_buffer(payload, plain).map_err(broken_payload_error)?
        }
        CompressionMethod::Zlib => {
            let content = inflate_exactly(payload, method, size)?;
            plain.copy_from_slice(&content);
            content.len()
        }
    };
    if found as u64 == size { Ok(()) } else { Err(wrong_claim(size, found as u64)) }
}

/// As [`inflate_exactly`], preceded by other bytes.
pub(crate) fn inflate_behind(
    head: &[u8],
    payload: &[u8],
    method: CompressionMethod,
    size: u64,
) -> Result<Vec<u8>, Diagnostic> {
    check_claim(payload, method, size)?;
    let room = usize::try_from(size).map_err(|_| too_large(size))?;
    let mut plain: Vec<u8> = Vec::new();
    plain.try_reserve_exact(room.saturating_add(head.len())).map_err(|_| too_large(size))?;
    let found = match method {
        CompressionMethod::Zstd if head.is_empty() => {
            let mut decoder = zstd::bulk::Decompressor::new().map_err(broken_payload_error)?;
            decoder.decompress_to_buffer(payload, &mut plain).map_err(broken_payload_error)?
        }
        CompressionMethod::Zstd => {
            plain.extend_from_slice(head);
            plain.resize(head.len() + room, 0);
            let mut decoder = zstd::bulk::Decompressor::new().map_err(broken_payload_error)?;
            decoder.decompress_to_buffer(payload, &mut plain[head.len()..]).map_err(broken_payload_error)?
        }
        CompressionMethod::Zlib => {
            plain.extend_from_slice(head);
            let mut decoder = flate2::read::ZlibDecoder::new(payload);
            let found = (&mut decoder).take(size).read_to_end(&mut plain).map_err(broken_payload_error)?;
            // One byte more than claimed: enough to see that the claim is wrong, and to reach the end.
            let more = if found == room { decoder.read(&mut [0]).map_err(broken_payload_error)? } else { 0 };
            if more > 0 {
                return Err(wrong_claim(size, size + 1));
            }
            check_end(decoder.total_in(), payload)?;
            found
        }
    };
    if found == room { Ok(plain) } else { Err(wrong_claim(size, found as u64)) }
}

fn broken_payload_error(error: io::Error) -> Diagnostic {
    broken_payload(&error)
}

/// Bytes that are unpacked at a time: they are in the processor's caches for what is done with them next.
const STEP: usize = 1 << 20;
/// Compressed bytes that libzstd gets first: the largest header of a frame, and that of a block.
const ZSTD_START: usize = 21;

/// As [`inflate_exactly`], into a buffer of the size, step by step: `next` gets each new part, in order. `None` where the payload is
/// damaged, the buffer lacks space for its bytes, or `next` says not to go on; [`inflate_exactly`] tells the reason.
pub(crate) fn inflate_into(
    buffer: &mut ScratchBuffer,
    payload: &[u8],
    method: CompressionMethod,
    next: impl FnMut(&[u8]) -> bool,
) -> Option<()> {
    check_claim(payload, method, buffer.bytes_mut().len() as u64).ok()?;
    let mut steps = BufferSteps { buffer, end: 0, next };
    match method {
        CompressionMethod::Zstd => unpack_zstd(payload, &mut steps)?,
        CompressionMethod::Zlib => unpack_zlib(payload, &mut steps)?,
    }
    (steps.end == steps.buffer.bytes_mut().len()).then_some(())
}

/// A buffer that is filled step by step.
struct BufferSteps<'b, N> {
    buffer: &'b mut ScratchBuffer,
    end: usize,
    next: N,
}

impl<N: FnMut(&[u8]) -> bool> BufferSteps<'_, N> {
    /// Takes the bytes up to that end.
    fn advance_to(&mut self, end: usize) -> Option<()> {
        if !(self.next)(&self.buffer.bytes_mut()[self.end..end]) {
            return None;
        }
        self.end = end;
        self.buffer.mark_finished(end).ok()
    }
}

/// libzstd writes into the buffer itself, where it finds the bytes that it repeats. It gets as much of the payload as it asks
/// for, which is a block: a few kilobytes can be a repetition of many megabytes.
fn unpack_zstd(payload: &[u8], steps: &mut BufferSteps<'_, impl FnMut(&[u8]) -> bool>) -> Option<()> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::StableOutBuffer(true)).ok()?;
    context.set_parameter(DParameter::WindowLogMax(31)).ok()?;
    let (mut read, mut end, mut asked) = (0, 0, ZSTD_START);
    loop {
        let mut input = InBuffer { src: &payload[..payload.len().min(read + asked)], pos: read };
        let mut output = OutBuffer::around_pos(steps.buffer.bytes_mut(), end);
        let left = context.decompress_stream(&mut output, &mut input).ok()?;
        let is_stuck = input.pos == read && output.pos() == end;
        (read, end, asked) = (input.pos, output.pos(), left);
        if left == 0 || end - steps.end >= STEP {
            steps.advance_to(end)?;
        }
        if left == 0 {
            return (read == payload.len()).then_some(());
        }
        if is_stuck {
            return None;
        }
    }
}

fn unpack_zlib(payload: &[u8], steps: &mut BufferSteps<'_, impl FnMut(&[u8]) -> bool>) -> Option<()> {
    let mut decoder = flate2::read::ZlibDecoder::new(payload);
    let size = steps.buffer.bytes_mut().len();
    while steps.end < size {
        let end = size.min(steps.end + STEP);
        decoder.read_exact(&mut steps.buffer.bytes_mut()[steps.end..end]).ok()?;
        steps.advance_to(end)?;
    }
    // One byte more: enough to see that the claim is wrong, and to reach the end.
    let more = decoder.read(&mut [0]).ok()?;
    (more == 0 && decoder.total_in() == payload.len() as u64).then_some(())
}

fn wrong_claim(size: u64, found: u64) -> Diagnostic {
    malformed_at(format!("the header claims {size} uncompressed bytes; they are {found}"), 0)
}

/// The first bytes of the content, at most `size`, to be checked before memory is spent on the rest. Fewer, where
/// the payload is damaged.
pub(crate) fn inflate_beginning(payload: &[u8], method: CompressionMethod, size: u64) -> Vec<u8> {
    let mut found = Vec::new();
    // Damage is detected and reported again when the whole is decompressed.
    let _ = match method {
        CompressionMethod::Zlib => flate2::read::ZlibDecoder::new(payload).take(size).read_to_end(&mut found),
        CompressionMethod::Zstd => zstd::stream::read::Decoder::with_buffer(payload).and_then(|mut decoder| {
            decoder.window_log_max(31)?;
            decoder.take(size).read_to_end(&mut found)
        }),
    };
    found
}

/// A part of the content, decompressed no further than its end; `None` where the payload is damaged before it.
pub(crate) fn inflate_part(
    payload: &[u8],
    method: CompressionMethod,
    range: Range<u64>,
) -> Result<Option<Vec<u8>>, Diagnostic> {
    charge_limits(payload, range.end)?;
    let size = range.end.saturating_sub(range.start);
    let found = match method {
        CompressionMethod::Zlib => {
            read_decoded_range(Box::new(flate2::read::ZlibDecoder::new(payload)), range.start, size)
        }
        CompressionMethod::Zstd => zstd::stream::read::Decoder::with_buffer(payload).and_then(|mut decoder| {
            decoder.window_log_max(31)?;
            read_decoded_range(Box::new(decoder), range.start, size)
        }),
    };
    // The reader of the whole reports the damage.
    Ok(found.ok().filter(|found| found.len() as u64 == size))
}

fn read_decoded_range(mut decoder: Box<dyn Read + '_>, range_start: u64, size: u64) -> Result<Vec<u8>, io::Error> {
    io::copy(&mut (&mut decoder).take(range_start), &mut io::sink())?;
    let mut found = Vec::new();
    decoder.take(size).read_to_end(&mut found)?;
    Ok(found)
}

/// Number of compressed bytes at the start of `bytes`; `size` is the maximum expanded size.
pub(crate) fn compressed_size(bytes: &[u8], method: CompressionMethod, size: u64) -> Result<u64, Diagnostic> {
    match method {
        CompressionMethod::Zstd => zstd_frame::frame_extent(bytes).map(|extent| extent.size).ok_or_else(broken_frame),
        CompressionMethod::Zlib => {
            // This takes as long as decompressing it.
            charge_limits(bytes, size)?;
            let mut decoder = flate2::read::ZlibDecoder::new(bytes);
            let mut limit = (&mut decoder).take(size.saturating_add(1));
            std::io::copy(&mut limit, &mut std::io::sink()).map_err(|error| broken_payload(&error))?;
            Ok(decoder.total_in())
        }
    }
}

fn check_claim(payload: &[u8], method: CompressionMethod, size: u64) -> Result<(), Diagnostic> {
    charge_limits(payload, size)?;
    let bound = match method {
        CompressionMethod::Zlib => (payload.len() as u64 + 64).saturating_mul(DEFLATE_RATIO),
        CompressionMethod::Zstd => {
            let extent = zstd_frame::frame_extent(payload).ok_or_else(broken_frame)?;
            check_end(extent.size, payload)?;
            extent.content.unwrap_or(extent.bound).min(extent.bound)
        }
    };
    if size > bound {
        let what = format!("the header claims {size} uncompressed bytes; the payload expands to {bound} at most");
        return Err(malformed_at(what, 0));
    }
    Ok(())
}

fn charge_limits(payload: &[u8], size: u64) -> Result<(), Diagnostic> {
    if size > MOST {
        return Err(too_large(size));
    }
    Charge::default().add(payload.len(), size)
}

/// Other readers (comgr, clang 22) reject bytes between the compressed data and the end, too.
fn check_end(used: u64, payload: &[u8]) -> Result<(), Diagnostic> {
    if used == payload.len() as u64 {
        return Ok(());
    }
    let left = payload.len() as u64 - used;
    Err(malformed_at(format!("{left} bytes follow the compressed data inside of the container"), used))
}

fn broken_frame() -> Diagnostic {
    malformed_at("the structure of the zstd frame is broken", 0)
}

fn broken_payload(error: &std::io::Error) -> Diagnostic {
    malformed_at(format!("the content does not decompress: {error}"), 0)
}

fn too_large(size: u64) -> Diagnostic {
    malformed_at(format!("the header claims {size} uncompressed bytes, more than can be held"), 0)
}
