//! Parallel work that also completes where the system provides no more threads: a limit of processes, or a filter of
//! system calls that is older than `clone3`.
//!
//! Invariant: a thread that cannot be created costs only time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

/// As [`on_threads`], with a thread for each core.
///
/// # Panics
/// Where `work` panics on some thread.
pub fn on_all_cores<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    on_threads(thread::available_parallelism().map_or(1, usize::from), count, work)
}

/// The results of `work` for each number below `count`, in order; the calling thread is one of the workers. Where the system
/// does not have any more threads, fewer are used.
///
/// These are not rayon's threads: one that waits there, for memory or for a nested parallel loop, may take another number
/// meanwhile, and two large pieces of work would be held by one thread.
///
/// # Panics
/// Where `work` panics on some thread.
pub fn on_threads<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<NumberedResult<T>>> = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        (1..threads.min(count))
            .all(|_| Builder::new().spawn_scoped(scope, || make_results(&next, count, &work, &made)).is_ok());
        make_results(&next, count, &work, &made);
    });
    let mut made = made.into_inner().expect("nothing panics under the lock");
    made.sort_by_key(|one| one.index);
    made.into_iter().map(|one| one.result).collect()
}

struct NumberedResult<T> {
    index: usize,
    result: T,
}

/// Takes numbers below `count` until none is left, and adds their results.
fn make_results<T>(next: &AtomicUsize, count: usize, work: &impl Fn(usize) -> T, made: &Mutex<Vec<NumberedResult<T>>>) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            return;
        }
        let result = work(index);
        made.lock().expect("nothing panics under the lock").push(NumberedResult { index, result });
    }
}

/// The number of files that this process may have open at once.
#[must_use]
pub fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Bytes of memory that the machine has; 0 where the system does not say it.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn machine_memory() -> u64 {
    0
}

/// Bytes of memory that the machine has.
#[must_use]
#[cfg(target_os = "linux")]
pub fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// The number of further threads that the system provides now, at most `wanted`: a limit of processes, or a filter of system
/// calls, may leave none.
pub fn available_threads(wanted: usize) -> usize {
    let may_end = Barrier::new();
    thread::scope(|scope| {
        let started = (0..wanted).take_while(|_| Builder::new().spawn_scoped(scope, || may_end.wait()).is_ok()).count();
        may_end.open();
        started
    })
}

/// Holds threads until it is opened.
struct Barrier {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn new() -> Self {
        Self { is_open: Mutex::new(false), opened: Condvar::new() }
    }

    fn wait(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(is_open, |is_open| !*is_open));
    }

    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}

/// A task that runs in the background, or, where no thread is available for it, when its result is requested.
#[derive(Debug)]
pub enum BackgroundTask<'scope, T, W> {
    /// On a thread of its own.
    Running(ScopedJoinHandle<'scope, T>),
    Deferred(&'scope W),
}

impl<'scope, T: Send + 'scope, W: Fn() -> T + Sync> BackgroundTask<'scope, T, W> {
    pub fn start(scope: &'scope Scope<'scope, '_>, work: &'scope W) -> Self {
        Builder::new().spawn_scoped(scope, work).map_or(Self::Deferred(work), Self::Running)
    }

    /// The result of the task, which runs now if it had no thread.
    ///
    /// # Errors
    /// The payload of its panic, where it ran on a thread.
    pub fn finish(self) -> thread::Result<T> {
        match self {
            Self::Running(thread) => thread.join(),
            Self::Deferred(work) => Ok(work()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        assert_eq!(on_all_cores(1000, |index| index * 2), (0..1000).map(|index| index * 2).collect::<Vec<_>>());
        assert_eq!(on_all_cores(0, |index| index), [0_usize; 0]);
        assert_eq!(on_threads(0, 3, |index| index), [0, 1, 2]);
    }

    #[test]
    fn threads_that_are_available_are_counted() {
        assert_eq!(available_threads(3), 3);
        assert_eq!(available_threads(0), 0);
    }

    #[test]
    fn a_deferred_task_gives_the_same_result() {
        let work = || 7;
        thread::scope(|scope| {
            assert_eq!(BackgroundTask::start(scope, &work).finish().unwrap(), 7);
            assert_eq!(BackgroundTask::Deferred(&work).finish().unwrap(), 7);
        });
    }
}
