//! A decoded instruction: its words and its table entry.
//!
//! Invariants: words beyond the length are 0. A literal that follows the encoding is among the words. Nothing else is
//! stored, so changing a field is changing a word.

use crate::tables::{Class, Flag, Name, Piece, Slot, TableEntry};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Inst {
    words: [u32; 5],
    entry: u16,
    len: u8,
    flags: u8,
}

/// For each length in dwords the bits of the first 16 bytes that belong to the instruction.
const KEEP: [[u64; 2]; 8] = {
    const ALL: u64 = u64::MAX;
    const ONE: u64 = 0xffff_ffff;
    [[0, 0], [ONE, 0], [ALL, 0], [ALL, ONE], [ALL, ALL], [ALL, ALL], [ALL, ALL], [ALL, ALL]]
};

impl Inst {
    /// A literal of 32 bits follows the encoding.
    pub(crate) const LITERAL32: u8 = 1;
    /// A literal of 64 bits follows the encoding.
    pub(crate) const LITERAL64: u8 = 2;
    /// A literal of 64 bits begins at byte 4, inside the encoding (gfx12.5: a 12-byte form whose source requests it).
    pub(crate) const LITERAL_INSIDE: u8 = 4;
    /// The literal is a field of the encoding.
    pub(crate) const LITERAL_FIELD: u8 = 8;

    #[inline]
    pub(crate) const fn from_parts(words: [u32; 5], entry: u16, len: u8, flags: u8) -> Self {
        Self { words, entry, len, flags }
    }

    /// From 20 bytes, of which the first `len` belong to it.
    #[inline]
    pub(crate) fn whole(low: u64, high: u64, last: u32, entry: u16, len: u8, flags: u8) -> Self {
        let [low_mask, high_mask] = KEEP[usize::from((len / 4) & 7)];
        let (low, high) = (low & low_mask, high & high_mask);
        let last = if len > 16 { last } else { 0 };
        let words = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32, last];
        Self { words, entry, len, flags }
    }

    /// Length in bytes, literal included.
    #[expect(clippy::len_without_is_empty, reason = "no instruction is empty")]
    #[inline]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Its words; those beyond the length are 0.
    #[inline]
    pub const fn words(&self) -> &[u32; 5] {
        &self.words
    }

    /// Its bytes; only the first [`Inst::len`] belong to it.
    pub fn bytes(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(self.words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[inline]
    pub const fn entry(&self) -> TableEntry {
        TableEntry::new(self.entry)
    }

    /// The mnemonic without encoding suffix.
    pub fn mnemonic(&self) -> &'static str {
        self.entry().mnemonic()
    }

    pub fn class(&self) -> Option<Class> {
        self.entry().class()
    }

    /// Whether it has `flag`.
    #[inline]
    pub fn is(&self, flag: Flag) -> bool {
        self.entry().is(flag)
    }

    /// The raw value of the field or operand `name`.
    pub fn raw(&self, name: Name) -> Option<u64> {
        let slot = self.entry().slot(name).map(Slot::pieces).filter(|pieces| !pieces.is_empty());
        slot.or_else(|| self.entry().fields().find(|field| field.name == name).map(|field| field.pieces))
            .map(|pieces| self.gather(pieces))
    }

    /// The raw value of an operand of this instruction; 0 if the encoding does not hold it.
    #[inline]
    pub fn raw_slot(&self, slot: &Slot) -> u64 {
        self.gather(slot.pieces())
    }

    /// The value that `pieces` form.
    #[inline]
    pub fn gather(&self, pieces: &[Piece]) -> u64 {
        gather(&self.words, pieces)
    }

    /// The literal of sources with value 255 or 254; it may be a field of the encoding (`v_fmaak_f32`).
    pub fn literal(&self) -> Option<u64> {
        let end = usize::from(self.len) / 4;
        if self.flags & Self::LITERAL_FIELD != 0 {
            return self.literal_field();
        }
        if self.flags & Self::LITERAL_INSIDE != 0 {
            return Some(word_or_zero(1, self) | word_or_zero(2, self) << 32);
        }
        if self.flags & Self::LITERAL64 != 0 {
            return Some(word_or_zero(end.wrapping_sub(2), self) | word_or_zero(end.wrapping_sub(1), self) << 32);
        }
        (self.flags & Self::LITERAL32 != 0).then(|| word_or_zero(end.wrapping_sub(1), self))
    }

    /// The literal, if it has 32 bits and follows the encoding.
    #[inline]
    pub(crate) fn following_literal(&self) -> Option<u32> {
        let number = usize::from(self.len / 4).wrapping_sub(1);
        self.words.get(number).copied().filter(|_| self.flags == Self::LITERAL32)
    }

    fn literal_field(&self) -> Option<u64> {
        self.entry()
            .slots()
            .iter()
            .filter(is_literal_slot)
            .find(|slot| !slot.pieces().is_empty())
            .map(|slot| self.raw_slot(slot))
    }

    /// Whether the literal has 64 bits.
    pub fn literal_is_64(&self) -> bool {
        self.flags & (Self::LITERAL64 | Self::LITERAL_INSIDE) != 0
    }
}

fn word_or_zero(number: usize, inst: &Inst) -> u64 {
    inst.words.get(number).copied().map(u64::from).unwrap_or(0)
}

fn is_literal_slot(slot: &&Slot) -> bool {
    matches!(slot.name.as_str(), "imm" | "simm32" | "simm64" | "immX" | "immY")
}

impl core::fmt::Debug for Inst {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let words = self.words.get(..usize::from(self.len) / 4).unwrap_or(&self.words);
        write!(formatter, "Inst({} {words:08x?})", self.mnemonic())
    }
}

/// The value that `pieces` of `words` form.
#[inline]
pub(crate) fn gather(words: &[u32; 5], pieces: &[Piece]) -> u64 {
    pieces.iter().fold(0, |value, piece| value | extract(words, piece.at, piece.width) << (piece.from & 63))
}

/// Bits `at` to `at + width`; those beyond the words read as 0.
#[inline]
pub(crate) fn extract(words: &[u32; 5], at: u8, width: u8) -> u64 {
    let first = usize::from(at) / 32;
    let shift = at % 32;
    let mut value = (instruction_word_at(first, words) | instruction_word_at(first + 1, words) << 32) >> shift;
    if shift + width > 64 || (shift != 0 && width > 32) {
        value |= instruction_word_at(first + 2, words) << 32 << (32 - shift);
    }
    value & 1u64.checked_shl(u32::from(width)).map_or(u64::MAX, |bit| bit - 1)
}

fn instruction_word_at(number: usize, words: &[u32; 5]) -> u64 {
    words.get(number).copied().map(u64::from).unwrap_or(0)
}
