//! Buffered standard output for large amounts of text: one buffer, no allocation per line.
//!
//! The error of a failed write is kept and ends the run at that [`TextOutput::line`]. A closed pipe is not an error.

use hotswap_isa::text::TextBuffer;
use hotswap_report::{Diagnostic, codes};
use std::fmt;
use std::io::{self, Write};

/// The buffer is flushed at the end of a line from this size on.
const FULL: usize = 64 * 1024;

/// Blanks to pad with; padding is never wider.
const BLANKS: [u8; 72] = [b' '; 72];

/// A buffer in front of a writer.
pub struct TextOutput<W> {
    buffer: TextBuffer,
    writer: W,
    error: Option<io::Error>,
    /// The buffer is flushed at the end of a line from this size on.
    full: usize,
}

/// A part of the output that is built in memory.
pub type TextPart = TextOutput<io::Sink>;

impl TextPart {
    pub fn in_memory() -> Self {
        Self { buffer: TextBuffer::with_capacity(16 * FULL), writer: io::sink(), error: None, full: usize::MAX }
    }
}

/// The writer accepts no more output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputClosed;

impl<W: Write> TextOutput<W> {
    pub fn new(writer: W) -> Self {
        Self { buffer: TextBuffer::with_capacity(2 * FULL), writer, error: None, full: FULL }
    }

    /// Appends a part that was built separately.
    pub fn append(&mut self, part: &TextPart) -> Result<(), OutputClosed> {
        self.hand_on()?;
        self.writer.write_all(part.buffer.as_bytes()).map_err(|error| self.failed(error))
    }

    #[inline]
    pub fn text(&mut self, text: &str) {
        self.buffer.push_bytes(text.as_bytes());
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.buffer.push(byte);
    }

    /// The bytes that were written and not flushed yet, to append to.
    #[inline]
    pub fn buffer(&mut self) -> &mut TextBuffer {
        &mut self.buffer
    }

    /// The position of the next byte, for [`TextOutput::since`], [`TextOutput::cut`] and [`TextOutput::pad`].
    #[inline]
    pub fn mark(&self) -> usize {
        self.buffer.len()
    }

    /// The bytes written since a mark.
    #[inline]
    pub fn since(&self, mark: usize) -> &[u8] {
        self.buffer.as_bytes().get(mark..).unwrap_or_default()
    }

    /// Discards the bytes written since a mark.
    pub fn cut(&mut self, mark: usize) {
        self.buffer.truncate(mark);
    }

    /// Writes blanks until `width` bytes follow the mark, and at least one.
    #[inline]
    pub fn pad(&mut self, mark: usize, width: usize) {
        let used = self.buffer.len() - mark;
        self.buffer.push_bytes(&BLANKS);
        let blanks = width.saturating_sub(used).clamp(1, BLANKS.len());
        self.buffer.truncate(mark + used + blanks);
    }

    /// A blank and the eight upper-case digits of a word.
    #[inline]
    pub fn word(&mut self, word: u32) {
        let mut text = [b' '; 9];
        text[1..].copy_from_slice(&digits(word, 7));
        self.buffer.push_bytes(&text);
    }

    /// `// `, the twelve upper-case digits of an address, and a colon.
    #[inline]
    pub fn comment_address(&mut self, address: u64) {
        let mut text = *b"// 000000000000:";
        let (high, low) = (digits((address >> 32) as u32, 7), digits(address as u32, 7));
        text[3..7].copy_from_slice(&high[4..]);
        text[7..15].copy_from_slice(&low);
        // Code does not have addresses of more than 48 bits; all digits of corrupt ones are shown.
        if address >> 48 != 0 {
            self.text("// ");
            self.buffer.push_bytes(&high);
            self.buffer.push_bytes(&text[7..]);
            return;
        }
        self.buffer.push_bytes(&text);
    }

    /// `digits` lower-case hexadecimal digits, more where the number needs them.
    pub fn small_hex(&mut self, value: u64, digits: usize) {
        let needed = (64 - (value | 1).leading_zeros() as usize).div_ceil(4);
        let count = digits.max(needed).min(16);
        let (high, low) = (self::digits((value >> 32) as u32, 39), self::digits(value as u32, 39));
        if count > 8 {
            self.buffer.push_bytes(&high[16 - count..]);
            self.buffer.push_bytes(&low);
        } else {
            self.buffer.push_bytes(&low[8 - count..]);
        }
    }

    pub fn decimal(&mut self, value: u64) {
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
        self.buffer.push_bytes(&text[at..]);
    }

    /// Ends a line, and flushes the buffer if it is full.
    #[inline]
    pub fn line(&mut self) -> Result<(), OutputClosed> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= self.full { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<(), OutputClosed> {
        let written = self.writer.write_all(self.buffer.as_bytes());
        self.buffer.clear();
        written.map_err(|error| self.failed(error))
    }

    fn failed(&mut self, error: io::Error) -> OutputClosed {
        self.error = Some(error);
        OutputClosed
    }

    /// Flushes the rest; returns the error that stopped the output, if it is one.
    pub fn finish(mut self) -> Option<Diagnostic> {
        if self.error.is_none() {
            let _ = self.hand_on();
            self.error = self.error.take().or_else(|| self.writer.flush().err());
        }
        Some(Diagnostic::error(codes::CANNOT_PRINT, self.error?.to_string()))
    }
}

/// The hexadecimal digits of a word, all eight at a time: a digit above 9 is `letter` further on.
#[inline]
fn digits(word: u32, letter: u64) -> [u8; 8] {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    let mut spread = u64::from(word);
    spread = (spread << 16 | spread) & 0x0000_ffff_0000_ffff;
    spread = (spread << 8 | spread) & 0x00ff_00ff_00ff_00ff;
    spread = (spread << 4 | spread) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (spread + 6 * BYTES) >> 4 & BYTES;
    (spread + u64::from(b'0') * BYTES + is_letter * letter).to_be_bytes()
}

impl<W: Write> fmt::Write for TextOutput<W> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut TextOutput<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        let mut out = TextOutput::new(&mut bytes);
        write(&mut out);
        assert!(out.finish().is_none());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn numbers_are_written_with_their_digits() {
        let text = written(|out| {
            for (value, digits) in [(0, 1), (0x1f, 4), (0x12345, 2), (0x9_abcd_ef01, 1), (u64::MAX, 3), (0xabc, 0)] {
                out.small_hex(value, digits);
                out.byte(b' ');
            }
            for address in [0x19af, 0x1234_5678_9abc, u64::MAX] {
                out.comment_address(address);
            }
            out.word(0xbf9f_0012);
            for value in [0, 7, 10, u64::MAX] {
                out.byte(b' ');
                out.decimal(value);
            }
        });
        assert_eq!(
            text,
            "0 001f 12345 9abcdef01 ffffffffffffffff abc // 0000000019AF:// 123456789ABC:// FFFFFFFFFFFFFFFF: BF9F0012 \
             0 7 10 18446744073709551615"
        );
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
    fn a_full_disk_and_a_closed_pipe_stop_the_output() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe] {
            let mut out = TextOutput::new(Full(kind));
            out.text(&"x".repeat(FULL));
            assert_eq!(out.line(), Err(OutputClosed));
            assert!(out.finish().is_some());
        }
    }
}
