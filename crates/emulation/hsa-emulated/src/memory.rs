//! Memory: all of it is the program's own, at one address for host and GPUs.
//!
//! | part | content |
//! | --- | --- |
//! | `mapping` | pages of the system |
//! | `allocations` | which addresses belong to which allocation; what kernels may access |
//! | `pools` | the pools of agents, allocation |
//! | `pointers` | allocations of pointers; locked memory of the host |
//! | `shared_ranges` | the attributes of shared virtual memory |
//! | `virtual_memory` | reserved addresses and the memory that is mapped there |

pub(crate) mod allocations;
pub(crate) mod mapping;
mod pointers;
mod pools;
mod shared_ranges;
mod virtual_memory;

pub(crate) use shared_ranges::store_prefetch_location;
