//! The functions of HSA: readers, executables, symbols.
#![allow(unsafe_code)] // the functions of HSA's interface, and the code objects of the program

use super::executable::{CodeReader, DeviceExecutable, EXECUTABLES, ExecutableSymbol, READERS, SYMBOLS};
use super::object_image::LoadRefusal;
use crate::abi::{AgentHandle, ExecutableHandle, LoadedObjectHandle, ReaderHandle, SymbolHandle};
use crate::boundary::{HsaResult, caller_text, hsa_api, not_null, put_as, put_bytes, put_result, visit_all};
use crate::devices::{check_agent, gpu_of};
use crate::message::report_message;
use crate::status::HsaStatus;
use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

fn find_executable(handle: ExecutableHandle) -> Result<Arc<DeviceExecutable>, HsaStatus> {
    EXECUTABLES.get(handle.0).ok_or(HsaStatus::INVALID_EXECUTABLE)
}

/// Reads so many bytes of a file of the program; all of it without a size.
pub(super) fn read_file(file: c_int, offset: u64, size: Option<u64>) -> Result<CodeReader, HsaStatus> {
    if file < 0 {
        return Err(HsaStatus::INVALID_FILE);
    }
    // SAFETY: the descriptor is the program's, which keeps it open during the call; it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
    let length = file.metadata().map_err(|_| HsaStatus::INVALID_FILE)?.len();
    let size = size.unwrap_or(length.saturating_sub(offset));
    if size == 0 || offset.checked_add(size).is_none_or(|end| end > length) {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| HsaStatus::OUT_OF_RESOURCES)?];
    file.read_exact_at(&mut bytes, offset).map_err(|_| HsaStatus::INVALID_FILE)?;
    let bytes: Arc<[u8]> = bytes.into();
    let storage = bytes.as_ptr() as u64;
    Ok(CodeReader { bytes, storage })
}

/// Loads, and says why not.
fn load_for_agent(handle: ExecutableHandle, agent: AgentHandle, reader: ReaderHandle) -> Result<u64, HsaStatus> {
    let reader = READERS.get(reader.0).ok_or(HsaStatus::INVALID_CODE_OBJECT_READER)?;
    let loaded = find_executable(handle)?.load_object(handle.0, agent, &reader);
    loaded.map_err(|LoadRefusal { status, reason }| {
        let gpu = gpu_of(agent).map_or_else(|_| "no GPU".to_owned(), |gpu| gpu.target.to_string());
        report_message(&format!("a code object is not loaded on {gpu}: {reason} ({})", status.name()));
        status
    })
}

/// The agent of a symbol that a caller asks for; null is the program.
///
/// # Safety
/// Null, or a handle of the caller's.
unsafe fn agent_of(agent: *const AgentHandle) -> Option<AgentHandle> {
    // SAFETY: the caller's promise.
    (!agent.is_null()).then(|| unsafe { agent.read_unaligned() })
}

/// # Safety
/// `name` is a C string; `symbol` is the caller's place.
unsafe fn symbol_by_name(
    handle: ExecutableHandle,
    name: *const c_char,
    agent: Option<AgentHandle>,
    symbol: *mut SymbolHandle,
) -> HsaResult {
    not_null(symbol)?;
    // SAFETY: the caller's promise.
    unsafe {
        let found =
            find_executable(handle)?.symbol_handle(&caller_text(name)?, agent).ok_or(HsaStatus::INVALID_SYMBOL_NAME)?;
        put_result(symbol, SymbolHandle(found))
    }
}

/// A field of a kernel's descriptor in memory.
fn descriptor_field(symbol: &ExecutableSymbol, offset: u64) -> Result<u32, HsaStatus> {
    let (object, image) = symbol.image.as_ref().ok_or(HsaStatus::INVALID_EXECUTABLE_SYMBOL)?;
    let bytes = image.address.checked_add(offset).and_then(|address| object.placed.read::<4>(address));
    bytes.map(u32::from_le_bytes).ok_or(HsaStatus::INVALID_CODE_OBJECT)
}

