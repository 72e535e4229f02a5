//! `dlvsym`: a question for a function of HIP with its version gets the function of this library.
//!
//! The loader's own answer passes this library by, because `dlvsym` takes functions with exactly that version, and those
//! here have none. So the question itself is a function of this library: where the loader's answer is HIP's function of
//! that name, the answer is ours.
//!
//! Invariants: the loader answers every other question, for the same caller: it is entered by a jump, and `RTLD_NEXT`
//! means the libraries after the caller. A question that fails has the loader's own message.
//!
//! Absent on purpose: `dlsym`, which finds functions without a version by itself, except with the handle of HIP's library.
#![allow(unsafe_code)] // a function of the dynamic loader, called with a program's pointers

use crate::exports::own_address;
use crate::loaders_dlvsym::{LOADERS, address, look_up};
use crate::scope::file_of;
use std::ffi::{CStr, c_char, c_void};
use std::panic::catch_unwind;
use std::ptr::null_mut;

/// As the loader's.
///
/// # Safety
/// As the loader's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    // Three words below the return address, so that the stack is aligned at the call.
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        ".cfi_startproc", "endbr64",
        "push rdi", ".cfi_adjust_cfa_offset 8", "push rsi", ".cfi_adjust_cfa_offset 8", "push rdx", ".cfi_adjust_cfa_offset 8",
        "call {answer}",
        "pop rdx", ".cfi_adjust_cfa_offset -8", "pop rsi", ".cfi_adjust_cfa_offset -8", "pop rdi", ".cfi_adjust_cfa_offset -8",
        "test rax, rax", "jne 2f", "jmp qword ptr [rip + {loaders}]", "2:", "ret", ".cfi_endproc",
        answer = sym answer, loaders = sym LOADERS
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-48]!", ".cfi_adjust_cfa_offset 48", ".cfi_rel_offset x29, 0", ".cfi_rel_offset x30, 8",
        "stp x0, x1, [sp, #16]", "str x2, [sp, #32]",
        "bl {answer}", "mov x16, x0",
        "ldp x0, x1, [sp, #16]", "ldr x2, [sp, #32]",
        "ldp x29, x30, [sp], #48", ".cfi_adjust_cfa_offset -48", ".cfi_restore x29", ".cfi_restore x30",
        "cbnz x16, 2f",
        "adrp x17, {loaders}", "ldr x17, [x17, :lo12:{loaders}]", "br x17",
        "2:", "mov x0, x16", "ret", ".cfi_endproc",
        answer = sym answer, loaders = sym LOADERS
    );
}

/// The function of this library that answers the question; null where the loader is to answer.
unsafe extern "C" fn answer(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    let _ = address(); // the jump reads it
    if handle == libc::RTLD_NEXT || name.is_null() || version.is_null() {
        return null_mut();
    }
    let found = catch_unwind(|| {
        // SAFETY: the caller's C string, as the loader expects it.
        let own = own_address(unsafe { CStr::from_ptr(name) });
        // SAFETY: the caller's arguments.
        let is_hips = !own.is_null() && is_of_hip(unsafe { look_up(handle, name, version) });
        if is_hips { own.cast_mut() } else { null_mut() }
    });
    // Nothing of ours is left half done by a panic.
    found.unwrap_or(null_mut())
}

/// Whether a function is one of a HIP library's.
fn is_of_hip(function: *mut c_void) -> bool {
    let file = if function.is_null() { None } else { file_of(function) };
    let name = file.as_deref().and_then(|file| file.file_name());
    name.is_some_and(|name| name.to_string_lossy().starts_with("libamdhip64"))
}
