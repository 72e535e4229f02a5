//! The exams of making code for gfx1250-strict from code for gfx1250.
//!
//! - [`corpus`]: kernels from tables and a seeded generator; [`compile`]: what clang and lld make of them;
//! - [`judge`]: LLVM 24 reads what came out, and the text that it prints is held against rules that are written down
//!   here once more: distances ([`hazard`]), the bank mode ([`banks`]), forms that the target must not be given
//!   ([`rules`]).
//!
//! Invariants: nothing here uses our decoder, our tables or the families; what LLVM compiles for the target itself must
//! pass every rule that LLVM keeps, else the rule is wrong; the same version makes the same corpus everywhere.

pub mod banks;
pub mod compile;
pub mod corpus;
pub mod hazard;
pub mod judge;
pub mod listing;
pub mod rules;
