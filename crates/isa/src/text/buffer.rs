//! Many lines one behind another, the fastest way to write them.
//!
//! Invariants: what instructions and `core::fmt` write is UTF-8, other bytes are their caller's; room that was made once
//! stays when the text is cleared.

use alloc::vec::Vec;
use core::fmt;

/// Room that is made at least, more than almost every line needs.
const LEAST: usize = 512;

/// Text that grows, see [`append_text`](crate::Inst::append_text). Behind it is room whose bytes exist already, so that
/// a short text can be copied as a whole block.
#[derive(Debug, Clone, Default)]
pub struct TextBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl TextBuffer {
    /// Without room.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), len: 0 }
    }

    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: alloc::vec![0; bytes + LEAST], len: 0 }
    }

    /// Bytes of text.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets the text and keeps the room.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Forgets what stands behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends a byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.push_bytes(&[byte]);
    }

    /// Appends bytes.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.len < bytes.len() {
            self.grow(bytes.len());
        }
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    /// The room behind the text.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// So many bytes of the room are text now.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.len = self.bytes.len().min(self.len + bytes);
    }

    /// Makes more room.
    #[cold]
    pub(super) fn grow(&mut self, bytes: usize) {
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
