//! The containers of a file are changed, and the file is written anew: what all commands and the served trees share.
//!
//! | step | module |
//! | --- | --- |
//! | change | `file_job`: a function for each container, in threads; `memory_budget`: what they may have in memory together |
//! | entries | [`opened_container`]: entries added, replaced, removed, compressed; their kernels (`same_kernels`) and the record (`entry_record`) |
//! | refuse | [`unsuited`]: containers to which no target is added, and the reason |
//! | read | [`container_groups`]: containers that are only read, several together |
//! | judge | [`new_file`]: a file that HIP or `hotswap verify` would reject gets no name; [`kept_gpus`]: nor one from which a GPU loads less |
//!
//! Invariants: the number of threads changes neither results nor bytes. A new file is read again before it gets its name.
//!
//! Absent on purpose: which changes a container gets, which callers bring as a function; progress on a terminal, of which
//! callers hear through [`EditProgress`].

pub mod container_groups;
mod entry_record;
mod file_job;
pub mod kept_gpus;
pub mod memory_budget;
pub mod new_file;
pub mod opened_container;
mod same_kernels;
pub mod unsuited;

pub use entry_record::of_file as record_of_file;
pub use file_job::{
    BeforeNamed, ContainerResult, EditProgress, FileJob, HandledFile, MAPPED, NoProgress, PACKED, ProcessedContainer,
    READ, WrittenFile, host_part, thread_count,
};
