//! The system as functions of HSA: its users, properties and extensions.
#![allow(unsafe_code)] // the functions of HSA's interface

use crate::abi::{AgentHandle, Visitor};
use crate::boundary::{hsa_api, not_null, or_after_panic, put_as, put_bytes, put_result, visit_all};
use crate::clock::{TICKS_PER_SECOND, current_ticks};
use crate::devices::{check_agent, emulated_system, prepare_system};
use crate::executor::{has_lost_gpu, settle_queues};
use crate::handlers;
use crate::loader;
use crate::message::report_message;
use crate::program_end;
use crate::status::HsaStatus;
use crate::users;
use std::ffi::{c_char, c_void};
use std::sync::Once;

/// An extension of HSA.
const EXTENSION_LOADER: u16 = 0x201;
const LOADER_VERSION: (u16, u16) = (1, 3);

/// A bit for each extension that is there.
fn extension_bits() -> [u8; 128] {
    let mut bits = [0; 128];
    bits[usize::from(EXTENSION_LOADER) / 8] |= 1 << (EXTENSION_LOADER % 8);
    bits
}

fn put_table(extension: u16, major: u16, size: usize, table: *mut c_void) -> Result<(), HsaStatus> {
    if extension != EXTENSION_LOADER || major != LOADER_VERSION.0 || table.is_null() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let functions = loader::extension_table();
    // A caller of an older version asks for the first functions only; one of a newer version finds zeros.
    let mut bytes = vec![0u8; size.min(1024)];
    let all: Vec<u8> = functions.iter().flat_map(|function| function.to_ne_bytes()).collect();
    let length = all.len().min(bytes.len());
    bytes[..length].copy_from_slice(&all[..length]);
    // SAFETY: the caller's table has that size.
    unsafe { put_bytes(table, &bytes) }
}

/// Ends what the GPUs have to do before the program's libraries are torn down.
extern "C" fn finish_before_exit() {
    or_after_panic("the program's end", (), || {
        settle_queues();
        handlers::wait_for_handlers();
        program_end::begin_program_end();
        if has_lost_gpu() {
            handlers::end_handlers();
        }
    });
}

/// Functions of `atexit` run before the destructors of libraries, HIP's among them.
fn finish_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the C library calls the function at the end of this library or of the process, the earlier of both.
        if unsafe { libc::atexit(finish_before_exit) } != 0 {
            report_message("the program's end will not wait for what the GPUs do then: no memory");
        }
    });
}

hsa_api! {
    #[any_time]
    fn hsa_init() {
        // The real library finds no GPU either where this one cannot offer any.
        prepare_system().ok_or(HsaStatus::OUT_OF_RESOURCES)?;
        finish_at_exit();
        users::add_user()
    }

    #[any_time]
    fn hsa_shut_down() {
        users::remove_user()?;
        if !users::has_users() {
            handlers::forget_all_handlers();
        }
        Ok(())
    }

    #[any_time]
    fn hsa_status_string(status: HsaStatus, text: *mut *const c_char) {
        not_null(text)?;
        let known = status.c_text().ok_or(HsaStatus::INVALID_ARGUMENT)?;
        put_result(text, known.as_ptr().cast())
    }

    fn hsa_system_get_info(attribute: u32, value: *mut c_void) {
        match attribute {
            // Versions of HSA, and of AMD's extensions.
            0 | 0x207 => put_as(value, 1u16),
            1 | 0x208 => put_as(value, 18u16),
            2 => put_as(value, current_ticks()),
            3 => put_as(value, TICKS_PER_SECOND),
            4 => put_as(value, u64::MAX),
            // Little endian; 64-bit addresses.
            5 => put_as(value, 0u32),
            6 => put_as(value, 1u32),
            7 => put_bytes(value, &extension_bits()),
            0x200 => put_as(value, c"HotSwap".as_ptr()),
            // Virtual memory.
            0x205 => put_as(value, true),
            // Shared virtual memory, mwaitx, dmabuf, xnack: HIP uses what it needs all the same.
            0x201..=0x206 => put_as(value, false),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_iterate_agents(visit: Option<Visitor<AgentHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        visit_all(emulated_system()?.agents(), |agent| visit(agent, data))
    }

    fn hsa_extension_get_name(extension: u16, name: *mut *const c_char) {
        let known = match extension {
            EXTENSION_LOADER => c"HSA_EXTENSION_AMD_LOADER",
            0 => c"HSA_EXTENSION_FINALIZER",
            1 => c"HSA_EXTENSION_IMAGES",
            2 => c"HSA_EXTENSION_PERFORMANCE_COUNTERS",
            3 => c"HSA_EXTENSION_PROFILING_EVENTS",
            0x200 => c"HSA_EXTENSION_AMD_PROFILER",
            0x202 => c"HSA_EXTENSION_AMD_AQLPROFILE",
            0x203 => c"HSA_EXTENSION_AMD_PC_SAMPLING",
            _ => return Err(HsaStatus::INVALID_ARGUMENT),
        };
        put_result(name, known.as_ptr())
    }

    fn hsa_system_extension_supported(extension: u16, major: u16, minor: u16, result: *mut bool) {
        let known = extension == EXTENSION_LOADER && major == LOADER_VERSION.0 && minor <= LOADER_VERSION.1;
        put_result(result, known)
    }

    fn hsa_system_major_extension_supported(extension: u16, major: u16, minor: *mut u16, result: *mut bool) {
        let known = extension == EXTENSION_LOADER && major == LOADER_VERSION.0;
        put_result(minor, if known { LOADER_VERSION.1 } else { 0 })?;
        put_result(result, known)
    }

    fn hsa_system_get_extension_table(extension: u16, major: u16, minor: u16, table: *mut c_void) {
        // The version fixes the size.
        let count = match minor { 0 => 3, 1 => 5, 2 => 6, _ => 7 };
        put_table(extension, major, count * size_of::<usize>(), table)
    }

    fn hsa_system_get_major_extension_table(extension: u16, major: u16, size: usize, table: *mut c_void) {
        put_table(extension, major, size, table)
    }

    fn hsa_agent_extension_supported(extension: u16, agent: AgentHandle, major: u16, minor: u16, result: *mut bool) {
        check_agent(agent)?;
        hsa_system_extension_supported(extension, major, minor, result).into_answer()
    }

    fn hsa_agent_major_extension_supported(
        extension: u16, agent: AgentHandle, major: u16, minor: *mut u16, result: *mut bool,
    ) {
        check_agent(agent)?;
        hsa_system_major_extension_supported(extension, major, minor, result).into_answer()
    }

    fn hsa_amd_enable_logging(_flags: *mut u8, _file: *mut c_void) {
        Ok(())
    }
}
