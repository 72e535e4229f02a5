//! Errors and the version.

use crate::call_error::CallError;
use std::ffi::{CStr, c_char};
use std::ptr::null;

/// The version of the interface.
const ABI_VERSION: u32 = 0;

/// The release as a text for C.
const RELEASE: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// The version of the interface that this library has: `hotswap_abi_version` in C.
#[unsafe(no_mangle)]
pub extern "C" fn hotswap_abi_version() -> u32 {
    ABI_VERSION
}

/// The release as text: `hotswap_release` in C.
#[unsafe(no_mangle)]
pub extern "C" fn hotswap_release() -> *const c_char {
    RELEASE.as_ptr()
}

/// The error on one line: `hotswap_error_message` in C.
///
/// # Safety
/// The error is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_error_message(error: *const CallError) -> *const c_char {
    // SAFETY: the promise of the caller.
    unsafe { error.as_ref() }.map_or(null(), |error| error.message.as_ptr())
}

/// The number of the error's diagnostic: `hotswap_error_code` in C.
///
/// # Safety
/// The error is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_error_code(error: *const CallError) -> *const c_char {
    // SAFETY: the promise of the caller.
    unsafe { error.as_ref() }.map_or(null(), |error| error.code.as_ptr())
}

/// Frees an error, or does nothing for null: `hotswap_error_free` in C.
///
/// # Safety
/// The error is null, or from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_error_free(error: *mut CallError) {
    if !error.is_null() {
        // SAFETY: errors are made by `Box::into_raw` alone, and the caller frees each once.
        drop(unsafe { Box::from_raw(error) });
    }
}
