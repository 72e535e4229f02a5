//! Every container of a file, handled by as many threads as are wanted.
//!
//! Each thread takes the next container, reads it, does the work, and keeps the result only. Results stand in the
//! order of the file; of several failures the first one in the file is told.

use hotswap_bundle::Found;
use hotswap_bundle::linked::Exchange;
use hotswap_report::{Diagnostic, codes};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// New bytes of a container, where it changes, and what there is to say.
pub(super) type Done<T> = (Option<Vec<u8>>, T);

/// What was done with the containers of a file.
pub(super) struct Work<'a, T> {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) done: Vec<(Found<'a>, T)>,
}

/// What became of a container; nothing until a thread is done with it.
type Slot<T> = Mutex<Option<Result<Done<T>, Diagnostic>>>;

type Step<'s, T> = dyn Fn(&Found<'_>) -> Result<Done<T>, Diagnostic> + Sync + 's;

/// Runs `step` on every container; `jobs` at a time.
pub(super) fn work<'a, T: Send>(bytes: &'a [u8], jobs: usize, step: &Step<'_, T>) -> Result<Work<'a, T>, Diagnostic> {
    let contents = hotswap_bundle::open(bytes);
    if let Some(problem) = contents.problems.into_iter().next() {
        return Err(problem);
    }
    let found = contents.found;
    if found.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no container of device code is in it"));
    }
    let progress = progress(&found);
    let next = AtomicUsize::new(0);
    let results: Vec<Slot<T>> = found.iter().map(|_| Mutex::new(None)).collect();
    let take = || {
        while let Some((container, result)) = pick(&found, &results, &next) {
            let done = step(container).map_err(|error| error.in_entry(container.place.to_string()));
            progress.inc(container.bytes.len() as u64);
            // The lock is poisoned only where a thread has panicked, and then the scope does, too.
            if let Ok(mut result) = result.lock() {
                *result = Some(done);
            }
        }
    };
    thread::scope(|scope| {
        (1..jobs.min(found.len())).for_each(|_| drop(scope.spawn(take)));
        take();
    });
    progress.finish_and_clear();
    collect(found, results)
}

fn pick<'f, F, R>(found: &'f [F], results: &'f [R], next: &AtomicUsize) -> Option<(&'f F, &'f R)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((found.get(index)?, results.get(index)?))
}

fn collect<T>(found: Vec<Found<'_>>, results: Vec<Slot<T>>) -> Result<Work<'_, T>, Diagnostic> {
    let mut work = Work { exchanges: Vec::new(), done: Vec::new() };
    for (container, result) in found.into_iter().zip(results) {
        let lost = || Diagnostic::error(codes::INTERNAL, "a thread left a container undone");
        let (new, said) = result.into_inner().ok().flatten().ok_or_else(lost)??;
        work.exchanges.extend(new.map(|new| Exchange { offset: container.place.file_offset, new }));
        work.done.push((container, said));
    }
    Ok(work)
}

/// A bar on standard error, where that is a terminal; by bytes, because bundles differ in size.
fn progress(found: &[Found<'_>]) -> ProgressBar {
    let bar = ProgressBar::new(found.iter().map(|container| container.bytes.len() as u64).sum());
    match ProgressStyle::with_template("retarget {bar:40} {bytes}/{total_bytes} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
