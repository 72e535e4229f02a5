//! Products of matrices: what their names say, and the arithmetic of one element of a result.
//!
//! Hardware adds the products of an element in an order, and with roundings between, that no document states for all
//! targets. So there are three models of it ([`MatrixModel`]), and each sum says whether they can differ at all: a sum is
//! *free of order* if every partial sum in any order is exact. Nothing else is known to be what hardware gives.
//!
//! Absent on purpose: the layout of matrices in registers (`hotswap-emulator`).

use crate::exact::ExactSum;
use crate::float::{round_to_bf16, round_to_f16, round_to_f32};
use crate::mode::Rounding::NearestEven;
use crate::rounding::fma_odd;

/// The kind of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixKind {
    /// CDNA.
    Mfma,
    /// CDNA, with a first matrix of which two of four elements are 0.
    SparseMfma,
    /// RDNA, and gfx12.5.
    Wmma,
    /// The same with a sparse first matrix.
    SparseWmma,
}

/// The format of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFormat {
    F64,
    F32,
    /// 32-bit floats of which ten bits of the mantissa count.
    Xf32,
    F16,
    Bf16,
    /// 8-bit floats, E4M3.
    Fp8,
    /// 8-bit floats, E5M2.
    Bf8,
    /// 6-bit floats, E2M3.
    Fp6,
    /// 6-bit floats, E3M2.
    Bf6,
    /// 4-bit floats, E2M1.
    Fp4,
    I32,
    I8,
    I4,
}

impl MatrixFormat {
    pub const fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::F32 | Self::Xf32 | Self::I32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Bf8 | Self::I8 => 8,
            Self::Fp6 | Self::Bf6 => 6,
            Self::I4 | Self::Fp4 => 4,
        }
    }

    /// Whether it is an integer.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I8 | Self::I4)
    }

    /// Bits of a mantissa with the leading one, and the exponent of the smallest normal number.
    const fn precision(self) -> (i32, i32) {
        match self {
            Self::F64 => (53, -1022),
            Self::F16 => (11, -14),
            Self::Bf16 => (8, -126),
            _ => (24, -126),
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "f64" => Self::F64,
            "f32" => Self::F32,
            "xf32" => Self::Xf32,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "fp8" => Self::Fp8,
            "bf8" => Self::Bf8,
            "i32" => Self::I32,
            "i8" | "iu8" => Self::I8,
            "iu4" => Self::I4,
            _ => return None,
        })
    }

    /// The format with a number in the operands of products whose names end in `f8f6f4`.
    pub const fn of_operand(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Fp8,
            1 => Self::Bf8,
            2 => Self::Fp6,
            3 => Self::Bf6,
            4 => Self::Fp4,
            _ => return None,
        })
    }

    /// Rounds a value that is exact or rounded to odd.
    fn round(self, value: f64) -> u64 {
        match self {
            Self::F64 => value.to_bits(),
            Self::F16 => round_to_f16(value, NearestEven).into(),
            Self::Bf16 => round_to_bf16(value, NearestEven).into(),
            _ => round_to_f32(value, NearestEven).to_bits().into(),
        }
    }

    /// The value of an element of a result.
    pub fn accumulator_value(self, bits: u64) -> f64 {
        match self {
            Self::F64 => f64::from_bits(bits),
            Self::F16 => crate::float::f16_to_f32(bits as u16).into(),
            Self::Bf16 => crate::float::bf16_to_f32(bits as u16).into(),
            _ => f32::from_bits(bits as u32).into(),
        }
    }
}

/// A product: `D = A * B + C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixRow {
    pub kind: MatrixKind,
    pub rows: u32,
    pub columns: u32,
    /// Columns of A, rows of B.
    pub depth: u32,
    /// Formats of A and B.
    pub sources: [MatrixFormat; 2],
    pub accumulator: MatrixFormat,
    /// Format of D.
    pub result: MatrixFormat,
}

/// The end of the names of products whose formats are operands.
pub const OPERAND_FORMATS: &str = "_f8f6f4";

