//! Lays a code object out anew when instructions of it are inserted, replaced or removed.
//!
//! Flow: the file is taken apart ([`hotswap_code_object::image`]); code sections are scanned for everything that
//! depends on distances; a map from old places to new ones is made until all branches reach; sections whose content
//! depends on distances (line tables, lists, call frames) are encoded again; everything is placed; symbols,
//! relocations, fields, descriptors and the loader's tables are written; the result is read again and checked.
//!
//! Invariants: instructions that nobody edits keep their bytes but for distances; code between two changes is copied as
//! a block; without edits the file comes back byte for byte; nothing is guessed: a distance whose meaning cannot be
//! proven is a refusal that names it.
//!
//! In a file that was linked without its relocations everything moves or nothing does: nobody knows what a function counts
//! on that cannot be explained. There functions that have to grow go to a [`pool`] first, behind everything else.
//!
//! Absent on purpose: what to insert and why (`hotswap-families`), register liveness, trampolines inside of functions.

mod code;
mod distances;
mod dwarf;
mod edit;
mod fix;
mod known;
mod map;
mod packed;
mod padding;
mod place;
mod plan;
mod pool;
mod relocate;
mod rewrite;
mod scan;
mod tables;
mod verify;

pub use edit::{Edits, Fixup};
pub use plan::LongBranch;
pub use pool::{Moved, Pooled, pool};
pub use rewrite::{Options, Output, Registers, rewrite};
pub use verify::verify;

use hotswap_report::{Diagnostic, codes};

/// Something that cannot be laid out anew: what, and at which offset of the file.
fn refuse(offset: u64, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NO_LAYOUT, what).at(offset)
}
