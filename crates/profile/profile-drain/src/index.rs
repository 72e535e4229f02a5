//! Places of a list by hash, so that the time of a drain grows with the number of code objects and not with its square.
//!
//! Invariant: at least half of the slots are free, so that a search ends. Nothing is removed; an index whose places are
//! out of date is cleared and filled again.

use crate::memory::List;
use crate::raw::{FNV_START, fnv};

/// A hash, and a place plus one; zero is free.
#[derive(Clone, Copy)]
struct IndexSlot {
    hash: u64,
    place: usize,
}

/// Places of entries by their hashes.
pub struct PlaceIndex {
    slots: List<IndexSlot>,
    used: usize,
}

impl PlaceIndex {
    pub const EMPTY: Self = Self { slots: List::EMPTY, used: 0 };

    /// The first place of this hash that is the one.
    pub fn find(&self, hash: u64, is_it: &dyn Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize;
        loop {
            let slot = self.slots.get(at & mask)?;
            let place = slot.place.checked_sub(1)?;
            if slot.hash == hash && is_it(place) {
                return Some(place);
            }
            at = at.wrapping_add(1);
        }
    }

    /// Adds a place; `None` without memory.
    pub fn add(&mut self, hash: u64, place: usize) -> Option<()> {
        if self.used.wrapping_mul(2) >= self.slots.len() {
            self.grow()?;
        }
        self.put(IndexSlot { hash, place: place.wrapping_add(1) })
    }

    /// Removes all places and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.place = 0);
        self.used = 0;
    }

    fn put(&mut self, new: IndexSlot) -> Option<()> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = new.hash as usize;
        while self.slots.get(at & mask)?.place != 0 {
            at = at.wrapping_add(1);
        }
        *self.slots.get_mut(at & mask)? = new;
        self.used += 1;
        Some(())
    }

    fn grow(&mut self) -> Option<()> {
        let mut larger = Self::EMPTY;
        for _ in 0..self.slots.len().checked_mul(2)?.max(16) {
            larger.slots.push(IndexSlot { hash: 0, place: 0 })?;
        }
        for slot in self.slots.iter().filter(|slot| slot.place != 0) {
            larger.put(*slot)?;
        }
        *self = larger;
        Some(())
    }
}

/// The hash of two numbers.
pub fn hash_of(first: u64, second: u64) -> u64 {
    fnv(fnv(FNV_START, &first.to_le_bytes()), &second.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::{PlaceIndex, hash_of};

    #[test]
    fn every_place_is_found_and_no_other() {
        let mut index = PlaceIndex::EMPTY;
        assert_eq!(index.find(0, &|_| true), None);
        // Three places of each hash, and hashes that begin at the same slot.
        let hash = |place: usize| (place as u64 / 3) << 20;
        for place in 0..1000 {
            assert!(index.add(hash(place), place).is_some());
        }
        for place in 0..1000 {
            assert_eq!(index.find(hash(place), &|found| found == place), Some(place));
            assert_eq!(index.find(hash(place), &|_| true), Some(place / 3 * 3));
        }
        assert_eq!(index.find(hash(1002), &|_| true), None);
        index.clear();
        assert_eq!(index.find(0, &|_| true), None);
        assert!(index.add(0, 7).is_some() && index.find(0, &|_| true) == Some(7));
    }

    #[test]
    fn both_numbers_count() {
        assert!(hash_of(1, 2) != hash_of(2, 1) && hash_of(1, 2) != hash_of(1, 3));
    }
}
