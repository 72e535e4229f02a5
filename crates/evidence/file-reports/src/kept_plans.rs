//! Whether the plans of a file's manifests were carried out.
//!
//! A manifest names the plan of a program's link. It is confirmed where a fat binary's record has the plan, or where
//! nothing had to be made: code for each of its targets is present, or a generic target covers it.
//!
//! Absent on purpose: plans without pairs, which leave no trace.

use hotswap_families::manifest::PlanManifest;
use hotswap_plan::Plan;
use hotswap_report::{Diagnostic, Record, codes};
use hotswap_targets::{Processor, find_processor};

/// The records and targets of a file's containers.
#[derive(Debug, Default)]
pub struct PlanEvidence<'a> {
    pub records: Vec<&'a Record>,
    /// Target IDs of all images.
    pub targets: Vec<&'a str>,
}

impl PlanEvidence<'_> {
    /// One error for each plan that is in no record, and for which code is missing.
    pub fn check(&self, manifests: &[PlanManifest]) -> Vec<Diagnostic> {
        let unrecorded = manifests.iter().filter(|manifest| !self.records.iter().any(|r| r.plan == manifest.plan));
        unrecorded.filter_map(|manifest| self.problem(manifest)).collect()
    }

    fn problem(&self, manifest: &PlanManifest) -> Option<Diagnostic> {
        let plan = Plan::parse(&manifest.plan_text).ok()?;
        let missing: Vec<&str> = plan.targets().into_iter().filter(|target| !self.serves(target)).collect();
        let what = format!("the manifest names the plan {}, which no fat binary's record has", manifest.plan);
        (!missing.is_empty()).then(|| {
            let what = format!("{what}; code for {} is missing", missing.join(", "));
            Diagnostic::error(codes::PLAN_NOT_KEPT, what)
        })
    }

    fn serves(&self, target: &str) -> bool {
        let wanted = find_processor(target);
        let processors = self.targets.iter().filter_map(|id| find_processor(id.split(':').next()?));
        processors.into_iter().any(|one| processor_serves_target(one, target, &wanted))
    }
}

fn processor_serves_target(processor: &Processor, target: &str, wanted: &Option<&Processor>) -> bool {
    processor.name == target || wanted.is_some_and(|w| processor.covers(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(plan: &Plan) -> PlanManifest {
        let text = |text: &str| text.to_owned();
        let (hotswap, identity) = (text("0"), text("x"));
        PlanManifest {
            schema: 1,
            hotswap,
            identity,
            plan: plan.hash(),
            plan_text: plan.canonical_text(),
            families: Vec::new(),
        }
    }

    #[test]
    fn a_plan_must_be_recorded_or_have_left_nothing_to_make() {
        let mut plan = Plan::default();
        plan.add_pairs("gfx1030=>gfx1031,gfx1032").unwrap();
        let record = |plan: String| Record {
            schema: 1,
            hotswap: String::new(),
            identity: String::new(),
            plan,
            plan_text: String::new(),
            entries: Vec::new(),
            refused: Vec::new(),
        };
        let (same, other) = (record(plan.hash()), record("other".to_owned()));
        for (records, targets, missing) in [
            (vec![&same], vec!["gfx1030"], None),
            (vec![&other], vec!["gfx1030"], Some("gfx1031, gfx1032")),
            (vec![&other, &same], vec![], None),
            (vec![], vec!["gfx1030", "gfx1031"], Some("gfx1032")),
            (vec![], vec!["gfx1031", "gfx1032"], None),
            (vec![&other], vec!["gfx10-3-generic"], None),
            (vec![], vec![], Some("gfx1031, gfx1032")),
        ] {
            let found = PlanEvidence { records, targets: targets.clone() }.check(&[manifest(&plan)]);
            let told = found.first().map(|problem| problem.what.clone());
            let expected = missing.map(|missing| format!("code for {missing} is missing"));
            assert_eq!(told.is_some(), expected.is_some(), "{targets:?}: {told:?}");
            assert!(told.unwrap_or_default().ends_with(&expected.unwrap_or_default()), "{targets:?}");
        }
    }
}
