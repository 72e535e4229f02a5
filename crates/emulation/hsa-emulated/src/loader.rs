//! The loader of code objects, by the rules of ROCr's.
//!
//! | part | content |
//! | --- | --- |
//! | `object_image` | the tables of a file, checked: segments, symbols, relocations |
//! | `placement` | segments in memory, relocations applied |
//! | `executable` | executables: what is defined and loaded, symbols by name |
//! | `functions` | the functions of HSA |
//! | `extension` | AMD's extension, by which tools find loaded code objects |
//!
//! Invariants: a file that is damaged, or for another processor than the agent's, is refused with a status and one line; no
//! offset of a file is followed unchecked. Symbols are those of `.symtab` (of `.dynsym` with `LOADER_USE_DYNSYM`), and of
//! them objects and kernels that are not local. Only ROCr's five kinds of relocations are applied; sections with static
//! relocations are skipped.
//!
//! Absent on purpose: code objects of version 2, program code objects (LLVM makes none), code objects that link others.

mod executable;
mod extension;
mod functions;
mod object_image;
mod placement;

pub(crate) use executable::{LoadedKernel, kernel_at};
pub(crate) use extension::extension_table;
