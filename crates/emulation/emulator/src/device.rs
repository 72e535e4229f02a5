//! The device that executes: its target and its options.

use hotswap_isa::{Feature, Isa, Target};
use hotswap_semantics::MatrixModel;
use hotswap_targets::Processor;
use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Start of the aperture of LDS in flat addresses. The upper half is what `hidden_shared_base` holds.
pub const SHARED_APERTURE: u64 = 1 << 48;
/// Start of the aperture of scratch in flat addresses. The upper half is what `hidden_private_base` holds.
pub const PRIVATE_APERTURE: u64 = 2 << 48;

/// A value that no program expects: as a float of 16, 32 and 64 bits not a number, as an address not valid.
pub const POISON_WORD: u32 = 0x7ff5_7ff5;

/// A device: a target with options of the execution.
#[derive(Debug)]
pub struct EmulatedDevice {
    /// The processor, for example gfx1031. `gfx1250-strict` is a processor of its own: the stepping is part of it.
    pub processor: &'static Processor,
    /// Threads that execute work-groups.
    pub threads: usize,
    /// Instructions that a wave may execute; `None` for any number.
    pub instruction_budget: Option<u64>,
    /// Instructions of one turn of a wave, at least 1. What a kernel without races computes does not depend on it.
    pub turn: u64,
    /// The frequency of the cycle counters, which follow the system's clock then; `None`: a cycle is an instruction of the wave, so
    /// that a run gives the same counts again.
    pub clock_mhz: Option<u32>,
    /// Registers, LDS and scratch that a wave begins with, and of which the ABI states nothing, hold [`POISON_WORD`] instead of 0.
    pub poison: bool,
    /// Results of memory operations arrive as late as the wait counters allow.
    pub late_completion: bool,
    /// Instructions are counted by mnemonic.
    pub counters: bool,
    /// The arithmetic of products of matrices where the order of additions matters, which hardware does not document.
    pub matrix_model: MatrixModel,
    /// A product of which an element depends on the order of additions is a fault. Without, such elements are counted.
    pub refuses_undetermined: bool,
    /// Set to end dispatches that run, with [`FaultKind::Stopped`](crate::FaultKind::Stopped).
    pub stop: AtomicBool,
    /// If it is there: counts instructions by which lanes store different values to one place. Which lane comes last is not
    /// documented, so the results of such code may differ between GPUs.
    pub meeting_stores: Option<AtomicU64>,
    /// Matrix products and tensor copies are functions of which only the arguments are known: for the comparison of two
    /// pieces of code, of no use to programs.
    pub uninterpreted: bool,
    /// A fault planted by a test that asks whether it is seen.
    pub planted: Option<PlantedFault>,
    /// The barrier of all waves of a cooperative launch (GWS); it outlives dispatches.
    pub(crate) global_barrier: Mutex<GlobalBarrier>,
    /// Caches that no thread uses now; their type is known to the module that keeps them.
    pub(crate) idle_caches: Mutex<Vec<Box<dyn Any + Send>>>,
    target: &'static Target,
    /// The stepping lacks forms that the other has.
    is_strict: bool,
}

/// How products of matrices are added, by name: a model, and whether elements that depend on it are refused.
pub const MATRIX_CHOICES: &[(&str, MatrixModel, bool)] = &[
    ("sequential", MatrixModel::Sequential, false),
    ("exact", MatrixModel::Exact, false),
    ("ring", MatrixModel::Ring, false),
    ("refuse", MatrixModel::Sequential, true),
];

/// An instruction that is executed wrongly on purpose: for tests that ask whether they would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlantedFault {
    /// Instructions with this mnemonic do nothing.
    Skipped(String),
    /// The first two sources of instructions with this mnemonic are exchanged.
    Exchanged(String),
}

/// A barrier of all waves of a dispatch.
#[derive(Debug, Default)]
pub(crate) struct GlobalBarrier {
    /// Waves that it waits for.
    pub(crate) waves: u32,
    arrived: u32,
    /// Number of phases that were completed.
    pub(crate) phase: u64,
}

impl GlobalBarrier {
    /// Sets the number of waves.
    pub(crate) fn initialise(&mut self, waves: u32) {
        *self = Self { waves, arrived: 0, phase: self.phase + 1 };
    }

    /// A wave arrives; returns the phase that it waits for.
    pub(crate) fn arrive(&mut self) -> u64 {
        let phase = self.phase;
        self.arrived += 1;
        if self.arrived >= self.waves {
            self.arrived = 0;
            self.phase += 1;
        }
        phase
    }
}

/// A processor that the emulator cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDevice {
    pub name: String,
}

impl std::fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code for {} cannot be executed", self.name)
    }
}

impl std::error::Error for UnknownDevice {}

/// The usual length of a turn.
const TURN: u64 = 4000;

impl EmulatedDevice {
    /// The processor `name` with the usual options: a thread for each core, no budget, no counters.
    ///
    /// # Errors
    /// For names that are not a processor of gfx9 to gfx12.5.
    pub fn new(name: &str) -> Result<Self, UnknownDevice> {
        let processor = hotswap_targets::find_processor(name).filter(|found| !found.withdrawn);
        let Some((processor, target)) = processor.zip(Target::find(name)) else {
            return Err(UnknownDevice { name: name.to_owned() });
        };
        Ok(Self {
            processor,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            instruction_budget: None,
            turn: TURN,
            clock_mhz: None,
            poison: false,
            late_completion: false,
            counters: false,
            matrix_model: MatrixModel::default(),
            refuses_undetermined: false,
            stop: AtomicBool::new(false),
            meeting_stores: None,
            uninterpreted: false,
            planted: None,
            global_barrier: Mutex::default(),
            idle_caches: Mutex::default(),
            target,
            is_strict: Isa::new(target).has(Feature::Gfx1250Strict),
        })
    }

    /// Sets how products of matrices are added; `false` for a name that is not in [`MATRIX_CHOICES`].
    pub fn choose_matrix_model(&mut self, name: &str) -> bool {
        let found = MATRIX_CHOICES.iter().find(|(own, ..)| *own == name);
        if let Some((_, model, refuses)) = found {
            (self.matrix_model, self.refuses_undetermined) = (*model, *refuses);
        }
        found.is_some()
    }

    /// Whether it gives wrong data for two elements of LDS that are not aligned.
    pub(crate) fn lacks_unaligned_pairs(&self) -> bool {
        self.is_strict
    }

    /// Whether a load for several work-groups of a cluster is a fault.
    pub(crate) fn lacks_multicast(&self) -> bool {
        self.is_strict
    }

    pub(crate) fn isa(&self) -> Isa {
        Isa::new(self.target)
    }
}
