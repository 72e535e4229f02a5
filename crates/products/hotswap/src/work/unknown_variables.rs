//! The warning about environment variables that are named like HotSwap's but without effect, once for each process.

use hotswap_report::Diagnostic;
use std::env;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The warning, if there is one and this is the first call.
pub(crate) fn take_unknown_variables() -> Option<Diagnostic> {
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    hotswap_plan::unknown_variables(env::vars_os().map(|(name, _)| name))
}
