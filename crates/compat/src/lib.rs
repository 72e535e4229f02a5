//! Which code object serves which processor, and by what route.
//!
//! Three questions, each answered in one place: may code of one processor be relabelled for
//! another at all ([`verdict`]), by what route is a requested target served given what is there
//! ([`route`]), and does this very code object meet the condition of its pair ([`check`]).
//!
//! Invariants: everything is denied that is not proven; a native code object always wins; every
//! refusal says why.
//!
//! Absent on purpose: doing it (`hotswap-families`), pairs whose code would have to change.

mod check;
mod condition;
mod reasons;
mod route;
mod verdict;

pub use check::{Check, Checked, Ran, check};
pub use route::{Refusal, Rejection, Selection, derive_target_id, route};
pub use verdict::{Verdict, verdict};
