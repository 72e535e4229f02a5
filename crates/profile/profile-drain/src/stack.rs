//! A stack of the drain's own.
//!
//! A program may end in a thread with 16 KiB of stack, or in a signal handler on an alternate stack of that size, and
//! neither the paths of files nor the functions of HSA and HIP that a drain calls fit there. So each entry of the drain
//! maps a stack and works on it. The caller's stack holds the caller's registers and little more. An exit has three or
//! four drains, and faults of new pages were a fifth of its time: a program keeps one stack for the next drain. A library
//! does not, since it may be unloaded.
//!
//! Invariants: nothing of the drain remains on the new stack when [`run`] returns; a thread that is on its alternate
//! signal stack cannot get a second handler on top of the first one's frames.
#![allow(unsafe_code)] // the stack pointer, mappings and signals, each with its proof

use crate::libc::SignalSet;
use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Signals without an alternate stack run here, too, and HSA's functions need tens of KiB. Only pages that
/// are used cost memory.
const SIZE: usize = 1 << 20;
/// The lowest page faults instead of running into other memory.
const GUARD: usize = 64 << 10;

const PROT_NONE: c_int = 0;
const PROT_READ_WRITE: c_int = 3;
/// MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_STACK.
const PRIVATE: c_int = 0x2_4022;
const SS_ONSTACK: c_int = 1;
const SS_DISABLE: c_int = 2;
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;

/// `stack_t`, an alternate stack for signals.
#[repr(C)]
#[derive(Clone, Copy)]
struct SignalStack {
    start: *mut c_void,
    flags: c_int,
    size: usize,
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
    fn mmap(at: *mut c_void, size: usize, rights: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
    fn mprotect(at: *mut c_void, size: usize, rights: c_int) -> c_int;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> c_int;
    fn sigfillset(set: *mut SignalSet) -> c_int;
}

/// The stack of an earlier drain; null while a drain has it.
static SPARE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Whether this image is never unloaded.
static IS_LASTING: AtomicBool = AtomicBool::new(false);

/// From now on the stack of a drain is kept for the next one.
pub fn keep_one() {
    IS_LASTING.store(true, Ordering::Relaxed);
}

/// Memory for a stack. When dropped it is unmapped, or kept.
struct Stack(*mut c_void);

impl Stack {
    fn take() -> Option<Self> {
        // One that waits is in use nowhere: a drain of another thread, or of a handler above this one, took its own.
        let spare = SPARE.swap(null_mut(), Ordering::Acquire);
        if spare.is_null() { Self::map() } else { Some(Self(spare)) }
    }

    fn map() -> Option<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap(null_mut(), SIZE, PROT_READ_WRITE, PRIVATE, -1, 0) };
        if start as isize == -1 {
            return None;
        }
        // SAFETY: the first bytes of our own mapping, which nothing uses. Without the guard it is a stack all the same.
        unsafe { mprotect(start, GUARD, PROT_NONE) };
        Some(Self(start))
    }

    fn top(&self) -> *mut c_void {
        self.0.wrapping_byte_add(SIZE)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let kept = IS_LASTING.load(Ordering::Relaxed)
            && SPARE.compare_exchange(null_mut(), self.0, Ordering::Release, Ordering::Relaxed).is_ok();
        if !kept {
            // SAFETY: our own mapping, the thread has left it, and it is not in `SPARE`.
            unsafe { munmap(self.0, SIZE) };
        }
    }
}

/// The alternate stack of a thread that is on it now. While the thread is elsewhere, the kernel would begin the next
/// handler at the top of it, over the frames of the first one; so it is disabled meanwhile.
struct Alternate {
    stack: SignalStack,
    mask: SignalSet,
}

impl Alternate {
    /// `None` where the thread is not on it. Otherwise no signal arrives until [`Alternate::leave`].
    fn of_this_thread() -> Option<Self> {
        let mut made = Self { stack: SignalStack { start: null_mut(), flags: 0, size: 0 }, mask: [0; 16] };
        // SAFETY: without a new one the call only reads.
        let is_known = unsafe { sigaltstack(core::ptr::null(), &mut made.stack) } == 0;
        if !is_known || made.stack.flags & SS_ONSTACK == 0 {
            return None;
        }
        block(&mut made.mask);
        Some(made)
    }

    /// Runs on the new stack.
    fn leave(&self) {
        // SAFETY: disables it; the thread is not on it. The mask is the one that was read.
        unsafe {
            sigaltstack(&SignalStack { start: null_mut(), flags: SS_DISABLE, size: 0 }, null_mut());
            pthread_sigmask(SIG_SETMASK, &self.mask, null_mut());
        }
    }

