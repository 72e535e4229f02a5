//! File access for HotSwap: outputs that are never half written, response files, directories.
//!
//! Invariants: [`replace`] leaves either the old or the complete new content under the name, even when the process is
//! killed or the disk is full; it never writes through to a device or a pipe.
//!
//! Absent on purpose: locking between two builds of one output (the build system's job). Commands that change a file in
//! place do lock it ([`open_to_change`]).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod beside;
mod cache;
mod child_output;
mod copy;
mod directories;
mod in_place;
mod inode;
mod input;
mod lent_memory;
mod own_program;
mod pages;
mod response;
mod same_inode;
mod scratch;
mod scratch_directory;
mod threads;
mod truncated;
mod write;

pub mod asked_program;
pub mod reads;

pub use beside::remove_left_over;
pub use cache::{Untrusted, cache_dir, own_directory};
pub use child_output::{child_output, command_output, empty_input};
pub use directories::create_directories;
pub use in_place::{is_same_place, open_to_change, other_names};
pub use input::{InputFile, open_input, open_or_stdin};
pub use lent_memory::{LentMemory, MemoryLender};
pub use own_program::{no_proc, own_program};
pub use response::{ExpandedArgument, expand_response_files, tokenize_gnu};
pub use same_inode::check_finished;
pub use scratch::{Scratch, ScratchBuffer};
pub use scratch_directory::ScratchDirectory;
pub use threads::{BackgroundTask, available_threads, descriptor_limit, machine_memory, on_all_cores, on_threads};
pub use truncated::end_on_truncated_input;
pub use write::{Placement, WriteOptions, read_file, replace_file, replace_like, replace_parts, replace_written};
