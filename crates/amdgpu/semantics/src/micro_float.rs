//! Floats of 4 and 6 bits without infinities and NaNs.
//!
//! Source: the OCP specification of microscaling formats: E2M3, E3M2 and E2M1, each with denormals.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroFloat {
    exponent: u32,
    mantissa: u32,
}

impl MicroFloat {
    /// E2M3.
    pub const FP6: Self = Self { exponent: 2, mantissa: 3 };
    /// E3M2.
    pub const BF6: Self = Self { exponent: 3, mantissa: 2 };
    /// E2M1.
    pub const FP4: Self = Self { exponent: 2, mantissa: 1 };

    pub fn decode_value(self, bits: u8) -> f32 {
        let bits = u32::from(bits);
        let (fraction, field) = (bits & ((1 << self.mantissa) - 1), bits >> self.mantissa & ((1 << self.exponent) - 1));
        let significand = if field == 0 { fraction } else { fraction | 1 << self.mantissa };
        let bias = (1 << (self.exponent - 1)) - 1;
        let magnitude = significand as f32 * 2_f32.powi(field.max(1) as i32 - bias - self.mantissa as i32);
        if bits >> (self.mantissa + self.exponent) & 1 != 0 { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_specification() {
        let fp4: Vec<f32> = (0..8).map(|bits| MicroFloat::FP4.decode_value(bits)).collect();
        assert_eq!(fp4, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!(MicroFloat::FP4.decode_value(0xf), -6.0);
        // The largest number, the smallest normal one, and the smallest one.
        assert_eq!([0x1f, 0x08, 0x01].map(|bits| MicroFloat::FP6.decode_value(bits)), [7.5, 1.0, 0.125]);
        assert_eq!([0x1f, 0x04, 0x01].map(|bits| MicroFloat::BF6.decode_value(bits)), [28.0, 0.25, 0.0625]);
        assert_eq!(MicroFloat::BF6.decode_value(0x20).to_bits(), (-0.0_f32).to_bits());
    }
}
