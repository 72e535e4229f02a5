//! One more GPU for installed ROCm libraries: which files of a tree need code for it, and the tree that has them.
//!
//! | step | module |
//! | --- | --- |
//! | rules | [`rules`]: for each library its files, as one table of `hotswap-load-model` |
//! | look | [`read_tree`]: the files below the roots; `stock`: the targets of the code in them |
//! | plan | `request`; `source`: the GPU that a target is served from; [`plan`]: an action for each file, refusals by library |
//! | write | `tensile`: indices for other names; [`serve`]: the actions, by the functions of `hotswap retarget` (`maker`, `other_source`); [`manifest`]: what was written, and from what; [`environment`] |
//! | apart | `single_output`: one output without the tree, on any machine; [`made`]: its record, by which a run takes it (`made_outputs`) |
//! | packages | [`package_tree`]: an unpacked package, or a directory in its place; [`package_files`]: its files; [`package_names`]: the names of a package's libraries, which are installed beside those of others |
//! | use | `use_check`: what the GPUs get from the tree, compared with the original |
//! | try | [`trial`]: each library computes a known answer on an emulated GPU ([`probe`]) |
//! | later | [`check`]: what is stale; [`undo`]: removes what was written |
//!
//! Invariants: nothing is written outside of the destination, and no root is in it. A library is served as a whole or
//! not at all. A file gets its name only after its hash is in the journal, so that an interrupted run is continued or
//! undone. A second run changes nothing.
//!
//! Absent on purpose: files chosen by a table that
//! is compiled into the host library (AOTriton), whose rows say so; databases of kernels (MIOpen).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod check;
pub mod environment;
mod existing;
pub mod hash;
mod journal;
mod kept_outputs;
pub mod kernel_database;
pub mod made;
mod made_outputs;
mod maker;
pub mod manifest;
mod other_source;
mod output;
pub mod package_files;
pub mod package_names;
pub mod package_tree;
pub mod plan;
pub mod probe;
mod refusals;
mod request;
pub mod serve;
mod single_output;
mod source;
mod stock;
mod tensile;
pub mod tree_report;
pub mod trial;
pub mod undo;
pub mod use_check;

pub use hotswap_load_model::libraries as rules;
pub use hotswap_load_model::tree::{LibraryTree, read_tree};
pub use maker::OutputMaker;
pub use plan::{
    Action, DataDirectory, LibraryPlan, NameMode, OtherSource, OutputContent, ServeRequest, TreePlan, WantedTarget,
};
pub use serve::{Served, ServedLibrary, serve_tree};
pub use single_output::make_single_output;
pub use stock::{Stock, targets_of};
