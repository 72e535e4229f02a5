//! Floats of 8 bits, in both flavours: OCP (gfx950, gfx12) and FNUZ, without infinity and negative zero (gfx942).
//!
//! Invariants: conversions to 32 bits are exact; those to 8 bits round to nearest, ties to even. Sources: the OCP 8-bit
//! floating-point specification; LLVM's `APFloat` semantics `Float8E4M3FN`, `Float8E5M2`, `Float8E4M3FNUZ`, `Float8E5M2FNUZ`.
//!
//! Absent on purpose: stochastic rounding, whose documents contradict each other about the addend, and unsigned E5M3.

use crate::float::round_magnitude;
use crate::mode::Rounding;

/// A format of eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float8 {
    /// Bits of the mantissa: 3 (`fp8`) or 2 (`bf8`).
    pub mantissa: u32,
    /// No infinity, no negative zero, one NaN.
    pub is_fnuz: bool,
}

impl Float8 {
    /// The format `fp8` or `bf8` of a target.
    pub const fn new(is_bf8: bool, is_fnuz: bool) -> Self {
        Self { mantissa: if is_bf8 { 2 } else { 3 }, is_fnuz }
    }

    /// The exponent of the smallest normal number.
    const fn least_exponent(self) -> i32 {
        let bias = (1 << (6 - self.mantissa)) - 1;
        1 - bias - self.is_fnuz as i32
    }

    const fn largest(self) -> u8 {
        match (self.is_fnuz, self.mantissa) {
            (true, _) => 0x7f,
            (false, 3) => 0x7e,
            (false, _) => 0x7b,
        }
    }

    /// The code of numbers that are too large, and that of NaNs.
    const fn special_codes(self) -> (u8, u8) {
        match (self.is_fnuz, self.mantissa) {
            (true, _) => (0x80, 0x80),
            (false, 3) => (0x7f, 0x7f),
            (false, _) => (0x7c, 0x7e),
        }
    }

    /// The value; exact. All NaNs are one.
    pub fn decode_value(self, bits: u8) -> f32 {
        let magnitude = bits & 0x7f;
        let (infinity, nan) = self.special_codes();
        let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
        match magnitude {
            _ if self.is_fnuz && bits == nan => f32::NAN,
            _ if self.is_fnuz => sign * self.finite_value(magnitude) + 0.0,
            _ if magnitude == infinity && infinity != nan => sign * f32::INFINITY,
            _ if magnitude > self.largest() => f32::NAN,
            0 => 0.0_f32.copysign(sign),
            _ => sign * self.finite_value(magnitude),
        }
    }

    fn finite_value(self, magnitude: u8) -> f32 {
        let exponent = i32::from(magnitude >> self.mantissa);
        let fraction = i32::from(magnitude & ((1 << self.mantissa) - 1));
        let (significand, exponent) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << self.mantissa, exponent - 1) };
        significand as f32 * 2_f32.powi(self.least_exponent() + exponent - self.mantissa as i32)
    }

    /// Rounds to nearest. With `clamp` numbers that are too large become the largest one.
    pub fn round(self, value: f64, clamp: bool) -> u8 {
        let (infinity, nan) = self.special_codes();
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let overflow = if clamp { self.largest() } else { infinity };
        let magnitude = match value {
            _ if value.is_nan() => nan,
            _ if value.is_infinite() => infinity,
            _ => {
                let rounded = round_magnitude(value, self.mantissa, self.least_exponent(), Rounding::NearestEven);
                if rounded > self.largest().into() { overflow } else { rounded as u8 }
            }
        };
        // Negative zero does not exist, and its bits are the NaN.
        if self.is_fnuz && magnitude & 0x7f == 0 { magnitude } else { sign | magnitude }
    }
}
