//! A buffer for many consecutive lines, the fastest way to write them.
//!
//! Invariants: the bytes written by instructions and `core::fmt` are UTF-8; other bytes are the caller's
//! responsibility. Capacity is kept when the text is cleared.

use alloc::vec::Vec;
use core::fmt;

/// The minimum capacity that is added, more than almost every line needs.
const LEAST: usize = 512;

/// A growing text, see [`append_text`](crate::Inst::append_text). It is followed by capacity whose bytes are
/// initialized, so that a short text can be copied as a whole block.
#[derive(Debug, Clone, Default)]
pub struct TextBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl TextBuffer {
    /// A buffer without capacity.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), len: 0 }
    }

    /// A buffer with capacity for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: alloc::vec![0; bytes + LEAST], len: 0 }
    }

    /// The number of bytes of text.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Clears the text and keeps the capacity.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Discards everything after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.push_bytes(&[byte]);
    }

    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.len < bytes.len() {
            self.grow_capacity(bytes.len());
        }
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    /// The capacity after the text.
    #[inline]
    pub(super) fn free_capacity(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// Adds the next `bytes` bytes of the capacity to the text.
    #[inline]
    pub(super) fn commit_bytes(&mut self, bytes: usize) {
        self.len = self.bytes.len().min(self.len + bytes);
    }

    #[cold]
    pub(super) fn grow_capacity(&mut self, bytes: usize) {
        let size = self.bytes.len().max(LEAST / 2) * 2 + bytes;
        self.bytes.resize(size, 0);
    }
}

impl fmt::Write for TextBuffer {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_bytes(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_grows_and_is_cut() {
        let mut buffer = TextBuffer::new();
        assert!(buffer.is_empty());
        for number in 0..1000u16 {
            buffer.push_bytes(&number.to_be_bytes());
            buffer.push(b'\n');
        }
        assert_eq!(buffer.len(), 3000);
        assert!(buffer.as_bytes().chunks(3).enumerate().all(|(at, line)| line == [(at >> 8) as u8, at as u8, b'\n']));
        buffer.truncate(4);
        buffer.truncate(9);
        assert_eq!(buffer.as_bytes(), [0, 0, b'\n', 0]);
        buffer.clear();
        fmt::Write::write_str(&mut buffer, "v1").unwrap();
        assert_eq!(buffer.as_bytes(), b"v1");
    }
}
