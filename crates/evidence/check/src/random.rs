//! Numbers that depend on a seed only, and on which code is likely to fail.

/// A source of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

/// A number that depends on all of both.
pub(crate) fn mix_seed(seed: u64, value: u64) -> u64 {
    let mut x = seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Numbers at which integers wrap around, and special floats of 32 and 16 bits, with their neighbours.
const SPECIAL: [u32; 32] = [
    0,
    1,
    2,
    0xffff_ffff,
    0xffff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0x0000_ffff,
    0x0001_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7f80_0001,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f7f_ffff,
    0x0080_0000,
    0x007f_ffff,
    0x0000_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x4b00_0000,
    0x7c00_7c00,
    0x7e00_fc00,
    0x0400_03ff,
    0x47e0_0000,
    0x47e8_0000,
    0x477f_f000,
    0x3880_0000,
    0x3680_0000,
    0x3700_0001,
    0x3c00_bc00,
];

/// The kind of numbers that a state consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberTheme {
    /// All of the others.
    Mixed,
    /// Any 32 bits, all equally likely.
    Uniform,
    Special,
    /// Small ones, as addresses of LDS and counts are.
    Small,
    /// Floats in the range of small formats, many of them halfway between two numbers.
    Ties,
}

/// The themes in the order in which states have them.
pub(crate) const THEMES: [NumberTheme; 5] =
    [NumberTheme::Mixed, NumberTheme::Small, NumberTheme::Uniform, NumberTheme::Special, NumberTheme::Ties];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix_seed(seed, 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix_seed(self.0, 1)
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    pub(crate) fn choose_from<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A word of a theme.
    pub(crate) fn draw_word(&mut self, theme: NumberTheme) -> u32 {
        let bits = self.next();
        let (number, rest) = (bits as u32, (bits >> 32) as u32);
        match theme {
            NumberTheme::Mixed => {
                let theme = THEMES[1 + rest as usize % (THEMES.len() - 1)];
                self.draw_word(theme)
            }
            NumberTheme::Uniform => number,
            NumberTheme::Special => {
                let nearby = [0, 0, 0, 1, u32::MAX][rest as usize >> 8 & 3];
                SPECIAL[rest as usize % SPECIAL.len()].wrapping_add(nearby)
            }
            NumberTheme::Small => match rest & 3 {
                0 => number & 0xff,
                1 => number & 0xffc,
                2 => number & 0xff8,
                _ => number & 0xffff,
            },
            NumberTheme::Ties => {
                let tie = [0, 0x7_ffff, 0x8_0000, 0x8_0001, 0xf_ffff, number & 0xf_ffff][rest as usize % 6];
                (0x3500_0000 + (number >> 3) % 0x1400_0000) & 0xfff0_0000 | tie | (number & 1) << 31
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_the_seed_only() {
        let words = |seed| {
            let mut random = Random::new(seed);
            (0..1000).map(|_| random.draw_word(NumberTheme::Mixed)).collect::<Vec<_>>()
        };
        assert_eq!(words(1), words(1));
        assert_ne!(words(1), words(2));
        // Every special number occurs.
        let mut random = Random::new(3);
        let all: std::collections::BTreeSet<u32> =
            (0..20_000).map(|_| random.draw_word(NumberTheme::Special)).collect();
        assert!(SPECIAL.iter().all(|number| all.contains(number)));
    }
}
