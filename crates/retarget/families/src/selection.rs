//! The families that a plan needs.

use crate::table::{FAMILIES, FamilyScope, find_family};
use hotswap_compat::{Strategy, ValidatedPair};
use hotswap_plan::{Plan, RetargetPair};
use hotswap_report::{Diagnostic, codes};

/// The families that make an alias: they cover every difference between objects of identical siblings.
pub const ALIAS_FAMILIES: &[&str] = &["machine_flags", "oclc_isa_version", "target_note", "user_sgpr_count"];

/// Families whose instructions source code names explicitly (builtins, assembly), and which LLVM 24 passes through
/// unchanged for gfx1250-strict as well: code that was written for another stepping keeps the difference.
pub const ASKED_FOR: &[&str] = &["ds_addtid", "tensor_mask"];

/// The pairs whose code must change, by the table of pairs. All code families run for these.
pub fn rewritten_pairs() -> impl Iterator<Item = ValidatedPair> {
    hotswap_compat::all_pairs().filter(|pair| pair.strategy == Strategy::Rewrite)
}

/// Names of the families that the plan's routes need or that it requests, sorted, each once.
///
/// # Errors
/// [`codes::UNKNOWN_FAMILY`] for a patch that no line of `patches.def` has, or for one that changes code if no pair of
/// the plan has code that changes.
pub fn families_of(plan: &Plan) -> Result<Vec<&'static str>, Diagnostic> {
    let changes_code = plan.pairs.iter().any(is_rewritten);
    let mut names = Vec::new();
    if !plan.pairs.is_empty() {
        names.extend_from_slice(ALIAS_FAMILIES);
    }
    if changes_code {
        names
            .extend(FAMILIES.iter().filter(|family| family.scope != FamilyScope::CodeObject).map(|family| family.name));
    }
    for patch in &plan.patches {
        let family = find_family(patch).ok_or_else(|| unknown_family(patch))?;
        if family.scope != FamilyScope::CodeObject && !changes_code {
            return Err(unused_family(patch));
        }
        names.push(family.name);
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn is_rewritten(pair: &RetargetPair) -> bool {
    rewritten_pairs().any(|rewritten| rewritten.source == pair.source && rewritten.target == pair.target)
}

fn unknown_family(patch: &str) -> Diagnostic {
    let known: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
    let advice = format!("known are {}", known.join(", "));
    Diagnostic::error(codes::UNKNOWN_FAMILY, format!("`{patch}`")).advise(advice)
}

/// A plan that requests it must not be carried out without it.
fn unused_family(patch: &str) -> Diagnostic {
    let pairs: Vec<_> = rewritten_pairs().map(|pair| format!("{}=>{}", pair.source, pair.target)).collect();
    let what = format!("`{patch}` changes code, and the plan has no pair whose code changes");
    Diagnostic::error(codes::UNKNOWN_FAMILY, what).advise(format!("such pairs are {}", pairs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alias_families_are_listed() {
        assert!(ALIAS_FAMILIES.iter().chain(ASKED_FOR).all(|name| find_family(name).is_some()));
    }

    #[test]
    fn pairs_need_the_alias_families_and_patches_must_be_known() {
        let mut plan = Plan::default();
        assert_eq!(families_of(&plan).unwrap(), [""; 0]);
        plan.add_patches("target_note").unwrap();
        assert_eq!(families_of(&plan).unwrap(), ["target_note"]);
        plan.add_pairs("gfx1030=>gfx1031").unwrap();
        assert_eq!(
            families_of(&plan).unwrap(),
            ["machine_flags", "oclc_isa_version", "target_note", "user_sgpr_count"]
        );
        plan.add_patches("teleport").unwrap();
        let error = families_of(&plan).unwrap_err();
        assert_eq!((error.code, error.what.as_str()), (codes::UNKNOWN_FAMILY, "`teleport`"));
    }

    #[test]
    fn a_pair_whose_code_changes_needs_every_family_and_a_family_of_code_such_a_pair() {
        let mut plan = Plan::default();
        plan.add_pairs("gfx1250=>gfx1250-strict").unwrap();
        let all: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(families_of(&plan).unwrap(), all);
        plan.add_patches("wmma_split").unwrap();
        assert_eq!(families_of(&plan).unwrap(), all);
        let mut idle = Plan::default();
        idle.add_pairs("gfx1030=>gfx1031").unwrap();
        idle.add_patches("wmma_split").unwrap();
        let error = families_of(&idle).unwrap_err();
        assert_eq!(error.code, codes::UNKNOWN_FAMILY);
        assert!(error.what.contains("no pair whose code changes"), "{}", error.what);
    }
}
