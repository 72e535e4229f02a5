//! Sets of live registers.
//!
//! Layout, 64 registers a word: VGPRs and AGPRs in active lanes (words 0 to 19), the same in other lanes (20 to 39),
//! scalar registers with VCC (40, 41), trap temporaries (42), special registers (43). The highest bit of the last word
//! is set if registers without a word in a compact row are live.

use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;

/// Words of vector registers in a [`RegSet`].
pub(super) const VECTORS: usize = 20;
pub(super) const WORDS: usize = VECTORS * 2 + 4;
/// The word with the bit for everything else.
pub(super) const LAST: usize = WORDS - 1;
pub(super) const REST: u64 = 1 << 63;

/// The registers that are live at one point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LiveSet {
    pub(super) words: [u64; WORDS],
}

/// The lanes that have to be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLanes {
    /// All lanes: the user of the register may write it under any EXEC.
    InAllLanes,
    /// Lanes of EXEC: the user of the register writes it under the EXEC of this point or a smaller one.
    InActiveLanes,
}

impl LiveSet {
    pub const NOTHING: Self = Self { words: [0; WORDS] };
    pub const EVERYTHING: Self = Self { words: [u64::MAX; WORDS] };

    /// The registers that a function may read when it is called, by LLVM's calling convention. Of scalar registers
    /// these are its arguments up to s15 (there may be more up to s29, which takes more than sixteen of them), the
    /// return address and the stack in s30 to s34; neither VCC, M0 nor SCC. Of vector registers these are
    /// v0 to v31 (`CC_AMDGPU_Func` and `CC_SI_Gfx` of `AMDGPUCallingConv.td`), or all of them with `any_vector`.
    #[must_use]
    pub fn argument_registers(any_vector: bool) -> Self {
        let mut live = Self::EVERYTHING;
        (0..106).filter(|index| matches!(index, 16..=29 | 35..)).for_each(|index| {
            live.remove_register(Reg::new(RegFile::Sgpr, index, 1));
        });
        for (special, dwords) in [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)] {
            live.remove_register(Reg::special(special, dwords));
        }
        if !any_vector {
            (32..1024).for_each(|index| live.remove_register(Reg::new(RegFile::Vgpr, index, 1)));
        }
        live
    }

    /// The registers that are live in some lane.
    #[must_use]
    pub fn live_in_any_lane(&self) -> RegSet {
        let mut words = *RegSet::EMPTY.words();
        for (number, word) in words.iter_mut().enumerate().take(VECTORS + 4) {
            *word = match number {
                0..VECTORS => self.words[number] | self.words[number + VECTORS],
                _ => self.words[number + VECTORS],
            };
        }
        words[VECTORS + 3] &= !REST;
        RegSet::from_words(words)
    }

    /// The registers that are live in active lanes; scalar registers lack lanes.
    #[must_use]
    pub fn live_in_active_lanes(&self) -> RegSet {
        let mut words = *self.live_in_any_lane().words();
        words[..VECTORS].copy_from_slice(&self.words[..VECTORS]);
        RegSet::from_words(words)
    }

    /// Whether all of a register is dead.
    #[must_use]
    pub fn is_dead(&self, reg: Reg, lanes: DeadLanes) -> bool {
        match (is_vector(reg), lanes) {
            (true, DeadLanes::InActiveLanes) => !is_word_live(0, self, &reg),
            (true, DeadLanes::InAllLanes) => !is_word_live(0, self, &reg) && !is_word_live(VECTORS, self, &reg),
            (false, _) => !is_word_live(VECTORS, self, &reg),
        }
    }

    /// The first `count` consecutive registers of a file that are dead, from a multiple of `align`, below `limit`, and
    /// without those in `excluding`.
    #[must_use]
    pub fn find_dead_registers(
        &self,
        file: RegFile,
        count: u8,
        align: u16,
        limit: u16,
        excluding: &RegSet,
        lanes: DeadLanes,
    ) -> Option<Reg> {
        let last = limit.checked_sub(u16::from(count.max(1)))?;
        let candidates = (0..=last).step_by(usize::from(align.max(1))).map(|index| Reg::new(file, index, count));
        candidates.into_iter().find(|reg| !excluding.touches(*reg) && self.is_dead(*reg, lanes))
    }

    /// The number of dead registers of a file below `limit`.
    #[must_use]
    pub fn count_dead(&self, file: RegFile, limit: u16, lanes: DeadLanes) -> usize {
        (0..limit).filter(|index| self.is_dead(Reg::new(file, *index, 1), lanes)).count()
    }

    /// Adds the live registers of `other`.
    pub fn union_with(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Removes a register: it is needed in no lane.
    pub fn remove_register(&mut self, reg: Reg) {
        let bits = Self::bits_of_register(reg);
        self.remove_bits(bits);
        if is_vector(reg) {
            self.remove_bits(bits.in_other_lanes());
        }
    }

    /// The lanes after are a subset of those before: values live in other lanes afterwards may be live in any lane now.
    pub(super) fn before_shrinking(&mut self) {
        for word in 0..VECTORS {
            self.words[word] |= self.words[word + VECTORS];
        }
    }

    /// The lanes before are a subset of those after.
    pub(super) fn before_growing(&mut self) {
        for word in 0..VECTORS {
            self.words[word + VECTORS] |= self.words[word];
        }
    }

    /// Nothing is known about the lanes.
    pub(super) fn before_any_change(&mut self) {
        self.before_shrinking();
        self.before_growing();
    }

    #[inline(always)]
    pub(super) fn bits_of_register(reg: Reg) -> RegisterBits {
        let (word, low, high) = reg.set_bits();
        RegisterBits { word: if is_vector(reg) { word } else { word + VECTORS }, low, high }
    }

    #[inline(always)]
    pub(super) fn add_bits(&mut self, RegisterBits { word, low, high }: RegisterBits) {
        if let Some([first, second]) = self.words.get_mut(word..word + 2).and_then(|pair| pair.first_chunk_mut()) {
            *first |= low;
            *second |= high;
        } else if let Some(last) = self.words.get_mut(word) {
            *last |= low;
        }
    }

    #[inline(always)]
    pub(super) fn remove_bits(&mut self, RegisterBits { word, low, high }: RegisterBits) {
        if let Some([first, second]) = self.words.get_mut(word..word + 2).and_then(|pair| pair.first_chunk_mut()) {
            *first &= !low;
            *second &= !high;
        } else if let Some(last) = self.words.get_mut(word) {
            *last &= !low;
        }
    }
}

