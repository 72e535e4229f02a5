//! The archive's entry points: constructor, exit handler, functions that the linker binds to us.
//!
//! All copies of the drain in a process (one in the program, one in each library) find each other by an ELF note that
//! points to a slot in each image. The first copy stores the state there; the others adopt it. Symbols would have to be
//! visible outside of their image for that. The state is libc's memory and outlives its copy.
#![allow(unsafe_code)] // shared state, functions of C, each with its proof

use crate::drain::{self, Occasion, Shared};
use crate::ends::{self, Watched};
use crate::host;
use crate::hsa;
use crate::images::{self, AddressRange, DrainScope};
use crate::libc::{Untouched, dlsym, file_time, pause, process_id, say, thread_id};
use crate::loader::{keep_loaded, notes};
use crate::memory::List;
use crate::stack;
use crate::stated_names::{HostName, NamingImage, NamingImages, OtherImages};
use crate::symbols::WRAPPED;
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Incremented with every change of [`SharedState`] or of its contents: copies of different layouts must not meet.
const LAYOUT: u64 = 7;

/// The state that the copies share, and its current user.
struct SharedState {
    owner: AtomicUsize,
    /// The process that the state belongs to. A fork without handlers (`_Fork`, `clone`) leaves its parent's here.
    process: AtomicU64,
    /// HSA was up when this process was forked: its GPUs belong to the parent.
    is_inherited: AtomicBool,
    /// One of the copies watches the ends of the process.
    watched: Watched,
    shared: Shared,
}

/// The part of a copy that other copies see.
#[repr(C)]
struct CopySlot {
    /// Points to the state as soon as one of the copies has made it.
    state: AtomicPtr<SharedState>,
    /// HSA was loaded before this image, so it is unloaded after it: the image's own exit handler runs in time.
    is_early: AtomicBool,
    /// [`host::write_profile`] of an image that stays loaded; zero for others.
    write_host: AtomicUsize,
    /// The number of the name that this copy added to [`Shared`], plus one.
    added_name: AtomicUsize,
    host_name: fn() -> HostName,
}

static SLOT: CopySlot = CopySlot {
    state: AtomicPtr::new(null_mut()),
    is_early: AtomicBool::new(false),
    write_host: AtomicUsize::new(0),
    added_name: AtomicUsize::new(0),
    host_name,
};
/// Whether this copy is in the program itself.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);
/// Our exit handler ran.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);
/// The process that this image was loaded in.
static FIRST_PROCESS: AtomicUsize = AtomicUsize::new(0);
/// When this image was loaded.
static START: AtomicU64 = AtomicU64::new(0);

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

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn pthread_atfork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> c_int;
}

/// Run by the loader when the image has been loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    // Without memory for a stack, a state does not get any; the program's own stack is large here.
    if stack::run(set_up).is_none() {
        set_up();
    }
    // SAFETY: the handlers live as long as the image; libc forgets them when it is unloaded.
    unsafe {
        atexit(on_exit);
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    host::name_rank();
    if IS_PROGRAM.load(Ordering::Relaxed) {
        stack::keep_one();
    }
    if ends::is_requested() && stack::run(watch_ends).is_none() {
        watch_ends();
    }
    if IS_PROGRAM.load(Ordering::Relaxed) && !SLOT.is_early.load(Ordering::Relaxed) {
        drain_before_late_libraries();
    }
}

/// Ends without handlers, and snapshots. Thread and handlers are code of this image, so a library must not be unloaded.
fn watch_ends() {
    let state = SLOT.state.load(Ordering::Acquire);
    if state.is_null() {
        return;
    }
    if !IS_PROGRAM.load(Ordering::Relaxed) && !keep_loaded((&raw const SLOT) as usize) {
        return say(NOT_KEPT);
    }
    SLOT.write_host.store(host::write_profile as extern "C" fn() as usize, Ordering::Release);
    // SAFETY: not null, so made by `make_state`, and never freed.
    ends::start(unsafe { &*(&raw const (*state).watched) }, drain_at);
}

fn set_up() {
    let _untouched = Untouched::begin();
    find_state();
    SLOT.is_early.store(hsa::is_loaded(), Ordering::Relaxed);
    FIRST_PROCESS.store(process_id() as usize, Ordering::Relaxed);
    START.store(file_time(), Ordering::Relaxed);
}

