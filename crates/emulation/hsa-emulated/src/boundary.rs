//! The boundary to C: a status for every call, and no panic beyond it.
//!
//! Invariants: a function called before `hsa_init` or after the last `hsa_shut_down` returns the status for that, as in the
//! real library; one in a child of fork fails. A panic becomes the general error and one line. Pointers for results are refused where they are null.
#![allow(unsafe_code)] // results are written to the caller's pointers

use crate::message::report_message;
use crate::status::HsaStatus;
use crate::users;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a function of the interface.
pub(crate) type HsaResult = Result<(), HsaStatus>;

impl HsaStatus {
    /// The result of a function that was called by another one.
    pub(crate) fn into_answer(self) -> HsaResult {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// Visits handles until a callback returns another status than success, which is the result.
pub(crate) fn visit_all<H>(handles: impl IntoIterator<Item = H>, mut visit: impl FnMut(H) -> HsaStatus) -> HsaResult {
    handles.into_iter().try_for_each(|handle| visit(handle).into_answer())
}

/// Runs a function's body.
pub(crate) fn run_guarded(name: &'static str, body: impl FnOnce() -> HsaResult) -> HsaStatus {
    if !users::is_initialised() {
        return HsaStatus::NOT_INITIALIZED;
    }
    if users::is_forked_child() {
        return HsaStatus::ERROR;
    }
    run_unguarded(name, body)
}

/// The same for the functions that may be called at any time.
pub(crate) fn run_unguarded(name: &'static str, body: impl FnOnce() -> HsaResult) -> HsaStatus {
    or_after_panic(name, HsaStatus::ERROR, || match body() {
        Ok(()) => HsaStatus::SUCCESS,
        Err(status) => status,
    })
}

/// The value of `body`, or `instead` after a panic, which is reported.
pub(crate) fn or_after_panic<T>(name: &'static str, instead: T, body: impl FnOnce() -> T) -> T {
    // Locks that a panic has poisoned are taken all the same: every one guards a map that is whole between its steps.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let place = PLACE.take().map_or(String::new(), |place| format!(" ({place})"));
        report_message(&format!("{name}: a defect of HotSwap{place}; the call returned an error"));
        instead
    })
}

thread_local! {
    /// Message and location of the last panic of a thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records panics instead of printing them: a panic is one line. The library has a standard library of its own, so the
/// program's hook is another one.
pub(crate) fn record_panics() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload().downcast_ref::<&str>().copied();
        let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
        let cause = text.unwrap_or("no message");
        let place = info.location().map_or(String::new(), |place| format!(", {}:{}", place.file(), place.line()));
        PLACE.set(Some(format!("{cause}{place}")));
    }));
}

/// Writes a result.
///
/// # Safety
/// `to` is null, or the caller's place for a value of that type, aligned or not.
pub(crate) unsafe fn put_result<T>(to: *mut T, value: T) -> HsaResult {
    if to.is_null() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise; null was refused.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a value of an attribute, whose type the attribute fixes.
///
/// # Safety
/// As for [`put`], with room for a `T`.
pub(crate) unsafe fn put_as<T>(to: *mut std::ffi::c_void, value: T) -> HsaResult {
    // SAFETY: the caller's promise.
    unsafe { put_result(to.cast(), value) }
}

/// Writes bytes.
///
/// # Safety
/// `to` is null or has room for them.
pub(crate) unsafe fn put_bytes(to: *mut std::ffi::c_void, bytes: &[u8]) -> HsaResult {
    if to.is_null() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise; null was refused, and the regions are of different owners.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
    Ok(())
}

/// The argument, or the status of a null pointer.
pub(crate) fn not_null<T>(pointer: *const T) -> HsaResult {
    if pointer.is_null() { Err(HsaStatus::INVALID_ARGUMENT) } else { Ok(()) }
}

/// A list of the caller's.
///
/// # Safety
/// `start` has `count` elements, or is null, or the count is 0.
pub(crate) unsafe fn caller_slice<'a, T>(start: *const T, count: u32) -> Result<&'a [T], HsaStatus> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise; an empty list and null were answered above.
    Ok(unsafe { std::slice::from_raw_parts(start, count as usize) })
}

/// A C string of the caller's; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// Null, or a C string.
pub(crate) unsafe fn caller_text(start: *const std::ffi::c_char) -> Result<String, HsaStatus> {
    not_null(start)?;
    // SAFETY: the caller's promise; null was refused.
    Ok(unsafe { std::ffi::CStr::from_ptr(start) }.to_string_lossy().into_owned())
}

/// Defines exported functions that return a status. The body is a `Result<(), HsaStatus>`.
macro_rules! hsa_api {
    ($($(#[$mode:ident])? fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => { $(
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        #[allow(unused_unsafe)] // some bodies follow no pointer
        pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) -> crate::status::HsaStatus {
            // SAFETY: pointers are those that HSA's specification describes for the function of this name; the helpers of
            // `boundary` refuse null.
            crate::boundary::hsa_api!(@ $($mode)? $name (|| unsafe { $body }))
        }
    )* };
    (@ $name:ident ($body:expr)) => { crate::boundary::run_guarded(stringify!($name), $body) };
    (@ any_time $name:ident ($body:expr)) => { crate::boundary::run_unguarded(stringify!($name), $body) };
}
pub(crate) use hsa_api;
