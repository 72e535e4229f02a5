//! Sub-dword addressing: sources and results are bytes or halves of registers.

use crate::micro::SdwaControl;
use hotswap_semantics::{BITS, LANES, Lanes, WideLanes};

/// Lowest bit and width of a selected part.
fn part(select: u8) -> (u32, u32) {
    match select {
        0..=3 => (8 * u32::from(select), 8),
        4 | 5 => (16 * (u32::from(select) - 4), 16),
        _ => (0, 32),
    }
}

/// Takes the selected part of a source.
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
pub(crate) fn merge(control: &SdwaControl, block: &mut Lanes, out: &WideLanes, mask: u32) {
    let (shift, width) = part(control.target_select);
    let covered = (u32::MAX >> (32 - width)) << shift;
    for lane in 0..LANES {
        if mask & BITS[lane] == 0 {
            continue;
        }
        let value = (out[lane] as u32) << shift & covered;
        let negative = value >> (shift + width - 1) & 1 != 0;
        let rest = match control.unused {
            0 => 0,
            // The sign goes above the part, 0 below it.
            1 if negative => u32::MAX.checked_shl(shift + width).unwrap_or(0),
            1 => 0,
            _ => block[lane] & !covered,
        };
        block[lane] = value | rest;
    }
}
