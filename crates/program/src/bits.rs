//! A bit for each dword of a stretch of code.

/// Bits, addressed by dword.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn new(count: usize) -> Self {
        Self { words: vec![0; count.div_ceil(64)] }
    }

    /// All clear, and room for so many; the memory is used again.
    pub(crate) fn reset(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Sets a bit; whether it was clear.
    pub(crate) fn set(&mut self, at: usize) -> bool {
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

    /// The first set bit at or behind `at`.
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
    pub(crate) fn previous(&self, at: usize) -> Option<usize> {
        let last = at.min(self.words.len() * 64).checked_sub(1)?;
        let mut number = last / 64;
        let mut word = self.words.get(number)? & u64::MAX >> (63 - last % 64);
        while word == 0 {
            number = number.checked_sub(1)?;
            word = self.words[number];
        }
        Some(number * 64 + 63 - word.leading_zeros() as usize)
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_across_words_and_at_the_ends() {
        let mut bits = Bits::new(200);
        assert_eq!((bits.next(0), bits.previous(200), bits.count()), (None, None, 0));
        for at in [0, 63, 64, 191] {
            assert!(bits.set(at) && !bits.set(at) && bits.get(at));
        }
        assert_eq!((bits.next(1), bits.next(64), bits.next(65), bits.next(192)), (Some(63), Some(64), Some(191), None));
        assert_eq!((bits.previous(64), bits.previous(63), bits.previous(0)), (Some(63), Some(0), None));
        assert_eq!((bits.previous(9999), bits.count()), (Some(191), 4));
        assert!(!bits.set(9999) && !bits.get(9999));
    }
}
