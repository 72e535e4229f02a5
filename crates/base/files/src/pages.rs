//! Memory of mapped files, given back while other code works on them.
//!
//! A library that packs or unpacks a buffer as a whole touches all of its pages. While it runs, a thread gives them back to
//! the system again and again: what is needed is mapped again, from the file. So a buffer of any size takes the memory of
//! the pages that are in use.
//!
//! Invariant: only shared maps of files and private maps that are never written to are named here: their pages have the
//! content of the file, and giving them back loses nothing (madvise(2), MADV_DONTNEED).

use memmap2::MmapMut;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;

/// The unit of mapping, on every supported machine (64 KiB on some of AArch64 and POWER).
pub(crate) const PAGE: usize = 64 << 10;

/// Time after which the pages are given back: libzstd unpacks some megabytes meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// The result of `work`, during which the pages of these addresses are given back. Without a further thread,
/// they stay in memory.
pub(crate) fn while_released<T>(addresses: Range<usize>, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let thread = Builder::new().spawn_scoped(scope, move || {
            while wait.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                give_back(&addresses);
            }
        });
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

/// Gives memory to pages that will be written to.
#[allow(unsafe_code, reason = "memory can only be given to pages by an unsafe function")]
pub(crate) fn populate_pages(part: &[u8]) {
    #[cfg(target_os = "linux")]
    // SAFETY: the addresses are those of a part of a map, rounded down to a page by its owner; no byte of it changes.
    // Kernels that do not know the advice return an error: then each page gets memory when it is written to.
    unsafe {
        libc::madvise(part.as_ptr().cast_mut().cast(), part.len(), libc::MADV_POPULATE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = part;
}

/// Gives back the pages of finished parts of a buffer, see [`map_file_over`].
pub(crate) fn give_back_of(part: &[u8]) {
    give_back(&(part.as_ptr() as usize..part.as_ptr() as usize + part.len()));
}

/// Puts a private map of a file in the place of a part of the memory, which has the same bytes as the file has there; it
/// begins at a page. The memory of the part is free then.
#[allow(unsafe_code, reason = "a map at a fixed address can only be made by an unsafe function")]
pub(crate) fn map_file_over(memory: &mut MmapMut, part: Range<usize>, file: &File) -> io::Result<()> {
    assert!(part.start.is_multiple_of(PAGE) && part.end <= memory.len());
    let start = memory[part.clone()].as_mut_ptr();
    // SAFETY: the addresses are those of a part of `memory`, which is borrowed exclusively, so nothing but this map is
    // replaced, and no reference into it exists. Its start is that of a page, since `memory` begins at one; behind its end
    // there is at most the rest of the last page. The bytes stay the same (the caller has written them to the file), and
    // the file lacks a name and other users, so they do not change later. Unmapping all of `memory` unmaps this, too.
    let made = unsafe {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
        libc::mmap(start.cast(), part.len(), protection, flags, file.as_raw_fd(), part.start as libc::off_t)
    };
    if made == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}
