//! Files that tests of several crates make: code objects, host objects, libraries and archives, and the real compilers of
//! the userland to compare with.
//!
//! Invariant: nothing here uses a crate of the product, so that a test compares it with something else.
//!
//! Absent on purpose: the userland itself (`hotswap-userland`), samples of one crate alone.

pub mod clangs;
pub mod code_object;
pub mod device_elf;
pub mod host_files;
