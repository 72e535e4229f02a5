//! The bits of one encoding according to its row, and words made from them.

use super::random::Random;
use crate::oracle::{LONGEST, Word};
use hotswap_isa_meta::model::{EncodingColumn, EncodingLayout, FieldPiece};

/// Values of literals, and of the dwords after an instruction: integers and floats at their edges.
const LITERALS: &[u64] = &[
    0,
    1,
    64,
    65,
    127,
    128,
    129,
    193,
    208,
    209,
    240,
    248,
    249,
    254,
    255,
    0xffff_ffff,
    0xffff_fff0,
    0xffff_ffef,
    0x7fff_ffff,
    0x8000_0000,
    0xffff,
    0x1_0000,
    0x3c00,
    0x3f80,
    0x3118,
    0x3e22,
    0x3f80_0000,
    0x3e22_f983,
    0xbf80_0000,
    0x3c00_3c00,
    0x3ff0_0000,
    0xaf12_3456,
    0x1234_5678,
];

/// Selectors of nine bits around the borders of register files and constants.
const SOURCES: &[u64] = &[
    0, 1, 2, 3, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 122, 123, 124, 125, 126, 127, 128,
    129, 192, 193, 208, 209, 225, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 247, 248, 249,
    250, 251, 252, 253, 254, 255, 256, 257, 258, 259, 260, 400, 508, 509, 510, 511,
];

/// A field: bits of the word that hold one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pieces: Vec<FieldPiece>,
    width: u8,
    edges: Vec<u64>,
}

/// One encoding of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Mnemonic and table, for messages.
    pub name: String,
    bits: u8,
    fixed: u128,
    free: u128,
    fields: Vec<Field>,
}

impl Pattern {
    /// The pattern of a row's column.
    pub fn new(name: String, layout: &EncodingLayout, column: &EncodingColumn) -> Self {
        let all = if layout.bits >= 128 { u128::MAX } else { (1 << layout.bits) - 1 };
        let opcode = spread(&layout.opcode, u64::from(column.opcode));
        let fields: Vec<Field> = layout.fields.iter().map(|field| Field::new(&field.pieces)).collect();
        let held =
            fields.iter().fold(layout.fixed_mask | mask(&layout.opcode), |held, field| held | mask(&field.pieces));
        Self { name, bits: layout.bits, fixed: layout.fixed_value | opcode, free: all & !held, fields }
    }

    /// Pairs of a field and one of its edges.
    fn edges(&self) -> usize {
        self.fields.iter().map(|field| field.edges.len()).sum()
    }

    /// A word of the encoding. `round` counts the words of this pattern; every second one has one field at an edge.
    pub fn word(&self, round: usize, random: &mut Random) -> Word {
        let calm = random.below(3);
        let mut bits = self.fixed | self.free & [0, 0, random.wide(), 1 << random.below(128)][random.below(4)];
        let edge = (round.is_multiple_of(2) && self.edges() > 0).then(|| round / 2 % self.edges());
        let mut before = 0;
        for field in &self.fields {
            let at_edge = edge.and_then(|edge| field.edges.get(edge.checked_sub(before)?));
            let value = at_edge.copied().unwrap_or_else(|| field.value(calm, random));
            bits |= spread(&field.pieces, value);
            before += field.edges.len();
        }
        if random.one_in(40) {
            // A neighbour: with one bit flipped it may be another instruction, or none.
            bits ^= 1 << random.below(usize::from(self.bits));
        }
        finish(bits, self.bits, random)
    }
}

impl Field {
    fn new(pieces: &[FieldPiece]) -> Self {
        let width = pieces.iter().map(|piece| piece.from + piece.width).max().unwrap_or(0);
        Self { pieces: pieces.to_vec(), width, edges: edges(width) }
    }

    /// Zero or small in calm words, so that the other field decides; otherwise edges and random values.
    fn value(&self, calm: usize, random: &mut Random) -> u64 {
        match (calm, random.below(2)) {
            (0, _) => 0,
            (1, 0) => (random.number() % 8 * 2) & ones(self.width),
            (_, 0) => random.pick(&self.edges),
            _ => random.number() & ones(self.width),
        }
    }
}

