//! A bit for each dword of a range of code.

/// Bits, addressed by dword.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DwordSet {
    words: Vec<u64>,
}

impl DwordSet {
    pub(crate) fn new(count: usize) -> Self {
        Self { words: vec![0; count.div_ceil(64)] }
    }

    /// A set of `count` bits, all set.
    pub(crate) fn with_all_set(count: usize) -> Self {
        let mut bits = Self::new(count);
        bits.words.fill(u64::MAX);
        bits
    }

    /// Clears all bits and resizes to `count`; the memory is reused.
    pub(crate) fn clear_and_resize(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Sets a bit. Returns whether it was clear.
    pub(crate) fn set_bit(&mut self, at: usize) -> bool {
        let Some(word) = self.words.get_mut(at / 64) else { return false };
        let bit = 1 << (at % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    pub(crate) fn clear(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    /// The first set bit at or after `at`.
    pub(crate) fn next(&self, at: usize) -> Option<usize> {
        let mut number = at / 64;
        let mut word = self.words.get(number)? & u64::MAX << (at % 64);
        while word == 0 {
            number += 1;
            word = *self.words.get(number)?;
        }
        Some(number * 64 + word.trailing_zeros() as usize)
    }

    /// The last set bit before `at`.
    pub(crate) fn previous_set_bit(&self, at: usize) -> Option<usize> {
        let last = at.min(self.words.len() * 64).checked_sub(1)?;
        let mut number = last / 64;
        let mut word = self.words.get(number)? & u64::MAX >> (63 - last % 64);
        while word == 0 {
            number = number.checked_sub(1)?;
            word = self.words[number];
        }
        Some(number * 64 + 63 - word.leading_zeros() as usize)
    }

    /// The set bits, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(number, word)| bits_of(*word).map(move |bit| number * 64 + bit))
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// Bits that are set in two sets, numbered from the first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    words: Vec<RankedWord>,
}

/// A word of [`Ranks`].
#[derive(Debug, Clone, Copy)]
struct RankedWord {
    bits: u64,
    /// The number of bits that are set in the words before it.
    before: u32,
}

impl Ranks {
    pub(crate) fn of(one: &DwordSet, other: &DwordSet) -> Self {
        let mut before = 0;
        Self { words: one.words.iter().zip(&other.words).map(|one| intersect_ranked_word(one, &mut before)).collect() }
    }

    /// The number of the bit `at`, if it is set.
    pub(crate) fn rank_of_bit(&self, at: usize) -> Option<usize> {
        let RankedWord { bits, before } = *self.words.get(at / 64)?;
        let bit = 1 << (at % 64);
        (bits & bit != 0).then(|| before as usize + (bits & (bit - 1)).count_ones() as usize)
    }

    pub(crate) fn count(&self) -> usize {
        self.words.last().map_or(0, |word| word.before as usize + word.bits.count_ones() as usize)
    }

    /// The numbers of the set bits, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(number, word)| bits_of(word.bits).map(move |bit| number * 64 + bit))
    }
}

fn intersect_ranked_word((one, other): (&u64, &u64), before: &mut u32) -> RankedWord {
    let word = RankedWord { bits: one & other, before: *before };
    *before += word.bits.count_ones();
    word
}

/// The set bits of a word, ascending.
fn bits_of(mut left: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros() as usize;
        (left != 0).then(|| {
            left &= left - 1;
            bit
        })
    })
}

/// Calls a function with the number of each bit that is set, ascending.
pub(crate) fn each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_number_what_is_in_both() {
        let (mut one, mut other) = (DwordSet::new(200), DwordSet::new(200));
        for at in [0, 3, 63, 64, 130, 191] {
            one.set_bit(at);
        }
        for at in [3, 4, 64, 130, 190, 191] {
            other.set_bit(at);
        }
        let ranks = Ranks::of(&one, &other);
        assert_eq!((ranks.count(), ranks.iter().collect::<Vec<_>>()), (4, vec![3, 64, 130, 191]));
        let numbers = [0, 3, 4, 64, 130, 191, 9999].map(|at| ranks.rank_of_bit(at));
        assert_eq!(numbers, [None, Some(0), None, Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn neighbours_are_found_across_words_and_at_the_ends() {
        let mut bits = DwordSet::new(200);
        assert_eq!((bits.next(0), bits.previous_set_bit(200), bits.count()), (None, None, 0));
        for at in [0, 63, 64, 191] {
            assert!(bits.set_bit(at) && !bits.set_bit(at) && bits.get(at));
        }
        assert_eq!((bits.next(1), bits.next(64), bits.next(65), bits.next(192)), (Some(63), Some(64), Some(191), None));
        assert_eq!(
            (bits.previous_set_bit(64), bits.previous_set_bit(63), bits.previous_set_bit(0)),
            (Some(63), Some(0), None)
        );
        assert_eq!((bits.previous_set_bit(9999), bits.count()), (Some(191), 4));
        assert!(!bits.set_bit(9999) && !bits.get(9999));
    }
}
