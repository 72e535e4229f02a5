//! Files, their entries, and the best one for an agent.

use super::boundary::{
    SizedStruct, caller_bytes, caller_text, list_element, object_of_handle, permissions_of_flags, put_handle,
    put_struct, put_value, release_handle, retain_handle, run_call,
};
use crate::agent::agent_target;
use crate::call_error::{CallError, CallStatus};
use crate::choice::{BestEntry, choose_code};
use crate::device_file::DeviceFile;
use crate::device_image::DeviceImage;
use crate::make::MadeCode;
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An entry of a file, `hotswap_entry` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct EntryInfo {
    pub struct_size: usize,
    pub kind: u32,
    pub container: u32,
    pub size: u64,
    pub file_offset: u64,
    pub id: *const c_char,
    pub target: *const c_char,
    pub place: *const c_char,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for EntryInfo {}

/// The entry that serves an agent, `hotswap_choice` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ChoiceInfo {
    pub struct_size: usize,
    pub entry: usize,
    pub route: u32,
    pub reserved: u32,
    pub source: *const c_char,
    pub rule: *const c_char,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for ChoiceInfo {}

/// Maps a file and finds its entries: `hotswap_file_open` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_open(
    path: *const c_char,
    file: *mut *mut DeviceFile,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            if path.is_null() {
                return Err(CallError::invalid_argument("the path is null"));
            }
            let path = Path::new(OsStr::from_bytes(std::ffi::CStr::from_ptr(path).to_bytes()));
            put_handle(file, || DeviceFile::open(path))
        })
    }
}

/// Copies the bytes of a file and finds its entries: `hotswap_file_from_memory` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_from_memory(
    start: *const c_void,
    size: usize,
    file: *mut *mut DeviceFile,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_handle(file, || DeviceFile::from_memory(caller_bytes(start, size)?))) }
}

/// Counts one more reference of a file: `hotswap_file_retain` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_retain(file: *const DeviceFile) -> *mut DeviceFile {
    // SAFETY: the promise of the caller.
    unsafe { retain_handle(file) }
}

/// Gives up one reference of a file: `hotswap_file_free` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_free(file: *mut DeviceFile) {
    // SAFETY: the promise of the caller.
    unsafe { release_handle(file) }
}

/// The number of a file's entries: `hotswap_file_entry_count` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_entry_count(
    file: *const DeviceFile,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_value(count, object_of_handle(file)?.entries.len())) }
}

/// Fills in an entry of a file: `hotswap_file_entry` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_entry(
    file: *const DeviceFile,
    entry: usize,
    info: *mut EntryInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let row = object_of_handle(file)?.entry_row(entry)?;
            let value = EntryInfo {
                struct_size: 0,
                kind: row.form as u32,
                container: row.container,
                size: row.size,
                file_offset: row.file_offset,
                id: row.id.as_ptr(),
                target: row.target.as_ptr(),
                place: row.place.as_ptr(),
            };
            put_struct(info, value)
        })
    }
}

/// The number of containers that could not be read: `hotswap_file_problem_count` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_problem_count(
    file: *const DeviceFile,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_value(count, object_of_handle(file)?.problems.len())) }
}

/// The message of a container that could not be read: `hotswap_file_problem` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_problem(
    file: *const DeviceFile,
    problem: usize,
    message: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(message, list_element(&object_of_handle(file)?.problems, problem, "problem")?.as_ptr())
        })
    }
}

/// Fills in the entry that serves an agent best: `hotswap_file_best_entry` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_best_entry(
    file: *const DeviceFile,
    isa: *const c_char,
    container: usize,
    flags: u32,
    choice: *mut ChoiceInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let file = object_of_handle(file)?;
            let agent = agent_target(caller_text(isa)?)?;
            let chosen = choose_code(file, agent, container_number(container)?, permissions_of_flags(flags)?)?;
            put_struct(choice, choice_info(file, &chosen.best)?)
        })
    }
}

fn choice_info(file: &DeviceFile, best: &BestEntry) -> Result<ChoiceInfo, CallError> {
    Ok(ChoiceInfo {
        struct_size: 0,
        entry: best.entry,
        route: best.route as u32,
        reserved: 0,
        source: file.entry_row(best.entry)?.target.as_ptr(),
        rule: best.rule.as_ptr(),
    })
}

/// The number of a container; `None` for all of them.
fn container_number(container: usize) -> Result<Option<u32>, CallError> {
    match container {
        usize::MAX => Ok(None),
        number => u32::try_from(number).map(Some).map_err(unknown_container_error),
    }
}

fn unknown_container_error(_: std::num::TryFromIntError) -> CallError {
    CallError::invalid_argument("there is no such container")
}

/// The code object that an agent loads, made for it if need be: `hotswap_bytes_for` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_bytes_for(
    file: *const DeviceFile,
    isa: *const c_char,
    container: usize,
    flags: u32,
    choice: *mut ChoiceInfo,
    output: *mut *mut MadeCode,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_handle(output, || {
                let file = object_of_handle(file)?;
                let agent = agent_target(caller_text(isa)?)?;
                let chosen = choose_code(file, agent, container_number(container)?, permissions_of_flags(flags)?)?;
                if !choice.is_null() {
                    put_struct(choice, choice_info(file, &chosen.best)?)?;
                }
                chosen.into_bytes(file)
            })
        })
    }
}

/// The code object of an entry: `hotswap_file_image` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_file_image(
    file: *const DeviceFile,
    entry: usize,
    image: *mut *mut DeviceImage,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_handle(image, || object_of_handle(file)?.image_of_entry(entry))) }
}
