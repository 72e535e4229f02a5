//! The phase that selects new code: the families run on every candidate of every function.
//!
//! | | in |
//! |---|---|
//! | candidates by function | [`by_function`] |
//! | families of scope `Instruction` on the sites of a function, then those of scope `Function` | [`function`], [`function_families`] |
//! | the queries that a family may make about a site | [`site_context`], [`block_prefix`] |
//! | distances between new code and the code around it | [`neighbours`] |
//! | bytes that may or may not be code | [`unclaimed`] |
//! | registers for branches that no longer reach their target | [`long_branch`] |
//! | refusals as diagnostics | [`report`] |
//!
//! Invariants: functions are independent of one another, so all cores take some; the results are in the order of the
//! code.

mod block_prefix;
mod by_function;
mod function;
mod function_families;
mod long_branch;
mod neighbours;
mod report;
mod site_context;
mod unclaimed;

pub(crate) use by_function::each_function;
pub(crate) use function::FunctionRewrite;
pub(crate) use long_branch::long_branch;
pub(crate) use report::check_refusals;
pub(crate) use unclaimed::{refuse_unclaimed as unclaimed_refusals, unclaimed_bytes};

use crate::config::RewriteConfig;
use crate::prescan::Candidates;
use crate::refusal::FunctionRefusal;
use crate::registers::budget::KernelBudget;
use hotswap_program::SectionProgram;
use hotswap_rewrite::CodeEdits;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A section of code after the analysis.
pub(crate) struct AnalysedSection<'a> {
    pub(crate) unit: SectionProgram<'a>,
    pub(crate) candidates: Candidates,
    pub(crate) kernels: Vec<KernelBudget>,
}

/// A section of code and its rewrite. It has many small allocations, which all cores free.
pub(crate) struct SectionRewrite<'a> {
    pub(crate) unit: SectionProgram<'a>,
    pub(crate) kernels: Vec<KernelBudget>,
    /// The functions with candidates, in the order of the code.
    pub(crate) outcomes: Vec<FunctionRewrite>,
    /// Refusals in bytes that no function claims.
    pub(crate) unclaimed: Vec<FunctionRefusal>,
}

/// The changes of each section that has any, by its number.
pub(crate) fn edits_by_section(rewrites: &[SectionRewrite<'_>]) -> BTreeMap<usize, CodeEdits> {
    let mut edits: BTreeMap<usize, CodeEdits> = BTreeMap::new();
    for one in rewrites {
        let list = edits.entry(one.unit.number).or_default();
        one.outcomes.iter().for_each(|outcome| outcome.changes.append_edits(list));
    }
    edits.retain(|_, edits| !edits.is_empty());
    edits
}

/// The most functions that one thread takes at once: with larger shares one thread would be busy alone at the end.
const FUNCTIONS: usize = 64;

impl<'a> SectionRewrite<'a> {
    /// Selects the new code of a section.
    pub(crate) fn select(section: AnalysedSection<'a>, config: &RewriteConfig<'_>) -> Self {
        let AnalysedSection { unit, candidates, kernels } = section;
        let outcomes = each_function(&unit, &candidates, &kernels, config, |outcome| outcome);
        let mut unclaimed = unclaimed::refuse_unclaimed(&unit, config.rewriter);
        // One report for each function is enough.
        let refused = outcomes.iter().filter(|outcome| !outcome.refused.is_empty());
        let refused: Vec<usize> = refused.map(|outcome| outcome.number).collect();
        unclaimed.retain(|one| {
            unit.program.function_at(one.offset).is_none_or(|(number, _)| !is_refused_section(number, &refused))
        });
        Self { unit, kernels, outcomes, unclaimed }
    }

    /// Releases the inputs of the record: the check of the result needs the changes only.
    pub(crate) fn keep_changes(&mut self) {
        self.kernels = Vec::new();
        for outcome in &mut self.outcomes {
            let FunctionRewrite { number, changes, .. } = std::mem::take(outcome);
            *outcome = FunctionRewrite { number, changes, ..FunctionRewrite::default() };
        }
    }
}

fn is_refused_section(number: usize, refused: &[usize]) -> bool {
    refused.binary_search(&number).is_ok()
}

impl Drop for SectionRewrite<'_> {
    fn drop(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        outcomes.into_par_iter().with_max_len(FUNCTIONS).for_each(drop);
    }
}
