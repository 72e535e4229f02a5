//! Control flow: from the source of a section to its functions with their blocks and edges.
//!
//! | | in |
//! |---|---|
//! | functions while they are found, and registers that calls of them change | [`draft`], [`clobbers`] |
//! | the section, with a classifier of its instructions | [`sift`], [`context`] |
//! | targets of jumps and calls through registers | [`const_prop`] |
//! | calls at the ends of functions | [`last_call`] |
//! | paths from the entries of a function, blocks | [`scan`] |
//! | jumps by tables | [`tables`] |
//! | functions on which nothing else depends | [`leaf_scan`] |
//! | all functions: order, entries, results | [`order`], [`builder`] |
//!
//! Invariants: data comes before the passes that fill it in, and [`builder`] after all of them: no module imports one
//! further down in this table.

pub(crate) mod builder;
mod clobbers;
mod const_prop;
mod context;
mod draft;
mod last_call;
mod leaf_scan;
mod order;
mod scan;
mod sift;
mod tables;
