//! Sub-dword addressing: sources and results are bytes or halves of registers.

use super::write_lanes;
use crate::micro::SdwaControl;
use hotswap_semantics::{Lanes, WideLanes};

/// Lowest bit and width of a selected part.
fn part(select: u8) -> (u32, u32) {
    match select {
        0..=3 => (8 * u32::from(select), 8),
        4 | 5 => (16 * (u32::from(select) - 4), 16),
        _ => (0, 32),
    }
}

/// Takes the selected part of a source.
#[inline(always)]
pub(crate) fn select(control: &SdwaControl, values: &mut WideLanes, number: usize) {
    let (shift, width) = part(control.source_select[number]);
    if width == 32 {
        return;
    }
    for value in values {
        let raw = (*value as u32) >> shift << (32 - width);
        let extended =
            if control.sign_extend[number] { (raw as i32 >> (32 - width)) as u32 } else { raw >> (32 - width) };
        *value = extended.into();
    }
}

/// Puts a result into the selected part of a register.
#[inline(always)]
pub(crate) fn merge(control: &SdwaControl, block: &mut Lanes, out: &WideLanes, mask: u32) {
    let (shift, width) = part(control.target_select);
    let covered = (u32::MAX >> (32 - width)) << shift;
    // The sign goes above the part, 0 below it.
    let (above, kept) = match control.unused {
        0 => (0, 0),
        1 => (u32::MAX.checked_shl(shift + width).unwrap_or(0), 0),
        _ => (0, !covered),
    };
    let result: Lanes = std::array::from_fn(|lane| {
        let value = (out[lane] as u32) << shift & covered;
        let negative = 0_u32.wrapping_sub(value >> (shift + width - 1) & 1);
        value | negative & above | block[lane] & kept
    });
    write_lanes(block, &result, mask);
}
