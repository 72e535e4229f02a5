//! Reads the containers of a file in several threads, within the memory that they share.
//!
//! Invariant: the results are in the order of the file, so the number of threads changes nothing.

use crate::work::memory_budget;
use hotswap_bundle::FoundContainer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The reading of one container, whose number counts from 0.
pub(crate) type ReadContainer<'s, T> = dyn Fn(usize, &FoundContainer<'_>) -> T + Sync + 's;

/// The result for each container.
pub(crate) fn each_container<T: Send>(
    found: &[FoundContainer<'_>],
    threads: usize,
    read: &ReadContainer<'_, T>,
) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(found.len())));
    let take = || {
        while let Some((number, container)) = take_next(found, &next) {
            let taken = memory_budget::shared().take(container.plain_size() / 4);
            let result = read(number, container);
            drop(taken);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    thread::scope(|scope| {
        // Where the system does not have any more threads, fewer are used.
        let more = || thread::Builder::new().spawn_scoped(scope, take).is_ok();
        (1..threads.min(found.len())).all(|_| more());
        take();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take_next<'f, 'a>(found: &'f [FoundContainer<'a>], next: &AtomicUsize) -> Option<(usize, &'f FoundContainer<'a>)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, found.get(number)?))
}
