//! Comparisons of vector instructions.

use crate::lanes::{LANES, LaneType, Lanes, WideLanes, lanes_where};
use crate::mode::FloatMode;
use crate::on_long_vectors;

/// The relation, and the numbers that it compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompareRow {
    pub operation: CompareOperation,
    /// Type of the sources.
    pub of: LaneType,
    pub signed: bool,
    /// The result is EXEC.
    pub writes_exec: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOperation {
    /// As a set of outcomes: bit 0 less, 1 equal, 2 greater, 3 unordered.
    Outcomes(u8),
    /// The first is in a class of floats that the second names.
    Class,
}

/// The sets of outcomes by name.
const RELATIONS: &[(&str, u8)] = &[
    ("f", 0),
    ("lt", 1),
    ("eq", 2),
    ("le", 3),
    ("gt", 4),
    ("lg", 5),
    ("ge", 6),
    ("o", 7),
    ("u", 8),
    ("nge", 9),
    ("nlg", 10),
    ("ngt", 11),
    ("nle", 12),
    ("neq", 13),
    ("nlt", 14),
    ("ne", 13),
    ("tru", 15),
    ("t", 15),
];

/// The comparison that a mnemonic such as `v_cmpx_lt_i32` names.
pub(crate) fn find_comparison(mnemonic: &str) -> Option<CompareRow> {
    let rest = mnemonic.strip_prefix("v_cmp")?;
    let (writes_exec, rest) = match rest.strip_prefix("x_") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('_')?),
    };
    let (relation, type_name) = rest.split_once('_')?;
    let (of, signed) = match type_name {
        "f16" => (LaneType::F16, false),
        "f32" => (LaneType::F32, false),
        "f64" => (LaneType::F64, false),
        "i16" => (LaneType::B16, true),
        "u16" => (LaneType::B16, false),
        "i32" => (LaneType::B32, true),
        "u32" => (LaneType::B32, false),
        "i64" => (LaneType::B64, true),
        "u64" => (LaneType::B64, false),
        _ => return None,
    };
    let operation = match relation {
        "class" => CompareOperation::Class,
        _ => CompareOperation::Outcomes(RELATIONS.iter().find(|(name, _)| *name == relation)?.1),
    };
    Some(CompareRow { operation, of, signed, writes_exec })
}

impl CompareRow {
    /// The bit of each lane.
    pub fn evaluate_lanes(&self, a: &WideLanes, b: &WideLanes, mode: FloatMode) -> u32 {
        let outcomes = match self.operation {
            CompareOperation::Outcomes(outcomes) => outcomes,
            CompareOperation::Class => return lane_mask(|lane| class_of(self.of, a[lane]) & b[lane] as u32 != 0),
        };
        match (self.of, self.signed) {
            (LaneType::F32, _) => lane_mask(|lane| {
                ordering_outcome_holds(
                    flushed_f32_value(a[lane], &mode).partial_cmp(&flushed_f32_value(b[lane], &mode)),
                    outcomes,
                )
            }),
            (LaneType::F64, _) => lane_mask(|lane| {
                ordering_outcome_holds(
                    flushed_f64_value(a[lane], &mode).partial_cmp(&flushed_f64_value(b[lane], &mode)),
                    outcomes,
                )
            }),
            (LaneType::F16, _) => lane_mask(|lane| {
                ordering_outcome_holds(
                    flushed_f16_value(a[lane], &mode).partial_cmp(&flushed_f16_value(b[lane], &mode)),
                    outcomes,
                )
            }),
            (LaneType::B16, true) => {
                lane_mask(|lane| ordering_outcome_holds(Some((a[lane] as i16).cmp(&(b[lane] as i16))), outcomes))
            }
            (LaneType::B16, false) => {
                lane_mask(|lane| ordering_outcome_holds(Some((a[lane] as u16).cmp(&(b[lane] as u16))), outcomes))
            }
            (LaneType::B32, true) => {
                lane_mask(|lane| ordering_outcome_holds(Some((a[lane] as i32).cmp(&(b[lane] as i32))), outcomes))
            }
            (LaneType::B32, false) => {
                lane_mask(|lane| ordering_outcome_holds(Some((a[lane] as u32).cmp(&(b[lane] as u32))), outcomes))
            }
            (_, true) => {
                lane_mask(|lane| ordering_outcome_holds(Some((a[lane] as i64).cmp(&(b[lane] as i64))), outcomes))
            }
            _ => lane_mask(|lane| ordering_outcome_holds(Some(a[lane].cmp(&b[lane])), outcomes)),
        }
    }
}