/// The product that a mnemonic names. Where formats are operands, those of the row are not them.
pub fn matrix_row(mnemonic: &str) -> Option<MatrixRow> {
    const KINDS: [(&str, MatrixKind); 4] = [
        ("v_mfma_", MatrixKind::Mfma),
        ("v_smfmac_", MatrixKind::SparseMfma),
        ("v_wmma_", MatrixKind::Wmma),
        ("v_swmmac_", MatrixKind::SparseWmma),
    ];
    let (kind, rest) = KINDS.iter().find_map(|(start, kind)| Some((*kind, mnemonic.strip_prefix(start)?)))?;
    let rest = ["scale_", "scale16_"].iter().find_map(|scale| rest.strip_prefix(scale)).unwrap_or(rest);
    let rest = rest.strip_suffix("f8f6f4").map_or_else(|| rest.to_owned(), |start| format!("{start}fp8"));
    let (result, rest) = rest.split_once('_')?;
    let (accumulator, result) = match result {
        "bf16f32" => (MatrixFormat::F32, MatrixFormat::Bf16),
        name => (MatrixFormat::of_name(name)?, MatrixFormat::of_name(name)?),
    };
    let mut sizes = rest.splitn(3, 'x');
    let (rows, columns, rest) = (sizes.next()?.parse().ok()?, sizes.next()?.parse().ok()?, sizes.next()?);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let depth = rest[..digits].parse().ok()?;
    let words = rest[digits..].split('_').filter(|word| !word.is_empty() && *word != "1k" && !is_block_count(word));
    let formats: Option<Vec<MatrixFormat>> = words.map(MatrixFormat::of_name).collect();
    let sources = match formats?.as_slice() {
        [both] => [*both; 2],
        [first, second] => [*first, *second],
        _ => return None,
    };
    Some(MatrixRow { kind, rows, columns, depth, sources, accumulator, result })
}

fn is_block_count(word: &str) -> bool {
    word.strip_suffix('b').is_some_and(|count| count.parse::<u32>().is_ok())
}

/// A model of the arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatrixModel {
    /// One product after the other, from the first on, each sum rounded.
    #[default]
    Sequential,
    /// The exact sum, rounded once.
    Exact,
    /// Sums and products of integers that stand for the numbers: equal where the same products are added, in any order.
    Ring,
}

/// An element of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixSum {
    pub bits: u64,
    /// It is the same for every order of additions and every grouping.
    pub is_order_free: bool,
}

impl MatrixModel {
    /// `c` and the sum of the products. Elements of the sources are exact as 64-bit floats.
    pub fn sum_products(
        self,
        row: &MatrixRow,
        c: u64,
        products: impl Iterator<Item = (f64, f64)> + Clone,
    ) -> MatrixSum {
        match self {
            Self::Ring => MatrixSum { bits: ring_sum(row.result.bits(), c, products), is_order_free: true },
            _ => self.float_sum(row, row.accumulator.accumulator_value(c), products),
        }
    }

    fn float_sum(self, row: &MatrixRow, c: f64, products: impl Iterator<Item = (f64, f64)> + Clone) -> MatrixSum {
        let mut order = OrderTest::new(c);
        let mut plain = c;
        for (a, b) in products.clone() {
            order.add_product(a, b);
            plain += a * b;
        }
        if !plain.is_finite() {
            let bits = if plain.is_nan() { row.result.round(f64::NAN) } else { row.result.round(plain) };
            return MatrixSum { bits, is_order_free: !plain.is_nan() && order.is_infinite };
        }
        let is_order_free = order.is_free(row.result);
        if is_order_free {
            // Every partial sum is exact, the plain one too.
            return MatrixSum { bits: row.result.round(plain), is_order_free };
        }
        let bits = match self {
            Self::Exact if row.result == MatrixFormat::F64 => exact_sum(c, products).rounded_sum().to_bits(),
            Self::Exact => row.result.round(exact_sum(c, products).rounded_to_odd()),
            _ if row.result == MatrixFormat::F64 => products.fold(c, |sum, (a, b)| a.mul_add(b, sum)).to_bits(),
            _ => row.result.round(products.fold(c, accumulate_odd_fma)),
        };
        MatrixSum { bits, is_order_free }
    }
}

fn accumulate_odd_fma(sum: f64, (a, b): (f64, f64)) -> f64 {
    f64::from(round_to_f32(fma_odd(a, b, sum), NearestEven))
}

fn exact_sum(c: f64, products: impl Iterator<Item = (f64, f64)>) -> ExactSum {
    let mut sum = ExactSum::default();
    sum.add(c);
    for (a, b) in products {
        sum.add(a * b);
        sum.add(a.mul_add(b, -(a * b)));
    }
    sum
}

/// Whether all partial sums of some terms are exact in a format: all terms are multiples of a number, and the sum of their
/// magnitudes does not have more bits than the format.
struct OrderTest {
    lowest: i32,
    magnitude: f64,
    is_infinite: bool,
}

impl OrderTest {
    fn new(c: f64) -> Self {
        let mut test = Self { lowest: i32::MAX, magnitude: 0.0, is_infinite: c.is_infinite() };
        test.add_term(c);
        test
    }

    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add_term(product);
        self.add_term(a.mul_add(b, -product));
        self.is_infinite |= a.is_infinite() || b.is_infinite();
    }

    fn add_term(&mut self, value: f64) {
        if value != 0.0 && value.is_finite() {
            let bits = value.to_bits();
            let exponent = (bits >> 52 & 0x7ff) as i32;
            let mantissa = bits & ((1 << 52) - 1) | u64::from(exponent != 0) << 52;
            self.lowest = self.lowest.min(exponent.max(1) - 1075 + mantissa.trailing_zeros() as i32);
            self.magnitude += value.abs();
        }
    }

    fn is_free(&self, format: MatrixFormat) -> bool {
        let (precision, least) = format.precision();
        if self.lowest == i32::MAX {
            return true;
        }
        // No partial sum is a denormal, which some targets replace by 0.
        self.lowest >= least && self.magnitude * (1.0 + 1e-12) <= 2_f64.powi(self.lowest.min(900) + precision)
    }
}

