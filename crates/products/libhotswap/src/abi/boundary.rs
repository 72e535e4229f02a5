//! The boundary to C: pointers are checked for null, numbers for their range, before anything is written; panics end in
//! [`call`]. An output that is not filled stays as it was. Handles are reference counts.

use crate::call_error::{CallError, CallStatus};
use crate::make::Permissions;
use hotswap_compat::RoutePermissions;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::slice;
use std::sync::Arc;

/// A larger structure is a number that was not set.
const MOST_STRUCT: usize = 4096;

/// A structure that the library fills.
///
/// # Safety
/// It is `repr(C)`, plain data, and begins with a `usize`, its size in the caller.
pub(super) unsafe trait SizedStruct: Copy {
    /// Its size in the first header that has it: later members are not written where a caller does not know them.
    const FIRST_SIZE: usize = size_of::<Self>();
}

/// Runs the body of a call. Nothing unwinds into C.
///
/// # Safety
/// `error` is null, or can be written.
pub(super) unsafe fn run_call(error: *mut *mut CallError, body: impl FnOnce() -> Result<(), CallError>) -> CallStatus {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(CallError::of_panic(&*panic)));
    let (status, made) = match result {
        Ok(()) => (CallStatus::Ok, null_mut()),
        Err(failure) if error.is_null() => (failure.status, null_mut()),
        Err(failure) => (failure.status, Box::into_raw(Box::new(failure))),
    };
    if !error.is_null() {
        // SAFETY: the promise of the caller.
        unsafe { error.write(made) };
    }
    status
}

/// The object of a handle.
///
/// # Safety
/// It is null, or a handle that is not freed during `'h`.
pub(super) unsafe fn object_of_handle<'h, T>(pointer: *const T) -> Result<&'h T, CallError> {
    // SAFETY: the promise of the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| CallError::invalid_argument("a handle is null"))
}

/// A handle that shares the object.
///
/// # Safety
/// As [`handle`]; handles are made by [`Arc::into_raw`] alone.
pub(super) unsafe fn share_handle<T>(pointer: *const T) -> Result<Arc<T>, CallError> {
    if pointer.is_null() {
        return Err(CallError::invalid_argument("a handle is null"));
    }
    // SAFETY: the handle is from `Arc::into_raw` and not freed, so there is a count to add to.
    unsafe {
        Arc::increment_strong_count(pointer);
        Ok(Arc::from_raw(pointer))
    }
}

/// The same handle, counted once more; null for null.
///
/// # Safety
/// The same conditions as for [`shared`].
pub(super) unsafe fn retain_handle<T>(pointer: *const T) -> *mut T {
    // SAFETY: the promise of the caller.
    unsafe { share_handle(pointer) }.map_or(null_mut(), |one| Arc::into_raw(one).cast_mut())
}

/// Gives a reference back.
///
/// # Safety
/// As [`shared`]; the caller does not use this reference again.
pub(super) unsafe fn release_handle<T>(pointer: *const T) {
    if !pointer.is_null() {
        // SAFETY: the promise of the caller. A panic of a destructor has nowhere to go.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Arc::from_raw(pointer) })));
    }
}

/// Makes a new handle.
///
/// # Safety
/// `out` is null, or can be written.
pub(super) unsafe fn put_handle<T>(
    out: *mut *mut T,
    make: impl FnOnce() -> Result<T, CallError>,
) -> Result<(), CallError> {
    if out.is_null() {
        return Err(CallError::invalid_argument("the pointer for the result is null"));
    }
    // SAFETY: the promise of the caller.
    unsafe { out.write(null_mut()) };
    let made = Arc::into_raw(Arc::new(make()?)).cast_mut();
    // SAFETY: the same.
    unsafe { out.write(made) };
    Ok(())
}

/// Writes one value to a pointer of the caller.
///
/// # Safety
/// `out` is null, or can be written.
pub(super) unsafe fn put_value<T>(out: *mut T, value: T) -> Result<(), CallError> {
    if out.is_null() {
        return Err(CallError::invalid_argument("the pointer for the result is null"));
    }
    // SAFETY: the promise of the caller.
    unsafe { out.write(value) };
    Ok(())
}

/// Fills a structure as far as the caller knows it; what this library does not know becomes 0.
///
/// # Safety
/// `out` is null, or a structure whose first member is its size, which can be written.
pub(super) unsafe fn put_struct<T: SizedStruct>(out: *mut T, value: T) -> Result<(), CallError> {
    const HEAD: usize = size_of::<usize>();
    if out.is_null() {
        return Err(CallError::invalid_argument("the structure for the result is null"));
    }
    // SAFETY: the structure begins with its size.
    let size = unsafe { out.cast::<usize>().read() };
    if !(T::FIRST_SIZE..=MOST_STRUCT).contains(&size) {
        let known = size_of::<T>();
        return Err(CallError::invalid_argument(format!("struct_size is {size}; this library fills {known} bytes")));
    }
    let (bytes, filled) = (out.cast::<u8>(), size.min(size_of::<T>()));
    // SAFETY: the structure has `size` bytes, of which `filled` are those of `T`; the size itself is not written.
    unsafe {
        bytes.add(HEAD).copy_from_nonoverlapping((&raw const value).cast::<u8>().add(HEAD), filled - HEAD);
        bytes.add(filled).write_bytes(0, size - filled);
    }
    Ok(())
}

