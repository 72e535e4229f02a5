//! The loader without a GPU.

use super::boundary::{
    SizedStruct, caller_text, list_element, object_of_handle, put_handle, put_struct, put_value, release_handle,
    retain_handle, run_call,
};
use crate::call_error::{CallError, CallStatus};
use crate::device_image::DeviceImage;
use crate::load_model::LoadedCode;
use std::collections::HashMap;
use std::ffi::c_char;
use std::slice;

/// A name that the caller defines for a loader, `hotswap_external` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ExternalInfo {
    pub name: *const c_char,
    pub address: u64,
}

/// The counts of a loaded code object, `hotswap_loaded_info` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct LoadedInfo {
    pub struct_size: usize,
    pub base: u64,
    pub size: u64,
    pub segments: usize,
    pub relocations: usize,
    pub undefined: usize,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for LoadedInfo {}

/// A loaded segment, `hotswap_segment` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct SegmentInfo {
    pub struct_size: usize,
    pub address: u64,
    pub size: u64,
    pub flags: u32,
    pub reserved: u32,
    pub bytes: *const u8,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for SegmentInfo {}

/// A relocation, applied or deferred, `hotswap_relocation` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct RelocationInfo {
    pub struct_size: usize,
    pub address: u64,
    pub kind: u32,
    pub applied: u32,
    pub value: u64,
    pub symbol: *const c_char,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for RelocationInfo {}

/// The addresses that the caller defines.
///
/// # Safety
/// There are that many externals, with texts as names.
unsafe fn defined(externals: *const ExternalInfo, count: usize) -> Result<HashMap<String, u64>, CallError> {
    if count == 0 {
        return Ok(HashMap::new());
    }
    if externals.is_null() || count > isize::MAX as usize / size_of::<ExternalInfo>() {
        return Err(CallError::invalid_argument("the externals are null, or too many"));
    }
    // SAFETY: the promise of the caller, and the checks before.
    let rows = unsafe { slice::from_raw_parts(externals, count) };
    // SAFETY: the promise of the caller.
    rows.iter().map(|row| Ok((unsafe { caller_text(row.name) }?.to_owned(), row.address))).collect()
}

/// Lays a code object out at an address: `hotswap_image_load` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_load(
    image: *const DeviceImage,
    base: u64,
    externals: *const ExternalInfo,
    n_externals: usize,
    loaded: *mut *mut LoadedCode,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_handle(loaded, || {
                LoadedCode::new(object_of_handle(image)?.bytes(), base, &defined(externals, n_externals)?)
            })
        })
    }
}

/// Counts one more reference of a loaded code object: `hotswap_loaded_retain` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_retain(loaded: *const LoadedCode) -> *mut LoadedCode {
    // SAFETY: the promise of the caller.
    unsafe { retain_handle(loaded) }
}

/// Gives up one reference of a loaded code object: `hotswap_loaded_free` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_free(loaded: *mut LoadedCode) {
    // SAFETY: the promise of the caller.
    unsafe { release_handle(loaded) }
}

/// Fills in the counts of a loaded code object: `hotswap_loaded_info_get` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_info_get(
    loaded: *const LoadedCode,
    info: *mut LoadedInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let loaded = object_of_handle(loaded)?;
            let value = LoadedInfo {
                struct_size: 0,
                base: loaded.base,
                size: loaded.size(),
                segments: loaded.segments.len(),
                relocations: loaded.relocations.len(),
                undefined: loaded.undefined.len(),
            };
            put_struct(info, value)
        })
    }
}

/// Fills in a loaded segment: `hotswap_loaded_segment` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_segment(
    loaded: *const LoadedCode,
    segment: usize,
    info: *mut SegmentInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let loaded = object_of_handle(loaded)?;
            let row = list_element(&loaded.segments, segment, "segment")?;
            let bytes = loaded.segment_bytes(row);
            let value = SegmentInfo {
                struct_size: 0,
                address: row.address,
                size: bytes.len() as u64,
                flags: row.flags & 7,
                reserved: 0,
                bytes: bytes.as_ptr(),
            };
            put_struct(info, value)
        })
    }
}

/// Fills in a relocation: `hotswap_loaded_relocation` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_relocation(
    loaded: *const LoadedCode,
    relocation: usize,
    info: *mut RelocationInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let row = list_element(&object_of_handle(loaded)?.relocations, relocation, "relocation")?;
            let value = RelocationInfo {
                struct_size: 0,
                address: row.address,
                kind: row.kind,
                applied: u32::from(row.value.is_some()),
                value: row.value.unwrap_or(0),
                symbol: row.symbol.as_ptr(),
            };
            put_struct(info, value)
        })
    }
}

/// A name without a definition: `hotswap_loaded_undefined` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_loaded_undefined(
    loaded: *const LoadedCode,
    number: usize,
    name: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(name, list_element(&object_of_handle(loaded)?.undefined, number, "undefined name")?.as_ptr())
        })
    }
}
