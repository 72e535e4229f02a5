//! Large compressed bundles: unpacked into unnamed files, and packed from them.
//!
//! libzstd gets whole buffers, as for small bundles, so the result is the same, byte for byte; the buffers are maps of
//! files, whose pages are given back while it runs. The bundles of rocBLAS have up to 158 MB. Files are written by system
//! calls alone: a map that is written to costs the file system's work for each page.
//!
//! Where no file can be made, the content is in memory.

use crate::bytes::EntryBytes;
use crate::ccob::{self, CcobHeader, Compression, ContentHash};
use crate::draft::FileRope;
use crate::inflate::inflate_into;
use hotswap_files::{InputFile, Scratch, ScratchBuffer};
use hotswap_report::Diagnostic;
use std::io::Read;

/// From this size on, the content of a bundle is unpacked into a file by [`crate::parse_aside`].
pub const STREAMED_FROM: u64 = 8 << 20;
/// Bytes that are copied at once.
const BLOCK: usize = 1 << 20;

/// The content of a compressed bundle in an unnamed file.
pub(crate) struct UnpackedFile {
    pub(crate) bytes: EntryBytes<'static>,
    /// Whether the hash in the header is that of the content.
    pub(crate) has_stated_hash: bool,
}

/// Unpacks a bundle into a file; `None` where it is small or damaged, and where no file can be made: then it is unpacked in
/// memory, or refused there.
pub(crate) fn unpack_to_file(bytes: &[u8], header: &CcobHeader) -> Option<UnpackedFile> {
    let mut hash = ContentHash::default();
    let bytes = unpack_streamed(bytes, header, |part| {
        hash.add(part);
        true
    })?;
    Some(UnpackedFile { bytes, has_stated_hash: header.has_hash(hash) })
}

/// As [`unpack`], where each part of the content is that of the draft; `None` otherwise, too.
pub(crate) fn unpack_same(bytes: &[u8], header: &CcobHeader, draft: &FileRope<'_>) -> Option<EntryBytes<'static>> {
    let mut at = 0;
    let content = unpack_streamed(bytes, header, |part| {
        let start = at;
        at += part.len() as u64;
        draft.has_at(start, part)
    })?;
    (at == draft.size()).then_some(content)
}

fn unpack_streamed(bytes: &[u8], header: &CcobHeader, next: impl FnMut(&[u8]) -> bool) -> Option<EntryBytes<'static>> {
    if header.uncompressed < STREAMED_FROM {
        return None;
    }
    let payload = ccob::checked_payload(bytes, header).ok()?;
    let mut buffer = ScratchBuffer::new(usize::try_from(header.uncompressed).ok()?).ok()?;
    inflate_into(&mut buffer, payload, header.compression.method, next)?;
    buffer.finish().ok().map(EntryBytes::from)
}

/// As [`ccob::compress`], of a draft, which is laid out in a file.
///
/// # Errors
/// The same as those of [`ccob::compress`].
pub(crate) fn pack_in_file(draft: &FileRope<'_>, how: Compression) -> Option<Result<Vec<u8>, Diagnostic>> {
    let content = laid_out(draft).ok()?;
    Some(content.while_released(|| ccob::compress_releasing(&content, how, &|one| release_content_part(one, &content))))
}

fn release_content_part(part: &[u8], content: &InputFile) {
    content.release(part)
}

fn laid_out(draft: &FileRope<'_>) -> Result<InputFile, Diagnostic> {
    let (scratch, mut reader) = (Scratch::temporary()?, draft.reader());
    let mut block = vec![0; BLOCK];
    let mut left = draft.size();
    while left > 0 {
        let count = left.min(BLOCK as u64) as usize;
        // Reading a draft cannot fail.
        let filled = reader.read(&mut block[..count]).unwrap_or_default();
        scratch.keep(&block[..filled])?;
        left -= filled as u64;
    }
    scratch.read()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bundle, CompressionMethod, parse, parse_aside};
    use hotswap_report::codes;

    /// A compressed bundle of noise, three times the same, and a record.
    fn sample(method: CompressionMethod) -> Vec<u8> {
        let mut bundle = Bundle::default();
        bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
        let mut state = 1u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let text: Vec<u8> = (0..STREAMED_FROM as usize / 2).map(|_| noise()).collect();
        for gpu in ["gfx1030", "gfx1031", "gfx1032"] {
            bundle.push(format!("hipv4-amdgcn-amd-amdhsa--{gpu}"), text.clone()).unwrap();
        }
        bundle.set_record(Some(b"{}".to_vec()));
        bundle.set_compression(Some(Compression { method, ..Compression::default() }));
        bundle.to_bytes().unwrap().into_owned()
    }

    #[test]
    fn files_and_memory_give_the_same_bytes() {
        for method in [CompressionMethod::Zstd, CompressionMethod::Zlib] {
            let bytes = sample(method);
            let ((mut aside, size), (mut memory, _)) = (parse_aside(&bytes).unwrap(), parse(&bytes).unwrap());
            assert!(size == bytes.len() && aside.is_aside() && !memory.is_aside());
            assert_eq!(aside.entries(), memory.entries());
            for bundle in [&mut aside, &mut memory] {
                let copy = bundle.entries()[1].data.to_vec();
                bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1033", EntryBytes::from(copy).put_aside()).unwrap();
                bundle.set_record(Some(b"{\"a\":1}".to_vec()));
            }
            let packed = aside.to_bytes().unwrap();
            assert!(packed == memory.to_bytes().unwrap());
            aside.check_packed(&packed).unwrap();
            let (again, _) = parse(&packed).unwrap();
            assert_eq!((again.entries(), again.record()), (aside.entries(), aside.record()));
        }
    }

    #[test]
    fn what_differs_is_not_the_bundle() {
        let bytes = sample(CompressionMethod::Zstd);
        let (mut aside, _) = parse_aside(&bytes).unwrap();
        aside.check_packed(&bytes).unwrap();
        let last = aside.entries()[3].data.to_vec();
        let mut other = last.clone();
        other[STREAMED_FROM as usize / 3] ^= 1;
        aside.set_data("hipv4-amdgcn-amd-amdhsa--gfx1032", other);
        assert_eq!(aside.check_packed(&bytes).unwrap_err().code, codes::VERIFY_FAILED);
        aside.set_data("hipv4-amdgcn-amd-amdhsa--gfx1032", last);
        aside.set_record(Some(b"[]".to_vec()));
        assert_eq!(aside.check_packed(&bytes).unwrap_err().code, codes::VERIFY_FAILED);
        aside.set_record(Some(b"{}".to_vec()));
        aside.check_packed(&bytes).unwrap();
        for at in [24, bytes.len() / 2] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(parse_aside(&damaged).unwrap_err().code, parse(&damaged).unwrap_err().code, "{at}");
        }
        assert_eq!(parse_aside(&bytes[..bytes.len() - 1]).unwrap_err().code, codes::MALFORMED);
    }
}
