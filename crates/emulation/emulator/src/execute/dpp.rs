//! Data-parallel primitives: a source is read from other lanes.

use crate::micro::{DppControl, DppPattern};
use crate::wave::WaveState;
use hotswap_semantics::{BITS, LANES, WideLanes};

/// Moves the lanes of a source, whose values in both halves of the wave `read` gives; returns the lanes that are written.
pub(crate) fn apply_dpp(
    wave: &WaveState,
    control: &DppControl,
    values: &mut WideLanes,
    half: usize,
    read: impl Fn(usize) -> WideLanes,
) -> u32 {
    let before = if wave.halves == 2 && crosses_halves(control.pattern) { [read(0), read(1)] } else { [*values; 2] };
    let exec = wave.exec_mask();
    let mut written = u32::MAX;
    for lane in 0..LANES {
        let from = source_lane(control.pattern, LANES * half + lane).filter(|from| *from < wave.lane_count());
        let valid = from.filter(|from| control.fetch_inactive || exec >> from & 1 != 0);
        values[lane] = valid.map_or(0, |from| before[from / LANES][from % LANES]);
        let row = lane / 16 + 2 * half;
        let enabled = control.row_mask >> row & 1 != 0 && control.bank_mask >> (lane / 4 % 4) & 1 != 0;
        if !enabled || valid.is_none() && !control.bound_control {
            written &= !BITS[lane];
        }
    }
    written
}

/// Whether lanes of the other half of the wave are read: shifts of the wave and broadcasts between rows (gfx9).
fn crosses_halves(pattern: DppPattern) -> bool {
    matches!(pattern, DppPattern::Sixteen(0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143))
}

/// The lane that is read, `None` beyond the row or the wave.
fn source_lane(pattern: DppPattern, lane: usize) -> Option<usize> {
    let (row, inside) = (lane & !15, lane & 15);
    let control = match pattern {
        DppPattern::Eight(selectors) => return Some(lane & !7 | (selectors >> (3 * (lane & 7)) & 7) as usize),
        DppPattern::Sixteen(control) => usize::from(control),
    };
    let count = control & 15;
    match control {
        0..=0xff => Some(lane & !3 | control >> (2 * (lane & 3)) & 3),
        0x101..=0x10f => lane_within_row(inside + count, row),
        0x111..=0x11f => lane_within_row(inside.wrapping_sub(count), row),
        0x121..=0x12f => lane_within_row(inside.wrapping_sub(count) & 15, row),
        0x130 => lane_within_wave(lane + 1),
        0x134 => Some((lane + 1) & 63),
        0x138 => lane_within_wave(lane.wrapping_sub(1)),
        0x13c => Some(lane.wrapping_sub(1) & 63),
        0x140 => lane_within_row(15 - inside, row),
        0x141 => lane_within_row((inside & 8) | (7 - (inside & 7)), row),
        // The last lane of the row before; the last lane of the first half.
        0x142 => lane_within_wave(row.wrapping_sub(1)),
        0x143 => (lane >= 32).then_some(31),
        0x150..=0x15f => lane_within_row(count, row),
        0x160..=0x16f => lane_within_row(inside ^ count, row),
        _ => None,
    }
}

fn lane_within_row(position: usize, row: usize) -> Option<usize> {
    (position < 16).then_some(row | position)
}

fn lane_within_wave(lane: usize) -> Option<usize> {
    (lane < 64).then_some(lane)
}

/// Whether the pattern is one of those above.
pub(crate) fn is_known(pattern: DppPattern) -> bool {
    match pattern {
        DppPattern::Eight(_) => true,
        DppPattern::Sixteen(control) => {
            let in_row = matches!(control, 0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x140 | 0x141 | 0x150..=0x16f);
            in_row || crosses_halves(pattern)
        }
    }
}
