//! AMD's extension of the loader: tools find loaded code objects and their memory by it.
#![allow(unsafe_code)] // functions that tools call through the table

use super::executable::{EXECUTABLES, LoadedObject, OBJECTS, READERS, object_at};
use super::functions::read_file;
use crate::abi::{ExecutableHandle, LoadedObjectHandle, ReaderHandle, SegmentDescriptor};
use crate::boundary::{HsaResult, not_null, put_as, put_bytes, put_result, run_guarded, visit_all};
use crate::status::HsaStatus;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Code objects are in memory; ROCr says so of files as well.
const STORAGE_MEMORY: u32 = 2;

/// The functions, in the order of the table of version 1.03.
pub(crate) fn extension_table() -> [usize; 7] {
    [
        query_host_address as *const () as usize,
        query_segment_descriptors as *const () as usize,
        query_executable as *const () as usize,
        iterate_loaded_objects as *const () as usize,
        loaded_object_info as *const () as usize,
        reader_from_part_of_file as *const () as usize,
        iterate_executables as *const () as usize,
    ]
}

/// The host sees the memory of a code object at the same address.
unsafe extern "C" fn query_host_address(address: *const c_void, host: *mut *const c_void) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_query_host_address", || {
        object_at(address as u64).ok_or(HsaStatus::INVALID_ARGUMENT)?;
        // SAFETY: null, or the caller's place.
        unsafe { put_result(host, address) }
    })
}

fn segment_descriptor(object: &LoadedObject) -> SegmentDescriptor {
    SegmentDescriptor {
        agent: object.agent,
        executable: ExecutableHandle(object.executable),
        storage_type: STORAGE_MEMORY,
        storage_base: object.reader.storage,
        storage_size: object.reader.bytes.len(),
        storage_offset: 0,
        segment_base: object.placed.base,
        segment_size: object.placed.size as usize,
    }
}

unsafe extern "C" fn query_segment_descriptors(to: *mut SegmentDescriptor, count: *mut usize) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_query_segment_descriptors", || {
        not_null(count)?;
        let all: Vec<SegmentDescriptor> =
            OBJECTS.sorted_objects().iter().map(|(_, object)| segment_descriptor(object)).collect();
        // SAFETY: the caller's count, and as many places as it says.
        unsafe {
            if !to.is_null() {
                if count.read_unaligned() != all.len() {
                    return Err(HsaStatus::INCOMPATIBLE_ARGUMENTS);
                }
                all.iter().enumerate().for_each(|(number, row)| to.add(number).write_unaligned(*row));
            }
            put_result(count, all.len())
        }
    })
}

unsafe extern "C" fn query_executable(address: *const c_void, executable: *mut ExecutableHandle) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_query_executable", || {
        let (_, object) = object_at(address as u64).ok_or(HsaStatus::INVALID_ARGUMENT)?;
        // SAFETY: null, or the caller's place.
        unsafe { put_result(executable, ExecutableHandle(object.executable)) }
    })
}

type ObjectVisitor = unsafe extern "C" fn(ExecutableHandle, LoadedObjectHandle, *mut c_void) -> HsaStatus;

unsafe extern "C" fn iterate_loaded_objects(
    executable: ExecutableHandle,
    visit: Option<ObjectVisitor>,
    data: *mut c_void,
) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_executable_iterate_loaded_code_objects", || {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let objects = EXECUTABLES.get(executable.0).ok_or(HsaStatus::INVALID_EXECUTABLE)?.object_handles();
        // SAFETY: the caller's function with its own data.
        visit_all(objects, |object| unsafe { visit(executable, LoadedObjectHandle(object), data) })
    })
}

/// The place of a code object in memory as an URI.
fn memory_uri(object: &LoadedObject) -> String {
    let (offset, size) = (object.reader.storage, object.reader.bytes.len());
    format!("memory://{}#offset=0x{offset:x}&size={size}", std::process::id())
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn object_attribute(object: &Arc<LoadedObject>, attribute: u32, value: *mut c_void) -> HsaResult {
    // SAFETY: the types are those of HSA's headers; the caller has room for them.
    unsafe {
        match attribute {
            1 => put_as(value, ExecutableHandle(object.executable)),
            // Of an agent, not of the program.
            2 => put_as(value, 2u32),
            3 => put_as(value, object.agent),
            4 => put_as(value, STORAGE_MEMORY),
            5 => put_as(value, object.reader.storage),
            6 => put_as(value, object.reader.bytes.len() as u64),
            8 => put_as(value, object.placed.delta),
            9 => put_as(value, object.placed.base),
            10 => put_as(value, object.placed.size),
            11 => put_as(value, memory_uri(object).len() as u32),
            12 => put_bytes(value, memory_uri(object).as_bytes()),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }
}

unsafe extern "C" fn loaded_object_info(object: LoadedObjectHandle, attribute: u32, value: *mut c_void) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_loaded_code_object_get_info", || {
        let object = OBJECTS.get(object.0).ok_or(HsaStatus::INVALID_CODE_OBJECT)?;
        // SAFETY: the caller's place, with room for the attribute.
        unsafe { object_attribute(&object, attribute, value) }
    })
}

unsafe extern "C" fn reader_from_part_of_file(
    file: c_int,
    offset: usize,
    size: usize,
    reader: *mut ReaderHandle,
) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size", || {
        not_null(reader)?;
        let read = read_file(file, offset as u64, Some(size as u64))?;
        // SAFETY: the caller's place.
        unsafe { put_result(reader, ReaderHandle(READERS.add(read))) }
    })
}

type ExecutableVisitor = unsafe extern "C" fn(ExecutableHandle, *mut c_void) -> HsaStatus;

unsafe extern "C" fn iterate_executables(visit: Option<ExecutableVisitor>, data: *mut c_void) -> HsaStatus {
    run_guarded("hsa_ven_amd_loader_iterate_executables", || {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        // SAFETY: the caller's function with its own data; no lock is held.
        visit_all(EXECUTABLES.sorted_objects(), |(handle, _)| unsafe { visit(ExecutableHandle(handle), data) })
    })
}
