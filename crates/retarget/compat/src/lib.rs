//! Which code object serves which processor, and by what route.
//!
//! Four questions, each answered in one place: whether code of one processor may serve another at all ([`verdict`],
//! from the table [`MATRIX`]); whether HotSwap applies that pair ([`pair`]); by what route a requested target is
//! served, given the available code objects ([`route`]); and whether a code object passes the checks of its pair
//! ([`check`]). [`PairVerdict`], [`NeighbourPairs`] and [`matrix_report`] are these answers for people and programs.
//!
//! Invariants: everything is denied that is not proven; a native code object always wins; every refusal states its
//! reason.
//!
//! Absent on purpose: the conversion itself (`hotswap-families` labels, `hotswap-adapt` changes code).

mod check;
mod checks;
mod classes;
mod features;
mod matrix;
pub mod matrix_report;
pub mod names;
mod neighbour_report;
mod override_version;
mod pair_report;
mod pairs;
mod reasons;
mod route;
mod verdict;

pub use check::{Check, PassedCheck, PassedChecks, check_for, check_object};
pub use checks::user_sgprs16::shifts_to_make;
pub use classes::{Class, coalesced_classes};
pub use features::{Consequence, FEATURES, Feature, FeatureDifference, by_limits, feature_differences};
pub use matrix::{MATRIX, MatrixRow, MatrixVerdict, find_row as row};
pub use neighbour_report::NeighbourPairs;
pub use override_version::{Override, override_version};
pub use pair_report::PairVerdict;
pub use pairs::{PairStatus, Strategy, ValidatedPair, all_pairs, find_pair};
pub use route::{
    AllowedSiblings, AvailableObject, EXPERIMENTAL_ADVICE, Rejection, RoutePermissions, RouteRefusal, Selection,
    choose_route, choose_route_to, derive_target_id, derive_target_id_for,
};
pub use verdict::{Verdict, pair_verdict};
