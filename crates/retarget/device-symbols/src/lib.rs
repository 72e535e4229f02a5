//! The functions of a code object as symbols: where they are, the registers that they need, what they call, and what a
//! kernel reaches.
//!
//! [`analyse`] makes the table of a file, linked or relocatable; [`note`] keeps it in a linked one. Kernels are in the
//! metadata of every file, device functions are not: the runtimes drop their symbols. All that is told here about them
//! comes from the bytes of the file.
//!
//! | module | task |
//! | --- | --- |
//! | `table` | the table: plain data, the same as JSON and in the note |
//! | `analysis` | from a file to a table |
//! | `code` | the functions and their calls, of all sections of code |
//! | `code_hash` | the hash of everything that a table depends on |
//! | `registers` | the highest registers that instructions name |
//! | `frame` | the size of a function's frame in scratch |
//! | `sources` | the source file of each function, by debug information |
//! | `stated` | what compiler and assembler state in the file about single functions |
//! | `joined` | the functions of code objects that are loaded together |
//! | `totals` | what a function needs with everything that it calls; recursion |
//! | `untyped` | functions under symbols without a type |
//! | `function_map` | names of functions and kernels as rows of text, for AMD's trace decoder |
//! | `note` | the note `.note.hotswap.devsyms` |
//!
//! Invariants: every number has its evidence ([`FactEvidence`]), and what is not known is said to be unknown: it never
//! becomes 0 or "none". A set of functions that a kernel reaches is *complete* only if every call in it is resolved. The
//! table depends on the file alone.
//!
//! Absent on purpose: control flow and decoding (`hotswap-program`, whose functions and calls these are), changing code
//! or descriptors, files and containers.

mod analysis;
mod code;
mod code_hash;
mod frame;
pub mod function_map;
mod joined;
pub mod note;
mod registers;
mod sources;
mod stated;
mod table;
mod totals;
mod untyped;

pub use analysis::{analyse_file, analyse_with};
pub use code_hash::code_hash;
pub use hotswap_program::{code_lanes, instructions};
pub use joined::join_tables;
pub use table::{
    Callee, Export, FactEvidence, Form, Function, FunctionKind, IMPORT_PREFIX, Import, IndirectCalls, Kernel, Number,
    Resources, SymbolTable,
};
