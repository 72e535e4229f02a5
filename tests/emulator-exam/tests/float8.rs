//! 8-bit floats against a model that shares nothing with the emulator's.

use hotswap_emulator_exam::{Float8Model, float8_models};
use hotswap_semantics::Float8;
use hotswap_userland::{everything, say};

#[test]
fn all_codes_have_their_value() {
    for model in float8_models() {
        for code in 0..=255_u8 {
            let found = model.format.decode_value(code);
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
    for model in float8_models() {
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
    let wrong = Float8Model { format: Float8::new(false, true), ..Float8Model::new("e4m3", 3, 7, false) };
    assert!(wrong.differs(1.0_f32.to_bits()).is_some());
    assert_ne!(wrong.format.decode_value(0x38), 1.0);
}
