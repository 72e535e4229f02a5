//! The state of a wave.

use crate::late::LateResults;
use crate::registers::{self, EXEC, SCALAR_SLOTS};
use crate::store_watch::StoreWatch;
use hotswap_semantics::{FloatMode, LANES, Lanes};

/// The state of a wave.
#[derive(Debug)]
pub(crate) struct WaveState {
    /// Address of the next instruction.
    pub(crate) pc: u64,
    /// Laid out as [`registers`] says.
    pub(crate) scalars: [u32; SCALAR_SLOTS],
    /// Registers one after another; those of a wave of 64 lanes as two blocks of 32.
    pub(crate) vectors: Vec<Lanes>,
    /// Blocks of 32 lanes: 1 or 2.
    pub(crate) halves: usize,
    /// Vector registers that it has.
    pub(crate) vector_count: u16,
    pub(crate) scc: bool,
    pub(crate) mode: u32,
    /// Banks of vector registers, as the low byte of `s_set_vgpr_msb`; on gfx9 whether they are indexed.
    pub(crate) banks: u8,
    /// Modes of floats, as of [`WaveState::mode`].
    pub(crate) float_mode: FloatMode,
    /// The modes of floats lack bits for IEEE and clamping (from gfx12 on).
    pub(crate) fixed_modes: bool,
    /// Scratch, lane after lane.
    pub(crate) scratch: Vec<u8>,
    /// Bytes of scratch of a lane.
    pub(crate) scratch_size: u32,
    /// Elements of products whose value depends on the order of additions.
    pub(crate) undetermined: u64,
    /// Instructions executed so far.
    pub(crate) executed: u64,
    pub(crate) status: WaveStatus,
    /// The phase of the barrier that it signalled.
    pub(crate) signalled: Option<u64>,
    /// Operations that are not complete, where results are late.
    pub(crate) late: Option<LateResults>,
    /// The stores of the current instruction, where the device counts lanes that meet.
    pub(crate) store_watch: Option<Box<StoreWatch>>,
    /// The phase of the global barrier that it waits in.
    pub(crate) global_phase: Option<u64>,
    /// Phases of the cluster's barrier that it has waited for.
    pub(crate) cluster_waits: u64,
    /// Scratch that is in a private aperture of the global address space is at `base + lane << shift` (gfx12.5).
    pub(crate) lane_shift: Option<u32>,
}

/// Whether a wave can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveStatus {
    Runs,
    /// Until the phase of the barrier is not this one any more.
    AtBarrier(u64),
    /// Until the barrier of the cluster has had a further phase.
    AtClusterBarrier,
    Ended,
}

/// The blocks of vector registers but one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherBlocks<'a> {
    before: &'a [Lanes],
    after: &'a [Lanes],
    halves: usize,
}

impl<'a> OtherBlocks<'a> {
    /// The block of another vector register than that one.
    #[inline(always)]
    pub(crate) fn block(&self, register: u16, half: usize) -> &'a Lanes {
        let number = usize::from(register) * self.halves + half;
        match number.checked_sub(self.before.len()) {
            None => &self.before[number],
            Some(distance) => &self.after[distance - 1],
        }
    }
}

impl WaveState {
    /// Banks of vector registers; only gfx12.5 has them.
    pub(crate) fn register_banks(&self) -> u8 {
        if self.lane_shift.is_some() { self.banks } else { 0 }
    }

    /// 64 bits from a slot.
    #[inline]
    pub(crate) fn pair(&self, slot: u8) -> u64 {
        let slot = usize::from(slot);
        u64::from(self.scalars[slot]) | u64::from(self.scalars[slot + 1]) << 32
    }

    /// Sets 64 bits from a slot; NULL keeps its value.
    #[inline]
    pub(crate) fn set_pair(&mut self, slot: u8, value: u64) {
        let slot = usize::from(slot);
        self.scalars[slot] = value as u32;
        self.scalars[slot + 1] = (value >> 32) as u32;
    }

    /// EXEC of 32 lanes.
    #[inline]
    pub(crate) fn exec_half(&self, half: usize) -> u32 {
        self.scalars[usize::from(EXEC) + half]
    }

    /// EXEC of all lanes.
    #[inline]
    pub(crate) fn exec_mask(&self) -> u64 {
        if self.halves == 1 { self.scalars[usize::from(EXEC)].into() } else { self.pair(EXEC) }
    }

    /// A mask of all lanes at a slot.
    #[inline]
    pub(crate) fn slot_mask(&self, slot: u8) -> u64 {
        if self.halves == 1 { self.scalars[usize::from(slot)].into() } else { self.pair(slot) }
    }

    /// Sets a mask of all lanes at a slot.
    #[inline]
    pub(crate) fn set_mask(&mut self, slot: u8, value: u64) {
        if self.halves == 1 {
            self.scalars[usize::from(slot)] = value as u32;
        } else {
            self.set_pair(slot, value);
        }
    }

    pub(crate) fn lane_count(&self) -> usize {
        LANES * self.halves
    }

    /// The block of a vector register.
    #[inline]
    pub(crate) fn block(&self, register: u16, half: usize) -> &Lanes {
        &self.vectors[usize::from(register) * self.halves + half]
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, register: u16, half: usize) -> &mut Lanes {
        &mut self.vectors[usize::from(register) * self.halves + half]
    }

    /// The block of a vector register to be written, and the blocks of all others.
    #[inline(always)]
    pub(crate) fn block_and_others(&mut self, register: u16, half: usize) -> (&mut Lanes, OtherBlocks<'_>) {
        let number = usize::from(register) * self.halves + half;
        let (before, rest) = self.vectors.split_at_mut(number);
        let (block, after) = rest.split_at_mut(1);
        (&mut block[0], OtherBlocks { before, after, halves: self.halves })
    }

    /// The block of a vector register, and the scratch of all lanes.
    pub(crate) fn block_and_scratch(&mut self, register: u16, half: usize) -> (&mut Lanes, &mut [u8]) {
        (&mut self.vectors[usize::from(register) * self.halves + half], &mut self.scratch)
    }

    /// The value of a vector register in a lane.
    #[inline]
    pub(crate) fn lane(&self, register: u16, lane: usize) -> u32 {
        self.block(register, lane / LANES)[lane % LANES]
    }

    #[inline]
    pub(crate) fn set_lane(&mut self, register: u16, lane: usize, value: u32) {
        self.block_mut(register, lane / LANES)[lane % LANES] = value;
    }

    /// 64 bits of two registers in a lane.
    #[inline]
    pub(crate) fn lane_pair(&self, register: u16, lane: usize) -> u64 {
        u64::from(self.lane(register, lane)) | u64::from(self.lane(register + 1, lane)) << 32
    }

    /// Sets MODE, and what follows from it.
    pub(crate) fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
        self.float_mode = FloatMode {
            bits: mode as u8,
            clamp_overflow: mode >> 23 & 1 != 0,
            ieee: self.fixed_modes || mode >> 9 & 1 != 0,
            clamp_nan: self.fixed_modes || mode >> 8 & 1 != 0,
        };
    }

    /// Whether VCC is 0.
    #[inline]
    pub(crate) fn vcc_is_zero(&self) -> bool {
        self.slot_mask(registers::VCC) == 0
    }
}
