//! The fallback for a linked file without relocations that holds code with unresolved control flow: functions that grow
//! move to a pool after the rest of their section, which keeps its offsets. The engine then runs again on that file.
//!
//! Invariants: the file with pools is compared with the input, like every result, before it is changed any further.

use super::check::program_of_section;
use super::entry_copies::select_copies;
use super::{
    ParsedObject, add_certificate, analyse_sections, build_programs, emit_file, layout_with_sgprs, prescan_object,
    select_code, single_diagnostic, verify_file as verify_result,
};
use crate::certificate::SectionSites;
use crate::config::RewriteConfig;
use crate::order::ObjectRecord;
use crate::select::{FunctionRewrite, SectionRewrite, long_branch};
use crate::verify;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::ObjectImage;
use hotswap_program::CodeSource;
use hotswap_report::Diagnostic;
use hotswap_rewrite::{LentProgram, LongBranch, MovedFunction, OutlinedFile, RewriteOptions, move_to_pools};
use std::collections::BTreeMap;

/// The assumption that the record states of each moved function.
const ENTERED: &str =
    "code that cannot be explained enters other functions at their begin alone; this one moved behind them";

/// Rewrites the object by way of pools. `refusal` is why the rewrite fails without them.
pub(super) fn rewrite_with_pools(
    source: &ParsedObject<'_, '_>,
    rewrites: &[SectionRewrite<'_>],
    config: &RewriteConfig<'_>,
    record: &mut ObjectRecord,
    refusal: Diagnostic,
) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let OutlinedFile { bytes, free, moved } = match pool_resized(source.object, rewrites) {
        Ok(Some(pooled)) => pooled,
        Ok(None) => return Err(vec![refusal]),
        Err(error) => return Err(vec![refusal, error]),
    };
    let object = CodeObject::parse(&bytes).map_err(single_diagnostic)?;
    let with_pools = ParsedObject::from_object(&object).map_err(single_diagnostic)?;
    check_moved((&source.image, rewrites), &with_pools, &moved).map_err(single_diagnostic)?;
    let isa = rewrites.first().map_or(config.target, |section| section.unit.isa());
    let again = select_again(&with_pools, isa, config)?;
    let made = layout_with_sgprs(&with_pools, &again, config, record);
    let made =
        made.and_then(|layout| emit_file(&with_pools, &again, layout, &free, record)).map_err(single_diagnostic)?;
    let made = made.unwrap_or_else(|| bytes.clone());
    record.grown += code_size(&with_pools.image) - code_size(&source.image);
    let sections: BTreeMap<&str, usize> = again.iter().map(|one| (one.unit.name, one.unit.number)).collect();
    let sites = SectionSites::of_all(&again);
    let maps = verify_result(&with_pools.image, again, &made, config).map_err(single_diagnostic)?;
    for function in &mut record.functions {
        let is_moved =
            |one: &MovedFunction| sections.get(&*function.section) == Some(&one.section) && one.to == function.offset;
        if moved.iter().any(is_moved) {
            function.assumes.push(ENTERED.to_owned());
        }
    }
    add_certificate(&source.image, made, &sites, &maps, &moved).map_err(single_diagnostic)
}

/// The new code, selected once more in the file with pools.
fn select_again<'a>(
    with_pools: &ParsedObject<'_, 'a>,
    isa: hotswap_isa::Isa,
    config: &RewriteConfig<'_>,
) -> Result<Vec<SectionRewrite<'a>>, Vec<Diagnostic>> {
    if !config.shifts.is_empty() {
        return select_copies(with_pools, config);
    }
    let found = prescan_object(with_pools.object, isa, config.rewriter);
    select_code(with_pools, analyse_sections(with_pools, found, config)?, config)
}

/// Bytes of all sections of code.
fn code_size(image: &ObjectImage<'_>) -> i64 {
    image.sections.iter().filter(|section| section.is_code()).map(|section| section.size as i64).sum()
}

/// The file with every function that changes its size moved to a pool.
fn pool_resized(object: &CodeObject<'_>, work: &[SectionRewrite<'_>]) -> Result<Option<OutlinedFile>, Diagnostic> {
    let mut functions = Vec::new();
    for one in work {
        for outcome in one.outcomes.iter().filter(changes_code_size) {
            let function = &one.unit.program.functions[outcome.number];
            functions.push((one.unit.number, u64::from(function.start)));
            // The check of the result finds functions by their marks, and without a symbol nothing proves that callers
            // enter only at the start.
            let mark = function.mark.and_then(|mark| one.unit.program.source.marks.get(mark as usize));
            if mark.is_none_or(|mark| mark.name.is_empty()) {
                return Ok(None);
            }
        }
    }
    let programs: Vec<LentProgram<'_>> =
        work.iter().map(|work| LentProgram { section: work.unit.number, program: &work.unit.program }).collect();
    let options = RewriteOptions {
        registers: Some(&|one| find_branch_registers(one, work)),
        programs: &programs,
        ..RewriteOptions::default()
    };
    move_to_pools(object.bytes(), &functions, &options)
}

fn total_code_size(code: &[hotswap_isa::Inst]) -> usize {
    code.iter().map(|inst| usize::from(inst.len())).sum::<usize>()
}

fn changes_code_size(outcome: &&FunctionRewrite) -> bool {
    outcome.changes.iter().any(|(_, old, new)| usize::from(old.len()) != total_code_size(new))
}

fn find_branch_registers(branch: &LongBranch, work: &[SectionRewrite<'_>]) -> Option<u8> {
    long_branch(work, branch)
}

/// Checks that the file with pools is equivalent to the input.
fn check_moved(
    (image, rewrites): (&ObjectImage<'_>, &[SectionRewrite<'_>]),
    with_pools: &ParsedObject<'_, '_>,
    moved: &[MovedFunction],
) -> Result<(), Diagnostic> {
    with_pools.object.check_descriptors()?;
    let units = build_programs(
        CodeSource::sources_of_object(with_pools.object)?,
        &with_pools.image,
        |one| is_rewritten_section(one, rewrites),
        |one, other| moved_function_starts(one, other, moved, rewrites),
    );
    for one in rewrites {
        let new = program_of_section(&units, one.unit.number)?;
        let (plan, moved) = (verify::PlannedChanges::default(), section_moved_stretches(one.unit.number, moved));
        let (target, images) = (one.unit.isa(), (image, &with_pools.image));
        let (plain, data) = (verify::PlainClassifier::new(target, target), verify::merged_data(&one.unit));
        let old = &one.unit;
        let shifts = &[];
        let pair = verify::UnitPair { old, new, plan, data, images, target, plain: &plain, moved: &moved, shifts };
        verify::verify_unit(&pair)?;
    }
    Ok(())
}

fn section_moved_stretches(number: usize, moved: &[MovedFunction]) -> Vec<MovedFunction> {
    moved.iter().copied().filter(|one| one.section == number).collect::<Vec<MovedFunction>>()
}

fn is_rewritten_section(number: &usize, rewrites: &[SectionRewrite<'_>]) -> bool {
    rewrites.iter().any(|section| section.unit.number == *number)
}

fn moved_function_starts(
    number: usize,
    _: &CodeSource<'_>,
    moved: &[MovedFunction],
    rewrites: &[SectionRewrite<'_>],
) -> Vec<u32> {
    let moved = section_moved_stretches(number, moved);
    let sections = rewrites.iter().filter(|section| section.unit.number == number);
    let functions = sections.flat_map(|section| &section.unit.program.functions);
    let mut places: Vec<u32> = functions.map(|function| verify::moved_to(&moved, function.start)).collect();
    places.sort_unstable();
    places
}
