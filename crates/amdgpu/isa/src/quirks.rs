//! Operands that their fields alone do not give: cases of the operand reader.

use crate::tables::TableEntry;
use hotswap_isa_tables::LINES;

/// Properties of an entry, a bit each; the generator has the same bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperandQuirks(u8);

impl OperandQuirks {
    /// The bit of the cache policy that returns the old value is fixed.
    pub(crate) const RETURNS: u8 = 1;
    /// Some operand must equal another.
    pub(crate) const TIED: u8 = 2;
    /// Modifiers select halves of registers.
    pub(crate) const HALVES: u8 = 4;
    /// Formats give the sizes of matrices.
    pub(crate) const MATRIX_FORMATS: u8 = 8;
    pub(crate) const IMAGE: u8 = 16;
    /// Anything that changes a register.
    pub(crate) const REGISTERS: u8 = Self::HALVES | Self::MATRIX_FORMATS | Self::IMAGE;

    /// Those of an entry.
    #[inline]
    pub(crate) fn of(entry: TableEntry) -> Self {
        Self(LINES.get(usize::from(entry.id())).map_or(0, |line| line.quirks))
    }

    /// Whether it has any of `what`.
    #[inline]
    pub(crate) fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }
}
