//! Executes AMDGPU device code on the CPU: waves, registers, LDS, scratch, memory.
//!
//! [`run_dispatch`] executes an AQL dispatch on an [`EmulatedDevice`]. Memory is a [`DeviceMemory`]: that of this process
//! ([`ProcessMemory`], for an HSA library) or one of its own ([`SparseMemory`], for the direct launcher and tests).
//!
//! Invariants: an instruction whose meaning is not known ends the dispatch with its name, never with a guess. No access
//! of a kernel leaves the valid ranges. Results do not depend on the number of threads unless the kernel does.
//!
//! Absent on purpose: queues, signals and code object loading of HSA, and timing.

mod buffer_resource;
mod code;
mod coverage;
mod device;
mod direct;
mod dispatch;
mod execute;
mod fault;
mod group;
mod late;
mod loader;
mod memory;
mod memory_operation;
mod micro;
mod registers;
mod schedule;
mod snippet;
mod stepping;
mod store_watch;
mod translate;
pub mod variables;
mod wave;
mod wave_launch;

pub use coverage::known_mnemonics;
pub use device::{
    EmulatedDevice, MATRIX_CHOICES, POISON_WORD, PRIVATE_APERTURE, PlantedFault, SHARED_APERTURE, UnknownDevice,
};
pub use direct::{DirectLaunch, LaunchError, argument_bytes, launch_kernel, packet_bytes, queue_bytes, read_back};
pub use dispatch::{AqlDispatch, DispatchCounts, KernelDispatch};
pub use fault::{ExecutionFault, FaultKind, FaultPlace};
pub use hotswap_semantics::MatrixModel;
pub use loader::{KernelArgument, LoadedKernel, LoadedObject};
pub use memory::{
    DeviceMemory, GpuAccess, GpuMemory, LaneAddresses, MemoryFault, ProcessMemory, RangeAccess, SparseMemory,
    WriteRecord,
};
pub use schedule::run_dispatch;
pub use snippet::{SnippetEnd, SnippetMachine, SnippetShape, scalar_registers};
