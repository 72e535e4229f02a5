//! Sets of registers: one bit for each 32-bit register that code can name.
//!
//! Invariants: fixed size (256 bytes), no allocation. A half register counts as its whole register, because no bit of a
//! set represents less than 32 bits (partial writes are flagged separately, see [`crate::effects`]). VGPRs are 0 to
//! 1023, so that banked registers of gfx12.5 have bits of their own. VCC is s106 and s107 as well: the last tuples of
//! scalar registers end in it.
//!
//! Absent on purpose: lanes. Whether a write under a partial EXEC keeps old lanes alive is the caller's decision.

use crate::reg::{Reg, RegFile, Special};

/// 24 are used; a power of two can be indexed without a comparison.
const WORDS: usize = 32;
/// Word in which the scalar registers begin.
const SGPRS: usize = 20;
const VCC_HI: usize = Special::VccHi as usize;

/// The bits of a file.
struct FileLayout {
    /// Their position in 64-bit words.
    start: usize,
    /// The number of registers.
    registers: usize,
}

const fn bit_layout(file: RegFile) -> FileLayout {
    match file {
        RegFile::Vgpr => FileLayout { start: 0, registers: 1024 },
        RegFile::Agpr => FileLayout { start: 16, registers: 256 },
        RegFile::Sgpr => FileLayout { start: SGPRS, registers: 128 },
        RegFile::Ttmp => FileLayout { start: 22, registers: 16 },
        RegFile::Special => FileLayout { start: 23, registers: 64 },
    }
}

/// The first bit of a file and the one after its last; the end is 0 for files whose registers are named individually.
#[derive(Clone, Copy)]
pub(crate) struct FileBits {
    pub(crate) start: u16,
    pub(crate) end: u16,
}

/// By the number of the file.
pub(crate) const FILE_BITS: [FileBits; 8] = {
    let mut all = [FileBits { start: 0, end: 0 }; 8];
    let mut number = 0;
    while number < FILES.len() - 1 {
        let FileLayout { start, registers } = bit_layout(FILES[number]);
        all[FILES[number] as usize] = FileBits { start: start as u16 * 64, end: (start * 64 + registers) as u16 };
        number += 1;
    }
    all
};

/// The files in the order of their bits.
const FILES: [RegFile; 5] = [RegFile::Vgpr, RegFile::Agpr, RegFile::Sgpr, RegFile::Ttmp, RegFile::Special];

/// A set of 32-bit registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegSet {
    words: [u64; WORDS],
}

impl RegSet {
    /// The set without registers.
    pub const EMPTY: Self = Self { words: [0; WORDS] };
    /// The word of [`RegSet::words`] in which the scalar registers begin.
    pub const SGPR_WORD: usize = SGPRS;

    /// The set without registers.
    #[must_use]
    pub const fn new() -> Self {
        Self::EMPTY
    }

    /// Every register of a file.
    #[must_use]
    pub fn all_of(file: RegFile) -> Self {
        let registers = match file {
            RegFile::Sgpr => 106,
            RegFile::Special => Special::ALL.len(),
            _ => bit_layout(file).registers,
        };
        (0..registers).map(|index| Reg::new(file, index as u16, 1)).collect()
    }

    /// Adds every 32-bit register of `reg`. Registers past the end of the file are left out: they do not exist.
    #[inline]
    pub fn insert(&mut self, reg: Reg) {
        self.insert_bits(bits(reg));
    }

    /// Adds the registers of some bits of a word and of the next one.
    #[inline(always)]
    pub(crate) fn insert_bits(&mut self, (word, low, high): (usize, u64, u64)) {
        self.words[word & 31] |= low;
        self.words[(word + 1) & 31] |= high;
    }

    /// Its bits, 64 registers a word: VGPRs from word 0, AGPRs from 16, SGPRs with VCC from 20, trap temporaries in 22,
    /// special registers in 23. For solvers that keep many sets in fewer words.
    #[must_use]
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The set with those bits, see [`RegSet::words`].
    #[must_use]
    pub const fn from_words(words: [u64; WORDS]) -> Self {
        Self { words }
    }

    /// Removes every 32-bit register of `reg`.
    #[inline]
    pub fn remove(&mut self, reg: Reg) {
        let (word, low, high) = bits(reg);
        self.words[word & 31] &= !low;
        self.words[(word + 1) & 31] &= !high;
    }

    /// Whether every 32-bit register of `reg` is in the set.
    #[must_use]
    pub fn contains(&self, reg: Reg) -> bool {
        let (word, low, high) = bits(reg);
        self.words[word & 31] & low == low
            && self.words[(word + 1) & 31] & high == high
            && usize::from(reg.index) + usize::from(reg.count) <= bit_layout(reg.file).registers
    }

