//! Handlers that are called when a signal's condition holds, and functions that are called as soon as possible.
//!
//! Invariant: no lock is held during a call: a handler may register handlers and destroy signals.
#![allow(unsafe_code)] // the functions of HSA's interface, calls of the program's handlers

use crate::abi::{SignalHandle, SignalHandler};
use crate::boundary::hsa_api;
use crate::signals::{EmulatedSignal, SignalCondition, destroy_user_signal, find_user_signal, wait_a_moment, wake_all};
use crate::status::HsaStatus;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

/// A handler with what it waits for.
#[derive(Clone, Copy)]
struct PendingHandler {
    /// No signal: it is due at once.
    signal: Option<(EmulatedSignal, SignalCondition)>,
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

fn lock_pending() -> MutexGuard<'static, VecDeque<PendingHandler>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PendingHandler {
    fn is_due(&self) -> bool {
        self.signal.is_none_or(|(signal, condition)| condition.holds(signal.load()))
    }

    /// Calls it; whether it stays.
    fn call_handler(&self) -> bool {
        let value = self.signal.map_or(0, |(signal, _)| signal.load());
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
        let due = {
            let mut all = lock_pending();
            let place = all.iter().position(PendingHandler::is_due);
            place.and_then(|place| all.remove(place))
        };
        match due {
            Some(handler) if handler.call_handler() => lock_pending().push_back(handler),
            Some(_) => {}
            None => wait_a_moment(|| lock_pending().iter().any(PendingHandler::is_due)),
        }
    }
}

/// Forgets the handlers of a signal that is destroyed: its place may become another signal's, whose value says nothing about them.
fn forget_handlers_of(signal: EmulatedSignal) {
    lock_pending().retain(|handler| handler.signal.is_none_or(|(waits_for, _)| waits_for != signal));
}

/// Forgets all handlers, as ROCr does when its last user leaves: the program frees what they work on, and may be in `exit`.
pub(crate) fn forget_all_handlers() {
    lock_pending().clear();
}

fn add_handler(handler: PendingHandler) -> Result<(), HsaStatus> {
    static THREAD: Once = Once::new();
    lock_pending().push_back(handler);
    THREAD.call_once(|| {
        let thread = thread::Builder::new().name("hsa-handlers".to_owned());
        if let Err(error) = thread.spawn(call_handlers) {
            crate::message::report_message(&format!("no thread for handlers of signals: {error}"));
        }
    });
    wake_all();
    Ok(())
}

hsa_api! {
    fn hsa_signal_destroy(signal: SignalHandle) {
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
        let signal = Some((signal, SignalCondition::new(condition, value)));
        add_handler(PendingHandler { signal, call, data: data as usize })
    }

    fn hsa_amd_async_function(function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        let call = HandlerCall::Once(function.ok_or(HsaStatus::INVALID_ARGUMENT)?);
        add_handler(PendingHandler { signal: None, call, data: data as usize })
    }
}
