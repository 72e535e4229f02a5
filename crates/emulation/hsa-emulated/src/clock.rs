//! The system clock, in ticks of 10 ns.

use std::sync::OnceLock;
use std::time::Instant;

/// Ticks in a second.
pub(crate) const TICKS_PER_SECOND: u64 = 100_000_000;

/// The time. It starts at one, because HIP takes a time of zero for one that was not taken.
pub(crate) fn current_ticks() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    1 + u64::try_from(elapsed.as_nanos() / 10).unwrap_or(u64::MAX - 1)
}
