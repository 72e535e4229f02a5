//! Lookups of 16 elements in a table, which is in two sources (`v_perm_pk16_*`).

use super::vector::gather_sources;
use super::{ExecContext, StepFault, StepFlow, StepResult, write_lanes};
use crate::micro::{DestOperand, MicroOp, SourceOperand};
use hotswap_semantics::LaneType::{self, B32, B64};
use hotswap_semantics::{LANES, look_up_elements};

/// A table of 64 bits.
pub(crate) fn look_up_nibbles(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    write_selected(step, op, 4, [B32, B32])
}

/// A table of 96 bits; its upper 32 are the first source.
pub(crate) fn look_up_sixes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    write_selected(step, op, 6, [B32, B64])
}

/// A table of 128 bits.
pub(crate) fn look_up_bytes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    write_selected(step, op, 8, [B64, B64])
}

/// Writes elements of `bits` bits; the first part of the table is the upper one.
fn write_selected(step: &mut ExecContext<'_>, op: &MicroOp, bits: u32, table: [LaneType; 2]) -> StepResult {
    let DestOperand::Vector { register, .. } = op.target else { return Err(StepFault::unknown(op, "")) };
    if matches!(op.sources[2], SourceOperand::Constant(_)) {
        // No document says whether a constant is in one word of the pair or in both.
        return Err(StepFault::unknown(op, "a constant as indices"));
    }
    let wave = &mut *step.wave;
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [table[0], table[1], B64], block);
        let [upper, lower, indices] = &gathered.sources;
        let selected: [u128; LANES] = std::array::from_fn(|lane| {
            let table = u128::from(upper[lane]) << table[1].bits() | u128::from(lower[lane]);
            look_up_elements(table, indices[lane], bits)
        });
        for word in 0..bits / 2 {
            let words = selected.map(|elements| (elements >> (32 * word)) as u32);
            write_lanes(wave.block_mut(register + word as u16, block), &words, gathered.mask);
        }
    }
    Ok(StepFlow::Next)
}
