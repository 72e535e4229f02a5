//! Analyses of a program: what holds at its points, computed without changing it.
//!
//! | analysis | question | direction |
//! |---|---|---|
//! | [`banks`] | which bank mode is in force | forward |
//! | [`liveness`] | which registers may still be read | backward, callees before callers |
//! | [`interprocedural`] | which registers are live when a function returns | callers before callees |
//! | [`waitcnt`] | which registers outstanding memory operations may still write | forward |
//! | [`reaching_defs`] | which instruction of a block wrote a register last | backward, within a block |
//! | [`reachability`] | which kernels and which unknown code reach a function | along calls |
//!
//! [`section::SectionProgram`] holds a program and computes each of them when it is first needed; [`cursor`] answers
//! queries along a block. The solvers share [`crate::dataflow`].
//!
//! Invariants: an analysis errs to the safe side, whatever is unknown: too much is live, outstanding or reachable.
//!
//! Absent on purpose: the values that registers hold while the control flow is still being found
//! ([`crate::cfg`]), and everything that depends on what the code is rewritten for.

pub(crate) mod banks;
pub(crate) mod cursor;
pub(crate) mod interprocedural;
pub(crate) mod liveness;
pub(crate) mod reachability;
pub(crate) mod reaching_defs;
pub(crate) mod section;
pub(crate) mod waitcnt;
