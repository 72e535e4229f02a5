//! Dual instructions: both halves read before either writes.

use super::vector::{compute, gather, store};
use super::{Flow, Outcome, Step, StepFault, mask_of};
use crate::micro::{Body, Extra, MicroOp};
use crate::wave::WaveState;
use hotswap_semantics::WideLanes;

fn half_result(wave: &WaveState, op: &MicroOp, half: usize) -> Result<WideLanes, Box<StepFault>> {
    let Body::Vector { row, function } = op.body else { return Err(StepFault::unknown(op, "half of it")) };
    let gathered = gather(wave, op, row.sources, half);
    let bits = mask_of(wave, &op.mask_source, half);
    Ok(compute(function, &gathered.sources, bits, wave).0)
}

/// Both halves.
pub(crate) fn both(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let Some(Extra::Dual(halves)) = op.extra.as_deref() else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let results = [half_result(wave, &halves[0], half)?, half_result(wave, &halves[1], half)?];
        let mask = wave.exec(half);
        for (one, result) in halves.iter().zip(&results) {
            if let Body::Vector { row, .. } = one.body {
                store(wave, one, result, row.result, mask, half);
            }
        }
    }
    Ok(Flow::Next)
}
