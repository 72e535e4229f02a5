//! The allocator, and its settings for commands that make gigabytes of small lists.
//!
//! Absent on purpose: these settings for other commands, whose memory is a few large buffers that are better returned.
#![allow(unsafe_code, reason = "options of the allocator and of the kernel, each with its proof")]

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, which the bindings do not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// For a rewrite of 200 MB of code, whose phases take turns with a gigabyte: a fifth less time, and a tenth more memory.
///
/// - Freed memory is kept. Returned to the kernel, its pages are cleared again for the next phase.
/// - No huge pages: they are cleared as a whole by the thread that touches them first. Child processes lack them
///   either; commands that call this start none.
pub(crate) fn keep_memory_in_small_pages() {
    // SAFETY: stores a number in a table of the allocator, which any thread may do at any time; the number of the option
    // is in the table's range.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
    // SAFETY: a flag of this process. Kernels that do not know it return an error, which changes nothing.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0)
    };
}

/// For libraries whose containers are made one after the other: a third less memory. Freed memory is returned at once, so
/// that the large buffers of one container are not kept beside those of the next one, which have other sizes. (Kept for 5 ms,
/// rocBLAS for six GPUs takes 0.2 s of 10 less, and 10 to 50 MB more.)
///
/// Huge pages stay, where the system has them: half a second less, for 20 to 30 MB.
pub(crate) fn return_memory() {
    // SAFETY: as above.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is that of the option: it and its neighbours have the defaults that mimalloc states.
    #[test]
    fn the_option_is_the_purge_delay() {
        // SAFETY: reads numbers of a table, in its range.
        let get = |option| unsafe { libmimalloc_sys::mi_option_get(option) };
        assert_eq!([-1, 0, 1].map(|step| get(PURGE_DELAY + step)), [1, 1000, 0]);
        keep_memory_in_small_pages();
        assert_eq!(get(PURGE_DELAY), -1);
        return_memory();
        assert_eq!(get(PURGE_DELAY), 0);
        #[cfg(target_os = "linux")]
        // SAFETY: reads a flag of this process.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }, 1);
    }
}
