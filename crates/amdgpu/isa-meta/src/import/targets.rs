//! Processors with their features.

use super::conditions::collect_features;
use super::json::Records;
use super::{ImportError, wrong};
use crate::model::{Model, TargetRow};
use std::collections::BTreeSet;

/// Processors of these generations, including generic ones.
const GENERATIONS: &[&str] = &["gfx9", "gfx10", "gfx11", "gfx12"];

/// Features that LLVM's disassembler, printer, assembler or object files query besides those in predicates.
#[rustfmt::skip]
pub(super) const ASKED: &[&str] = &[
    "1024-addressable-vgprs", "64-bit-literals", "a16", "aperture-regs", "architected-flat-scratch",
    "architected-sgprs", "clusters", "dpp-64bit", "dpp-src1-sgpr", "dx10-clamp-and-ieee-mode",
    "flat-signed-offset", "fma-mix-insts", "g16", "gcn3-encoding", "gds", "gfx10", "gfx10-3-insts",
    "gfx10-insts", "gfx10_a-encoding", "gfx10_b-encoding", "gfx11", "gfx11-7-insts", "gfx11-insts", "gfx12",
    "gfx12-insts", "gfx1250-insts", "gfx9", "gfx9-insts", "gfx90a-insts", "gfx940-insts", "gfx950-insts", "gws",
    "inv-2pi-inline-imm", "kernarg-preload", "mai-insts", "mimg-r128", "nsa-encoding", "offset-3f-bug",
    "packed-tid", "partial-nsa-encoding", "r128-a16", "real-true16", "setreg-vgpr-msb-fixup", "sramecc-support",
    "true16", "unpacked-d16-vmem", "user-sgpr-init16-bug", "vgpr-align2", "vop3-literal", "vopd",
    "wavefrontsize32", "wavefrontsize64", "xnack", "xnack-support",
];

/// Processors with all their features.
pub(super) struct Processors {
    targets: Vec<TargetRow>,
}

/// All processors of our generations.
pub(super) fn read_processors(records: &Records) -> Result<Processors, ImportError> {
    let mut targets = Vec::new();
    for record in &records.processors {
        let name = record.text("Name");
        if GENERATIONS.iter().any(|generation| name.starts_with(generation)) {
            let mut features = BTreeSet::new();
            for feature in record.names("Features") {
                add_feature(records, name, feature, &mut features)?;
            }
            if !["wavefrontsize32", "wavefrontsize64"].iter().any(|size| features.contains(*size)) {
                features.insert("wavefrontsize32".to_owned());
            }
            targets.push(TargetRow { name: name.to_owned(), features: features.into_iter().collect() });
        }
    }
    targets.sort_by_key(|target| processor_order(&target.name));
    let known: BTreeSet<&str> = records.named.values().map(|record| record.text("Name")).collect();
    match ASKED.iter().find(|name| !known.contains(**name)) {
        Some(name) => wrong("targets", format!("there is no feature {name}")),
        None => Ok(Processors { targets }),
    }
}

/// gfx900 before gfx1010, generics after the processors of their generation.
fn processor_order(name: &str) -> impl Ord + use<> {
    let generic = name.contains('-');
    let digits = name.trim_start_matches("gfx").split('-').next().unwrap_or_default();
    let generation = if digits.len() > 3 || (generic && digits.len() > 1) { digits.get(..2) } else { digits.get(..1) };
    (generation.and_then(|text| text.parse().ok()).unwrap_or(0), generic, name.to_owned())
}

fn add_feature(records: &Records, user: &str, name: &str, features: &mut BTreeSet<String>) -> Result<(), ImportError> {
    let record = records.find(user, name)?;
    if record.text("Name").is_empty() {
        return wrong(name, "a feature without a name");
    }
    if features.insert(record.text("Name").to_owned()) {
        for implied in record.names("Implies") {
            add_feature(records, name, implied, features)?;
        }
    }
    Ok(())
}

impl Processors {
    /// Whether a condition can hold on some processor, with either wave size and either spelling of true16.
    pub(super) fn any_processor(&self, holds: impl Fn(&dyn Fn(&str) -> bool) -> bool) -> bool {
        self.targets.iter().any(|target| {
            [(false, false), (false, true), (true, false), (true, true)].iter().any(|(wide, spelled)| {
                holds(&|name| match name {
                    "wavefrontsize32" => !*wide,
                    "wavefrontsize64" => *wide,
                    "real-true16" => *spelled && is_listed_feature("true16", target),
                    _ => is_listed_feature(name, target),
                })
            })
        })
    }
}

fn is_listed_feature(name: &str, target: &TargetRow) -> bool {
    target.features.binary_search_by(|feature| feature.as_str().cmp(name)).is_ok()
}

/// Puts the processors into the model, with the features that are queried anywhere.
pub(super) fn fill_targets(model: &mut Model, processors: Processors) {
    let mut used: BTreeSet<&str> = ASKED.iter().copied().collect();
    model.predicates.iter().for_each(|item| collect_features(&item.condition, &mut used));
    model.steps.iter().for_each(|item| collect_features(&item.condition, &mut used));
    let mut targets = processors.targets;
    for target in &mut targets {
        target.features.retain(|feature| used.contains(feature.as_str()));
    }
    model.targets = targets;
}
