//! `libhotswap`: device code read, queried and changed through a C interface, for tools, profilers and JITs.
//!
//! `include/hotswap.h` is the interface, [`docs/reference/libhotswap.md`](../../../../docs/reference/libhotswap.md) its manual. `abi` has a
//! function for each of its declarations; what they do is in the other modules, which are safe Rust:
//!
//! | module | task |
//! | --- | --- |
//! | `device_file` | a file: its entries, and the best one for an agent (`agent`, `choice`) |
//! | `device_image` | a code object: `function_index` finds its functions, `instruction_walk` decodes them |
//! | `variables` | the variables of a code object |
//! | `load_model` | a code object laid out at an address by the rules of ROCr's loader |
//! | `bound_images` | functions of other code objects: providers of imports, budgets |
//! | `make` | code for other GPUs, in memory |
//! | `process` | code objects that the process has loaded, through functions of HSA that the caller passes |
//! | `worker_threads` | threads of analyses, also after `fork` |
//! | `call_error` | errors with status, number and text |
//!
//! Invariants: no panic and no damaged input reaches the caller as anything but a status. Handles do not change once
//! they are made: what is computed later is computed once (`OnceLock`), so that threads may share them. The only
//! global state is the pool of threads. All results come from the commands' crates, without a second analysis.
//!
//! Absent on purpose: LLVM, HSA and HIP; files that are written (`hotswap` does that); the layout of containers.

#![warn(missing_docs)]

pub mod abi;
mod agent;
mod bound_images;
mod call_error;
mod choice;
mod device_file;
mod device_image;
mod file_bytes;
mod function_index;
mod instruction_walk;
mod load_model;
mod make;
mod process;
mod variables;
mod worker_threads;

pub use bound_images::BoundImages;
pub use call_error::{CallError, CallStatus};
pub use device_file::DeviceFile;
pub use device_image::DeviceImage;
pub use load_model::LoadedCode;
pub use make::MadeCode;
