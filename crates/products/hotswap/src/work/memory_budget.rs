//! A memory budget that threads share: a large request waits until other threads are done.
//!
//! Invariants: memory is released when the guard is dropped, also by a panic; a request above the budget is granted
//! when no other thread holds memory, so that no thread waits forever.

use std::sync::{Condvar, Mutex, PoisonError};

/// The budget of all threads together.
const BYTES: u64 = 144 << 20;

/// The budget of this process: several files may be changed at once.
pub(crate) fn shared() -> &'static MemoryBudget {
    static SHARED: MemoryBudget = MemoryBudget { taken: Mutex::new(0), given_back: Condvar::new() };
    &SHARED
}

/// Bytes in use.
#[derive(Debug, Default)]
pub(crate) struct MemoryBudget {
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// Releases its bytes when it is dropped.
pub(crate) struct MemoryReservation<'r>(&'r MemoryBudget, u64);

impl MemoryBudget {
    /// Waits until that many bytes are available.
    pub(crate) fn take(&self, bytes: u64) -> MemoryReservation<'_> {
        let bytes = bytes.min(BYTES);
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self
            .given_back
            .wait_while(taken, |one| exceeds_memory_budget(one, bytes))
            .unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        MemoryReservation(self, bytes)
    }
}

fn exceeds_memory_budget(taken: &mut u64, bytes: u64) -> bool {
    *taken + bytes > BYTES
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
        let (budget, now, done) = (MemoryBudget::default(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (budget, now, done) = (&budget, &now, &done);
                scope.spawn(move || {
                    for round in 0..200 {
                        let wanted = (thread * 37 + round * 11) % 70 * (BYTES / 60);
                        let taken = budget.take(wanted);
                        let all = now.fetch_add(taken.1, Ordering::SeqCst) + taken.1;
                        assert!(all <= BYTES, "{all}");
                        now.fetch_sub(taken.1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 8 * 200);
    }
}