    /// Runs before the thread returns to it.
    fn come_back(&self) {
        block(&mut [0; 16]);
        let stack = SignalStack { flags: self.stack.flags & !SS_ONSTACK, ..self.stack };
        // SAFETY: the stack that the kernel itself reported.
        unsafe { sigaltstack(&stack, null_mut()) };
    }

    /// Runs after the return to it.
    fn unblock(&self) {
        // SAFETY: the mask is the one that was read.
        unsafe { pthread_sigmask(SIG_SETMASK, &self.mask, null_mut()) };
    }
}

fn block(old: &mut SignalSet) {
    let mut all = [0; 16];
    // SAFETY: sets of libc's size.
    unsafe {
        sigfillset(&mut all);
        pthread_sigmask(SIG_BLOCK, &all, old);
    }
}

/// Work to run on the new stack, and its result.
struct StackTask<'a, W, R> {
    work: ManuallyDrop<W>,
    result: Option<R>,
    alternate: Option<&'a Alternate>,
}

extern "C" fn perform<W: FnOnce() -> R, R>(task: *mut c_void) {
    // SAFETY: `run` passes its own task, which nothing else uses meanwhile.
    let task = unsafe { &mut *task.cast::<StackTask<'_, W, R>>() };
    if let Some(alternate) = task.alternate {
        alternate.leave();
    }
    // SAFETY: taken once, since `run` calls this once, and never dropped there.
    let work = unsafe { ManuallyDrop::take(&mut task.work) };
    task.result = Some(work());
    if let Some(alternate) = task.alternate {
        alternate.come_back();
    }
}

/// Runs the work on a stack of its own; `None`, with nothing done, without memory. Preserves `errno`.
pub fn run<W: FnOnce() -> R, R>(work: W) -> Option<R> {
    // SAFETY: libc returns a place that is valid in this thread, on any stack.
    let errno = unsafe { *__errno_location() };
    let result = Stack::take().and_then(|stack| {
        let alternate = Alternate::of_this_thread();
        let mut task = StackTask { work: ManuallyDrop::new(work), result: None, alternate: alternate.as_ref() };
        // SAFETY: the top is aligned to pages and has a megabyte below it; the task lives until the call returns.
        unsafe { call_on(stack.top(), perform::<W, R>, (&raw mut task).cast()) };
        if let Some(alternate) = &alternate {
            alternate.unblock();
        }
        task.result
    });
    // SAFETY: as above.
    unsafe { *__errno_location() = errno };
    result
}

/// Calls a function with another stack pointer.
///
/// # Safety
/// `top` is the end of free memory for a stack, aligned to 16 bytes; the function may be called with the argument.
unsafe fn call_on(top: *mut c_void, function: extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: the register with the old stack pointer survives the call by the ABI, and the pointer is restored when
    // the block ends.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "xchg rsp, r12",
            "call {function}",
            "mov rsp, r12",
            function = in(reg) function,
            inout("r12") top => _,
            in("rdi") argument,
            clobber_abi("C"),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mov x21, sp",
            "mov sp, x20",
            "blr {function}",
            "mov sp, x21",
            function = in(reg) function,
            inout("x20") top => _,
            out("x21") _,
            in("x0") argument,
            clobber_abi("C"),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = top;
        function(argument);
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use std::hint::black_box;

    #[test]
    fn work_runs_elsewhere_and_comes_back_with_its_result() {
        let here = black_box(0u8);
        let address = |place: &u8| core::ptr::from_ref(place) as usize;
        let text = String::from("owned");
        let (elsewhere, length) = run(move || {
            let there = black_box([7u8; 100_000]);
            (address(&there[0]), text.len())
        })
        .expect("there is memory");
        assert!(elsewhere.abs_diff(address(&here)) > 1 << 20, "{elsewhere:x}");
        assert_eq!(length, 5);
    }

    #[test]
    fn a_kept_stack_serves_one_at_a_time() {
        super::keep_one();
        let place = || run(|| core::ptr::from_ref(&black_box(0u8)) as usize);
        let first = place();
        assert!(first.is_some() && place() == first);
        let both = run(|| (core::ptr::from_ref(&black_box(0u8)) as usize, place()));
        assert!(both.is_some_and(|(outer, inner)| inner.is_some_and(|inner| inner.abs_diff(outer) >= super::SIZE / 2)));
    }

    #[test]
    fn work_within_work_has_its_own_stack() {
        assert_eq!(run(|| run(|| black_box([1u8; 100_000]).len())), Some(Some(100_000)));
    }
}
