//! Conversions between float formats, with the rounding as an argument.

use crate::mode::Rounding;

/// The 16-bit float as a 32-bit one; exact.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, mantissa) = (u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    let magnitude = match (exponent, mantissa) {
        (0, _) => return f32::from_bits(sign | (mantissa as f32 * 2_f32.powi(-24)).to_bits()),
        (31, 0) => 0x7f80_0000,
        // NaNs stay what they are: the conversion instruction quiets them.
        (31, _) => 0x7f80_0000 | mantissa << 13,
        _ => (exponent + 112) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The brain float as a 32-bit float; exact.
#[inline]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to a float with `mantissa` bits after the point and exponents down to `min_exponent`; returns the magnitude in
/// steps of the last bit of a number with that exponent, as the format's bits without sign.
pub(crate) fn round_magnitude(value: f64, mantissa: u32, min_exponent: i32, rounding: Rounding) -> u64 {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    if bits << 1 == 0 {
        return 0;
    }
    let (exponent, significand) =
        if exponent == -1023 { (-1022, bits & ((1 << 52) - 1)) } else { (exponent, bits & ((1 << 52) - 1) | 1 << 52) };
    let below = (min_exponent - exponent).max(0) as u32;
    let drop = (52 - mantissa + below).min(63);
    let kept = significand >> drop;
    let rest = significand & ((1_u64 << drop) - 1);
    let middle = 1_u64 << (drop - 1);
    let negative = value.is_sign_negative();
    let away = match rounding {
        Rounding::NearestEven => rest > middle || rest == middle && kept & 1 != 0,
        Rounding::Up => rest != 0 && !negative,
        Rounding::Down => rest != 0 && negative,
        Rounding::Zero => false,
    };
    let biased = if below > 0 { 0 } else { (exponent - min_exponent) as u64 };
    // The leading bit of a normal number adds 1 to the exponent field.
    (biased << mantissa) + kept + u64::from(away)
}

/// Whether overflow gives the largest number rather than infinity.
fn overflows_to_largest(negative: bool, rounding: Rounding) -> bool {
    match rounding {
        Rounding::NearestEven => false,
        Rounding::Up => negative,
        Rounding::Down => !negative,
        Rounding::Zero => true,
    }
}

fn round_small(value: f64, mantissa: u32, exponent_bits: u32, rounding: Rounding) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let infinity = ((1_u64 << exponent_bits) - 1) << mantissa;
    if value.is_nan() {
        let payload = (value.to_bits() >> (52 - mantissa)) as u16 & ((1 << mantissa) - 1);
        return sign | infinity as u16 | 1 << (mantissa - 1) | payload;
    }
    if value.is_infinite() {
        return sign | infinity as u16;
    }
    let min_exponent = 2 - (1 << (exponent_bits - 1));
    let magnitude = round_magnitude(value, mantissa, min_exponent, rounding);
    if magnitude < infinity {
        return sign | magnitude as u16;
    }
    let largest = overflows_to_largest(value.is_sign_negative(), rounding);
    sign | (infinity - u64::from(largest)) as u16
}

/// Rounds to a 16-bit float. NaNs keep the upper bits of their payload and become quiet.
pub fn round_to_f16(value: f64, rounding: Rounding) -> u16 {
    round_small(value, 10, 5, rounding)
}

/// Rounds to a brain float.
pub fn round_to_bf16(value: f64, rounding: Rounding) -> u16 {
    round_small(value, 7, 8, rounding)
}

/// Rounds to a 32-bit float.
#[inline]
pub fn round_to_f32(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    if rounding == Rounding::NearestEven || value.is_nan() || value.is_infinite() {
        return nearest;
    }
    let back = f64::from(nearest);
    let wanted = match rounding {
        Rounding::Up => back < value,
        Rounding::Down => back > value,
        _ => back.abs() > value.abs(),
    };
    match rounding {
        _ if !wanted => nearest,
        Rounding::Up => nearest.next_up(),
        Rounding::Down => nearest.next_down(),
        _ if value > 0.0 => nearest.next_down(),
        _ => nearest.next_up(),
    }
}

/// A NaN of 32 bits made quiet.
#[inline]
pub(crate) fn quiet_nan32(bits: u32) -> u32 {
    bits | 0x0040_0000
}

/// The NaN that invalid operations give.
pub(crate) const NAN32: u32 = 0x7fc0_0000;
/// The same of 64 bits.
pub(crate) const NAN64: u64 = 0x7ff8_0000_0000_0000;
/// The same of 16 bits.
pub(crate) const NAN16: u16 = 0x7e00;

/// The NaN that an operation with these sources gives: that of the first one that is a NaN.
#[inline(always)]
pub(crate) fn nan_of32([a, b, c]: [u32; 3]) -> u32 {
    quiet_nan_or(a, quiet_nan_or(b, quiet_nan_or(c, NAN32)))
}

fn quiet_nan_or(bits: u32, other: u32) -> u32 {
    if f32::from_bits(bits).is_nan() { quiet_nan32(bits) } else { other }
}

/// The same of 64 bits.
#[inline(always)]
pub(crate) fn nan_of64([a, b, c]: [u64; 3]) -> u64 {
    quiet_nan64_or(a, quiet_nan64_or(b, quiet_nan64_or(c, NAN64)))
}

fn quiet_nan64_or(bits: u64, other: u64) -> u64 {
    if f64::from_bits(bits).is_nan() { bits | 1 << 51 } else { other }
}

/// `2^power` for the exponents of normal numbers of 64 bits.
#[inline(always)]
pub(crate) fn power_of_two(power: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&power));
    f64::from_bits(((1023 + power) as u64) << 52)
}

/// The same of 16 bits.
pub(crate) fn nan_of16(sources: [u16; 3]) -> u16 {
    sources.into_iter().find(|bits| is_nan16(*bits)).map_or(NAN16, |bits| bits | 0x200)
}

#[inline]
pub(crate) fn is_nan16(bits: u16) -> bool {
    bits & 0x7fff > 0x7c00
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_halves_survive_the_way_to_single_and_back() {
        for bits in 0..=u16::MAX {
            let expected = if is_nan16(bits) { bits | 0x200 } else { bits };
            for mode in [Rounding::NearestEven, Rounding::Up, Rounding::Down, Rounding::Zero] {
                assert_eq!(round_to_f16(f64::from(f16_to_f32(bits)), mode), expected, "{bits:04x}");
            }
        }
    }

    #[test]
    fn halves_round_as_asked() {
        let above = f64::from(f16_to_f32(0x3c00)) + 2_f64.powi(-12);
        assert_eq!(round_to_f16(above, Rounding::NearestEven), 0x3c00);
        assert_eq!(round_to_f16(above, Rounding::Up), 0x3c01);
        assert_eq!(round_to_f16(-above, Rounding::Down), 0xbc01);
        assert_eq!(round_to_f16(65520.0, Rounding::NearestEven), 0x7c00);
        assert_eq!(round_to_f16(65519.0, Rounding::NearestEven), 0x7bff);
        assert_eq!(round_to_f16(1e9, Rounding::Zero), 0x7bff);
        assert_eq!(round_to_f16(2_f64.powi(-25), Rounding::NearestEven), 0);
        assert_eq!(round_to_f16(2_f64.powi(-25) * 1.5, Rounding::NearestEven), 1);
        assert_eq!(round_to_f16(1e-30, Rounding::Up), 1);
    }
}
