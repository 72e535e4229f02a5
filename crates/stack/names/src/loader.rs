//! The dynamic loader's own `dlsym` and `dlvsym`, behind the ones that this library defines.
//!
//! `dlsym` cannot be asked for by its name, because every question of this library would be one to its own function. So it
//! is taken from the symbol table of libc. From it come the functions after this library's: libc's, or those of another
//! library that defines them, too.
//!
//! Invariants: nothing is allocated and no lock of ours is taken, because allocators ask for functions when they start.
#![allow(unsafe_code)] // functions of the dynamic loader, called with a program's pointers

use crate::libc_symbols::find_libc_function;
use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// The address of the next `dlsym`, or 0 before the first call of [`prepare`].
pub(crate) static DLSYM: AtomicUsize = AtomicUsize::new(0);
/// That of the next `dlvsym`.
pub(crate) static DLVSYM: AtomicUsize = AtomicUsize::new(0);

/// The loader's answer to a question; a null version is a question without one.
///
/// # Safety
/// A handle of the loader's and C strings.
pub(crate) unsafe fn look_up(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    find_loader_functions();
    // SAFETY: the loader's functions have these types, and so have those for absent ones; the arguments are as it expects them.
    unsafe {
        if version.is_null() {
            return transmute::<usize, Dlsym>(DLSYM.load(Ordering::Relaxed))(handle, name);
        }
        transmute::<usize, Dlvsym>(DLVSYM.load(Ordering::Relaxed))(handle, name, version)
    }
}

/// Both addresses are known afterwards. Threads that come first at the same time find the same.
pub(crate) fn find_loader_functions() {
    if DLVSYM.load(Ordering::Acquire) != 0 {
        return;
    }
    let libcs = address_or_default(find_libc_function(c"dlsym"), no_dlsym as *const () as usize);
    // SAFETY: libc's function or the one above has this type; a C string. The question is for what is after this library.
    let [dlsym, dlvsym] = [c"dlsym", c"dlvsym"]
        .map(|name| unsafe { transmute::<usize, Dlsym>(libcs)(libc::RTLD_NEXT, name.as_ptr()) } as usize);
    DLSYM.store(address_or_default(dlsym, libcs), Ordering::Relaxed);
    DLVSYM.store(address_or_default(dlvsym, no_dlvsym as *const () as usize), Ordering::Release);
}

fn address_or_default(address: usize, absent: usize) -> usize {
    if address == 0 { absent } else { address }
}

/// In the place of a loader's function that does not exist.
unsafe extern "C" fn no_dlsym(_: *mut c_void, _: *const c_char) -> *mut c_void {
    null_mut()
}

/// In the place of a loader's function that does not exist.
unsafe extern "C" fn no_dlvsym(_: *mut c_void, _: *const c_char, _: *const c_char) -> *mut c_void {
    null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn the_loader_answers() {
        // SAFETY: C strings, and the handle for the default order.
        let ask = |name: &CStr, version: *const c_char| unsafe { look_up(libc::RTLD_DEFAULT, name.as_ptr(), version) };
        assert_eq!(ask(c"qsort", std::ptr::null()), libc::qsort as *mut c_void);
        assert!(ask(c"no_such_function", std::ptr::null()).is_null());
        assert!(ask(c"qsort", c"GLIBC_99".as_ptr()).is_null());
    }
}
