//! Code objects that the process has loaded, through functions of HSA that the caller passes.

use super::boundary::{SizedStruct, run_call};
use crate::call_error::{CallError, CallStatus, c_string};
use crate::device_image::{DeviceImage, ImageBytes};
use crate::process::copy_of_memory;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null;
use std::sync::Arc;

/// A handle of HSA, passed by value, `hotswap_hsa_handle` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct HsaHandle {
    pub handle: u64,
}

type ExecutableCallback = unsafe extern "C" fn(HsaHandle, *mut c_void) -> c_int;
type ObjectCallback = unsafe extern "C" fn(HsaHandle, HsaHandle, *mut c_void) -> c_int;

/// The functions of HSA's loader that the caller passes, `hotswap_hsa_loader` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct HsaLoader {
    pub struct_size: usize,
    pub iterate_executables: Option<unsafe extern "C" fn(ExecutableCallback, *mut c_void) -> c_int>,
    pub iterate_objects: Option<unsafe extern "C" fn(HsaHandle, ObjectCallback, *mut c_void) -> c_int>,
    pub get_info: Option<unsafe extern "C" fn(HsaHandle, c_int, *mut c_void) -> c_int>,
}

/// The caller's function that receives each loaded code object, `hotswap_process_visitor` in C.
pub type ProcessVisitor = Option<unsafe extern "C" fn(*const ProcessObject, *mut c_void) -> c_int>;

/// A code object that the process has loaded, `hotswap_process_object` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct ProcessObject {
    pub struct_size: usize,
    pub executable: u64,
    pub object: u64,
    pub agent: u64,
    pub load_delta: i64,
    pub load_base: u64,
    pub load_size: u64,
    pub uri: *const c_char,
    pub image: *const DeviceImage,
    pub problem: *const c_char,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for ProcessObject {}

/// Attributes of a loaded code object.
mod attribute {
    pub(super) const AGENT: i32 = 3;
    pub(super) const MEMORY_BASE: i32 = 5;
    pub(super) const MEMORY_SIZE: i32 = 6;
    pub(super) const LOAD_DELTA: i32 = 8;
    pub(super) const LOAD_BASE: i32 = 9;
    pub(super) const LOAD_SIZE: i32 = 10;
    pub(super) const URI_LENGTH: i32 = 11;
    pub(super) const URI: i32 = 12;
}

/// A longer URI is damage.
const MOST_URI: u32 = 1 << 20;

unsafe extern "C" fn add_executable(executable: HsaHandle, list: *mut c_void) -> c_int {
    // SAFETY: `handles_of_executables` passes the list, and HSA calls this only meanwhile.
    unsafe { &mut *list.cast::<Vec<HsaHandle>>() }.push(executable);
    0
}

unsafe extern "C" fn add_object(_: HsaHandle, object: HsaHandle, list: *mut c_void) -> c_int {
    // SAFETY: as for executables.
    unsafe { &mut *list.cast::<Vec<HsaHandle>>() }.push(object);
    0
}

/// The three functions of HSA's loader, none of them null.
struct LoaderFunctions {
    iterate_executables: unsafe extern "C" fn(ExecutableCallback, *mut c_void) -> c_int,
    iterate_objects: unsafe extern "C" fn(HsaHandle, ObjectCallback, *mut c_void) -> c_int,
    get_info: unsafe extern "C" fn(HsaHandle, c_int, *mut c_void) -> c_int,
}

/// The facts about an object.
struct ProcessFacts {
    uri: CString,
    image: Option<Arc<DeviceImage>>,
    problem: CString,
}

impl LoaderFunctions {
    /// # Safety
    /// The loader is null, or a structure of functions of HSA's types.
    unsafe fn new(loader: *const HsaLoader) -> Result<Self, CallError> {
        // SAFETY: the promise of the caller.
        let loader =
            unsafe { loader.as_ref() }.ok_or_else(|| CallError::invalid_argument("the functions of HSA are null"))?;
        let all = loader.iterate_executables.zip(loader.iterate_objects).zip(loader.get_info);
        match all {
            Some(((iterate_executables, iterate_objects), get_info))
                if loader.struct_size >= size_of::<HsaLoader>() =>
            {
                Ok(Self { iterate_executables, iterate_objects, get_info })
            }
            _ => Err(CallError::invalid_argument("a function of HSA is null, or struct_size is not set")),
        }
    }

    /// # Safety
    /// The functions are HSA's.
    unsafe fn loaded_executables(&self) -> Result<Vec<HsaHandle>, CallError> {
        let mut list: Vec<HsaHandle> = Vec::new();
        // SAFETY: the list outlives the call.
        let status = unsafe { (self.iterate_executables)(add_executable, (&raw mut list).cast()) };
        if status == 0 { Ok(list) } else { Err(call_failed("iterate_executables", status)) }
    }

