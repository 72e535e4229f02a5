//! Standard output for a lot of text: one buffer, no allocation for a line.
//!
//! A write that fails is kept and ends the run at the next [`Out::line`]; a closed pipe is no error, the
//! reader has seen enough.

use hotswap_report::{Diagnostic, codes};
use std::fmt;
use std::io::{self, Write};

/// Lines are handed on when this much is there.
const FULL: usize = 64 * 1024;

/// A buffer before a writer.
pub(super) struct Out<W> {
    buffer: Vec<u8>,
    writer: W,
    error: Option<io::Error>,
    /// Where the current line begins in the buffer.
    line: usize,
}

/// The writer takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop;

impl<W: Write> Out<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { buffer: Vec::with_capacity(2 * FULL), writer, error: None, line: 0 }
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.buffer.push(byte);
    }

    /// Where the next byte will stand, for [`Out::since`], [`Out::cut`] and [`Out::pad`].
    #[inline]
    pub(super) fn mark(&self) -> usize {
        self.buffer.len()
    }

    /// What was written since a mark.
    #[inline]
    pub(super) fn since(&self, mark: usize) -> &[u8] {
        self.buffer.get(mark..).unwrap_or_default()
    }

    /// Takes back what was written since a mark.
    pub(super) fn cut(&mut self, mark: usize) {
        self.buffer.truncate(mark);
    }

    /// Blanks until `width` bytes stand behind the mark, and at least one.
    #[inline]
    pub(super) fn pad(&mut self, mark: usize, width: usize) {
        let to = (mark + width).max(self.buffer.len() + 1);
        self.buffer.resize(to, b' ');
    }

    /// `digits` upper-case hexadecimal digits, more where the number needs them.
    #[inline]
    pub(super) fn hex(&mut self, value: u64, digits: usize) {
        self.digits(value, digits, b"0123456789ABCDEF");
    }

    /// As [`Out::hex`], in lower case.
    #[inline]
    pub(super) fn small_hex(&mut self, value: u64, digits: usize) {
        self.digits(value, digits, b"0123456789abcdef");
    }

    #[inline]
    fn digits(&mut self, value: u64, digits: usize, alphabet: &[u8; 16]) {
        let needed = (64 - (value | 1).leading_zeros() as usize).div_ceil(4);
        let count = digits.max(needed).min(16);
        let mut text = [b'0'; 16];
        let mut rest = value;
        for digit in text.iter_mut().rev().take(count) {
            *digit = alphabet[(rest & 15) as usize];
            rest >>= 4;
        }
        self.buffer.extend_from_slice(&text[16 - count..]);
    }

    pub(super) fn decimal(&mut self, value: u64) {
        let mut text = [0; 20];
        let mut at = text.len();
        let mut rest = value;
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.buffer.extend_from_slice(&text[at..]);
    }

    /// Ends a line, handing on what has gathered.
    #[inline]
    pub(super) fn line(&mut self) -> Result<(), Stop> {
        self.buffer.push(b'\n');
        self.line = self.buffer.len();
        if self.buffer.len() >= FULL { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<(), Stop> {
        let written = self.writer.write_all(&self.buffer);
        self.buffer.clear();
        self.line = 0;
        written.map_err(|error| {
            self.error = Some(error);
            Stop
        })
    }

    /// Hands on the rest; the error that stopped the output, if it is one.
    pub(super) fn finish(mut self) -> Option<Diagnostic> {
        if self.error.is_none() {
            let _ = self.hand_on();
            self.error = self.error.take().or_else(|| self.writer.flush().err());
        }
        let error = self.error.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)?;
        Some(Diagnostic::error(codes::CANNOT_WRITE, format!("standard output: {error}")))
    }
}

impl<W: Write> fmt::Write for Out<W> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Out<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        write(&mut out);
        assert!(out.finish().is_none());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn numbers_are_written_with_their_digits() {
        let text = written(|out| {
            for (value, digits) in [(0, 1), (0x1f, 4), (0x12345, 2), (u64::MAX, 3)] {
                out.hex(value, digits);
                out.byte(b' ');
            }
            out.small_hex(0xabc, 0);
            for value in [0, 7, 10, u64::MAX] {
                out.byte(b' ');
                out.decimal(value);
            }
        });
        assert_eq!(text, "0 001F 12345 FFFFFFFFFFFFFFFF abc 0 7 10 18446744073709551615");
    }

    #[test]
    fn padding_leaves_a_blank_behind_long_text() {
        let text = written(|out| {
            for word in ["ab", "abcdef"] {
                let mark = out.mark();
                out.text(word);
                out.pad(mark, 4);
                out.byte(b'|');
            }
        });
        assert_eq!(text, "ab  |abcdef |");
    }

    struct Full(io::ErrorKind);

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_stops_the_output_and_a_closed_pipe_does_so_without_a_word() {
        for (kind, told) in [(io::ErrorKind::StorageFull, true), (io::ErrorKind::BrokenPipe, false)] {
            let mut out = Out::new(Full(kind));
            out.text(&"x".repeat(FULL));
            assert_eq!(out.line(), Err(Stop));
            assert_eq!(out.finish().is_some(), told);
        }
    }
}
