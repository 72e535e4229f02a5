//! The output buffer of a line: bytes that exist already, so that short texts are copied as whole blocks.
//!
//! Invariants: everything before the cursor is complete text; the bytes after it are meaningless. A text that does not
//! fit is not written at all; this is reported as an error and recorded, and the caller retries with a larger buffer.

use crate::number;
use core::fmt;
use hotswap_isa_tables::TextBlock;

pub(super) struct FixedWriter<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
    /// Something did not fit.
    pub(super) full: bool,
}

impl FixedWriter<'_> {
    #[inline]
    pub(super) fn write_block(&mut self, block: &TextBlock) -> fmt::Result {
        self.write_letters(block.letters(), block.len())
    }

    /// Writes the first `len` of some letters.
    #[inline]
    pub(super) fn write_letters<const N: usize>(&mut self, letters: &[u8; N], len: usize) -> fmt::Result {
        match self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            Some(chunk) => *chunk = *letters,
            None => return self.overflow(),
        }
        self.at += len;
        Ok(())
    }

    #[inline]
    pub(super) fn write_decimal(&mut self, value: u64) -> fmt::Result {
        match u16::try_from(value) {
            Ok(value) => {
                let block = number::decimal_block(value);
                self.write_letters(&block.letters, block.len)
            }
            Err(_) => number::write_decimal(self, value),
        }
    }

    /// Writes a number with its sign.
    #[inline]
    pub(super) fn write_signed(&mut self, value: i64) -> fmt::Result {
        if value < 0 {
            self.write_letters(b"-", 1)?;
        }
        self.write_decimal(value.unsigned_abs())
    }

    /// Writes a number as hexadecimal.
    #[inline]
    pub(super) fn write_hexadecimal(&mut self, value: u64) -> fmt::Result {
        match u32::try_from(value) {
            Ok(value) => {
                let block = number::hexadecimal_block(value);
                self.write_letters(&block.letters, block.len)
            }
            Err(_) => number::write_hexadecimal(self, value),
        }
    }

    /// Writes a number with its sign as hexadecimal.
    #[inline]
    pub(super) fn signed_hexadecimal(&mut self, value: i64) -> fmt::Result {
        if value < 0 {
            self.write_letters(b"-", 1)?;
        }
        self.write_hexadecimal(value.unsigned_abs())
    }

    #[cold]
    fn overflow(&mut self) -> fmt::Result {
        self.full = true;
        Err(fmt::Error)
    }
}

impl fmt::Write for FixedWriter<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.at + text.len();
        match self.bytes.get_mut(self.at..end) {
            Some(place) => place.copy_from_slice(text.as_bytes()),
            None => return self.overflow(),
        }
        self.at = end;
        Ok(())
    }
}
