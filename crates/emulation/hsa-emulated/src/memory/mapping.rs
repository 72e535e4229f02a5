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

/// Whether the system has pages for all of a range.
pub(crate) fn is_mapped(start: usize, size: usize) -> bool {
    /// Pages of one question.
    const MOST: usize = 4096;
    let (first, end) = (start & !(PAGE - 1), start + size);
    let mut states = [0; MOST];
    (first..end).step_by(MOST * PAGE).all(|at| {
        let length = (end - at).min(MOST * PAGE);
        // SAFETY: the list has room for a byte of each page; the range is only asked for.
        unsafe { libc::mincore(at as *mut _, length, states.as_mut_ptr()) == 0 }
    })
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // SAFETY: the pages of this mapping, with those around them; nothing refers to them any more.
        unsafe { libc::munmap(self.whole.0 as *mut _, self.whole.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_mapped_until_they_are_freed() {
        let pages = PageMapping::new(3 * PAGE).unwrap();
        let start = pages.start;
        assert!(is_mapped(start + 7, 2 * PAGE) && is_mapped(start, 1));
        drop(pages);
        assert!(!is_mapped(start, 1) && !is_mapped(start + 7, 2 * PAGE));
        assert!(!is_mapped(0, 1));
    }
}