/// Bit 11 of the descriptor's properties: the kernel's stack has a size that is known when it runs.
fn has_dynamic_stack(symbol: &ExecutableSymbol) -> Result<bool, HsaStatus> {
    Ok(descriptor_field(symbol, 56)? >> 11 & 1 == 1)
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn symbol_attribute(symbol: &ExecutableSymbol, attribute: u32, value: *mut c_void) -> HsaResult {
    let image = symbol.image.as_ref().map(|(_, image)| image);
    let is_kernel = image.is_some_and(|image| image.is_kernel);
    // SAFETY: the types are those of HSA's headers; the caller has room for them.
    unsafe {
        match attribute {
            0 => put_as(value, u32::from(is_kernel)),
            // HSA's names are written without a final zero.
            1 => put_as(value, symbol.name.len() as u32),
            2 => put_bytes(value, symbol.name.as_bytes()),
            3 => put_as(value, 0u32),
            4 => Ok(()),
            // Linkage: the program's.
            5 => put_as(value, 1u32),
            17 => put_as(value, true),
            20 => put_as(value, symbol.agent.ok_or(HsaStatus::INVALID_ARGUMENT)?),
            21 | 22 => put_as(value, symbol.address),
            // Of a variable: allocated for an agent or the program, in the global segment.
            6 if !is_kernel => put_as(value, u32::from(symbol.agent.is_none())),
            7 if !is_kernel => put_as(value, 0u32),
            8 if !is_kernel => put_as(value, image.map_or(1, |image| image.alignment as u32)),
            9 if !is_kernel => put_as(value, image.map_or(0, |image| image.size as u32)),
            10 if !is_kernel => put_as(value, image.is_some_and(|image| image.is_constant)),
            11 if is_kernel => put_as(value, descriptor_field(symbol, 8)?),
            12 if is_kernel => put_as(value, 16u32),
            13 if is_kernel => put_as(value, descriptor_field(symbol, 0)?),
            14 if is_kernel => put_as(value, descriptor_field(symbol, 4)?),
            15 if is_kernel => put_as(value, has_dynamic_stack(symbol)?),
            18 if is_kernel => put_as(value, 0u32),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }
}

type SymbolVisitor = unsafe extern "C" fn(ExecutableHandle, SymbolHandle, *mut c_void) -> HsaStatus;
type AgentSymbolVisitor = unsafe extern "C" fn(ExecutableHandle, AgentHandle, SymbolHandle, *mut c_void) -> HsaStatus;

/// The state of an executable as HSA asks for it.
fn profile_attribute(executable: &DeviceExecutable, attribute: u32) -> Result<u32, HsaStatus> {
    match attribute {
        1 => Ok(executable.profile),
        2 => Ok(u32::from(executable.is_frozen())),
        3 => Ok(executable.rounding),
        _ => Err(HsaStatus::INVALID_ARGUMENT),
    }
}

hsa_api! {
    fn hsa_code_object_reader_create_from_memory(start: *const c_void, size: usize, reader: *mut ReaderHandle) {
        not_null(reader)?;
        if start.is_null() || size == 0 {
            return Err(HsaStatus::INVALID_ARGUMENT);
        }
        // A copy: the program may free its memory while the executable lives.
        let bytes: Arc<[u8]> = std::slice::from_raw_parts(start.cast::<u8>(), size).into();
        put_result(reader, ReaderHandle(READERS.add(CodeReader { bytes, storage: start as u64 })))
    }

    fn hsa_code_object_reader_create_from_file(file: c_int, reader: *mut ReaderHandle) {
        not_null(reader)?;
        put_result(reader, ReaderHandle(READERS.add(read_file(file, 0, None)?)))
    }

    fn hsa_code_object_reader_destroy(reader: ReaderHandle) {
        READERS.remove(reader.0).map(drop).ok_or(HsaStatus::INVALID_CODE_OBJECT_READER)
    }

    fn hsa_executable_create_alt(
        profile: u32, rounding: u32, _options: *const c_char, executable: *mut ExecutableHandle,
    ) {
        not_null(executable)?;
        put_result(executable, ExecutableHandle(EXECUTABLES.add(DeviceExecutable::new(profile, rounding))))
    }

    fn hsa_executable_create(
        profile: u32, state: u32, _options: *const c_char, executable: *mut ExecutableHandle,
    ) {
        not_null(executable)?;
        let made = DeviceExecutable::new(profile, 0);
        if state == 1 {
            made.freeze()?;
        }
        put_result(executable, ExecutableHandle(EXECUTABLES.add(made)))
    }

    fn hsa_executable_destroy(handle: ExecutableHandle) {
        EXECUTABLES.remove(handle.0).ok_or(HsaStatus::INVALID_EXECUTABLE)?.destroy();
        Ok(())
    }

    fn hsa_executable_load_agent_code_object(
        handle: ExecutableHandle, agent: AgentHandle, reader: ReaderHandle, _options: *const c_char,
        object: *mut LoadedObjectHandle,
    ) {
        let loaded = load_for_agent(handle, agent, reader)?;
        if object.is_null() { Ok(()) } else { put_result(object, LoadedObjectHandle(loaded)) }
    }

    fn hsa_executable_freeze(handle: ExecutableHandle, _options: *const c_char) {
        find_executable(handle)?.freeze()
    }

    fn hsa_executable_validate(handle: ExecutableHandle, result: *mut u32) {
        find_executable(handle)?;
        put_result(result, 0u32)
    }

    fn hsa_executable_validate_alt(handle: ExecutableHandle, _options: *const c_char, result: *mut u32) {
        find_executable(handle)?;
        put_result(result, 0u32)
    }

    fn hsa_executable_get_info(handle: ExecutableHandle, attribute: u32, value: *mut c_void) {
        put_as(value, profile_attribute(&*find_executable(handle)?, attribute)?)
    }

    fn hsa_executable_global_variable_define(handle: ExecutableHandle, name: *const c_char, address: *mut c_void) {
        find_executable(handle)?.define_variable(caller_text(name)?, None, address as u64)
    }

    fn hsa_executable_agent_global_variable_define(
        handle: ExecutableHandle, agent: AgentHandle, name: *const c_char, address: *mut c_void,
    ) {
        check_agent(agent)?;
        find_executable(handle)?.define_variable(caller_text(name)?, Some(agent), address as u64)
    }

    fn hsa_executable_readonly_variable_define(
        handle: ExecutableHandle, agent: AgentHandle, name: *const c_char, address: *mut c_void,
    ) {
        check_agent(agent)?;
        find_executable(handle)?.define_variable(caller_text(name)?, Some(agent), address as u64)
    }

    fn hsa_executable_get_symbol_by_name(
        handle: ExecutableHandle, name: *const c_char, agent: *const AgentHandle, symbol: *mut SymbolHandle,
    ) {
        symbol_by_name(handle, name, agent_of(agent), symbol)
    }

    fn hsa_executable_get_symbol(
        handle: ExecutableHandle, _module: *const c_char, name: *const c_char, agent: AgentHandle, _convention: i32,
        symbol: *mut SymbolHandle,
    ) {
        symbol_by_name(handle, name, Some(agent), symbol)
    }

    fn hsa_executable_symbol_get_info(symbol: SymbolHandle, attribute: u32, value: *mut c_void) {
        let symbol = SYMBOLS.get(symbol.0).ok_or(HsaStatus::INVALID_EXECUTABLE_SYMBOL)?;
        symbol_attribute(&symbol, attribute, value)
    }

    fn hsa_executable_iterate_symbols(handle: ExecutableHandle, visit: Option<SymbolVisitor>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let all = find_executable(handle)?.symbol_handles();
        visit_all(all, |(symbol, _)| visit(handle, SymbolHandle(symbol), data))
    }

    fn hsa_executable_iterate_agent_symbols(
        handle: ExecutableHandle, agent: AgentHandle, visit: Option<AgentSymbolVisitor>, data: *mut c_void,
    ) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        check_agent(agent)?;
        let all = find_executable(handle)?.symbol_handles().into_iter().filter(|(_, of)| *of == Some(agent));
        visit_all(all, |(symbol, _)| visit(handle, agent, SymbolHandle(symbol), data))
    }

    fn hsa_executable_iterate_program_symbols(
        handle: ExecutableHandle, visit: Option<SymbolVisitor>, data: *mut c_void,
    ) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let all = find_executable(handle)?.symbol_handles().into_iter().filter(|(_, of)| of.is_none());
        visit_all(all, |(symbol, _)| visit(handle, SymbolHandle(symbol), data))
    }
}
