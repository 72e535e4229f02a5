//! Room in memory that threads share: who needs much waits until others are done.
//!
//! Invariants: what is taken is given back when the guard goes, also by a panic; who needs more than there is gets it
//! when nobody else has any, so that nobody waits for ever.

use std::sync::{Condvar, Mutex, PoisonError};

/// All that threads may take together.
const BYTES: u64 = 144 << 20;

/// Bytes that are taken.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// Gives back what was taken.
pub(crate) struct Taken<'r>(&'r Room, u64);

impl Room {
    /// Waits until there is room for so many bytes.
    pub(crate) fn take(&self, bytes: u64) -> Taken<'_> {
        let bytes = bytes.min(BYTES);
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut u64| *taken + bytes > BYTES;
        let mut taken = self.given_back.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Taken(self, bytes)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.1;
        self.0.given_back.notify_all();
    }
}

/// Makes the allocator give large blocks back to the system at once. By itself glibc keeps freed blocks of up to 32 MiB,
/// and 64 MiB behind them, for each thread: more than the containers need that are worked on.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "glibc's settings can only be reached by a foreign function")]
pub(crate) fn keep_little() {
    use std::ffi::c_int;
    // malloc.h
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;
    // SAFETY: this is the declaration of mallopt(3) in glibc, which the standard library is linked with on this target.
    // It takes two numbers, holds the allocator's lock while it stores them, and refuses values that it does not know.
    unsafe extern "C" {
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // Where it refuses, more memory is used, and nothing else differs.
    let _ = mallopt(M_MMAP_THRESHOLD, 4 << 20);
    let _ = mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

/// Gives freed memory back to the system that the allocator keeps between blocks in use. It takes milliseconds: for ends of
/// long steps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "glibc's allocator can only be told by a foreign function")]
pub(crate) fn give_back() {
    // SAFETY: this is the declaration of malloc_trim(3) in glibc, which the standard library is linked with on this target.
    // It takes a number of bytes to keep, locks each arena while it looks at it, and gives back pages of free blocks alone.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    let _ = malloc_trim(0);
}

/// Other allocators are taken as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn keep_little() {}

/// Other allocators are taken as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn threads_never_have_more_than_there_is_and_all_get_their_share() {
        let (room, now, done) = (Room::default(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (room, now, done) = (&room, &now, &done);
                scope.spawn(move || {
                    for round in 0..200 {
                        let wanted = (thread * 37 + round * 11) % 70 * (BYTES / 60);
                        let taken = room.take(wanted);
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
