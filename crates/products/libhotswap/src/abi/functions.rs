//! Functions and kernels.

use super::boundary::{
    SizedStruct, caller_text, list_element, object_of_handle, put_list, put_struct, put_value, run_call,
};
use crate::call_error::{CallError, CallStatus};
use crate::device_image::DeviceImage;
use crate::function_index::{FunctionIndex, FunctionPlace};
use hotswap_device_symbols::{FactEvidence, Function, FunctionKind, Number, Resources};
use std::ffi::c_char;

/// A number and its evidence, `hotswap_number` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct NumberInfo {
    pub value: u64,
    pub flags: u32,
    pub evidence: u32,
}

/// The resources of a function, `hotswap_resources` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ResourcesInfo {
    pub vgprs: NumberInfo,
    pub agprs: NumberInfo,
    pub sgprs: NumberInfo,
    pub scratch: NumberInfo,
    pub lds: NumberInfo,
}

/// The facts of a function, `hotswap_function` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct FunctionInfo {
    pub struct_size: usize,
    pub name: *const c_char,
    pub section: *const c_char,
    pub address: u64,
    pub size: u64,
    pub kind: u32,
    pub flags: u32,
    pub wave_size: u32,
    pub mode: u32,
    pub own: ResourcesInfo,
    pub total: ResourcesInfo,
    pub aliases: usize,
    pub callees: usize,
    pub imports: usize,
    pub resolved_calls: usize,
    pub unknown_calls: usize,
    pub own_barriers: NumberInfo,
    pub total_barriers: NumberInfo,
    pub source: *const c_char,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for FunctionInfo {}

/// The facts of a kernel, `hotswap_kernel` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct KernelInfo {
    pub struct_size: usize,
    pub function: usize,
    pub descriptor_address: u64,
    pub kernarg_size: u64,
    pub reachable: usize,
    pub complete: u32,
    pub reserved: u32,
    pub needs: ResourcesInfo,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for KernelInfo {}

impl From<Number> for NumberInfo {
    fn from(number: Number) -> Self {
        let evidence = match number.evidence {
            FactEvidence::CompilerRecord => 0,
            FactEvidence::AssemblerSymbol => 1,
            FactEvidence::Metadata => 2,
            FactEvidence::Descriptor => 3,
            FactEvidence::Disassembly => 4,
            FactEvidence::Unknown => 5,
        };
        let flags = u32::from(number.value.is_some()) | u32::from(number.at_least) << 1;
        Self { value: number.value.unwrap_or(0), flags, evidence }
    }
}

impl From<Resources> for ResourcesInfo {
    fn from(all: Resources) -> Self {
        Self {
            vgprs: all.vgprs.into(),
            agprs: all.agprs.into(),
            sgprs: all.sgprs.into(),
            scratch: all.scratch.into(),
            lds: all.lds.into(),
        }
    }
}

fn kind_number(function: &Function) -> u32 {
    match function.kind {
        FunctionKind::Kernel => 0,
        FunctionKind::Function => 1,
        FunctionKind::EntryStub => 2,
        FunctionKind::ImportStub => 3,
    }
}

fn flags_of(function: &Function) -> u32 {
    let is =
        [function.exported, function.address_taken, function.recursive == Some(true), function.recursive.is_none()];
    (0..).zip(is).map(|(bit, is)| u32::from(is) << bit).sum()
}

/// The name of a function's source.
fn source_text(index: &FunctionIndex, function: &Function) -> *const c_char {
    let name = function.source.and_then(|number| index.sources.get(number as usize));
    name.map_or(c"".as_ptr(), |name| name.as_ptr())
}

