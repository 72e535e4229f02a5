//! Lays a code object out anew when instructions of it are inserted, replaced or removed.
//!
//! Flow: the file is taken apart ([`hotswap_code_object::image`]). Code sections are scanned for everything that
//! depends on distances. A map from old places to new ones is made until all branches reach. Sections whose content
//! depends on distances (line tables, lists, call frames) are encoded again. Everything is placed. Symbols,
//! relocations, fields, descriptors and the loader's tables are written. The result is read again and checked.
//!
//! Invariants: unedited instructions keep their bytes except for distances. Code between two changes is copied as a
//! block. Without edits the output is identical to the input. Nothing is guessed: a distance whose meaning cannot be
//! proven is a refusal that names it.
//!
//! In a file that was linked without its relocations everything moves or nothing does: a function that cannot be
//! explained may depend on any distance. There functions that have to grow are first moved to a [`pool`], after
//! everything else.
//!
//! | modules, each of which uses those above it | task |
//! | --- | --- |
//! | `code`, `place`, `map`, `edit`, `padding`, `packed` | instructions with distances, functions and data, the map of a section, edits, padding, compressed sections |
//! | `known` | analysis of sections without relocations |
//! | `scan` | distances in a section, positions of edits |
//! | `plan` | the new layout of one section |
//! | `fix` | old to new places of the whole file |
//! | `tables`, `dwarf`, `distances`, `relocate` | symbols and descriptors; debug information; distances in code; relocations |
//! | `proof`, `verify` | that nothing unexplained moves; that the result can be read |
//! | `rewrite`, `pool` | the sequence of the phases; functions that are moved to a pool |
//!
//! Absent on purpose: what to insert and why (`hotswap-families`), register liveness, trampolines inside of functions.

mod code;
mod distances;
mod dwarf;
mod edit;
mod fix;
mod inputs;
mod known;
mod map;
mod packed;
mod padding;
mod place;
mod plan;
mod pool;
mod proof;
mod relocate;
mod rewrite;
mod scan;
mod tables;
mod verify;

pub use edit::{CodeEdits, EditFixup};
pub use inputs::{LentProgram, MovableTail, SectionContent};
pub use plan::{FreeSgprs, LongBranch};
pub use pool::{MovedFunction, OutlinedFile, move_to_pools};
pub use rewrite::{RewriteOptions, RewrittenObject, rewrite_image, rewrite_object};
pub use verify::verify_object;

use hotswap_report::{Diagnostic, codes};

/// A refusal: something that cannot be laid out anew, and its offset in the file.
fn refuse_layout(offset: u64, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NO_LAYOUT, what).at_offset(offset)
}
