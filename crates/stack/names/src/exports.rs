//! The functions by which programs call HIP.
//!
//! Each exported function passes its return address to a function in Rust, which no Rust function can read itself. That one
//! calls HIP's own, and does its own part where a panic ends in the result of HIP alone.
//!
//! A function without a version serves every version that a program asks for.
#![allow(unsafe_code)] // the functions of HIP's interface, called with a program's pointers

use crate::hip::{self, Devices, HipStatus, HipSymbol, NO_SYMBOL, SUCCESS};
use crate::loads::{self, LoadScope};
use crate::properties::{self, NAME_SIZE, PropertiesLayout, R0000, R0600};
use crate::scope::names_for;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

type HipPointer = *mut c_void;
type Caller = *const c_void;

/// Defines an exported function that adds its return address to its arguments, in that register.
macro_rules! export {
    ($name:ident($($argument:ident: $kind:ty),*), $intel:literal, $arm:literal, $target:path) => {
        /// HIP's function of that name.
        ///
        /// # Safety
        /// As for HIP's own function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($argument: $kind),*) -> HipStatus {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!("endbr64", concat!("mov ", $intel, ", [rsp]"), "jmp {}", sym $target);
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym $target);
        }
    };
}

/// As `export!`, for eight arguments: the return address becomes the ninth, on the stack.
macro_rules! export_of_eight {
    ($name:ident, $target:path) => {
        /// HIP's function of that name.
        ///
        /// # Safety
        /// As for HIP's own function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name(
            library: HipPointer, source: HipPointer, jit: HipPointer, jit_values: HipPointer, jit_count: c_uint,
            options: HipPointer, values: HipPointer, count: c_uint,
        ) -> HipStatus {
            // The two arguments that are on the stack are copied below the third; the stack is aligned at the call.
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                ".cfi_startproc", "endbr64",
                "push qword ptr [rsp]", ".cfi_adjust_cfa_offset 8",
                "push qword ptr [rsp + 24]", ".cfi_adjust_cfa_offset 8",
                "push qword ptr [rsp + 24]", ".cfi_adjust_cfa_offset 8",
                "call {}", "add rsp, 24", ".cfi_adjust_cfa_offset -24", "ret", ".cfi_endproc", sym $target
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                ".cfi_startproc", "sub sp, sp, #32", ".cfi_adjust_cfa_offset 32", "str x30, [sp, #16]", ".cfi_rel_offset x30, 16",
                "str x30, [sp]", "bl {}", "ldr x30, [sp, #16]", ".cfi_restore x30", "add sp, sp, #32",
                ".cfi_adjust_cfa_offset -32", "ret", ".cfi_endproc", sym $target
            );
        }
    };
}

export!(hipGetDevicePropertiesR0600(properties: *mut u8, device: c_int), "rdx", "x2", properties_r0600);
export!(hipGetDevicePropertiesR0000(properties: *mut u8, device: c_int), "rdx", "x2", properties_r0000);
export!(hipGetDeviceProperties(properties: *mut u8, device: c_int), "rdx", "x2", properties_unversioned);
export!(hipModuleLoad(module: HipPointer, path: *const c_char), "rdx", "x2", module_load);
export!(hipModuleLoadData(module: HipPointer, image: *const c_void), "rdx", "x2", module_load_data);
export!(hipModuleLoadFatBinary(module: HipPointer, image: *const c_void), "rdx", "x2", module_load_fat_binary);
export!(
    hipModuleLoadDataEx(module: HipPointer, image: *const c_void, count: c_uint, options: HipPointer, values: HipPointer),
    "r9", "x5", module_load_data_ex
);
export!(
    hipGetProcAddress(name: *const c_char, function: *mut HipPointer, version: c_int, flags: u64, status: HipPointer),
    "r9", "x5", get_proc_address
);
export_of_eight!(hipLibraryLoadData, library_load_data);
export_of_eight!(hipLibraryLoadFromFile, library_load_from_file);

/// A function of this library and the version of HIP's.
struct HipExport {
    symbol: HipSymbol,
    address: fn() -> Caller,
}

const fn export(name: &'static CStr, version: &'static CStr, address: fn() -> Caller) -> HipExport {
    HipExport { symbol: HipSymbol { name, version }, address }
}

