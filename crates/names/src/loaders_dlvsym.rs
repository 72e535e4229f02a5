//! The dynamic loader's own `dlvsym`, behind the one that this library defines.
#![allow(unsafe_code)] // a function of the dynamic loader, called with a program's pointers

use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

type LookUp = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// Its address, or 0 before the first call of [`address`].
pub(crate) static LOADERS: AtomicUsize = AtomicUsize::new(0);

/// The loader's answer.
///
/// # Safety
/// A handle of the loader's and two C strings.
pub(crate) unsafe fn look_up(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    // SAFETY: the loader's function has this type, and so has `absent`; the arguments are as it expects them.
    unsafe { transmute::<usize, LookUp>(address())(handle, name, version) }
}

/// Its address.
pub(crate) fn address() -> usize {
    match LOADERS.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a question for the function after this library's, by a C string.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlvsym".as_ptr()) } as usize;
            let found = if found == 0 { absent as *const () as usize } else { found };
            LOADERS.store(found, Ordering::Relaxed);
            found
        }
        found => found,
    }
}

/// In the place of a loader's function that does not exist.
unsafe extern "C" fn absent(_: *mut c_void, _: *const c_char, _: *const c_char) -> *mut c_void {
    null_mut()
}
