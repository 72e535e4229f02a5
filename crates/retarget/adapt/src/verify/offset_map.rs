//! The map from old to new offsets of a section, as the check of its code finds it.

use std::ops::Range;

/// An old offset and the new offset that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OffsetStep {
    pub(crate) old: u32,
    pub(crate) new: u32,
}

/// The new code of a planned place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NewPlace {
    /// The old offset of the place.
    pub(crate) old: u32,
    /// New offsets of the code.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The map from old to new offsets.
#[derive(Debug, Default)]
pub(crate) struct CodeOffsetMap {
    /// Old offsets, ascending, and the new offset of the code there. Up to the next step both advance alike.
    pub(crate) steps: Vec<OffsetStep>,
    /// For each [`GRAIN`] of old code the number of steps before it; empty while steps are being added.
    pub(super) index: Vec<u32>,
    /// Instructions with new ones inserted before them, and their own new offsets; ascending.
    pub(super) moved: Vec<OffsetStep>,
    /// The places of the plan, ascending.
    pub(super) places: Vec<NewPlace>,
    /// Start and end of new code that was checked, and the matrix instructions in it; ascending.
    pub(super) covered: Vec<[u32; 2]>,
    pub(super) matrices: Vec<u32>,
}

/// Bytes of old code, as a power of two, with few steps in them.
const GRAIN: u32 = 12;

impl CodeOffsetMap {
    /// The new start of the code at an old offset: the target of labels.
    pub(crate) fn new_start(&self, old: u32) -> Option<u32> {
        let grain = (old >> GRAIN) as usize;
        let first = self.index.get(grain).map_or(0, |first| *first as usize);
        let end = self.index.get(grain + 1).map_or(self.steps.len(), |end| *end as usize);
        let next = first + self.steps[first..end].partition_point(|step| step.old <= old);
        let step = self.steps.get(next.checked_sub(1)?)?;
        step.new.checked_add(old - step.old)
    }

    /// The new offset of an old instruction itself.
    pub(super) fn new_offset(&self, old: u32) -> Option<u32> {
        let found = self.moved.binary_search_by_key(&old, |step| step.old);
        found.ok().map(|found| self.moved[found].new).or_else(|| self.new_start(old))
    }

    /// Builds the index that makes lookups cheap, once all steps are added.
    pub(super) fn build_index(&mut self) {
        let grains = self.steps.last().map_or(0, |step| (step.old >> GRAIN) + 1);
        self.index.reserve_exact(grains as usize + 1);
        let mut number = 0;
        for grain in 0..=grains {
            number += self.steps[number..].iter().take_while(|step| step.old >> GRAIN < grain).count();
            self.index.push(number as u32);
        }
    }

    /// The planned places in a range of old offsets.
    pub(crate) fn places_in(&self, range: Range<u32>) -> &[NewPlace] {
        let first = self.places.partition_point(|place| place.old < range.start);
        let rest = &self.places[first..];
        &rest[..rest.partition_point(|place| place.old < range.end)]
    }

    /// Whether new code contains a matrix instruction; `None` if parts of it were not checked.
    pub(super) fn has_matrix(&self, start: u32, end: u32) -> Option<bool> {
        let next = self.covered.partition_point(|[from, _]| *from <= start);
        let [_, to] = self.covered.get(next.checked_sub(1)?)?;
        let first = self.matrices.partition_point(|at| *at < start);
        (end <= *to).then(|| self.matrices.get(first).is_some_and(|at| *at < end))
    }

    /// Steps remain in the order in which they were added.
    pub(super) fn sort(&mut self) {
        self.moved.sort_unstable();
        self.places.sort_unstable();
        self.covered.sort_unstable();
        self.matrices.sort_unstable();
    }
}
