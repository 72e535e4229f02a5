//! Targets as decoding modes: every target in both wave sizes and both spellings of 16-bit registers.
//!
//! Terms: a *setting* is a target with a wave size and a spelling. Settings that try the same tables in the same order
//! form a *group* and share a lookup trie. A *need* is a table with a list of predicates; an entry exists in a setting
//! if its need holds there.
//!
//! Invariants: settings are numbered target × 4 + wave 64 × 2 + 32-bit spelling; groups and needs by first use.

use super::GenerateError;
use super::expand::Expanded;
use crate::model::{Condition, Model};
use std::collections::{BTreeMap, BTreeSet};

/// Everything about the settings.
#[derive(Debug, Clone)]
pub struct TargetSettings {
    /// Four for each target.
    pub settings: Vec<TargetMode>,
    /// For each group the numbers of the steps that are tried.
    pub groups: Vec<Vec<usize>>,
    /// For each entry the number of its need.
    pub needs: Vec<usize>,
    /// For each entry the number of its table.
    pub tables: Vec<usize>,
    pub need_count: usize,
}

/// A target in one mode.
#[derive(Debug, Clone)]
pub struct TargetMode {
    /// Number of the target in the model.
    pub target: usize,
    /// Wave of 64 lanes.
    pub wave64: bool,
    /// 16-bit registers have names of their own.
    pub true16: bool,
    pub features: BTreeSet<String>,
    /// Number of its group.
    pub group: usize,
    /// For each need whether it holds.
    pub available: Vec<bool>,
    /// Longest instruction in bytes.
    pub max_bytes: u8,
}

impl TargetSettings {
    /// Computes groups and needs.
    pub fn new(model: &Model, expanded: &Expanded) -> Result<Self, GenerateError> {
        let (needs, entries) = collect_needs(model, expanded)?;
        let numbers: BTreeMap<_, usize> =
            needs.iter().map(|need| need.table).collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
        let mut result = Self {
            settings: Vec::new(),
            groups: Vec::new(),
            tables: entries.iter().map(|&need| numbers[&needs[need].table]).collect(),
            needs: entries,
            need_count: needs.len(),
        };
        for (target, data) in model.targets.iter().enumerate() {
            for mode in 0..4 {
                let (wave64, true16) = (mode & 2 != 0, mode & 1 == 0);
                let features = features_in_mode(&data.features, wave64, true16);
                let steps: Vec<usize> = (0..model.steps.len())
                    .filter(|&step| condition_holds(&model.steps[step].condition, &features))
                    .collect();
                let tables: BTreeSet<_> = steps.iter().map(|&step| step_table(model, step)).collect();
                let available = needs.iter().map(|one| is_need_held(one, &tables, &features)).collect();
                let group = result.groups.iter().position(|group| *group == steps).unwrap_or(result.groups.len());
                if group == result.groups.len() {
                    result.groups.push(steps);
                }
                let max_bytes = max_bytes(&features);
                result.settings.push(TargetMode { target, wave64, true16, features, group, available, max_bytes });
            }
        }
        Ok(result)
    }

    /// The settings of a group.
    pub fn modes_of(&self, group: usize) -> impl Iterator<Item = &TargetMode> {
        self.settings.iter().filter(move |setting| setting.group == group)
    }

    /// Which of `count` entries at least one setting of the group has.
    pub fn entries_of(&self, group: usize, count: usize) -> Vec<bool> {
        let mut needs = vec![false; self.need_count];
        for setting in self.modes_of(group) {
            for (need, held) in needs.iter_mut().zip(&setting.available) {
                *need |= held;
            }
        }
        (0..count).map(|entry| needs[self.needs[entry]]).collect()
    }
}

fn is_need_held(need: &TableCondition, tables: &BTreeSet<TableKey<'_>>, features: &BTreeSet<String>) -> bool {
    tables.contains(&need.table) && need.conditions.iter().all(|condition| condition_holds(condition, features))
}

