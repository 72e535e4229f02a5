//! Handlers that are called when a signal's condition holds, and functions that are called as soon as possible.
//!
//! Invariants: a handler may register handlers and destroy signals, so no lock is held during a call that either of them takes;
//! when the last user has left, no handler runs.
#![allow(unsafe_code)] // the functions of HSA's interface, calls of the program's handlers

use crate::abi::{SignalHandle, SignalHandler};
use crate::boundary::hsa_api;
use crate::program_end::{
    HANDLER_THREAD, MOST_WAITS, can_wait_for_handlers, is_handler_running, lock_running_handler, wait_before_freeing,
};
use crate::signals::{
    EmulatedSignal, SignalCondition, WatchedSignal, destroy_user_signal, find_user_signal, wait_a_moment, wake_all,
};
use crate::status::HsaStatus;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// A handler with what it waits for.
#[derive(Clone, Copy)]
struct PendingHandler {
    /// No signal: it is due at once.
    signal: Option<WatchedSignal>,
    call: HandlerCall,
    data: usize,
}

#[derive(Clone, Copy)]
enum HandlerCall {
    /// It stays when it returns true.
    OfSignal(SignalHandler),
    /// `hsa_amd_async_function`.
    Once(unsafe extern "C" fn(*mut c_void)),
}

static PENDING: Mutex<VecDeque<PendingHandler>> = Mutex::new(VecDeque::new());
/// The program ends with a GPU that it has lost: no handler is called any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// How often all handlers were forgotten: one that ran meanwhile does not stay, whatever it returns.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

fn lock_pending() -> MutexGuard<'static, VecDeque<PendingHandler>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PendingHandler {
    fn is_due(&self) -> bool {
        self.signal.is_none_or(|watched| watched.is_satisfied())
    }

    /// Calls it; whether it stays.
    fn call_handler(&self) -> bool {
        let value = self.signal.map_or(0, |watched| watched.signal.load());
        let data = self.data as *mut c_void;
        match self.call {
            // SAFETY: a handler that the program registered, with its own data.
            HandlerCall::OfSignal(handler) => unsafe { handler(value, data) },
            HandlerCall::Once(function) => {
                // SAFETY: the same.
                unsafe { function(data) };
                false
            }
        }
    }
}

/// The thread that calls all handlers. It lives as long as the process.
fn call_handlers() {
    loop {
        if !call_due_handler() {
            wait_a_moment(|| lock_pending().iter().any(PendingHandler::is_due));
        }
    }
}

/// Calls the first handler that is due; whether there was one.
fn call_due_handler() -> bool {
    // Before the handler leaves the list: who finds it in neither place knows that it has returned.
    let _running = lock_running_handler();
    let Some(taken) = take_due_handler() else { return false };
    if taken.handler.call_handler() {
        let mut pending = lock_pending();
        if FORGOTTEN.load(Ordering::SeqCst) == taken.forgotten {
            pending.push_back(taken.handler);
        }
    }
    true
}

struct TakenHandler {
    handler: PendingHandler,
    /// [`FORGOTTEN`] when it left the list.
    forgotten: u32,
}

fn take_due_handler() -> Option<TakenHandler> {
    let mut all = lock_pending();
    if IS_OVER.load(Ordering::SeqCst) {
        all.clear();
    }
    let place = all.iter().position(PendingHandler::is_due)?;
    Some(TakenHandler { handler: all.remove(place)?, forgotten: FORGOTTEN.load(Ordering::SeqCst) })
}

/// Forgets the handlers of a signal that is destroyed: its place may become another signal's, whose value says nothing about them.
fn forget_handlers_of(signal: EmulatedSignal) {
    lock_pending().retain(|handler| handler.signal.is_none_or(|watched| watched.signal != signal));
}

