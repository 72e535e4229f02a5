//! Many independent cases of one test, on all cores and within a time, where a task asks for them.
//!
//! Absent on purpose: by default a test runs on one thread, because `cargo xtask test` starts as many test programs as there are cores.

use crate::everything;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Minutes after which a test with very many cases begins no further one; without it all cases run.
pub const ENV_MINUTES: &str = "HOTSWAP_TEST_MINUTES";

/// When a test that starts now begins no further case.
fn last_start() -> Option<Instant> {
    let text = std::env::var(ENV_MINUTES).ok().filter(|text| !text.is_empty())?;
    let minutes: u64 = text.parse().unwrap_or_else(|_| panic!("{ENV_MINUTES} is `{text}`, not a number of minutes"));
    Some(Instant::now() + Duration::from_secs(minutes * 60))
}

/// Threads of a test: all cores where all of its cases run.
fn worker_count() -> usize {
    if everything() { thread::available_parallelism().map_or(1, NonZero::get) } else { 1 }
}

/// The results of the cases in their order. Each thread has a state of its own, such as a scratch directory. Fewer results than
/// cases are those that began within [`ENV_MINUTES`].
///
/// # Panics
/// If a case does, or without a result.
pub fn run_cases<T: Sync, S, R: Send>(
    cases: &[T],
    make_state: impl Fn() -> S + Sync,
    examine: impl Fn(&S, &T) -> R + Sync,
) -> Vec<R> {
    run_until(cases, last_start(), worker_count(), make_state, examine)
}

fn run_until<T: Sync, S, R: Send>(
    cases: &[T],
    end: Option<Instant>,
    workers: usize,
    make_state: impl Fn() -> S + Sync,
    examine: impl Fn(&S, &T) -> R + Sync,
) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let state = make_state();
                let _ended = EndAtPanic { next: &next };
                while end.is_none_or(|end| Instant::now() < end) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { break };
                    let result = examine(&state, case);
                    results.lock().expect("no thread panics with the lock").push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics with the lock");
    assert!(!results.is_empty(), "no case ran");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A case that panics ends the others after theirs.
struct EndAtPanic<'n> {
    next: &'n AtomicUsize,
}

impl Drop for EndAtPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.next.store(usize::MAX / 2, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_cases() {
        let cases: Vec<u64> = (0..50).collect();
        for workers in [1, 3] {
            let found = run_until(&cases, None, workers, || 7, |state, case| case * state);
            assert_eq!(found, cases.iter().map(|case| case * 7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_case_begins_after_the_time() {
        let end = Some(Instant::now() + Duration::from_millis(60));
        let found = run_until(&[20; 1000], end, 2, || (), |(), case| thread::sleep(Duration::from_millis(*case)));
        assert!((1..1000).contains(&found.len()), "{}", found.len());
    }

    #[test]
    #[should_panic(expected = "no case ran")]
    fn a_time_that_is_over_is_a_failure() {
        run_until(&[1], Some(Instant::now()), 1, || (), |(), _| ());
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_case_that_panics_fails_the_test() {
        run_until(&[1, 2], None, 2, || (), |(), case| assert_eq!(*case, 1));
    }
}
