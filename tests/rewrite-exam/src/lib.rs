//! The exams of rewriting code for gfx1250 to gfx1250-strict.
//!
//! - [`corpus`]: kernels from tables and a seeded generator; [`compile`]: the objects that clang and lld make of them;
//! - [`exam`]: each object through the engine, twice;
//! - [`judge`]: LLVM 24 reads the results, and its output is checked against rules that are written again here:
//!   distances ([`hazard`]), the bank mode ([`banks`]), forms that the target must not get ([`rules`]).
//! - [`evaluate`]: LDS accesses before and after, evaluated on numbers;
//! - [`mir`] and [`neighbours`]: replacements between neighbours, as MIR for LLVM's hazard recognizer;
//! - [`assembly`] and [`variants`]: hand-written assembly, and every family in every difficult position; [`random`]: random kernels.
//!
//! Invariants: Nothing here uses our decoder, our tables or the families. LLVM's own code for the target must pass
//! every rule that LLVM follows, otherwise the rule is wrong. The same version makes the same corpus everywhere.

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
pub mod random;
pub mod rules;
pub mod spills;
pub mod steppings;
pub mod variants;
