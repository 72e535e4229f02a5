//! Images: code objects as a whole.

use super::boundary::{
    SizedStruct, caller_bytes, caller_text, list_element, object_of_handle, put_bytes, put_handle, put_list,
    put_struct, put_value, release_handle, retain_handle, run_call,
};
use crate::call_error::{CallError, CallStatus, c_string};
use crate::device_image::DeviceImage;
use hotswap_device_symbols::Form;
use std::ffi::{c_char, c_int, c_void};

/// The counts of a code object, `hotswap_image_info` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ImageInfo {
    pub struct_size: usize,
    pub flags: u32,
    pub reserved: u32,
    pub target: *const c_char,
    pub code_hash: *const c_char,
    pub unclaimed: u64,
    pub functions: usize,
    pub kernels: usize,
    pub imports: usize,
    pub warnings: usize,
    pub variables: usize,
    pub producers: usize,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for ImageInfo {}

/// An imported name, `hotswap_import` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ImportInfo {
    pub struct_size: usize,
    pub name: *const c_char,
    pub slots: usize,
    pub users: usize,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for ImportInfo {}

/// A variable of a code object, `hotswap_variable` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct VariableInfo {
    pub struct_size: usize,
    pub name: *const c_char,
    pub address: u64,
    pub size: u64,
    pub flags: u32,
    pub reserved: u32,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for VariableInfo {}

/// Copies the bytes of a code object: `hotswap_image_from_memory` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_from_memory(
    start: *const c_void,
    size: usize,
    image: *mut *mut DeviceImage,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_handle(image, || DeviceImage::from_memory(caller_bytes(start, size)?))) }
}

/// Counts one more reference of a code object: `hotswap_image_retain` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_retain(image: *const DeviceImage) -> *mut DeviceImage {
    // SAFETY: the promise of the caller.
    unsafe { retain_handle(image) }
}

/// Gives up one reference of a code object: `hotswap_image_free` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_free(image: *mut DeviceImage) {
    // SAFETY: the promise of the caller.
    unsafe { release_handle(image) }
}

/// The bytes of a code object: `hotswap_image_bytes` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_bytes(
    image: *const DeviceImage,
    start: *mut *const c_void,
    size: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_bytes(object_of_handle(image)?.bytes(), start, size)) }
}

/// Fills in the counts of a code object: `hotswap_image_info_get` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_info_get(
    image: *const DeviceImage,
    info: *mut ImageInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let image = object_of_handle(image)?;
            let index = image.index()?;
            let table = &index.table;
            let is = [table.form == Form::Linked, table.closed, index.is_from_note];
            let value = ImageInfo {
                struct_size: 0,
                flags: (0..).zip(is).map(|(bit, is)| u32::from(is) << bit).sum(),
                reserved: 0,
                target: index.target.as_ptr(),
                code_hash: index.code_hash.as_ptr(),
                unclaimed: table.unclaimed,
                functions: table.functions.len(),
                kernels: table.kernels.len(),
                imports: table.imports.len(),
                warnings: index.warnings.len(),
                variables: image.variables().len(),
                producers: index.producers.len(),
            };
            put_struct(info, value)
        })
    }
}

/// A warning about the code object: `hotswap_image_warning` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_warning(
    image: *const DeviceImage,
    warning: usize,
    message: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(message, list_element(&object_of_handle(image)?.index()?.warnings, warning, "warning")?.as_ptr())
        })
    }
}

/// A compiler or linker that made the code object: `hotswap_image_producer` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_producer(
    image: *const DeviceImage,
    producer: usize,
    text: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(text, list_element(&object_of_handle(image)?.index()?.producers, producer, "producer")?.as_ptr())
        })
    }
}

