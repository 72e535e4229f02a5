//! Hardware registers: `s_getreg`, `s_setreg`, MODE, clocks.

use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of, writable_slot};
use crate::micro::{DestOperand, MicroOp};
use crate::registers;
use crate::wave::WaveState;
use crate::{PRIVATE_APERTURE, SHARED_APERTURE};
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const MODE: u32 = 1;
const STATUS: u32 = 2;
const SH_MEM_BASES: u32 = 15;
const FLAT_SCRATCH_LO: u32 = 20;
const FLAT_SCRATCH_HI: u32 = 21;
const IB_STS2: u32 = 28;
const SHADER_CYCLES: u32 = 29;
const SHADER_CYCLES_HI: u32 = 30;

/// Bit of MODE: vector registers are indexed (gfx9).
const GPR_IDX_EN: u32 = 1 << 27;

/// Register, lowest bit and width.
fn field_of_immediate(immediate: i64) -> (u32, u32, u32) {
    let bits = immediate as u32;
    (bits & 63, bits >> 6 & 31, (bits >> 11 & 31) + 1)
}

fn field_mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// The answer to `s_sendmsg_rtn`: 131 is the real-time clock.
pub(crate) fn message_answer(wave: &WaveState, message: i64) -> Option<u64> {
    match message {
        131 => Some(real_time(wave)),
        _ => None,
    }
}

/// A clock of 100 MHz.
fn real_time(_: &WaveState) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() / 10) as u64
}

/// The moment at which the counters of cycles were 0.
static FIRST_CYCLE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The counter of cycles. With a clock, programs that wait for a number of cycles wait for that time.
fn cycles(step: &ExecContext<'_>) -> u64 {
    match step.device.clock_mhz {
        Some(mhz) => (FIRST_CYCLE.elapsed().as_nanos() * u128::from(mhz) / 1000) as u64,
        None => step.wave.executed,
    }
}

fn read_hwreg(step: &ExecContext<'_>, register: u32) -> Option<u32> {
    let wave = &*step.wave;
    Some(match register {
        MODE => wave.mode,
        STATUS => u32::from(wave.scc) | u32::from(wave.exec_mask() == 0) << 9 | u32::from(wave.vcc_is_zero()) << 10,
        SH_MEM_BASES => (PRIVATE_APERTURE >> 48) as u32 | ((SHARED_APERTURE >> 48) as u32) << 16,
        FLAT_SCRATCH_LO => wave.scalars[usize::from(registers::FLAT_SCRATCH)],
        FLAT_SCRATCH_HI => wave.scalars[usize::from(registers::FLAT_SCRATCH) + 1],
        SHADER_CYCLES => cycles(step) as u32,
        SHADER_CYCLES_HI => (cycles(step) >> 32) as u32,
        // No clusters, no identity that a kernel could use.
        IB_STS2 | 4..=7 | 23 | 24 => 0,
        _ => return None,
    })
}

pub(crate) fn get_register(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (register, low, width) = field_of_immediate(op.immediate);
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    let value = read_hwreg(step, register).ok_or_else(|| StepFault::unknown(op, "the hardware register"))?;
    step.wave.scalars[usize::from(writable_slot(slot))] = value >> low & field_mask(width);
    Ok(StepFlow::Next)
}

pub(crate) fn set_register(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (register, low, width) = field_of_immediate(op.immediate);
    let bits = field_mask(width) << low;
    let value = (scalar_of(step.wave, &op.sources[0]) as u32) << low & bits;
    let wave = &mut *step.wave;
    match register {
        MODE => {
            let new = wave.mode & !bits | value;
            set_mode(wave, new, bits);
        }
        FLAT_SCRATCH_LO | FLAT_SCRATCH_HI => {
            let slot = registers::FLAT_SCRATCH + (register - FLAT_SCRATCH_LO) as u8;
            let old = wave.scalars[usize::from(slot)];
            wave.scalars[usize::from(slot)] = old & !bits | value;
        }
        // Scheduling and traps.
        3..=7 | 17 | 18 | 25..=28 => {}
        _ => return Err(StepFault::unknown(op, "the hardware register")),
    }
    Ok(StepFlow::Next)
}

/// Sets MODE; bits 12 to 19 are the banks of vector registers where there are any, the destination's lowest.
fn set_mode(wave: &mut WaveState, mode: u32, changed: u32) {
    wave.set_mode(mode);
    if wave.lane_shift.is_some() && changed & 0xff000 != 0 {
        wave.banks = ((mode >> 12) as u8).rotate_right(2);
    }
}

/// Executes `s_set_vgpr_msb`, which selects banks of vector registers.
pub(crate) fn set_banks(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let wave = &mut *step.wave;
    wave.banks = op.immediate as u8;
    let mode = wave.mode & !0xff000 | u32::from(wave.banks.rotate_left(2)) << 12;
    wave.set_mode(mode);
    Ok(StepFlow::Next)
}

/// `s_set_gpr_idx_on`: vector registers are indexed by the source; the immediate says which operands are.
pub(crate) fn index_on(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let index = scalar_of(step.wave, &op.sources[0]) as u32;
    set_index(step.wave, index & 255 | (op.immediate as u32 & 15) << 12, 0xf0ff);
    step.wave.banks = 1;
    step.wave.mode |= GPR_IDX_EN;
    Ok(StepFlow::Next)
}

/// Executes `s_set_gpr_idx_off`, which ends indexing.
pub(crate) fn index_off(step: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    step.wave.banks = 0;
    step.wave.mode &= !GPR_IDX_EN;
    Ok(StepFlow::Next)
}

/// Executes `s_set_gpr_idx_idx`, which sets another index.
pub(crate) fn index_set(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let index = scalar_of(step.wave, &op.sources[0]) as u32;
    set_index(step.wave, index & 255, 0xff);
    Ok(StepFlow::Next)
}

/// Executes `s_set_gpr_idx_mode`, which selects other operands.
pub(crate) fn index_mode(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    set_index(step.wave, (op.immediate as u32 & 15) << 12, 0xf000);
    Ok(StepFlow::Next)
}

fn set_index(wave: &mut WaveState, bits: u32, mask: u32) {
    let m0 = &mut wave.scalars[usize::from(registers::M0)];
    *m0 = *m0 & !mask | bits;
}

/// Executes `s_round_mode`, which sets the rounding.
pub(crate) fn set_rounding(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let mode = step.wave.mode & !0xf | op.immediate as u32 & 0xf;
    step.wave.set_mode(mode);
    Ok(StepFlow::Next)
}

/// Executes `s_denorm_mode`, which sets the handling of denormals.
pub(crate) fn set_denormals(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let mode = step.wave.mode & !0xf0 | (op.immediate as u32 & 0xf) << 4;
    step.wave.set_mode(mode);
    Ok(StepFlow::Next)
}

/// Executes `s_memtime`, which reads the counter of cycles.
pub(crate) fn read_cycles(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    let value = cycles(step);
    step.wave.set_pair(writable_slot(slot), value);
    Ok(StepFlow::Next)
}

/// Executes `s_memrealtime`, which reads a clock.
pub(crate) fn read_realtime(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    let value = real_time(step.wave);
    step.wave.set_pair(writable_slot(slot), value);
    Ok(StepFlow::Next)
}
