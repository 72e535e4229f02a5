//! Memory of mapped files, given back while other code works on them.
//!
//! A library that packs or unpacks a buffer as a whole touches all of its pages. While it runs, a thread gives them back to
//! the system again and again: what is needed is mapped again, from the file. So a buffer of any size takes the memory of
//! the pages that are in use.
//!
//! Invariant: only shared maps of files and private maps that are never written to are named here: their pages have the
//! content of the file, and giving them back loses nothing (madvise(2), MADV_DONTNEED).

use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;

/// Time after which the pages are given back: libzstd unpacks some megabytes meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// The result of `work`, during which the pages of these addresses are given back. Without a further thread, they stay in
/// memory.
pub(crate) fn while_released<T>(addresses: Range<usize>, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let release = move || {
            while wait.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                give_back(&addresses);
            }
        };
        let thread = Builder::new().spawn_scoped(scope, release);
        let result = work();
        drop((done, thread));
        result
    })
}

/// Gives back the pages of a map of a file, see the invariant.
#[allow(unsafe_code, reason = "pages of maps can only be given back by an unsafe function")]
fn give_back(addresses: &Range<usize>) {
    // SAFETY: the addresses are those of one map (`while_released` is called by its owner, which outlives the thread), and
    // its pages have the content of its file: by the invariant of this module the call changes no byte of it. It creates
    // no reference, so that others may read and write the map at the same time.
    let result = unsafe { libc::madvise(addresses.start as *mut libc::c_void, addresses.len(), libc::MADV_DONTNEED) };
    // Where the system refuses, the pages stay: that costs only memory.
    let _ = result;
}
