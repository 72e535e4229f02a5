//! The program's end: what runs then of the program's own, in another thread, is not overtaken by what frees its objects.
//!
//! HIP's destructors wait until the handler of the last command's signal has stated its end, but not until the handler has given
//! up the command's queue. They free the device with the memory that the queue then gives back. A GPU's driver has the same
//! race; it shows where the handler's thread loses its processor between the two.

use crate::users;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

/// The thread that calls all handlers.
pub(crate) const HANDLER_THREAD: &str = "hsa-handlers";
/// Milliseconds that a wait for handlers takes, and those of [`wait_before_freeing`] all in all: a handler of the program's may stay
/// due, or never return.
pub(crate) const MOST_WAITS: u32 = 3000;

/// Held during the call of a handler.
static RUNNING_HANDLER: Mutex<()> = Mutex::new(());
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A handler runs until the guard is dropped. Waits for the one that runs.
pub(crate) fn lock_running_handler() -> MutexGuard<'static, ()> {
    RUNNING_HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn is_handler_running() -> bool {
    matches!(RUNNING_HANDLER.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether this is a thread that may wait for handlers: not their own, and none of a child of fork, which lacks it.
pub(crate) fn can_wait_for_handlers() -> bool {
    thread::current().name() != Some(HANDLER_THREAD) && !users::is_other_process()
}

/// The functions of `atexit` have begun.
pub(crate) fn begin_program_end() {
    IS_ENDING.store(true, Ordering::SeqCst);
}

/// Called before something of the program's is freed. Once its end has begun, the handler that runs returns first. Only here: in
/// other calls, the caller may hold a lock that the handler takes.
pub(crate) fn wait_before_freeing() {
    static WAITS: AtomicU32 = AtomicU32::new(0);
    if !IS_ENDING.load(Ordering::SeqCst) || !can_wait_for_handlers() {
        return;
    }
    while is_handler_running() && WAITS.fetch_add(1, Ordering::Relaxed) < MOST_WAITS {
        thread::sleep(Duration::from_millis(1));
    }
}
