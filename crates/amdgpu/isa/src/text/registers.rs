//! Texts of registers and constants, one line for each number of a source field.
//!
//! Invariants: a line states its kind of register or constant, so that a register class can reject it. An empty line is
//! a number without a short text, and every class rejects it. The lines agree with [`crate::kind`] and [`crate::reg`];
//! the tests compare them.

use crate::bank::VgprBanks;
use crate::isa::Isa;
use crate::tables::Feature;
use hotswap_isa_tables::{FEATURE_SETS, TextStep};

/// A line: letters, kind, length.
pub(super) type RegisterText = [u8; 16];

/// The kind of a line; the generator has the same numbers.
const VECTOR: u8 = 1;
/// A vector or accumulation tuple from an odd register.
const ODD: u8 = 2;
const ACCUMULATION: u8 = 4;
const SCALAR: u8 = 8;
const M0: u8 = 16;
const EXEC_LO: u8 = 32;
/// Registers of any other kind.
const OTHER: u8 = 64;
const CONSTANT: u8 = 128;

/// Numbers of a block: sources without vector registers, vector registers, or accumulation registers.
const NUMBERS: usize = 256;
/// Sizes in dwords that have blocks, in the generator's order.
const SIZES: [u16; 6] = [1, 2, 3, 4, 8, 16];
/// Generations with scalar register names of their own: gfx9, gfx10, from gfx11 on.
const GENERATIONS: usize = 3;
/// Blocks of vector and of accumulation registers, then those of scalar ones.
const VECTOR_BLOCKS: usize = 2 * SIZES.len();
const BLOCKS: usize = VECTOR_BLOCKS + GENERATIONS * SIZES.len();

static TABLE: [[RegisterText; NUMBERS]; BLOCKS] = {
    let mut table = [[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, OTHER, 0]; NUMBERS]; BLOCKS];
    let mut size = 0;
    while size < SIZES.len() {
        let mut number = 0;
        while number < NUMBERS {
            table[2 * size][number] = vector_tuple(b"v", VECTOR, number as u16, SIZES[size]);
            // Tuples may not extend beyond the last accumulation register.
            if number + SIZES[size] as usize <= NUMBERS {
                table[2 * size + 1][number] = vector_tuple(b"a", ACCUMULATION, number as u16, SIZES[size]);
            }
            let mut generation = 0;
            while generation < GENERATIONS {
                let block = VECTOR_BLOCKS + generation * SIZES.len() + size;
                table[block][number] = scalar_source(number as u16, SIZES[size], generation);
                generation += 1;
            }
            number += 1;
        }
        size += 1;
    }
    table
};

const fn append_letters(mut line: RegisterText, text: &[u8]) -> RegisterText {
    let mut at = 0;
    while at < text.len() {
        line[line[15] as usize] = text[at];
        line[15] += 1;
        at += 1;
    }
    line
}

/// Numbers that are written: registers up to the end of a tuple.
const DECIMALS: usize = 256 + 16;

/// The digits of each number, and how many there are. Computed once, because the compiler computes the table of lines
/// anew for every change of the crate.
static DIGITS: [[u8; 4]; DECIMALS] = {
    let mut digits = [[0; 4]; DECIMALS];
    let mut number = 0;
    while number < DECIMALS {
        let [hundreds, tens, ones] = [number / 100, number / 10 % 10, number % 10];
        let [hundreds, tens, ones] = [b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8];
        digits[number] = match number {
            0..10 => [ones, 0, 0, 1],
            10..100 => [tens, ones, 0, 2],
            _ => [hundreds, tens, ones, 3],
        };
        number += 1;
    }
    digits
};

const fn append_decimal(mut line: RegisterText, number: u16) -> RegisterText {
    let ([a, b, c, count], at) = (DIGITS[number as usize], line[15] as usize);
    (line[at], line[at + 1], line[at + 2]) = (a, b, c);
    line[15] += count;
    line
}

/// A line of kind `what`.
const fn kind_line(what: u8, text: &[u8]) -> RegisterText {
    append_letters([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, what, 0], text)
}

/// Registers of a file.
const fn register_tuple(name: &[u8], what: u8, first: u16, dwords: u16) -> RegisterText {
    let line = kind_line(what, name);
    if dwords == 1 {
        return append_decimal(line, first);
    }
    let line = append_letters(append_decimal(append_letters(line, b"["), first), b":");
    append_letters(append_decimal(line, first + dwords - 1), b"]")
}

const fn vector_tuple(name: &[u8], what: u8, first: u16, dwords: u16) -> RegisterText {
    let odd = if dwords > 1 && first & 1 != 0 { ODD } else { 0 };
    register_tuple(name, what | odd, first, dwords)
}

