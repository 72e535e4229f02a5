//! HIP's own functions: those that the caller would have called without this library.
//!
//! That is the next one in the global scope: HIP's, or that of another library that wraps it. A process may have several
//! HIP libraries (a wheel's beside the system's), and one that is not in the global scope: then it is the one in the
//! caller's own scope, or else that of a loaded HIP library.
//!
//! Invariant: nothing is loaded, and what was found is forgotten when a library is unloaded.
#![allow(unsafe_code)] // questions to the dynamic loader, and calls of what it finds

use crate::cache::Cache;
use crate::loader;
use crate::properties::{NAME_SIZE, PropertiesLayout, R0000, R0600, name};
use crate::scope::file_of;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

/// `hipError_t`, the result of HIP's functions.
pub(crate) type HipStatus = c_int;
/// `hipSuccess`, the result of a call that succeeded.
pub(crate) const SUCCESS: HipStatus = 0;
/// `hipErrorSharedObjectSymbolNotFound`, where HIP lacks the function.
pub(crate) const NO_SYMBOL: HipStatus = 302;

/// A function of HIP, with its version in HIP's library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HipSymbol {
    pub(crate) name: &'static CStr,
    pub(crate) version: &'static CStr,
}

const GET_DEVICE: HipSymbol = HipSymbol { name: c"hipGetDevice", version: c"hip_4.2" };
const GET_DEVICE_COUNT: HipSymbol = HipSymbol { name: c"hipGetDeviceCount", version: c"hip_4.2" };
const PROPERTIES: [PropertiesQuery; 2] = [
    PropertiesQuery { symbol: HipSymbol { name: c"hipGetDevicePropertiesR0600", version: c"hip_6.0" }, layout: R0600 },
    // Before HIP 6.0, this was the only one.
    PropertiesQuery { symbol: HipSymbol { name: c"hipGetDeviceProperties", version: c"hip_4.2" }, layout: R0000 },
];

/// A function that fills a structure of that layout.
struct PropertiesQuery {
    symbol: HipSymbol,
    layout: PropertiesLayout,
}

/// HIP's function for a caller; `ours` is the function of this library by that name.
pub(crate) fn find_function(symbol: HipSymbol, ours: *const c_void, caller: *const c_void) -> Option<*mut c_void> {
    static FOUND: Cache<(usize, &CStr), Option<usize>> = Cache::new();
    // HIP may be loaded later than the caller: its absence is checked again.
    let found = FOUND
        .get((caller as usize, symbol.name), || search_next_definition(&symbol, &ours, &caller))
        .or_else(|| search_next_definition(&symbol, &ours, &caller));
    found.map(|address| address as *mut c_void)
}

fn is_foreign_function(found: &*mut c_void, ours: &*const c_void) -> bool {
    !found.is_null() && !std::ptr::eq(*found, *ours)
}

fn is_outside_caller(found: &*mut c_void, ours: &*const c_void, caller: &*const c_void) -> bool {
    is_foreign_function(found, ours) && !is_defined_by(*caller, *found)
}

fn search_next_definition(symbol: &HipSymbol, ours: &*const c_void, caller: &*const c_void) -> Option<usize> {
    let found = Some(next(*symbol)).filter(|one| is_outside_caller(one, ours, caller));
    let found = found.or_else(|| in_scope_of(*symbol, *caller).filter(|one| is_outside_caller(one, ours, caller)));
    let found = found.or_else(|| Some(look_up(libc::RTLD_NEXT, *symbol)).filter(|one| is_foreign_function(one, ours)));
    found.or_else(|| in_loaded_hip(*symbol).filter(|one| is_foreign_function(one, ours))).map(|found| found as usize)
}

/// Whether a call of the function `ours` by the caller reaches that one, perhaps by way of a library that wraps it.
pub(crate) fn reaches_function(
    found: *mut c_void,
    symbol: HipSymbol,
    ours: *const c_void,
    caller: *const c_void,
) -> bool {
    let called = find_function(symbol, ours, caller);
    called.is_some_and(|called| called == found || !is_of_hip(called) && look_up(libc::RTLD_NEXT, symbol) == found)
}

/// The function after this library's by that name.
fn next(symbol: HipSymbol) -> *mut c_void {
    // SAFETY: a C string.
    let found = unsafe { loader::look_up(libc::RTLD_NEXT, symbol.name.as_ptr(), null()) };
    if found.is_null() {
        forget_error();
    }
    found
}

/// The program must not find our failure as its own.
fn forget_error() {
    // SAFETY: it takes nothing, and its result is not read.
    unsafe { libc::dlerror() };
}

