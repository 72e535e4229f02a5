//! The limit of bytes that compressed content of one input may expand to; asked before memory or time is spent on it.
//!
//! The number is that of the process: a command sets it once, before it reads.

use crate::{Diagnostic, codes};
use std::sync::atomic::{AtomicU64, Ordering};

/// More than any real file has; what claims more is damaged or hostile.
pub const MOST: u64 = 16 << 30;

static MAX: AtomicU64 = AtomicU64::new(MOST);

/// Sets how many bytes the compressed content of a file may expand to.
pub fn set(bytes: u64) {
    MAX.store(bytes.min(MOST), Ordering::Relaxed);
}

/// Bytes that the compressed parts of one file have claimed so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Charge(u64);

impl Charge {
    /// Adds the size that a part claims to expand to.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] for more than [`MOST`], [`codes::TOO_LARGE`] where all together are more than is allowed; the part is not added then.
    pub fn add(&mut self, bytes: u64) -> Result<(), Diagnostic> {
        if bytes > MOST {
            let what = format!("the header claims {bytes} uncompressed bytes, more than can be held");
            return Err(Diagnostic::error(codes::MALFORMED, what));
        }
        let (all, max) = (self.0.saturating_add(bytes), MAX.load(Ordering::Relaxed));
        if all > max {
            let before = if self.0 == 0 { String::new() } else { format!(" after {} before it", self.0) };
            let what = format!("it claims to expand to {bytes} bytes{before}; {max} are allowed in a file");
            return Err(Diagnostic::error(codes::TOO_LARGE, what));
        }
        self.0 = all;
        Ok(())
    }
}
