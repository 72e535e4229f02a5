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
const fn table(letter: u8) -> [u8; SMALL * LINE] {
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
const fn text(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

static NUMBERS: [u8; SMALL * LINE] = table(b' ');
static VECTORS: [u8; SMALL * LINE] = table(b'v');
static SCALARS: [u8; SMALL * LINE] = table(b's');
static NUMBER_TEXT: &str = text(&NUMBERS);
static VECTOR_TEXT: &str = text(&VECTORS);
static SCALAR_TEXT: &str = text(&SCALARS);

/// The line of a number below 256; `letters` stand before it.
#[inline]
fn line(table: &'static str, number: usize, letters: usize) -> &'static str {
    let digits = 1 + usize::from(number >= 10) + usize::from(number >= 100);
    table.get(number * LINE..number * LINE + letters + digits).unwrap_or_default()
}

/// The name of a vector register.
#[inline]
pub(crate) fn vector(number: u16) -> &'static str {
    line(VECTOR_TEXT, usize::from(number), 1)
}

/// The name of a scalar register.
#[inline]
pub(crate) fn scalar(number: u16) -> &'static str {
    line(SCALAR_TEXT, usize::from(number), 1)
}

/// Writes the digits of `value` in base `base` from the end of a buffer, with `sign` and `prefix` before them.
fn digits(out: &mut impl fmt::Write, mut value: u64, base: u64, prefix: &str) -> fmt::Result {
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

/// Decimal, unsigned.
#[inline]
pub(crate) fn decimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    if value < SMALL as u64 {
        return out.write_str(line(NUMBER_TEXT, value as usize, 0));
    }
    digits(out, value, 10, "")
}

/// Decimal, with a minus sign for negative numbers.
#[inline]
pub(crate) fn signed(out: &mut impl fmt::Write, value: i64) -> fmt::Result {
    if value >= 0 {
        return decimal(out, value as u64);
    }
    digits(out, value.unsigned_abs(), 10, "-")
}

/// Hexadecimal with `0x`.
pub(crate) fn hexadecimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    digits(out, value, 16, "0x")
}

/// Hexadecimal with `0x`, and a minus sign for negative numbers.
pub(crate) fn signed_hexadecimal(out: &mut impl fmt::Write, value: i64) -> fmt::Result {
    digits(out, value.unsigned_abs(), 16, if value < 0 { "-0x" } else { "0x" })
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    #[test]
    fn numbers_are_written_as_rust_writes_them() {
        for value in [0, 1, 9, 10, 16, 99, 100, 199, 255, 256, 4096, u64::from(u32::MAX), i64::MAX as u64] {
            let (mut decimal, mut hexadecimal, mut signed) = (String::new(), String::new(), String::new());
            super::decimal(&mut decimal, value).unwrap();
            super::hexadecimal(&mut hexadecimal, value).unwrap();
            super::signed(&mut signed, -(value as i64)).unwrap();
            assert_eq!(decimal, alloc::format!("{value}"));
            assert_eq!(hexadecimal, alloc::format!("{value:#x}"));
            assert_eq!(signed, alloc::format!("{}", -(value as i64)));
        }
        let mut least = String::new();
        super::signed_hexadecimal(&mut least, i64::MIN).unwrap();
        assert_eq!(least, "-0x8000000000000000");
    }

    #[test]
    fn registers_have_their_numbers() {
        for number in 0..256 {
            assert_eq!(super::vector(number), alloc::format!("v{number}"));
            assert_eq!(super::scalar(number), alloc::format!("s{number}"));
        }
    }
}