/// With the version, or without one for a library that lacks it.
fn look_up(handle: *mut c_void, symbol: HipSymbol) -> *mut c_void {
    // SAFETY: a handle of the loader's and two C strings.
    unsafe {
        let found = loader::look_up(handle, symbol.name.as_ptr(), symbol.version.as_ptr());
        if !found.is_null() {
            return found;
        }
        let found = loader::look_up(handle, symbol.name.as_ptr(), null());
        if found.is_null() {
            forget_error();
        }
        found
    }
}

/// The function in a loaded file and what that depends on.
fn in_file(path: &CStr, symbol: HipSymbol) -> Option<*mut c_void> {
    // SAFETY: a C string; the flag keeps the loader from loading anything.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        forget_error();
        return None;
    }
    let found = look_up(handle, symbol);
    // SAFETY: the handle is closed once; the library stays loaded by those that have loaded it.
    unsafe { libc::dlclose(handle) };
    Some(found).filter(|found| !found.is_null())
}

fn in_scope_of(symbol: HipSymbol, caller: *const c_void) -> Option<*mut c_void> {
    in_file(&CString::new(file_of(caller)?.as_os_str().as_bytes()).ok()?, symbol)
}

/// Whether the caller's own file defines the function, so that it calls HIP's for its own callers.
fn is_defined_by(caller: *const c_void, found: *mut c_void) -> bool {
    let file = file_of(caller).filter(|file| !is_hip_library(file));
    file.is_some() && file == file_of(found)
}

fn is_of_hip(function: *mut c_void) -> bool {
    file_of(function).is_some_and(|file| is_hip_library(&file))
}

/// The first loaded HIP library: the caller has found its functions in a way that the loader does not know.
fn in_loaded_hip(symbol: HipSymbol) -> Option<*mut c_void> {
    in_file(loaded_hip().as_deref()?, symbol)
}

/// Whether a HIP library is loaded.
pub(crate) fn is_loaded() -> bool {
    loaded_hip().is_some()
}

fn loaded_hip() -> Option<CString> {
    let mut path: Option<CString> = None;
    // SAFETY: the function below is called before this one returns, with the address of `path`.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut path).cast()) };
    path
}

/// Whether a file is a HIP library, by its name.
pub(crate) fn is_hip_library(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libamdhip64"))
}

/// Keeps the path of a HIP library; a result other than zero ends the walk.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: libc::size_t, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes its structure, and the address that the walk was started with.
    let (info, path) = unsafe { (&*info, &mut *data.cast::<Option<CString>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the name of a loaded file; the loader's lock is held.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    if !is_hip_library(Path::new(OsStr::from_bytes(name.to_bytes()))) {
        return 0;
    }
    *path = Some(name.to_owned());
    1
}

/// Devices of the HIP library that a caller uses.
pub(crate) struct Devices {
    caller: *const c_void,
    own: OwnAddress,
}

/// The address of this library's function by a name; null for names that it does not define.
pub(crate) type OwnAddress = fn(&CStr) -> *const c_void;

impl Devices {
    pub(crate) fn for_caller(caller: *const c_void, own: OwnAddress) -> Self {
        Self { caller, own }
    }

    pub(crate) fn caller(&self) -> *const c_void {
        self.caller
    }

    fn find_symbol(&self, symbol: HipSymbol) -> Option<*mut c_void> {
        find_function(symbol, null_mut(), self.caller)
    }

    /// The name of the current device, as HIP itself has it.
    pub(crate) fn current(&self) -> Option<String> {
        self.name(self.call_for_number(GET_DEVICE)?)
    }

    /// The names of all devices.
    pub(crate) fn device_names(&self) -> Vec<String> {
        (0..self.call_for_number(GET_DEVICE_COUNT).unwrap_or(0)).filter_map(|device| self.name(device)).collect()
    }

    /// The number that a function of that type returns.
    fn call_for_number(&self, symbol: HipSymbol) -> Option<c_int> {
        let function = self.find_symbol(symbol)?;
        let mut number = 0;
        // SAFETY: both functions have this type: `hipError_t f(int *)`.
        let status = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> HipStatus>(function)(&raw mut number)
        };
        (status == SUCCESS).then_some(number)
    }

    fn name(&self, device: c_int) -> Option<String> {
        let (function, layout) = PROPERTIES.iter().find_map(|PropertiesQuery { symbol, layout }| {
            Some((find_function(*symbol, (self.own)(symbol.name), self.caller)?, layout))
        })?;
        // Room for the structure of a later HIP, whose fields are at its end.
        let mut properties = vec![0u64; 1024];
        // SAFETY: `hipError_t f(hipDeviceProp_t *, int)`; the memory is aligned and larger than the structure.
        let status = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut u64, c_int) -> HipStatus>(function)(
                properties.as_mut_ptr(),
                device,
            )
        };
        let bytes: Vec<u8> = properties.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let field = bytes.get(layout.offset..layout.offset + NAME_SIZE)?;
        name(field).filter(|_| status == SUCCESS).map(str::to_owned)
    }
}
