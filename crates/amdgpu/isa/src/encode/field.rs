//! Changing bits of an instruction in place.
//!
//! Invariants: only the bits of the field change. The result decodes to the same table entry and has the same length,
//! or it is an error. Bits that do not matter are unchanged.

use super::EncodeError;
use crate::{Inst, Isa, Name, Piece};

impl Inst {
    /// The same instruction with another value in the field or operand `name`, raw as [`Inst::raw`] returns it.
    ///
    /// # Errors
    /// The field does not exist or does not hold the value; the result is not the same instruction.
    pub fn with_field(&self, isa: Isa, name: Name, value: u64) -> Result<Self, EncodeError> {
        let pieces = field_pieces(self, name).ok_or(EncodeError::NoSuchOperand(name))?;
        let mut words = *self.words();
        scatter_bits(&mut words, pieces, value).map_err(|bits| EncodeError::OutOfRange { name, value, bits })?;
        self.decode_same_entry(isa, &words)
    }

    /// `words` as this instruction.
    pub(super) fn decode_same_entry(&self, isa: Isa, words: &[u32; 5]) -> Result<Self, EncodeError> {
        let found = decode_words(isa, words)?;
        if found.entry() != self.entry() {
            return Err(EncodeError::OtherInstruction { wanted: self.entry(), found: found.entry() });
        }
        if found.len() != self.len() {
            return Err(EncodeError::OtherLength { before: self.len(), after: found.len() });
        }
        Ok(found)
    }
}

/// The position of the field or operand `name`.
fn field_pieces(inst: &Inst, name: Name) -> Option<&'static [Piece]> {
    let entry = inst.entry();
    let slot = entry.slot(name).map(|slot| slot.pieces()).filter(|pieces| !pieces.is_empty());
    slot.or_else(|| entry.fields().find(|field| field.name == name).map(|field| field.pieces))
}

/// Decodes words; zeros follow the instruction.
pub(super) fn decode_words(isa: Isa, words: &[u32; 5]) -> Result<Inst, EncodeError> {
    let mut bytes = [0; 20];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    isa.decode(&bytes).map_err(|_| EncodeError::Undecodable)
}

/// Puts `value` into the bits of `pieces`; returns the mask of bits that they hold if the value has others.
pub(super) fn scatter_bits(words: &mut [u32; 5], pieces: &[Piece], value: u64) -> Result<(), u64> {
    let held = pieces.iter().fold(0, |held, piece| held | low_bits(piece.width) << piece.from.min(63));
    if value & !held != 0 {
        return Err(held);
    }
    for piece in pieces {
        insert(words, piece.at, piece.width, value >> piece.from.min(63));
    }
    Ok(())
}

/// Puts the `width` lowest bits of `value` at bit `at`; at most 64 bits, in at most three words.
fn insert(words: &mut [u32; 5], at: u8, width: u8, value: u64) {
    let (first, shift) = (usize::from(at / 32), at % 32);
    let (mask, value) = (u128::from(low_bits(width)) << shift, u128::from(value & low_bits(width)) << shift);
    for (number, word) in words.iter_mut().skip(first).take(3).enumerate() {
        *word = *word & !dword_part_of(mask, number) | dword_part_of(value, number);
    }
}

fn dword_part_of(bits: u128, number: usize) -> u32 {
    (bits >> (32 * number)) as u32
}

/// The `width` lowest bits.
pub(super) fn low_bits(width: u8) -> u64 {
    1u64.checked_shl(u32::from(width)).map_or(u64::MAX, |bit| bit - 1)
}
