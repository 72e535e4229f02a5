//! Images in the memory of the program: their sizes are not passed, their headers state them.
//!
//! Invariant: only bytes are read that HIP's own loader reads of such an image, in the same order: magic, header, table.
#![allow(unsafe_code)] // memory of the caller, with the proof at each function

use std::slice;

const ELF: &[u8] = b"\x7fELF\x02\x01";
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// More entries, or longer IDs, are damage: real tables are shorter than a page.
const MAX_ENTRIES: u64 = 512;
const MAX_ID: u64 = 1024;
/// A larger image is not copied.
pub(crate) const MAX_SIZE: u64 = 2 << 30;

/// The image at that address; `None` where no header states its size.
///
/// # Safety
/// The address is one that a program may pass to `hipModuleLoadData`: of a whole ELF file, bundle or compressed bundle, or of
/// at least a magic of another format. The bytes live and stay unchanged for `'a`.
pub(crate) unsafe fn image_at<'a>(start: *const u8) -> Option<&'a [u8]> {
    if start.is_null() {
        return None;
    }
    // SAFETY: the caller's promise is this function's.
    let size = unsafe { if begins_with(start, ELF) { elf_size(start) } else { container_size(start) } }?;
    let size = usize::try_from(size).ok().filter(|_| size <= MAX_SIZE)?;
    // SAFETY: the headers of a whole image state its size, so that many bytes are there.
    Some(unsafe { slice::from_raw_parts(start, size) })
}

/// Whether the image begins with these bytes. The comparison ends at the first difference, as that of a reader does who
/// does not know whether more bytes follow.
///
/// # Safety
/// As for [`image`]: `start` is the address of an image.
unsafe fn begins_with(start: *const u8, magic: &[u8]) -> bool {
    // SAFETY: each byte before this one was that of the magic, so the image is one of this format and is longer.
    magic.iter().enumerate().all(|(at, byte)| unsafe { start.add(at).read() } == *byte)
}

/// # Safety
/// The image has `at + N` bytes.
unsafe fn read_field<const N: usize>(start: *const u8, at: u64) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the promise of the caller; a copy of bytes needs no alignment.
    bytes[..N].copy_from_slice(unsafe { slice::from_raw_parts(start.wrapping_add(at as usize), N) });
    u64::from_le_bytes(bytes)
}

/// The end of the section headers, which is HIP's own size of an ELF file.
///
/// # Safety
/// The image is an ELF file, so it has a header of 64 bytes.
unsafe fn elf_size(start: *const u8) -> Option<u64> {
    // SAFETY: the fields are in the header.
    let (table, size, count) =
        unsafe { (read_field::<8>(start, 40), read_field::<2>(start, 58), read_field::<2>(start, 60)) };
    table.checked_add(size * count).filter(|_| table >= 64 && count > 0)
}

/// # Safety
/// As for [`image`]: `start` is the address of an image.
unsafe fn container_size(start: *const u8) -> Option<u64> {
    // SAFETY: a compressed bundle has a header of at least 20 bytes, a plain one of 32 and its table.
    unsafe {
        if begins_with(start, BUNDLE) {
            return plain_size(start);
        }
        if !begins_with(start, COMPRESSED) {
            return None;
        }
        match read_field::<2>(start, 4) {
            2 => Some(read_field::<4>(start, 8)),
            3 => Some(read_field::<8>(start, 8)),
            // The first version states no size.
            _ => None,
        }
    }
}

/// The end of the last entry.
///
/// # Safety
/// The image is a bundle.
unsafe fn plain_size(start: *const u8) -> Option<u64> {
    // SAFETY: the header of a bundle.
    let count = unsafe { read_field::<8>(start, 24) };
    let (mut at, mut end) = (32u64, 32u64);
    for _ in 0..Some(count).filter(|count| *count <= MAX_ENTRIES)? {
        // SAFETY: the table of a bundle has that many rows, each of 24 bytes and an ID.
        let (offset, size, id) =
            unsafe { (read_field::<8>(start, at), read_field::<8>(start, at + 8), read_field::<8>(start, at + 16)) };
        at += 24 + Some(id).filter(|id| *id <= MAX_ID)?;
        end = end.max(at).max(offset.checked_add(size)?);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: &[u8]) -> Option<usize> {
        // SAFETY: each of these images is as long as its header says, or begins as no image does.
        unsafe { image_at(bytes.as_ptr()) }.map(<[u8]>::len)
    }

    #[test]
    fn headers_state_the_size() {
        let mut elf = vec![0; 64 + 3 * 64];
        elf[..6].copy_from_slice(ELF);
        (elf[40], elf[58], elf[60]) = (64, 64, 3);
        assert_eq!(size(&elf), Some(elf.len()));
        let mut bundle = BUNDLE.to_vec();
        for word in [2u64, 4, 0, 4] {
            bundle.extend(word.to_le_bytes());
        }
        bundle.extend(b"host");
        for word in [90u64, 10, 2] {
            bundle.extend(word.to_le_bytes());
        }
        bundle.extend(b"id");
        bundle.resize(100, 0);
        assert_eq!(size(&bundle), Some(100));
        let mut compressed = b"CCOB\x03\0\x01\0".to_vec();
        compressed.extend(40u64.to_le_bytes());
        compressed.resize(40, 0);
        assert_eq!(size(&compressed), Some(40));
        compressed[4] = 1;
        assert_eq!(size(&compressed), None);
    }

    #[test]
    fn what_states_no_size_is_left_to_hip() {
        assert_eq!((size(b"\0"), size(b"\x7fE\0"), size(b"CC\0")), (None, None, None));
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(ELF);
        assert_eq!(size(&elf), None);
        let mut bundle = BUNDLE.to_vec();
        bundle.extend(u64::MAX.to_le_bytes());
        assert_eq!(size(&bundle), None);
        // SAFETY: no address is read.
        assert_eq!(unsafe { image_at(std::ptr::null()) }, None);
    }
}