/// Values of a field of that width at which the meaning may change.
fn edges(width: u8) -> Vec<u64> {
    let max = ones(width);
    let mut values: Vec<u64> = match width {
        0 => Vec::new(),
        1..=5 => (0..=max).collect(),
        7..=10 => SOURCES.iter().copied().chain((0..width).map(|bit| 1 << bit)).collect(),
        _ => (0..width).map(|bit| 1 << bit).chain((0..width).map(|bit| max >> bit)).collect(),
    };
    values.extend([0, 1, max, max - max.min(1), max / 2, max / 2 + 1]);
    values.retain(|value| *value <= max);
    values.sort_unstable();
    values.dedup();
    values
}

fn ones(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

fn mask(pieces: &[FieldPiece]) -> u128 {
    pieces.iter().fold(0, |mask, piece| mask | u128::from(ones(piece.width)) << piece.at)
}

fn spread(pieces: &[FieldPiece], value: u64) -> u128 {
    pieces.iter().fold(0, |bits, piece| bits | deposit_field_piece(piece, value))
}

fn deposit_field_piece(piece: &FieldPiece, value: u64) -> u128 {
    u128::from(value >> piece.from & ones(piece.width)) << piece.at
}

/// A word of random bits.
pub fn noise(random: &mut Random) -> Word {
    let (bits, count) = (random.wide(), [32, 64, 96, 128][random.below(4)]);
    finish(bits, count, random)
}

/// The instruction's bits, followed by possible literals. Some words end early.
fn finish(bits: u128, count: u8, random: &mut Random) -> Word {
    let mut bytes = [0; LONGEST];
    let held = usize::from(count / 8).min(16);
    bytes[..held].copy_from_slice(&bits.to_le_bytes()[..held]);
    for dword in bytes[held..].chunks_mut(4) {
        let value = if random.one_in(2) { random.pick(LITERALS) } else { random.number() };
        dword.copy_from_slice(&value.to_le_bytes()[..dword.len()]);
    }
    let size = if random.one_in(50) { random.below(LONGEST + 1) } else { LONGEST };
    Word::new(&bytes[..size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa_meta::model;

    fn layout() -> EncodingLayout {
        let piece = |at, from, width| FieldPiece { at, from, width };
        let field = |name: &str, pieces| model::EncodingField { name: name.into(), pieces };
        EncodingLayout {
            name: "X.0".into(),
            class: "X".into(),
            bits: 32,
            opcode: vec![piece(24, 0, 4)],
            fixed_mask: 0xf000_0000,
            fixed_value: 0xa000_0000,
            fields: vec![field("a", vec![piece(0, 0, 4), piece(8, 4, 4)]), field("b", vec![piece(4, 0, 4)])],
        }
    }

    #[test]
    fn words_keep_the_fixed_bits_and_reach_every_edge() {
        let column = EncodingColumn { table: "x".into(), predicates: Vec::new(), layout: "X.0".into(), opcode: 5 };
        let pattern = Pattern::new("v_x".into(), &layout(), &column);
        let mut random = Random::new(1);
        let (mut fixed, mut seen) = (0, std::collections::BTreeSet::new());
        for round in 0..4000 {
            let word = pattern.word(round, &mut random);
            if let Some(&[a, b, _, top]) = word.bytes().first_chunk::<4>() {
                fixed += usize::from(top == 0xa5);
                seen.insert(a & 15 | b << 4);
            }
        }
        assert!(fixed > 3700, "{fixed}");
        assert!(edges(8).iter().all(|edge| seen.contains(&u8::try_from(*edge).unwrap())));
    }

    #[test]
    fn the_same_seed_makes_the_same_words() {
        let words = |seed| (0..100).map(|_| noise(&mut Random::new(seed))).collect::<Vec<_>>();
        assert_eq!(words(7), words(7));
        assert_ne!(words(7), words(8));
    }

    #[test]
    fn edges_fit_their_field() {
        for width in 0..=64 {
            assert!(edges(width).iter().all(|edge| *edge <= ones(width)), "{width}");
        }
        assert!(edges(9).contains(&249) && edges(8).contains(&255) && edges(24).contains(&0x80_0000));
    }
}