fn ordering_outcome_holds(ordering: Option<std::cmp::Ordering>, outcomes: u8) -> bool {
    match ordering {
        Some(std::cmp::Ordering::Less) => outcomes & 1 != 0,
        Some(std::cmp::Ordering::Equal) => outcomes & 2 != 0,
        Some(std::cmp::Ordering::Greater) => outcomes & 4 != 0,
        None => outcomes & 8 != 0,
    }
}

fn flushed_f32_value(bits: u64, mode: &FloatMode) -> f32 {
    mode.flush_source32(f32::from_bits(bits as u32))
}

fn flushed_f64_value(bits: u64, mode: &FloatMode) -> f64 {
    mode.flush_source64(f64::from_bits(bits))
}

fn flushed_f16_value(bits: u64, mode: &FloatMode) -> f32 {
    crate::float::f16_to_f32(mode.flush_source16(bits as u16))
}

/// The lanes in which one of the relations holds that are wanted.
#[inline(always)]
fn ordered_lanes<E: Copy, T: PartialOrd>(outcomes: u8, [a, b]: [&[E; LANES]; 2], value: impl Fn(E) -> T) -> u32 {
    match outcomes & 7 {
        0 => 0,
        1 => lanes_where(|lane| lane_value_pair(lane, &value, a, b).0 < lane_value_pair(lane, &value, a, b).1),
        2 => lanes_where(|lane| lane_value_pair(lane, &value, a, b).0 == lane_value_pair(lane, &value, a, b).1),
        3 => lanes_where(|lane| lane_value_pair(lane, &value, a, b).0 <= lane_value_pair(lane, &value, a, b).1),
        4 => lanes_where(|lane| lane_value_pair(lane, &value, a, b).0 > lane_value_pair(lane, &value, a, b).1),
        5 => lanes_where(|lane| {
            (lane_value_pair(lane, &value, a, b).0 < lane_value_pair(lane, &value, a, b).1)
                | (lane_value_pair(lane, &value, a, b).0 > lane_value_pair(lane, &value, a, b).1)
        }),
        6 => lanes_where(|lane| lane_value_pair(lane, &value, a, b).0 >= lane_value_pair(lane, &value, a, b).1),
        _ => lanes_where(|lane| {
            (lane_value_pair(lane, &value, a, b).0 <= lane_value_pair(lane, &value, a, b).1)
                | (lane_value_pair(lane, &value, a, b).0 > lane_value_pair(lane, &value, a, b).1)
        }),
    }
}

fn lane_value_pair<E: Copy, T: PartialOrd>(lane: usize, value: &impl Fn(E) -> T, a: &[E; 32], b: &[E; 32]) -> (T, T) {
    (value(a[lane]), value(b[lane]))
}

/// The same with the lanes that lack an order, if these are wanted.
#[inline(always)]
fn partly_ordered<E: Copy, T: PartialOrd>(outcomes: u8, sources: [&[E; LANES]; 2], value: impl Fn(E) -> T) -> u32 {
    let unordered = if outcomes & 8 == 0 { 0 } else { !ordered_lanes(7, sources, &value) };
    ordered_lanes(outcomes, sources, &value) | unordered
}

impl CompareRow {
    /// The bit of each lane, for sources of at most 32 bits. The same as [`CompareRow::evaluate`], faster.
    pub fn evaluate_words(&self, a: &Lanes, b: &Lanes, mode: FloatMode) -> u32 {
        #[inline(always)]
        fn all(row: &CompareRow, outcomes: u8, a: &Lanes, b: &Lanes) -> u32 {
            match (row.of, row.signed) {
                (LaneType::F32, _) => partly_ordered(outcomes, [a, b], f32::from_bits),
                (LaneType::B32, true) => ordered_lanes(outcomes, [a, b], |bits| bits as i32),
                (LaneType::B32, false) => ordered_lanes(outcomes, [a, b], |bits| bits),
                (_, true) => ordered_lanes(outcomes, [a, b], |bits| bits as i16),
                (_, false) => ordered_lanes(outcomes, [a, b], |bits| bits as u16),
            }
        }
        let row = self;
        match (self.operation, self.of) {
            (CompareOperation::Outcomes(outcomes), LaneType::B16 | LaneType::B32) => {
                on_long_vectors!(all(row: &CompareRow, outcomes: u8, a: &Lanes, b: &Lanes) -> u32)
            }
            (CompareOperation::Outcomes(outcomes), LaneType::F32) if mode.is_plain32() => {
                on_long_vectors!(all(row: &CompareRow, outcomes: u8, a: &Lanes, b: &Lanes) -> u32)
            }
            _ => self.evaluate_lanes(&a.map(u64::from), &b.map(u64::from), mode),
        }
    }

