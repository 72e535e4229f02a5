//! The archive's entry points: constructor, exit handler, functions that the linker binds to us.
//!
//! All copies of the drain in a process (one in the program, one in each library) find each other by an ELF note
//! that points to a slot in each image; the first copy puts the state there, the others take it over. Symbols
//! would have to be visible outside of their image for that. The state is libc's memory and outlives its copy.
#![allow(unsafe_code)] // shared state, functions of C, each with its proof

use crate::drain::{self, HostName, Occasion, Shared};
use crate::hsa;
use crate::libc::{Untouched, dlsym, notes, pause, process_id, say, thread_id};
use crate::name::Path;
use crate::symbols::WRAPPED;
use crate::text::Text;
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Raised with every change of [`State`] or of what it holds: copies of different layouts must not meet.
const LAYOUT: u64 = 2;

/// What the copies share, and who uses it.
struct State {
    owner: AtomicUsize,
    /// HSA was up when this process was forked: its GPUs belong to the parent.
    is_inherited: AtomicBool,
    shared: Shared,
}

/// Points to the state as soon as one of the copies made it.
static SLOT: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// Our exit handler ran: what is unregistered now was drained just before.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);
/// HSA was there before us, so it goes after us.
static IS_EARLY: AtomicBool = AtomicBool::new(false);
/// The process that this image was loaded in.
static FIRST_PROCESS: AtomicUsize = AtomicUsize::new(0);

// The note: name, content (layout, distance to the slot).
global_asm!(
    ".pushsection .note.hotswap.profile,\"a\",@note",
    ".balign 4",
    ".long 8",
    ".long 16",
    ".long 1",
    ".asciz \"HotSwap\"",
    ".quad {layout}",
    "771: .quad {slot} - 771b",
    ".popsection",
    layout = const LAYOUT,
    slot = sym SLOT,
);

// What the host's profile runtime of this image has, or zero.
global_asm!(
    ".weak __llvm_profile_get_filename",
    ".hidden __llvm_profile_get_filename",
    ".weak __llvm_profile_filename",
    ".hidden __llvm_profile_filename",
    ".pushsection .data.rel.ro.hotswap_profile_host,\"aw\",@progbits",
    ".balign 8",
    ".hidden hotswap_profile_host",
    ".local hotswap_profile_host",
    "hotswap_profile_host: .quad __llvm_profile_get_filename",
    ".quad __llvm_profile_filename",
    ".popsection",
);

unsafe extern "C" {
    static hotswap_profile_host: [usize; 2];
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn pthread_atfork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> c_int;
}

/// Run by the loader when the image is there.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let _untouched = Untouched::begin();
    let is_program = find_state();
    IS_EARLY.store(hsa::is_loaded(), Ordering::Relaxed);
    FIRST_PROCESS.store(process_id() as usize, Ordering::Relaxed);
    // SAFETY: the handlers live as long as the image; libc forgets them when it is unloaded.
    unsafe {
        atexit(on_exit);
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    if is_program && !IS_EARLY.load(Ordering::Relaxed) {
        drain_before_late_libraries();
    }
}

/// Takes over the state of an earlier copy, or makes one; whether this copy is in the program itself.
fn find_state() -> bool {
    let mut found: *mut State = null_mut();
    let mut is_program = false;
    notes(b"HotSwap\0", 16, &mut |program, content| {
        // SAFETY: a note of our name and size: two words, of which only four bytes are aligned.
        let (layout, distance) =
            unsafe { (content.cast::<u64>().read_unaligned(), content.add(8).cast::<isize>().read_unaligned()) };
        if layout != LAYOUT {
            return;
        }
        let slot = content.wrapping_add(8).wrapping_offset(distance).cast::<AtomicPtr<State>>();
        is_program |= program && core::ptr::eq(slot, &raw const SLOT);
        // SAFETY: a note of this layout points to the slot of its image, which is loaded; its constructor may not
        // have run yet, then the slot holds null.
        let state = unsafe { &*slot }.load(Ordering::Acquire);
        if found.is_null() {
            found = state;
        }
    });
    if found.is_null() {
        found = make_state();
    }
    SLOT.store(found, Ordering::Release);
    is_program
}

fn make_state() -> *mut State {
    // SAFETY: calloc may be called with any size; the place is aligned for every type here.
    let place = unsafe { crate::libc::calloc(1, size_of::<State>()) }.cast::<State>();
    if !place.is_null() {
        let state = State { owner: AtomicUsize::new(0), is_inherited: AtomicBool::new(false), shared: Shared::EMPTY };
        // SAFETY: room for a state, not yet used.
        unsafe { place.write(state) };
    }
    place
}

