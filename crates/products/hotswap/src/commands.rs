//! The commands, each with its arguments and its report.
//!
//! Invariants: no command uses another one; functions that several need are in [`crate::work`].

pub(crate) mod addr2func;
pub(crate) mod bind;
pub(crate) mod bundle;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod compat;
pub(crate) mod confirm;
pub(crate) mod diff;
pub(crate) mod disasm;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod extract;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod manifest;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod retarget;
pub(crate) mod rewrite;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod size;
pub(crate) mod symbols;
pub(crate) mod tables;
pub(crate) mod toolchain;
pub(crate) mod uses;
pub(crate) mod verify;
