//! The basis of the end-to-end tests: commands inside a ROCm userland, `strace` as an oracle, readers of build outputs,
//! and the modes of clang's HIP driver as data.
//!
//! Invariants: Every command has a time limit and ends with its whole process group. Every scratch directory is removed. A
//! test without a userland prints `skipped: …` with the reason and passes. The oracle ([`strace`]) sees only the
//! kernel's view of the processes and is independent of HotSwap's own trace ([`trace`]): the tests compare the two.
//!
//! Absent on purpose: making the userland and the installation (`cargo xtask test` does).

pub mod artifact;
mod bench;
pub mod mode;
mod pool;
mod run;
pub mod strace;
pub mod target_lists;
pub mod trace;

pub use bench::{Bench, Clang, Scratch};
pub use pool::parallel;
pub use run::{Call, Ran, kill_group};

pub use hotswap_userland::{blesses, everything, in_turn, one_of_each, say, skip, slice};
