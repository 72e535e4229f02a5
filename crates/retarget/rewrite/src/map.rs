//! Maps old places in a section to new ones.
//!
//! A map is a sorted list of changes; everything between two changes keeps its bytes and moves as a whole. A place can
//! mean three things, which differ at an insertion: the *begin* of the following bytes (labels, symbols, targets of
//! branches), the *end* of the preceding bytes (sizes, ends of ranges), and the new position of the instruction's own
//! bytes.
//!
//! Invariants: changes do not overlap; both lists grow; a lookup is a binary search.

/// The kind of a change at a place, in the order of several changes at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InsertOrder {
    /// Bytes that belong to the preceding instruction.
    Tail,
    /// Padding between two functions or before a loop; labels before it stay before it, labels after it stay after it.
    Padding,
    /// Bytes that belong to the following instruction: labels precede them.
    Lead,
    /// Bytes in place of old ones.
    Swap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapChange {
    pub(crate) old: u64,
    /// Old bytes that were removed.
    pub(crate) removed: u64,
    pub(crate) rank: InsertOrder,
    /// Start of the new bytes.
    pub(crate) new: u64,
    /// Size of the new bytes.
    pub(crate) size: u64,
    /// Identifies the content; its meaning is the owner's.
    pub(crate) content: u32,
}

/// Old places of a section to new ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct OffsetRemap {
    changes: Vec<MapChange>,
    /// For each [`STEP`] of old bytes the number of changes before it.
    steps: Vec<u32>,
    /// The new size of the section.
    size: u64,
}

/// Old bytes for which the changes before them are counted, as a power of two: there are few changes between
/// two of these offsets.
const STEP: u32 = 10;

