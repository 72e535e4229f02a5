//! From a dispatch to waves.

use crate::device::EmulatedDevice;
use crate::dispatch::{DispatchCounts, KernelDispatch};
use crate::fault::{ExecutionFault, FaultKind, FaultPlace};
use crate::memory::DeviceMemory;

pub(crate) fn run(
    device: &EmulatedDevice,
    _memory: &dyn DeviceMemory,
    _dispatch: &KernelDispatch,
) -> Result<DispatchCounts, ExecutionFault> {
    let _ = device.isa();
    let reason = "not built yet".to_owned();
    Err(ExecutionFault { kind: FaultKind::Dispatch { reason }, place: FaultPlace::default() })
}
