//! Floats of 16 and of eight bits, by their definitions.

/// A 16-bit float as one of 32 bits.
pub(super) fn from_half(half: u16) -> u32 {
    let (sign, exponent, mantissa) = (u32::from(half >> 15) << 31, u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match (exponent, mantissa) {
        (31, _) => sign | 0x7f80_0000 | mantissa << 13 | u32::from(mantissa != 0) << 22,
        (0, _) => sign | (mantissa as f32 * 2f32.powi(-24)).to_bits(),
        _ => sign | (exponent + 112) << 23 | mantissa << 13,
    }
}

/// A 32-bit float rounded once to 16 bits, to the nearest even.
pub(super) fn to_half(bits: u32) -> u16 {
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13) as u16 & 0x1ff;
    }
    let value = f64::from(f32::from_bits(magnitude));
    // Everything from halfway above the largest on is infinity.
    if value >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = if value < 2f64.powi(-14) { -14 } else { value.log2().floor() as i32 };
    let steps = (value * 2f64.powi(10 - exponent)).round_ties_even() as u32;
    // A value rounded up to the next power of two carries into the exponent.
    let base = if exponent == -14 && steps < 1024 { 0 } else { ((exponent + 14) as u32) << 10 };
    sign | (base + steps) as u16
}

/// A number as UE5M3 (bias 15, three bits of mantissa, no sign, no infinity), to the nearest even. With `overflows`, a
/// number that is too large becomes the largest number and not NaN.
pub(super) fn to_ue5m3(bits: u32, overflows: bool) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let value = f64::from(f32::from_bits(magnitude));
    if value.is_infinite() {
        return if overflows { 0xfe } else { 0xff };
    }
    let exponent = if value < 2f64.powi(-14) { -14 } else { value.log2().floor() as i32 };
    let steps = (value * 2f64.powi(3 - exponent)).round_ties_even() as i64;
    let base = if exponent == -14 && steps < 8 { 0 } else { i64::from(exponent + 14) << 3 };
    match base + steps {
        code @ 0..=0xfe => code as u32,
        _ if overflows => 0xfe,
        _ => 0xff,
    }
}

/// The same with noise below the last kept bit instead of rounding.
pub(super) fn to_ue5m3_stochastic(bits: u32, noise: u32, overflows: bool) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let code = if magnitude >= 0x3880_0000 {
        ((u64::from(magnitude) + u64::from(noise >> 12)) >> 20) as i64 - 0x380
    } else if magnitude < 0x3680_0000 {
        0
    } else {
        // The mantissa with its leading one, and as many bits of noise as are dropped.
        let shift = 133 - (magnitude >> 23);
        let mantissa = u64::from(magnitude & 0x7f_ffff | 0x80_0000);
        ((mantissa + u64::from(noise >> (32 - shift))) >> shift) as i64
    };
    match code {
        0..=0xfe => code as u32,
        _ if overflows => 0xfe,
        _ => 0xff,
    }
}

/// UE5M3 as a 32-bit float.
pub(super) fn from_ue5m3(code: u32) -> u32 {
    let (exponent, mantissa) = (code >> 3 & 31, code & 7);
    match (code, exponent) {
        (0xff, _) => 0x7fa3_d000,
        (_, 0) => (mantissa as f32 * 2f32.powi(-17)).to_bits(),
        _ => ((8 + mantissa) as f32 * 2f32.powi(exponent as i32 - 18)).to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for half in 0..=u16::MAX {
            let is_nan = half & 0x7fff > 0x7c00;
            let back = to_half(from_half(half));
            assert!(back == half || is_nan && back & 0x7fff > 0x7c00, "{half:#x} {back:#x}");
        }
        assert_eq!([0x477f_efff, 0x477f_f000].map(to_half), [0x7bff, 0x7c00]);
    }

    #[test]
    fn every_number_of_ue5m3_comes_back() {
        for code in 0..=0xff {
            assert_eq!(to_ue5m3(from_ue5m3(code), false), code);
        }
        assert_eq!([0x47e0_0000, 0x47e8_0000, 0x47e8_0001].map(|bits| to_ue5m3(bits, false)), [0xfe, 0xfe, 0xff]);
    }
}
