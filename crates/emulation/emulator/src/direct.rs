//! The direct launcher: starts a kernel of a loaded code object without an HSA library.

use crate::device::{EmulatedDevice, PRIVATE_APERTURE, SHARED_APERTURE};
use crate::dispatch::{AqlDispatch, DispatchCounts, KernelDispatch};
use crate::fault::ExecutionFault;
use crate::loader::LoadedKernel;
use crate::memory::{DeviceMemory, SparseMemory};
use crate::schedule::run_dispatch;

#[derive(Debug, Clone, Default)]
pub struct DirectLaunch<'a> {
    /// Work-items in each dimension.
    pub grid: [u32; 3],
    /// Work-items of a work-group in each dimension.
    pub workgroup: [u16; 3],
    /// Bytes of the arguments without hidden ones, in their order.
    pub arguments: &'a [Vec<u8>],
    /// Bytes of dynamic LDS.
    pub dynamic_lds: u32,
}

/// Arguments that do not fit a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchError {
    /// Another number of arguments than the kernel has.
    Count {
        /// Of the kernel.
        expected: usize,
        given: usize,
    },
    /// An argument of another size.
    Size {
        /// Its number, from 0.
        number: usize,
        /// Of the kernel.
        expected: u64,
        given: usize,
    },
    /// The kernel's metadata asks for more than any GPU has.
    Resources {
        what: &'static str,
        /// Bytes.
        size: u64,
    },
    /// The kernel must be started in clusters of work-groups, which the launcher does not do.
    Cluster {
        /// Work-groups of a cluster.
        workgroups: u64,
    },
    /// The kernel did not end.
    Fault(ExecutionFault),
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count { expected, given } => write!(f, "the kernel has {expected} arguments, {given} are given"),
            Self::Size { number, expected, given } => {
                write!(f, "argument {number} of the kernel has {expected} bytes, the given one has {given}")
            }
            Self::Resources { what, size } => write!(f, "the kernel asks for {size} bytes of {what}"),
            Self::Cluster { workgroups } => {
                write!(f, "the kernel starts in clusters of {workgroups} work-groups, which are not emulated")
            }
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<ExecutionFault> for LaunchError {
    fn from(fault: ExecutionFault) -> Self {
        Self::Fault(fault)
    }
}

/// Starts a kernel, and returns when it has ended.
///
/// # Errors
/// For arguments that do not fit, and for a kernel that does not end.
pub fn launch_kernel(
    device: &EmulatedDevice,
    memory: &mut SparseMemory,
    kernel: &LoadedKernel,
    launch: &DirectLaunch<'_>,
) -> Result<DispatchCounts, LaunchError> {
    check_resources(kernel)?;
    let queue = memory.allocate_copy(&queue_bytes());
    let arguments = argument_bytes(kernel, launch, queue)?;
    let kernarg_address = memory.allocate_copy(&arguments);
    let packet = AqlDispatch {
        grid: launch.grid,
        workgroup: launch.workgroup,
        private_segment_size: kernel.scratch as u32,
        group_segment_size: kernel.lds as u32 + launch.dynamic_lds,
        kernel_object: kernel.kernel_object,
        kernarg_address,
    };
    let packet_address = memory.allocate_copy(&packet_bytes(&packet));
    let dispatch = KernelDispatch { packet, packet_address, queue_address: queue, dispatch_id: 0 };
    Ok(run_dispatch(device, &*memory, &dispatch)?)
}

/// Damaged metadata may state any size. What a processor has is checked when the kernel is started.
fn check_resources(kernel: &LoadedKernel) -> Result<(), LaunchError> {
    let sizes = [("LDS", kernel.lds), ("scratch", kernel.scratch), ("arguments", kernel.kernarg_size)];
    match sizes.into_iter().find(|(_, size)| *size > 1 << 26) {
        Some((what, size)) => Err(LaunchError::Resources { what, size }),
        None => Ok(()),
    }
}

/// Parts of `amd_queue_t` that kernels read: the apertures.
pub fn queue_bytes() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[64..68].copy_from_slice(&((SHARED_APERTURE >> 32) as u32).to_le_bytes());
    bytes[68..72].copy_from_slice(&((PRIVATE_APERTURE >> 32) as u32).to_le_bytes());
    bytes
}

/// The packet as the queue would hold it.
pub fn packet_bytes(packet: &AqlDispatch) -> Vec<u8> {
    let mut bytes = vec![0x02, 0x0b, 3, 0];
    packet.workgroup.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
    bytes.extend([0; 2]);
    packet.grid.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
    bytes.extend(packet.private_segment_size.to_le_bytes());
    bytes.extend(packet.group_segment_size.to_le_bytes());
    bytes.extend(packet.kernel_object.to_le_bytes());
    bytes.extend(packet.kernarg_address.to_le_bytes());
    bytes.resize(64, 0);
    bytes
}

/// The bytes of a kernel's arguments, hidden ones included; `queue` is the address of the queue.
///
/// # Errors
/// For arguments that do not fit.
pub fn argument_bytes(kernel: &LoadedKernel, launch: &DirectLaunch<'_>, queue: u64) -> Result<Vec<u8>, LaunchError> {
    if kernel.cluster > 1 {
        return Err(LaunchError::Cluster { workgroups: kernel.cluster });
    }
    let explicit = kernel.arguments.iter().filter(|argument| !argument.value_kind.starts_with("hidden_"));
    let (expected, given) = (explicit.clone().count(), launch.arguments.len());
    if expected != given {
        return Err(LaunchError::Count { expected, given });
    }
    let mut bytes = vec![0; kernel.kernarg_size as usize];
    for (number, (argument, value)) in explicit.zip(launch.arguments).enumerate() {
        if argument.size != value.len() as u64 {
            return Err(LaunchError::Size { number, expected: argument.size, given: value.len() });
        }
        put_bytes(&mut bytes, argument.offset, value);
    }
    for argument in &kernel.arguments {
        if let Some(value) = hidden_argument(&argument.value_kind, launch, queue) {
            put_bytes(&mut bytes, argument.offset, &value.to_le_bytes()[..(argument.size as usize).min(8)]);
        }
    }
    Ok(bytes)
}

fn put_bytes(bytes: &mut [u8], offset: u64, value: &[u8]) {
    let start = offset as usize;
    if let Some(place) = bytes.get_mut(start..start + value.len()) {
        place.copy_from_slice(value);
    }
}

/// The value of a hidden argument.
fn hidden_argument(kind: &str, launch: &DirectLaunch<'_>, queue: u64) -> Option<u64> {
    let dimension = match kind.as_bytes().last()? {
        b'y' => 1,
        b'z' => 2,
        _ => 0,
    };
    let (grid, size) = (launch.grid[dimension], u32::from(launch.workgroup[dimension]).max(1));
    Some(match kind.strip_prefix("hidden_")?.trim_end_matches(['x', 'y', 'z']) {
        "block_count_" => (grid / size).into(),
        "group_size_" => size.into(),
        "remainder_" => (grid % size).into(),
        "grid_dims" => 3,
        "dynamic_lds_size" => launch.dynamic_lds.into(),
        "private_base" => PRIVATE_APERTURE >> 32,
        "shared_base" => SHARED_APERTURE >> 32,
        "queue_ptr" => queue,
        _ => return None,
    })
}

/// Reads `size` bytes of memory after a kernel.
pub fn read_back(memory: &SparseMemory, address: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // A range that does not exist reads as 0; callers read what they have allocated.
    let _ = memory.read(address, &mut bytes);
    bytes
}