/// Visits all copies of this layout: the image, its slot.
fn copies(mut visit: impl FnMut(AddressRange, bool, &CopySlot)) {
    notes(b"HotSwap\0", 16, &mut |image, content| {
        // SAFETY: a note of our name and size: two words, of which only four bytes are aligned.
        let (layout, distance) =
            unsafe { (content.cast::<u64>().read_unaligned(), content.add(8).cast::<isize>().read_unaligned()) };
        if layout == LAYOUT {
            let slot = content.wrapping_add(8).wrapping_offset(distance).cast::<CopySlot>();
            // SAFETY: a note of this layout points to the slot of its image, which is loaded; its constructor may not
            // have run yet, then the slot holds null.
            visit(AddressRange { start: image.start, end: image.end }, image.is_program, unsafe { &*slot });
        }
    });
}

/// Adopts the state of an earlier copy, or makes one.
fn find_state() {
    let mut found: *mut SharedState = null_mut();
    copies(|_, is_program, slot| {
        if is_program && core::ptr::eq(slot, &raw const SLOT) {
            IS_PROGRAM.store(true, Ordering::Relaxed);
        }
        if found.is_null() {
            found = slot.state.load(Ordering::Acquire);
        }
    });
    if found.is_null() {
        found = make_state();
    }
    SLOT.state.store(found, Ordering::Release);
}

fn make_state() -> *mut SharedState {
    // SAFETY: calloc may be called with any size; the place is aligned for every type here.
    let place = unsafe { crate::libc::calloc(1, size_of::<SharedState>()) }.cast::<SharedState>();
    if !place.is_null() {
        let (owner, process) = (AtomicUsize::new(0), AtomicU64::new(process_id()));
        let (is_inherited, watched) = (AtomicBool::new(false), Watched::new());
        let state = SharedState { owner, process, is_inherited, watched, shared: Shared::new(file_time()) };
        // SAFETY: room for a state, not yet used.
        unsafe { place.write(state) };
    }
    place
}

/// The scope of a copy when its image is unloaded. The program's copy drains everything. A library's leaves the
/// code of other copies to them, so that many libraries do not each read all code, where it is known that those
/// copies run in time.
fn own_scope() -> DrainScope {
    if IS_PROGRAM.load(Ordering::Relaxed) {
        return DrainScope::All;
    }
    let mut others = List::EMPTY;
    copies(|image, _, slot| {
        if !core::ptr::eq(slot, &raw const SLOT) && slot.is_early.load(Ordering::Relaxed) {
            others.push(image);
        }
    });
    DrainScope::Without(others)
}

/// Libraries that are opened later are torn down before `atexit` handlers of the program run; destructors of the main
/// thread run first. Only in the program: libraries could no longer be unloaded.
fn drain_before_late_libraries() {
    type ExitFunction = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, *const c_void) -> c_int;
    // SAFETY: null is RTLD_DEFAULT; glibc's function of this name has this type; null becomes `None`.
    let register: Option<ExitFunction> = unsafe { transmute(dlsym(null_mut(), c"__cxa_thread_atexit_impl".as_ptr())) };
    if let Some(register) = register {
        // SAFETY: the handler takes no argument that matters, and the last argument is an address of this image.
        unsafe { register(on_thread_exit, null_mut(), (&raw const SLOT).cast()) };
    }
}

