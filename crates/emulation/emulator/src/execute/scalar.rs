//! Scalar instructions with a row.

use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of, writable_slot};
use crate::micro::{DestOperand, MicroOp, MicroOpBody, SourceOperand};
use crate::registers::{self, EXEC};
use hotswap_semantics::{ScalarInput, ScalarUse};

/// A value or a condition.
pub(crate) fn compute_value(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Scalar { row, writes_condition } = op.body else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    let mask = if row.bits == 64 { u64::MAX } else { 0xffff_ffff };
    let [first, second, third] = &op.sources;
    let (a, b, c) = (scalar_of(wave, first), scalar_of(wave, second), scalar_of(wave, third));
    // Of shifts the second source is shorter than the first; functions take the bits that count.
    let input = ScalarInput { a: a & mask, b: b & mask, c: c & mask, scc: wave.scc, mode: wave.float_mode };
    let (result, condition) = (row.function)(input);
    if let (ScalarUse::Value(bits), DestOperand::Scalar(slot)) = (row.result, op.target) {
        let slot = writable_slot(slot);
        if bits == 64 {
            wave.set_pair(slot, result);
        } else {
            wave.scalars[usize::from(slot)] = result as u32;
        }
    }
    if writes_condition {
        wave.scc = condition;
    }
    Ok(StepFlow::Next)
}

/// Changes of EXEC that save it.
pub(crate) fn update_exec(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Scalar { row, .. } = op.body else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    let wide = row.bits == 64;
    let old = if wide { wave.pair(EXEC) } else { wave.scalars[usize::from(EXEC)].into() };
    let a = scalar_of(wave, &op.sources[0]);
    let input = ScalarInput { a, b: old, c: 0, scc: wave.scc, mode: wave.float_mode };
    let (result, condition) = (row.function)(input);
    let saved = if row.result == ScalarUse::SaveExec { old } else { result };
    if let DestOperand::Scalar(slot) = op.target {
        put_exec_mask(writable_slot(slot), saved, wide, wave);
    }
    put_exec_mask(EXEC, result, wide, wave);
    wave.scc = condition;
    Ok(StepFlow::Next)
}

fn put_exec_mask(slot: u8, value: u64, wide: bool, wave: &mut crate::wave::WaveState) {
    match wide {
        true => wave.set_pair(slot, value),
        false => wave.scalars[usize::from(slot)] = value as u32,
    }
}

/// A scalar register with a number that M0 adds to.
fn relative_slot(step: &ExecContext<'_>, slot: u8, op: &MicroOp) -> Result<u8, Box<StepFault>> {
    let number = u32::from(slot).wrapping_add(step.wave.scalars[usize::from(registers::M0)]);
    u8::try_from(number).ok().filter(|number| *number < registers::VCC).ok_or_else(|| StepFault::unknown(op, "M0"))
}

/// `s_movrels`: the source is relative to M0.
pub(crate) fn move_relative_source(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (SourceOperand::Scalar(source), DestOperand::Scalar(target)) = (op.sources[0], op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let source = relative_slot(step, source, op)?;
    let value = step.wave.pair(source);
    match op.immediate {
        64 => step.wave.set_pair(writable_slot(target), value),
        _ => step.wave.scalars[usize::from(writable_slot(target))] = value as u32,
    }
    Ok(StepFlow::Next)
}

/// `s_movreld`: the destination is relative to M0.
pub(crate) fn move_relative_target(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Scalar(target) = op.target else { return Err(StepFault::unknown(op, "")) };
    let target = relative_slot(step, target, op)?;
    let value = scalar_of(step.wave, &op.sources[0]);
    match op.immediate {
        64 => step.wave.set_pair(target, value),
        _ => step.wave.scalars[usize::from(target)] = value as u32,
    }
    Ok(StepFlow::Next)
}
