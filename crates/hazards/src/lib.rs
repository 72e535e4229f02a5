//! Hazards between instructions: which must keep a distance from each other, or wait, on gfx1250 and its steppings.
//!
//! [`RULES`] is the one table. Families ask it for the code that they make, the engine for the places where new code
//! meets old, the check of a result for what came out. A row names a class of producers, a class of consumers, the
//! registers that must meet, what must stand between the two, the steppings, and the source of the fact.
//!
//! Invariants: classes are properties of the rows of `hotswap-isa` and fields of the encoding, never mnemonics; a row asks
//! no less than LLVM 24 does; where banks are not known, registers of every bank count as touched.
//!
//! Absent on purpose: control flow. Who asks walks the paths and counts; this crate judges pairs of instructions.

mod class;
mod matrix;
mod pair;
mod table;

pub use class::{InstClass, is_xdl};
pub use matrix::{Hazard, Near, Spacing, Touch, counts, is_matrix};
pub use pair::Placed;
pub use table::{HazardRule, Overlap, RULES, Requirement, Stepping, rules, wait_alu};
