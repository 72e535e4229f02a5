//! Memory of libc whose allocation may fail: bytes and lists, where Rust's own containers would panic or abort.
//!
//! Invariants: a pointer is null only with a length of zero; elements are initialised up to the length.
//! Both stay valid when the image that made them is unloaded, because only libc owns the memory.
#![allow(unsafe_code)] // allocation, each place with its proof

use crate::bytes::put;
use crate::libc;
use core::mem::size_of;
use core::ops::{Deref, DerefMut};
use core::ptr;

/// Bytes of a length that is known when they are made; zero at first.
pub struct Bytes {
    start: *mut u8,
    length: usize,
}

impl Bytes {
    pub const EMPTY: Self = Self { start: ptr::null_mut(), length: 0 };

    /// Zeros; `None` without memory.
    pub fn zeroed(length: usize) -> Option<Self> {
        if length == 0 {
            return Some(Self::EMPTY);
        }
        // SAFETY: calloc may be called with any size; the result is null or `length` bytes of zeros.
        let start = unsafe { libc::calloc(length, 1) }.cast::<u8>();
        (!start.is_null()).then_some(Self { start, length })
    }

    /// A copy of these bytes.
    pub fn copy(from: &[u8]) -> Option<Self> {
        let mut made = Self::zeroed(from.len())?;
        put(&mut made, 0, from)?;
        Some(made)
    }

    /// Discards everything after `length`.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: `start` is an allocation of at least `length` bytes, all initialised, and lives as long as self.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.start.is_null() {
            return &mut [];
        }
        // SAFETY: as above, and `&mut self` is the only access to the bytes.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: `start` came from calloc or is null, and nothing else frees it.
        unsafe { libc::free(self.start.cast()) }
    }
}

/// A list that grows as long as there is memory.
pub struct List<T> {
    start: *mut T,
    length: usize,
    capacity: usize,
}

impl<T> List<T> {
    pub const EMPTY: Self = Self { start: ptr::null_mut(), length: 0, capacity: 0 };

    /// Adds an element; `None`, with the element dropped, without memory.
    pub fn push(&mut self, element: T) -> Option<&mut T> {
        const { assert!(size_of::<T>() > 0) };
        if self.length == self.capacity {
            self.grow()?;
        }
        // SAFETY: `grow` made room for `capacity > length` elements, so the place is inside the allocation.
        let place = unsafe { self.start.add(self.length) };
        // SAFETY: the place is inside, aligned (libc aligns for every type here) and holds nothing to drop.
        unsafe { place.write(element) };
        self.length += 1;
        // SAFETY: just written; the borrow of self excludes other accesses.
        Some(unsafe { &mut *place })
    }

    fn grow(&mut self) -> Option<()> {
        const { assert!(align_of::<T>() <= 16) };
        let capacity = self.capacity.checked_mul(2)?.max(8);
        let size = capacity.checked_mul(size_of::<T>())?;
        // SAFETY: `start` is null or came from this function, and `length` elements of it are initialised, which fit.
        let start = unsafe { larger(self.start.cast(), self.length.wrapping_mul(size_of::<T>()), size) }.cast::<T>();
        if start.is_null() {
            return None;
        }
        (self.start, self.capacity) = (start, capacity);
        Some(())
    }

    /// Removes an element and returns it; the last one takes its place.
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        let last = self.length.checked_sub(1)?;
        if index > last {
            return None;
        }
        // SAFETY: `index <= last < length`, both initialised; afterwards the place after the new length is unused.
        unsafe {
            let taken = self.start.add(index).read();
            ptr::copy(self.start.add(last), self.start.add(index), 1);
            self.length = last;
            Some(taken)
        }
    }
}

/// A larger place with the old one's content, which is freed; null, with nothing changed, without memory. One
/// function for the lists of all types.
///
/// # Safety
/// `start` is null or came from this function, and its first `used` bytes, at most `size`, are initialised.
#[inline(never)]
unsafe fn larger(start: *mut u8, used: usize, size: usize) -> *mut u8 {
    // SAFETY: calloc may be called with any size.
    let new = unsafe { libc::calloc(size, 1) }.cast::<u8>();
    if !new.is_null() && !start.is_null() {
        // SAFETY: the used bytes fit into the new place. They are moved, and the old place is freed without dropping
        // anything, so each element has one owner.
        unsafe {
            ptr::copy_nonoverlapping(start, new, used);
            libc::free(start.cast());
        }
    }
    new
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: `length` elements are initialised, and live as long as self.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.start.is_null() {
            return &mut [];
        }
        // SAFETY: as above, and `&mut self` is the only access to the elements.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        while self.swap_remove(self.length.wrapping_sub(1)).is_some() {}
        // SAFETY: `start` came from calloc or is null, and no element is left in it.
        unsafe { libc::free(self.start.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn lists_hold_and_drop_what_they_are_given() {
        let counted = Rc::new(());
        let mut list = List::EMPTY;
        for _ in 0..100 {
            assert!(list.push(counted.clone()).is_some());
        }
        assert_eq!((list.len(), Rc::strong_count(&counted)), (100, 101));
        assert!(list.swap_remove(100).is_none());
        assert!(list.swap_remove(3).is_some());
        assert_eq!((list.len(), Rc::strong_count(&counted)), (99, 100));
        drop(list);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        assert!(Bytes::zeroed(usize::MAX / 2).is_none());
        assert!(Bytes::zeroed(0).is_some_and(|bytes| bytes.is_empty()));
        let mut bytes = Bytes::copy(b"abc").unwrap();
        assert!(put(&mut bytes, 2, b"xy").is_none() && put(&mut bytes, usize::MAX, b"x").is_none());
        assert!(put(&mut bytes, 1, b"xy").is_some());
        assert_eq!(&*bytes, b"axy");
        bytes.truncate(1);
        assert_eq!(&*bytes, b"a");
    }
}
