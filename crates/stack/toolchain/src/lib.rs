//! The tool chain of a machine: what a build through HotSwap uses, and whether it can be used.
//!
//! | module | task |
//! | --- | --- |
//! | [`examine`] | the examination of each part, by `parts`, the table of the parts and of the packages that have them |
//! | [`examination_report`] | the report of the examination as text and JSON |
//! | [`file_closure`] | the files that a compile reads besides its sources |
//! | [`probe`] | programs that are asked, the compiler that `hotswap-clang` would start, this installation |
//! | [`comgr`] | whether comgr compiles SPIR-V, asked in a process of its own |
//! | [`temporary`] | the directory for temporary files of the tools |
//! | `caches`, `warm_headers`, `libraries`, `versions`, `sources` | compiler caches, precompiled headers, libraries in the file system, versions of tools, test programs |
//!
//! Invariants: nothing is changed outside a scratch directory. What could not be read is an error of its own, and never an
//! absence.
//!
//! Absent on purpose: installing anything, and the search for a compiler, which `hotswap-clang` does itself.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod caches;
pub mod comgr;
pub mod examination_report;
pub mod examine;
pub mod file_closure;
mod libraries;
mod part_report;
mod parts;
pub mod probe;
mod sources;
pub mod temporary;
mod versions;
mod warm_headers;

pub use examination_report::lacking_parts;
pub use examine::examine_toolchain;
pub use part_report::{PartReport, PartState};
