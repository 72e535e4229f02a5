//! Proofs of replacements without floats: the instruction and its replacement as terms, compared by an SMT solver.
//!
//! - [`term`]: terms, printed and evaluated; [`symbolic`]: instructions of one active lane as terms;
//! - [`obligations`]: for each site a question, whether the two can differ; [`solver`]: its answers, kept by hash.
//!
//! The meaning of an instruction as a term is written a second time here, since functions of the emulator cannot be read as
//! terms; [`obligations::disagreement`] compares both on generated states, instruction sequence by instruction sequence.

pub mod obligations;
pub mod solver;
pub mod symbolic;
pub mod term;
