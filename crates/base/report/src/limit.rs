//! The limit of bytes to which compressed content of one input may expand; checked before memory or time is spent on
//! it.
//!
//! The number is that of the process: a command sets it once, before it reads.

use crate::{Diagnostic, codes};
use std::io::{self, Read};
use std::sync::OnceLock;

/// More than any real file has; an input that claims more is damaged or hostile.
pub const MOST: u64 = 16 << 30;

/// Allowed by default: more than most files have.
const USUAL: u64 = 1 << 30;

/// A large library may hold more than [`USUAL`], and costs no more than its size explains. Debian's librocsparse
/// expands to 6 times its size; ggml for eight siblings, which differ in a name, to 42 times, one bundle of it to 108.
/// Deflate ends at 1,032, zstd at 32,768, and only zeros and similar data reach that.
const RATIO: u64 = 256;

/// Set by a command; without one, [`MOST`] is the limit.
static LIMIT: OnceLock<Limit> = OnceLock::new();

/// The number of bytes to which the compressed content of a file may expand.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Bytes(u64),
    /// [`USUAL`], or [`RATIO`] times the compressed bytes where that is more.
    Usual,
}

/// Sets, once for the process, the number of bytes to which the compressed content of a file may expand: `bytes`, or
/// for `None` 1 GiB or 256 times its compressed size, whichever is more.
pub fn set_limit(bytes: Option<u64>) {
    let limit = bytes.map_or(Limit::Usual, |bytes| Limit::Bytes(bytes.min(MOST)));
    // Only the first call counts: earlier queries got an answer that must stay valid.
    let _ = LIMIT.set(limit);
}

/// The limit that a command was given, for commands that it prints.
pub fn requested_limit() -> Option<u64> {
    match LIMIT.get() {
        Some(Limit::Bytes(bytes)) => Some(*bytes),
        _ => None,
    }
}

/// Compressed parts of one file so far: their size, and the sizes to which they claim to expand.
#[derive(Debug, Default, Clone, Copy)]
pub struct Charge {
    held: u64,
    claimed: u64,
}

impl Charge {
    /// Adds a part of `held` compressed bytes, which claims to expand to `claimed`.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] for more than [`MOST`], [`codes::TOO_LARGE`] where all together are more than is allowed;
    /// the part is not added then.
    pub fn add(&mut self, held: usize, claimed: u64) -> Result<(), Diagnostic> {
        if claimed > MOST {
            let what = format!("the header claims {claimed} uncompressed bytes, more than can be held");
            return Err(Diagnostic::error(codes::MALFORMED, what));
        }
        let all = Self { held: self.held + held as u64, claimed: self.claimed.saturating_add(claimed) };
        let max = all.max();
        if all.claimed > max {
            let before = if self.claimed == 0 { String::new() } else { format!(" after {} before it", self.claimed) };
            let what = format!("it claims to expand to {claimed} bytes{before}; {max} are allowed in a file");
            return Err(Diagnostic::error(codes::TOO_LARGE, what));
        }
        *self = all;
        Ok(())
    }

    /// The bytes that are allowed for parts of `held` compressed bytes whose headers claim nothing.
    pub fn allowed_bytes(held: u64) -> u64 {
        Self { held, claimed: 0 }.max()
    }

    fn max(self) -> u64 {
        match LIMIT.get() {
            None => MOST,
            Some(Limit::Bytes(bytes)) => *bytes,
            Some(Limit::Usual) => USUAL.max(self.held.saturating_mul(RATIO)),
        }
    }
}

/// A reader of expanded content, which ends with [`codes::TOO_LARGE`] after what is allowed.
#[derive(Debug)]
pub struct LimitedReader<R> {
    inner: R,
    left: u64,
    allowed: u64,
}

impl<R> LimitedReader<R> {
    /// For content of `held` compressed bytes.
    pub fn new(inner: R, held: u64) -> Self {
        Self::with_limit(inner, Charge::allowed_bytes(held))
    }

    /// For content of at most so many bytes.
    pub fn with_limit(inner: R, allowed: u64) -> Self {
        Self { inner, left: allowed, allowed }
    }

    /// The bytes that may follow.
    pub fn left(&self) -> u64 {
        self.left
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = self.inner.read(room)?;
        self.left = self.left.checked_sub(size as u64).ok_or_else(|| {
            let what = format!("it expands to more than the {} bytes that are allowed in a file", self.allowed);
            io::Error::other(Diagnostic::error(codes::TOO_LARGE, what))
        })?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_may_hold_what_its_size_explains() {
        set_limit(None);
        let mut charge = Charge::default();
        assert!(charge.add(16 << 20, 3 << 30).is_ok());
        assert_eq!(charge.add(1, 2 << 30).unwrap_err().code, codes::TOO_LARGE);
        assert!(charge.add(16 << 20, 3 << 30).is_ok());
        assert!(Charge::default().add(1, 1 << 30).is_ok());
        assert!(Charge::default().add(1, (1 << 30) + 1).is_err());
    }
}
