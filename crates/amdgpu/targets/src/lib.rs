//! AMD GPU processors, target IDs and the ELF header flags that encode them.
//!
//! [`PROCESSORS`] is the one table; nothing is computed from names or numbers, because neither is in order. The table
//! holds every processor that LLVM 24 assembles for and the two withdrawn ones (`gfx940`, `gfx941`), which are known so
//! that they can be refused by name. A test compares every row with the compilers that are available.
//!
//! [`PRODUCTS`] is the table of products with a GPU; commands that people type a GPU into take their names, too.
//!
//! Absent on purpose: which processor's code runs on which others (`hotswap-compat`), ELF
//! itself (`hotswap-code-object`).

mod capability;
mod compilers;
mod flags;
mod hardware;
mod limits;
mod processor;
mod products;
mod selection;
mod table;
mod target_id;

pub use capability::{Capabilities, Capability};
pub use compilers::OLDEST_LLVM;
pub use flags::{EFlags, FeatureBits, FlagsError};
pub use limits::{Lds, Limits, SgprFile, Sgprs, Vgprs};
pub use processor::{
    IsaFamily, Processor, ProcessorKind, Support, WaveSizes, by_mach, by_triple, find_processor, require_processor,
};
pub use products::{
    AmbiguousProduct, GpuProduct, PRODUCTS, describe_unknown, products_of, resolve_or_refuse, resolve_processor,
    suggest_processor,
};
pub use selection::{Selection, selected_count, selected_names};
pub use table::PROCESSORS;
pub use target_id::{FeatureSettings, TargetError, TargetId};
