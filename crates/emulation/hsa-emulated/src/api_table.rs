//! The tables of functions that tools may change, as `hsa_api_trace.h` of ROCm 7.2 has them, and the exported names, each of which
//! jumps to the entry of its table: what a tool puts there is called by every user of the library, as in ROCr.
//!
//! The functions themselves have names with the prefix `hotswap_own_`; a table has them until a tool changes it.
//!
//! Invariant: the order of a table's names is that of the header; a test reads it.
#![allow(unsafe_code)] // exported names and their code

use std::arch::global_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A table: its name, the names of its functions in their order.
pub type ApiTableNames = (&'static str, &'static [&'static str]);

/// The jump of a function to the address in an entry.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_entry {
    ($slot:expr) => {
        concat!("jmp qword ptr [rip + hotswap_entry_", $slot, "]\n")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_entry {
    ($slot:expr) => {
        concat!("adrp x16, hotswap_entry_", $slot, "\nldr x16, [x16, :lo12:hotswap_entry_", $slot, "]\nbr x16\n")
    };
}

/// The jump of a function that no table has.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_own {
    ($name:expr) => {
        concat!("jmp hotswap_own_", $name, "@PLT\n")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_own {
    ($name:expr) => {
        concat!("b hotswap_own_", $name, "\n")
    };
}

/// A function of the interface.
macro_rules! exported {
    ($name:expr, $jump:expr) => {
        concat!(
            ".globl ",
            $name,
            "\n.type ",
            $name,
            ", %function\n.balign 16\n",
            $name,
            ":\n",
            $jump,
            ".size ",
            $name,
            ", . - ",
            $name,
            "\n"
        )
    };
}

/// Tables of that major version and step, with the functions that jump through them.
macro_rules! api_tables {
    ($($table:ident $major:literal $step:literal { $($name:ident)* })*) => {
        $(global_asm!(
            ".pushsection .data.hotswap_api_tables, \"aw\", %progbits",
            ".balign 8",
            concat!(".globl hotswap_table_", stringify!($table)),
            concat!("hotswap_table_", stringify!($table), ": .long ", $major),
            concat!(".long hotswap_table_", stringify!($table), "_end - hotswap_table_", stringify!($table)),
            concat!(".long ", $step, ", 0"),
            $(concat!("hotswap_entry_", stringify!($name), ": .quad hotswap_own_", stringify!($name)),)*
            concat!("hotswap_table_", stringify!($table), "_end:"),
            ".popsection",
            ".pushsection .text.hotswap_api, \"ax\", %progbits",
            $(exported!(stringify!($name), jump_to_entry!(stringify!($name))),)*
            ".popsection",
        );)*

        /// All tables but the root.
        pub const API_TABLES: &[ApiTableNames] = &[$((stringify!($table), &[$(stringify!($name)),*])),*];

        mod symbols {
            use super::{AtomicUsize, VERSION_WORDS};
            unsafe extern "C" {
                $(
                    #[link_name = concat!("hotswap_table_", stringify!($table))]
                    pub(super) static $table: [AtomicUsize; VERSION_WORDS + [$(stringify!($name)),*].len()];
                )*
            }
        }

        /// The words of all tables but the root.
        fn tables() -> impl Iterator<Item = &'static [AtomicUsize]> {
            // SAFETY: the assembly defines each with that size, and its words are changed as a whole only.
            unsafe { [$(&symbols::$table as &'static [AtomicUsize]),*] }.into_iter()
        }
    };
}

api_tables! {
    core 2 0 {
        hsa_init hsa_shut_down hsa_system_get_info hsa_system_extension_supported hsa_system_get_extension_table
        hsa_iterate_agents hsa_agent_get_info hsa_queue_create hsa_soft_queue_create hsa_queue_destroy hsa_queue_inactivate
        hsa_queue_load_read_index_scacquire hsa_queue_load_read_index_relaxed hsa_queue_load_write_index_scacquire
        hsa_queue_load_write_index_relaxed hsa_queue_store_write_index_relaxed hsa_queue_store_write_index_screlease
        hsa_queue_cas_write_index_scacq_screl hsa_queue_cas_write_index_scacquire hsa_queue_cas_write_index_relaxed
        hsa_queue_cas_write_index_screlease hsa_queue_add_write_index_scacq_screl hsa_queue_add_write_index_scacquire
        hsa_queue_add_write_index_relaxed hsa_queue_add_write_index_screlease hsa_queue_store_read_index_relaxed
        hsa_queue_store_read_index_screlease hsa_agent_iterate_regions hsa_region_get_info hsa_agent_get_exception_policies
        hsa_agent_extension_supported hsa_memory_register hsa_memory_deregister hsa_memory_allocate hsa_memory_free
        hsa_memory_copy hsa_memory_assign_agent hsa_signal_create hsa_signal_destroy hsa_signal_load_relaxed
        hsa_signal_load_scacquire hsa_signal_store_relaxed hsa_signal_store_screlease hsa_signal_wait_relaxed
        hsa_signal_wait_scacquire hsa_signal_and_relaxed hsa_signal_and_scacquire hsa_signal_and_screlease
        hsa_signal_and_scacq_screl hsa_signal_or_relaxed hsa_signal_or_scacquire hsa_signal_or_screlease
        hsa_signal_or_scacq_screl hsa_signal_xor_relaxed hsa_signal_xor_scacquire hsa_signal_xor_screlease
        hsa_signal_xor_scacq_screl hsa_signal_exchange_relaxed hsa_signal_exchange_scacquire hsa_signal_exchange_screlease
        hsa_signal_exchange_scacq_screl hsa_signal_add_relaxed hsa_signal_add_scacquire hsa_signal_add_screlease
        hsa_signal_add_scacq_screl hsa_signal_subtract_relaxed hsa_signal_subtract_scacquire hsa_signal_subtract_screlease
        hsa_signal_subtract_scacq_screl hsa_signal_cas_relaxed hsa_signal_cas_scacquire hsa_signal_cas_screlease
        hsa_signal_cas_scacq_screl hsa_isa_from_name hsa_isa_get_info hsa_isa_compatible hsa_code_object_serialize
        hsa_code_object_deserialize hsa_code_object_destroy hsa_code_object_get_info hsa_code_object_get_symbol
        hsa_code_symbol_get_info hsa_code_object_iterate_symbols hsa_executable_create hsa_executable_destroy
        hsa_executable_load_code_object hsa_executable_freeze hsa_executable_get_info hsa_executable_global_variable_define
        hsa_executable_agent_global_variable_define hsa_executable_readonly_variable_define hsa_executable_validate
        hsa_executable_get_symbol hsa_executable_symbol_get_info hsa_executable_iterate_symbols hsa_status_string
        hsa_extension_get_name hsa_system_major_extension_supported hsa_system_get_major_extension_table
        hsa_agent_major_extension_supported hsa_cache_get_info hsa_agent_iterate_caches hsa_signal_silent_store_relaxed
        hsa_signal_silent_store_screlease hsa_signal_group_create hsa_signal_group_destroy
        hsa_signal_group_wait_any_scacquire hsa_signal_group_wait_any_relaxed hsa_agent_iterate_isas hsa_isa_get_info_alt
        hsa_isa_get_exception_policies hsa_isa_get_round_method hsa_wavefront_get_info hsa_isa_iterate_wavefronts
        hsa_code_object_get_symbol_from_name hsa_code_object_reader_create_from_file
        hsa_code_object_reader_create_from_memory hsa_code_object_reader_destroy hsa_executable_create_alt
        hsa_executable_load_program_code_object hsa_executable_load_agent_code_object hsa_executable_validate_alt
        hsa_executable_get_symbol_by_name hsa_executable_iterate_agent_symbols hsa_executable_iterate_program_symbols
    }
    amd_ext 2 8 {
        hsa_amd_coherency_get_type hsa_amd_coherency_set_type hsa_amd_profiling_set_profiler_enabled
        hsa_amd_profiling_async_copy_enable hsa_amd_profiling_get_dispatch_time hsa_amd_profiling_get_async_copy_time
        hsa_amd_profiling_convert_tick_to_system_domain hsa_amd_signal_async_handler hsa_amd_async_function
        hsa_amd_signal_wait_any hsa_amd_queue_cu_set_mask hsa_amd_memory_pool_get_info hsa_amd_agent_iterate_memory_pools
        hsa_amd_memory_pool_allocate hsa_amd_memory_pool_free hsa_amd_memory_async_copy hsa_amd_memory_async_copy_on_engine
        hsa_amd_memory_copy_engine_status hsa_amd_agent_memory_pool_get_info hsa_amd_agents_allow_access
        hsa_amd_memory_pool_can_migrate hsa_amd_memory_migrate hsa_amd_memory_lock hsa_amd_memory_unlock hsa_amd_memory_fill
        hsa_amd_interop_map_buffer hsa_amd_interop_unmap_buffer hsa_amd_image_create hsa_amd_pointer_info
        hsa_amd_pointer_info_set_userdata hsa_amd_ipc_memory_create hsa_amd_ipc_memory_attach hsa_amd_ipc_memory_detach
        hsa_amd_signal_create hsa_amd_ipc_signal_create hsa_amd_ipc_signal_attach hsa_amd_register_system_event_handler
        hsa_amd_queue_intercept_create hsa_amd_queue_intercept_register hsa_amd_queue_set_priority
        hsa_amd_memory_async_copy_rect hsa_amd_runtime_queue_create_register hsa_amd_memory_lock_to_pool
        hsa_amd_register_deallocation_callback hsa_amd_deregister_deallocation_callback hsa_amd_signal_value_pointer
        hsa_amd_svm_attributes_set hsa_amd_svm_attributes_get hsa_amd_svm_prefetch_async hsa_amd_spm_acquire
        hsa_amd_spm_release hsa_amd_spm_set_dest_buffer hsa_amd_queue_cu_get_mask hsa_amd_portable_export_dmabuf
        hsa_amd_portable_close_dmabuf hsa_amd_vmem_address_reserve hsa_amd_vmem_address_free hsa_amd_vmem_handle_create
        hsa_amd_vmem_handle_release hsa_amd_vmem_map hsa_amd_vmem_unmap hsa_amd_vmem_set_access hsa_amd_vmem_get_access
        hsa_amd_vmem_export_shareable_handle hsa_amd_vmem_import_shareable_handle hsa_amd_vmem_retain_alloc_handle
        hsa_amd_vmem_get_alloc_properties_from_handle hsa_amd_agent_set_async_scratch_limit hsa_amd_queue_get_info
        hsa_amd_vmem_address_reserve_align hsa_amd_enable_logging hsa_amd_signal_wait_all
        hsa_amd_memory_get_preferred_copy_engine hsa_amd_portable_export_dmabuf_v2 hsa_amd_ais_file_write
        hsa_amd_ais_file_read
    }
    finalizer_ext 2 0 {
        hsa_ext_program_create hsa_ext_program_destroy hsa_ext_program_add_module hsa_ext_program_iterate_modules
        hsa_ext_program_get_info hsa_ext_program_finalize
    }
    image_ext 2 1 {
        hsa_ext_image_get_capability hsa_ext_image_data_get_info hsa_ext_image_create hsa_ext_image_import
        hsa_ext_image_export hsa_ext_image_copy hsa_ext_image_clear hsa_ext_image_destroy hsa_ext_sampler_create
        hsa_ext_sampler_destroy hsa_ext_image_get_capability_with_layout hsa_ext_image_data_get_info_with_layout
        hsa_ext_image_create_with_layout hsa_ext_sampler_create_v2
    }
    tools 1 0 {
        hsa_amd_tool_scratch_event_alloc_start hsa_amd_tool_scratch_event_alloc_end hsa_amd_tool_scratch_event_free_start
        hsa_amd_tool_scratch_event_free_end hsa_amd_tool_scratch_event_async_reclaim_start
        hsa_amd_tool_scratch_event_async_reclaim_end
    }
    pc_sampling_ext 1 0 {
        hsa_ven_amd_pcs_iterate_configuration hsa_ven_amd_pcs_create hsa_ven_amd_pcs_create_from_id hsa_ven_amd_pcs_destroy
        hsa_ven_amd_pcs_start hsa_ven_amd_pcs_stop hsa_ven_amd_pcs_flush
    }
}

/// Older names of functions in the table.
macro_rules! older_names {
    ($($old:ident = $name:ident)*) => {
        global_asm!(
            ".pushsection .text.hotswap_api, \"ax\", %progbits",
            $(exported!(stringify!($old), jump_to_entry!(stringify!($name))),)*
            ".popsection",
        );
    };
}

older_names! {
    hsa_queue_add_write_index_acq_rel = hsa_queue_add_write_index_scacq_screl
    hsa_queue_add_write_index_acquire = hsa_queue_add_write_index_scacquire
    hsa_queue_add_write_index_release = hsa_queue_add_write_index_screlease
    hsa_queue_cas_write_index_acq_rel = hsa_queue_cas_write_index_scacq_screl
    hsa_queue_cas_write_index_acquire = hsa_queue_cas_write_index_scacquire
    hsa_queue_cas_write_index_release = hsa_queue_cas_write_index_screlease
    hsa_queue_load_read_index_acquire = hsa_queue_load_read_index_scacquire
    hsa_queue_load_write_index_acquire = hsa_queue_load_write_index_scacquire
    hsa_queue_store_read_index_release = hsa_queue_store_read_index_screlease
    hsa_queue_store_write_index_release = hsa_queue_store_write_index_screlease
    hsa_signal_add_acq_rel = hsa_signal_add_scacq_screl
    hsa_signal_add_acquire = hsa_signal_add_scacquire
    hsa_signal_add_release = hsa_signal_add_screlease
    hsa_signal_and_acq_rel = hsa_signal_and_scacq_screl
    hsa_signal_and_acquire = hsa_signal_and_scacquire
    hsa_signal_and_release = hsa_signal_and_screlease
    hsa_signal_cas_acq_rel = hsa_signal_cas_scacq_screl
    hsa_signal_cas_acquire = hsa_signal_cas_scacquire
    hsa_signal_cas_release = hsa_signal_cas_screlease
    hsa_signal_exchange_acq_rel = hsa_signal_exchange_scacq_screl
    hsa_signal_exchange_acquire = hsa_signal_exchange_scacquire
    hsa_signal_exchange_release = hsa_signal_exchange_screlease
    hsa_signal_load_acquire = hsa_signal_load_scacquire
    hsa_signal_or_acq_rel = hsa_signal_or_scacq_screl
    hsa_signal_or_acquire = hsa_signal_or_scacquire
    hsa_signal_or_release = hsa_signal_or_screlease
    hsa_signal_store_release = hsa_signal_store_screlease
    hsa_signal_subtract_acq_rel = hsa_signal_subtract_scacq_screl
    hsa_signal_subtract_acquire = hsa_signal_subtract_scacquire
    hsa_signal_subtract_release = hsa_signal_subtract_screlease
    hsa_signal_wait_acquire = hsa_signal_wait_scacquire
    hsa_signal_xor_acq_rel = hsa_signal_xor_scacq_screl
    hsa_signal_xor_acquire = hsa_signal_xor_scacquire
    hsa_signal_xor_release = hsa_signal_xor_screlease
}

/// Functions that no table of this version has.
macro_rules! in_no_table {
    ($($name:ident)*) => {
        global_asm!(
            ".pushsection .text.hotswap_api, \"ax\", %progbits",
            $(exported!(stringify!($name), jump_to_own!(stringify!($name))),)*
            ".popsection",
        );
    };
}

in_no_table! {
    hsa_amd_image_get_info_max_dim hsa_amd_agent_preload hsa_amd_counted_queue_acquire hsa_amd_counted_queue_release
    hsa_amd_memory_async_batch_copy hsa_amd_queue_create hsa_amd_sdma_queue_create hsa_amd_sdma_queue_destroy
    hsa_amd_sdma_queue_get_info hsa_amd_sdma_queue_ring_doorbell hsa_amd_signal_batch_create hsa_amd_signal_batch_destroy
    hsa_amd_signal_get_event_id hsa_amd_svm_discard_batch_async hsa_ext_image_create_v2 hsa_ext_image_data_get_info_v2
    hsa_ext_image_destroy_v2 hsa_ext_image_mipmap_array_get_level
}

// The root: version 3, step 1.
global_asm!(
    ".pushsection .data.hotswap_api_tables, \"aw\", %progbits",
    ".balign 8",
    ".globl hotswap_table_root",
    "hotswap_table_root: .long 3",
    ".long hotswap_table_root_end - hotswap_table_root",
    ".long 1, 0",
    ".quad hotswap_table_core, hotswap_table_amd_ext, hotswap_table_finalizer_ext",
    ".quad hotswap_table_image_ext, hotswap_table_tools, hotswap_table_pc_sampling_ext",
    "hotswap_table_root_end:",
    ".popsection",
);

/// The major version of the root, which `OnLoad` is told.
pub(crate) const ROOT_VERSION: u64 = 3;
/// Words of the version at the start of each table.
const VERSION_WORDS: usize = 2;

unsafe extern "C" {
    static hotswap_table_root: [AtomicUsize; VERSION_WORDS + API_TABLES.len()];
}

/// The root, for tools.
pub(crate) fn root_table() -> &'static [AtomicUsize] {
    // SAFETY: the assembly defines it with that size.
    unsafe { &hotswap_table_root }
}

/// The words of all tables, to be put back when tools are unloaded.
pub(crate) struct SavedTables(Vec<usize>);

impl SavedTables {
    fn table_words() -> impl Iterator<Item = &'static AtomicUsize> {
        [root_table()].into_iter().chain(tables()).flatten()
    }

    pub(crate) fn save_current() -> Self {
        Self(Self::table_words().map(|word| word.load(Ordering::Relaxed)).collect())
    }

    pub(crate) fn put_back(&self) {
        for (word, value) in Self::table_words().zip(&self.0) {
            word.store(*value, Ordering::Relaxed);
        }
    }
}
