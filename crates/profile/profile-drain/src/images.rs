//! The owners of code objects: images that carry a drain, and the fat binaries that an image registers with HIP.
//!
//! HIP loads a code object from its address in the image, and HSA reports that address. So each copy of the drain can
//! leave the code of other images to their own copies, and drain one fat binary once more before it is unregistered.

use crate::bytes::{ByteSource, word};
use crate::libc::OwnMemory;
use crate::memory::List;

/// A range of addresses of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    pub start: usize,
    pub end: usize,
}

impl AddressRange {
    /// Whether an address is in it.
    #[must_use]
    pub fn holds(self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The code objects that a drain reads.
pub enum DrainScope {
    All,
    /// Those whose files are not in one of these images, which drain them themselves.
    Without(List<AddressRange>),
    /// Those of one fat binary.
    Only(AddressRange),
}

impl DrainScope {
    /// Whether the code object whose file begins there is in scope; the address of a file may be unknown.
    #[must_use]
    pub fn holds(&self, file: Option<usize>) -> bool {
        match self {
            Self::All => true,
            Self::Without(images) => file.is_none_or(|file| !images.iter().any(|image| image.holds(file))),
            Self::Only(range) => file.is_some_and(|file| range.holds(file)),
        }
    }
}

const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// More entries than any bundle has: a number beyond is damage.
const MOST_ENTRIES: u64 = 4096;

/// The address range of the code objects of the offload bundle that begins there. `None` for a compressed one, whose
/// code objects HIP unpacks elsewhere, and for anything that is not a bundle.
#[must_use]
pub fn bundle(start: usize) -> Option<AddressRange> {
    let memory = OwnMemory::at(start);
    let mut head = [0u8; 32];
    if !memory.read(0, &mut head) || !head.starts_with(MAGIC) {
        return None;
    }
    let (mut at, mut end) = (head.len() as u64, 0);
    for _ in 0..word::<8>(&head, 24).min(MOST_ENTRIES) {
        // Offset, size, length of the name; then the name.
        let mut entry = [0u8; 24];
        if !memory.read(at, &mut entry) {
            return None;
        }
        end = word::<8>(&entry, 0).checked_add(word::<8>(&entry, 8))?.max(end);
        at = at.checked_add(24)?.checked_add(word::<8>(&entry, 16))?;
    }
    Some(AddressRange { start, end: start.checked_add(usize::try_from(end).ok()?)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn made(entries: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (offset, size) in entries {
            [*offset, *size, 3].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes.extend(b"gfx");
        }
        bytes
    }

    #[test]
    fn a_bundle_ends_with_its_last_code_object() {
        let bytes = made(&[(4096, 0), (8192, 100), (4096, 50)]);
        let start = bytes.as_ptr() as usize;
        assert_eq!(bundle(start), Some(AddressRange { start, end: start + 8292 }));
        assert_eq!(bundle(bytes[1..].as_ptr() as usize), None);
        assert_eq!(bundle(16), None);
        let damaged = made(&[(u64::MAX, 2)]);
        assert_eq!(bundle(damaged.as_ptr() as usize), None);
    }

    #[test]
    fn scopes_are_of_files() {
        let range = AddressRange { start: 10, end: 20 };
        let mut others = List::EMPTY;
        others.push(range);
        let without = DrainScope::Without(others);
        let only = DrainScope::Only(range);
        let asked = [None, Some(9), Some(10), Some(19), Some(20)];
        assert_eq!(asked.map(|file| without.holds(file)), [true, true, false, false, true]);
        assert_eq!(asked.map(|file| only.holds(file)), [false, false, true, true, false]);
        assert!(DrainScope::All.holds(None));
    }
}
