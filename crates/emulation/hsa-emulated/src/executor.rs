//! The way to the emulator: one dispatch in, counts or a fault out.
//!
//! Invariant: the memory that kernels see is [`MEMORY`]; what is not registered there is a fault, never a crash.

use crate::settings::EmulationSettings;
use hotswap_emulator::{DispatchCounts, EmulatedDevice, ExecutionFault, KernelDispatch, ProcessMemory, run_dispatch};
use hotswap_targets::TargetId;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

/// The memory of this process that kernels may access.
pub(crate) static MEMORY: LazyLock<ProcessMemory> = LazyLock::new(ProcessMemory::new);

/// Wave instructions of one wave without a setting: minutes of execution, which no kernel of a correct program takes.
const DEFAULT_BUDGET: u64 = 20_000_000_000;

/// Dispatches that are being executed.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Waits for the packets of all queues. A function that queues set, because they use memory, and memory waits for them.
pub(crate) static SETTLE: OnceLock<fn()> = OnceLock::new();

/// Waits for what was started before, for a while.
pub(crate) fn settle_queues() {
    if let Some(settle) = SETTLE.get() {
        settle();
    }
}

/// An error has ended a queue.
static LOST: AtomicBool = AtomicBool::new(false);

pub(crate) fn lose_gpu() {
    LOST.store(true, Ordering::SeqCst);
}

/// Whether an error has ended a queue of this process.
pub(crate) fn has_lost_gpu() -> bool {
    LOST.load(Ordering::SeqCst)
}

/// Makes the device of a queue.
#[derive(Debug)]
pub(crate) struct DeviceExecutor {
    target: TargetId,
    budget: u64,
    clock_mhz: u32,
    late: bool,
    poison: bool,
    counters: bool,
    threads: Option<usize>,
    matrix: Option<String>,
}

impl DeviceExecutor {
    /// An error for processors whose code cannot be executed.
    pub(crate) fn new(target: TargetId, clock_mhz: u32, settings: &EmulationSettings) -> Result<Self, String> {
        EmulatedDevice::new(target.processor.name).map_err(|error| error.to_string())?;
        let budget = settings.budget.unwrap_or(DEFAULT_BUDGET);
        let EmulationSettings { late, poison, counters, threads, .. } = *settings;
        Ok(Self { target, budget, clock_mhz, late, poison, counters, threads, matrix: settings.matrix.clone() })
    }

    /// Whether memory that nothing has written holds values that are not zero.
    pub(crate) fn poisons(&self) -> bool {
        self.poison
    }

    /// A device for one queue: what stops a queue's kernel must not stop another's.
    pub(crate) fn make_device(&self) -> Result<EmulatedDevice, String> {
        let mut device = EmulatedDevice::new(self.target.processor.name).map_err(|error| error.to_string())?;
        device.instruction_budget = Some(self.budget);
        device.clock_mhz = Some(self.clock_mhz);
        device.late_completion = self.late;
        device.poison = self.poison;
        device.counters = self.counters;
        device.threads = self.threads.unwrap_or(device.threads);
        if let Some(name) = &self.matrix {
            device.choose_matrix_model(name);
        }
        Ok(device)
    }
}

/// Executes a dispatch of the GPU with that number.
pub(crate) fn execute_dispatch(
    gpu: usize,
    device: &EmulatedDevice,
    dispatch: &KernelDispatch,
) -> Result<DispatchCounts, ExecutionFault> {
    RUNNING.fetch_add(1, Ordering::AcqRel);
    let result = run_dispatch(device, &MEMORY.view_of_gpu(gpu), dispatch);
    RUNNING.fetch_sub(1, Ordering::AcqRel);
    result
}

/// Whether a kernel may access memory now.
pub(crate) fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire) > 0
}
