//! Functions of other code objects: who provides imports, whether kernels have enough, and their definition for a loader.

use super::boundary::{
    SizedStruct, list_element, object_of_handle, put_handle, put_struct, put_value, release_handle, retain_handle,
    run_call, share_handle,
};
use super::process::HsaHandle;
use crate::bound_images::{BoundImages, ImportAddress};
use crate::call_error::{CallError, CallStatus};
use crate::device_image::DeviceImage;
use crate::make::MadeCode;
use hotswap_device_link::LaunchNumbers;
use std::ffi::{c_char, c_int, c_void};
use std::slice;
use std::sync::Arc;

/// The counts of a binding, `hotswap_binding_info` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct BindingInfo {
    pub struct_size: usize,
    pub imports: usize,
    pub budgets: usize,
    pub problems: usize,
    pub loadable: u32,
    pub reserved: u32,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for BindingInfo {}

/// An import and its provider, `hotswap_bound_import` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct BoundImportInfo {
    pub struct_size: usize,
    pub symbol: *const c_char,
    pub function: *const c_char,
    pub library: usize,
    pub address: u64,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for BoundImportInfo {}

/// The resources of a launch, `hotswap_launch_numbers` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct LaunchInfo {
    pub vgprs: u64,
    pub agprs: u64,
    pub sgprs: u64,
    pub scratch: u64,
    pub lds: u64,
}

/// A kernel with too few resources, `hotswap_budget` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct BudgetInfo {
    pub struct_size: usize,
    pub kernel: *const c_char,
    pub forced_by: *const c_char,
    pub has: LaunchInfo,
    pub needs: LaunchInfo,
    pub complete: u32,
    pub reserved: u32,
    pub granted: LaunchInfo,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for BudgetInfo {
    const FIRST_SIZE: usize = std::mem::offset_of!(Self, granted);
}

/// The function of HSA that defines a variable of an executable, `hotswap_hsa_define` in C.
pub type HsaDefine = Option<unsafe extern "C" fn(HsaHandle, HsaHandle, *const c_char, *mut c_void) -> c_int>;

fn launch(numbers: &LaunchNumbers) -> LaunchInfo {
    let LaunchNumbers { vgprs, agprs, sgprs, scratch, lds } = *numbers;
    LaunchInfo { vgprs, agprs, sgprs, scratch, lds }
}

/// The elements of an array of the caller.
///
/// # Safety
/// There are that many, and they live during `'a`.
unsafe fn caller_array<'a, T>(start: *const T, count: usize) -> Result<&'a [T], CallError> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(CallError::invalid_argument("an array is null, or too long"));
    }
    // SAFETY: the promise of the caller, and the checks before.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// Finds the providers of a user's imports: `hotswap_binding_check` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_check(
    user: *const DeviceImage,
    libraries: *const *const DeviceImage,
    n_libraries: usize,
    binding: *mut *mut BoundImages,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_handle(binding, || {
                let handles = caller_array(libraries, n_libraries)?;
                let libraries: Vec<Arc<DeviceImage>> =
                    handles.iter().map(|one| share_handle(*one)).collect::<Result<_, _>>()?;
                BoundImages::new(share_handle(user)?, &libraries)
            })
        })
    }
}

/// Counts one more reference of a binding: `hotswap_binding_retain` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_retain(binding: *const BoundImages) -> *mut BoundImages {
    // SAFETY: the promise of the caller.
    unsafe { retain_handle(binding) }
}

/// Gives up one reference of a binding: `hotswap_binding_free` in C.
///
/// # Safety
/// The handle is null, or not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_free(binding: *mut BoundImages) {
    // SAFETY: the promise of the caller.
    unsafe { release_handle(binding) }
}

/// Fills in the counts of a binding: `hotswap_binding_info_get` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_info_get(
    binding: *const BoundImages,
    info: *mut BindingInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let binding = object_of_handle(binding)?;
            let value = BindingInfo {
                struct_size: size_of::<BindingInfo>(),
                imports: binding.imports.len(),
                budgets: binding.budgets.len(),
                problems: binding.problems.len(),
                loadable: binding.is_loadable().into(),
                reserved: 0,
            };
            put_struct(info, value)
        })
    }
}

/// Fills in an import that a library provides: `hotswap_binding_import` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_import(
    binding: *const BoundImages,
    import: usize,
    info: *mut BoundImportInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let binding = object_of_handle(binding)?;
            let [symbol, function] = list_element(&binding.imports, import, "import")?;
            let found = &binding.binding.imports[import];
            let value = BoundImportInfo {
                struct_size: size_of::<BoundImportInfo>(),
                symbol: symbol.as_ptr(),
                function: function.as_ptr(),
                library: found.library,
                address: found.address,
            };
            put_struct(info, value)
        })
    }
}

/// Fills in a kernel with too few resources: `hotswap_binding_budget` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_budget(
    binding: *const BoundImages,
    budget: usize,
    info: *mut BudgetInfo,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let binding = object_of_handle(binding)?;
            let [kernel, forced_by] = list_element(&binding.budgets, budget, "budget")?;
            let found = &binding.binding.report.short[budget];
            let value = BudgetInfo {
                struct_size: size_of::<BudgetInfo>(),
                kernel: kernel.as_ptr(),
                forced_by: forced_by.as_ptr(),
                has: launch(&found.has),
                needs: launch(&found.needs),
                complete: (!found.is_open).into(),
                reserved: 0,
                granted: launch(&found.granted),
            };
            put_struct(info, value)
        })
    }
}

/// The message of a problem of a binding: `hotswap_binding_problem` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_problem(
    binding: *const BoundImages,
    problem: usize,
    message: *mut *const c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            put_value(message, list_element(&object_of_handle(binding)?.problems, problem, "problem")?.as_ptr())
        })
    }
}

/// Makes the user's code object with the resources that it needs: `hotswap_binding_prepare` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_prepare(
    binding: *const BoundImages,
    output: *mut *mut MadeCode,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe { run_call(error, || put_handle(output, || object_of_handle(binding)?.prepared_copy())) }
}

/// Defines the imports of an executable: `hotswap_binding_define` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call; `define` is HSA's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_binding_define(
    binding: *const BoundImages,
    define: HsaDefine,
    executable: HsaHandle,
    agent: HsaHandle,
    load_deltas: *const i64,
    n_libraries: usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let define = define.ok_or_else(|| CallError::invalid_argument("the function of HSA is null"))?;
            for ImportAddress { symbol, address } in
                object_of_handle(binding)?.import_addresses(caller_array(load_deltas, n_libraries)?)?
            {
                let status = define(executable, agent, symbol.as_ptr(), address as *mut c_void);
                if status != 0 {
                    let what = format!("HSA returned {status:#x} for {}", symbol.to_string_lossy());
                    return Err(CallError::new(CallStatus::CannotRead, what));
                }
            }
            Ok(())
        })
    }
}
