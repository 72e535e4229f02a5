//! An effect in 32 bits: the form that tables hold and that fast readers get.
//!
//! Invariants: the part known from a place and the part known from its number do not share bits, so one OR combines
//! them. A register count of 0 means that the register does not exist, whatever the other bits are.

use super::RegisterEffect;
use crate::bank::BankRole;
use crate::reg::{Reg, RegFile, Special, VgprHalf};
use crate::regset;

/// An [`Effect`] in 32 bits, or none: where an instruction names a constant or NULL, the register does not exist.
///
/// Adding the register of an empty effect to a set leaves the set unchanged, so callers need no check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectBits(u32);

/// Lowest bit and number of bits of each part.
const INDEX: (u32, u32) = (0, 8);
const COUNT: (u32, u32) = (8, 6);
const FILE: (u32, u32) = (14, 3);
const HALF: (u32, u32) = (17, 2);
const WRITTEN: u32 = 19;
const KEPT: u32 = 20;
const MASKED: u32 = 21;
const ROLE: (u32, u32) = (22, 3);
const SLOT: (u32, u32) = (25, 5);

/// The number of an operand that means none.
pub(super) const NO_SLOT: u8 = 31;

impl EffectBits {
    pub const NONE: Self = Self(0);

    /// The number of registers alone, for places whose numbers are always registers of one file.
    pub(super) const fn register_count(dwords: u8) -> Self {
        Self::NONE.with_field(COUNT, dwords)
    }

    /// The part that the number of a register determines.
    pub(super) const fn of_register(reg: Reg) -> Self {
        let half = match reg.half {
            None => 0,
            Some(half) => 1 + half as u8,
        };
        Self(reg.index as u32 & 255)
            .with_field(COUNT, reg.count)
            .with_field(FILE, reg.file as u8)
            .with_field(HALF, half)
    }

    /// The part that a place determines.
    pub(super) const fn of_place(written: bool, kept: bool, masked: bool, role: u8, slot: u8) -> Self {
        let marks = (written as u32) << WRITTEN | (kept as u32) << KEPT | (masked as u32) << MASKED;
        Self(marks).with_field(ROLE, role).with_field(SLOT, slot)
    }

    const fn with_field(self, (at, width): (u32, u32), value: u8) -> Self {
        Self(self.0 | (value as u32 & ((1 << width) - 1)) << at)
    }

    /// Register number `index` of the file, of an effect of the first one.
    pub(super) const fn with_index(self, index: u8) -> Self {
        Self(self.0 | index as u32)
    }

    #[inline(always)]
    pub(super) const fn combined_with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same for another register.
    pub(super) const fn with_register(self, reg: Reg) -> Self {
        const PLACE: u32 = u32::MAX << WRITTEN;
        Self(self.0 & PLACE).combined_with(Self::of_register(reg))
    }

    /// The same, but something of the old value is left.
    pub(super) const fn with_kept(self) -> Self {
        Self(self.0 | 1 << KEPT)
    }

    /// The same register with the opposite access, which no operand states.
    pub(super) const fn with_opposite_access(self, written: bool) -> Self {
        let Self(bits) = self;
        let own = bits & !(1 << WRITTEN | 1 << KEPT | 1 << MASKED);
        Self(own | (written as u32) << WRITTEN | (written as u32) << KEPT).with_field(SLOT, NO_SLOT)
    }

    #[inline(always)]
    const fn field_value(self, (at, width): (u32, u32)) -> u32 {
        self.0 >> at & ((1 << width) - 1)
    }

    #[inline(always)]
    const fn has_bit(self, at: u32) -> bool {
        self.0 >> at & 1 != 0
    }

