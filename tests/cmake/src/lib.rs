//! Tests of the CMake package: each folder of `projects` is a complete consumer project with one
//! feature; [`table`] says what is done to it, [`run`] does it inside the ROCm userland.
//!
//! A unit is a case in one [`case::Mode`]; each unit runs in one [`setup::Setup`] (CMake version,
//! generator, clang), or with `HOTSWAP_FULL=1` in all of them. The set-ups of the default run are
//! dealt out so that all are used. `HOTSWAP_TEST_CASES=TEXT` runs only cases with that in the name.
//!
//! Invariants: a unit works in a folder of its own, with caches of its own; what a step claims is
//! read from the files that were built, never taken from CMake's word.
//!
//! Absent on purpose: building HotSwap and the userland (`cargo xtask test` does).

pub mod case;
pub mod run;
pub mod setup;
pub mod table;

mod build;
mod site;