/// Scalar registers that are addressed as aligned tuples.
const fn aligned_tuple(name: &[u8], number: u16, dwords: u16, end: u16) -> RegisterText {
    let stride = if dwords > 2 { 4 } else { dwords };
    let first = number / stride * stride;
    if first + dwords > end { kind_line(OTHER, b"") } else { register_tuple(name, SCALAR, first, dwords) }
}

/// A source field without vector registers. Registers that only some targets have, and tuples ending in
/// VCC, lack a line.
const fn scalar_source(number: u16, dwords: u16, generation: usize) -> RegisterText {
    let last = if generation == 0 { 101 } else { 105 };
    let null = if generation == 2 { 124 } else { 125 };
    match (number, dwords) {
        _ if number <= last => aligned_tuple(b"s", number, dwords, last + 1),
        (106, 1) => kind_line(SCALAR, b"vcc_lo"),
        (107, 1) => kind_line(SCALAR, b"vcc_hi"),
        (106, 2) => kind_line(SCALAR, b"vcc"),
        (108..=123, _) => aligned_tuple(b"ttmp", number - 108, dwords, 16),
        (124 | 125, 1 | 2) if number == null => kind_line(0, b"null"),
        (124 | 125, 1) => kind_line(M0, b"m0"),
        (126, 1) => kind_line(EXEC_LO, b"exec_lo"),
        (126, 2) => kind_line(EXEC_LO, b"exec"),
        (128..=192, _) => append_decimal(kind_line(CONSTANT, b""), number - 128),
        (193..=208, _) => append_decimal(kind_line(CONSTANT, b"-"), number - 192),
        // 1/2π has more digits in double precision.
        (248, 1) => kind_line(CONSTANT, b"0.15915494"),
        (240..=247, _) => kind_line(CONSTANT, FLOATS[number as usize - 240].as_bytes()),
        _ => kind_line(OTHER, b""),
    }
}

const FLOATS: [&str; 8] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"];

/// The properties of a target that determine the names of registers.
#[derive(Clone, Copy)]
pub(super) struct RegisterNames {
    /// First of the blocks of scalar registers.
    scalars: u8,
    /// Number of the size that a lane mask has.
    lane_mask: u8,
    /// Which of the four lists of rejected lines applies.
    refuses: u8,
    /// The other rejected kinds: vector registers, if their banks have to be named.
    beyond: u8,
}

static NAMES: [RegisterNames; FEATURE_SETS.len()] = {
    let mut names = [RegisterNames { scalars: 0, lane_mask: 0, refuses: 0, beyond: 0 }; FEATURE_SETS.len()];
    let mut number = 0;
    while number < names.len() {
        let features = &FEATURE_SETS[number];
        let gfx10 = has_feature(features, Feature::Gfx10Insts);
        let generation = if has_feature(features, Feature::Gfx11Insts) { 2 } else { gfx10 as usize };
        let aligned = has_feature(features, Feature::Gfx90aInsts) || has_feature(features, Feature::Gfx1250Insts);
        names[number] = RegisterNames {
            scalars: (VECTOR_BLOCKS + generation * SIZES.len()) as u8,
            lane_mask: if has_feature(features, Feature::Wavefrontsize32) { 0 } else { 1 },
            refuses: aligned as u8 | (has_feature(features, Feature::MaiInsts) as u8) << 1,
            beyond: 0,
        };
        number += 1;
    }
    names
};

const fn has_feature(features: &[u64; 4], feature: Feature) -> bool {
    features[feature as usize / 64] >> (feature as usize % 64) & 1 != 0
}

impl RegisterNames {
    /// The properties for a target and a mode of the banks.
    #[inline]
    pub(super) fn of(isa: Isa, banks: VgprBanks) -> RegisterNames {
        let names = NAMES.get(usize::from(isa.subtarget().features)).copied().unwrap_or(NAMES[0]);
        RegisterNames { beyond: if banks.any_beyond() { VECTOR } else { 0 }, ..names }
    }

    /// The line of a source's number, unless the step rejects it.
    #[inline]
    pub(super) fn register_text(self, number: u16, step: &TextStep) -> Option<&'static RegisterText> {
        let size = if step.size == LANE_MASK { self.lane_mask } else { step.size };
        let vector = 2 * size + (number >> 9 & 1) as u8;
        let block = if number & 256 != 0 { vector } else { self.scalars + size };
        let line = TABLE.get(usize::from(block)).map(|block| &block[usize::from(number & 255)])?;
        let refused = step.extra[usize::from(self.refuses & 3)] | self.beyond;
        if line[14] & refused == 0 { Some(line) } else { None }
    }

    /// The same for registers only.
    pub(super) fn register(self, number: u16, step: &TextStep) -> Option<&'static RegisterText> {
        self.register_text(number, step).filter(|line| line[14] & CONSTANT == 0)
    }
}

/// Number of the size of a lane mask; the generator has the same.
const LANE_MASK: u8 = 6;
