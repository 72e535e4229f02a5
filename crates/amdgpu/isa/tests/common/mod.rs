//! Random instructions of every table entry.

#![allow(dead_code, reason = "each test file uses its part")]

use hotswap_isa::{Inst, Isa, Name, TableEntry, Target, Wave};

/// A generator of numbers that is the same on every run (xorshift*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// Every target with every wave size and spelling that differ.
pub(crate) fn settings() -> Vec<Isa> {
    let mut settings: Vec<Isa> = Vec::new();
    for target in Target::all_targets() {
        for wave in [Wave::W32, Wave::W64] {
            for true16 in [true, false] {
                let isa = Isa::new(target).with_wave(wave).with_true16(true16);
                if !settings.contains(&isa) {
                    settings.push(isa);
                }
            }
        }
    }
    settings
}

/// For every entry, a few settings that have it.
pub(crate) fn entries(most: usize) -> Vec<(TableEntry, Vec<Isa>)> {
    let settings = settings();
    let having = |entry: TableEntry| settings.iter().copied().filter(|isa| entry.available(*isa)).collect::<Vec<_>>();
    let spread = |all: Vec<Isa>| {
        let step = all.len().div_ceil(most).max(1);
        all.into_iter().step_by(step).collect::<Vec<_>>()
    };
    TableEntry::all_entries().map(|entry| (entry, spread(having(entry)))).collect()
}

/// An instruction of `entry` with random fields, if the generated bits decode to it: at first any bits, then with
/// operands that most fields accept.
pub(crate) fn random(entry: TableEntry, isa: Isa, random: &mut Random) -> Option<Inst> {
    let (value, mask) = entry.fixed();
    let wild = value | random.wide() & !mask;
    let tame = entry.slots().iter().fold(value, |word, slot| {
        let number = if slot.name == Name::Fi { 0xe9 } else { 256 | random.next() & 62 };
        slot.pieces().iter().filter(|piece| piece.at < 128).fold(word, |word, piece| {
            let ones = 1u128.checked_shl(u32::from(piece.width)).map_or(u128::MAX, |bit| bit - 1);
            word | (u128::from(number >> piece.from) & ones) << piece.at & !mask
        })
    });
    [wild, tame].into_iter().find_map(|word| {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&word.to_le_bytes());
        // The encoding is followed by a literal or by nothing.
        bytes[usize::from(entry.bytes())..].fill_with(|| random.next() as u8);
        isa.decode(&bytes).ok().filter(|inst| inst.entry() == entry)
    })
}
