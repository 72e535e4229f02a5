//! The functions that several commands share.
//!
//! Invariant: nothing here knows a command, its arguments or its outcome.

pub(crate) mod code_objects;
pub(crate) mod inventory;
pub(crate) mod packages;
pub(crate) mod tables;
pub(crate) mod terminal_progress;
pub(crate) mod unknown_variables;

pub(crate) use hotswap_file_edit::kept_gpus;
pub(crate) use hotswap_report::text;
pub(crate) use hotswap_stack::package_tree;
pub(crate) use hotswap_toolchain::{comgr, probe, temporary};
