//! Every container of a file, handled by as many threads as are wanted.
//!
//! Each thread takes the next container, reads it, does the work, and keeps the result only; that of a large file waits
//! on disk, so that memory holds one container for each thread. Results stand in the order of the file; of several
//! failures the first one in the file is told.

use hotswap_bundle::Found;
use hotswap_bundle::linked::Exchange;
use hotswap_files::{Input, Scratch};
use hotswap_report::{Diagnostic, codes};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// New bytes of a container, where it changes, and what there is to say.
pub(super) type Done<T> = (Option<Vec<u8>>, T);

/// A result until it is written.
enum Kept {
    Memory(Vec<u8>),
    Scratch(Range<usize>),
}

/// What was done with one container.
pub(super) struct Handled<'a, T> {
    pub(super) found: Found<'a>,
    /// Its new size, where it changes.
    pub(super) size: Option<usize>,
    pub(super) said: T,
    new: Option<Kept>,
}

/// What was done with the containers of a file.
pub(super) struct Work<'a, T> {
    pub(super) done: Vec<Handled<'a, T>>,
    scratch: Input,
}

impl<T> Work<'_, T> {
    /// The new contents.
    pub(super) fn exchanges(&self) -> Vec<Exchange<'_>> {
        self.done.iter().filter_map(|handled| self.exchange(handled)).collect()
    }

    fn exchange<'w>(&'w self, handled: &'w Handled<'_, T>) -> Option<Exchange<'w>> {
        let new: &[u8] = match handled.new.as_ref()? {
            Kept::Memory(bytes) => bytes,
            Kept::Scratch(range) => self.scratch.get(range.clone())?,
        };
        Some(Exchange { offset: handled.found.place.file_offset, new: new.into() })
    }
}

/// A thread's result; nothing until it is done.
type Slot<T> = Mutex<Option<Result<(Option<Kept>, Option<usize>, T), Diagnostic>>>;

type Step<'s, T> = dyn Fn(&Found<'_>) -> Result<Done<T>, Diagnostic> + Sync + 's;

/// From this size on, results of a file wait on disk.
const LARGE: usize = 1 << 20;

/// Runs `step` on every container, `jobs` at a time. `output` is where the file will be written.
pub(super) fn work<'a, T: Send>(
    bytes: &'a [u8],
    output: &Path,
    jobs: usize,
    step: &Step<'_, T>,
) -> Result<Work<'a, T>, Diagnostic> {
    let contents = hotswap_bundle::open(bytes);
    if let Some(problem) = contents.problems.into_iter().next() {
        return Err(problem);
    }
    let found = contents.found;
    if found.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no container of device code is in it"));
    }
    let scratch = if bytes.len() < LARGE { None } else { Some(Scratch::beside(output)?) };
    let progress = progress(&found);
    let next = AtomicUsize::new(0);
    let slots: Vec<Slot<T>> = found.iter().map(|_| Mutex::new(None)).collect();
    let take = || {
        while let Some((container, slot)) = pick(&found, &slots, &next) {
            let done = step(container).and_then(|(new, said)| {
                let size = new.as_ref().map(Vec::len);
                Ok((new.map(|new| keep(scratch.as_ref(), new)).transpose()?, size, said))
            });
            progress.inc(container.bytes.len() as u64);
            // The lock is poisoned only where a thread has panicked, and then the scope does, too.
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(done.map_err(|error| error.in_entry(container.place.to_string())));
            }
        }
    };
    thread::scope(|scope| {
        (1..jobs.min(found.len())).for_each(|_| drop(scope.spawn(take)));
        take();
    });
    progress.finish_and_clear();
    let scratch = scratch.map_or(Ok(Input::Read(Vec::new())), |scratch| scratch.read())?;
    Ok(Work { done: collect(found, slots)?, scratch })
}

fn keep(scratch: Option<&Scratch>, new: Vec<u8>) -> Result<Kept, Diagnostic> {
    match scratch {
        None => Ok(Kept::Memory(new)),
        Some(scratch) => scratch.keep(&new).map(Kept::Scratch),
    }
}

fn pick<'f, F, R>(found: &'f [F], results: &'f [R], next: &AtomicUsize) -> Option<(&'f F, &'f R)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((found.get(index)?, results.get(index)?))
}

fn collect<T>(found: Vec<Found<'_>>, slots: Vec<Slot<T>>) -> Result<Vec<Handled<'_, T>>, Diagnostic> {
    let handled = found.into_iter().zip(slots).map(|(found, slot)| {
        let lost = || Diagnostic::error(codes::INTERNAL, "a thread left a container undone");
        let (new, size, said) = slot.into_inner().ok().flatten().ok_or_else(lost)??;
        Ok(Handled { found, size, said, new })
    });
    handled.collect()
}

/// A bar on standard error, where that is a terminal; by bytes, because bundles differ in size.
fn progress(found: &[Found<'_>]) -> ProgressBar {
    let bar = ProgressBar::new(found.iter().map(|container| container.bytes.len() as u64).sum());
    match ProgressStyle::with_template("retarget {bar:40} {bytes}/{total_bytes} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
