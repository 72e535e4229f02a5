//! Reports about files with device code, as text for people and JSON for programs.
//!
//! | module | report |
//! | --- | --- |
//! | [`provenance`], [`statements`] | the origin of the code of a file, checked against the records; as SPDX and in-toto |
//! | [`container_json`], [`code_objects`] | containers; the code objects of a file one by one, findings about them |
//! | [`function_tables`], [`symbol_report`] | the functions of code objects; [`call_graph`], [`flow_graph`] and [`side_car`] for other programs |
//! | [`retarget_report`], [`rewrite_report`], [`function_changes`] | results for targets, changes to code; [`repro`] saves the data of a refusal |
//! | [`proof_report`] | the proof of a rewrite |
//! | [`container_uses`], [`opened_files`], [`required_gpus`], [`kept_plans`] | what HIP and the libraries load for a GPU, and whether plans were carried out |
//! | [`target_list`] | the processors that HotSwap knows |
//! | [`grouped`], [`calendar`] | diagnostics as lines, times |
//!
//! A reason for a crate: all commands, and tests of other crates, state one fact in one form, and a form depends on no command.
//!
//! Absent on purpose: arguments, printing, exit codes and progress on a terminal (the command `hotswap`).

pub mod calendar;
pub mod call_graph;
pub mod code_objects;
pub mod container_json;
pub mod container_uses;
pub mod flow_graph;
pub mod function_changes;
pub mod function_tables;
pub mod grouped;
pub mod kept_plans;
pub mod opened_files;
pub mod proof_report;
pub mod provenance;
pub mod repro;
pub mod required_gpus;
pub mod retarget_report;
pub mod rewrite_report;
pub mod side_car;
pub mod statements;
pub mod symbol_report;
pub mod target_list;
