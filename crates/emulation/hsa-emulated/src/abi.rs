//! Types of HSA's C interface, laid out as in `hsa.h`, `hsa_ext_amd.h`, `amd_hsa_queue.h` and `amd_hsa_signal.h`.

use crate::status::HsaStatus;
use std::ffi::c_void;

macro_rules! handles {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) u64);)*
    };
}

handles! {
    /// `hsa_agent_t`.
    AgentHandle;
    /// `hsa_isa_t`.
    IsaHandle;
    /// `hsa_signal_t`: the address of a [`SignalRecord`]; 0 is not a signal.
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
pub(crate) struct SignalRecord {
    pub(crate) kind: i64,
    pub(crate) value: i64,
    pub(crate) event_mailbox: u64,
    pub(crate) event_id: u32,
    pub(crate) reserved1: u32,
    pub(crate) start_ts: u64,
    pub(crate) end_ts: u64,
    pub(crate) queue: u64,
    pub(crate) reserved3: [u32; 2],
}

/// `hsa_queue_t`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct QueueHeader {
    pub(crate) kind: u32,
    pub(crate) features: u32,
    pub(crate) base_address: *mut c_void,
    pub(crate) doorbell: SignalHandle,
    pub(crate) size: u32,
    pub(crate) reserved1: u32,
    pub(crate) id: u64,
}

/// `amd_queue_t`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct QueueRecord {
    pub(crate) header: QueueHeader,
    pub(crate) caps: u32,
    pub(crate) reserved1: [u32; 3],
    pub(crate) write_index: u64,
    pub(crate) group_aperture_hi: u32,
    pub(crate) private_aperture_hi: u32,
    pub(crate) max_cu_id: u32,
    pub(crate) max_wave_id: u32,
    pub(crate) legacy_doorbell: u64,
    pub(crate) legacy_doorbell_lock: u32,
    pub(crate) reserved2: [u32; 9],
    pub(crate) read_index: u64,
    pub(crate) read_index_offset: u32,
    pub(crate) tmpring_size: u32,
    pub(crate) scratch_resource: [u32; 4],
    pub(crate) scratch_location: u64,
    pub(crate) scratch_size: u64,
    pub(crate) scratch_lane_size: u32,
    pub(crate) properties: u32,
    pub(crate) scratch_max_use_index: u64,
    pub(crate) inactive_signal: SignalHandle,
    pub(crate) reserved5: [u32; 14],
}

/// `hsa_dim3_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct GridExtent {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// `hsa_pitched_ptr_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PitchedPointer {
    pub(crate) base: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

/// `hsa_amd_pointer_info_t`; the caller states how much of it its version has.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PointerInfo {
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) agent_base: u64,
    pub(crate) host_base: u64,
    pub(crate) bytes: usize,
    pub(crate) user_data: u64,
    pub(crate) owner: AgentHandle,
    pub(crate) global_flags: u32,
    pub(crate) registered: bool,
}

/// `hsa_amd_memory_pool_link_info_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct LinkInfo {
    pub(crate) min_latency: u32,
    pub(crate) max_latency: u32,
    pub(crate) min_bandwidth: u32,
    pub(crate) max_bandwidth: u32,
    pub(crate) atomic_32: bool,
    pub(crate) atomic_64: bool,
    pub(crate) coherent: bool,
    pub(crate) link_type: u32,
    pub(crate) numa_distance: u32,
}

/// `hsa_amd_event_t` of a memory fault.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct MemoryFaultEvent {
    pub(crate) event_type: u32,
    pub(crate) agent: AgentHandle,
    pub(crate) address: u64,
    pub(crate) reasons: u32,
}

/// `hsa_ven_amd_loader_segment_descriptor_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct SegmentDescriptor {
    pub(crate) agent: AgentHandle,
    pub(crate) executable: ExecutableHandle,
    pub(crate) storage_type: u32,
    pub(crate) storage_base: u64,
    pub(crate) storage_size: usize,
    pub(crate) storage_offset: usize,
    pub(crate) segment_base: u64,
    pub(crate) segment_size: usize,
}

/// Start and end of a dispatch or copy, in ticks.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct TimeSpan {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// `hsa_amd_svm_attribute_pair_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct SvmAttribute {
    pub(crate) attribute: u64,
    pub(crate) value: u64,
}

/// A callback of an iteration over handles, with the caller's data.
pub(crate) type Visitor<H> = unsafe extern "C" fn(H, *mut c_void) -> HsaStatus;
/// A callback of a queue: status, queue, the caller's data.
pub(crate) type QueueCallback = unsafe extern "C" fn(HsaStatus, *mut QueueHeader, *mut c_void);
/// `hsa_amd_signal_handler`: true keeps it.
pub(crate) type SignalHandler = unsafe extern "C" fn(i64, *mut c_void) -> bool;
/// `hsa_amd_system_event_callback_t`.
pub(crate) type EventHandler = unsafe extern "C" fn(*const MemoryFaultEvent, *mut c_void) -> HsaStatus;
/// `hsa_amd_deallocation_callback_t`.
pub(crate) type FreeCallback = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The kind of a signal of the program.
pub(crate) const SIGNAL_KIND_USER: i64 = 1;
/// The kind of a queue's doorbell.
pub(crate) const SIGNAL_KIND_DOORBELL: i64 = -1;
/// Memory that host and device see at once.
pub(crate) const FINE_GRAINED: u32 = 2;
/// Memory for kernel arguments.
pub(crate) const KERNARG_INIT: u32 = 1;
/// Memory that is visible to the others after a kernel.
pub(crate) const COARSE_GRAINED: u32 = 4;

/// An agent and its rights: `hsa_amd_memory_access_desc_t`.
#[repr(C)]
pub(crate) struct AccessDescription {
    /// Bit 0 to read, bit 1 to write.
    pub(crate) permissions: u32,
    pub(crate) agent: AgentHandle,
}

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