    /// Whether some 32-bit register of `reg` is in the set.
    #[must_use]
    pub fn touches(&self, reg: Reg) -> bool {
        let (word, low, high) = bits(reg);
        self.words[word & 31] & low | self.words[(word + 1) & 31] & high != 0
    }

    /// Whether the sets have a register in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        // No early exit, so that several words are processed at once.
        self.words.iter().zip(&other.words).fold(0, |all, (mine, theirs)| all | mine & theirs) != 0
    }

    /// Adds the registers of `other`; returns whether that changed the set.
    pub fn union_with(&mut self, other: &Self) -> bool {
        let mut changed = 0;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            changed |= theirs & !*mine;
            *mine |= theirs;
        }
        changed != 0
    }

    /// Removes the registers of `other`.
    pub fn subtract(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= !theirs;
        }
    }

    /// Keeps only registers that `other` has as well.
    pub fn intersect_with(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= theirs;
        }
    }

    /// Whether every register of this set is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// Number of 32-bit registers in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// One more than the highest register of a file in it, 0 without any. VCC is not a scalar register here.
    #[must_use]
    pub fn end_of(&self, file: RegFile) -> u16 {
        let FileLayout { start, registers } = bit_layout(file);
        let words = self.words.iter().enumerate().take(start + registers.div_ceil(64)).skip(start);
        let mut ends = words.filter_map(|(number, word)| {
            let is_upper_half = file == RegFile::Sgpr && number > SGPRS;
            let word = if is_upper_half { word & ((1 << (106 - 64)) - 1) } else { *word };
            (word != 0).then(|| ((number - start) * 64) as u16 + (64 - word.leading_zeros()) as u16)
        });
        ends.next_back().unwrap_or(0)
    }

    /// Its registers one at a time: VGPRs, AGPRs, SGPRs, trap temporaries, special registers; each in ascending order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { set: self, word: 0, left: self.words[0] }
    }
}

impl Default for RegSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl core::fmt::Debug for RegSet {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_set().entries(self.iter().map(|reg| (reg.file, reg.index))).finish()
    }
}

impl Extend<Reg> for RegSet {
    fn extend<T: IntoIterator<Item = Reg>>(&mut self, registers: T) {
        registers.into_iter().for_each(|reg| self.insert(reg));
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<T: IntoIterator<Item = Reg>>(registers: T) -> Self {
        let mut set = Self::EMPTY;
        set.extend(registers);
        set
    }
}

impl<'a> IntoIterator for &'a RegSet {
    type Item = Reg;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Reg {
    /// The word of [`RegSet::words`] in which it begins, its bits there, and its bits in the next word.
    #[inline]
    #[must_use]
    pub fn set_bits(self) -> (usize, u64, u64) {
        bits(self)
    }
}

/// The word in which `reg` begins, its bits there and in the next word. A tuple has at most 32 registers.
#[inline]
fn bits(reg: Reg) -> (usize, u64, u64) {
    let FileLayout { start, registers } = bit_layout(reg.file);
    let index = usize::from(reg.index);
    let named = reg.file == RegFile::Special;
    // VCC has the bits of s106 and s107. From M0 on, a register with a name has one bit, however wide it is read.
    let (start, index, registers) =
        if named && index <= VCC_HI { (SGPRS, 106 + index, 108) } else { (start, index, registers) };
    let widest = if named && index >= Special::M0 as usize && start != SGPRS { 1 } else { 64 };
    let count = usize::from(reg.count).min(registers.saturating_sub(index)).min(widest);
    let mask = u128::from(u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)) << (index % 64);
    (start + index / 64, mask as u64, (mask >> 64) as u64)
}

/// Iterator over a set, see [`RegSet::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    set: &'a RegSet,
    word: usize,
    left: u64,
}

