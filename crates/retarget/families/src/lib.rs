//! Patch families: the changes that HotSwap can make to a code object, each by name.
//!
//! `patches.def` lists them. A listed family has one file in `src/family` with one unmangled registrar, which fills the
//! family's slot in the registry. The same list gives one C registrar per family in `libhotswap_registry.a`, and the
//! [`manifest`] in each link with a plan refers to them: a family without a registrar links neither into the tools nor
//! into a user's program.
//!
//! Not here: the permitted pairs of targets (`hotswap-compat`), files, run-time plugins.

pub mod archive;
pub mod c_source;
pub mod carried_out;
pub mod code;
mod family;
pub mod manifest;
pub mod patches_def;
mod registry;
mod selection;
mod table;
mod third_party;

pub use registry::{FamilyAnswer, FamilyRefusal, FamilyRegistry, FamilyRewriter};
pub use selection::{ALIAS_FAMILIES, ASKED_FOR, families_of, rewritten_pairs};
pub use table::{FAMILIES, FamilyScope, PatchFamily, find_family};
