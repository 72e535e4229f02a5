//! Data-parallel primitives: a source is read from other lanes.

use super::BITS;
use crate::micro::{DppControl, DppPattern};
use crate::wave::WaveState;
use hotswap_semantics::{LANES, WideLanes};

/// Moves the lanes of a source; returns the lanes that are written.
pub(crate) fn apply(wave: &WaveState, control: &DppControl, values: &mut WideLanes, half: usize) -> u32 {
    let (before, exec) = (*values, wave.exec(half));
    let mut written = u32::MAX;
    for lane in 0..LANES {
        let from = source_lane(control.pattern, lane);
        let valid = from.filter(|from| control.fetch_inactive || exec & BITS[*from] != 0);
        values[lane] = valid.map_or(0, |from| before[from]);
        let row = lane / 16 + 2 * half;
        let enabled = control.row_mask >> row & 1 != 0 && control.bank_mask >> (lane / 4 % 4) & 1 != 0;
        if !enabled || valid.is_none() && !control.bound_control {
            written &= !BITS[lane];
        }
    }
    written
}

/// The lane that is read, `None` beyond the row.
fn source_lane(pattern: DppPattern, lane: usize) -> Option<usize> {
    let (row, inside) = (lane & !15, lane & 15);
    let in_row = |position: usize| (position < 16).then_some(row | position);
    let control = match pattern {
        DppPattern::Eight(selectors) => return Some(lane & !7 | (selectors >> (3 * (lane & 7)) & 7) as usize),
        DppPattern::Sixteen(control) => usize::from(control),
    };
    let count = control & 15;
    match control {
        0..=0xff => Some(lane & !3 | control >> (2 * (lane & 3)) & 3),
        0x101..=0x10f => in_row(inside + count),
        0x111..=0x11f => in_row(inside.wrapping_sub(count)),
        0x121..=0x12f => in_row(inside.wrapping_sub(count) & 15),
        0x140 => in_row(15 - inside),
        0x141 => in_row((inside & 8) | (7 - (inside & 7))),
        0x150..=0x15f => in_row(count),
        0x160..=0x16f => in_row(inside ^ count),
        _ => None,
    }
}

/// Whether the pattern is one of those above.
pub(crate) fn is_known(pattern: DppPattern) -> bool {
    match pattern {
        DppPattern::Eight(_) => true,
        DppPattern::Sixteen(control) => {
            matches!(control, 0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x140 | 0x141 | 0x150..=0x16f)
        }
    }
}
