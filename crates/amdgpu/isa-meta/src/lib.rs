//! The parts of the instruction set that exist at development time only: the model of the rows, their text, the
//! importer that writes them, and the generator that turns them into the tables of `hotswap-isa-tables`.
//!
//! Data flow: `llvm-tblgen --dump-json` ─import─► [`model::Model`] ─► `crates/amdgpu/isa-tables/rows/*.isa` (committed,
//! read in review) ─build script of `hotswap-isa-tables`─► static tables.
//!
//! Invariants: reading the written text gives the same model; the order of everything is fixed by the rows, never by a
//! hash map.
//!
//! Absent on purpose: behaviour. How a kind of operand is decoded and printed is code of `hotswap-isa`.

pub mod generate;
#[cfg(feature = "import")]
pub mod import;
pub mod model;
pub mod rows;
