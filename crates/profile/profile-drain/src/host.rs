//! LLVM's profile runtime of the host in this image, as far as the link has one: its functions and its names of files.
//!
//! Invariants: a missing function is zero and is not called. Absent: its counters, which it writes itself.
#![allow(unsafe_code)] // functions of the host's runtime, each with its proof

use crate::drain;
use crate::libc::is_secure;
use crate::name::Path;
use crate::stated_names::HostName;
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int};
use core::mem::transmute;

// The host profile runtime of this image, or zero.
global_asm!(
    ".weak __llvm_profile_get_filename",
    ".hidden __llvm_profile_get_filename",
    ".weak __llvm_profile_filename",
    ".hidden __llvm_profile_filename",
    ".weak __llvm_profile_set_filename",
    ".hidden __llvm_profile_set_filename",
    ".weak __llvm_profile_write_file",
    ".hidden __llvm_profile_write_file",
    ".pushsection .data.rel.ro.hotswap_profile_host,\"aw\",@progbits",
    ".balign 8",
    ".hidden hotswap_profile_host",
    ".local hotswap_profile_host",
    "hotswap_profile_host: .quad __llvm_profile_get_filename",
    ".quad __llvm_profile_filename",
    ".quad __llvm_profile_set_filename",
    ".quad __llvm_profile_write_file",
    ".popsection",
);

unsafe extern "C" {
    static hotswap_profile_host: [usize; 4];
}

/// The host's profile runtime of this image: functions and the pattern of the command line; zero without a runtime.
fn host_functions() -> [usize; 4] {
    // SAFETY: four words, filled in by the linker and loader, that are never written.
    unsafe { (&raw const hotswap_profile_host).read_volatile() }
}

/// `%r` is ours: the host's runtime gets the name with the rank in it.
pub(crate) fn name_rank() {
    type SetFileName = unsafe extern "C" fn(*const c_char);
    let [_, pattern, set, _] = host_functions();
    // SAFETY: `__llvm_profile_filename` is a text with its zero that the compiler wrote.
    let of_command = (pattern != 0).then(|| Path::new(unsafe { CStr::from_ptr(pattern as *const c_char) }.to_bytes()));
    let Some(named) = drain::named_by_rank(of_command) else { return };
    // SAFETY: the linker bound `__llvm_profile_set_filename`, a function of this type, or zero: `None`.
    if let Some(set) = unsafe { transmute::<usize, Option<SetFileName>>(set) } {
        // SAFETY: a text with its zero, which the function copies.
        unsafe { set(named.c_string().as_ptr().cast()) };
    }
}

/// Writes the host's profile of this image.
pub(crate) extern "C" fn write_profile() {
    type WriteFile = unsafe extern "C" fn() -> c_int;
    let [.., write] = host_functions();
    // SAFETY: the linker bound `__llvm_profile_write_file`, a function of this type, or zero: `None`.
    if let Some(write) = unsafe { transmute::<usize, Option<WriteFile>>(write) } {
        // SAFETY: takes nothing, and may be called at any time.
        unsafe { write() };
    }
}

/// The names known to the host's profile runtime of this image.
pub(crate) fn known_names(first_process: u64, start: u64) -> HostName {
    type GetFileName = unsafe extern "C" fn() -> *mut c_char;
    let [get, pattern, ..] = host_functions();
    let mut name = HostName { first_process, start, ..HostName::default() };
    if pattern != 0 {
        // SAFETY: `__llvm_profile_filename` is a text with its zero that the compiler wrote.
        let text = unsafe { CStr::from_ptr(pattern as *const c_char) }.to_bytes();
        name.pattern = (!text.is_empty()).then(|| Path::new(text));
    }
    if is_secure() {
        return name; // the host's runtime trusts the user's environment
    }
    // SAFETY: the linker bound `__llvm_profile_get_filename`, a function of this type, or zero: `None`.
    if let Some(get) = unsafe { transmute::<usize, Option<GetFileName>>(get) } {
        // SAFETY: takes nothing; the result is null or a text of malloc.
        let text = unsafe { get() };
        if !text.is_null() {
            // SAFETY: not null, so a text with its zero, which is freed after it was copied.
            let path = Path::new(unsafe { CStr::from_ptr(text) }.to_bytes());
            name.file = (!path.bytes().is_empty()).then_some(path);
            // SAFETY: it came from malloc, and nothing else frees it.
            unsafe { crate::libc::free(text.cast()) };
        }
    }
    name
}
