//! The plain C side of the registry: the declarations of `hotswap_registry.h`, and the same in Rust.
//!
//! Third-party families are linked statically into tools that are built from HotSwap's libraries. A tool lists them
//! with [`registrars!`]: each name becomes a strong reference to `hotswap_register_<name>_patch`, so that one without a
//! registrar does not link. Examples in C and in Rust are in `examples`.
//!
//! Invariants: only plain C types; the layouts are those of the header (a test compiles it and compares); members are
//! only appended, with a new [`VERSION`].
//!
//! Absent on purpose: calling anything (`hotswap-families` does), loading at run time.

#![warn(missing_docs)]

use std::ffi::{c_char, c_void};

/// `hotswap_registry.h`.
pub const HEADER: &str = include_str!("../include/hotswap_registry.h");

/// Version of the registry: 1 has [`Registry::bind`], 2 has [`Registry::bind_rewriter`].
pub const VERSION: u32 = 2;

/// Files of registers.
pub mod files {
    /// Vector registers, 0 to 1023.
    pub const VGPR: u32 = 0;
    /// Scalar registers.
    pub const SGPR: u32 = 1;
}

/// The value for an unknown number.
pub const UNKNOWN: u32 = u32::MAX;

/// The results of a rewriter.
pub mod answers {
    /// The next family is tried.
    pub const NOT_MINE: i32 = 0;
    /// The instruction is kept unchanged.
    pub const LEAVE: i32 = 1;
    /// The emitted code replaces it.
    pub const REPLACE: i32 = 2;
    /// It cannot be made to run on the target.
    pub const REFUSE: i32 = 3;
}

/// `struct hotswap_family`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Family {
    /// Name, as in the registrar's symbol.
    pub name: *const c_char,
    /// The unit of one run.
    pub scope: *const c_char,
    /// Position among the families of its scope.
    pub order: u32,
    /// A short description of its changes.
    pub summary: *const c_char,
}

/// `struct hotswap_site`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Site {
    /// Size of this structure.
    pub size: u32,
    /// Bytes of the instruction.
    pub length: u32,
    /// The instruction.
    pub code: *const u8,
    /// Without suffix of the encoding.
    pub mnemonic: *const c_char,
    /// Processor that it was written for.
    pub source: *const c_char,
    /// Processor that it is to run on.
    pub target: *const c_char,
    /// Low byte of `s_set_vgpr_msb`, or [`UNKNOWN`].
    pub bank_mode: u32,
    /// 1: the program may have switched off the hardware's interlocks.
    pub own_scheduling: u32,
}

/// `struct hotswap_surroundings`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Surroundings {
    /// Size of this structure.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// For the functions.
    pub context: *const c_void,
    /// Around, file, count, alignment: the first register, or [`UNKNOWN`].
    pub free_registers: unsafe extern "C" fn(*const Self, u32, u32, u32) -> u32,
    /// Around, file, first, count: 1 if none of them is read.
    pub is_dead_after: unsafe extern "C" fn(*const Self, u32, u32, u32) -> u32,
}

/// `struct hotswap_answer`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Answer {
    /// Size of this structure.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// For the functions.
    pub context: *mut c_void,
    /// Appends instructions.
    pub emit: unsafe extern "C" fn(*mut Self, *const u8, u32),
    /// States the reason.
    pub explain: unsafe extern "C" fn(*mut Self, *const c_char),
}

/// The function of a family: its context, the site, its surroundings, the answer.
pub type Rewrite = unsafe extern "C" fn(*mut c_void, *const Site, *const Surroundings, *mut Answer) -> i32;

/// `struct hotswap_rewriter`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Rewriter {
    /// Size of this structure.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Name and summary.
    pub family: Family,
    /// For the function.
    pub context: *mut c_void,
    /// The function; a null pointer is a defect.
    pub rewrite: Option<Rewrite>,
}

// Sound: the texts are constant, and the header requires that threads may share function and context.
#[allow(unsafe_code)]
unsafe impl Sync for Rewriter {}
#[allow(unsafe_code)]
unsafe impl Send for Rewriter {}

/// `struct hotswap_registry`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Registry {
    /// [`VERSION`] of the maker.
    pub version: u32,
    /// For the functions.
    pub context: *mut c_void,
    /// Binds a family without a function.
    pub bind: unsafe extern "C" fn(*mut Self, *const Family),
    /// Binds a family with one.
    pub bind_rewriter: unsafe extern "C" fn(*mut Self, *const Rewriter),
}

/// A registrar with the name of its family.
#[derive(Debug, Clone, Copy)]
pub struct Registrar {
    /// Name of the family.
    pub name: &'static str,
    /// `hotswap_register_<name>_patch`.
    pub register: unsafe extern "C" fn(*mut Registry),
}

/// A constant slice of [`Registrar`]s, in the order in which their families are tried.
///
/// `registrars! { pub static FAMILIES: no_sethalt = hotswap_register_no_sethalt_patch }`. Each symbol is referenced: an
/// undefined one is an error of the link, which names it.
#[macro_export]
macro_rules! registrars {
    ($(#[$attribute:meta])* $visibility:vis static $table:ident: $($name:ident = $symbol:ident),+ $(,)?) => {
        unsafe extern "C" {
            $(fn $symbol(registry: *mut $crate::Registry);)+
        }
        $(#[$attribute])*
        $visibility static $table: &[$crate::Registrar] =
            &[$($crate::Registrar { name: stringify!($name), register: $symbol }),+];
    };
}
