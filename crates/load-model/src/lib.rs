//! The device code that the HIP runtime loads from a file for a GPU, and how it gets there.
//!
//! | step of HIP | module |
//! | --- | --- |
//! | the GPU: a processor and its modes (XNACK, SRAMECC) | [`device`] |
//! | a constructor of the host program registers a wrapper and its kernels | `constructors` |
//! | the wrapper's pointer, which the dynamic loader relocates, leads to a container | [`registration`], above `address_space` |
//! | one entry of the container is chosen: the GPU's own, then the generic target, then SPIR-V | [`choice`], by the table in [`generics`] |
//!
//! [`FileUse`] is the whole answer for a file; [`loss`] compares the answers before and after a change.
//!
//! Invariants: nothing is decided by a file's name. The answer is that of HIP 7.2; where a later HIP answers otherwise, the
//! table has both and the more permissive one counts, so that nothing is removed that some HIP loads. This crate shares
//! no code with the writers of `hotswap-bundle`, whose results it judges.
//!
//! Absent on purpose: the files that libraries choose by the name of the GPU (`hotswap-stack` has their table); the
//! registration of Windows programs; programs for AArch64 have wrappers, but their constructors are not read.

mod address_space;
pub mod choice;
mod constructors;
mod container;
pub mod device;
mod file_use;
pub mod generics;
pub mod loss;
pub mod registration;

pub use choice::{EntryChoice, EntryMatch, LoadFailure};
pub use container::{LoadableContainer, LoadableEntry};
pub use device::DeviceModes;
pub use file_use::{ContainerUse, FileUse};
pub use registration::{RegisteredWrapper, Registration};
