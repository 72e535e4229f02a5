//! Bank modes before offsets of one function.
//!
//! Invariants: the answer is that of [`BankMap::before`]. A block is walked once for all its offsets, as long as these
//! are queried in order.

use crate::unit::Unit;
use hotswap_isa::bank::VgprBanks;
use hotswap_program::BankMap;
use std::cell::Cell;

/// The bank mode along a block.
pub(crate) struct BankCursor<'u, 'a> {
    unit: &'u Unit<'a>,
    number: usize,
    /// A block, an offset in it, and the mode there.
    last: Cell<(usize, u32, VgprBanks)>,
}

impl<'u, 'a> BankCursor<'u, 'a> {
    pub(crate) fn new(unit: &'u Unit<'a>, number: usize) -> Self {
        Self { unit, number, last: Cell::new((usize::MAX, 0, VgprBanks::UNKNOWN)) }
    }

    /// The mode before an instruction, or `None` if there is none.
    pub(crate) fn before(&self, offset: u32) -> Option<VgprBanks> {
        let (program, function) = (&self.unit.program, &self.unit.program.functions[self.number]);
        if !(function.start..function.end).contains(&offset) {
            return self.unit.banks.before(program, offset);
        }
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let (mut at, mut banks) = match self.last.get() {
            (known, at, banks) if known == block && at <= offset => (at, banks),
            _ => (function.block(block).start, self.unit.banks.at_block(self.number, block)),
        };
        if at < offset {
            (at, banks) = (offset, BankMap::along(program, function, at..offset, banks));
        }
        self.last.set((block, at, banks));
        Some(banks)
    }
}
