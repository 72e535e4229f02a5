//! Memory that is used again for the next large content. The system clears each page that it gives: for the contents of Debian's
//! libraries of ROCm, 19 GB, that was a fifth of the time of reading them.
//!
//! Invariant: a piece that is lent has one borrower, and comes back when that is gone. Pieces above the usual size are not kept.

use memmap2::MmapMut;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lends memory in pieces of one size, of which as many are kept as were lent at once.
#[derive(Debug)]
pub struct MemoryLender {
    usual: usize,
    free: Mutex<Vec<MmapMut>>,
}

impl MemoryLender {
    /// `usual` is the size of a piece. It takes memory only where it was written to.
    #[must_use]
    pub const fn new(usual: usize) -> Self {
        Self { usual, free: Mutex::new(Vec::new()) }
    }

    /// At least `size` bytes, with what the borrower before has left in them; `None` where the system does not provide them.
    pub fn lend(&'static self, size: usize) -> Option<LentMemory> {
        let kept = if size <= self.usual { self.lock_free().pop() } else { None };
        let memory = kept.or_else(|| MmapMut::map_anon(size.max(self.usual)).ok())?;
        Some(LentMemory { memory: Some(memory), lender: self })
    }

    fn lock_free(&self) -> MutexGuard<'_, Vec<MmapMut>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of a lender's memory.
pub struct LentMemory {
    /// Until it is dropped.
    memory: Option<MmapMut>,
    lender: &'static MemoryLender,
}

impl Deref for LentMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or_default()
    }
}

impl DerefMut for LentMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.as_deref_mut().unwrap_or_default()
    }
}

impl fmt::Debug for LentMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Drop for LentMemory {
    fn drop(&mut self) {
        let memory = self.memory.take().filter(|memory| memory.len() == self.lender.usual);
        self.lender.lock_free().extend(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_one_borrower_and_is_used_again() {
        static LENDER: MemoryLender = MemoryLender::new(1 << 20);
        let mut first = LENDER.lend(100).unwrap();
        first[99] = 7;
        let second = LENDER.lend(1 << 20).unwrap();
        assert_ne!(first.as_ptr(), second.as_ptr());
        let place = first.as_ptr();
        drop(first);
        assert_eq!(LENDER.lend(5).unwrap().as_ptr(), place);
        let large = LENDER.lend((1 << 20) + 1).unwrap();
        assert!(large.len() > 1 << 20);
        drop((second, large));
        let kept: Vec<usize> = LENDER.lock_free().iter().map(|piece| piece.len()).collect();
        assert_eq!(kept, [1 << 20, 1 << 20], "a larger one is not kept");
        assert!(LENDER.lend(usize::MAX / 2).is_none());
    }
}
