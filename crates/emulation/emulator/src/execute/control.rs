//! Branches, calls, ends, barriers, sleeps and traps.

use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of, writable_slot};
use crate::fault::FaultKind;
use crate::micro::{DestOperand, MicroOp};
use crate::registers::VCC;
use crate::wave::WaveStatus;

/// Address of the instruction after this one; the program counter is still at this one.
fn next_address(step: &ExecContext<'_>, op: &MicroOp) -> u64 {
    step.wave.pc + u64::from(op.length)
}

fn jump_to(step: &mut ExecContext<'_>, target: u64) -> StepResult {
    step.wave.pc = target;
    Ok(StepFlow::Jump)
}

fn branch_if(step: &mut ExecContext<'_>, op: &MicroOp, taken: bool) -> StepResult {
    if !taken {
        return Ok(StepFlow::Next);
    }
    let target = next_address(step, op).wrapping_add_signed(op.immediate);
    jump_to(step, target)
}

pub(crate) fn branch_always(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    branch_if(step, op, true)
}

pub(crate) fn branch_scc0(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = !step.wave.scc;
    branch_if(step, op, taken)
}

pub(crate) fn branch_scc1(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = step.wave.scc;
    branch_if(step, op, taken)
}

pub(crate) fn branch_vccz(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = step.wave.slot_mask(VCC) == 0;
    branch_if(step, op, taken)
}

pub(crate) fn branch_vccnz(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = step.wave.slot_mask(VCC) != 0;
    branch_if(step, op, taken)
}

pub(crate) fn branch_execz(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = step.wave.exec_mask() == 0;
    branch_if(step, op, taken)
}

pub(crate) fn branch_execnz(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let taken = step.wave.exec_mask() != 0;
    branch_if(step, op, taken)
}

/// The address of the next instruction.
pub(crate) fn get_pc(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    write_return_address(step, op)?;
    Ok(StepFlow::Next)
}

/// Writes the address of the next instruction.
fn write_return_address(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    let next = next_address(step, op);
    step.wave.set_pair(writable_slot(slot), next);
    Ok(StepFlow::Next)
}

pub(crate) fn set_pc(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let target = scalar_of(step.wave, &op.sources[0]);
    jump_to(step, target & !3)
}

pub(crate) fn swap_pc(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let target = scalar_of(step.wave, &op.sources[0]);
    write_return_address(step, op)?;
    jump_to(step, target & !3)
}

pub(crate) fn add_pc(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let target = next_address(step, op).wrapping_add(scalar_of(step.wave, &op.sources[0]));
    jump_to(step, target & !3)
}

pub(crate) fn call_relative(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    write_return_address(step, op)?;
    branch_if(step, op, true)
}

pub(crate) fn end_program(step: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    step.wave.status = WaveStatus::Ended;
    step.barrier.remove_wave();
    Ok(StepFlow::Stop)
}

pub(crate) fn sleep(_: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    Ok(StepFlow::Yield)
}

pub(crate) fn raise_trap(_: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    Err(StepFault::new(FaultKind::Trap { number: op.immediate as u8 }))
}

/// Signal and wait in one.
pub(crate) fn signal_and_wait(step: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    let (phase, _) = step.barrier.signal_arrival();
    if step.barrier.phase == phase {
        step.wave.status = WaveStatus::AtBarrier(phase);
        step.wave.pc += 4;
        return Ok(StepFlow::Stop);
    }
    Ok(StepFlow::Next)
}

/// The work-group's barrier is -1, that of a cluster -3; others are not known.
fn is_of_workgroup(number: i64) -> bool {
    number as i32 == -1
}

/// The barrier of a cluster. One wave of each work-group signals, every wave waits: so LLVM lowers `s.cluster.barrier`.
fn is_of_cluster(number: i64) -> bool {
    number as i32 == -3
}

pub(crate) fn barrier_signal(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let number = scalar_of(step.wave, &op.sources[0]) as i64;
    if is_of_cluster(number) {
        step.barrier.cluster_phase += 1;
        return Ok(StepFlow::Next);
    }
    if !is_of_workgroup(number) {
        return Err(StepFault::unknown(op, "a barrier other than the work-group's"));
    }
    let (phase, _) = step.barrier.signal_arrival();
    step.wave.signalled = Some(phase);
    Ok(StepFlow::Next)
}

pub(crate) fn barrier_signal_isfirst(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    if !is_of_workgroup(scalar_of(step.wave, &op.sources[0]) as i64) {
        return Err(StepFault::unknown(op, "a barrier other than the work-group's"));
    }
    let (phase, first) = step.barrier.signal_arrival();
    step.wave.signalled = Some(phase);
    step.wave.scc = first;
    Ok(StepFlow::Next)
}

pub(crate) fn barrier_wait(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let number = i64::from(op.immediate as i16);
    if is_of_cluster(number) {
        if step.barrier.cluster_phase > step.wave.cluster_waits {
            step.wave.cluster_waits += 1;
            return Ok(StepFlow::Next);
        }
        step.wave.status = WaveStatus::AtClusterBarrier;
        step.wave.pc += 4;
        return Ok(StepFlow::Stop);
    }
    if !is_of_workgroup(number) {
        return Err(StepFault::unknown(op, "a barrier other than the work-group's"));
    }
    let Some(phase) = step.wave.signalled.take() else {
        return Err(StepFault::unknown(op, "a wait without a signal"));
    };
    if step.barrier.phase == phase {
        step.wave.status = WaveStatus::AtBarrier(phase);
        step.wave.pc += 4;
        return Ok(StepFlow::Stop);
    }
    Ok(StepFlow::Next)
}

/// Messages to the host and to other blocks: none of them changes what a wave sees.
pub(crate) fn send_message(_: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    match op.immediate & 15 {
        // Interrupt, and the release of registers at the end.
        1 | 3 => Ok(StepFlow::Yield),
        _ => Err(StepFault::unknown(op, "the message")),
    }
}

/// Messages with an answer: a clock, or something that no kernel of the HSA ABI asks for.
pub(crate) fn send_message_returning(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (DestOperand::Scalar(slot), Some(value)) =
        (op.target, super::hardware::message_answer(step.wave, op.immediate))
    else {
        return Err(StepFault::unknown(op, "the message"));
    };
    step.wave.set_pair(writable_slot(slot), value);
    Ok(StepFlow::Next)
}
