//! Exact sums of 64-bit floats, as parts that do not overlap.
//!
//! Invariant: the sum of the parts is the sum of everything that was added, as long as nothing overflows.

use crate::rounding::to_odd;

/// An exact sum: parts by magnitude, the smallest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactSum {
    parts: Vec<f64>,
}

/// The rounded sum and its error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

impl ExactSum {
    /// Adds a finite number.
    pub(crate) fn add(&mut self, value: f64) {
        let mut carried = value;
        let mut kept = 0;
        for number in 0..self.parts.len() {
            let (sum, error) = two_sum(carried, self.parts[number]);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            carried = sum;
        }
        self.parts.truncate(kept);
        if carried != 0.0 {
            self.parts.push(carried);
        }
    }

    /// The rounded sum of the largest parts, its error, and the largest part that is in neither.
    fn leading_parts(&self) -> (f64, f64, f64) {
        let mut parts = self.parts.iter().rev().copied();
        let mut high = parts.next().unwrap_or(0.0);
        while let Some(part) = parts.next() {
            let (sum, error) = two_sum(high, part);
            if error != 0.0 {
                return (sum, error, parts.next().unwrap_or(0.0));
            }
            high = sum;
        }
        (high, 0.0, 0.0)
    }

    /// The sum, rounded to odd. Parts that are smaller than the error do not change its sign.
    pub(crate) fn rounded_to_odd(&self) -> f64 {
        let (high, error, _) = self.leading_parts();
        to_odd(high, error)
    }

    /// The sum, rounded to nearest. Where the error is half of a step, the next part decides.
    pub(crate) fn rounded_sum(&self) -> f64 {
        let (high, error, next) = self.leading_parts();
        let (other, rest) = two_sum(high, 2.0 * error);
        if next != 0.0 && (next > 0.0) == (error > 0.0) && rest == 0.0 { other } else { high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let mut sum = ExactSum::default();
        for value in [1e300, 1.0, -1e300, 2_f64.powi(-80), 1e16] {
            sum.add(value);
        }
        // 1e16 + 1 + 2^-80 lies between two numbers, of which the upper one is odd.
        assert_eq!(sum.rounded_to_odd(), 1e16 + 2.0);
        assert_eq!(sum.rounded_sum(), 1e16 + 2.0);
        sum.add(-(2_f64.powi(-79)));
        assert_eq!(sum.rounded_sum(), 1e16);
    }
}
