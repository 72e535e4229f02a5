//! Dual instructions: both halves read before either writes.

use super::vector::{compute_lanes, gather_sources, plain_sources, store_result};
use super::{ExecContext, StepFault, StepFlow, StepResult, mask_of, write_lanes};
use crate::micro::{DestOperand, Extra, MicroOp, MicroOpBody};
use crate::wave::WaveState;
use hotswap_semantics::{LANES, LaneFunction, NarrowFunction, WideLanes};

fn half_result(wave: &WaveState, op: &MicroOp, half: usize) -> Result<WideLanes, Box<StepFault>> {
    let MicroOpBody::Vector { row, function } = op.body else { return Err(StepFault::unknown(op, "half of it")) };
    let gathered = gather_sources(wave, op, row.sources, half);
    let bits = mask_of(wave, &op.mask_source, half);
    Ok(compute_lanes(function, &gathered.sources, bits, wave).0)
}

/// The function and target of a half without modifiers.
fn plain_function(op: &MicroOp) -> Option<(NarrowFunction, u16)> {
    match (op.body, op.target) {
        (
            MicroOpBody::Vector { row, function: LaneFunction::Narrow(function) },
            DestOperand::Vector { register, .. },
        ) => op.is_plain(row.sources, row.result).then_some((function, register)),
        _ => None,
    }
}

/// Both halves, without modifiers.
fn execute_plain(
    step: &mut ExecContext<'_>,
    halves: &[MicroOp; 2],
    functions: [(NarrowFunction, u16); 2],
) -> StepResult {
    let ExecContext { wave, space, .. } = step;
    for half in 0..wave.halves {
        let mut results = [[0; LANES]; 2];
        for ((op, (function, _)), result) in halves.iter().zip(functions).zip(&mut results) {
            let [first, second, third, _] = &mut **space;
            function(result, &plain_sources(wave, op, half, [first, second, third]), wave.float_mode);
        }
        let mask = wave.exec_half(half);
        for ((_, register), result) in functions.into_iter().zip(&results) {
            write_lanes(wave.block_mut(register, half), result, mask);
        }
    }
    Ok(StepFlow::Next)
}

pub(crate) fn execute_both(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let Some(Extra::Dual(halves)) = op.extra.as_deref() else { return Err(StepFault::unknown(op, "")) };
    if let (Some(first), Some(second)) = (plain_function(&halves[0]), plain_function(&halves[1])) {
        return execute_plain(step, halves, [first, second]);
    }
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let results = [half_result(wave, &halves[0], half)?, half_result(wave, &halves[1], half)?];
        let mask = wave.exec_half(half);
        for (one, result) in halves.iter().zip(&results) {
            if let MicroOpBody::Vector { row, .. } = one.body {
                store_result(wave, one, result, row.result, mask, half);
            }
        }
    }
    Ok(StepFlow::Next)
}
