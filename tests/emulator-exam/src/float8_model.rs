//! 8-bit floats by their definition: a sorted list of all values, in which the nearest one is looked up.
//!
//! Invariants: nothing is shared with the emulator's conversions, which this judges.

use hotswap_semantics::Float8;
use std::cmp::Ordering;

/// A format by its definition.
#[derive(Debug)]
pub struct Float8Model {
    pub name: &'static str,
    /// The format that is judged.
    pub format: Float8,
    /// Value and bits of every number that is not negative, ascending.
    pub values: Vec<(f64, u8)>,
    /// The code of infinity.
    pub infinity: Option<u8>,
    /// The code of NaNs.
    pub nan: u8,
    /// Whether there is a negative zero.
    pub has_negative_zero: bool,
}

/// The four formats.
pub fn float8_models() -> [Float8Model; 4] {
    [
        Float8Model::new("e4m3", 3, 7, false),
        Float8Model::new("e5m2", 2, 15, false),
        Float8Model::new("e4m3fnuz", 3, 8, true),
        Float8Model::new("e5m2fnuz", 2, 16, true),
    ]
}

impl Float8Model {
    /// The format with that many bits of mantissa.
    pub fn new(name: &'static str, mantissa: u32, bias: i32, is_fnuz: bool) -> Self {
        let (codes, nan) = match (is_fnuz, mantissa) {
            (true, _) => (0x80, 0x80),
            (false, 3) => (0x7f, 0x7f),
            _ => (0x7c, 0x7e),
        };
        Self {
            name,
            format: Float8::new(mantissa == 2, is_fnuz),
            values: (0..codes).map(|code| (decode_small_float(code, mantissa, bias), code as u8)).collect(),
            infinity: (mantissa == 2 && !is_fnuz).then_some(0x7c),
            nan,
            has_negative_zero: !is_fnuz,
        }
    }

    /// The nearest number; of two the one with an even code. Beyond the largest number the next step is too large.
    pub fn rounded(&self, value: f64, clamp: bool) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let found = self.magnitude(value.abs(), clamp);
        match self.has_negative_zero {
            true => sign | found,
            false if found == 0 || found == self.nan => found,
            false => sign | found,
        }
    }

    fn magnitude(&self, magnitude: f64, clamp: bool) -> u8 {
        let count = self.values.len();
        let (largest, code) = self.values[count - 1];
        let step = largest - self.values[count - 2].0;
        let too_large = if clamp { code } else { self.infinity.unwrap_or(self.nan) };
        let after = self.values.partition_point(|(number, _)| *number < magnitude);
        match magnitude {
            _ if magnitude.is_nan() => self.nan,
            _ if magnitude.is_infinite() => self.infinity.unwrap_or(self.nan),
            _ if magnitude > largest + step / 2.0 => too_large,
            _ if magnitude == largest + step / 2.0 && code % 2 != 0 => too_large,
            _ if after == count => code,
            _ if after == 0 => 0,
            _ => {
                let (below, above) = (self.values[after - 1], self.values[after]);
                match (magnitude - below.0).total_cmp(&(above.0 - magnitude)) {
                    Ordering::Less => below.1,
                    Ordering::Greater => above.1,
                    Ordering::Equal if below.1 % 2 == 0 => below.1,
                    Ordering::Equal => above.1,
                }
            }
        }
    }

    /// The first difference for a number, as text.
    pub fn differs(&self, bits: u32) -> Option<String> {
        let value = f64::from(f32::from_bits(bits));
        [false, true].into_iter().find_map(|clamp| {
            let (found, expected) = (self.format.round(value, clamp), self.rounded(value, clamp));
            let text = || format!("{}: {value:e} (clamp {clamp}) is {found:02x}, not {expected:02x}", self.name);
            (found != expected).then(text)
        })
    }
}

fn decode_small_float(code: u32, mantissa: u32, bias: i32) -> f64 {
    let fraction = f64::from(code % (1 << mantissa)) / f64::from(1 << mantissa);
    match (code >> mantissa) as i32 {
        0 => fraction * 2_f64.powi(1 - bias),
        exponent => (1.0 + fraction) * 2_f64.powi(exponent - bias),
    }
}