/// Libraries that are opened later take their things down before `atexit` handlers of the program run; what
/// belongs to the main thread goes first. Only in the program: libraries could not be unloaded any more.
fn drain_before_late_libraries() {
    type Register = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, *const c_void) -> c_int;
    // SAFETY: null is RTLD_DEFAULT; glibc's function of this name has this type; null becomes `None`.
    let register: Option<Register> = unsafe { transmute(dlsym(null_mut(), c"__cxa_thread_atexit_impl".as_ptr())) };
    if let Some(register) = register {
        // SAFETY: the handler takes no argument that matters, and the last word is an address of this image.
        unsafe { register(on_thread_exit, null_mut(), (&raw const SLOT).cast()) };
    }
}

/// The state, once nobody else uses it; null where there is none, or where this thread uses it already.
fn acquire() -> *mut State {
    let state = SLOT.load(Ordering::Acquire);
    if state.is_null() {
        return null_mut();
    }
    // SAFETY: not null, so made by `make_state`, and never freed.
    let owner = unsafe { &raw const (*state).owner };
    let me = thread_id();
    for attempt in 0u32.. {
        // SAFETY: as above; `owner` is only used through shared references.
        match unsafe { &*owner }.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return state,
            Err(owner) if owner == me => return null_mut(),
            Err(_) => pause(if attempt < 100 { 0 } else { 200 }),
        }
    }
    null_mut()
}

fn release(state: *mut State) {
    // SAFETY: `acquire` gave this pointer.
    unsafe { &*(&raw const (*state).owner) }.store(0, Ordering::Release);
}

/// Runs something with the state, unless this process must leave the GPUs alone.
fn with_state<R>(run: impl FnOnce(&mut Shared) -> R) -> Option<R> {
    let _untouched = Untouched::begin();
    let state = acquire();
    if state.is_null() {
        return None;
    }
    // SAFETY: this thread is the owner, so nobody else has a reference to `shared`.
    let (inherited, shared) = unsafe { (&*(&raw const (*state).is_inherited), &mut *(&raw mut (*state).shared)) };
    let result = (!inherited.load(Ordering::Relaxed)).then(|| run(shared));
    release(state);
    result
}

fn drain_now(occasion: Occasion) -> c_int {
    if SLOT.load(Ordering::Acquire).is_null() {
        let _untouched = Untouched::begin();
        say(b"hotswap-profile-drain: warning: there is no memory: the device profiles of this process are lost\n");
        return -1;
    }
    let lost = with_state(|shared| drain::drain(shared, occasion, &host_name()));
    if lost.unwrap_or(0) == 0 { 0 } else { -1 }
}

/// What the host's profile runtime of this image knows.
fn host_name() -> HostName {
    type GetFileName = unsafe extern "C" fn() -> *mut c_char;
    // SAFETY: two words, filled in by the linker and loader, that nobody writes.
    let [get, pattern] = unsafe { (&raw const hotswap_profile_host).read_volatile() };
    let first_process = FIRST_PROCESS.load(Ordering::Relaxed) as u64;
    let mut name = HostName { first_process, ..HostName::default() };
    if pattern != 0 {
        // SAFETY: `__llvm_profile_filename` is a text with its zero that the compiler wrote.
        let text = unsafe { CStr::from_ptr(pattern as *const c_char) }.to_bytes();
        name.pattern = (!text.is_empty()).then(|| Text::new(text));
    }
    // SAFETY: the linker bound `__llvm_profile_get_filename`, a function of this type, or zero: `None`.
    if let Some(get) = unsafe { transmute::<usize, Option<GetFileName>>(get) } {
        // SAFETY: takes nothing; the result is null or a text of malloc.
        let text = unsafe { get() };
        if !text.is_null() {
            // SAFETY: not null, so a text with its zero, which is freed after it was copied.
            let path = Path::new(unsafe { CStr::from_ptr(text) }.to_bytes());
            name.file = (!path.bytes().is_empty()).then_some(path);
            // SAFETY: it came from malloc, and nobody else frees it.
            unsafe { crate::libc::free(text.cast()) };
        }
    }
    name
}

extern "C" fn on_exit() {
    drain_now(Occasion::Exit);
    IS_LEAVING.store(true, Ordering::Relaxed);
}

