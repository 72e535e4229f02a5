//! The threads of analyses, and `fork`: a child lacks its parent's threads, so that work which waits for the common
//! pool would wait for ever. After `fork` the child starts a pool of its own when it first needs one.
//!
//! Invariant: a pool is used by the process that started it alone.
//!
//! Absent on purpose: children that are made without the C library's `fork`.
#![allow(unsafe_code)] // `pthread_atfork` takes a function of C

use crate::call_error::{CallError, CallStatus};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static REGISTERED: Once = Once::new();
/// This process is a child, and the common pool, if it exists, is without threads.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// The pool of this child; never freed, because its parent's is not this process's to free.
static CHILD_POOL: AtomicPtr<ThreadPool> = AtomicPtr::new(null_mut());

/// Runs work that may use many threads.
///
/// # Errors
/// `Internal` in a child that cannot start threads.
pub(crate) fn run_parallel<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, CallError> {
    REGISTERED.call_once(|| {
        // SAFETY: the function only writes two atomic values. Without room for it, children work as before.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forget_threads)) };
    });
    if IS_CHILD.load(Ordering::Acquire) { Ok(child_pool()?.install(work)) } else { Ok(work()) }
}

extern "C" fn forget_threads() {
    IS_CHILD.store(true, Ordering::Release);
    CHILD_POOL.store(null_mut(), Ordering::Release);
}

fn child_pool() -> Result<&'static ThreadPool, CallError> {
    let current = CHILD_POOL.load(Ordering::Acquire);
    let pool = if current.is_null() { start_pool()? } else { current };
    // SAFETY: pools are never freed.
    Ok(unsafe { &*pool })
}

fn start_pool() -> Result<*mut ThreadPool, CallError> {
    let made = Box::into_raw(Box::new(ThreadPoolBuilder::new().build().map_err(thread_pool_error)?));
    match CHILD_POOL.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(made),
        Err(other) => {
            // SAFETY: it was made here, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
            Ok(other)
        }
    }
}

fn thread_pool_error(error: rayon::ThreadPoolBuildError) -> CallError {
    CallError::new(CallStatus::Internal, format!("threads of a forked child: {error}"))
}