    /// # Safety
    /// As [`Self::executables`]; the handle is one of those.
    unsafe fn loaded_objects(&self, executable: HsaHandle) -> Result<Vec<HsaHandle>, CallError> {
        let mut list: Vec<HsaHandle> = Vec::new();
        // SAFETY: the list outlives the call.
        let status = unsafe { (self.iterate_objects)(executable, add_object, (&raw mut list).cast()) };
        if status == 0 { Ok(list) } else { Err(call_failed("executable_iterate_loaded_code_objects", status)) }
    }

    /// A number of an object; 0 where HSA does not tell it.
    ///
    /// # Safety
    /// As [`Self::objects`]; the attribute is of at most 8 bytes.
    unsafe fn object_number(&self, object: HsaHandle, attribute: i32) -> u64 {
        let mut value = 0_u64;
        // SAFETY: the value has room for every attribute that is asked for here.
        let status = unsafe { (self.get_info)(object, attribute, (&raw mut value).cast()) };
        if status == 0 { value } else { 0 }
    }

    /// # Safety
    /// The same conditions as for [`Self::objects`].
    unsafe fn object_facts(&self, object: HsaHandle) -> ProcessFacts {
        // SAFETY: the promise of the caller, for each of the calls.
        let (base, size, uri) = unsafe {
            let base = self.object_number(object, attribute::MEMORY_BASE);
            (base, self.object_number(object, attribute::MEMORY_SIZE), self.object_uri(object))
        };
        let bytes = copy_of_memory(base, size).filter(|bytes| !bytes.is_empty());
        let image =
            bytes.ok_or_else(missing_object_bytes_error).and_then(|bytes| DeviceImage::new(ImageBytes::Owned(bytes)));
        match image {
            Ok(image) => ProcessFacts { uri, image: Some(Arc::new(image)), problem: CString::default() },
            Err(error) => ProcessFacts { uri, image: None, problem: error.message },
        }
    }

    /// # Safety
    /// The same conditions as for [`Self::objects`].
    unsafe fn object_uri(&self, object: HsaHandle) -> CString {
        // SAFETY: the promise of the caller.
        let length = unsafe { self.object_number(object, attribute::URI_LENGTH) } as u32;
        if length == 0 || length > MOST_URI {
            return CString::default();
        }
        // HSA writes that many bytes and no NUL.
        let mut bytes = vec![0_u8; length as usize + 1];
        // SAFETY: the room is one byte more than HSA needs.
        let status = unsafe { (self.get_info)(object, attribute::URI, bytes.as_mut_ptr().cast()) };
        if status == 0 { c_string(String::from_utf8_lossy(&bytes)) } else { CString::default() }
    }
}

fn missing_object_bytes_error() -> CallError {
    CallError::not_found("the bytes that it was loaded from are gone")
}

fn call_failed(what: &str, status: c_int) -> CallError {
    CallError::new(CallStatus::CannotRead, format!("HSA's {what} returned {status:#x}"))
}

/// Passes one object to the visitor.
///
/// # Safety
/// The functions are HSA's, the handles theirs, and the visitor is a function of its type.
unsafe fn visit_object(
    functions: &LoaderFunctions,
    (executable, object): (HsaHandle, HsaHandle),
    visitor: unsafe extern "C" fn(*const ProcessObject, *mut c_void) -> c_int,
    context: *mut c_void,
) -> Result<(), CallError> {
    // SAFETY: the promise of the caller; the structure and what it points to live until the visitor returns.
    let stops = unsafe {
        let facts = functions.object_facts(object);
        let info = ProcessObject {
            struct_size: size_of::<ProcessObject>(),
            executable: executable.handle,
            object: object.handle,
            agent: functions.object_number(object, attribute::AGENT),
            load_delta: functions.object_number(object, attribute::LOAD_DELTA) as i64,
            load_base: functions.object_number(object, attribute::LOAD_BASE),
            load_size: functions.object_number(object, attribute::LOAD_SIZE),
            uri: facts.uri.as_ptr(),
            image: facts.image.as_ref().map_or(null(), Arc::as_ptr),
            problem: facts.problem.as_ptr(),
        };
        visitor(&raw const info, context) != 0
    };
    if stops { Err(CallError::new(CallStatus::Stopped, "the callback asked to stop")) } else { Ok(()) }
}

/// Visits the code objects that the process has loaded: `hotswap_process_iterate` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_process_iterate(
    loader: *const HsaLoader,
    visitor: ProcessVisitor,
    context: *mut c_void,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let functions = LoaderFunctions::new(loader)?;
            let visitor = visitor.ok_or_else(|| CallError::invalid_argument("the callback is null"))?;
            for executable in functions.loaded_executables()? {
                for object in functions.loaded_objects(executable)? {
                    visit_object(&functions, (executable, object), visitor, context)?;
                }
            }
            Ok(())
        })
    }
}
