//! The users of HSA: how often `hsa_init` was called more than `hsa_shut_down`. The profile drain is a user beside HIP.
//!
//! Invariants: tools libraries are loaded for the first user before its `hsa_init` returns, and unloaded for the last one while
//! functions may still be called.

use crate::message::report_message;
use crate::status::HsaStatus;
use crate::tools::LoadedTools;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The process of the users; threads of queues run in no child of it.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static USERS: AtomicU32 = AtomicU32::new(0);
/// The tools of the present users. Other threads wait here until they are loaded.
static TOOLS: Mutex<Option<LoadedTools>> = Mutex::new(None);

/// The child was told so.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread is in a tool's `OnLoad` or `OnUnload`, which may be a user itself.
    static IS_IN_TOOL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a child that was forked after the first user came, as against a program that it started. It has the
/// memory, and none of the threads.
pub(crate) fn is_forked_child() -> bool {
    if !is_other_process() {
        return false;
    }
    if !IS_TOLD.swap(true, Ordering::AcqRel) {
        report_message(
            "a child of fork uses the GPUs of its parent: nothing that it starts is executed; fork before the first call of \
             HIP, or start another program",
        );
    }
    true
}

/// [`is_forked_child`] for a function that such a child may call: nothing is said.
pub(crate) fn is_other_process() -> bool {
    let process = PROCESS.load(Ordering::Acquire);
    process != 0 && process != std::process::id()
}

/// Whether there is a user.
pub(crate) fn is_initialised() -> bool {
    USERS.load(Ordering::Acquire) > 0
}

pub(crate) fn add_user() -> Result<(), HsaStatus> {
    if IS_IN_TOOL.get() {
        return count_up().map(drop);
    }
    let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if count_up()? == 0 {
        PROCESS.store(std::process::id(), Ordering::Release);
        *tools = Some(in_tool(LoadedTools::load));
    }
    Ok(())
}

pub(crate) fn remove_user() -> Result<(), HsaStatus> {
    if IS_IN_TOOL.get() {
        return count_down();
    }
    let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if USERS.load(Ordering::Acquire) == 1
        && let Some(tools) = tools.take()
    {
        in_tool(|| tools.unload());
    }
    count_down()
}

/// Whether HSA is initialised.
pub(crate) fn has_users() -> bool {
    USERS.load(Ordering::Acquire) > 0
}

fn in_tool<T>(call: impl FnOnce() -> T) -> T {
    IS_IN_TOOL.set(true);
    let value = call();
    IS_IN_TOOL.set(false);
    value
}

/// The number of users before.
fn count_up() -> Result<u32, HsaStatus> {
    let more = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_add(1));
    more.map_err(|_| HsaStatus::REFCOUNT_OVERFLOW)
}

fn count_down() -> Result<(), HsaStatus> {
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
    fewer.map(drop).map_err(|_| HsaStatus::NOT_INITIALIZED)
}