/// The bits of a register in a [`LiveSet`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RegisterBits {
    /// The number of the first word.
    pub(super) word: usize,
    /// Bits in that word.
    pub(super) low: u64,
    /// Bits in the next word.
    pub(super) high: u64,
}

impl RegisterBits {
    /// The bits of the same vector register in the lanes that are not active.
    #[inline(always)]
    pub(super) fn in_other_lanes(self) -> Self {
        Self { word: self.word + VECTORS, ..self }
    }
}

fn is_word_live(from: usize, live: &LiveSet, reg: &Reg) -> bool {
    let (word, low, high) = reg.set_bits();
    let word = word + from;
    let next = live.words.get(word + 1).copied().unwrap_or(0);
    live.words.get(word).copied().unwrap_or(u64::MAX) & low | next & high != 0
}

impl std::fmt::Debug for LiveSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.live_in_any_lane().fmt(formatter)
    }
}

#[inline(always)]
pub(super) fn is_vector(reg: Reg) -> bool {
    matches!(reg.file, RegFile::Vgpr | RegFile::Agpr)
}

/// The words in a function's rows, and their positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLayout {
    words: [u8; WORDS],
    count: u8,
}

impl RowLayout {
    /// Words for all registers of a set of words.
    pub(super) fn of(touched: &[u64; WORDS]) -> Self {
        let mut layout = Self { words: [0; WORDS], count: 0 };
        for word in 0..WORDS {
            let twin = if word < VECTORS { word + VECTORS } else { word.wrapping_sub(VECTORS) };
            let twin = if word < 2 * VECTORS { touched[twin] } else { 0 };
            if word == LAST || touched[word] | twin != 0 {
                layout.words[usize::from(layout.count)] = word as u8;
                layout.count += 1;
            }
        }
        layout
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// The set that a row holds.
    pub(super) fn load_row(&self, row: &[u64]) -> LiveSet {
        let rest = row.last().is_some_and(|word| word & REST != 0);
        let mut live = if rest { LiveSet::EVERYTHING } else { LiveSet::NOTHING };
        for (word, value) in self.words.iter().zip(row) {
            live.words[usize::from(*word)] = *value;
        }
        live
    }

    /// Adds the set that a row holds to another.
    pub(super) fn join_row(&self, row: &[u64], live: &mut LiveSet) {
        if row.last().is_some_and(|word| word & REST != 0) {
            return live.union_with(&self.load_row(row));
        }
        for (word, value) in self.words.iter().zip(row) {
            live.words[usize::from(*word)] |= value;
        }
    }

    /// Merges the transfer of a block into a row: the bits it passes on, and the bits it needs itself. Returns
    /// whether the row changed.
    pub(super) fn merge_through(&self, row: &mut [u64], live: &LiveSet, passes: &[u64], needs: &[u64]) -> bool {
        let mut changed = 0;
        for (((word, value), passes), needs) in self.words.iter().zip(row).zip(passes).zip(needs) {
            let new = live.words[usize::from(*word)] & passes | needs;
            changed |= new & !*value;
            *value |= new;
        }
        changed != 0
    }

    /// The words of a set in a row.
    pub(super) fn store_row(&self, live: &LiveSet, row: &mut [u64]) {
        for (word, value) in self.words.iter().zip(row) {
            *value = live.words[usize::from(*word)];
        }
    }

    /// Adds a set to a row. Returns whether the row changed.
    pub(super) fn merge_into_row(&self, row: &mut [u64], live: &LiveSet) -> bool {
        let mut changed = 0;
        for (word, value) in self.words.iter().zip(row) {
            let new = live.words[usize::from(*word)];
            changed |= new & !*value;
            *value |= new;
        }
        changed != 0
    }
}
