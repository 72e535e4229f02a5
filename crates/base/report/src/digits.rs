//! Hashes as text.

use std::fmt::Write;

/// Two hexadecimal digits for each byte, as `sha256sum` prints them.
#[must_use]
pub fn hex_digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(super::hex_digits(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