/// Fills in the facts of a function: `hotswap_image_function` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_function(
    image: *const DeviceImage,
    function: usize,
    info: *mut FunctionInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let index = object_of_handle(image)?.index()?;
            let (row, texts) = index.function_row(function)?;
            let value = FunctionInfo {
                struct_size: 0,
                name: texts.name.as_ptr(),
                section: texts.section.as_ptr(),
                address: row.address,
                size: row.size,
                kind: kind_number(row),
                flags: flags_of(row),
                wave_size: row.wave_size.map_or(0, u32::from),
                mode: row.cu_mode.map_or(0, |is_cu| if is_cu { 1 } else { 2 }),
                own: row.own.into(),
                total: row.total.into(),
                aliases: texts.aliases.len(),
                callees: row.callees.len(),
                imports: texts.imports.len(),
                resolved_calls: row.indirect_calls.resolved as usize,
                unknown_calls: row.indirect_calls.unresolved.len(),
                own_barriers: row.own.barriers.into(),
                total_barriers: row.total.barriers.into(),
                source: source_text(index, row),
            };
            put_struct(info, value)
        })
    }
}

/// The number of the function of a name or alias: `hotswap_image_function_named` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_function_named(
    image: *const DeviceImage,
    name: *const c_char,
    function: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(function, object_of_handle(image)?.index()?.number_of_name(caller_text(name)?)? as usize)
        })
    }
}

/// The number of the function that holds an address: `hotswap_image_function_at` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_function_at(
    image: *const DeviceImage,
    address: u64,
    function: *mut usize,
    offset: *mut u64,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let FunctionPlace { number, distance } = object_of_handle(image)?.index()?.function_at(address)?;
            put_value(function, number as usize)?;
            if offset.is_null() { Ok(()) } else { put_value(offset, distance) }
        })
    }
}

/// Another name of a function: `hotswap_function_alias` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_function_alias(
    image: *const DeviceImage,
    function: usize,
    alias: usize,
    name: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let (_, texts) = object_of_handle(image)?.index()?.function_row(function)?;
            put_value(name, list_element(&texts.aliases, alias, "alias")?.as_ptr())
        })
    }
}

/// The name of an imported function that a function calls: `hotswap_function_import` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_function_import(
    image: *const DeviceImage,
    function: usize,
    import: usize,
    name: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let (_, texts) = object_of_handle(image)?.index()?.function_row(function)?;
            put_value(name, list_element(&texts.imports, import, "import")?.as_ptr())
        })
    }
}

/// The numbers of the functions that a function calls: `hotswap_function_callees` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_function_callees(
    image: *const DeviceImage,
    function: usize,
    buffer: *mut u32,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let (_, texts) = object_of_handle(image)?.index()?.function_row(function)?;
            put_list(&texts.callees, buffer, count)
        })
    }
}

/// The addresses of a function's calls with unknown targets: `hotswap_function_unknown_calls` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_function_unknown_calls(
    image: *const DeviceImage,
    function: usize,
    buffer: *mut u64,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let (row, _) = object_of_handle(image)?.index()?.function_row(function)?;
            put_list(&row.indirect_calls.unresolved, buffer, count)
        })
    }
}

/// Fills in the facts of a kernel: `hotswap_image_kernel` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_kernel(
    image: *const DeviceImage,
    kernel: usize,
    info: *mut KernelInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let index = object_of_handle(image)?.index()?;
            let row = index.kernel_row(kernel)?;
            let descriptor = index.descriptor_of(row);
            let value = KernelInfo {
                struct_size: 0,
                function: row.function as usize,
                descriptor_address: descriptor.address,
                kernarg_size: descriptor.kernarg_size,
                reachable: row.reachable.len(),
                complete: u32::from(row.complete),
                reserved: 0,
                needs: row.needs.into(),
            };
            put_struct(info, value)
        })
    }
}

/// The numbers of all functions that a kernel reaches: `hotswap_kernel_reachable` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_kernel_reachable(
    image: *const DeviceImage,
    kernel: usize,
    buffer: *mut u32,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || put_list(&object_of_handle(image)?.index()?.kernel_row(kernel)?.reachable, buffer, count))
    }
}
