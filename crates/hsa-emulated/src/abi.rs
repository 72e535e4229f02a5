//! Types of HSA's C interface, laid out as in `hsa.h`, `hsa_ext_amd.h`, `amd_hsa_queue.h` and `amd_hsa_signal.h`.

use crate::status::HsaStatus;
use std::ffi::c_void;

macro_rules! handles {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub u64);)*
    };
}

handles! {
    /// `hsa_agent_t`.
    AgentHandle;
    /// `hsa_isa_t`.
    IsaHandle;
    /// `hsa_signal_t`: the address of a [`SignalRecord`]; 0 is no signal.
    SignalHandle;
    /// `hsa_amd_memory_pool_t`, and `hsa_region_t`.
    PoolHandle;
    /// `hsa_code_object_reader_t`.
    ReaderHandle;
    /// `hsa_executable_t`.
    ExecutableHandle;
    /// `hsa_loaded_code_object_t`.
    LoadedObjectHandle;
    /// `hsa_executable_symbol_t`.
    SymbolHandle;
    /// `hsa_cache_t`.
    CacheHandle;
    /// `hsa_wavefront_t`.
    WavefrontHandle;
    /// `hsa_amd_vmem_alloc_handle_t`.
    PhysicalHandle;
    /// `hsa_signal_group_t`.
    SignalGroupHandle;
}

/// `amd_signal_t`.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SignalRecord {
    pub kind: i64,
    pub value: i64,
    pub event_mailbox: u64,
    pub event_id: u32,
    pub reserved1: u32,
    pub start_ts: u64,
    pub end_ts: u64,
    pub queue: u64,
    pub reserved3: [u32; 2],
}

/// `hsa_queue_t`.
#[derive(Debug)]
#[repr(C)]
pub struct QueueHeader {
    pub kind: u32,
    pub features: u32,
    pub base_address: *mut c_void,
    pub doorbell: SignalHandle,
    pub size: u32,
    pub reserved1: u32,
    pub id: u64,
}

/// `amd_queue_t`.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct QueueRecord {
    pub header: QueueHeader,
    pub caps: u32,
    pub reserved1: [u32; 3],
    pub write_index: u64,
    pub group_aperture_hi: u32,
    pub private_aperture_hi: u32,
    pub max_cu_id: u32,
    pub max_wave_id: u32,
    pub legacy_doorbell: u64,
    pub legacy_doorbell_lock: u32,
    pub reserved2: [u32; 9],
    pub read_index: u64,
    pub read_index_offset: u32,
    pub tmpring_size: u32,
    pub scratch_resource: [u32; 4],
    pub scratch_location: u64,
    pub scratch_size: u64,
    pub scratch_lane_size: u32,
    pub properties: u32,
    pub scratch_max_use_index: u64,
    pub inactive_signal: SignalHandle,
    pub reserved5: [u32; 14],
}

/// `hsa_dim3_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct GridExtent {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// `hsa_pitched_ptr_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PitchedPointer {
    pub base: *mut c_void,
    pub pitch: usize,
    pub slice: usize,
}

/// `hsa_amd_pointer_info_t`; the caller states how much of it its version has.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PointerInfo {
    pub size: u32,
    pub kind: u32,
    pub agent_base: u64,
    pub host_base: u64,
    pub bytes: usize,
    pub user_data: u64,
    pub owner: AgentHandle,
    pub global_flags: u32,
    pub registered: bool,
}

/// `hsa_amd_memory_pool_link_info_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LinkInfo {
    pub min_latency: u32,
    pub max_latency: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub atomic_32: bool,
    pub atomic_64: bool,
    pub coherent: bool,
    pub link_type: u32,
    pub numa_distance: u32,
}

/// `hsa_amd_event_t` of a memory fault.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MemoryFaultEvent {
    pub event_type: u32,
    pub agent: AgentHandle,
    pub address: u64,
    pub reasons: u32,
}

/// `hsa_ven_amd_loader_segment_descriptor_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SegmentDescriptor {
    pub agent: AgentHandle,
    pub executable: ExecutableHandle,
    pub storage_type: u32,
    pub storage_base: u64,
    pub storage_size: usize,
    pub storage_offset: usize,
    pub segment_base: u64,
    pub segment_size: usize,
}

/// Start and end of a dispatch or copy, in ticks.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TimeSpan {
    pub start: u64,
    pub end: u64,
}

/// `hsa_amd_svm_attribute_pair_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SvmAttribute {
    pub attribute: u64,
    pub value: u64,
}

/// `hsa_amd_clock_counters_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ClockCounters {
    pub gpu: u64,
    pub cpu: u64,
    pub system: u64,
    pub frequency: u64,
}

/// A callback of an iteration over handles, with the caller's data.
pub type Visitor<H> = unsafe extern "C" fn(H, *mut c_void) -> HsaStatus;
/// A callback of a queue: status, queue, the caller's data.
pub type QueueCallback = unsafe extern "C" fn(HsaStatus, *mut QueueHeader, *mut c_void);
/// `hsa_amd_signal_handler`: true keeps it.
pub type SignalHandler = unsafe extern "C" fn(i64, *mut c_void) -> bool;
/// `hsa_amd_system_event_callback_t`.
pub type EventHandler = unsafe extern "C" fn(*const MemoryFaultEvent, *mut c_void) -> HsaStatus;
/// `hsa_amd_deallocation_callback_t`.
pub type FreeCallback = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// `HSA_DEVICE_TYPE_*`, `HSA_SYMBOL_KIND_*` and other small enumerations are written as numbers where they are answered.
pub const SIGNAL_KIND_USER: i64 = 1;
/// The kind of a queue's doorbell.
pub const SIGNAL_KIND_DOORBELL: i64 = -1;
/// Memory that host and device see at once.
pub const FINE_GRAINED: u32 = 2;
/// Memory for kernel arguments.
pub const KERNARG_INIT: u32 = 1;
/// Memory that is visible to the others after a kernel.
pub const COARSE_GRAINED: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layouts_are_those_of_the_headers() {
        assert_eq!((size_of::<SignalRecord>(), offset_of!(SignalRecord, start_ts)), (64, 32));
        assert_eq!((size_of::<QueueHeader>(), offset_of!(QueueHeader, id)), (40, 32));
        assert_eq!((offset_of!(QueueRecord, write_index), offset_of!(QueueRecord, read_index)), (56, 128));
        assert_eq!((offset_of!(QueueRecord, group_aperture_hi), size_of::<QueueRecord>()), (64, 256));
        assert_eq!((size_of::<PointerInfo>(), offset_of!(PointerInfo, global_flags)), (56, 48));
        assert_eq!((size_of::<LinkInfo>(), offset_of!(LinkInfo, link_type)), (28, 20));
        assert_eq!((size_of::<MemoryFaultEvent>(), offset_of!(MemoryFaultEvent, address)), (32, 16));
        assert_eq!((size_of::<SegmentDescriptor>(), offset_of!(SegmentDescriptor, segment_base)), (64, 48));
    }
}
