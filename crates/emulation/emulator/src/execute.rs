//! Executes one instruction.

pub(crate) mod asynchronous;
pub(crate) mod buffer;
pub(crate) mod control;
pub(crate) mod cross_lane;
pub(crate) mod data;
pub(crate) mod dpp;
pub(crate) mod dual;
pub(crate) mod float8;
pub(crate) mod global;
pub(crate) mod hardware;
pub(crate) mod lane_words;
pub(crate) mod lds;
pub(crate) mod lookup;
pub(crate) mod matrix;
pub(crate) mod mixed;
pub(crate) mod operand_words;
pub(crate) mod packed;
pub(crate) mod scalar;
pub(crate) mod scalar_memory;
pub(crate) mod sdwa;
pub(crate) mod uninterpreted;
pub(crate) mod unsigned_float;
pub(crate) mod vector;

pub(crate) use crate::micro::{ExecContext, InstHandler, StepFault, StepFlow, StepResult};

use crate::fault::FaultKind;
use crate::micro::{MicroOp, MicroOpBody, SourceOperand};
use crate::registers;
use crate::wave::WaveState;
use hotswap_semantics::{BITS, LANES, Lanes, WideLanes};

/// The handler of instructions without a row.
pub(crate) fn unknown_instruction(_: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    Err(StepFault::unknown(op, ""))
}

/// The handler of instructions with a register that the wave does not have.
pub(crate) fn missing_register(_: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let name = if let MicroOpBody::MissingRegister(reg) = op.body { reg.to_string() } else { String::new() };
    Err(StepFault::new(FaultKind::Register { name }))
}

/// The handler of instructions that the stepping does not execute as intended.
pub(crate) fn stepping_trap(_: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let rule = if let MicroOpBody::Trapped(rule) = op.body { rule } else { "" };
    Err(StepFault::new(FaultKind::SteppingTrap { mnemonic: op.inst.mnemonic(), rule }))
}

/// The handler of instructions whose effects are not visible: waits, hints, caches.
pub(crate) fn no_effect(_: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    Ok(StepFlow::Next)
}

/// The lanes of a source that an instruction does not have: functions of two sources may look at the third one for NaNs.
pub(crate) static NO_LANES: Lanes = [0; LANES];

/// A dword of each lane.
#[inline(always)]
pub(crate) fn lanes_of<'a>(
    wave: &'a WaveState,
    source: &SourceOperand,
    half: usize,
    space: &'a mut Lanes,
) -> &'a Lanes {
    match *source {
        SourceOperand::Vector { register, .. } => return wave.block(register, half),
        SourceOperand::None => return &NO_LANES,
        _ => *space = [scalar_of(wave, source) as u32; LANES],
    }
    space
}

/// 64 bits of each lane.
pub(crate) fn wide_of(wave: &WaveState, source: &SourceOperand, half: usize) -> WideLanes {
    match *source {
        SourceOperand::Vector { register, .. } => {
            let (low, high) = (wave.block(register, half), wave.block(register + 1, half));
            std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32)
        }
        SourceOperand::None => [0; LANES],
        _ => [scalar_of(wave, source); LANES],
    }
}

/// The value of a source that is the same in all lanes; 0 for vector registers.
#[inline]
pub(crate) fn scalar_of(wave: &WaveState, source: &SourceOperand) -> u64 {
    match *source {
        SourceOperand::Scalar(slot) => wave.pair(slot),
        SourceOperand::Constant(value) => value,
        SourceOperand::Vccz => wave.vcc_is_zero().into(),
        SourceOperand::Execz => (wave.exec_mask() == 0).into(),
        SourceOperand::Scc => wave.scc.into(),
        SourceOperand::None | SourceOperand::Vector { .. } => 0,
    }
}

/// A bit of each lane.
#[inline]
pub(crate) fn mask_of(wave: &WaveState, source: &SourceOperand, half: usize) -> u32 {
    match *source {
        SourceOperand::Scalar(slot) => wave.scalars[usize::from(slot) + half],
        _ => (scalar_of(wave, source) >> (32 * half)) as u32,
    }
}

/// Writes the lanes of `mask`.
#[inline(always)]
pub(crate) fn write_lanes(target: &mut Lanes, values: &Lanes, mask: u32) {
    if mask == u32::MAX {
        *target = *values;
        return;
    }
    for lane in 0..LANES {
        // Both are read: a choice between addresses would not be compiled to vectors.
        let chosen = if mask & BITS[lane] != 0 { u32::MAX } else { 0 };
        target[lane] = values[lane] & chosen | target[lane] & !chosen;
    }
}

/// The number of the first slot that takes writes.
pub(crate) fn writable_slot(slot: u8) -> u8 {
    if slot == registers::NULL { registers::DISCARD } else { slot }
}
