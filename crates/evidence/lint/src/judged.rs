//! The rules that are judged for a target, and those that are not, with the reason.
//!
//! Invariants: a rule is *judged* if a fault of its kind in code for the target is found; it does not *concern* a target
//! whose hardware lacks such a fault. All else is *not judged*: no findings mean nothing then. Rows of the hazard
//! table that no check reads are listed by name.

use crate::finding::{
    BANK_MODE, CLAUSE, CONTROL_FLOW, DESCRIPTOR, ENCODING, HAZARD, LintRule, MATRIX_DISTANCE, MODE_DISTANCE,
    MULTICAST_MASK, REGISTERS, WAIT,
};
use hotswap_hazards::distance::{DistanceTarget, UNCHECKED};
use hotswap_hazards::{HazardRule, InstClass, Requirement, Stepping, rules_for};
use hotswap_isa::{Feature, Isa, Target};

/// Whether a rule is judged for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleJudgment {
    /// Faults that the rule describes are found.
    Judged,
    /// The target lacks such a fault.
    NotConcerned,
    /// Faults may be there and are not found, for that reason.
    NotJudged(String),
}

/// The rules of `hotswap lint` for a processor, each with its judgment; none for a processor that is not known.
#[must_use]
pub fn rule_judgments(processor: &str) -> Vec<(&'static LintRule, RuleJudgment)> {
    let Some(isa) = Target::find(processor).map(Isa::new) else { return Vec::new() };
    let strict = isa.has(Feature::Gfx1250Strict);
    vec![
        (&ENCODING, RuleJudgment::Judged),
        (&CONTROL_FLOW, RuleJudgment::Judged),
        (&BANK_MODE, judgment_when_concerned(isa.has(Feature::N1024AddressableVgprs))),
        (&MULTICAST_MASK, judgment_when_concerned(strict)),
        (&MATRIX_DISTANCE, matrix_distance(isa)),
        (&MODE_DISTANCE, judgment_when_concerned(strict)),
        (&HAZARD, judge_hazards(isa)),
        (&WAIT, RuleJudgment::Judged),
        (&CLAUSE, RuleJudgment::Judged),
        (&REGISTERS, RuleJudgment::Judged),
        (&DESCRIPTOR, RuleJudgment::Judged),
    ]
}

fn judgment_when_concerned(concerned: bool) -> RuleJudgment {
    if concerned { RuleJudgment::Judged } else { RuleJudgment::NotConcerned }
}

fn matrix_distance(isa: Isa) -> RuleJudgment {
    match Stepping::of_isa(isa) {
        Some(Stepping::Gfx1250Strict) => RuleJudgment::Judged,
        Some(_) => unjudged_for_reason("the distances of this stepping are not in the hazard table"),
        None if isa.has(Feature::MaiInsts) || isa.has(Feature::Gfx11Insts) => judge_distances(isa, true),
        None => RuleJudgment::NotConcerned,
    }
}

fn unjudged_for_reason(what: &str) -> RuleJudgment {
    RuleJudgment::NotJudged(what.to_owned())
}

fn judge_hazards(isa: Isa) -> RuleJudgment {
    if Stepping::of_isa(isa).is_none() {
        return judge_distances(isa, false);
    }
    let rows = rules_for(isa).filter_map(|row| Some(format!("{}: {}", row.name, unchecked_reason(row)?)));
    match rows.collect::<Vec<_>>() {
        left if left.is_empty() => RuleJudgment::Judged,
        left => RuleJudgment::NotJudged(format!("rows without a check: {}", left.join("; "))),
    }
}

/// Processors before GFX12.5 have rows of the table of distances, and hazards without a row.
fn judge_distances(isa: Isa, is_matrix: bool) -> RuleJudgment {
    let Some(target) = DistanceTarget::of_isa(isa) else {
        return unjudged_for_reason("the table of distances has no rows of this generation");
    };
    let own = UNCHECKED.iter().filter(|hazard| hazard.is_matrix == is_matrix && hazard.targets.contains(&target));
    match own.map(|hazard| hazard.text).collect::<Vec<_>>() {
        left if left.is_empty() => RuleJudgment::Judged,
        left => RuleJudgment::NotJudged(format!("hazards without a row: {}", left.join("; "))),
    }
}

