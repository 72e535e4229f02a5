//! The functions that several commands share.
//!
//! Invariant: nothing here knows a command, its arguments or its outcome.

pub(crate) mod code_objects;
pub(crate) mod comgr;
pub(crate) mod functions;
pub(crate) mod grouped;
pub(crate) mod inventory;
pub(crate) mod kept_plans;
pub(crate) mod packages;
pub(crate) mod probe;
pub(crate) mod provenance;
pub(crate) mod tables;
pub(crate) mod temporary;
pub(crate) mod terminal_progress;
pub(crate) mod text;
pub(crate) mod unknown_variables;

pub(crate) use hotswap_file_edit::kept_gpus;
pub(crate) use hotswap_stack::package_tree;
