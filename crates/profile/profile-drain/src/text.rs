//! Text in a buffer of fixed size: messages and paths, without `core::fmt` (which would bring panics and size).
//!
//! Invariant: a zero byte follows the text, so that it can be passed to libc directly.

use crate::bytes::put;

/// Up to `N - 1` bytes of text. The rest is cut, which [`Text::is_cut`] reports.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
    cut: bool,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0, cut: false }
    }
}

impl<const N: usize> Text<N> {
    /// A text that begins with these bytes.
    pub fn new(text: &[u8]) -> Self {
        let mut made = Self::default();
        made.push(text);
        made
    }

    pub fn push(&mut self, text: &[u8]) -> &mut Self {
        let AppendedText { used, all } = append(&mut self.bytes, self.length, text);
        self.length = used;
        self.cut |= !all;
        self
    }

    /// Adds a number in decimal.
    pub fn number(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        for place in digits.iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or_default())
    }

    /// Adds a number in hexadecimal, with at least `width` digits.
    pub fn hex(&mut self, number: u64, width: u32) -> &mut Self {
        let digits = (16 - number.leading_zeros() / 4).max(width).max(1);
        for place in (0..digits.min(16)).rev() {
            let digit = (number >> (4 * place)) as u8 & 0xf;
            self.push(&[if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }]);
        }
        self
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The text followed by a zero.
    pub fn c_string(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether something did not fit.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

struct AppendedText {
    /// The new length of the text.
    used: usize,
    /// Whether all of it fitted.
    all: bool,
}

/// Adds text to a buffer. Not inlined: messages call this a hundred times.
#[inline(never)]
fn append(buffer: &mut [u8], used: usize, text: &[u8]) -> AppendedText {
    let room = buffer.len().saturating_sub(1).saturating_sub(used);
    let fits = text.get(..room.min(text.len())).unwrap_or_default();
    let _ = put(buffer, used, fits);
    AppendedText { used: used + fits.len(), all: fits.len() == text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for number in [0, 1, 9, 10, 255, 4096, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(Text::<32>::default().number(number).bytes(), format!("{number}").as_bytes());
            assert_eq!(Text::<32>::default().hex(number, 0).bytes(), format!("{number:x}").as_bytes());
            assert_eq!(Text::<32>::default().hex(number, 16).bytes(), format!("{number:016x}").as_bytes());
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_and_said() {
        let mut text = Text::<4>::new(b"abc");
        assert!(!text.is_cut());
        text.push(b"d");
        assert!(text.is_cut());
        assert_eq!((text.bytes(), text.c_string()), (&b"abc"[..], &b"abc\0"[..]));
    }
}
