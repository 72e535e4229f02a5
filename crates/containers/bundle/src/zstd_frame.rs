//! The outer structure of zstd frames (RFC 8878), read without decompressing.
//!
//! It determines the length of the compressed data and its maximum expanded size, so that a damaged size field is
//! detected before memory is reserved for it. libzstd's own bound trusts the content size in the frame header, which is
//! the field in doubt.

use crate::bytes::{slice, u32_at, u64_at};

const FRAME: u32 = 0xfd2f_b528;
const SKIPPABLE: u32 = 0x184d_2a50;
const BLOCK_MAX: u64 = 128 << 10;

/// Sizes that follow from the structure of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameExtent {
    /// Bytes up to the end of the first frame that is not skippable.
    pub(crate) size: u64,
    /// Upper bound for the decompressed size, by the number of blocks.
    pub(crate) bound: u64,
    /// Content size in the frame header.
    pub(crate) content: Option<u64>,
}

/// Walks over skippable frames and one data frame; `None` where the structure is broken.
pub(crate) fn frame_extent(bytes: &[u8]) -> Option<FrameExtent> {
    let mut at = 0u64;
    loop {
        let magic = u32_at(bytes, at)?;
        if magic & 0xffff_fff0 == SKIPPABLE {
            let size = u64::from(u32_at(bytes, at + 4)?);
            slice(bytes, at, size + 8)?;
            at += size + 8;
        } else if magic == FRAME {
            return read_frame(bytes, at);
        } else {
            return None;
        }
    }
}

fn read_frame(bytes: &[u8], start: u64) -> Option<FrameExtent> {
    let descriptor = *slice(bytes, start + 4, 1)?.first()?;
    let single_segment = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_field = match descriptor >> 6 {
        0 => u64::from(single_segment),
        bits => 1 << bits,
    };
    let content_at = start + 5 + u64::from(!single_segment) + dictionary;
    let field = slice(bytes, content_at, content_field)?;
    let content = match content_field {
        0 => None,
        1 => Some(u64::from(field[0])),
        2 => Some(u64::from(u16::from_le_bytes([field[0], field[1]])) + 256),
        4 => u32_at(bytes, content_at).map(u64::from),
        _ => u64_at(bytes, content_at),
    };
    let (mut at, mut bound) = (content_at + content_field, 0u64);
    loop {
        let header = slice(bytes, at, 3)?;
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let size = u64::from(header >> 3);
        let (stored, expanded) = match header >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK_MAX),
            _ => return None,
        };
        slice(bytes, at + 3, stored)?;
        at += 3 + stored;
        bound += expanded.min(BLOCK_MAX);
        if header & 1 != 0 {
            break;
        }
    }
    let checksum = if descriptor & 4 != 0 { 4 } else { 0 };
    slice(bytes, at, checksum)?;
    Some(FrameExtent { size: at + checksum, bound, content })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sample() -> Vec<u8> {
        (0u32..200_000).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    #[test]
    fn the_extent_agrees_with_libzstd() {
        for level in [1, 3, 19] {
            let packed = zstd::bulk::compress(&sample(), level).unwrap();
            let found = frame_extent(&packed).unwrap();
            assert_eq!(found.size, packed.len() as u64);
            assert_eq!(found.content, Some(sample().len() as u64));
            assert!(found.bound >= sample().len() as u64);
        }
    }

    #[test]
    fn skippable_frames_checksums_and_unknown_content_sizes_are_walked() {
        let mut packed = vec![0x53, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, b'C', b'C', b'O', b'B'];
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&sample()).unwrap();
        packed.extend(encoder.finish().unwrap());
        let size = packed.len() as u64;
        packed.extend_from_slice(b"CCOB behind the frame");
        let found = frame_extent(&packed).unwrap();
        assert_eq!((found.size, found.content), (size, None));
        for cut in 0..size as usize {
            assert_eq!(frame_extent(&packed[..cut]), None, "{cut}");
        }
    }
}
