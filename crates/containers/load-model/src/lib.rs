//! The device code that the HIP runtime loads from a file for a GPU, and how it gets there.
//!
//! | step of HIP | module |
//! | --- | --- |
//! | the GPU: a processor and its modes (XNACK, SRAMECC) | [`device`] |
//! | a constructor of the host program registers a wrapper and its kernels | `constructors` |
//! | the wrapper's pointer, which the dynamic loader relocates, leads to a container | [`registration`], above `address_space` |
//! | one entry of the container is chosen: the GPU's own, then the generic target, then SPIR-V | [`choice`], by the table in [`generics`] |
//! | before all: a container is one that the runtime and HotSwap's own readers accept | [`acceptance`] |
//!
//! [`FileUse`] is the whole answer for a file; [`required_code`] is that for GPUs that a file must have code for; [`loss`] compares the answers before and after a change. For a tree of files:
//!
//! | step of a host library | module |
//! | --- | --- |
//! | the files, links followed as the file system does | [`tree`] |
//! | the library that a file belongs to | [`libraries`], by `pattern` |
//! | the names under which a library looks for data | [`lookups`] |
//! | the data files that it opens for the name that it sees; the code that HIP loads from them | [`data_use`], `tensile_index` |
//! | kernel archives | [`archive_reference`] |
//!
//! [`TreeReader`] answers for a tree, and compares two trees; [`host_comparison`] compares programs without their device code.
//!
//! Invariants: what HIP does is not decided by a file's name. The answer is that of HIP 7.2; where a later HIP answers otherwise, the
//! table has both and the more permissive one counts, so that nothing is removed that some HIP loads. This crate shares
//! no code with the writers of `hotswap-bundle`, whose results it judges.
//!
//! Absent on purpose: the registration of Windows programs; programs for AArch64 have wrappers, but their constructors are not
//! read; packages, whose files the caller unpacks.

pub mod acceptance;
mod address_space;
pub mod archive_reference;
pub mod choice;
mod constructors;
mod container;
pub mod data_use;
pub mod device;
mod file_use;
pub mod generics;
pub mod host_comparison;
pub mod libraries;
pub mod lookups;
pub mod loss;
mod offload_images;
mod pattern;
pub mod registration;
pub mod required_code;
mod tensile_index;
pub mod tree;
pub mod tree_use;

pub use choice::{EntryChoice, EntryMatch, LoadFailure};
pub use container::{LoadableContainer, LoadableEntry, ReadDepth};
pub use data_use::{FileState, OpenedFile, SeenGpu};
pub use device::DeviceModes;
pub use file_use::{ContainerUse, FileUse};
pub use registration::{RegisteredWrapper, Registration};
pub use tree_use::{TreeReader, TreeUse, UseLoss};