/// Writes a list, or its beginning.
///
/// # Safety
/// `count` is null or can be read and written; `buffer` has room for that many elements.
pub(super) unsafe fn put_list<T: Copy>(values: &[T], buffer: *mut T, count: *mut usize) -> Result<(), CallError> {
    if count.is_null() {
        return Err(CallError::invalid_argument("the pointer for the count is null"));
    }
    // SAFETY: the promise of the caller.
    let room = unsafe { count.read() };
    if buffer.is_null() && room > 0 {
        return Err(CallError::invalid_argument("the buffer is null, and its room is not 0"));
    }
    let written = values.len().min(room);
    // SAFETY: the buffer has `room` elements. An empty one may be null.
    unsafe {
        if written > 0 {
            buffer.copy_from_nonoverlapping(values.as_ptr(), written);
        }
        count.write(values.len());
    }
    if written < values.len() {
        let what = format!("the list has {} elements, the buffer room for {room}", values.len());
        return Err(CallError::new(CallStatus::ShortBuffer, what));
    }
    Ok(())
}

/// Bytes of the caller.
///
/// # Safety
/// They can be read during `'b`.
pub(super) unsafe fn caller_bytes<'b>(start: *const c_void, size: usize) -> Result<&'b [u8], CallError> {
    if size == 0 {
        return Ok(&[]);
    }
    if start.is_null() || isize::try_from(size).is_err() {
        return Err(CallError::invalid_argument("the bytes are null, or too many"));
    }
    // SAFETY: the promise of the caller, and the checks before.
    Ok(unsafe { slice::from_raw_parts(start.cast(), size) })
}

/// A text of the caller.
///
/// # Safety
/// It is null, or ends with NUL and lives during `'t`.
pub(super) unsafe fn caller_text<'t>(start: *const c_char) -> Result<&'t str, CallError> {
    if start.is_null() {
        return Err(CallError::invalid_argument("a text is null"));
    }
    // SAFETY: the promise of the caller.
    let text = unsafe { CStr::from_ptr(start) }.to_str();
    text.map_err(|_| CallError::invalid_argument("a text is not UTF-8"))
}

/// Start and size of bytes for a caller; null without any.
///
/// # Safety
/// Both pointers are null, or can be written.
pub(super) unsafe fn put_bytes(bytes: &[u8], start: *mut *const c_void, size: *mut usize) -> Result<(), CallError> {
    if start.is_null() || size.is_null() {
        return Err(CallError::invalid_argument("the pointers for the bytes are null"));
    }
    let first = if bytes.is_empty() { null() } else { bytes.as_ptr().cast() };
    // SAFETY: the promise of the caller.
    unsafe {
        start.write(first);
        size.write(bytes.len());
    }
    Ok(())
}

/// The element of a list.
pub(super) fn list_element<'l, T>(list: &'l [T], number: usize, what: &str) -> Result<&'l T, CallError> {
    list.get(number).ok_or_else(|| CallError::invalid_argument(format!("{what} {number} of {}", list.len())))
}

/// The flag `HOTSWAP_ALLOW_EXPERIMENTAL`: pairs that a compiler's output has not confirmed.
const ALLOW_EXPERIMENTAL: u32 = 1;

/// The flag `HOTSWAP_ALLOW_NAMES`: code of libraries that choose kernels by the GPU's name.
const ALLOW_NAMES: u32 = 4;

/// The permissions of `flags` for code that is made, which may not have any other bit.
pub(super) fn permissions_of_flags(flags: u32) -> Result<Permissions, CallError> {
    let known = ALLOW_EXPERIMENTAL | ALLOW_NAMES;
    if flags & !known != 0 {
        return Err(CallError::invalid_argument(format!("flags {flags:#x} are not known")));
    }
    Ok(Permissions { allow: allow_of_flags(flags & !ALLOW_NAMES)?, unchecked_names: flags & ALLOW_NAMES != 0 })
}

/// The permissions of `flags`, which may not have any other bit.
pub(super) fn allow_of_flags(flags: u32) -> Result<RoutePermissions, CallError> {
    match flags {
        0 => Ok(RoutePermissions::default()),
        ALLOW_EXPERIMENTAL => Ok(RoutePermissions { experimental: true }),
        other => Err(CallError::invalid_argument(format!("flags {other:#x} are not known"))),
    }
}
