//! The axis of the judges: the pairs of processors that plans apply, and how the product makes a target's code object.
//!
//! Invariants: pairs come from the table of pairs, so that a new row is judged without a change here. A code object goes the
//! product's way: the checks of its pair, then the rewriter or the families of a label.

use hotswap_adapt::AdaptRequest;
use hotswap_code_object::CodeObject;
use hotswap_compat::{PairStatus, Strategy, all_pairs, check_object, derive_target_id, shifts_to_make};
use hotswap_families::FamilyRegistry;
use hotswap_report::{Diagnostic, FamilyCount};
use hotswap_rewrite_exam::exam::run;
use std::fmt;

/// A pair of processors whose code is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JudgedPair {
    pub source: &'static str,
    pub target: &'static str,
    /// Whether code changes; else only the label does.
    pub is_rewritten: bool,
}

/// The pair whose code is rewritten.
pub const STEPPINGS: JudgedPair = JudgedPair { source: "gfx1250", target: "gfx1250-strict", is_rewritten: true };

/// The product's result for a code object.
#[derive(Debug)]
pub struct MadeObject {
    pub bytes: Vec<u8>,
    /// Changed instructions by family, or kernels with copies at their entries; none where only the label changes.
    pub families: Vec<FamilyCount>,
}

/// The pairs that plans apply without being asked for, in the order of the table.
pub fn judged_pairs() -> impl Iterator<Item = JudgedPair> {
    let applied = all_pairs().filter(|pair| pair.status == PairStatus::Validated);
    applied.map(|pair| JudgedPair {
        source: pair.source,
        target: pair.target,
        is_rewritten: pair.strategy == Strategy::Rewrite,
    })
}

impl JudgedPair {
    /// The target's code object.
    ///
    /// # Errors
    /// Refusals, one line each.
    pub fn make(&self, original: &[u8]) -> Result<MadeObject, Vec<String>> {
        if self.is_rewritten {
            let made = run(original, false)?;
            return Ok(MadeObject { bytes: made.bytes, families: made.record.families });
        }
        self.relabel(original).map_err(|found| found.iter().map(ToString::to_string).collect())
    }

    fn relabel(&self, original: &[u8]) -> Result<MadeObject, Vec<Diagnostic>> {
        let object = CodeObject::parse(original).map_err(single_refusal)?;
        let target = derive_target_id(&object.target_id(), self.target).map_err(single_refusal)?;
        check_object(&object, &target)?;
        let shifts = shifts_to_make(&object, &target);
        if !shifts.is_empty() {
            let order = AdaptRequest { target, keep_machine: false };
            let made = hotswap_adapt::copy_system_sgprs(&object, &shifts, &order)?;
            let counts = made.record.families.into_iter().filter(|family| family.name == "user_sgpr_count");
            return Ok(MadeObject { bytes: made.bytes, families: counts.collect() });
        }
        let (bytes, _) = FamilyRegistry::installed().apply_families(&object, &target).map_err(single_refusal)?;
        Ok(MadeObject { bytes, families: Vec::new() })
    }
}

fn single_refusal(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

impl fmt::Display for JudgedPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=>{}", self.source, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_applied_pair_is_judged_once_and_one_is_rewritten() {
        let pairs: Vec<JudgedPair> = judged_pairs().collect();
        let rewritten: Vec<JudgedPair> = pairs.iter().copied().filter(|pair| pair.is_rewritten).collect();
        assert_eq!(rewritten, [STEPPINGS], "the exam's rewriter, `run`, has one target");
        assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
        let applied = |pair: &hotswap_compat::ValidatedPair| pair.status == PairStatus::Validated;
        assert_eq!(pairs.len(), all_pairs().filter(applied).count());
    }
}
