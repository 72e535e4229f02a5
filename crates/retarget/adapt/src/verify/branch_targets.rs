//! The targets of branches.
//!
//! Invariant: a branch leads to the new place of the code to which it led before.

use super::PlanDifference;
use super::offset_map::CodeOffsetMap;
use rayon::prelude::*;

/// A branch of the input, with where it leads in the result.
pub(super) struct FollowedBranch {
    /// Its target in the input.
    pub(super) target: u32,
    /// Its own offset in the result.
    pub(super) at: u32,
    /// Its target in the result.
    pub(super) to: u32,
}

/// The first branch in order that leads elsewhere is reported, whichever is found first.
pub(super) fn check_branch_targets(
    branches: &[Vec<FollowedBranch>],
    followed: &CodeOffsetMap,
) -> Result<(), PlanDifference> {
    let lists = branches.par_iter().with_max_len(1);
    let wrong =
        lists.find_map_first(|list| list.iter().find(|branch| followed.new_start(branch.target) != Some(branch.to)));
    match wrong {
        Some(FollowedBranch { target, at, to }) => {
            Err((*at, format!("a branch leads to {to:#x}, but its target ({target:#x}) was moved elsewhere")))
        }
        None => Ok(()),
    }
}
