//! A memory budget that threads share: a large request waits until other threads are done.
//!
//! Invariants: memory is released when the guard is dropped, also by a panic; a request above the budget is granted
//! when no other thread holds memory, so that no thread waits forever.

use std::ops::RangeInclusive;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Bytes for changes of all threads together.
const FOR_CHANGES: u64 = 144 << 20;
/// Bytes for containers that are only read, all threads together: an eighth of the machine's memory, within these limits.
const FOR_READING: RangeInclusive<u64> = (576 << 20)..=(3 << 29);

/// The budget of this process for changes: several files may be changed at once.
pub fn shared() -> &'static MemoryBudget {
    static SHARED: MemoryBudget = MemoryBudget::new(FOR_CHANGES);
    &SHARED
}

/// The budget of this process for unpacked containers that are only read.
pub fn for_reading() -> &'static MemoryBudget {
    static FOR_READING_BUDGET: OnceLock<MemoryBudget> = OnceLock::new();
    FOR_READING_BUDGET.get_or_init(|| {
        let share = hotswap_files::machine_memory() / 8;
        MemoryBudget::new(share.clamp(*FOR_READING.start(), *FOR_READING.end()))
    })
}

/// The bytes that threads may use together, and those that they use.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// Releases its bytes when it is dropped.
pub struct MemoryReservation<'r>(&'r MemoryBudget, u64);

impl MemoryBudget {
    const fn new(bytes: u64) -> Self {
        Self { bytes, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// The part of each of some threads.
    pub fn share_of(&self, threads: usize) -> u64 {
        self.bytes / threads.max(1) as u64
    }

    /// Waits until that many bytes are available.
    pub fn take(&self, bytes: u64) -> MemoryReservation<'_> {
        let bytes = bytes.min(self.bytes);
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self
            .given_back
            .wait_while(taken, |taken| *taken + bytes > self.bytes)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        MemoryReservation(self, bytes)
    }
}

impl Drop for MemoryReservation<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.1;
        self.0.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn threads_never_have_more_than_there_is_and_all_get_their_share() {
        let (budget, now, done) = (MemoryBudget::new(FOR_CHANGES), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (budget, now, done) = (&budget, &now, &done);
                scope.spawn(move || {
                    for round in 0..200 {
                        let wanted = (thread * 37 + round * 11) % 70 * (FOR_CHANGES / 60);
                        let taken = budget.take(wanted);
                        let all = now.fetch_add(taken.1, Ordering::SeqCst) + taken.1;
                        assert!(all <= FOR_CHANGES, "{all}");
                        now.fetch_sub(taken.1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 8 * 200);
    }
}
