//! Bits of an instruction's words that select a child in a lookup trie.

use super::GenerateError;
use super::expand::{EncodedRow, low_bits};

/// Bits of a word that select a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Number of the word: 0 to 3.
    pub(super) word: u8,
    /// Its lowest bit in that word.
    pub(super) shift: u8,
    /// The number of its bits.
    pub(super) width: u8,
}

impl Window {
    /// Its lowest bit in the concatenated words.
    pub(super) fn at(self) -> u8 {
        self.word * 32 + self.shift
    }

    /// The bits that it selects.
    pub(super) fn bit_mask(self) -> u128 {
        low_bits(self.width) << self.at()
    }

    /// The table node whose children begin at `first`.
    pub(super) fn encode_node(self, first: usize, place: &str) -> Result<u32, GenerateError> {
        if first >= 1 << 20 {
            return Err(GenerateError::new(place, "more than a million nodes"));
        }
        let Self { word, shift, width } = self;
        Ok(u32::from(word) << 29 | u32::from(shift) << 24 | u32::from(width) << 20 | first as u32)
    }
}

/// The children of `window` that an entry belongs to: all values of the bits that it leaves open.
pub(super) fn matching_children(window: Window, entry: &EncodedRow) -> impl Iterator<Item = usize> + use<> {
    let all = (1u32 << window.width) - 1;
    let mask = (entry.mask >> window.at()) as u32 & all;
    let fixed = (entry.value >> window.at()) as u32 & mask;
    let open = all & !mask;
    std::iter::successors(Some(0), move |values: &u32| {
        Some(values.wrapping_sub(open) & open).filter(|&values| values != 0)
    })
    .map(move |values| (fixed | values) as usize)
}

/// The bits that split the entries best: the longest run of undecided bits that nearly all of them fix and that
/// differ; with `lone` also bits that have one value where they are fixed.
pub(super) fn choose_window(entries: &[&EncodedRow], decided: u128, lone: bool) -> Option<Window> {
    let mut ones = [0usize; 128];
    let mut zeros = [0usize; 128];
    for entry in entries {
        let mut left = entry.mask & !decided;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            if entry.value >> bit & 1 != 0 { ones[bit] += 1 } else { zeros[bit] += 1 }
        }
    }
    let most = (0..128)
        .filter(|&bit| is_useful_bit(bit, lone, &ones, &zeros, decided))
        .map(|bit| ones[bit] + zeros[bit])
        .max()?;
    let mut best = Window { word: 0, shift: 0, width: 0 };
    for start in (0..128usize).filter(|&bit| is_good_bit(bit, lone, &ones, &zeros, decided, most)) {
        let room = 32 - start % 32;
        let width = (start..start + room.min(10))
            .take_while(|&bit| is_good_bit(bit, lone, &ones, &zeros, decided, most))
            .count() as u8;
        if width > best.width {
            best = Window { word: (start / 32) as u8, shift: (start % 32) as u8, width };
        }
    }
    Some(best)
}

fn is_useful_bit(bit: usize, lone: bool, ones: &[usize; 128], zeros: &[usize; 128], decided: u128) -> bool {
    let fixed = if lone { ones[bit] + zeros[bit] > 0 } else { ones[bit] > 0 && zeros[bit] > 0 };
    decided >> bit & 1 == 0 && fixed
}

fn is_good_bit(bit: usize, lone: bool, ones: &[usize; 128], zeros: &[usize; 128], decided: u128, most: usize) -> bool {
    is_useful_bit(bit, lone, ones, zeros, decided) && (ones[bit] + zeros[bit]) * 10 >= most * 9
}
