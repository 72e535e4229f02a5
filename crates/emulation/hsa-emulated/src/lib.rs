//! `libhsa-runtime64.so.1` without a GPU: HIP's real runtime runs on it, and the CPU executes the kernels.
//!
//! The package is an archive, which the installation links with `exports.map` to the library (`docs/guide/run.md`). Programs find
//! it by `LD_LIBRARY_PATH`; it is installed where no program looks by itself.
//!
//! | module | content |
//! | --- | --- |
//! | `settings` | the environment |
//! | `devices`, `gpu`, `product`, `system`, `agents` | agents and their properties |
//! | `memory` | pools, pointers, locked and virtual memory |
//! | `signals`, `handlers`, `program_end` | signals, waits, handlers, and the order of these at the end |
//! | `queue`, `queue_functions`, `doorbell`, `packets`, `packet_format` | queues and their packets |
//! | `copies` | copies of memory |
//! | `loader` | code objects |
//! | `executor`, `faults`, `events`, `counters` | kernels: the emulator, faults, counts |
//! | `refused` | functions that are not supported |
//! | `api_table`, `tools` | exported names, the tables that they jump through, tools libraries that change these |
//! | `abi`, `status`, `boundary`, `users`, `handles`, `agent_handles`, `clock`, `message` | the interface to C |
//!
//! Invariants: every symbol of the real library is defined, with its version. No panic and no wrong handle ends the program;
//! every status is HSA's. What a kernel does is the emulator's: nothing is recognised by name, HIP's own kernels included.
//!
//! Absent on purpose: images, other processes, timing of hardware, several versions of HSA.

// The functions of the interface are called by programs, not by this crate.
#![cfg(target_os = "linux")]

mod abi;
mod agent_handles;
mod agents;
mod api_table;
mod boundary;
mod clock;
mod copies;
mod counters;
mod devices;
mod doorbell;
mod events;
mod executor;
mod faults;
mod gpu;
mod handlers;
mod handles;
mod loader;
mod memory;
mod message;
mod packet_format;
mod packets;
mod product;
mod program_end;
mod queue;
mod queue_functions;
mod refused;
mod settings;
mod signals;
mod status;
mod system;
mod tools;
mod users;

pub use api_table::{API_TABLES, ApiTableNames};
pub use product::{PRODUCTS, ProductRow};
pub use settings::EmulationSettings;
pub use status::HsaStatus;
