//! Numbers as assembly writes them, without the machinery of `core::fmt`.
//!
//! Invariant: one `write_str` for each number, from a buffer on the stack.

use core::fmt;

/// Longest number: 20 decimal digits with a sign.
const LONGEST: usize = 21;

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
pub(crate) fn decimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    digits(out, value, 10, "")
}

/// Decimal, with a minus sign for negative numbers.
pub(crate) fn signed(out: &mut impl fmt::Write, value: i64) -> fmt::Result {
    digits(out, value.unsigned_abs(), 10, if value < 0 { "-" } else { "" })
}

/// Hexadecimal with `0x`.
pub(crate) fn hexadecimal(out: &mut impl fmt::Write, value: u64) -> fmt::Result {
    digits(out, value, 16, "0x")
}

/// Hexadecimal with `0x`, and a minus sign for negative numbers.
pub(crate) fn signed_hexadecimal(out: &mut impl fmt::Write, value: i64) -> fmt::Result {
    digits(out, value.unsigned_abs(), 16, if value < 0 { "-0x" } else { "0x" })
}
