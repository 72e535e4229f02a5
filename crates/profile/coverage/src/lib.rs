//! Coverage of one program on the host and on every GPU: a union of the exports of llvm-cov, one for each target.
//!
//! llvm-cov keeps one record for each function name. Where a function's text differs between host and device, or between
//! GPUs, or where two functions have one name, it shows one of them and drops the others. Here code objects that share names
//! are exported alone ([`TargetExport`]), and the exports are joined by source position ([`CoverageReport`]): a line, region,
//! branch or function is covered if a target executed it, and each target keeps its column.
//!
//! | module | content |
//! | --- | --- |
//! | `export` | llvm-cov's JSON |
//! | `lines` | lines and their counts, by llvm-cov's rule, from its segments |
//! | `union` | the report |
//! | `decisions` | decisions of MC/DC and their test vectors |
//! | `diff` | the lines that a change adds |
//! | [`render`] | the forms of the report |
//! | [`raw_profile`], [`identity`] | raw profiles, and the code that they belong to |
//! | `profile_files` | the profiles that were named, and those in directories |
//! | [`llvm_tools`], `merge` | LLVM's tools for a version of profiles; profiles merged by them |
//! | `request`, `measure` | exports of a program's code (`covered`): `matching` of profiles and code, an `account` of the rest |
//! | `git_lines` | the lines that a working tree adds to a revision |
//!
//! Invariants: with one export, every number is llvm-cov's own. Code without a profile lacks counts, even of zero;
//! its lines are not covered. Nothing depends on the order in which targets were
//! exported.
//!
//! Absent on purpose: reading coverage maps, names and indexed profiles, which llvm-cov and llvm-profdata do.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod account;
mod covered;
mod decisions;
mod diff;
mod export;
mod git_lines;
pub mod identity;
mod lines;
pub mod llvm_tools;
mod matching;
mod measure;
mod merge;
mod profile_files;
mod ratio;
pub mod raw_profile;
pub mod render;
mod request;
mod union;

pub use covered::Covered;
pub use diff::{AddedLines, DiffCoverage};
pub use export::{DirectoryMap, TargetExport, parse};
pub use git_lines::ReportDifference;
pub use measure::{MeasuredCoverage, measure_coverage};
pub use merge::merge_profiles;
pub use profile_files::{FailureMode, GatheredProfiles, ProfileFile, gather_profiles, target_of_part};
pub use ratio::Ratio;
pub use request::CoverageRequest;
pub use union::{CoverageReport, FileCoverage, FunctionCoverage, Totals};
