//! The comparison of a GPU's results with the expected ones.

use crate::expected::{ExpectedResults, digest_words};
use crate::inputs::{CASES, INPUT_WORDS, InputSort, RESULT_WORDS, STATED, case_inputs};
use crate::probe_table::{Judgement, Probe};

/// Cases that differ and are reported with all their words.
const SHOWN: usize = 4;

/// A case with another result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseDifference {
    pub case: usize,
    pub inputs: [u32; INPUT_WORDS],
    pub expected: [u32; RESULT_WORDS],
    pub found: [u32; RESULT_WORDS],
}

/// A block of cases of which only a digest is known, with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDifference {
    /// The first case of the block, which has [`STATED`] cases.
    pub first: usize,
    pub expected: u32,
    pub found: u32,
}

/// How the results of a probe differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeDifference {
    /// Cases that differ, among those whose results are known.
    pub count: usize,
    /// The first of them.
    pub cases: Vec<CaseDifference>,
    pub blocks: Vec<BlockDifference>,
}

impl ProbeDifference {
    /// Whether all cases are the same.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.blocks.is_empty()
    }
}

/// Cases that the expected results say something about.
pub fn judged_cases(expected: &ExpectedResults) -> usize {
    if expected.digests.is_empty() { STATED } else { CASES }
}

/// Compares the results of a probe with the expected ones.
pub fn compare_expected(probe: &Probe, expected: &ExpectedResults, found: &[u32]) -> ProbeDifference {
    let mut difference = compare_cases(probe.input, probe.judgement, &expected.stated, found);
    let blocks = found.chunks(STATED * RESULT_WORDS).skip(1);
    for (number, (block, digest)) in blocks.zip(&expected.digests).enumerate() {
        let own = digest_words(block);
        if own != *digest {
            let first = (number + 1) * STATED;
            difference.blocks.push(BlockDifference { first, expected: *digest, found: own });
        }
    }
    difference
}

/// Compares two runs of a probe on one GPU: there, approximations are the same, too.
pub fn compare_runs(input: InputSort, own: &[u32], other: &[u32]) -> ProbeDifference {
    compare_cases(input, Judgement::Exact, own, other)
}

fn compare_cases(input: InputSort, judgement: Judgement, expected: &[u32], found: &[u32]) -> ProbeDifference {
    let mut difference = ProbeDifference::default();
    for (case, (expected, found)) in expected.chunks(RESULT_WORDS).zip(found.chunks(RESULT_WORDS)).enumerate() {
        let (Some(expected), Some(found)) = (expected.first_chunk(), found.first_chunk()) else { continue };
        if is_same_result(judgement, expected, found) {
            continue;
        }
        difference.count += 1;
        if difference.cases.len() < SHOWN {
            let inputs = case_inputs(input, case);
            difference.cases.push(CaseDifference { case, inputs, expected: *expected, found: *found });
        }
    }
    difference
}

fn is_same_result(judgement: Judgement, expected: &[u32; RESULT_WORDS], found: &[u32; RESULT_WORDS]) -> bool {
    let Judgement::Within { bits, units } = judgement else { return expected == found };
    let [own, other] = [expected, found].map(|words| match bits {
        16 => u64::from(words[0] & 0xffff),
        32 => u64::from(words[0]),
        _ => u64::from(words[0]) | u64::from(words[1]) << 32,
    });
    is_near(bits, [own, other], units)
}

/// Whether two numbers are at most so many units in the last place apart; all NaNs are one.
fn is_near(bits: u8, numbers: [u64; 2], units: u64) -> bool {
    let infinity: u64 = match bits {
        16 => 0x7c00,
        32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    let sign = 1 << (bits - 1);
    let [own, other] = numbers;
    match [own & !sign > infinity, other & !sign > infinity] {
        [true, true] => true,
        [false, false] => {
            let places = numbers.map(|number| match number & sign {
                0 => i128::from(number),
                _ => -i128::from(number & !sign),
            });
            places[0].abs_diff(places[1]) <= u128::from(units)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_table::all_probes;

    #[test]
    fn a_changed_word_is_a_difference() {
        let probes = all_probes();
        let exact = probes.iter().find(|probe| probe.names == "v_and_b32").unwrap();
        let words: Vec<u32> = (0..(CASES * RESULT_WORDS) as u32).collect();
        let expected = ExpectedResults::from_words(&words, true);
        assert!(compare_expected(exact, &expected, &words).is_empty());
        let mut other = words.clone();
        other[5] ^= 1;
        let difference = compare_expected(exact, &expected, &other);
        assert_eq!((difference.count, difference.cases[0].case, difference.cases[0].found[1]), (1, 1, 4));
        let mut other = words;
        other[STATED * RESULT_WORDS * 2] ^= 1;
        let difference = compare_expected(exact, &expected, &other);
        assert_eq!((difference.count, difference.blocks[0].first), (0, 2 * STATED));
    }

    #[test]
    fn approximations_have_a_tolerance() {
        let one = u64::from(1.0_f32.to_bits());
        assert!(is_near(32, [one, one + 1], 1) && !is_near(32, [one, one + 2], 1));
        assert!(is_near(32, [0, 0x8000_0000], 0) && is_near(16, [0x7e00, 0xfe01], 0));
        assert!(!is_near(32, [u64::from(f32::NAN.to_bits()), one], 1 << 31));
    }
}