/// A number of the ring that stands for a float; 0 is 0, and signs are kept.
fn ring_number(value: f64) -> u64 {
    if value == 0.0 {
        return 0;
    }
    let mut bits = value.abs().to_bits();
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ bits >> 29).wrapping_mul(factor);
    }
    let number = bits ^ bits >> 32 | 1;
    if value < 0.0 { number.wrapping_neg() } else { number }
}

fn ring_sum(bits: u32, c: u64, products: impl Iterator<Item = (f64, f64)>) -> u64 {
    let sum = products.fold(c, |sum, (a, b)| sum.wrapping_add(ring_number(a).wrapping_mul(ring_number(b))));
    sum & u64::MAX >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> MatrixRow {
        matrix_row(name).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn names_of_all_generations_are_read() {
        let found = row("v_mfma_f32_32x32x4bf16_1k");
        assert_eq!((found.rows, found.columns, found.depth), (32, 32, 4));
        assert_eq!((found.sources, found.result), ([MatrixFormat::Bf16; 2], MatrixFormat::F32));
        let found = row("v_mfma_f64_4x4x4_4b_f64");
        assert_eq!((found.rows, found.depth, found.sources[0]), (4, 4, MatrixFormat::F64));
        let found = row("v_wmma_f16_16x16x128_fp8_bf8");
        assert_eq!(found.sources, [MatrixFormat::Fp8, MatrixFormat::Bf8]);
        assert_eq!((found.kind, found.depth, found.result), (MatrixKind::Wmma, 128, MatrixFormat::F16));
        let found = row("v_wmma_bf16f32_16x16x32_bf16");
        assert_eq!((found.accumulator, found.result), (MatrixFormat::F32, MatrixFormat::Bf16));
        assert_eq!(row("v_mfma_i32_16x16x4i8").sources[1], MatrixFormat::I8);
        assert_eq!(row("v_smfmac_i32_32x32x64_i8").kind, MatrixKind::SparseMfma);
        for name in ["v_mfma_f32_16x16x128_f8f6f4", "v_wmma_scale16_f32_16x16x128_f8f6f4"] {
            assert_eq!((row(name).rows, row(name).depth), (16, 128), "{name}");
        }
        for name in ["v_wmma_f32_32x16x128_f4", "v_wmma_ld_scale_paired_b32", "v_add_f32", "v_mfma_ld_scale_b32"] {
            assert_eq!(matrix_row(name), None, "{name}");
        }
    }

    #[test]
    fn models_differ_where_roundings_do_and_say_so() {
        let row = row("v_mfma_f32_16x16x4f32");
        let bits = |value: f32| u64::from(value.to_bits());
        let small = 2_f64.powi(-24);
        let products = [(1.0, small), (1.0, small), (1.0, small)];
        let sum = |model: MatrixModel| model.sum_products(&row, bits(1.0), products.iter().copied());
        assert_eq!(sum(MatrixModel::Sequential), MatrixSum { bits: bits(1.0), is_order_free: false });
        // 1 + 3/2 ulp: the tie goes to the even neighbour.
        assert_eq!(sum(MatrixModel::Exact).bits, bits(1.0) + 2);
        let products = [(3.0, 5.0), (-2.0, 7.0), (0.5, 0.25)];
        for model in [MatrixModel::Sequential, MatrixModel::Exact] {
            let sum = model.sum_products(&row, bits(10.0), products.iter().copied());
            assert_eq!(sum, MatrixSum { bits: bits(11.125), is_order_free: true });
        }
    }

    #[test]
    fn the_ring_sees_other_products_and_no_order() {
        let row = row("v_mfma_f32_16x16x4f32");
        let products = [(1.5, 2.25), (-3.0, 7.0), (1e-3, 5.0)];
        let sum = |order: [usize; 3]| {
            MatrixModel::Ring.sum_products(&row, 7, order.iter().map(|number| products[*number])).bits
        };
        assert_eq!(sum([0, 1, 2]), sum([2, 0, 1]));
        assert_ne!(sum([0, 1, 2]), sum([0, 1, 1]));
        let negated = MatrixModel::Ring.sum_products(&row, 0, [(1.5, 2.25), (-1.5, 2.25)].into_iter());
        assert_eq!(negated.bits, 0);
    }
}
