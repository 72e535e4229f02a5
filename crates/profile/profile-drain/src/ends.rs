//! Ends of a program that run no exit handler, and snapshots: on request of the environment only.
//!
//! | variable | effect |
//! | --- | --- |
//! | `HOTSWAP_PROFILE_ENDS` | words separated by commas: `quick_exit`, and signals (`SIGTERM`, `SIGABRT`, …) |
//! | `HOTSWAP_PROFILE_EVERY` | seconds between snapshots of the devices' counters |
//!
//! A signal handler may not call HSA, so a thread of our own drains while the handler waits, for a limited time: the
//! interrupted thread may hold a lock that the drain needs. Then the signal does what it does by default.
//!
//! Invariants: without these variables neither thread nor handler exists. Signals that program or parent handles or
//! ignores are left alone. A forked child lacks a thread of ours, and its signals end it at once. Of the copies in a
//! process, the first one has thread and handlers; its image stays loaded.
//!
//! Absent: the host's counters in snapshots, because its runtime would add them to a merged file (`%m`) once more each
//! time.
#![allow(unsafe_code)] // threads and signals of libc, each with its proof
#![cfg_attr(not(hotswap_archive), allow(dead_code))] // the library is for tests

use crate::bytes::until_zero;
use crate::libc::{SignalSet, dlsym, pause, process_id, say, send_signal, thread_id, variable};
use crate::name::Path;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

/// Drains everything: with the host's profile, at an end, or the devices alone, for a snapshot.
pub(crate) type Drain = fn(is_end: bool);

/// The bit of `quick_exit`, which no signal has.
const QUICK_EXIT: u32 = 1;
/// Ends by name: signals with their numbers on Linux (x86-64, AArch64). Arrays, because each pointer
/// would be a relocation.
const ENDS: [NamedEnd; 6] = [
    NamedEnd { name: *b"quick_exit", signal: 0 },
    NamedEnd { name: *b"SIGHUP\0\0\0\0", signal: 1 },
    NamedEnd { name: *b"SIGINT\0\0\0\0", signal: 2 },
    NamedEnd { name: *b"SIGQUIT\0\0\0", signal: 3 },
    NamedEnd { name: *b"SIGABRT\0\0\0", signal: 6 },
    NamedEnd { name: *b"SIGTERM\0\0\0", signal: 15 },
];

/// An end of the process that a user can name.
struct NamedEnd {
    name: [u8; 10],
    /// The signal, which is also the number of its bit; 0 for `quick_exit`.
    signal: u8,
}

/// A handler waits no longer for the thread, in milliseconds.
const LIMIT: u32 = 10_000;
/// The thread looks for a signal this often, in milliseconds.
const STEP: u32 = 20;

const SIG_SETMASK: c_int = 2;

type Handler = extern "C" fn(c_int);

unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
}

/// The signal that is ending the program; 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The thread has drained after the signal.
static IS_DRAINED: AtomicBool = AtomicBool::new(false);
/// The word of the process that this copy watches; null in other copies.
static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(null_mut());
/// The thread that drains; 0 where there is none.
static THREAD: AtomicUsize = AtomicUsize::new(0);
/// Milliseconds between snapshots; 0: none.
static EVERY: AtomicUsize = AtomicUsize::new(0);
/// The function that drains, as an address.
static DRAIN: AtomicUsize = AtomicUsize::new(0);

/// Whether one of the copies watches the ends of a process: its ID; 0 before, [`Watched::LEFT`] from an exit handler on.
/// A forked child keeps its parent's, since it has neither thread nor need of a second one.
pub(crate) struct Watched(AtomicUsize);

