//! The floating-point part of MODE.

/// The floating-point part of MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatMode {
    /// MODE[7:0]: rounding of 32 bits, of 16 and 64 bits, denormals of 32 bits, of 16 and 64 bits; two bits each.
    pub bits: u8,
    /// FP16_OVFL: 16-bit (and smaller) results that overflow become the largest number.
    pub clamp_overflow: bool,
    /// IEEE mode: signalling NaNs are quieted by minimum and maximum (always from gfx12 on).
    pub ieee: bool,
    /// NaNs become 0 where results are clamped (DX10_CLAMP; always from gfx12 on).
    pub clamp_nan: bool,
}

/// A rounding mode, in the order of its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    NearestEven,
    /// To plus infinity.
    Up,
    /// To minus infinity.
    Down,
    /// To zero.
    Zero,
}

impl FloatMode {
    /// Round to nearest, keep all denormals.
    pub const PLAIN: Self = Self { bits: 0xf0, clamp_overflow: false, ieee: true, clamp_nan: true };

    /// Rounding of 32-bit results.
    #[inline]
    pub const fn rounding_f32(self) -> Rounding {
        rounding_of_bits(self.bits & 3)
    }

    /// Rounding of 16- and 64-bit results.
    #[inline]
    pub const fn rounding_f16_f64(self) -> Rounding {
        rounding_of_bits(self.bits >> 2 & 3)
    }

    /// Whether 32-bit operations round to nearest and keep denormals.
    #[inline]
    pub const fn is_plain32(self) -> bool {
        self.bits & 0x33 == 0x30
    }

    /// The same for 16 and 64 bits.
    #[inline]
    pub const fn is_plain16(self) -> bool {
        self.bits & 0xcc == 0xc0
    }

    /// A 32-bit source: denormals become 0 unless they are kept.
    #[inline]
    pub fn flush_source32(self, value: f32) -> f32 {
        if self.bits & 0x10 == 0 && value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
    }

    #[inline]
    pub fn flush_result32(self, value: f32) -> f32 {
        if self.bits & 0x20 == 0 && value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
    }

    #[inline]
    pub fn flush_source64(self, value: f64) -> f64 {
        if self.bits & 0x40 == 0 && value.is_subnormal() { 0.0_f64.copysign(value) } else { value }
    }

    #[inline]
    pub fn flush_result64(self, value: f64) -> f64 {
        if self.bits & 0x80 == 0 && value.is_subnormal() { 0.0_f64.copysign(value) } else { value }
    }

    /// A 16-bit float as a source.
    #[inline]
    pub fn flush_source16(self, bits: u16) -> u16 {
        if self.bits & 0x40 == 0 && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
    }

    /// A 16-bit float as a result.
    #[inline]
    pub fn flush_result16(self, bits: u16) -> u16 {
        if self.bits & 0x80 == 0 && bits & 0x7c00 == 0 {
            return bits & 0x8000;
        }
        bits
    }
}

const fn rounding_of_bits(bits: u8) -> Rounding {
    match bits {
        0 => Rounding::NearestEven,
        1 => Rounding::Up,
        2 => Rounding::Down,
        _ => Rounding::Zero,
    }
}