/// Waits until no handler runs or is due, for a while: a GPU's are called at once, long before the program that saw its results has
/// come to `exit`, where HIP frees what its handlers work on.
pub(crate) fn wait_for_handlers() {
    if !can_wait_for_handlers() {
        return;
    }
    for _ in 0..MOST_WAITS {
        // In this order: what has left the list runs, or has returned.
        let is_due = lock_pending().iter().any(PendingHandler::is_due);
        if !is_due && !is_handler_running() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Calls no further handler. HIP gives up what a lost GPU has not done when the program ends, and its handlers of that would work on
/// what its destructors have freed.
pub(crate) fn end_handlers() {
    IS_OVER.store(true, Ordering::SeqCst);
    forget_all_handlers();
}

/// Forgets all handlers and waits for the one that runs, as ROCr does when its last user leaves: the program frees what they work
/// on, and may be in `exit`.
pub(crate) fn forget_all_handlers() {
    {
        let mut pending = lock_pending();
        FORGOTTEN.fetch_add(1, Ordering::SeqCst);
        pending.clear();
    }
    // A handler that leaves HSA itself would wait for its own end, and a child of fork for a thread that it does not have.
    if can_wait_for_handlers() {
        drop(lock_running_handler());
    }
}

fn add_handler(handler: PendingHandler) -> Result<(), HsaStatus> {
    static START: Once = Once::new();
    lock_pending().push_back(handler);
    START.call_once(|| {
        let thread = thread::Builder::new().name(HANDLER_THREAD.to_owned());
        if let Err(error) = thread.spawn(call_handlers) {
            crate::message::report_message(&format!("no thread for handlers of signals: {error}"));
        }
    });
    wake_all();
    Ok(())
}

hsa_api! {
    fn hsa_signal_destroy(signal: SignalHandle) {
        wait_before_freeing();
        let found = find_user_signal(signal)?;
        forget_handlers_of(found);
        destroy_user_signal(found);
        Ok(())
    }

    fn hsa_amd_signal_async_handler(
        signal: SignalHandle, condition: u32, value: i64, handler: Option<SignalHandler>, data: *mut c_void,
    ) {
        let call = HandlerCall::OfSignal(handler.ok_or(HsaStatus::INVALID_ARGUMENT)?);
        let signal = EmulatedSignal::find(signal).ok_or(HsaStatus::INVALID_SIGNAL)?;
        let watched = WatchedSignal { signal, condition: SignalCondition::new(condition, value) };
        add_handler(PendingHandler { signal: Some(watched), call, data: data as usize })
    }

    fn hsa_amd_async_function(function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        let call = HandlerCall::Once(function.ok_or(HsaStatus::INVALID_ARGUMENT)?);
        add_handler(PendingHandler { signal: None, call, data: data as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program_end::begin_program_end;

    static STARTED: AtomicU32 = AtomicU32::new(0);
    static RETURNED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn stay_a_while(_value: i64, _data: *mut c_void) -> bool {
        STARTED.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(100));
        RETURNED.fetch_add(1, Ordering::SeqCst);
        true
    }

    static CALLED_ONCE: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count_late(_data: *mut c_void) {
        thread::sleep(Duration::from_millis(100));
        CALLED_ONCE.fetch_add(1, Ordering::SeqCst);
    }

    #[test]
    fn no_handler_runs_after_the_last_user() {
        // One test: there is one list of handlers.
        for _ in 0..2 {
            add_handler(PendingHandler { signal: None, call: HandlerCall::Once(count_late), data: 0 }).unwrap();
        }
        wait_for_handlers();
        assert_eq!(CALLED_ONCE.load(Ordering::SeqCst), 2, "what is due is called before the program ends");
        let signal = EmulatedSignal::new(crate::abi::SIGNAL_KIND_USER, 0).unwrap();
        let condition = SignalCondition::new(0, 0);
        let call = HandlerCall::OfSignal(stay_a_while);
        add_handler(PendingHandler { signal: Some(WatchedSignal { signal, condition }), call, data: 0 }).unwrap();
        while STARTED.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        forget_all_handlers();
        let calls = STARTED.load(Ordering::SeqCst);
        assert_eq!(RETURNED.load(Ordering::SeqCst), calls);
        thread::sleep(Duration::from_millis(150));
        assert_eq!(STARTED.load(Ordering::SeqCst), calls, "a handler that stays was forgotten, too");

        add_handler(PendingHandler { signal: None, call: HandlerCall::Once(count_late), data: 0 }).unwrap();
        while !is_handler_running() {
            thread::yield_now();
        }
        wait_before_freeing();
        assert_eq!(
            CALLED_ONCE.load(Ordering::SeqCst),
            2,
            "a program that runs may free in a lock that its handler takes"
        );
        begin_program_end();
        wait_before_freeing();
        assert_eq!(CALLED_ONCE.load(Ordering::SeqCst), 3, "HIP frees what the handler that runs still works on");
    }
}