/// The functions, in the order of the constants below, with the versions of HIP 7.2's library.
static EXPORTS: [HipExport; 10] = [
    export(c"hipGetDevicePropertiesR0600", c"hip_6.0", || hipGetDevicePropertiesR0600 as Caller),
    export(c"hipGetDevicePropertiesR0000", c"hip_4.2", || hipGetDevicePropertiesR0000 as Caller),
    export(c"hipGetDeviceProperties", c"hip_4.2", || hipGetDeviceProperties as Caller),
    export(c"hipModuleLoad", c"hip_4.2", || hipModuleLoad as Caller),
    export(c"hipModuleLoadData", c"hip_4.2", || hipModuleLoadData as Caller),
    export(c"hipModuleLoadFatBinary", c"hip_7.1", || hipModuleLoadFatBinary as Caller),
    export(c"hipModuleLoadDataEx", c"hip_4.2", || hipModuleLoadDataEx as Caller),
    export(c"hipGetProcAddress", c"hip_6.1", || hipGetProcAddress as Caller),
    export(c"hipLibraryLoadData", c"hip_7.2", || hipLibraryLoadData as Caller),
    export(c"hipLibraryLoadFromFile", c"hip_7.2", || hipLibraryLoadFromFile as Caller),
];
const PROPERTIES_R0600: usize = 0;
const PROPERTIES_R0000: usize = 1;
const PROPERTIES: usize = 2;
const MODULE_LOAD: usize = 3;
const MODULE_LOAD_DATA: usize = 4;
const MODULE_LOAD_FAT_BINARY: usize = 5;
const MODULE_LOAD_DATA_EX: usize = 6;
const GET_PROC_ADDRESS: usize = 7;
const LIBRARY_LOAD_DATA: usize = 8;
const LIBRARY_LOAD_FROM_FILE: usize = 9;

/// The devices of HIP as the caller sees it.
fn visible_devices(caller: Caller) -> Devices {
    Devices::for_caller(caller, own_address)
}

/// The address of this library's function by that name; null for others.
pub(crate) fn own_address(name: &CStr) -> *const c_void {
    EXPORTS.iter().find(|export| export.symbol.name == name).map_or(null(), |export| (export.address)())
}

/// HIP's function by that name, where this library defines it, too.
pub(crate) fn exported_symbol(name: &CStr) -> Option<HipSymbol> {
    EXPORTS.iter().map(|export| export.symbol).find(|symbol| symbol.name == name)
}

/// The functions that this library defines before HIP's, with the versions that they have in HIP's library.
pub fn exported_functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXPORTS.iter().map(|export| (symbol_text(export.symbol.name), symbol_text(export.symbol.version)))
}

fn symbol_text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

/// HIP's own function for the caller.
fn find_hip_function(number: usize, caller: Caller) -> Option<HipPointer> {
    let export = &EXPORTS[number];
    catch_panic(|| hip::find_function(export.symbol, (export.address)(), caller))
}

/// The result of our own part; `None` where it panicked.
fn catch_panic<T>(part: impl FnOnce() -> Option<T>) -> Option<T> {
    // A part that has panicked leaves nothing to use: it returns a value, and its maps are whole between their steps.
    catch_unwind(AssertUnwindSafe(part)).unwrap_or(None)
}

type Properties = unsafe extern "C" fn(*mut u8, c_int) -> HipStatus;
type ModuleLoadFn = unsafe extern "C" fn(HipPointer, *const c_void) -> HipStatus;
type LoadEx = unsafe extern "C" fn(HipPointer, *const c_void, c_uint, HipPointer, HipPointer) -> HipStatus;
type LoadLibrary = unsafe extern "C" fn(
    HipPointer,
    *const c_void,
    HipPointer,
    HipPointer,
    c_uint,
    HipPointer,
    HipPointer,
    c_uint,
) -> HipStatus;
type GetAddress = unsafe extern "C" fn(*const c_char, *mut HipPointer, c_int, u64, HipPointer) -> HipStatus;

extern "C" fn properties_r0600(properties: *mut u8, device: c_int, caller: Caller) -> HipStatus {
    query_properties(PROPERTIES_R0600, R0600, properties, device, caller)
}

extern "C" fn properties_r0000(properties: *mut u8, device: c_int, caller: Caller) -> HipStatus {
    query_properties(PROPERTIES_R0000, R0000, properties, device, caller)
}

extern "C" fn properties_unversioned(properties: *mut u8, device: c_int, caller: Caller) -> HipStatus {
    query_properties(PROPERTIES, R0000, properties, device, caller)
}

fn query_properties(
    number: usize,
    layout: PropertiesLayout,
    properties: *mut u8,
    device: c_int,
    caller: Caller,
) -> HipStatus {
    let Some(function) = find_hip_function(number, caller) else { return NO_SYMBOL };
    // SAFETY: HIP's function of that name has this type, and the arguments are the caller's.
    let status = unsafe { transmute::<HipPointer, Properties>(function)(properties, device) };
    if status == SUCCESS && !properties.is_null() {
        catch_panic(|| {
            let names = names_for(caller)?;
            // SAFETY: HIP has just filled the structure of this layout, which is the caller's.
            let field = unsafe { std::slice::from_raw_parts_mut(properties.add(layout.offset), NAME_SIZE) };
            properties::show_name(field, &names);
            Some(())
        });
    }
    status
}

extern "C" fn module_load(module: HipPointer, path: *const c_char, caller: Caller) -> HipStatus {
    // SAFETY: a path, as HIP expects it.
    let made = catch_panic(|| unsafe { loads::for_file(path, LoadScope::Current, &visible_devices(caller)) });
    if let (Some(image), Some(function)) = (made, find_hip_function(MODULE_LOAD_DATA, caller)) {
        // SAFETY: the type of HIP's function; the image is whole and stays.
        return unsafe { transmute::<HipPointer, ModuleLoadFn>(function)(module, image) };
    }
    load_module(MODULE_LOAD, module, path.cast(), caller)
}

