//! Swizzles of `ds_swizzle_b32`.

use super::TextWriter;
use core::fmt::{self, Write};
use hotswap_isa_tables::TextBlock;

/// All five bits of a lane number.
const LANES: u16 = 31;

impl TextWriter<'_, '_, '_> {
    /// Writes the swizzle in the offset field in its most specific form.
    pub(super) fn swizzle(&mut self, text: &TextBlock, raw: u16) -> fmt::Result {
        if raw == 0 {
            return Ok(());
        }
        self.out.write_block(text)?;
        match raw {
            0xe000.. => self.swizzle_list("FFT", &[raw & 31]),
            0xc000.. => self.swizzle_list("ROTATE", &[raw >> 10 & 1, raw >> 5 & 31]),
            0x8000..=0x80ff => self.swizzle_list("QUAD_PERM", &[raw & 3, raw >> 2 & 3, raw >> 4 & 3, raw >> 6 & 3]),
            0..0x8000 => self.bit_masks(raw & LANES, raw >> 5 & LANES, raw >> 10 & LANES),
            _ => self.out.write_decimal(u64::from(raw)),
        }
    }

    fn swizzle_list(&mut self, name: &str, numbers: &[u16]) -> fmt::Result {
        self.out.write_str("swizzle(")?;
        self.out.write_str(name)?;
        for number in numbers {
            self.out.write_char(',')?;
            self.out.write_decimal(u64::from(*number))?;
        }
        self.out.write_char(')')
    }

    /// Lane number, and, or, exclusive or.
    fn bit_masks(&mut self, and: u16, or: u16, xor: u16) -> fmt::Result {
        let keeps = and == LANES && or == 0;
        if keeps && xor.count_ones() == 1 {
            return self.swizzle_list("SWAP", &[xor]);
        }
        if keeps && xor > 0 && (xor + 1).is_power_of_two() {
            return self.swizzle_list("REVERSE", &[xor + 1]);
        }
        let group = LANES - and + 1;
        if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
            return self.swizzle_list("BROADCAST", &[group, or]);
        }
        self.out.write_str("swizzle(BITMASK_PERM,\"")?;
        let (zeros, ones) = (or ^ xor, (and | or) ^ xor);
        for bit in (0..5).rev() {
            self.out.write_char(match (zeros >> bit & 1, ones >> bit & 1) {
                (0, 0) => '0',
                (1, 1) => '1',
                (0, _) => 'p',
                _ => 'i',
            })?;
        }
        self.out.write_str("\")")
    }
}
