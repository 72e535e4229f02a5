//! Reading and writing of bytes where slices would panic: copies, integers, texts, sources of bytes.
//!
//! Invariant: nothing here allocates or calls libc, so that every other module can use it.
#![allow(unsafe_code)] // one copy, with its proof

use core::ptr;

/// Copies as many bytes as both have: `copy_from_slice` without its panic.
pub fn copy(into: &mut [u8], from: &[u8]) {
    let length = into.len().min(from.len());
    // SAFETY: both slices have `length` bytes, and `into` is borrowed alone, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), length) }
}

/// Writes bytes into others; `None`, with nothing changed, where they do not fit.
pub fn put(into: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    let end = at.checked_add(bytes.len())?;
    copy(into.get_mut(at..end)?, bytes);
    Some(())
}

/// A little-endian integer of two, four or eight bytes; zero where the bytes end before it.
pub fn word<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match N {
        2 => rest.first_chunk().map_or(0, |word| u64::from(u16::from_le_bytes(*word))),
        4 => rest.first_chunk().map_or(0, |word| u64::from(u32::from_le_bytes(*word))),
        _ => rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)),
    }
}

/// The text before the first zero.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A part of the address space of a code object, as its link fixed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub address: u64,
    pub size: u64,
}

impl Span {
    /// Its end address; `None` where it wraps around.
    pub fn end(self) -> Option<u64> {
        self.address.checked_add(self.size)
    }

    /// Whether these bytes are in it.
    pub fn holds(self, address: u64, size: u64) -> bool {
        let end = address.checked_add(size);
        address >= self.address && end.is_some_and(|end| self.end().is_some_and(|own| end <= own))
    }
}

/// A source of bytes that can be read, or not, at an offset.
pub trait ByteSource {
    /// Fills all of `into`; returns false if it cannot.
    fn read(&self, offset: u64, into: &mut [u8]) -> bool;
}

impl ByteSource for &[u8] {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let end = offset.checked_add(into.len() as u64).and_then(|end| usize::try_from(end).ok());
        let range = usize::try_from(offset).ok().zip(end).and_then(|(start, end)| self.get(start..end));
        let Some(range) = range else { return false };
        copy(into, range);
        true
    }
}
