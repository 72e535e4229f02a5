//! Conditions that exclude lines longer than four bytes, looked up by parts of the first two words: a few loads without
//! branches, whatever the line.
//!
//! Each part has a table of *facts*, one bit for every condition that some line has on it. Lines that need the same
//! facts absent are one *kind*.
//!
//! Invariants: where none of the facts that a kind needs absent is present, the classifier gives the answer of the kind for
//! the bytes, for instructions with and without a literal after them.

use super::{ClassLine, FIELDS};
use crate::tables::meaning;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

#[derive(Debug, Clone)]
pub(super) struct ClassFacts {
    parts: [[u64; PART]; PARTS.len()],
}

/// Start and width of each part: the two of the lower half, sources in the second word, and the bits above them.
const PARTS: [WordPart; 6] = [
    WordPart { at: 0, bits: 9 },
    WordPart { at: 9, bits: 7 },
    WordPart { at: 32, bits: 9 },
    WordPart { at: 41, bits: 9 },
    WordPart { at: 50, bits: 9 },
    WordPart { at: 59, bits: 5 },
];

/// A run of bits.
#[derive(Clone, Copy)]
struct WordPart {
    at: u8,
    bits: u8,
}

const PART: usize = 512;

impl ClassFacts {
    /// All facts of the first eight bytes.
    #[inline(always)]
    pub(super) fn facts_of_word(&self, low: u64) -> u64 {
        self.parts.iter().zip(PARTS).fold(0, |all, part| all | word_part_fact(part, low))
    }
}

fn word_part_fact((part, WordPart { at, bits }): (&[u64; PART], WordPart), low: u64) -> u64 {
    part[(low >> at) as usize & ((1 << bits) - 1)]
}

/// Facts that must be absent: for instructions of the line's own length, and for those followed by a
/// literal of 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AbsentFacts {
    pub(super) alone: u64,
    pub(super) literal: u64,
}

/// A condition that some bits of a part have this value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PartTest {
    part: usize,
    at: u8,
    mask: u64,
    than: ExcludedNumber,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ExcludedNumber {
    Value(u64),
    /// A number that means nothing but itself, or a literal; the start of the meanings.
    Meaning {
        set: u16,
        or_literal: bool,
    },
}

pub(super) struct ClassFactsBuilder<'s> {
    meanings: &'s [u8],
    facts: ClassFacts,
    /// The bits of tests; `None` for those after the last bit.
    tests: BTreeMap<PartTest, Option<u64>>,
    /// The bits by part and by the numbers that are rejected there.
    bits: BTreeMap<(usize, Vec<u64>), Option<u64>>,
}

impl<'s> ClassFactsBuilder<'s> {
    pub(super) fn new(meanings: &'s [u8]) -> Self {
        let facts = ClassFacts { parts: [[0; PART]; PARTS.len()] };
        Self { meanings, facts, tests: BTreeMap::new(), bits: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> ClassFacts {
        self.facts
    }

    /// The facts that must be absent; `None` where they cannot be expressed. Fixed bits in `known` are
    /// right and need none.
    pub(super) fn need_of_line(&mut self, line: &ClassLine, known: u64) -> Option<AbsentFacts> {
        let mut need = AbsentFacts::default();
        for (part, WordPart { at, bits }) in PARTS.into_iter().enumerate() {
            let mask = (line.mask & !known) >> at & ((1 << bits) - 1);
            let fixed =
                self.bit_of_test(PartTest { part, at: 0, mask, than: ExcludedNumber::Value(line.value >> at & mask) })?;
            need = AbsentFacts { alone: need.alone | fixed, literal: need.literal | fixed };
        }
        for field in 0..usize::from(line.fields).min(FIELDS) {
            let (at, mask, set) = (line.at[field], line.bits[field], line.set[field]);
            let end = at + (16 - mask.leading_zeros()) as u8;
            let part = PARTS.iter().position(|part| part.at <= at && end <= part.at + part.bits)?;
            let than = ExcludedNumber::Meaning { set, or_literal: false };
            let alone = PartTest { part, at: at - PARTS[part].at, mask: mask.into(), than };
            let literal = PartTest { than: ExcludedNumber::Meaning { set, or_literal: true }, ..alone.clone() };
            need.alone |= self.bit_of_test(alone)?;
            need.literal |= self.bit_of_test(literal)?;
        }
        Some(need)
    }

    fn bit_of_test(&mut self, test: PartTest) -> Option<u64> {
        if let Some(known) = self.tests.get(&test) {
            return *known;
        }
        let numbers = 0..1 << PARTS[test.part].bits;
        let refused: Vec<u64> = numbers.filter(|number| self.is_refused(&test, *number)).collect();
        let bit = self.refused_bit(test.part, refused);
        self.tests.insert(test, bit);
        bit
    }

    fn is_refused(&self, test: &PartTest, number: u64) -> bool {
        let raw = number >> test.at & test.mask;
        match test.than {
            ExcludedNumber::Value(value) => raw != value,
            ExcludedNumber::Meaning { set, or_literal } => match self.meanings.get(usize::from(set) + raw as usize) {
                Some(&meaning::LITERAL32) => !or_literal,
                meaning => meaning != Some(&0),
            },
        }
    }

    /// The bit of rejected numbers of a part.
    fn refused_bit(&mut self, part: usize, refused: Vec<u64>) -> Option<u64> {
        if refused.is_empty() {
            return Some(0);
        }
        let count = self.bits.len() as u32;
        let bit = *self.bits.entry((part, refused.clone())).or_insert_with(|| 1u64.checked_shl(count));
        refused.iter().for_each(|number| self.facts.parts[part][*number as usize] |= bit.unwrap_or(0));
        bit
    }
}
