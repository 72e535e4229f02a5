//! Views of input bytes, and checked little-endian reads.
//!
//! Invariant: every offset and size that comes from input is a `u64` and is checked by [`slice`].

use hotswap_files::{InputFile, LentMemory, Scratch};
use hotswap_report::{Diagnostic, codes};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Gives back the memory of a part that was read.
pub(crate) type ReleasePart<'r> = dyn Fn(&[u8]) + Sync + 'r;

/// Bytes of an entry: a view of the input, of its decompressed form, or new ones. Cheap to clone.
#[derive(Clone)]
pub struct EntryBytes<'a>(Storage<'a>);

#[derive(Clone)]
enum Storage<'a> {
    Borrowed(&'a [u8]),
    Shared(Arc<Vec<u8>>, Range<usize>),
    /// In memory that is used again when the last view of it is gone.
    Lent(Arc<LentMemory>, Range<usize>),
    /// In an unnamed file, so that pages that are not in use need no memory.
    Mapped(Arc<InputFile>, Range<usize>),
}

impl<'a> EntryBytes<'a> {
    /// A part of memory that was lent.
    pub(crate) fn of_lent(memory: &Arc<LentMemory>, range: Range<usize>) -> Self {
        Self(Storage::Lent(Arc::clone(memory), range))
    }

    /// The part `range` of these bytes, without a copy; `None` where it exceeds them.
    pub fn part(&self, range: Range<u64>) -> Option<Self> {
        let size = range.end.checked_sub(range.start)?;
        slice(self, range.start, size)?;
        let (start, size) = (usize::try_from(range.start).ok()?, usize::try_from(size).ok()?);
        Some(Self(match &self.0 {
            Storage::Borrowed(bytes) => Storage::Borrowed(bytes.get(start..start + size)?),
            Storage::Shared(whole, old) => {
                Storage::Shared(Arc::clone(whole), old.start + start..old.start + start + size)
            }
            Storage::Lent(whole, old) => Storage::Lent(Arc::clone(whole), old.start + start..old.start + start + size),
            Storage::Mapped(whole, old) => {
                Storage::Mapped(Arc::clone(whole), old.start + start..old.start + start + size)
            }
        }))
    }

    /// The bytes of the input itself; `None` where they are unpacked or new.
    pub fn of_input(&self) -> Option<&'a [u8]> {
        match self.0 {
            Storage::Borrowed(bytes) => Some(bytes),
            Storage::Shared(..) | Storage::Lent(..) | Storage::Mapped(..) => None,
        }
    }

    /// Replaces a small part of a large allocation by a copy, so that the allocation is freed.
    pub(crate) fn detach(&mut self) {
        let is_waste = match &self.0 {
            Storage::Borrowed(_) | Storage::Mapped(..) => false,
            Storage::Shared(whole, range) => range.len() < whole.len() / 2,
            Storage::Lent(..) => true,
        };
        if is_waste {
            *self = Self::from(self.to_vec());
        }
    }

    /// The same bytes in an unnamed file, where they are in memory and a file can be made: [`Bytes::release`]
    /// gives back their memory.
    #[must_use]
    pub fn put_aside(self) -> Self {
        let Storage::Shared(whole, range) = &self.0 else { return self };
        let kept = Scratch::temporary().and_then(|scratch| {
            scratch.keep(&whole[range.clone()])?;
            scratch.read()
        });
        // Without a file, they only stay in memory.
        kept.map_or(self, Self::from)
    }

    /// Gives back the memory of the part, which is read from its file again when it is needed. Without effect for a slice
    /// of something else, and for bytes that are in no unnamed file.
    pub fn release(&self, part: &[u8]) {
        if let Storage::Mapped(whole, _) = &self.0 {
            whole.release(part);
        }
    }

    /// Whether they are in an unnamed file.
    pub(crate) fn is_aside(&self) -> bool {
        matches!(self.0, Storage::Mapped(..))
    }

    /// Whether both have the same address, so that one copy serves two entries.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        !self.is_empty() && std::ptr::eq(self.as_ptr(), other.as_ptr()) && self.len() == other.len()
    }
}

impl Deref for EntryBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Borrowed(bytes) => bytes,
            Storage::Shared(whole, range) => &whole[range.clone()],
            Storage::Lent(whole, range) => &whole[range.clone()],
            Storage::Mapped(whole, range) => &whole[range.clone()],
        }
    }
}

impl<'a> From<&'a [u8]> for EntryBytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Storage::Borrowed(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for EntryBytes<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self(Storage::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for EntryBytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self(Storage::Shared(Arc::new(bytes), range))
    }
}

impl From<InputFile> for EntryBytes<'_> {
    fn from(file: InputFile) -> Self {
        let range = 0..file.len();
        Self(Storage::Mapped(Arc::new(file), range))
    }
}

impl fmt::Debug for EntryBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl PartialEq for EntryBytes<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for EntryBytes<'_> {}

/// `size` bytes from `offset` on, if all of them exist.
pub(crate) fn slice(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end)
}

fn array_at<const N: usize>(bytes: &[u8], offset: u64) -> Option<[u8; N]> {
    slice(bytes, offset, N as u64)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: u64) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// The next multiple of `alignment` (a power of two).
pub(crate) fn align_up(value: u64, alignment: u64) -> Option<u64> {
    debug_assert!(alignment.is_power_of_two());
    Some(value.checked_add(alignment - 1)? & !(alignment - 1))
}

/// An error about damaged input, at that offset of the item being read.
pub(crate) fn malformed_at(what: impl Into<String>, offset: u64) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what).at_offset(offset)
}

/// Adds the offset of the inner item in the outer one to that of a diagnostic.
pub(crate) fn shift_offset(mut error: Diagnostic, by: u64) -> Diagnostic {
    error.place.offset = Some(error.place.offset.unwrap_or(0).saturating_add(by));
    error
}
