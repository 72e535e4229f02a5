//! Bits of an encoding as text: `3`, `0..7`, and where a field's value is not contiguous, `4:8..11`.
//!
//! A field is a list of pieces, lowest value bit first: `vdst=0..7`, `src0_modifiers=61,8` (value bit 0 is bit
//! 61 of the instruction, value bit 1 is bit 8), `sbase=1:0..5` (value bit 0 is not in the instruction).

use crate::model::{BitRun, FieldPiece};

/// Writes pieces.
pub(super) fn pieces(pieces: &[FieldPiece]) -> String {
    let mut next = 0;
    let mut words = Vec::new();
    for piece in pieces {
        let skip = if piece.from == next { String::new() } else { format!("{}:", piece.from) };
        words.push(skip + &range(piece.at, piece.width));
        next = piece.from + piece.width;
    }
    words.join(",")
}

/// Writes a run of bits.
pub(super) fn range(at: u8, width: u8) -> String {
    if width == 1 { at.to_string() } else { format!("{at}..{}", u32::from(at) + u32::from(width) - 1) }
}

/// Reads a run of bits within 128.
pub(super) fn parse_range(text: &str) -> Option<BitRun> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < 128).then(|| BitRun { at: first, width: last - first + 1 })
}

/// Reads pieces.
pub(super) fn parse(text: &str) -> Option<Vec<FieldPiece>> {
    let mut next = 0_u8;
    let mut found = Vec::new();
    for word in text.split(',') {
        let (from, run) = match word.split_once(':') {
            Some((from, run)) => (from.parse().ok()?, run),
            None => (next, word),
        };
        let BitRun { at, width } = parse_range(run)?;
        next = from.checked_add(width).filter(|end| *end <= 128)?;
        found.push(FieldPiece { at, from, width });
    }
    Some(found)
}

/// The bits of the instruction that pieces occupy; `None` where two overlap.
pub(super) fn mask(pieces: &[FieldPiece]) -> Option<u128> {
    let mut mask = 0_u128;
    for piece in pieces {
        let bits = (u128::MAX >> (128 - u32::from(piece.width.clamp(1, 128)))) << piece.at;
        if mask & bits != 0 {
            return None;
        }
        mask |= bits;
    }
    Some(mask)
}