    /// The same for sources of 64 bits.
    pub fn evaluate_wide(&self, a: &WideLanes, b: &WideLanes, mode: FloatMode) -> u32 {
        #[inline(always)]
        fn all(row: &CompareRow, outcomes: u8, a: &WideLanes, b: &WideLanes) -> u32 {
            match (row.of, row.signed) {
                (LaneType::F64, _) => partly_ordered(outcomes, [a, b], f64::from_bits),
                (_, true) => ordered_lanes(outcomes, [a, b], |bits| bits as i64),
                (_, false) => ordered_lanes(outcomes, [a, b], |bits| bits),
            }
        }
        let row = self;
        match (self.operation, self.of) {
            (CompareOperation::Outcomes(outcomes), LaneType::B64) => {
                on_long_vectors!(all(row: &CompareRow, outcomes: u8, a: &WideLanes, b: &WideLanes) -> u32)
            }
            (CompareOperation::Outcomes(outcomes), LaneType::F64) if mode.is_plain16() => {
                on_long_vectors!(all(row: &CompareRow, outcomes: u8, a: &WideLanes, b: &WideLanes) -> u32)
            }
            _ => self.evaluate_lanes(a, b, mode),
        }
    }
}

#[inline]
fn lane_mask(bit: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).fold(0, |mask, lane| mask | u32::from(bit(lane)) << lane)
}

/// The class of a float as a bit: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0,
/// +0, +denormal, +normal, +infinity.
fn class_of(of: LaneType, bits: u64) -> u32 {
    let (mantissa_bits, exponent_bits) = match of {
        LaneType::F16 => (10, 5),
        LaneType::F64 => (52, 11),
        _ => (23, 8),
    };
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let all = (1_u64 << exponent_bits) - 1;
    let exponent = bits >> mantissa_bits & all;
    let negative = bits >> (mantissa_bits + exponent_bits) & 1 != 0;
    match (exponent, mantissa) {
        (0, 0) => signed_class_bit(6, 5, negative),
        (0, _) => signed_class_bit(7, 4, negative),
        (exponent, 0) if exponent == all => signed_class_bit(9, 2, negative),
        (exponent, _) if exponent == all => 1 << (mantissa >> (mantissa_bits - 1)),
        _ => signed_class_bit(8, 3, negative),
    }
}

fn signed_class_bit(plus: u32, minus: u32, negative: bool) -> u32 {
    1 << if negative { minus } else { plus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_and_its_opposite_are_complements() {
        let outcomes = |name: &str| RELATIONS.iter().find(|(found, _)| *found == name).unwrap().1;
        for name in ["lt", "eq", "le", "gt", "lg", "ge"] {
            assert_eq!(outcomes(name) ^ 15, outcomes(&format!("n{name}")), "{name}");
        }
        assert_eq!(outcomes("o") ^ 15, outcomes("u"));
    }

    #[test]
    fn comparisons_of_words_and_of_pairs_are_those_of_any_size() {
        const WORDS: [u32; 9] =
            [0, 1 << 31, 1, 0x3f80_0000, 0xbf80_8000, 0x7f80_0000, 0x7fc0_0001, 0x8000_7fff, 0x007f_ffff];
        for type_name in ["f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64"] {
            for (relation, _) in RELATIONS {
                let row = find_comparison(&format!("v_cmp_{relation}_{type_name}")).unwrap();
                for turn in 0..WORDS.len() {
                    let of = |number: usize| u64::from(WORDS[number % 9]) | u64::from(WORDS[number * 5 % 9]) << 32;
                    let a: WideLanes = std::array::from_fn(of);
                    let b: WideLanes = std::array::from_fn(|lane| of(lane * 4 / 3 + turn));
                    for mode in [FloatMode::PLAIN, FloatMode { bits: 0, ..FloatMode::PLAIN }] {
                        let expected = row.evaluate_lanes(&a, &b, mode);
                        let found = match row.of.bits() {
                            64 => row.evaluate_wide(&a, &b, mode),
                            _ => row.evaluate_words(&a.map(|bits| bits as u32), &b.map(|bits| bits as u32), mode),
                        };
                        assert_eq!(found, expected, "{relation} {type_name}, turn {turn}, {mode:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn classes_are_apart() {
        let class = |value: f32| class_of(LaneType::F32, u64::from(value.to_bits()));
        assert_eq!(class(f32::NAN), 2);
        assert_eq!(class(f32::NEG_INFINITY), 4);
        assert_eq!(class(-1.0), 8);
        assert_eq!(class(-0.0), 32);
        assert_eq!(class(0.0), 64);
        assert_eq!(class(1e-40), 128);
        assert_eq!(class(1.0), 256);
        assert_eq!(class(f32::INFINITY), 512);
    }
}
