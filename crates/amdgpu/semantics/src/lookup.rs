//! Lookups of 16 elements in a table of 16 (`v_perm_pk16_*` of gfx12.5).
//!
//! Source: AMD's tests of the values of these instructions, one for hardware and one for its own emulator
//! (`PackedPermute`, `PermPk16` in ROCm/rocm-systems). Both put the first source above the second one, element 0 in the
//! lowest bits, and read index `n` from bits `4n` to `4n + 3` of the third source.

/// The elements of `bits` bits that 16 indices of 4 bits select from a table, in the order of the indices.
#[must_use]
pub fn look_up_elements(table: u128, indices: u64, bits: u32) -> u128 {
    let mask = (1 << bits) - 1;
    (0..16).fold(0, |result, number| {
        let index = (indices >> (4 * number) & 15) as u32;
        result | (table >> (bits * index) & mask) << (bits * number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;
    const REVERSED: u64 = 0x0123_4567_89ab_cdef;

    /// The tables and results of AMD's test of its emulator.
    #[test]
    fn known_answers() {
        assert_eq!(look_up_elements(0xfedc_ba98_7654_3210, IN_ORDER, 4), 0xfedc_ba98_7654_3210);
        assert_eq!(look_up_elements(0x2a, 0, 6), 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa);
        assert_eq!(look_up_elements(0x5a, 0, 8), 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a);
        let table = 0x7654_3210_0123_4567_89ab_cdef;
        assert_eq!(look_up_elements(table, IN_ORDER, 6), table);
        let table = 0xfedc_ba98_7654_3210_0123_4567_89ab_cdef;
        assert_eq!(look_up_elements(table, IN_ORDER, 8), table);
    }

    #[test]
    fn every_index_selects_its_element() {
        assert_eq!(look_up_elements(0xfedc_ba98_7654_3210, REVERSED, 4), 0x0123_4567_89ab_cdef);
        let bytes = u128::from_le_bytes(std::array::from_fn(|number| 3 * number as u8 + 1));
        let reversed = u128::from_le_bytes(std::array::from_fn(|number| 3 * (15 - number as u8) + 1));
        assert_eq!(look_up_elements(bytes, REVERSED, 8), reversed);
        let sixes = |element: fn(u32) -> u128| (0..16).fold(0, |all, number| all | element(number) << (6 * number));
        let table = sixes(|number| u128::from(4 * number + 3));
        assert_eq!(look_up_elements(table, REVERSED, 6), sixes(|number| u128::from(4 * (15 - number) + 3)));
        // Bits above the table are none of its elements.
        assert_eq!(look_up_elements(u128::MAX << 96 | table, IN_ORDER, 6), table);
    }
}
