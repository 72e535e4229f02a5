//! The inputs of probes: edge cases of each sort of number, and seeded ones.
//!
//! Invariant: an input depends on its sort and number alone, so that a report needs to state no more than these.

/// Cases of a probe.
pub const CASES: usize = 1024;
/// Cases whose expected results are stated one by one; of the others, digests are.
pub const STATED: usize = 32;
/// Words of the inputs of a case: three numbers of two words, and two that are 0.
pub const INPUT_WORDS: usize = 8;
/// Words of the results of a case.
pub const RESULT_WORDS: usize = 4;

/// The sort of numbers that the inputs of a probe are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSort {
    /// Integers, and masks of bits.
    Bits,
    /// Two numbers of 16 bits in each word.
    Half,
    /// Numbers of 32 bits.
    Single,
    /// Numbers of 64 bits.
    Double,
}

const BITS: &[u32] = &[
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x0f0f_0f0f,
    0x5555_5555,
    0xaaaa_aaaa,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x0102_0304,
    0x00ff_00ff,
    0x7fff_8000,
];

/// Zeros, denormals, the smallest and largest, halves that round, infinities, quiet NaNs.
const HALVES: &[u16] = &[
    0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3800, 0x3c00, 0xbc00, 0x3c01, 0x3e00, 0x4000, 0x4100, 0xc500, 0x5640,
    0x63ff, 0x6400, 0x6401, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00,
];

const SINGLES: &[u32] = &[
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3380_0000,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3fc0_0000,
    0x4000_0000,
    0x4020_0000,
    0xc060_0000,
    0x4049_0fdb,
    0x4b00_0000,
    0x4b7f_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x5f80_0000,
    0x7f00_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x477f_e000,
    0x3880_0000,
    0x3370_0000,
];

const DOUBLES: &[u64] = &[
    0,
    1 << 63,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0x4009_21fb_5444_2d18,
    0x41df_ffff_ffc0_0000,
    0x41e0_0000_0000_0000,
    0x4330_0000_0000_0000,
    0x47ef_ffff_e000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
];

/// Numbers that follow from a seed (SplitMix64).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next_number() % of.len() as u64) as usize]
    }

    /// A number whose exponent is near those of the others, so that sums and products round; or an edge case.
    fn next_single(&mut self) -> u32 {
        let bits = self.next_number();
        match bits >> 62 {
            0 | 1 => self.choose(SINGLES),
            2 => (bits as u32 & 0x807f_ffff) | (112 + (bits >> 40 & 31) as u32) << 23,
            _ => quiet_single(bits as u32),
        }
    }

    fn next_half(&mut self) -> u16 {
        let bits = self.next_number();
        match bits >> 62 {
            0 | 1 => self.choose(HALVES),
            2 => (bits as u16 & 0x83ff) | (10 + (bits >> 40 & 7) as u16) << 10,
            _ => quiet_half(bits as u16),
        }
    }

    fn next_double(&mut self) -> u64 {
        let bits = self.next_number();
        match self.next_number() >> 62 {
            0 | 1 => self.choose(DOUBLES),
            2 => bits & 0x800f_ffff_ffff_ffff | (1000 + (self.next_number() & 31)) << 52,
            _ => quiet_double(bits),
        }
    }

    fn next_bits(&mut self) -> u32 {
        let bits = self.next_number();
        match bits >> 62 {
            0 | 1 => self.choose(BITS),
            2 => bits as u32 >> (bits >> 40 & 31),
            _ => bits as u32,
        }
    }

    /// The two words of a number.
    fn next_words(&mut self, sort: InputSort) -> [u32; 2] {
        match sort {
            InputSort::Bits => [self.next_bits(), self.next_bits()],
            InputSort::Single => [self.next_single(), self.next_single()],
            InputSort::Double => {
                let number = self.next_double();
                [number as u32, (number >> 32) as u32]
            }
            InputSort::Half => [0, 1].map(|_| u32::from(self.next_half()) | u32::from(self.next_half()) << 16),
        }
    }
}

/// Signalling NaNs become quiet: what becomes of them depends on modes that probes do not ask about.
fn quiet_single(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0x7f80_0000 { bits | 0x40_0000 } else { bits }
}

fn quiet_half(bits: u16) -> u16 {
    if bits & 0x7c00 == 0x7c00 { bits | 0x200 } else { bits }
}

fn quiet_double(bits: u64) -> u64 {
    const EXPONENT: u64 = 0x7ff << 52;
    if bits & EXPONENT == EXPONENT { bits | 1 << 51 } else { bits }
}

/// The inputs of one case.
pub fn case_inputs(sort: InputSort, case: usize) -> [u32; INPUT_WORDS] {
    let mut numbers = SeededNumbers((case as u64) << 8 | sort as u64);
    let [a, mut b, c] = [(); 3].map(|()| numbers.next_words(sort));
    // Numbers of 64 bits are hardly ever equal by chance.
    if case % 16 == 5 {
        b = a;
    }
    [a[0], a[1], b[0], b[1], c[0], c[1], 0, 0]
}

/// The inputs of all cases.
pub fn all_inputs(sort: InputSort) -> Vec<u32> {
    (0..CASES).flat_map(|case| case_inputs(sort, case)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_edge_cases_and_others() {
        let words = all_inputs(InputSort::Single);
        assert_eq!(words.len(), CASES * INPUT_WORDS);
        assert!(SINGLES.iter().all(|edge| words.contains(edge)));
        assert!(words.iter().any(|word| !SINGLES.contains(word)));
        assert_eq!(case_inputs(InputSort::Bits, 5), case_inputs(InputSort::Bits, 5));
        assert_ne!(case_inputs(InputSort::Bits, 5), case_inputs(InputSort::Bits, 6));
    }
}