extern "C" fn module_load_data(module: HipPointer, image: *const c_void, caller: Caller) -> HipStatus {
    load_module(MODULE_LOAD_DATA, module, relabelled_image(image, LoadScope::Current, caller), caller)
}

extern "C" fn module_load_fat_binary(module: HipPointer, image: *const c_void, caller: Caller) -> HipStatus {
    load_module(MODULE_LOAD_FAT_BINARY, module, relabelled_image(image, LoadScope::Current, caller), caller)
}

extern "C" fn module_load_data_ex(
    module: HipPointer,
    image: *const c_void,
    count: c_uint,
    options: HipPointer,
    values: HipPointer,
    caller: Caller,
) -> HipStatus {
    let Some(function) = find_hip_function(MODULE_LOAD_DATA_EX, caller) else { return NO_SYMBOL };
    let image = relabelled_image(image, LoadScope::Current, caller);
    // SAFETY: the type of HIP's function; the arguments are the caller's, or an image that is whole and stays.
    unsafe { transmute::<HipPointer, LoadEx>(function)(module, image, count, options, values) }
}

fn load_module(number: usize, module: HipPointer, source: *const c_void, caller: Caller) -> HipStatus {
    let Some(function) = find_hip_function(number, caller) else { return NO_SYMBOL };
    // SAFETY: HIP's functions of these names have this type; the arguments are the caller's, or an image that is whole
    // and stays.
    unsafe { transmute::<HipPointer, ModuleLoadFn>(function)(module, source) }
}

/// The image to load in the place of the program's.
fn relabelled_image(image: *const c_void, scope: LoadScope, caller: Caller) -> *const c_void {
    // SAFETY: an image that the program passes to HIP.
    catch_panic(|| unsafe { loads::for_image(image, scope, &visible_devices(caller)) }).unwrap_or(image)
}

extern "C" fn library_load_data(
    library: HipPointer,
    image: *const c_void,
    jit: HipPointer,
    jit_values: HipPointer,
    jit_count: c_uint,
    options: HipPointer,
    values: HipPointer,
    count: c_uint,
    caller: Caller,
) -> HipStatus {
    let Some(function) = find_hip_function(LIBRARY_LOAD_DATA, caller) else { return NO_SYMBOL };
    let image = relabelled_image(image, LoadScope::All, caller);
    // SAFETY: as for modules.
    unsafe {
        transmute::<HipPointer, LoadLibrary>(function)(
            library, image, jit, jit_values, jit_count, options, values, count,
        )
    }
}

extern "C" fn library_load_from_file(
    library: HipPointer,
    path: *const c_char,
    jit: HipPointer,
    jit_values: HipPointer,
    jit_count: c_uint,
    options: HipPointer,
    values: HipPointer,
    count: c_uint,
    caller: Caller,
) -> HipStatus {
    // SAFETY: a path, as HIP expects it.
    let made = catch_panic(|| unsafe { loads::for_file(path, LoadScope::All, &visible_devices(caller)) });
    let (number, source) = made.map_or((LIBRARY_LOAD_FROM_FILE, path.cast()), |image| (LIBRARY_LOAD_DATA, image));
    let Some(function) = find_hip_function(number, caller) else { return NO_SYMBOL };
    // SAFETY: as for modules; both functions have this type.
    unsafe {
        transmute::<HipPointer, LoadLibrary>(function)(
            library, source, jit, jit_values, jit_count, options, values, count,
        )
    }
}

/// A program that asks HIP for a function that is defined here gets this one.
extern "C" fn get_proc_address(
    name: *const c_char,
    function: *mut HipPointer,
    version: c_int,
    flags: u64,
    status: HipPointer,
    caller: Caller,
) -> HipStatus {
    let Some(real) = find_hip_function(GET_PROC_ADDRESS, caller) else { return NO_SYMBOL };
    // SAFETY: the type of HIP's function; the arguments are the caller's.
    let result = unsafe { transmute::<HipPointer, GetAddress>(real)(name, function, version, flags, status) };
    if result == SUCCESS && !function.is_null() && !name.is_null() {
        catch_panic(|| {
            // SAFETY: HIP has just read the name and written the function.
            let (asked, found) = unsafe { (CStr::from_ptr(name), &mut *function) };
            *found = own_for(asked, version)?.cast_mut();
            Some(())
        });
    }
    result
}

/// The function for a name without a suffix and a version of HIP, which selects among those with one.
fn own_for(name: &CStr, version: c_int) -> Option<*const c_void> {
    let number = match name.to_bytes() {
        b"hipGetDeviceProperties" if version >= 600 => PROPERTIES_R0600,
        b"hipGetDeviceProperties" => PROPERTIES,
        _ => EXPORTS.iter().position(|export| export.symbol.name == name)?,
    };
    Some((EXPORTS[number].address)())
}
