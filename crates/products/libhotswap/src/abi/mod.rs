//! The functions of `hotswap.h`, one for each declaration. Each runs its body in `boundary::call`.
#![allow(unsafe_code)] // pointers of callers in C: each function has the promises of the header

mod bindings;
mod boundary;
mod errors;
mod files;
mod functions;
mod images;
mod instructions;
mod loaded;
mod outputs;
mod process;

pub use bindings::*;
pub use errors::*;
pub use files::*;
pub use functions::*;
pub use images::*;
pub use instructions::*;
pub use loaded::*;
pub use outputs::*;
pub use process::*;
