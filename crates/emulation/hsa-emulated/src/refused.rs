//! Functions of HSA that are there so that programs start, and are refused when they are called: images, memory and signals
//! of other processes, performance counters, the finaliser, code objects of version 2.
//!
//! Invariants: the status says that the request is not supported; the first call of each is one line.
#![allow(unsafe_code)] // exported names

use crate::message::report_message;
use crate::status::HsaStatus;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// The number of calls of each function, by its name.
static CALLS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

fn refuse_call(name: &'static str) -> HsaStatus {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = calls.entry(name).or_default();
    *count += 1;
    if *count == 1 {
        report_message(&format!("{name} is not supported on emulated GPUs"));
    }
    HsaStatus::NOT_SUPPORTED
}

macro_rules! refused {
    ($($name:ident)*) => { $(
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        extern "C" fn $name() -> HsaStatus {
            crate::boundary::or_after_panic(stringify!($name), HsaStatus::ERROR, || refuse_call(stringify!($name)))
        }
    )* };
}

// Of the real library of ROCm 7.2.
refused! {
    hsa_amd_ais_file_read hsa_amd_ais_file_write
    hsa_amd_image_create hsa_amd_image_get_info_max_dim hsa_amd_interop_map_buffer hsa_amd_interop_unmap_buffer
    hsa_amd_ipc_memory_attach hsa_amd_ipc_memory_create hsa_amd_ipc_memory_detach hsa_amd_ipc_signal_attach
    hsa_amd_ipc_signal_create hsa_amd_portable_close_dmabuf hsa_amd_portable_export_dmabuf
    hsa_amd_portable_export_dmabuf_v2 hsa_amd_spm_acquire hsa_amd_spm_release hsa_amd_spm_set_dest_buffer
    hsa_code_object_deserialize hsa_code_object_destroy hsa_code_object_get_info hsa_code_object_get_symbol
    hsa_code_object_get_symbol_from_name hsa_code_object_iterate_symbols hsa_code_object_serialize
    hsa_code_symbol_get_info hsa_executable_load_code_object hsa_executable_load_program_code_object
    hsa_ext_image_clear hsa_ext_image_copy hsa_ext_image_create hsa_ext_image_create_with_layout
    hsa_ext_image_data_get_info hsa_ext_image_data_get_info_with_layout hsa_ext_image_destroy hsa_ext_image_export
    hsa_ext_image_get_capability hsa_ext_image_get_capability_with_layout hsa_ext_image_import
    hsa_ext_program_add_module hsa_ext_program_create hsa_ext_program_destroy hsa_ext_program_finalize
    hsa_ext_program_get_info hsa_ext_program_iterate_modules hsa_ext_sampler_create hsa_ext_sampler_create_v2
    hsa_ext_sampler_destroy hsa_soft_queue_create hsa_ven_amd_pcs_create hsa_ven_amd_pcs_create_from_id
    hsa_ven_amd_pcs_destroy hsa_ven_amd_pcs_flush hsa_ven_amd_pcs_iterate_configuration hsa_ven_amd_pcs_start
    hsa_ven_amd_pcs_stop
}

// Of the tables alone, for tools.
refused! {
    hsa_amd_queue_intercept_create hsa_amd_queue_intercept_register hsa_amd_runtime_queue_create_register
}

/// Functions that a runtime calls and a tool replaces: events of scratch memory, which the emulation has not.
macro_rules! unused {
    ($($name:ident)*) => { $(
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        extern "C" fn $name() -> HsaStatus {
            HsaStatus::SUCCESS
        }
    )* };
}

unused! {
    hsa_amd_tool_scratch_event_alloc_start hsa_amd_tool_scratch_event_alloc_end hsa_amd_tool_scratch_event_free_start
    hsa_amd_tool_scratch_event_free_end hsa_amd_tool_scratch_event_async_reclaim_start
    hsa_amd_tool_scratch_event_async_reclaim_end
}

// Of newer headers: a newer HIP would not start without them.
refused! {
    hsa_amd_agent_preload hsa_amd_counted_queue_acquire hsa_amd_counted_queue_release hsa_amd_memory_async_batch_copy
    hsa_amd_queue_create hsa_amd_sdma_queue_create hsa_amd_sdma_queue_destroy hsa_amd_sdma_queue_get_info
    hsa_amd_sdma_queue_ring_doorbell hsa_amd_signal_batch_create hsa_amd_signal_batch_destroy
    hsa_amd_signal_get_event_id hsa_amd_svm_discard_batch_async hsa_ext_image_create_v2
    hsa_ext_image_data_get_info_v2 hsa_ext_image_destroy_v2 hsa_ext_image_mipmap_array_get_level
}

/// The list of loaded code objects for debuggers: version, list, function, state, base. It stays empty.
#[unsafe(no_mangle)]
static _amdgpu_r_debug: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
