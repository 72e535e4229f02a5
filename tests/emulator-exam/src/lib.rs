//! Exams of the emulator: the same source compiled for the host and for GPUs gives the same memory.
//!
//! Invariants: expectations come from the host's processor, or from functions here that share no code with the emulator.
//!
//! Absent on purpose: the HIP runtime.

mod float8_model;
mod generator;
mod product;
mod single;
mod twin;

pub use float8_model::{Float8Model, float8_models};
pub use generator::generated_source;
pub use product::{FragmentLayout, ProductCase, product_source};
pub use single::{LaneInputs, SingleCase, differing};
pub use twin::{TwinCase, TwinFailure, TwinRun, random_words};
