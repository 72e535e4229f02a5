//! Libraries whose host part chooses kernels by the GPU's name.
//!
//! Such a library has a table of names that it compiles twice: in device code, where it picks the configuration of a
//! kernel for the GPU that is compiled for, and in the host part, where it picks the kernel and its launch for the GPU
//! in `gcnArchName`. Code made for another GPU keeps the choice of its source. The pair is right only if the host part
//! maps the new name to the entry that the code was compiled with; otherwise it starts kernels with a wrong number of
//! threads, or empty ones, without any error.
//!
//! The evidence is a table ([`table`]): the libraries, by the prefix of their kernels' names, and the names that each
//! version knows. The file itself narrows it down: strings in the host part ([`HostPart`]), and the instantiations that
//! have a body, where there are several for different GPUs ([`Dispatch`]).
//!
//! Invariants: a pair is right only if it is right with *every* table that the evidence leaves possible; names are
//! compared whole.
//!
//! Absent on purpose: libraries that check for families of GPUs (composable kernel, GGML, RCCL): siblings are in one
//! family; code that is compiled at run time.

mod device;
mod diagnostic;
mod host;
mod judge;
mod table;

pub use device::Dispatch;
pub use diagnostic::names_diagnostic;
pub use host::HostPart;
pub use judge::{Disagreement, find_disagreements};