/// Acquires the state, waiting for other threads; null where it does not exist, or this thread uses it already.
fn acquire() -> *mut SharedState {
    let state = SLOT.state.load(Ordering::Acquire);
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

fn release(state: *mut SharedState) {
    // SAFETY: `acquire` returned this pointer.
    unsafe { &*(&raw const (*state).owner) }.store(0, Ordering::Release);
}

/// Runs something with the state, unless this process must leave the GPUs alone.
fn with_state<R>(run: impl FnOnce(&mut Shared) -> R) -> Option<R> {
    let _untouched = Untouched::begin();
    if is_foreign() {
        return None;
    }
    let state = acquire();
    if state.is_null() {
        return None;
    }
    // SAFETY: this thread is the owner, so no other thread has a reference to `shared`.
    let (inherited, shared) = unsafe { (&*(&raw const (*state).is_inherited), &mut *(&raw mut (*state).shared)) };
    let result = (!inherited.load(Ordering::Relaxed)).then(|| run(shared));
    release(state);
    result
}

/// Whether the state belongs to another process: to the parent, which had no chance to record whether its GPUs were in
/// use. Nothing of it may change, since the memory may be the parent's own.
fn is_foreign() -> bool {
    let state = SLOT.state.load(Ordering::Acquire);
    // SAFETY: not null, so made by `make_state`, and never freed.
    !state.is_null() && unsafe { &*(&raw const (*state).process) }.load(Ordering::Relaxed) != process_id()
}

const NO_MEMORY: &[u8] = b"hotswap-profile-drain: warning: no memory: the device profiles of this process are lost\n";
const NOT_KEPT: &[u8] = b"hotswap-profile-drain: warning: a library could not be kept loaded: \
HOTSWAP_PROFILE_ENDS and HOTSWAP_PROFILE_EVERY have no effect on it\n";
const FOREIGN: &[u8] = b"hotswap-profile-drain: warning: this process was forked without fork handlers \
(_Fork, clone), HSA may be its parent's: device code has no profile\n";

/// The code objects that an entry drains; computed on our own stack.
#[derive(Clone, Copy)]
enum Which {
    All,
    /// The code objects of [`own_scope`].
    Own,
    /// Those of the fat binary with this handle.
    FatBinary(usize),
}

fn host_name() -> HostName {
    host::known_names(FIRST_PROCESS.load(Ordering::Relaxed) as u64, START.load(Ordering::Relaxed))
}

/// The images of other copies that have begun.
fn other_images() -> OtherImages {
    let mut ranges = List::EMPTY;
    copies(|image, _, slot| {
        if !core::ptr::eq(slot, &raw const SLOT) && !slot.state.load(Ordering::Acquire).is_null() {
            ranges.push(image); // without memory its code gets our name
        }
    });
    OtherImages { ranges, find: find_image }
}

/// Calls with the image that has the address. The loader is locked meanwhile, so that the image stays.
fn find_image(address: usize, visit: &mut dyn FnMut(NamingImage<'_>)) {
    copies(|image, _, slot| {
        if image.holds(address) && !slot.state.load(Ordering::Acquire).is_null() {
            visit(NamingImage { host: (slot.host_name)(), added: &slot.added_name });
        }
    });
}

fn drain_now(occasion: Occasion, which: Which) -> c_int {
    let drained = stack::run(|| drain_here(occasion, which));
    drained.unwrap_or_else(|| {
        static WAS_SAID: AtomicBool = AtomicBool::new(false);
        say_once(&WAS_SAID, NO_MEMORY);
        -1
    })
}

fn say_once(was_said: &AtomicBool, message: &[u8]) {
    if !was_said.swap(true, Ordering::Relaxed) {
        say(message);
    }
}

/// Runs on our own stack.
#[inline(never)]
fn drain_here(occasion: Occasion, which: Which) -> c_int {
    let _untouched = Untouched::begin();
    if SLOT.state.load(Ordering::Acquire).is_null() {
        static WAS_SAID: AtomicBool = AtomicBool::new(false);
        say_once(&WAS_SAID, NO_MEMORY);
        return -1;
    }
    if is_foreign() {
        if !matches!(occasion, Occasion::Unload | Occasion::Unregister) && hsa::is_initialised() {
            static WAS_SAID: AtomicBool = AtomicBool::new(false);
            say_once(&WAS_SAID, FOREIGN);
        }
        return 0;
    }
    let scope = match which {
        Which::All => DrainScope::All,
        Which::Own => own_scope(),
        Which::FatBinary(handle) => scope_of(handle),
    };
    let is_program = IS_PROGRAM.load(Ordering::Relaxed);
    let lost = with_state(|shared| {
        if matches!(occasion, Occasion::Exit | Occasion::Host) && shared.is_ending && !is_program {
            return 0; // the program's handler has read all
        }
        if occasion == Occasion::Snapshot && shared.is_leaving {
            return 0;
        }
        let own = NamingImage { host: host_name(), added: &SLOT.added_name };
        drain::drain(shared, occasion, &scope, NamingImages { own, others: &other_images() })
    });
    if lost.unwrap_or(0) == 0 { 0 } else { -1 }
}

/// A drain of [`ends`].
fn drain_at(is_end: bool) {
    if is_end {
        write_host_profiles();
    }
    drain_now(if is_end { Occasion::Call } else { Occasion::Snapshot }, Which::All);
}

/// The host's profiles of all images that stay: each has a runtime of its own.
fn write_host_profiles() {
    let mut functions = List::EMPTY;
    // They are called after the walk, in which the loader is locked. Without memory for one, its profile is missing.
    copies(|_, _, slot| _ = functions.push(slot.write_host.load(Ordering::Acquire)));
    for function in functions.iter() {
        // SAFETY: a copy stored the address of its `host::write_profile`, or zero: `None`; its image stays loaded.
        if let Some(write) = unsafe { transmute::<usize, Option<extern "C" fn()>>(*function) } {
            write();
        }
    }
}

/// No snapshot after this: HSA may be torn down. In a copy that may be unloaded it is not the end of the program.
fn stop_watching() {
    if !IS_PROGRAM.load(Ordering::Relaxed) && SLOT.write_host.load(Ordering::Relaxed) == 0 {
        return;
    }
    with_state(|shared| shared.is_leaving = true);
    let state = SLOT.state.load(Ordering::Acquire);
    if !state.is_null() {
        // SAFETY: not null, so made by `make_state`, and never freed.
        unsafe { &*(&raw const (*state).watched) }.leave();
    }
}

extern "C" fn on_exit() {
    stop_watching();
    drain_now(Occasion::Exit, Which::Own);
    IS_LEAVING.store(true, Ordering::Relaxed);
    if IS_PROGRAM.load(Ordering::Relaxed) {
        with_state(|shared| shared.is_ending = true);
    }
}

/// Other threads may still run, so this is not the last drain.
extern "C" fn on_thread_exit(_: *mut c_void) {
    stack::run(|| if hsa::is_loaded() { drain_here(Occasion::Exit, Which::All) } else { 0 });
}

/// Whether this copy took the lock for a fork.
static HOLDS: AtomicBool = AtomicBool::new(false);
/// Whether HSA was up before the fork.
static WAS_UP: AtomicBool = AtomicBool::new(false);

extern "C" fn before_fork() {
    let state = if is_foreign() { null_mut() } else { acquire() };
    HOLDS.store(!state.is_null(), Ordering::Relaxed);
    // Where it cannot be determined, the child leaves the GPUs alone.
    WAS_UP.store(!state.is_null() && stack::run(is_runtime_up).unwrap_or(true), Ordering::Relaxed);
}

fn is_runtime_up() -> bool {
    let _untouched = Untouched::begin();
    hsa::is_initialised()
}

extern "C" fn after_fork_in_parent() {
    if HOLDS.swap(false, Ordering::Relaxed) {
        release(SLOT.state.load(Ordering::Acquire));
    }
}

extern "C" fn after_fork_in_child() {
    if !HOLDS.swap(false, Ordering::Relaxed) {
        return;
    }
    let state = SLOT.state.load(Ordering::Acquire);
    // SAFETY: `before_fork` made this thread the owner, and the child does not have any other thread.
    let (inherited, shared) = unsafe { (&*(&raw const (*state).is_inherited), &mut *(&raw mut (*state).shared)) };
    if WAS_UP.load(Ordering::Relaxed) {
        inherited.store(true, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { &*(&raw const (*state).process) }.store(process_id(), Ordering::Relaxed);
    // The parent writes the parent's counts.
    shared.forget();
    release(state);
}

/// Drains all code that is on the GPUs of this process now, and may be called any number of times. Returns 0, or -1
/// where something was lost, with a warning on standard error.
#[unsafe(no_mangle)]
pub extern "C" fn hotswap_profile_drain() -> c_int {
    drain_now(Occasion::Call, Which::All)
}

/// LLVM's host runtime of an image requests the profiles of devices when it writes its own.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    drain_now(Occasion::Host, Which::Own)
}

/// Registrations of LLVM's host code: code loaded by HSA needs none. Arguments are ignored.
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

/// Forwards a call to the function that the loader would have bound without us.
fn pass_on(name: &CStr, argument: usize) -> u32 {
    type ThreadFunction = unsafe extern "C" fn(usize) -> u32;
    // SAFETY: null is RTLD_DEFAULT, and our own function is hidden from it; null becomes `None`.
    let function: Option<ThreadFunction> = unsafe { transmute(dlsym(null_mut(), name.as_ptr())) };
    let Some(function) = function else {
        return WRAPPED.iter().find(|row| row.name.as_bytes() == name.to_bytes()).map_or(0, |row| row.failure);
    };
    // SAFETY: all wrapped functions take one word and return an `int` or nothing.
    unsafe { function(argument) }
}

fn destroy(name: &CStr, argument: usize) -> u32 {
    drain_now(Occasion::Unload, Which::All);
    let result = pass_on(name, argument);
    forget_destroyed();
    result
}

/// Runs after the real function destroyed code objects.
#[inline(never)]
fn forget_destroyed() {
    stack::run(|| with_state(drain::forget_destroyed));
}

/// `hipError_t hipModuleUnload(hipModule_t)`: the handle is a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn hipModuleUnload(module: usize) -> u32 {
    destroy(c"hipModuleUnload", module)
}

/// `hipError_t hipLibraryUnload(hipLibrary_t)`: the handle is a pointer.
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

/// Fat binaries of this image: HIP's handle, and the address of the bundle.
struct Registered {
    is_taken: AtomicBool,
    list: UnsafeCell<List<(usize, usize)>>,
}

// SAFETY: the list is only reached through `with`, by one thread at a time.
unsafe impl Sync for Registered {}

static REGISTERED: Registered = Registered { is_taken: AtomicBool::new(false), list: UnsafeCell::new(List::EMPTY) };

impl Registered {
    fn with<R>(&self, use_it: impl FnOnce(&mut List<(usize, usize)>) -> R) -> R {
        while self.is_taken.swap(true, Ordering::Acquire) {
            pause(0);
        }
        // SAFETY: this thread set the flag, and no other thread accesses the list until it is cleared.
        let result = use_it(unsafe { &mut *self.list.get() });
        self.is_taken.store(false, Ordering::Release);
        result
    }
}

/// `void **__hipRegisterFatBinary(const void *wrapper)`: records the bundle of the handle.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterFatBinary(wrapper: *const u8) -> usize {
    type RegisterFunction = unsafe extern "C" fn(*const u8) -> usize;
    /// `HIPF` as a little-endian number.
    const MAGIC: u32 = 0x4849_5046;
    // SAFETY: null is RTLD_DEFAULT, and our own function is hidden from it; null becomes `None`.
    let register: Option<RegisterFunction> =
        unsafe { transmute(dlsym(null_mut(), c"__hipRegisterFatBinary".as_ptr())) };
    // SAFETY: the real function, with the argument that it was called with.
    let Some(handle) = register.map(|register| unsafe { register(wrapper) }) else { return 0 };
    // SAFETY: HIP has just read the same 16 bytes: magic, version, pointer to the bundle.
    let (magic, bundle) = unsafe { (wrapper.cast::<u32>().read(), wrapper.add(8).cast::<usize>().read()) };
    if magic == MAGIC {
        // Without memory the image's code objects are drained all the same.
        REGISTERED.with(|list| list.push((handle, bundle)).is_some());
    }
    handle
}

/// The code objects of a fat binary; the own scope where their addresses are unknown.
fn scope_of(handle: usize) -> DrainScope {
    let bundle = REGISTERED.with(|list| {
        let place = list.iter().position(|(own, _)| *own == handle)?;
        list.swap_remove(place)
    });
    bundle.and_then(|(_, start)| images::bundle(start)).map_or_else(own_scope, DrainScope::Only)
}

/// `void __hipUnregisterFatBinary(void **)`: before our exit handler where the archive is not the last input, else
/// after it, when destructors of global objects may have launched more.
#[unsafe(no_mangle)]
pub extern "C" fn __hipUnregisterFatBinary(handle: usize) -> u32 {
    drain_now(Occasion::Unregister, Which::FatBinary(handle));
    let result = pass_on(c"__hipUnregisterFatBinary", handle);
    if !IS_LEAVING.load(Ordering::Relaxed) {
        forget_destroyed();
    }
    result
}
