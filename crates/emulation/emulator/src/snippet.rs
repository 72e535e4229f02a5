//! Runs a piece of code from any state to a stop: one wave, whose registers and LDS the caller sets and reads.
//!
//! For checks that compare two pieces of code on many states. The state outlives a run, so that a caller changes only the
//! registers that a piece uses.
//!
//! Invariants: nothing outside of the caller's memory, and of this state, changes.
//!
//! Absent on purpose: other waves. A barrier is passed at once, and a piece that waits for another wave ends by its budget.

use crate::code::CodeCache;
use crate::device::{EmulatedDevice, PRIVATE_APERTURE, SHARED_APERTURE};
use crate::fault::{ExecutionFault, FaultKind, FaultPlace};
use crate::group::GroupBarrier;
use crate::late::LateResults;
use crate::memory::DeviceMemory;
use crate::micro::{ExecContext, MicroOp, StepFault, StepFlow, StepResult};
use crate::registers::{self, ScalarName, VectorLimits};
use crate::wave::{WaveState, WaveStatus};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Isa, Wave};
use hotswap_semantics::{FloatMode, LANES, Lanes};

/// Sizes of a [`SnippetMachine`].
#[derive(Debug, Clone, Copy)]
pub struct SnippetShape {
    /// Lanes of the wave, 32 or 64.
    pub lanes: usize,
    pub vectors: u16,
    /// Size of LDS, in bytes.
    pub lds: usize,
    /// Bytes of scratch of a lane.
    pub scratch: u32,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnippetEnd {
    /// At an address at which the caller stops.
    Reached(u64),
    /// The wave has ended.
    Ended,
}

/// One wave with its LDS.
pub struct SnippetMachine<'a> {
    device: &'a EmulatedDevice,
    memory: &'a dyn DeviceMemory,
    isa: Isa,
    code: CodeCache,
    wave: WaveState,
    lds: Vec<u8>,
}

impl<'a> SnippetMachine<'a> {
    /// A wave whose registers are 0, with EXEC of 0.
    #[must_use]
    pub fn new(device: &'a EmulatedDevice, memory: &'a dyn DeviceMemory, shape: &SnippetShape) -> Self {
        let wave = if shape.lanes == LANES { Wave::W32 } else { Wave::W64 };
        let isa = device.isa().with_wave(wave);
        let limits = VectorLimits { vectors: shape.vectors, accumulators: 0 };
        let mut code = CodeCache::of_device(device, isa, limits);
        // Code stays as it is while the machine is there.
        code.discard_stale(memory);
        Self { device, memory, isa, code, wave: empty_wave(isa, shape), lds: vec![0; shape.lds] }
    }

    /// The bytes of LDS.
    #[must_use]
    pub fn lds(&self) -> &[u8] {
        &self.lds
    }

    /// The same, to change.
    pub fn lds_mut(&mut self) -> &mut [u8] {
        &mut self.lds
    }

    /// The bytes of scratch, lane after lane.
    #[must_use]
    pub fn scratch(&self) -> &[u8] {
        &self.wave.scratch
    }

    /// The same, to change.
    pub fn scratch_mut(&mut self) -> &mut [u8] {
        &mut self.wave.scratch
    }

    /// A vector register of 32 lanes; `half` is 1 for lanes 32 to 63.
    #[must_use]
    pub fn vector(&self, register: u16, half: usize) -> &Lanes {
        self.wave.block(register, half)
    }

    /// The same, to change.
    pub fn vector_mut(&mut self, register: u16, half: usize) -> &mut Lanes {
        self.wave.block_mut(register, half)
    }

    /// Blocks of 32 lanes.
    #[must_use]
    pub fn halves(&self) -> usize {
        self.wave.halves
    }

    /// The number of vector registers.
    #[must_use]
    pub fn vector_count(&self) -> u16 {
        self.wave.vector_count
    }

    /// A dword of a scalar register, or SCC; `None` for registers that a wave does not keep as numbers.
    #[must_use]
    pub fn scalar(&self, reg: Reg) -> Option<u32> {
        match registers::slot_of(Reg { half: None, ..reg })? {
            ScalarName::Slot(slot) => Some(self.wave.scalars[usize::from(slot)]),
            ScalarName::Scc => Some(self.wave.scc.into()),
            ScalarName::Vccz | ScalarName::Execz => None,
        }
    }

    /// Sets a dword of a scalar register, or SCC. NULL, and what no wave keeps, stays as it is.
    pub fn set_scalar(&mut self, reg: Reg, value: u32) {
        match registers::slot_of(Reg { half: None, ..reg }) {
            Some(ScalarName::Slot(slot)) if slot != registers::NULL => self.wave.scalars[usize::from(slot)] = value,
            Some(ScalarName::Scc) => self.wave.scc = value & 1 != 0,
            _ => {}
        }
    }

    /// The lanes of EXEC.
    #[must_use]
    pub fn exec(&self) -> u64 {
        self.wave.exec_mask()
    }

