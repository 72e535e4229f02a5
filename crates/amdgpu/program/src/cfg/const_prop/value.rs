//! Abstract values of 32 bits.

use crate::place::ProgramByte;

/// A value of a scalar register or of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackedValue {
    Unknown,
    /// The value of a scalar register at the function's entry, by its number.
    Entry(u8),
    Number(u32),
    /// The low half of an address, and the offset at which the program counter was read for it.
    Low(ProgramByte, u32),
    /// The high half of such an address.
    High(ProgramByte, u32),
}

impl TrackedValue {
    /// Merges the values of two paths.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Low(a, pc), Self::Low(b, _)) if a == b => Self::Low(a, pc),
            (Self::High(a, pc), Self::High(b, _)) if a == b => Self::High(a, pc),
            (a, b) if a == b => a,
            _ => Self::Unknown,
        }
    }

    /// The address whose halves these are.
    pub(super) fn address_of_halves(low: Self, high: Self) -> Option<ProgramByte> {
        match (low, high) {
            (Self::Low(low, _), Self::High(high, _)) if low.base == high.base && low.at as u32 == high.at as u32 => {
                Some(high)
            }
            _ => None,
        }
    }

    /// The address of which this is a half.
    pub(super) fn address_of_half(self) -> Option<ProgramByte> {
        match self {
            Self::Low(place, _) | Self::High(place, _) => Some(place),
            _ => None,
        }
    }
}

/// The known value of SCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carry {
    Unknown,
    /// The carry of an addition of numbers, or the result of comparing two.
    Bit(bool),
    /// The carry, or borrow, out of the low half of an address: before, after, and its offset.
    Of {
        before: ProgramByte,
        after: ProgramByte,
        at: u32,
    },
}

impl Carry {
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            _ => Self::Unknown,
        }
    }
}
