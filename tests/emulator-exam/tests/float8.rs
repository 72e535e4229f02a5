//! 8-bit floats against a model that shares nothing with the emulator's: a sorted list of all values, in which the nearest
//! one is looked up.

use hotswap_semantics::Float8;
use hotswap_userland::{everything, say};

/// A format by its definition.
struct Model {
    name: &'static str,
    format: Float8,
    /// Value and bits of every number that is not negative, ascending.
    values: Vec<(f64, u8)>,
    infinity: Option<u8>,
    nan: u8,
    has_negative_zero: bool,
}

fn model(name: &'static str, mantissa: u32, bias: i32, is_fnuz: bool) -> Model {
    let has_infinity = mantissa == 2 && !is_fnuz;
    let codes = match (is_fnuz, mantissa) {
        (true, _) => 0x80,
        (false, 3) => 0x7f,
        _ => 0x7c,
    };
    let value = |code: u32| {
        let (exponent, fraction) =
            ((code >> mantissa) as i32, f64::from(code % (1 << mantissa)) / f64::from(1 << mantissa));
        if exponent == 0 { fraction * 2_f64.powi(1 - bias) } else { (1.0 + fraction) * 2_f64.powi(exponent - bias) }
    };
    Model {
        name,
        format: Float8::new(mantissa == 2, is_fnuz),
        values: (0..codes).map(|code| (value(code), code as u8)).collect(),
        infinity: has_infinity.then_some(0x7c),
        nan: if is_fnuz {
            0x80
        } else if mantissa == 3 {
            0x7f
        } else {
            0x7e
        },
        has_negative_zero: !is_fnuz,
    }
}

fn models() -> [Model; 4] {
    [
        model("e4m3", 3, 7, false),
        model("e5m2", 2, 15, false),
        model("e4m3fnuz", 3, 8, true),
        model("e5m2fnuz", 2, 16, true),
    ]
}

impl Model {
    /// The nearest number; of two the one with an even code. Beyond the largest number the next step is too large.
    fn rounded(&self, value: f64, clamp: bool) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = value.abs();
        let (largest, code) = *self.values.last().unwrap();
        let step = largest - self.values[self.values.len() - 2].0;
        let too_large = if clamp { code } else { self.infinity.unwrap_or(self.nan) };
        let after = self.values.partition_point(|(number, _)| *number < magnitude);
        let found = match magnitude {
            _ if magnitude.is_nan() => self.nan,
            _ if magnitude.is_infinite() => self.infinity.unwrap_or(self.nan),
            _ if magnitude > largest + step / 2.0 => too_large,
            _ if magnitude == largest + step / 2.0 && code % 2 != 0 => too_large,
            _ if after == self.values.len() => code,
            _ if after == 0 => 0,
            _ => {
                let (below, above) = (self.values[after - 1], self.values[after]);
                match (magnitude - below.0).total_cmp(&(above.0 - magnitude)) {
                    std::cmp::Ordering::Less => below.1,
                    std::cmp::Ordering::Greater => above.1,
                    std::cmp::Ordering::Equal if below.1 % 2 == 0 => below.1,
                    std::cmp::Ordering::Equal => above.1,
                }
            }
        };
        match self.has_negative_zero {
            true => sign | found,
            false if found == 0 || found == self.nan => found,
            false => sign | found,
        }
    }

    fn differs(&self, bits: u32) -> Option<String> {
        let value = f64::from(f32::from_bits(bits));
        [false, true].into_iter().find_map(|clamp| {
            let (found, expected) = (self.format.round(value, clamp), self.rounded(value, clamp));
            let text = || format!("{}: {value:e} (clamp {clamp}) is {found:02x}, not {expected:02x}", self.name);
            (found != expected).then(text)
        })
    }
}

#[test]
fn all_codes_have_their_value() {
    for model in models() {
        for code in 0..=255_u8 {
            let found = model.format.value(code);
            let known = model.values.iter().find(|(_, bits)| *bits == code & 0x7f);
            let expected = match known {
                _ if !model.has_negative_zero && code == 0x80 => f64::NAN,
                Some((value, _)) => {
                    if code & 0x80 != 0 {
                        -value
                    } else {
                        *value
                    }
                }
                None if model.infinity == Some(code & 0x7f) => {
                    if code & 0x80 != 0 {
                        f64::NEG_INFINITY
                    } else {
                        f64::INFINITY
                    }
                }
                None => f64::NAN,
            };
            let same = found.is_nan() && expected.is_nan() || f64::from(found).to_bits() == expected.to_bits();
            assert!(same, "{}: {code:02x} is {found}, not {expected}", model.name);
        }
    }
}

/// All upper halves of 32-bit floats with lower halves around every tie; with `HOTSWAP_TEST_EVERYTHING=1` all floats.
#[test]
fn all_floats_are_rounded_to_the_nearest_code() {
    let lows: Vec<u32> =
        if everything() { (0..0x1_0000).collect() } else { vec![0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] };
    let mut count = 0_u64;
    for model in models() {
        for high in 0..0x1_0000_u32 {
            for low in &lows {
                count += 1;
                let wrong = model.differs(high << 16 | low);
                assert_eq!(wrong, None);
            }
        }
    }
    say(&format!("float8: {count} numbers"));
}

/// A model that is wrong in one place is seen.
#[test]
fn another_bias_is_seen() {
    let wrong = Model { format: Float8::new(false, true), ..model("e4m3", 3, 7, false) };
    assert!(wrong.differs(1.0_f32.to_bits()).is_some());
    assert_ne!(wrong.format.value(0x38), 1.0);
}
