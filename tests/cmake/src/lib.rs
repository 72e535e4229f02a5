//! Tests of the CMake package: each directory of `projects` is a complete consumer project with one feature; [`table`]
//! lists the steps for it, [`run`] executes them inside the ROCm userland.
//!
//! A unit is a case in one [`case::Mode`]. Each unit runs in one [`setup::Setup`] (CMake version, generator, clang), or
//! with `--everything` in all of them. The default run has each case in one of its modes, and distributes modes and set-ups
//! so that all are used.
//! `HOTSWAP_TEST_CASES=TEXT` runs only cases with that in the name.
//!
//! Invariants: a unit works in a directory of its own, with caches of its own; a step checks the built files, never
//! CMake's report about them.
//!
//! Absent on purpose: building HotSwap and the userland (`cargo xtask test` does).

pub mod case;
pub mod run;
pub mod setup;
pub mod table;

mod build;
mod programs;
mod site;
