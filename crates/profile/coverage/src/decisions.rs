//! MC/DC over several targets: a condition is covered if two executed test vectors show that it decides the result alone.
//!
//! Invariant: the vectors of all targets count together, as llvm-cov's would after merging the profiles of one text.
//!
//! Absent on purpose: conditions that the compiler folds to a constant, which the export does not tell from others; where
//! one target has a file, llvm-cov's own figures are taken, which leave them out.

use crate::export::{Decision, SourceExtent, TestVector};
use crate::ratio::Ratio;
use std::collections::{BTreeMap, BTreeSet};

/// The decisions of a file, by position and number of conditions: texts of targets may differ at one position.
#[derive(Debug, Default)]
pub(crate) struct Decisions(BTreeMap<(SourceExtent, usize), BTreeSet<TestVector>>);

impl Decisions {
    /// Adds the vectors of a decision that a target executed.
    pub(crate) fn add(&mut self, decision: &Decision) {
        let key = (decision.extent, decision.conditions);
        self.0.entry(key).or_default().extend(decision.vectors.iter().cloned());
    }

    /// Conditions, and those that are covered.
    pub(crate) fn ratio(&self) -> Ratio {
        let all = self.0.iter().flat_map(|((_, count), vectors)| {
            let covered = covered(vectors);
            (0..*count).map(move |condition| covered.contains(&condition))
        });
        Ratio::of(all)
    }
}

/// The conditions with an independence pair.
fn covered(vectors: &BTreeSet<TestVector>) -> BTreeSet<usize> {
    let vectors: Vec<&TestVector> = vectors.iter().collect();
    let pairs =
        vectors.iter().enumerate().flat_map(|(at, one)| vectors[at + 1..].iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| deciding(one, other)).collect()
}

/// The one condition that both evaluated differently, if the results differ. A condition that one of them did not
/// evaluate does not distinguish them.
fn deciding(one: &TestVector, other: &TestVector) -> Option<usize> {
    let values = one.conditions.iter().zip(&other.conditions).enumerate();
    let mut differing = values.filter(|(_, (a, b))| a.is_some() && b.is_some() && a != b).map(|(number, _)| number);
    let first = differing.next()?;
    (one.result != other.result && differing.next().is_none()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(conditions: &str, result: bool) -> TestVector {
        let value = |c| match c {
            'T' => Some(true),
            'F' => Some(false),
            _ => None,
        };
        TestVector { conditions: conditions.chars().map(value).collect(), result }
    }

    fn decision(vectors: &[(&str, bool)]) -> Decision {
        let vectors = vectors.iter().map(|(conditions, result)| vector(conditions, *result)).collect();
        Decision {
            extent: SourceExtent { first_line: 1, first_column: 1, last_line: 1, last_column: 9 },
            file: 0,
            conditions: 3,
            vectors,
        }
    }

    /// `a && (b || c)`: one target alone shows nothing, both together show `a`.
    #[test]
    fn a_pair_may_come_from_two_targets() {
        let mut decisions = Decisions::default();
        decisions.add(&decision(&[("F--", false)]));
        assert_eq!(decisions.ratio(), Ratio { covered: 0, count: 3 });
        decisions.add(&decision(&[("TT-", true)]));
        assert_eq!(decisions.ratio(), Ratio { covered: 1, count: 3 });
        decisions.add(&decision(&[("TFF", false), ("TFT", true)]));
        assert_eq!(decisions.ratio(), Ratio { covered: 3, count: 3 });
    }

    #[test]
    fn equal_results_and_two_differences_show_nothing() {
        let mut decisions = Decisions::default();
        decisions.add(&decision(&[("TT-", true), ("TFT", true)]));
        assert_eq!(decisions.ratio().covered, 0);
        decisions.add(&decision(&[("FFF", false)]));
        assert_eq!(decisions.ratio().covered, 0, "two conditions differ in each pair");
    }
}
