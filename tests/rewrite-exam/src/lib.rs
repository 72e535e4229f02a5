//! The exams of making code for gfx1250-strict from code for gfx1250.
//!
//! - [`corpus`]: kernels from tables and a seeded generator; [`compile`]: what clang and lld make of them;
//! - [`exam`]: each of it through the engine, twice;
//! - [`judge`]: LLVM 24 reads what came out, and the text that it prints is held against rules that are written down
//!   here once more: distances ([`hazard`]), the bank mode ([`banks`]), forms that the target must not be given
//!   ([`rules`]).
//! - [`evaluate`]: LDS accesses before and after, run on numbers;
//! - [`mir`] and [`neighbours`]: replacements between neighbours, as MIR for LLVM's hazard recognizer;
//! - [`assembly`], [`variants`] and [`spills`]: assembly by hand, every family in every place that is hard, and where no vector
//!   register is free.
//!
//! Invariants: nothing here uses our decoder, our tables or the families; what LLVM compiles for the target itself must
//! pass every rule that LLVM keeps, else the rule is wrong; the same version makes the same corpus everywhere.

pub mod assembly;
pub mod banks;
pub mod compile;
pub mod corpus;
pub mod evaluate;
pub mod exam;
pub mod hazard;
pub mod judge;
pub mod listing;
pub mod llvm;
pub mod mir;
pub mod neighbours;
pub mod rules;
pub mod spills;
pub mod variants;
