//! Pages of the system.
#![allow(unsafe_code)] // mmap and munmap

use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

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

    /// Writes a word to all usable bytes.
    pub(crate) fn fill(&self, word: u32) {
        // SAFETY: the usable pages are mapped for reading and writing, begin at a page, and nothing else knows them yet.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u32, self.size / 4) }.fill(word);
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

/// Addresses of freed pages, the oldest first. They are not used again for a while: an access to them is a fault then, not a read or
/// write of whatever came after.
static QUARANTINE: Mutex<Quarantine> = Mutex::new(Quarantine { ranges: VecDeque::new(), bytes: 0 });

struct Quarantine {
    ranges: VecDeque<Range<usize>>,
    bytes: usize,
}

impl Quarantine {
    /// Addresses, which cost nothing but entries in the system's tables.
    const MOST_BYTES: usize = 64 << 30;
    const MOST_RANGES: usize = 4096;

    fn add(&mut self, range: Range<usize>) {
        self.bytes += range.len();
        self.ranges.push_back(range);
        while self.bytes > Self::MOST_BYTES || self.ranges.len() > Self::MOST_RANGES {
            let Some(oldest) = self.ranges.pop_front() else { break };
            self.bytes -= oldest.len();
            unmap_pages(&oldest);
        }
    }
}

fn unmap_pages(range: &Range<usize>) {
    // SAFETY: the pages of a mapping of this module that was dropped; nothing refers to them any more.
    unsafe { libc::munmap(range.start as *mut _, range.len()) };
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        let range = self.whole.0..self.whole.0 + self.whole.1;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the pages of this mapping, with those around them, to which nothing refers any more; their memory goes back to
        // the system, their addresses stay taken.
        let kept = unsafe { libc::mmap(range.start as *mut _, range.len(), libc::PROT_NONE, flags, -1, 0) };
        match kept {
            libc::MAP_FAILED => unmap_pages(&range),
            _ => QUARANTINE.lock().unwrap_or_else(PoisonError::into_inner).add(range),
        }
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
        // The addresses of freed pages are kept.
        drop(pages);
        assert!(is_mapped(start, PAGE) && !is_mapped(0, 1));
        for _ in 0..64 {
            let other = PageMapping::new(3 * PAGE).unwrap();
            other.fill(7);
            assert_ne!(other.start, start);
        }
    }
}
