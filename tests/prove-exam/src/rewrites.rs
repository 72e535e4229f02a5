//! Rewritten objects against their originals: sites on generated states, whole kernels.

use crate::subjects::RewrittenPair;
use hotswap_check::{CheckOptions, compare};
use std::collections::{BTreeMap, BTreeSet};

/// Sums over some objects.
#[derive(Debug, Default)]
pub struct RewriteTally {
    /// Objects.
    pub objects: usize,
    /// Kernels, and those of them that were compared completely.
    pub kernels: usize,
    /// See [`RewriteTally::kernels`].
    pub equal: usize,
    /// Launches that both ended alike.
    pub launches: u64,
    /// By family: different sites, and states on which they were executed.
    pub families: BTreeMap<String, (usize, u64)>,
    /// Differences, one line each.
    pub differences: Vec<String>,
    /// Reasons why something was not compared, with the number of kernels.
    pub unchecked: BTreeMap<String, usize>,
}

impl RewriteTally {
    /// Compares an object.
    pub fn add(&mut self, pair: &RewrittenPair, options: &CheckOptions) {
        self.objects += 1;
        let report = match compare(&pair.original, &pair.made, options) {
            Ok(report) => report,
            Err(error) => {
                self.differences.push(format!("{}: {error}", pair.name));
                return;
            }
        };
        for kernel in &report.kernels {
            self.kernels += 1;
            self.equal += usize::from(kernel.is_equal());
            self.launches += kernel.launches;
            if let Some(difference) = &kernel.difference {
                let (summary, table) = (difference.summary(), difference.table());
                self.differences.push(format!("{}: {}: {summary}\n{table}", pair.name, kernel.kernel));
            }
            let reasons: BTreeSet<&String> = kernel.unchecked.iter().collect();
            reasons.into_iter().for_each(|reason| *self.unchecked.entry(reason.clone()).or_default() += 1);
        }
        for family in report.families {
            let row = self.families.entry(family.name).or_default();
            row.0 += family.sites;
            row.1 += family.states;
        }
    }

    /// Adds another one.
    pub fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.kernels += other.kernels;
        self.equal += other.equal;
        self.launches += other.launches;
        for (name, (sites, states)) in other.families {
            let row = self.families.entry(name).or_default();
            (row.0, row.1) = (row.0 + sites, row.1 + states);
        }
        self.differences.extend(other.differences);
        other.unchecked.into_iter().for_each(|(reason, kernels)| *self.unchecked.entry(reason).or_default() += kernels);
    }

    /// A text of several lines.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} objects, {} kernels, {} equal, {} launches, {} differences\n",
            self.objects,
            self.kernels,
            self.equal,
            self.launches,
            self.differences.len()
        );
        text.extend(
            self.families.iter().map(|(name, (sites, states))| format!("  {name}: {sites} sites, {states} states\n")),
        );
        text.extend(
            self.unchecked.iter().map(|(reason, kernels)| format!("  not compared ({kernels} kernels): {reason}\n")),
        );
        text
    }
}
