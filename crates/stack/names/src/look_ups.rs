//! `dlsym` and `dlvsym`: a question for a function of HIP gets the function of this library.
//!
//! The loader's own answer passes this library by where the question has the handle of HIP's library, or of one that needs
//! it (programs that work without HIP, too: Triton, TensorFlow, Python's ctypes), and where it has a version, because those
//! here lack one. So the questions are functions of this library: where the loader's answer is HIP's function
//! of that name, the answer is ours.
//!
//! Invariants: the loader answers every other question, for the same caller: it is entered by a jump, and `RTLD_NEXT`
//! means the libraries after the caller. A question that fails has the loader's own message. A function of ours is the
//! answer only where it calls the one that the loader has found. A question for another name than HIP's allocates nothing.
//!
//! Absent on purpose: handles of `libc.so.6` by which `dlsym` itself is asked for.
#![allow(unsafe_code)] // functions of the dynamic loader, called with a program's pointers

use crate::exports::{exported_symbol, own_address};
use crate::hip;
use crate::loader::{DLSYM, DLVSYM, find_loader_functions, look_up};
use crate::message::say_once;
use crate::scope::file_of;
use std::ffi::{CStr, c_char, c_void};
use std::panic::catch_unwind;
use std::ptr::{eq, null, null_mut};

/// Defines a function of the loader: it answers by `$answer`, which gets the caller's address after the arguments, or jumps
/// to the loader's own.
macro_rules! question {
    ($name:ident($($argument:ident: $kind:ty),*), $intel:literal, $arm:literal, $answer:path, $loaders:path) => {
        /// The function of that name, as the loader has it.
        ///
        /// # Safety
        /// As for the loader's own function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),*) -> *mut c_void {
            // Three words below the return address, so that the stack is aligned at the call.
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                ".cfi_startproc", "endbr64",
                "push rdi", ".cfi_adjust_cfa_offset 8", "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                concat!("mov ", $intel, ", [rsp + 24]"), "call {answer}", "mov rcx, rdx",
                "pop rdx", ".cfi_adjust_cfa_offset -8", "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "test rax, rax", "jne 2f", "jmp qword ptr [rip + {loaders}]", "2:", "mov rax, rcx", "ret", ".cfi_endproc",
                answer = sym $answer, loaders = sym $loaders
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-48]!", ".cfi_adjust_cfa_offset 48", ".cfi_rel_offset x29, 0", ".cfi_rel_offset x30, 8",
                "stp x0, x1, [sp, #16]", "str x2, [sp, #32]",
                concat!("mov ", $arm, ", x30"), "bl {answer}", "mov x16, x0", "mov x17, x1",
                "ldp x0, x1, [sp, #16]", "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48", ".cfi_adjust_cfa_offset -48", ".cfi_restore x29", ".cfi_restore x30",
                "cbnz x16, 2f",
                "adrp x17, {loaders}", "ldr x17, [x17, :lo12:{loaders}]", "br x17",
                "2:", "mov x0, x17", "ret", ".cfi_endproc",
                answer = sym $answer, loaders = sym $loaders
            );
        }
    };
}

question!(dlsym(handle: *mut c_void, name: *const c_char), "rdx", "x2", answer_dlsym, DLSYM);
question!(
    dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char),
    "rcx", "x3", answer_dlvsym, DLVSYM
);

/// The answer, or that the loader is to give it; in two registers.
#[repr(C)]
struct LookUpAnswer {
    is_ours: usize,
    function: *mut c_void,
}

const LOADERS: LookUpAnswer = LookUpAnswer { is_ours: 0, function: null_mut() };

/// A question of a program.
struct SymbolLookup {
    handle: *mut c_void,
    name: *const c_char,
    /// Null for one without.
    version: *const c_char,
    caller: *const c_void,
}

unsafe extern "C" fn answer_dlsym(handle: *mut c_void, name: *const c_char, caller: *const c_void) -> LookUpAnswer {
    // SAFETY: the program's arguments.
    unsafe { answer_look_up(&SymbolLookup { handle, name, version: null(), caller }) }
}

unsafe extern "C" fn answer_dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: *const c_void,
) -> LookUpAnswer {
    if version.is_null() {
        find_loader_functions();
        return LOADERS;
    }
    // SAFETY: the program's arguments.
    unsafe { answer_look_up(&SymbolLookup { handle, name, version, caller }) }
}

/// # Safety
/// Arguments as the loader expects them.
unsafe fn answer_look_up(question: &SymbolLookup) -> LookUpAnswer {
    find_loader_functions(); // the jump reads the addresses
    if question.handle == libc::RTLD_NEXT || question.name.is_null() {
        return LOADERS;
    }
    // SAFETY: the caller's C string.
    let name = unsafe { CStr::from_ptr(question.name) };
    if !name.to_bytes().starts_with(b"hip") {
        return LOADERS;
    }
    // Nothing of ours is left half done by a panic.
    catch_unwind(|| own_answer(question, name)).unwrap_or(LOADERS)
}

fn own_answer(question: &SymbolLookup, name: &CStr) -> LookUpAnswer {
    let Some(symbol) = exported_symbol(name) else { return LOADERS };
    let own = own_address(name);
    // SAFETY: the caller's arguments.
    let found = unsafe { look_up(question.handle, question.name, question.version) };
    if eq(found, own) {
        return if is_anywhere(question) { LOADERS } else { fail_look_up(question, symbol.version) };
    }
    let file = if found.is_null() { None } else { hip_library(found) };
    let Some(file) = file else { return LOADERS };
    if hip::reaches_function(found, symbol, own, question.caller) {
        return LookUpAnswer { is_ours: 1, function: own.cast_mut() };
    }
    say_once(&format!(
        "{}: a program looks functions up in this HIP library, and its calls would reach another one or none; with this one, \
         it sees the GPU's own name",
        file.display()
    ));
    LOADERS
}

/// The file of a function, if it is a HIP library.
fn hip_library(function: *mut c_void) -> Option<std::path::PathBuf> {
    file_of(function).filter(|file| hip::is_hip_library(file))
}

/// Whether there is a function of that name without ours: programs ask whether HIP is there.
fn is_anywhere(question: &SymbolLookup) -> bool {
    // SAFETY: the caller's C strings.
    hip::is_loaded() || !unsafe { look_up(libc::RTLD_NEXT, question.name, null()) }.is_null()
}

/// A question that fails, with the loader's message: no function here has a version.
fn fail_look_up(question: &SymbolLookup, version: &CStr) -> LookUpAnswer {
    // SAFETY: the caller's handle and name, and a C string.
    LookUpAnswer { is_ours: 1, function: unsafe { look_up(question.handle, question.name, version.as_ptr()) } }
}