/// A row of the hazard table for a target, with the rule that finds its faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowJudgment {
    /// The name of the row.
    pub row: &'static str,
    /// Its fault, for readers.
    pub requirement: String,
    /// The rule whose findings are its faults.
    pub rule: &'static LintRule,
    /// Whether they are found.
    pub judgment: RuleJudgment,
}

/// The rows of the hazard table for a processor.
#[must_use]
pub fn row_judgments(processor: &str) -> Vec<RowJudgment> {
    let Some(isa) = Target::find(processor).map(Isa::new) else { return Vec::new() };
    let rows = rules_for(isa).map(|row| RowJudgment {
        row: row.name,
        requirement: row.requirement.to_string(),
        rule: rule_of_row(row),
        judgment: unchecked_row_judgment(row),
    });
    rows.collect()
}

fn unchecked_row_judgment(row: &HazardRule) -> RuleJudgment {
    unchecked_reason(row).map_or(RuleJudgment::Judged, |why| RuleJudgment::NotJudged(why.to_owned()))
}

/// The rule that finds the faults of a row.
fn rule_of_row(row: &HazardRule) -> &'static LintRule {
    match (row.consumer, row.requirement) {
        (InstClass::Matrix | InstClass::VectorBesideMatrix, _) => &MATRIX_DISTANCE,
        (InstClass::SetsMode, _) => &MODE_DISTANCE,
        (InstClass::SetsBanks, _) => &BANK_MODE,
        (_, Requirement::WaitCounters) => &WAIT,
        _ => &HAZARD,
    }
}

/// The reason for which no check reads a row; `None` for all others: [`crate::matrix`] walks distances and waits within
/// a block, [`crate::managed`] waits under SCHED_MODE, the banks' rule finds what the hardware drops, [`crate::waits`]
/// follows loads, [`crate::dual`] pairs.
fn unchecked_reason(row: &HazardRule) -> Option<&'static str> {
    match (row.requirement, row.producer) {
        (Requirement::WaitXcnt, _) => Some("LLVM leaves out waits by rules of its own"),
        (Requirement::WaitAlu { .. }, InstClass::ScalarWritesScalar | InstClass::VectorWritesScalar) => {
            Some("LLVM does not wait there under SCHED_MODE 2")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::RULES;

    fn judgment(processor: &str, rule: &str) -> RuleJudgment {
        rule_judgments(processor).into_iter().find(|(one, _)| one.id == rule).unwrap().1
    }

    #[test]
    fn every_rule_has_a_judgment_for_every_processor() {
        let named: Vec<&str> = RULES.iter().filter(|rule| !rule.needs_original).map(|rule| rule.id).collect();
        for processor in ["gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250", "gfx1250-strict"] {
            let mut own: Vec<&str> = rule_judgments(processor).iter().map(|(rule, _)| rule.id).collect();
            assert_eq!(own.len(), named.len(), "{processor}");
            own.retain(|rule| !named.contains(rule));
            assert!(own.is_empty(), "{processor}: {own:?}");
        }
        assert!(rule_judgments("gfx0").is_empty());
    }

    #[test]
    fn what_is_not_judged_is_said() {
        for processor in ["gfx90a", "gfx942", "gfx1030", "gfx1100"] {
            assert_eq!(judgment(processor, "wait"), RuleJudgment::Judged, "{processor}");
            assert!(matches!(judgment(processor, "hazard"), RuleJudgment::NotJudged(_)), "{processor}");
        }
        assert_eq!(judgment("gfx1201", "wait"), RuleJudgment::Judged);
        let RuleJudgment::NotJudged(rows) = judgment("gfx1250", "hazard") else { panic!("all rows are checked?") };
        let expected = "rows without a check: vector-sgpr-read: LLVM does not wait there under SCHED_MODE 2; \
                        scalar-sgpr-read: LLVM does not wait there under SCHED_MODE 2; \
                        replay: LLVM leaves out waits by rules of its own";
        assert_eq!(rows, expected);
        assert_eq!(judgment("gfx1250-strict", "matrix-distance"), RuleJudgment::Judged);
    }
}