    /// All bits, to be compared and counted only.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether it is without a register.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.field_value(COUNT) == 0
    }

    /// The register as the encoding names it; without a register, its `count` is 0.
    #[inline]
    #[must_use]
    pub const fn reg(self) -> Reg {
        let file = match self.field_value(FILE) {
            0 => RegFile::Vgpr,
            1 => RegFile::Agpr,
            2 => RegFile::Sgpr,
            3 => RegFile::Ttmp,
            _ => RegFile::Special,
        };
        let half = match self.field_value(HALF) {
            1 => Some(VgprHalf::Low),
            2 => Some(VgprHalf::High),
            _ => None,
        };
        Reg { file, index: self.field_value(INDEX) as u16, count: self.field_value(COUNT) as u8, half }
    }

    /// The word of [`RegSet::words`](crate::regset::RegSet::words) in which the register begins, its bits there, and its
    /// bits in the next word; no bits without a register. The same as for [`EffectBits::reg`], quicker.
    #[inline(always)]
    #[must_use]
    pub fn set_bits(self) -> (usize, u64, u64) {
        let regset::FileBits { start, end } = regset::FILE_BITS[self.field_value(FILE) as usize];
        if end == 0 {
            return self.reg().set_bits();
        }
        let first = u32::from(start) + self.field_value(INDEX);
        let count = self.field_value(COUNT).min(u32::from(end).saturating_sub(first));
        let mask = (1u64 << count) - 1;
        let shift = first % 64;
        ((first / 64) as usize, mask << shift, mask >> 1 >> (63 - shift))
    }

    /// A scalar register, or VCC or a half of it.
    #[inline(always)]
    #[must_use]
    pub const fn is_scalar(self) -> bool {
        let (file, index) = (self.field_value(FILE), self.field_value(INDEX));
        file == RegFile::Sgpr as u32 || self.is_special() && index <= Special::VccHi as u32
    }

    /// A register with a name of its own.
    #[inline]
    #[must_use]
    pub const fn is_special(self) -> bool {
        self.field_value(FILE) >= RegFile::Special as u32
    }

    /// Written rather than read.
    #[inline]
    #[must_use]
    pub const fn written(self) -> bool {
        self.has_bit(WRITTEN)
    }

    /// A vector or accumulation register.
    #[inline]
    #[must_use]
    pub const fn is_vector(self) -> bool {
        self.field_value(FILE) <= RegFile::Agpr as u32
    }

    #[inline]
    #[must_use]
    pub const fn partial(self) -> bool {
        self.has_bit(KEPT) || self.written() && self.field_value(HALF) != 0
    }

    #[inline]
    #[must_use]
    pub const fn masked(self) -> bool {
        self.has_bit(MASKED) && self.is_vector()
    }

    #[inline]
    #[must_use]
    pub const fn role(self) -> Option<BankRole> {
        match self.field_value(ROLE) {
            1 => Some(BankRole::Source0),
            2 => Some(BankRole::Source1),
            3 => Some(BankRole::Source2),
            4 => Some(BankRole::Destination),
            _ => None,
        }
    }

    #[inline]
    #[must_use]
    pub const fn slot(self) -> Option<u8> {
        let slot = self.field_value(SLOT) as u8;
        if slot == NO_SLOT { None } else { Some(slot) }
    }

    /// The effect as a struct; `None` without a register.
    #[inline]
    #[must_use]
    pub const fn effect(self) -> Option<RegisterEffect> {
        if self.is_none() {
            return None;
        }
        Some(RegisterEffect {
            reg: self.reg(),
            written: self.written(),
            role: self.role(),
            partial: self.partial(),
            masked: self.masked(),
            slot: self.slot(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_those_of_the_register() {
        let files = [(RegFile::Vgpr, 256), (RegFile::Agpr, 256), (RegFile::Sgpr, 108), (RegFile::Ttmp, 16)];
        for (file, end) in files.into_iter().chain([(RegFile::Special, Special::ALL.len() as u16)]) {
            for index in 0..end {
                for count in [0, 1, 2, 3, 4, 5, 8, 12, 16, 31, 32] {
                    let effect = EffectBits::of_register(Reg { file, index, count, half: None });
                    let (word, low, high) = effect.reg().set_bits();
                    let (quick, quick_low, quick_high) = effect.set_bits();
                    assert_eq!((low, high), (quick_low, quick_high), "{file:?} {index} {count}");
                    assert!(word == quick || low | high == 0);
                }
            }
        }
    }
}
