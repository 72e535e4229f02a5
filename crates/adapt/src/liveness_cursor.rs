//! The registers live around offsets of one function.
//!
//! Invariants: the answer is that of [`Liveness::around`]. A block is walked once for all its offsets, as long as these
//! are queried in order.

use crate::unit::Unit;
use hotswap_program::{Live, Liveness};
use std::cell::{OnceCell, RefCell};

/// An offset, and the registers live before and after it.
type Known = (u32, Live, Live);

/// The registers live around some offsets.
pub(crate) struct LivenessCursor<'u, 'a> {
    unit: &'u Unit<'a>,
    number: usize,
    /// The offsets that are likely to be queried, in ascending order.
    places: Vec<u32>,
    liveness: OnceCell<(Liveness, bool)>,
    /// The cached results of one block: before and after its offsets.
    last: RefCell<(usize, Vec<Known>)>,
}

impl<'u, 'a> LivenessCursor<'u, 'a> {
    pub(crate) fn new(unit: &'u Unit<'a>, number: usize, places: Vec<u32>) -> Self {
        Self { unit, number, places, liveness: OnceCell::new(), last: RefCell::new((usize::MAX, Vec::new())) }
    }

    /// The registers live before and after the instruction at an offset; everything if there is none.
    pub(crate) fn around(&self, offset: u32) -> (Live, Live) {
        self.find(offset).unwrap_or((Live::EVERYTHING, Live::EVERYTHING))
    }

    /// Whether an answer has relied on the calling convention.
    pub(crate) fn trusts_convention(&self) -> bool {
        self.liveness.get().is_some_and(|(_, convention)| *convention)
    }

    fn find(&self, offset: u32) -> Option<(Live, Live)> {
        let (liveness, _) = self.liveness.get_or_init(|| self.unit.liveness(self.number));
        let (program, banks) = (&self.unit.program, &self.unit.banks);
        let function = program.functions.get(self.number)?;
        let block = function.block_at(offset)?;
        let mut last = self.last.borrow_mut();
        let find = |known: &[Known]| {
            let found = known.binary_search_by_key(&offset, |(place, ..)| *place).ok()?;
            known.get(found).map(|(_, before, behind)| (*before, *behind))
        };
        if last.0 == block
            && let Some(found) = find(&last.1)
        {
            return Some(found);
        }
        let line = function.block(block);
        let first = self.places.partition_point(|place| *place < line.start);
        let count = self.places[first..].partition_point(|place| *place < line.end);
        let own = &self.places[first..first + count];
        let offsets = if own.binary_search(&offset).is_ok() { own } else { &[offset] };
        *last = (block, liveness.around_all(program, self.unit.summaries(), banks, block, offsets));
        find(&last.1)
    }
}
