//! Code for other GPUs, in memory.

use super::boundary::{
    caller_bytes, caller_text, object_of_handle, permissions_of_flags, put_bytes, put_handle, release_handle, run_call,
};
use crate::call_error::{CallError, CallStatus};
use crate::make::{self, MadeCode};
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// The flag `HOTSWAP_KEEP_MACHINE`: header and note go on naming the source's processor.
const KEEP_MACHINE: u32 = 2;

/// Adds code for a target, or makes it of a code object: `hotswap_retarget` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_retarget(
    start: *const c_void,
    size: usize,
    target: *const c_char,
    flags: u32,
    output: *mut *mut MadeCode,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_handle(output, || {
                make::retarget_bytes(caller_bytes(start, size)?, caller_text(target)?, permissions_of_flags(flags)?)
            })
        })
    }
}

/// Changes the code of a code object for another stepping: `hotswap_rewrite` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_rewrite(
    start: *const c_void,
    size: usize,
    target: *const c_char,
    flags: u32,
    output: *mut *mut MadeCode,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_handle(output, || {
                if flags & !KEEP_MACHINE != 0 {
                    return Err(CallError::invalid_argument(format!("flags {flags:#x} are not known")));
                }
                make::rewrite_code(caller_bytes(start, size)?, caller_text(target)?, flags == KEEP_MACHINE)
            })
        })
    }
}

/// The bytes that were made: `hotswap_output_bytes` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_output_bytes(
    output: *const MadeCode,
    start: *mut *const c_void,
    size: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_bytes(&object_of_handle(output)?.bytes, start, size)) }
}

/// The report on the making, as text: `hotswap_output_report` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_output_report(output: *const MadeCode) -> *const c_char {
    // SAFETY: the promise of the caller.
    unsafe { output.as_ref() }.map_or(null(), |output| output.report.as_ptr())
}

/// Frees an output, or does nothing for null: `hotswap_output_free` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_output_free(output: *mut MadeCode) {
    // SAFETY: the promise of the caller.
    unsafe { release_handle(output) }
}
