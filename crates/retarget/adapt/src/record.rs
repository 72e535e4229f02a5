//! The record of a rewrite: counts by family, functions, kernels.

use crate::order::{FunctionRecord, ObjectRecord, SiteCount, SpillCount};
use crate::registers::kernel_registers::{self, KernelRegisters};
use crate::select::{FunctionRewrite, SectionRewrite};
use hotswap_families::{FAMILIES, FamilyScope};
use hotswap_report::FamilyCount;
use hotswap_targets::Processor;
use std::collections::BTreeMap;

/// Fills in the record. Returns the kernels that get more registers.
pub(crate) fn fill_record(
    work: &[SectionRewrite<'_>],
    processor: &Processor,
    record: &mut ObjectRecord,
) -> BTreeMap<String, KernelRegisters> {
    let mut changed = BTreeMap::new();
    work.iter().for_each(|one| one.record_section(processor, record, &mut changed));
    for function in &record.functions {
        record.spilled.add(function.spilled);
    }
    count_families(work, record);
    changed
}

impl SectionRewrite<'_> {
    fn record_section(
        &self,
        processor: &Processor,
        record: &mut ObjectRecord,
        changed: &mut BTreeMap<String, KernelRegisters>,
    ) {
        let uses = self.outcomes.iter().map(|outcome| &outcome.registers);
        let grants = kernel_registers::needed_registers(&self.kernels, uses);
        for (kernel, grant) in self.kernels.iter().zip(&grants) {
            let had = kernel.needs.sgprs.unwrap_or(0);
            if grant.vgprs > kernel.granted || u32::from(grant.sgprs) > had || grant.private_segment.is_some() {
                changed.insert(kernel.name.clone(), grant.clone());
            }
        }
        let program = &self.unit.program;
        let mut functions: BTreeMap<usize, FunctionRecord> = BTreeMap::new();
        for outcome in self.outcomes.iter().filter(|outcome| !outcome.counts.is_empty()) {
            functions.insert(outcome.number, self.record_function(outcome));
        }
        for (kernel, grant) in self.kernels.iter().zip(&grants) {
            let number = kernel.function as usize;
            if functions.contains_key(&number) || changed.contains_key(&kernel.name) {
                let function = functions.entry(number).or_insert_with(|| self.locate_function(number));
                function.kernel = Some(kernel_registers::record_kernel(kernel, grant, processor));
            }
        }
        debug_assert!(functions.keys().all(|number| *number < program.functions.len()));
        record.functions.extend(functions.into_values());
    }

    fn locate_function(&self, number: usize) -> FunctionRecord {
        let function = &self.unit.program.functions[number];
        FunctionRecord {
            name: self.unit.program.name(function),
            section: self.unit.name.to_owned(),
            offset: u64::from(function.start),
            ..FunctionRecord::default()
        }
    }

    fn record_function(&self, outcome: &FunctionRewrite) -> FunctionRecord {
        let mut record = self.locate_function(outcome.number);
        let is_kernel = self.unit.program.functions[outcome.number].is_kernel();
        if !is_kernel {
            record.reached_from =
                outcome.registers.budget.kernels.iter().map(|kernel| self.kernels[*kernel].name.clone()).collect();
        }
        record.sites = outcome.counts.iter().map(make_site_count).collect();
        record.grown = outcome.changes.growth_bytes();
        record.cycles = outcome.cycles;
        let sites = outcome.registers.spilled.len() as u64;
        record.spilled = SpillCount {
            sites,
            registers: outcome.registers.spilled.iter().map(|place| place.list.len() as u64).sum(),
        };
        record.assumes = outcome.assumes.iter().map(|what| (*what).to_owned()).collect();
        record
    }
}

fn make_site_count(((family, left), count): (&(&str, Option<&str>), &u64)) -> SiteCount {
    SiteCount { family: (*family).to_owned(), left: left.map(str::to_owned), count: *count }
}

/// Sums over the object, in the order in which families run.
fn count_families(work: &[SectionRewrite<'_>], record: &mut ObjectRecord) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for ((family, left), count) in work.iter().flat_map(|work| &work.outcomes).flat_map(|outcome| &outcome.counts) {
        if left.is_none() {
            *sums.entry(family).or_default() += count;
        }
    }
    let sums = sums.into_iter().map(|(name, sites)| FamilyCount { name: name.to_owned(), sites });
    let mut counts: Vec<FamilyCount> = sums.collect();
    // Stable: families without an order of their own remain in the order of their names.
    counts.sort_by_key(|count| {
        let family = FAMILIES.iter().find(|family| family.name == count.name);
        family.map_or((FamilyScope::Instruction, u32::MAX), |family| (family.scope, family.order))
    });
    record.families.extend(counts);
}