/// Fills in a variable: `hotswap_image_variable` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_variable(
    image: *const DeviceImage,
    variable: usize,
    info: *mut VariableInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let row = list_element(object_of_handle(image)?.variables(), variable, "variable")?;
            let flags = u32::from(row.is_exported) | u32::from(row.is_constant) << 1;
            let (name, address, size) = (row.name.as_ptr(), row.address, row.size);
            put_struct(info, VariableInfo { struct_size: 0, name, address, size, flags, reserved: 0 })
        })
    }
}

/// Fills in an imported name: `hotswap_image_import` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_import(
    image: *const DeviceImage,
    import: usize,
    info: *mut ImportInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let index = object_of_handle(image)?.index()?;
            let row = list_element(&index.table.imports, import, "import")?;
            let name = list_element(&index.imports, import, "import")?.as_ptr();
            put_struct(info, ImportInfo { struct_size: 0, name, slots: row.slots.len(), users: row.used_by.len() })
        })
    }
}

/// The addresses of the words that receive an import's address: `hotswap_import_slots` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_import_slots(
    image: *const DeviceImage,
    import: usize,
    buffer: *mut u64,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let row = list_element(&object_of_handle(image)?.index()?.table.imports, import, "import")?;
            put_list(&row.slots, buffer, count)
        })
    }
}

/// The numbers of the functions that use an import: `hotswap_import_users` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_import_users(
    image: *const DeviceImage,
    import: usize,
    buffer: *mut u32,
    count: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let row = list_element(&object_of_handle(image)?.index()?.table.imports, import, "import")?;
            put_list(&row.used_by, buffer, count)
        })
    }
}

/// The source line of an address: `hotswap_image_source_line` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_source_line(
    image: *const DeviceImage,
    address: u64,
    file: *mut c_char,
    size: *mut usize,
    line: *mut u32,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let (name, number) = object_of_handle(image)?.source_line(address)?;
            let name: Vec<c_char> =
                name.bytes().filter(|byte| *byte != 0).chain([0]).map(|byte| byte as c_char).collect();
            put_value(line, number)?;
            put_list(&name, file, size)
        })
    }
}

/// A function at an address, inlined or not, `hotswap_frame` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct FrameInfo {
    pub struct_size: usize,
    pub function: *const c_char,
    pub file: *const c_char,
    pub line: u32,
    pub inlined: u32,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for FrameInfo {}

/// The caller's function that receives each frame, `hotswap_frame_visitor` in C.
pub type FrameVisitor = Option<unsafe extern "C" fn(*const FrameInfo, *mut c_void) -> c_int>;

/// Visits the functions at an address: `hotswap_image_frames` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call; `visitor` is a function of the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_frames(
    image: *const DeviceImage,
    address: u64,
    visitor: FrameVisitor,
    context: *mut c_void,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let visitor = visitor.ok_or_else(|| CallError::invalid_argument("the callback is null"))?;
            let frames = object_of_handle(image)?.frames(address)?;
            let count = frames.len();
            for (number, frame) in frames.into_iter().enumerate() {
                let (function, file) = (c_string(frame.function), c_string(frame.file));
                let info = FrameInfo {
                    struct_size: size_of::<FrameInfo>(),
                    function: function.as_ptr(),
                    file: file.as_ptr(),
                    line: frame.line,
                    inlined: (number + 1 < count).into(),
                };
                if visitor(&raw const info, context) != 0 {
                    return Err(CallError::new(CallStatus::Stopped, "the callback asked to stop"));
                }
            }
            Ok(())
        })
    }
}

/// A C++ name in the form of the source: `hotswap_demangle` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_demangle(
    name: *const c_char,
    buffer: *mut c_char,
    size: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let readable = demangled(caller_text(name)?);
            let text: Vec<c_char> =
                readable.bytes().filter(|byte| *byte != 0).chain([0]).map(|byte| byte as c_char).collect();
            put_list(&text, buffer, size)
        })
    }
}

/// The name as in the source; names that are not mangled stay.
fn demangled(name: &str) -> String {
    let symbol = Some(name).filter(|name| name.starts_with("_Z")).and_then(|name| cpp_demangle::Symbol::new(name).ok());
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}