    /// MODE, with the banks of vector registers where there are any.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.wave.mode
    }

    /// The banks of vector registers, as the low byte of `s_set_vgpr_msb`.
    #[must_use]
    pub fn banks(&self) -> u8 {
        self.wave.banks
    }

    /// Sets MODE and the banks of vector registers.
    pub fn set_mode(&mut self, mode: u32, banks: u8) {
        self.wave.banks = banks;
        let bits = u32::from(banks.rotate_left(2)) << 12;
        self.wave.set_mode(if self.wave.lane_shift.is_some() { mode & !0xff000 | bits } else { mode });
    }

    /// From now on results of memory operations are late, or not; nothing is outstanding.
    pub fn set_late(&mut self, late: bool) {
        self.wave.late = late.then(|| LateResults::new(self.isa));
    }

    /// Registers that outstanding memory operations will write.
    #[must_use]
    pub fn outstanding_registers(&self) -> RegSet {
        self.wave.late.as_ref().map_or(RegSet::EMPTY, LateResults::outstanding_registers)
    }

    /// Makes all lanes, registers, LDS and scratch those of another machine of the same shape.
    pub fn copy_state(&mut self, other: &Self) {
        self.wave.scalars = other.wave.scalars;
        self.wave.vectors.copy_from_slice(&other.wave.vectors);
        self.lds.copy_from_slice(&other.lds);
        self.wave.scratch.copy_from_slice(&other.wave.scratch);
        self.wave.scc = other.wave.scc;
        self.set_mode(other.wave.mode, other.wave.banks);
    }

    /// Executes from `pc` until the address of the next instruction is one at which `stops`, or the wave ends.
    ///
    /// # Errors
    /// The fault of an instruction, or that of an exhausted budget.
    pub fn run_until(
        &mut self,
        pc: u64,
        budget: u64,
        stops: &dyn Fn(u64) -> bool,
    ) -> Result<SnippetEnd, Box<ExecutionFault>> {
        self.wave.pc = pc;
        self.wave.executed = 0;
        (self.wave.status, self.wave.signalled, self.wave.global_phase) = (WaveStatus::Runs, None, None);
        self.run_steps(budget, stops).map_err(|fault| {
            let StepFault { kind, lane } = *fault;
            let place = FaultPlace { pc: self.wave.pc, lane, ..FaultPlace::default() };
            Box::new(ExecutionFault { kind, place })
        })
    }

    fn run_steps(&mut self, budget: u64, stops: &dyn Fn(u64) -> bool) -> Result<SnippetEnd, Box<StepFault>> {
        let mut space = [[0; LANES]; 4];
        let mut barrier = GroupBarrier::new(1);
        let Self { device, memory, code, wave, lds, .. } = self;
        let mut wide_space = [[0; LANES]; 4];
        let mut step = ExecContext {
            wave,
            lds,
            barrier: &mut barrier,
            memory: *memory,
            device,
            space: &mut space,
            wide_space: &mut wide_space,
        };
        loop {
            let ops = code.block_at(step.wave.pc, step.wave.banks, *memory)?;
            for op in ops {
                let flow = execute_instruction(&mut step, op)?;
                if step.wave.status == WaveStatus::Ended {
                    return Ok(SnippetEnd::Ended);
                }
                if stops(step.wave.pc) {
                    return Ok(SnippetEnd::Reached(step.wave.pc));
                }
                if step.wave.executed >= budget {
                    return Err(StepFault::new(FaultKind::BudgetExhausted));
                }
                if flow != StepFlow::Next {
                    break;
                }
            }
        }
    }
}

fn execute_instruction(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let banks = step.wave.register_banks();
    if let Some(late) = &mut step.wave.late {
        late.track_instruction(&op.inst, banks).map_err(StepFault::new)?;
    }
    let flow = (op.handler)(step, op)?;
    step.wave.executed += 1;
    match flow {
        StepFlow::Next | StepFlow::Yield => step.wave.pc += u64::from(op.length),
        // A barrier of one wave is complete when it gets there.
        StepFlow::Stop if step.wave.status != WaveStatus::Ended => step.wave.status = WaveStatus::Runs,
        StepFlow::Jump | StepFlow::Again | StepFlow::Stop => {}
    }
    Ok(flow)
}

fn empty_wave(isa: Isa, shape: &SnippetShape) -> WaveState {
    let halves = shape.lanes / LANES;
    let mut wave = WaveState {
        pc: 0,
        scalars: registers::initial_file(SHARED_APERTURE, PRIVATE_APERTURE),
        vectors: vec![[0; LANES]; usize::from(shape.vectors) * halves],
        halves,
        vector_count: shape.vectors,
        scc: false,
        mode: 0,
        banks: 0,
        float_mode: FloatMode::PLAIN,
        fixed_modes: isa.has(Feature::Gfx12Insts),
        scratch: vec![0; shape.scratch as usize * shape.lanes],
        scratch_size: shape.scratch,
        undetermined: 0,
        executed: 0,
        status: WaveStatus::Runs,
        signalled: None,
        late: None,
        store_watch: None,
        global_phase: None,
        cluster_waits: 0,
        lane_shift: isa.has(Feature::Gfx1250Insts).then_some(if halves == 1 { 52 } else { 51 }),
    };
    wave.set_mode(0xf0);
    wave
}

/// The scalar registers that a [`SnippetMachine`] keeps and code can change: SGPRs, VCC, trap registers, M0, EXEC, SCC.
pub fn scalar_registers() -> impl Iterator<Item = Reg> {
    use hotswap_isa::reg::Special;
    let special = [Special::VccLo, Special::VccHi, Special::M0, Special::ExecLo, Special::ExecHi, Special::Scc];
    (0..106)
        .map(|index| Reg::new(RegFile::Sgpr, index, 1))
        .chain((0..16).map(|index| Reg::new(RegFile::Ttmp, index, 1)))
        .chain(special.map(|special| Reg::special(special, 1)))
}