impl Watched {
    const LEFT: usize = usize::MAX;

    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// True for the first caller.
    fn claim(&self) -> bool {
        self.0.compare_exchange(0, process_id() as usize, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn is_here(&self) -> bool {
        self.0.load(Ordering::Acquire) == process_id() as usize
    }

    /// Before an exit handler drains for the last time.
    pub(crate) fn leave(&self) {
        self.0.store(Self::LEFT, Ordering::Release);
    }
}

/// Whether the environment has one of the variables.
pub(crate) fn is_requested() -> bool {
    [c"HOTSWAP_PROFILE_ENDS", c"HOTSWAP_PROFILE_EVERY"].iter().any(|name| variable::<8>(name).is_some())
}

/// Reads the variables, in the first copy of the process.
pub(crate) fn start(watched: &'static Watched, drain: Drain) {
    if !watched.claim() {
        return;
    }
    let words = variable::<4096>(c"HOTSWAP_PROFILE_ENDS");
    let every = variable::<4096>(c"HOTSWAP_PROFILE_EVERY").map_or(0, |text| snapshot_interval(text.bytes()));
    DRAIN.store(drain as usize, Ordering::Relaxed);
    EVERY.store(every, Ordering::Relaxed);
    let mut wanted = 0;
    for word in words.iter().flat_map(|words| words.bytes().split(|byte| *byte == b',')) {
        wanted |= ending(word);
    }
    if wanted & QUICK_EXIT != 0 {
        at_quick_exit();
    }
    let signals = wanted & !QUICK_EXIT;
    WATCHED.store((&raw const *watched).cast_mut(), Ordering::Release);
    if (every > 0 || signals != 0) && start_thread() {
        (1..32).filter(|number| signals >> number & 1 != 0).for_each(handle);
    }
}

/// Whether this copy watches the process that it runs in, which has not begun to leave.
fn is_watching() -> bool {
    let watched = WATCHED.load(Ordering::Acquire);
    // SAFETY: null, or the word that `start` stored, which is never freed.
    !watched.is_null() && unsafe { &*watched }.is_here()
}

/// The bit of an end: that with a signal's number, or [`QUICK_EXIT`]; none for other words, which are reported.
fn ending(word: &[u8]) -> u32 {
    let end = ENDS.iter().find(|end| until_zero(&end.name) == word);
    if end.is_none() && !word.is_empty() {
        warn_ignored(b"HOTSWAP_PROFILE_ENDS", word, b"quick_exit, SIGHUP, SIGINT, SIGQUIT, SIGABRT or SIGTERM");
    }
    end.map_or(0, |end| 1 << end.signal)
}

/// A user who misspelt a word would look for the profile in vain.
fn warn_ignored(name: &[u8], word: &[u8], known: &[u8]) {
    let mut line = Path::new(b"hotswap-profile-drain: warning: ");
    for part in [name, b": `", word, b"` is not ", known, b", and is ignored\n"] {
        line.push(part);
    }
    say(line.bytes());
}

fn drain(is_end: bool) {
    // SAFETY: `start` stored a function of this type; zero becomes `None`.
    let drain: Option<Drain> = unsafe { transmute(DRAIN.load(Ordering::Relaxed)) };
    if let Some(drain) = drain {
        drain(is_end);
    }
}

/// Whole seconds as milliseconds; 0 for anything else, which is reported.
fn snapshot_interval(text: &[u8]) -> usize {
    let mut seconds = 0usize;
    for byte in text {
        if !byte.is_ascii_digit() {
            warn_ignored(b"HOTSWAP_PROFILE_EVERY", text, b"a whole number of seconds");
            return 0;
        }
        seconds = seconds.saturating_mul(10).saturating_add(usize::from(byte - b'0'));
    }
    seconds.saturating_mul(1000)
}

/// libc keeps functions for `quick_exit` in a list of its own; the dynamic function behind `at_quick_exit` is asked for, so
/// that the link needs nothing more.
fn at_quick_exit() {
    type QuickExitFunction = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void) -> c_int;
    // SAFETY: null is RTLD_DEFAULT; glibc's function of this name has this type; null becomes `None`.
    let register: Option<QuickExitFunction> = unsafe { transmute(dlsym(null_mut(), c"__cxa_at_quick_exit".as_ptr())) };
    if let Some(register) = register {
        // SAFETY: the function takes no argument that matters and is in an image that stays loaded.
        unsafe { register(on_quick_exit, null_mut()) };
    }
}

extern "C" fn on_quick_exit(_: *mut c_void) {
    drain(true);
}

/// Starts the thread that drains, with all signals blocked in it.
fn start_thread() -> bool {
    type Create = unsafe extern "C" fn(
        *mut usize,
        *const c_void,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> c_int;
    // SAFETY: null is RTLD_DEFAULT; libc's function of this name has this type; null becomes `None`.
    let create: Option<Create> = unsafe { transmute(dlsym(null_mut(), c"pthread_create".as_ptr())) };
    let Some(create) = create else { return false };
    let (mut all, mut old, mut thread) = ([0; 16], [0; 16], 0usize);
    // SAFETY: sets of the size that libc has; a null attribute means the default; the thread's function never ends before
    // the program's last code does, and takes no argument. The mask is that which was read.
    let made = unsafe {
        sigfillset(&mut all);
        pthread_sigmask(SIG_SETMASK, &all, &mut old);
        let made = create(&mut thread, core::ptr::null(), watch, null_mut());
        pthread_sigmask(SIG_SETMASK, &old, null_mut());
        made
    };
    made == 0
}

/// Handles a signal that nothing else handles and that is not ignored.
fn handle(number: c_int) {
    // SAFETY: a handler of this type; the result is the former one, zero for the default.
    let old = unsafe { signal(number, on_signal as Handler as usize) };
    if old != 0 {
        // SAFETY: the former handler.
        unsafe { signal(number, old) };
    }
}

/// Waits for the thread, and lets the signal do what it does by default.
extern "C" fn on_signal(number: c_int) {
    if is_watching() && THREAD.load(Ordering::Relaxed) != thread_id() {
        let _ = SIGNAL.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed);
        let mut waited = 0;
        while waited < LIMIT && !IS_DRAINED.load(Ordering::Acquire) {
            pause(1000);
            waited += 1;
        }
    }
    // SAFETY: zero is the default action.
    unsafe { signal(number, 0) };
    send_signal(number);
}

/// The thread: drains after a signal, and for snapshots.
extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    THREAD.store(thread_id(), Ordering::Relaxed);
    let every = EVERY.load(Ordering::Relaxed);
    let mut since = 0;
    while is_watching() {
        if SIGNAL.load(Ordering::Acquire) != 0 {
            drain(true);
            IS_DRAINED.store(true, Ordering::Release);
            break;
        }
        pause(STEP * 1000);
        since += STEP as usize;
        if every > 0 && since >= every {
            since = 0;
            drain(false);
        }
    }
    null_mut()
}

#[cfg(test)]
mod tests {
    use super::snapshot_interval;

    #[test]
    fn only_whole_seconds_are_times() {
        assert_eq!(
            ["", "0", "2", "60", "1.5", "-1", "x"].map(|text| snapshot_interval(text.as_bytes())),
            [0, 0, 2000, 60_000, 0, 0, 0]
        );
    }
}
