//! Hazards between instructions: pairs that must keep a distance from each other, or wait, on gfx1250 and its
//! steppings; and the distances of earlier processors ([`distance`]).
//!
//! [`RULES`] is the one table. Families use it for the code that they make, the engine for the boundaries between new
//! and old code, and the check of a result for the result. A row names a class of producers, a class of consumers, the
//! registers that must overlap, the instructions required between the two, the steppings, and the source of the fact.
//!
//! Invariants: classes are properties of the rows of `hotswap-isa` and fields of the encoding, never mnemonics (but in [`distance`]). A row
//! requires no less than LLVM 24 does. Where banks are not known, registers of every bank count as touched.
//!
//! Absent on purpose: control flow. Callers walk the paths and count; this crate judges pairs of instructions.

mod class;
pub mod distance;
mod matrix;
mod pair;
mod table;

pub use class::{InstClass, SCRATCH_BASE_SGPRS, counts_towards_distance, is_matrix, is_xdl};
pub use matrix::{MatrixHazard, RegisterFilter, RegisterTouch, Spacing};
pub use pair::BankedInstruction;
pub use table::{HazardRule, Overlap, RULES, Requirement, Stepping, rules_for, wait_alu};
