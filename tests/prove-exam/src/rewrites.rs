//! Rewritten objects against their originals: sites on generated states, whole kernels.

use crate::evidence::EvidenceRow;
use crate::subjects::RewrittenPair;
use hotswap_check::{CheckOptions, compare_code_objects};
use std::collections::{BTreeMap, BTreeSet};

/// Sums over some objects.
#[derive(Debug, Default)]
pub struct RewriteTally {
    pub objects: usize,
    /// Kernels, and those of them that were compared completely.
    pub kernels: usize,
    /// See [`RewriteTally::kernels`].
    pub equal: usize,
    /// Launches that both ended alike.
    pub launches: u64,
    /// Launches that differ because of the order of waves, or of lanes that store to one place.
    pub unjudged: u64,
    /// By family: different sites, and states on which they were executed.
    pub families: BTreeMap<String, (usize, u64)>,
    /// Differences, one line each.
    pub differences: Vec<String>,
    /// Those of them that are in a replaced instruction, by family.
    pub wrong: BTreeMap<String, usize>,
    /// Reasons why something was not compared, with the number of kernels.
    pub unchecked: BTreeMap<String, usize>,
}

impl RewriteTally {
    /// Compares an object.
    pub fn add(&mut self, pair: &RewrittenPair, options: &CheckOptions) {
        self.objects += 1;
        let report = match compare_code_objects(&pair.original, &pair.made, options) {
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
            self.unjudged += kernel.unordered + kernel.meeting;
            if let Some(difference) = &kernel.difference {
                difference.families.iter().for_each(|name| *self.wrong.entry(name.clone()).or_default() += 1);
                let (summary, table) = (difference.summary(), difference.state_table());
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

    pub fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.kernels += other.kernels;
        self.equal += other.equal;
        self.launches += other.launches;
        self.unjudged += other.unjudged;
        for (name, (sites, states)) in other.families {
            let row = self.families.entry(name).or_default();
            (row.0, row.1) = (row.0 + sites, row.1 + states);
        }
        self.differences.extend(other.differences);
        other.wrong.into_iter().for_each(|(name, count)| *self.wrong.entry(name).or_default() += count);
        other.unchecked.into_iter().for_each(|(reason, kernels)| *self.unchecked.entry(reason).or_default() += kernels);
    }

    /// A text of several lines.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} objects, {} kernels, {} equal, {} launches ({} not judged), {} differences\n",
            self.objects,
            self.kernels,
            self.equal,
            self.launches,
            self.unjudged,
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

/// The lines of the table: one for each family, and one for whole kernels.
pub fn rows(tally: &RewriteTally, [assembly, corpus]: [u64; 2]) -> Vec<EvidenceRow> {
    let (result, holds) = (difference_count_text(tally.differences.len()), tally.differences.is_empty());
    let family = |(name, (sites, executed)): (&String, &(usize, u64))| EvidenceRow {
        claim: format!("Replacements of `{name}` do what the instructions do"),
        method: "both executed from the same states, gfx1250 and gfx1250-strict".to_owned(),
        cases: format!(
            "{sites} different sites, {executed} states (up to {assembly} each in assembly, {corpus} in compiled code)"
        ),
        result: difference_count_text(tally.wrong.get(name).copied().unwrap_or(0)),
        open: open(name).to_owned(),
        holds: !tally.wrong.contains_key(name) && *executed > 0,
    };
    let mut rows: Vec<EvidenceRow> = tally.families.iter().map(family).collect();
    let unchecked: usize = tally.unchecked.values().sum();
    let reasons: Vec<String> = tally.unchecked.keys().cloned().collect();
    rows.push(EvidenceRow {
        claim: "Rewritten kernels do what the originals do".to_owned(),
        method: "both launched with the same memory; every second launch with late results".to_owned(),
        cases: format!("{} objects, {} kernels, {} launches", tally.objects, tally.kernels, tally.launches),
        result: format!(
            "{result}; {} kernels completely, {unchecked} in part, {} launches not judged",
            tally.equal, tally.unjudged
        ),
        open: if reasons.is_empty() {
            "data races, lanes that store to one place".to_owned()
        } else {
            reasons.join("; ")
        },
        holds,
    });
    rows
}

fn difference_count_text(count: usize) -> String {
    if count == 0 { "equal".to_owned() } else { format!("{count} differences") }
}

/// Facts of a family that states do not show.
fn open(family: &str) -> &'static str {
    match family {
        "e5m3_conversion" => "what UE5M3 does to signs, overflow and noise is taken from AMD's public table",
        "f8f6f4_wrap" | "wmma_split" => {
            "matrix products are functions of their inputs: that neutral scales change nothing is taken for granted"
        }
        "wmma_hazard" => "distances are judged by `hotswap lint`",
        "mode_setreg" => "that two `v_nop` are needed comes from AMD's public table",
        "tensor_mask" | "cluster_load" => "the data of a load is the same with a mask and without",
        "ds_two_address" => "the order of lanes that store to one place",
        _ => "",
    }
}
