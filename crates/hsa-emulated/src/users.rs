//! The users of HSA: how often `hsa_init` was called more than `hsa_shut_down`. The profile drain is a user beside HIP.

use crate::status::HsaStatus;
use std::sync::atomic::{AtomicU32, Ordering};

static USERS: AtomicU32 = AtomicU32::new(0);

/// Whether there is a user.
pub(crate) fn is_initialised() -> bool {
    USERS.load(Ordering::Acquire) > 0
}

/// One more.
pub(crate) fn add() -> Result<(), HsaStatus> {
    let more = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_add(1));
    more.map(drop).map_err(|_| HsaStatus::REFCOUNT_OVERFLOW)
}

/// One less.
pub(crate) fn remove() -> Result<(), HsaStatus> {
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
    fewer.map(drop).map_err(|_| HsaStatus::NOT_INITIALIZED)
}
