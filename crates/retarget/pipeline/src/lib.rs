//! The common path of all tools: the input is a fat binary and a plan or the names of targets, the output a fat binary
//! with every target, read back and compared.
//!
//! Invariants: existing entries are unchanged, in their order; a target that was compiled is never replaced; a second
//! run changes nothing; the same input and plan give the same bytes.
//!
//! A plan becomes a [`RetargetRequest`] ([`expand()`]), a request for a finished file names its targets ([`retarget()`]). From
//! there on the way is one:
//!
//! | step | modules |
//! | --- | --- |
//! | parse | `parse`: the bundle's code objects (`entry`), with their `companion`s |
//! | derive | `serve`: the source of each target, the check of its `names`; `other_source`: which may take its place; `derive`: the code object; `policy`: refusals; `superseded` entries |
//! | record | `record`: a row for each entry, and the plan |
//! | write | `write`: the new bundle, read back |
//! | compare, in a link | `complete`: the bundle has what the command requested |
//!
//! Absent on purpose: files and printing (the interposer and the `hotswap` command do both), the layout of a bundle or
//! a code object (`hotswap-bundle`, `hotswap-code-object`).

pub mod companion;
mod complete;
mod derive;
mod entry;
mod expand;
mod names;
mod other_source;
mod parse;
mod policy;
mod record;
mod request;
mod retarget;
mod serve;
mod standalone;
mod superseded;
mod unit_kernels;
mod write;

pub use complete::{MissingCode, find_missing};
pub use expand::{Expansion, NOTHING_TO_ADD, expand_bundle};
pub use names::{disagreements_of_plan, disagreements_of_shown_names};
pub use other_source::{can_stand_in, has_same_kernels};
pub use policy::{TargetRefusal, check_pair, check_plan};
pub use request::{OutcomeSubject, RetargetRequest, SourcePolicy, TargetOutcome, TargetResult, plan_targets};
pub use retarget::{RetargetedBundle, retarget};
pub use standalone::{
    BundledSource, HOST_ENTRY, bundle_of, bundle_standalone, entry_id, relabel_standalone, retarget_archived,
};
pub use unit_kernels::{LostKernel, UnitKernels, find_lost_kernels};