/// A table of LLVM's disassembler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TableKey<'a> {
    name: &'a str,
    /// Bits of its instructions.
    bits: u8,
}

/// A table and conditions that must all hold.
struct TableCondition<'a> {
    table: TableKey<'a>,
    conditions: Vec<&'a Condition>,
}

fn step_table(model: &Model, step: usize) -> TableKey<'_> {
    TableKey { name: &model.steps[step].table, bits: model.steps[step].bits }
}

fn collect_needs<'a>(
    model: &'a Model,
    expanded: &Expanded,
) -> Result<(Vec<TableCondition<'a>>, Vec<usize>), GenerateError> {
    let predicates: BTreeMap<&str, &Condition> =
        model.predicates.iter().map(|predicate| (predicate.name.as_str(), &predicate.condition)).collect();
    let mut seen = BTreeMap::new();
    let (mut needs, mut entries) = (Vec::new(), Vec::new());
    for entry in &expanded.entries {
        let row = &model.rows[entry.row];
        let column = &row.columns[entry.column];
        let bits = model.layouts[expanded.formats[entry.format].layout].bits;
        let table = TableKey { name: &column.table, bits };
        let need = match seen.get(&(table, column.predicates.as_slice())) {
            Some(&need) => need,
            None => {
                let conditions = column.predicates.iter().map(|name| {
                    predicates
                        .get(name.as_str())
                        .copied()
                        .ok_or_else(|| GenerateError::new(&row.mnemonic, format!("unknown predicate `{name}`")))
                });
                needs.push(TableCondition { table, conditions: conditions.collect::<Result<_, _>>()? });
                seen.insert((table, column.predicates.as_slice()), needs.len() - 1);
                needs.len() - 1
            }
        };
        entries.push(need);
    }
    Ok((needs, entries))
}

/// Features in the requested wave size and spelling. Targets before gfx10 and from gfx12.5 on have one wave size,
/// targets without 16-bit register names one spelling; requesting the other changes nothing.
fn features_in_mode(target: &[String], wave64: bool, true16: bool) -> BTreeSet<String> {
    let mut features: BTreeSet<String> = target.iter().cloned().collect();
    if has_named_feature("gfx10-insts", target) && !has_named_feature("gfx1250-insts", target) {
        set_mode_feature("wavefrontsize64", wave64, &mut features);
        set_mode_feature("wavefrontsize32", !wave64, &mut features);
    }
    if has_named_feature("true16", target) {
        set_mode_feature("real-true16", true16, &mut features);
    }
    features
}

fn set_mode_feature(name: &str, on: bool, features: &mut BTreeSet<String>) -> bool {
    if on { features.insert(name.to_owned()) } else { features.remove(name) }
}

fn has_named_feature(name: &str, target: &[String]) -> bool {
    target.iter().any(|feature| feature == name)
}

/// Whether `condition` holds for a processor with `features`.
pub fn condition_holds(condition: &Condition, features: &BTreeSet<String>) -> bool {
    match condition {
        Condition::Has(feature) => features.contains(feature),
        Condition::Not(inner) => !condition_holds(inner, features),
        Condition::All(all) => all.iter().all(|inner| condition_holds(inner, features)),
        Condition::Any(any) => any.iter().any(|inner| condition_holds(inner, features)),
    }
}

/// The length of the longest instruction that LLVM's disassembler reads.
fn max_bytes(features: &BTreeSet<String>) -> u8 {
    if has_size_feature("nsa-encoding", features) {
        20
    } else if has_size_feature("gfx950-insts", features) || has_size_feature("gfx1250-insts", features) {
        16
    } else if has_size_feature("vop3-literal", features) {
        12
    } else {
        8
    }
}

fn has_size_feature(feature: &str, features: &BTreeSet<String>) -> bool {
    features.contains(feature)
}
