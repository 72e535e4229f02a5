//! Handlers of memory faults, which the program registers.
#![allow(unsafe_code)] // a function of HSA's interface, calls of the program's handlers

use crate::abi::{EventHandler, MemoryFaultEvent};
use crate::boundary::hsa_api;
use crate::status::HsaStatus;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// The handlers, with their data.
static HANDLERS: Mutex<Vec<(EventHandler, usize)>> = Mutex::new(Vec::new());

/// Calls the handlers; whether one of them has taken the event over.
pub(crate) fn raise_event(event: &MemoryFaultEvent) -> bool {
    // Handlers may call functions of HSA, so no lock is held.
    let handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Every handler sees the event.
    handlers.iter().filter(|handler| call_event_handler(handler, event)).count() > 0
}

fn call_event_handler((handler, data): &(EventHandler, usize), event: &MemoryFaultEvent) -> bool {
    // SAFETY: a handler that the program registered, with its own data.
    unsafe { handler(event, *data as *mut c_void) == HsaStatus::SUCCESS }
}

hsa_api! {
    fn hsa_amd_register_system_event_handler(handler: Option<EventHandler>, data: *mut c_void) {
        let handler = handler.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).push((handler, data as usize));
        Ok(())
    }
}