impl OffsetRemap {
    /// A map of changes sorted by place and rank; their new places are set here. `old_size` is the section's.
    pub(crate) fn new(
        mut changes: Vec<MapChange>,
        old_size: u64,
        mut size_of: impl FnMut(&MapChange, u64) -> u64,
    ) -> Self {
        let (mut old, mut new) = (0, 0);
        let mut steps = Vec::with_capacity((old_size >> STEP) as usize + 2);
        for (number, change) in changes.iter_mut().enumerate() {
            while (steps.len() as u64) << STEP <= change.old {
                steps.push(number as u32);
            }
            new += change.old - old;
            change.new = new;
            change.size = size_of(change, new);
            new += change.size;
            old = change.old + change.removed;
        }
        Self { changes, steps, size: new + (old_size - old) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn changes(&self) -> &[MapChange] {
        &self.changes
    }

    /// Whether every byte that was not removed has its old offset.
    pub(crate) fn is_still(&self) -> bool {
        self.changes.iter().all(|change| change.size == change.removed)
    }

    /// The same for changes before an offset.
    pub(crate) fn is_still_to(&self, end: u64) -> bool {
        self.changes.iter().take_while(|change| change.old < end).all(|change| change.size == change.removed)
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.changes.iter().all(|change| change.size == change.removed && change.rank == InsertOrder::Padding)
    }

    /// The number of changes up to a place and rank, inclusive.
    fn up_to(&self, old: u64, rank: InsertOrder) -> usize {
        let step = usize::try_from(old >> STEP).unwrap_or(usize::MAX);
        let all = self.changes.len();
        let first = self.steps.get(step).map_or(all, |first| *first as usize);
        let end = self.steps.get(step.saturating_add(1)).map_or(all, |end| *end as usize);
        first + self.changes[first..end].partition_point(|change| (change.old, change.rank) <= (old, rank))
    }

    /// The new position after that many changes.
    fn position_after(&self, count: usize, old: u64) -> Option<u64> {
        let Some(change) = count.checked_sub(1).and_then(|last| self.changes.get(last)) else { return Some(old) };
        let distance = old.checked_sub(change.old + change.removed)?;
        // Damaged files have places near the end of the address space.
        (change.new + change.size).checked_add(distance)
    }

    /// The new start of the bytes that follow `old`. `None` if they were removed.
    pub(crate) fn new_start(&self, old: u64) -> Option<u64> {
        let count = self.up_to(old, InsertOrder::Padding);
        match self.changes.get(count).filter(|change| change.old == old) {
            // A label before bytes of its own, or before an instruction that is replaced.
            Some(change) => Some(change.new),
            None => self.position_before_padding(count, old),
        }
    }

    /// The same; if the bytes were removed, the position of their replacement.
    pub(crate) fn start_or_replacement(&self, old: u64) -> Option<u64> {
        let swallowed =
            || self.changes.get(self.up_to(old, InsertOrder::Swap).checked_sub(1)?).map(|change| change.new);
        self.new_start(old).or_else(swallowed)
    }

    /// The new end of the bytes that precede `old`.
    pub(crate) fn new_end(&self, old: u64) -> Option<u64> {
        let count = self.up_to(old, InsertOrder::Tail);
        match self.changes.get(count).filter(|change| change.old == old) {
            Some(change) => Some(change.new),
            None => self.position_before_padding(count, old),
        }
    }

    /// The new position of the bytes at `old`. `None` if they were removed.
    pub(crate) fn new_bytes(&self, old: u64) -> Option<u64> {
        self.position_after(self.up_to(old, InsertOrder::Swap), old)
    }

    /// As [`OffsetRemap::behind`]; a place at the start of padding that is replaced stays before it.
    fn position_before_padding(&self, count: usize, old: u64) -> Option<u64> {
        let last = count.checked_sub(1).and_then(|last| self.changes.get(last));
        match last.filter(|change| change.old == old && change.removed > 0) {
            Some(change) => Some(change.new),
            None => self.position_after(count, old),
        }
    }

    /// Whether all bytes of `old..old + size` are still there, next to each other.
    pub(crate) fn is_whole(&self, old: u64, size: u64) -> bool {
        let first = self.up_to(old, InsertOrder::Swap);
        let whole = self.changes.get(first).is_none_or(|change| change.old >= old + size);
        whole && self.new_bytes(old).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(changes: &[(u64, u64, InsertOrder, u64)]) -> OffsetRemap {
        let change = |&(old, removed, rank, size): &(u64, u64, InsertOrder, u64)| MapChange {
            old,
            removed,
            rank,
            new: 0,
            size,
            content: 0,
        };
        OffsetRemap::new(changes.iter().map(change).collect(), 100, |change, _| change.size)
    }

    #[test]
    fn labels_stand_between_tail_and_lead() {
        let map = map(&[(8, 0, InsertOrder::Tail, 4), (8, 0, InsertOrder::Lead, 12)]);
        assert_eq!((map.new_start(8), map.new_end(8), map.new_bytes(8)), (Some(12), Some(12), Some(24)));
        assert_eq!((map.new_start(4), map.new_bytes(4), map.new_start(12)), (Some(4), Some(4), Some(28)));
        assert_eq!(map.size(), 116);
    }

    #[test]
    fn places_far_from_each_other_are_found_as_by_looking_at_all_changes() {
        let spread = [0, 4, 1020, 1024, 1028, 2048, 9000, 9004, 9004, 70_000];
        let change = |old: u64| MapChange { old, removed: 0, rank: InsertOrder::Lead, new: 0, size: 4, content: 0 };
        let map = OffsetRemap::new(spread.map(change).to_vec(), 80_000, |change, _| change.size);
        let places = (0..80_000).step_by(4).chain([u64::MAX - 3]);
        for old in places {
            for rank in [InsertOrder::Tail, InsertOrder::Lead, InsertOrder::Swap] {
                let all = map.changes.iter().filter(|change| (change.old, change.rank) <= (old, rank)).count();
                assert_eq!(map.up_to(old, rank), all, "{old:#x}");
            }
        }
    }

    #[test]
    fn a_place_that_would_leave_the_address_space_is_none() {
        let map = map(&[(8, 0, InsertOrder::Tail, 4)]);
        assert_eq!(
            (map.new_start(u64::MAX - 4), map.new_bytes(u64::MAX), map.new_end(u64::MAX - 3)),
            (Some(u64::MAX), None, None)
        );
    }

    #[test]
    fn padding_parts_an_end_from_a_beginning() {
        let grown =
            map(&[(8, 0, InsertOrder::Tail, 4), (8, 0, InsertOrder::Padding, 20), (8, 0, InsertOrder::Lead, 4)]);
        assert_eq!((grown.new_end(8), grown.new_start(8), grown.new_bytes(8)), (Some(12), Some(32), Some(36)));
        let moved = map(&[(8, 8, InsertOrder::Padding, 20), (16, 0, InsertOrder::Lead, 4)]);
        assert_eq!(
            (moved.new_end(8), moved.new_start(8), moved.new_end(16), moved.new_start(16)),
            (Some(8), Some(8), Some(28), Some(28))
        );
        assert_eq!((moved.new_bytes(16), moved.new_start(12), moved.new_bytes(8)), (Some(32), None, None));
    }

    #[test]
    fn what_is_replaced_keeps_its_label_and_loses_its_inside() {
        let map = map(&[(8, 8, InsertOrder::Swap, 4)]);
        assert_eq!(
            (map.new_start(8), map.new_end(8), map.new_start(16), map.new_end(16)),
            (Some(8), Some(8), Some(12), Some(12))
        );
        assert_eq!((map.new_start(12), map.new_bytes(8)), (None, None));
        assert_eq!(
            (map.start_or_replacement(12), map.start_or_replacement(4), map.start_or_replacement(16)),
            (Some(8), Some(4), Some(12))
        );
        assert!(!map.is_whole(4, 8) && map.is_whole(0, 8) && map.is_whole(16, 80));
    }
}
