//! The plan of a relocatable unit, kept in its object until its device link carries it out.
//!
//! The link of the unit may be another command of another project, with or without a plan of its own. So the object
//! has the plan's canonical text in a section, and an undefined symbol of its own that only a device link with that
//! plan defines: any other link fails, in any linker.
//!
//! Absent on purpose: writing and reading objects (`hotswap-bundle`, `hotswap-families`).

use crate::plan::Plan;
use crate::words::PLAN;
use hotswap_report::{Diagnostic, codes};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Section with the plan's canonical text; host linkers leave it out of programs (`SHF_EXCLUDE`).
pub const UNIT_PLAN_SECTION: &str = ".hotswap.plan";
/// Section with the reference to the symbol. Linkers keep it.
pub const UNIT_REFERENCE_SECTION: &str = "hotswap_unit_reference";
/// Begin of the symbol, which linkers print where it is undefined.
pub const UNIT_SYMBOL: &str = "__hotswap_plan_of_this_object_was_not_carried_out__link_it_by_hotswap_clang__";

/// The symbol of the unit with these bytes.
pub fn unit_symbol(object: &[u8]) -> String {
    format!("{UNIT_SYMBOL}{}", hotswap_report::hex_digits(&Sha256::digest(object)[..8]))
}

/// The plans in a section; a partial link joins the sections of its units.
///
/// # Errors
/// [`hotswap_report::codes::PLAN_SYNTAX`] where one cannot be read.
pub fn parse_unit_plans(section: &str) -> Result<Vec<Plan>, Diagnostic> {
    let mut plans: Vec<Plan> = Vec::new();
    let mut lines = String::new();
    for line in section.split(['\n', '\0']).filter(|line| !line.is_empty()) {
        if line.starts_with("hotswap-plan ") && !lines.is_empty() {
            plans.push(Plan::parse(&lines)?);
            lines.clear();
        }
        lines += line;
        lines.push('\n');
    }
    if !lines.is_empty() {
        plans.push(Plan::parse(&lines)?);
    }
    plans.dedup();
    Ok(plans)
}

/// Adds to a link's plan the pairs of its units whose targets it does not have; returns whether there are any.
pub fn add_unit_targets(plan: &mut Plan, needed: &Plan) -> bool {
    let known: Vec<String> = plan.targets().into_iter().map(str::to_owned).collect();
    let new: Vec<_> = needed.pairs.iter().filter(|pair| !known.contains(&pair.target)).cloned().collect();
    let is_changed = !new.is_empty();
    plan.pairs.extend(new);
    is_changed
}

/// Adds the pairs of another plan that has the same options.
///
/// # Errors
/// [`hotswap_report::codes::PLAN_CONFLICT`]: other options, or another source for the same target.
pub fn join_plans(plan: &mut Plan, other: &Plan) -> Result<(), Diagnostic> {
    if clear_plan_pairs(plan) != clear_plan_pairs(other) {
        let what = format!("{}{} and {}{} have different options", PLAN, plan.hash(), PLAN, other.hash());
        return Err(Diagnostic::error(codes::PLAN_CONFLICT, what));
    }
    for pair in &other.pairs {
        if let Some(known) = plan.pairs.iter().find(|known| known.target == pair.target && known.source != pair.source)
        {
            return Err(Diagnostic::error(codes::PLAN_CONFLICT, format!("one has {known}, another one {pair}")));
        }
    }
    plan.pairs.extend(other.pairs.iter().cloned());
    Ok(())
}

fn clear_plan_pairs(plan: &Plan) -> Plan {
    Plan { pairs: BTreeSet::new(), ..plan.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_sections_have_each_plan_once() {
        let plan = |pairs: &str| {
            let mut plan = Plan::default();
            plan.add_pairs(pairs).unwrap();
            plan
        };
        let (one, two) = (plan("gfx1030=>gfx1031,gfx1032"), plan("gfx900=>gfx902"));
        let text = format!("{}\0\0{}{}", one.canonical_text(), one.canonical_text(), two.canonical_text());
        assert_eq!(parse_unit_plans(&text).unwrap(), [one, two]);
        assert_eq!(parse_unit_plans("").unwrap(), []);
        assert!(parse_unit_plans("hotswap-plan 9\n").is_err());
        assert_ne!(unit_symbol(b"a"), unit_symbol(b"b"));
    }

    #[test]
    fn plans_with_other_targets_are_joined() {
        let plan = |pairs: &str| {
            let mut plan = Plan::default();
            plan.add_pairs(pairs).unwrap();
            plan
        };
        let mut joined = plan("gfx1030=>gfx1031");
        join_plans(&mut joined, &plan("gfx1030=>gfx1031,gfx1032;gfx900=>gfx902")).unwrap();
        assert_eq!(joined, plan("gfx1030=>gfx1031,gfx1032;gfx900=>gfx902"));
        let other_source = join_plans(&mut joined, &plan("gfx1032=>gfx1031")).unwrap_err();
        assert_eq!(other_source.code, codes::PLAN_CONFLICT);
        let other_options = Plan { experimental: true, ..plan("gfx1030=>gfx1033") };
        assert_eq!(join_plans(&mut joined, &other_options).unwrap_err().code, codes::PLAN_CONFLICT);
    }
}