impl Iterator for Iter<'_> {
    type Item = Reg;

    fn next(&mut self) -> Option<Reg> {
        while self.left == 0 {
            self.word += 1;
            self.left = *self.set.words.get(self.word)?;
        }
        let bit = self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        FILES.into_iter().rev().find_map(|file| {
            let FileLayout { start, .. } = bit_layout(file);
            let index = (self.word.checked_sub(start)? * 64 + bit) as u16;
            Some(match (file, index) {
                (RegFile::Sgpr, 106..) => Reg::new(RegFile::Special, index - 106, 1),
                _ => Reg::new(file, index, 1),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn reg(file: RegFile, index: u16, count: u8) -> Reg {
        Reg { file, index, count, half: None }
    }

    #[test]
    fn every_register_comes_back_alone() {
        for file in FILES {
            let registers = if file == RegFile::Sgpr { 106 } else { bit_layout(file).registers as u16 };
            for index in 0..registers {
                let one = reg(file, index, 1);
                let set: RegSet = [one].into_iter().collect();
                assert_eq!(set.iter().collect::<Vec<_>>(), [one]);
                assert!(set.contains(one) && set.touches(one) && set.len() == 1);
            }
        }
    }

    #[test]
    fn tuples_cross_words_and_stop_at_the_end_of_the_file() {
        let mut set = RegSet::new();
        set.insert(reg(RegFile::Vgpr, 250, 32));
        assert_eq!(set.len(), 32);
        assert!(set.contains(reg(RegFile::Vgpr, 255, 2)) && !set.contains(reg(RegFile::Vgpr, 281, 2)));
        assert!(set.touches(reg(RegFile::Vgpr, 281, 2)));
        set.remove(reg(RegFile::Vgpr, 251, 31));
        assert_eq!(set.iter().collect::<Vec<_>>(), [reg(RegFile::Vgpr, 250, 1)]);
        let mut end = RegSet::new();
        end.insert(reg(RegFile::Vgpr, 1023, 4));
        end.insert(reg(RegFile::Agpr, 300, 4));
        end.insert(reg(RegFile::Sgpr, 5, 0));
        assert_eq!(end.iter().collect::<Vec<_>>(), [reg(RegFile::Vgpr, 1023, 1)]);
        assert!(!end.contains(reg(RegFile::Vgpr, 1023, 2)));
    }

    #[test]
    fn wide_names_do_not_run_into_their_neighbours() {
        let set: RegSet = [Reg::special(Special::SharedBase, 2), Reg::special(Special::VccLo, 2)].into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!(!set.contains(Reg::special(Special::SharedLimit, 1)) && set.contains(Reg::special(Special::VccHi, 1)));
    }

    #[test]
    fn scalar_tuples_end_in_vcc() {
        let set: RegSet = [reg(RegFile::Sgpr, 104, 4)].into_iter().collect();
        assert!(set.contains(Reg::special(Special::VccLo, 2)) && set.len() == 4);
        let vcc: RegSet = [Reg::special(Special::VccLo, 2)].into_iter().collect();
        assert!(vcc.touches(reg(RegFile::Sgpr, 104, 4)) && !vcc.contains(reg(RegFile::Sgpr, 104, 4)));
    }

    #[test]
    fn the_end_of_a_file_is_after_its_highest_register() {
        let mut set: RegSet = [Reg::special(Special::VccLo, 2), Reg::special(Special::M0, 1)].into_iter().collect();
        assert_eq!(FILES.map(|file| set.end_of(file) > 0), [false, false, false, false, true]);
        for (file, index, count, end) in [
            (RegFile::Vgpr, 0, 1, 1),
            (RegFile::Vgpr, 62, 4, 66),
            (RegFile::Agpr, 255, 1, 256),
            (RegFile::Sgpr, 30, 2, 32),
            (RegFile::Sgpr, 105, 1, 106),
            (RegFile::Sgpr, 104, 4, 106),
            (RegFile::Vgpr, 1023, 1, 1024),
            (RegFile::Ttmp, 4, 4, 8),
        ] {
            set.insert(reg(file, index, count));
            assert_eq!(set.end_of(file), end, "{file:?} {index}");
        }
    }

    #[test]
    fn algebra() {
        let low: RegSet = [reg(RegFile::Sgpr, 0, 4)].into_iter().collect();
        let high: RegSet = [reg(RegFile::Sgpr, 2, 4)].into_iter().collect();
        let mut both = low;
        assert!(both.union_with(&high) && !both.union_with(&high));
        assert_eq!(both.len(), 6);
        assert!(low.is_subset(&both) && !both.is_subset(&low) && low.intersects(&high));
        let mut difference = both;
        difference.subtract(&low);
        assert_eq!(difference, [reg(RegFile::Sgpr, 4, 2)].into_iter().collect());
        assert!(!difference.intersects(&low));
        both.intersect_with(&high);
        assert_eq!(both, high);
        assert!(RegSet::new().is_empty() && RegSet::all_of(RegFile::Agpr).len() == 256);
        assert_eq!((RegSet::all_of(RegFile::Ttmp).len(), RegSet::all_of(RegFile::Sgpr).len()), (16, 106));
    }
}
