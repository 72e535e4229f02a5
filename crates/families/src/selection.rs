//! Which families a plan needs.

use crate::table::{FAMILIES, Family, Scope, find};
use hotswap_plan::Plan;
use hotswap_report::{Diagnostic, codes};

/// The families that make an alias: everything in which identical siblings differ.
pub const ALIAS_FAMILIES: &[&str] = &["machine_flags", "target_note"];

/// Names of the families that the plan's routes need or that it asks for, sorted, each once.
///
/// # Errors
/// [`codes::UNKNOWN_FAMILY`] for a patch that no line of `patches.def` has, or that no route carries out yet.
pub fn families_of(plan: &Plan) -> Result<Vec<&'static str>, Diagnostic> {
    let mut names = Vec::new();
    if !plan.pairs.is_empty() {
        names.extend_from_slice(ALIAS_FAMILIES);
    }
    for patch in &plan.patches {
        names.push(find(patch).filter(|family| serves_plans(family)).ok_or_else(|| unknown(patch))?.name);
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Whether a route of a plan runs the family: those that label. Code is changed by no route yet, and a plan that asks for it
/// must not be carried out without it.
pub fn serves_plans(family: &Family) -> bool {
    family.scope == Scope::CodeObject
}

fn unknown(patch: &str) -> Diagnostic {
    let known: Vec<_> = FAMILIES.iter().filter(|family| serves_plans(family)).map(|family| family.name).collect();
    let advice = format!("known are {}", known.join(", "));
    Diagnostic::error(codes::UNKNOWN_FAMILY, format!("`{patch}`")).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alias_families_are_listed() {
        assert!(ALIAS_FAMILIES.iter().all(|name| find(name).is_some()));
    }

    #[test]
    fn pairs_need_the_alias_families_and_patches_must_be_known() {
        let mut plan = Plan::default();
        assert_eq!(families_of(&plan).unwrap(), [""; 0]);
        plan.add_patches("target_note").unwrap();
        assert_eq!(families_of(&plan).unwrap(), ["target_note"]);
        plan.add_pairs("gfx1030=>gfx1031").unwrap();
        assert_eq!(families_of(&plan).unwrap(), ["machine_flags", "target_note"]);
        plan.add_patches("teleport").unwrap();
        let error = families_of(&plan).unwrap_err();
        assert_eq!((error.code, error.what.as_str()), (codes::UNKNOWN_FAMILY, "`teleport`"));
        let mut code = Plan::default();
        code.add_patches("wmma_split").unwrap();
        assert_eq!(families_of(&code).unwrap_err().code, codes::UNKNOWN_FAMILY);
    }
}
