//! Numbers as assembly writes them, without the machinery of `core::fmt`.
//!
//! Invariant: one `write_str` for each number, from a table if it is below 256 and from a buffer on the stack otherwise.

use core::fmt;

/// Longest number: 20 decimal digits with a sign.
const LONGEST: usize = 21;

/// Numbers below this have their text in a table.
const SMALL: usize = 256;
/// Bytes of a table's line: a letter and three digits.
const LINE: usize = 4;

/// `letter0` to `letter255`, each from the start of its line.
const fn build_number_table(letter: u8) -> [u8; SMALL * LINE] {
    let mut bytes = [b' '; SMALL * LINE];
    let mut number = 0;
    while number < SMALL {
        let mut at = number * LINE;
        if letter != b' ' {
            bytes[at] = letter;
            at += 1;
        }
        if number >= 100 {
            bytes[at] = b'0' + (number / 100) as u8;
            at += 1;
        }
        if number >= 10 {
            bytes[at] = b'0' + (number / 10 % 10) as u8;
            at += 1;
        }
        bytes[at] = b'0' + (number % 10) as u8;
        number += 1;
    }
    bytes
}

/// A table as text; all of it is ASCII.
const fn table_text(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

static NUMBERS: [u8; SMALL * LINE] = build_number_table(b' ');
static VECTORS: [u8; SMALL * LINE] = build_number_table(b'v');
static SCALARS: [u8; SMALL * LINE] = build_number_table(b's');
static NUMBER_TEXT: &str = table_text(&NUMBERS);
static VECTOR_TEXT: &str = table_text(&VECTORS);
static SCALAR_TEXT: &str = table_text(&SCALARS);

/// The table text of a number below 256, preceded by `letters` letters.
#[inline]
fn table_entry(table: &'static str, number: usize, letters: usize) -> &'static str {
    let digits = 1 + usize::from(number >= 10) + usize::from(number >= 100);
    table.get(number * LINE..number * LINE + letters + digits).unwrap_or_default()
}

/// The name of a vector register.
#[inline]
pub(crate) fn vector_name(number: u16) -> &'static str {
    table_entry(VECTOR_TEXT, usize::from(number), 1)
}

/// The name of a scalar register.
#[inline]
pub(crate) fn scalar_name(number: u16) -> &'static str {
    table_entry(SCALAR_TEXT, usize::from(number), 1)
}

/// Writes the digits of `value` in base `base` from the end of a buffer, with `sign` and `prefix` before them.
fn write_digits(out: &mut impl fmt::Write, mut value: u64, base: u64, prefix: &str) -> fmt::Result {
    let mut buffer = [0u8; LONGEST];
    let mut start = LONGEST;
    loop {
        let digit = (value % base) as u8;
        value /= base;
        start -= 1;
        buffer[start] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        if value == 0 {
            break;
        }
    }
    if !prefix.is_empty() {
        out.write_str(prefix)?;
    }
    out.write_str(core::str::from_utf8(&buffer[start..]).unwrap_or(""))
}

#[inline]
pub(crate) fn write_decimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    if value < SMALL as u64 {
        return out.write_str(table_entry(NUMBER_TEXT, value as usize, 0));
    }
    write_digits(out, value, 10, "")
}

/// The letters of a number at the start of a block of `N` bytes.
pub(crate) struct NumberBlock<const N: usize> {
    pub(crate) letters: [u8; N],
    pub(crate) len: usize,
}

/// The text of a number below 65536.
#[inline]
pub(crate) fn decimal_block(value: u16) -> NumberBlock<8> {
    match NUMBERS.get(usize::from(value) * LINE..).and_then(|rest| rest.first_chunk::<LINE>()) {
        Some(line) => {
            let text = u64::from(u32::from_le_bytes(*line));
            let len = 1 + usize::from(value >= 10) + usize::from(value >= 100);
            NumberBlock { letters: text.to_le_bytes(), len }
        }
        None => decimal_digit_bytes(value),
    }
}

fn decimal_digit_bytes(mut value: u16) -> NumberBlock<8> {
    let mut text = 0u64;
    let mut len = 0;
    loop {
        text = text << 8 | u64::from(b'0' + (value % 10) as u8);
        value /= 10;
        len += 1;
        if value == 0 {
            return NumberBlock { letters: text.to_le_bytes(), len };
        }
    }
}

/// `0x` and the digits of a word.
#[inline]
pub(crate) fn hexadecimal_block(value: u32) -> NumberBlock<16> {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    // The significant digits come first.
    let digits = 8 - (value | 1).leading_zeros() / 4;
    let mut spread = u64::from(value << (32 - 4 * digits));
    spread = (spread << 16 | spread) & 0x0000_ffff_0000_ffff;
    spread = (spread << 8 | spread) & 0x00ff_00ff_00ff_00ff;
    spread = (spread << 4 | spread) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (spread + 6 * BYTES) >> 4 & BYTES;
    let text = (spread + u64::from(b'0') * BYTES + is_letter * u64::from(b'a' - b'9' - 1)).swap_bytes();
    let text = u128::from(text) << 16 | u128::from(u16::from_le_bytes(*b"0x"));
    NumberBlock { letters: text.to_le_bytes(), len: 2 + digits as usize }
}

/// Writes a number as hexadecimal with `0x`.
pub(crate) fn write_hexadecimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    write_digits(out, value, 16, "0x")
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    #[test]
    fn numbers_are_written_as_rust_writes_them() {
        for value in [0, 1, 9, 10, 16, 99, 100, 199, 255, 256, 4096, u64::from(u32::MAX), i64::MAX as u64] {
            let (mut decimal, mut hexadecimal) = (String::new(), String::new());
            super::write_decimal(&mut decimal, value).unwrap();
            super::write_hexadecimal(&mut hexadecimal, value).unwrap();
            assert_eq!(decimal, alloc::format!("{value}"));
            assert_eq!(hexadecimal, alloc::format!("{value:#x}"));
        }
    }

    #[test]
    fn blocks_hold_what_is_written() {
        for value in [0, 1, 9, 10, 15, 16, 0x7ff, 0xabc, 0x1000, 9999, 10000, 0xffff, 0x1_0000, 0xdead_beef, u32::MAX] {
            let super::NumberBlock { letters: text, len } = super::hexadecimal_block(value);
            assert_eq!(text[..len], *alloc::format!("{value:#x}").as_bytes());
        }
        for value in 0..=u16::MAX {
            let super::NumberBlock { letters: text, len } = super::decimal_block(value);
            assert_eq!(text[..len], *alloc::format!("{value}").as_bytes());
        }
    }

    #[test]
    fn registers_have_their_numbers() {
        for number in 0..256 {
            assert_eq!(super::vector_name(number), alloc::format!("v{number}"));
            assert_eq!(super::scalar_name(number), alloc::format!("s{number}"));
        }
    }
}
