//! `libhotswap-names.so`: programs that preload it, or link it before HIP, see the name of another GPU.
//!
//! Host code that chooses kernels or files by the GPU's name is right for relabelled code only if it sees the name that
//! the code was compiled for. `exports` defines the functions of HIP that return the name or load code, before HIP's own:
//!
//! | function | here |
//! | --- | --- |
//! | properties of a device | HIP's answer, with the name replaced (`properties`) |
//! | loads of code objects | code for the shown name is relabelled for the device (`loads`, `relabel`), HIP loads the result |
//! | `hipGetProcAddress`; `dlsym` and `dlvsym` of the loader (`look_ups`) | these functions for HIP's |
//!
//! `scope` decides by the caller's address which names it sees: those of [`VARIABLE`], or those of the served tree that
//! the calling library is in ([`ServedTree`]).
//!
//! Invariants: a GPU that is not named, and a caller that sees no other names, get HIP's own answers. Code is relabelled
//! only for identical siblings, by the path of all tools (`hotswap-pipeline`); otherwise HIP gets the original image and
//! returns its own error. No panic reaches the caller. Launches are not wrapped.
//!
//! Absent on purpose: names from HSA.

#[cfg(target_os = "linux")]
mod cache;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod exports;
#[cfg(target_os = "linux")]
mod hip;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod libc_symbols;
#[cfg(target_os = "linux")]
mod loader;
#[cfg(target_os = "linux")]
mod loads;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod look_ups;
mod message;
mod name_map;
#[cfg(target_os = "linux")]
mod properties;
mod relabel;
#[cfg(target_os = "linux")]
mod scope;
mod served_tree;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use exports::exported_functions;
pub use name_map::{NameMap, NamePair, NamesError};
#[cfg(target_os = "linux")]
pub use properties::{NAME_SIZE, PropertiesLayout, R0000, R0600};
pub use relabel::{Relabelled, needed_pairs, relabel_image};
#[cfg(target_os = "linux")]
pub use scope::{TREE_VARIABLE, VARIABLE};
pub use served_tree::{FILE, ServedTree};
