//! Evidence that what HotSwap makes does what it was made from, by execution.
//!
//! - [`subjects`]: objects and their rewritten forms; [`rewrites`]: both are executed on generated states;
//!   [`mutations`]: rewritten forms with planted faults;
//! - [`twins`]: generated programs on the host and on each target; [`csmith`]: programs of csmith, likewise; [`libraries`]:
//!   algorithms of real libraries; [`programs`]: HIP programs as users write them;
//! - [`exhaustive`]: conversions of floats on every input; [`unary`]: instructions of one source, likewise; [`pseudo_code`]:
//!   single instructions against AMD's pseudo-code;
//! - [`judges`]: `rewrite`, `lint`, `verify --against` and `check` about the same objects, which must agree, for every pair of
//!   [`judged_pairs`] and the objects of [`judged_corpus`]; [`random_kernels`]: the same about random kernels;
//! - [`clang_lint`]: `lint` about what compilers make, for every kind of target;
//! - [`evidence`]: the table of all of it; [`sizes`]: how much is run; [`whole_runs`]: the last runs over all floats;
//!   [`workers`]: on all processors.
//!
//! Invariants: expectations come from the host's processor, from the original, or from an SMT solver. The judge is the
//! emulator, which shares nothing with the rewriter.

pub mod clang_lint;
pub mod clang_lint_page;
pub mod csmith;
pub mod evidence;
pub mod exhaustive;
pub mod judged_corpus;
pub mod judged_pairs;
pub mod judges;
pub mod judges_page;
pub mod libraries;
pub mod mutations;
pub mod programs;
pub mod proof;
pub mod pseudo_code;
pub mod random_kernels;
pub mod rewrites;
pub mod sizes;
pub mod subjects;
pub mod twins;
pub mod unary;
pub mod whole_runs;
pub mod workers;