extern "C" fn on_thread_exit(_: *mut c_void) {
    if hsa::is_loaded() {
        drain_now(Occasion::Exit);
    }
}

/// Whether this copy took the lock for a fork.
static HOLDS: AtomicBool = AtomicBool::new(false);
/// Whether HSA was up before the fork.
static WAS_UP: AtomicBool = AtomicBool::new(false);

extern "C" fn before_fork() {
    let _untouched = Untouched::begin();
    let state = acquire();
    HOLDS.store(!state.is_null(), Ordering::Relaxed);
    WAS_UP.store(!state.is_null() && hsa::is_initialised(), Ordering::Relaxed);
}

extern "C" fn after_fork_in_parent() {
    if HOLDS.swap(false, Ordering::Relaxed) {
        release(SLOT.load(Ordering::Acquire));
    }
}

extern "C" fn after_fork_in_child() {
    if !HOLDS.swap(false, Ordering::Relaxed) {
        return;
    }
    let state = SLOT.load(Ordering::Acquire);
    // SAFETY: `before_fork` made this thread the owner, and the child has no other thread.
    let (inherited, shared) = unsafe { (&*(&raw const (*state).is_inherited), &mut *(&raw mut (*state).shared)) };
    if WAS_UP.load(Ordering::Relaxed) {
        inherited.store(true, Ordering::Relaxed);
    }
    // What the parent counted is the parent's to write.
    *shared = Shared::EMPTY;
    release(state);
}

/// Drains all code that is on the GPUs of this process now, and may be called as often as one likes. Returns 0, or
/// -1 where something was lost; a warning on standard error says what.
#[unsafe(no_mangle)]
pub extern "C" fn hotswap_profile_drain() -> c_int {
    drain_now(Occasion::Call)
}

/// LLVM's host runtime asks for the profiles of devices when it writes its own.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    drain_now(Occasion::Call)
}

/// Registrations of LLVM's host code: what HSA has loaded needs none. Arguments are not looked at.
macro_rules! registrations {
    ($($name:ident)*) => {$(
        #[doc = "Does nothing."]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )*};
}

registrations! {
    __llvm_profile_offload_register_shadow_variable
    __llvm_profile_offload_register_section_shadow_variable
    __llvm_profile_offload_register_dynamic_module
    __llvm_profile_offload_unregister_dynamic_module
}

/// Passes a call on to the function that the loader would have bound, without us in between.
fn pass_on(name: &CStr, argument: usize) -> u32 {
    type Function = unsafe extern "C" fn(usize) -> u32;
    // SAFETY: null is RTLD_DEFAULT, and our own function is hidden from it; null becomes `None`.
    let function: Option<Function> = unsafe { transmute(dlsym(null_mut(), name.as_ptr())) };
    let absent = || WRAPPED.iter().find(|(own, _)| own.as_bytes() == name.to_bytes()).map_or(0, |(_, result)| *result);
    // SAFETY: all wrapped functions take one word and return an `int` or nothing.
    function.map_or_else(absent, |function| unsafe { function(argument) })
}

fn destroy(name: &CStr, argument: usize) -> u32 {
    drain_now(Occasion::Unload);
    let result = pass_on(name, argument);
    with_state(drain::forget_destroyed);
    result
}

/// `hipError_t hipModuleUnload(hipModule_t)`
#[unsafe(no_mangle)]
pub extern "C" fn hipModuleUnload(module: usize) -> u32 {
    destroy(c"hipModuleUnload", module)
}

/// `hipError_t hipLibraryUnload(hipLibrary_t)`
#[unsafe(no_mangle)]
pub extern "C" fn hipLibraryUnload(library: usize) -> u32 {
    destroy(c"hipLibraryUnload", library)
}

/// `hsa_status_t hsa_executable_destroy(hsa_executable_t)`: the handle is one word.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_executable_destroy(executable: usize) -> u32 {
    destroy(c"hsa_executable_destroy", executable)
}

/// `hsa_status_t hsa_shut_down()`: takes no argument, and ignores the word that it gets.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_shut_down() -> u32 {
    destroy(c"hsa_shut_down", 0)
}

/// `void __hipUnregisterFatBinary(void **)`: before our exit handler where the archive is not the last input.
#[unsafe(no_mangle)]
pub extern "C" fn __hipUnregisterFatBinary(handle: usize) -> u32 {
    if IS_LEAVING.load(Ordering::Relaxed) {
        return pass_on(c"__hipUnregisterFatBinary", handle);
    }
    destroy(c"__hipUnregisterFatBinary", handle)
}
