//! Sub-dword addressing: sources and results are bytes or halves of registers.

use super::write_lanes;
use crate::micro::SdwaControl;
use hotswap_semantics::{LANES, Lanes, WideLanes, low_lanes};

/// Lowest bit and width of a selected part.
fn selected_bits(select: u8) -> (u32, u32) {
    match select {
        0..=3 => (8 * u32::from(select), 8),
        4 | 5 => (16 * (u32::from(select) - 4), 16),
        _ => (0, 32),
    }
}

/// Takes the selected part of a source.
#[inline(always)]
pub(crate) fn select_parts(control: &SdwaControl, values: &mut WideLanes, number: usize) {
    if selected_bits(control.source_select[number]).1 < 32 {
        let words = select_words(control, &low_lanes(values), number);
        for lane in 0..LANES {
            values[lane] = words[lane].into();
        }
    }
}

/// The selected part of a source of 32 bits.
#[inline(always)]
pub(crate) fn select_words(control: &SdwaControl, words: &Lanes, number: usize) -> Lanes {
    let (shift, width) = selected_bits(control.source_select[number]);
    let is_signed = control.sign_extend[number];
    std::array::from_fn(|lane| {
        let raw = words[lane] >> shift << (32 - width);
        if is_signed { (raw as i32 >> (32 - width)) as u32 } else { raw >> (32 - width) }
    })
}

/// Puts a result into the selected part of a register.
#[inline(always)]
pub(crate) fn merge_part(control: &SdwaControl, block: &mut Lanes, out: &Lanes, mask: u32) {
    let (shift, width) = selected_bits(control.target_select);
    let covered = (u32::MAX >> (32 - width)) << shift;
    // The sign goes above the part, 0 below it.
    let (above, kept) = match control.unused {
        0 => (0, 0),
        1 => (u32::MAX.checked_shl(shift + width).unwrap_or(0), 0),
        _ => (0, !covered),
    };
    let result: Lanes = std::array::from_fn(|lane| {
        let value = out[lane] << shift & covered;
        let negative = 0_u32.wrapping_sub(value >> (shift + width - 1) & 1);
        value | negative & above | block[lane] & kept
    });
    write_lanes(block, &result, mask);
}
