//! Pages of the system.
#![allow(unsafe_code)] // mmap and munmap

use std::ptr::null_mut;

/// Bytes of a page, and the granule of allocations.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a large page. Allocations of that size or more begin at a multiple of it: the device library's allocator finds
/// its blocks that way.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// Pages that are mapped, between some that are not: an access beyond the end never reaches another allocation.
#[derive(Debug)]
pub(crate) struct PageMapping {
    /// The first usable byte.
    pub(crate) start: usize,
    /// Bytes that may be used.
    pub(crate) size: usize,
    /// Everything that is mapped: start and bytes.
    whole: (usize, usize),
}

impl PageMapping {
    /// Maps zeroed pages, which take memory when they are written. `None` where the system lacks space.
    pub(crate) fn new(size: usize) -> Option<Self> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let alignment = if size < LARGE_PAGE { PAGE } else { LARGE_PAGE };
        let whole = size.checked_add(PAGE + alignment)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new pages at an address that the system chooses.
        let base = unsafe { libc::mmap(null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let start = (base as usize + PAGE).next_multiple_of(alignment);
        let mapping = Self { start, size, whole: (base as usize, whole) };
        // SAFETY: the pages were mapped above.
        let opened = unsafe { libc::mprotect(mapping.start as *mut _, size, libc::PROT_READ | libc::PROT_WRITE) };
        // `mapping` frees the pages where they could not be opened.
        (opened == 0).then_some(mapping)
    }

    /// Keeps the pages until the process ends.
    pub(crate) fn leak(self) -> usize {
        let start = self.start;
        std::mem::forget(self);
        start
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // SAFETY: the pages of this mapping, with those around them; nothing refers to them any more.
        unsafe { libc::munmap(self.whole.0 as *mut _, self.whole.1) };
    }
}
