//! Sums that are rounded to odd: exact enough to be rounded once more, to a shorter format, in any mode.
//!
//! A sum of two 64-bit floats that is not exact gets an odd last bit, which keeps it apart from every number and every
//! middle of two numbers of a format with at least two bits less.

/// `a + b`, rounded to odd.
#[inline]
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    to_odd(sum, error)
}

/// `sum` with an odd last bit if the exact result is `sum + error` and `error` is not 0.
#[inline]
pub(crate) fn to_odd(sum: f64, error: f64) -> f64 {
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite() && error.is_finite();
    if !inexact || bits & 1 != 0 {
        return sum;
    }
    // Away from zero if the error has the sign of the sum, else towards zero. A sum of 0 is exact.
    f64::from_bits(if (error > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 })
}

/// `a * b + c` for numbers whose product is exact in 64 bits, rounded to odd.
#[inline]
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}
