//! The check of an emitted file: it is read again, compared with the input, and given to the families once more.
//!
//! Invariants: of the phases before it only the planned changes are used. The program of the result is found anew.

use crate::certificate::SectionMap;
use crate::config::RewriteConfig;
use crate::prescan::{Candidates, add_unnamed, find_candidates};
use crate::registers::budget;
use crate::registers::spill::PrivateSegments;
use crate::select::{FunctionRewrite, SectionRewrite, each_function, unclaimed_refusals};
use crate::verify;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::ObjectImage;
use hotswap_program::{CodeSource, Program, SectionProgram, SectionSymbol};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;
use std::collections::BTreeMap;

pub(super) struct ResultFile<'a> {
    pub(super) image: ObjectImage<'a>,
    pub(super) units: Vec<SectionProgram<'a>>,
    /// The candidates that are left in each section.
    pub(super) candidates: BTreeMap<usize, Candidates>,
    pub(super) processor: &'static Processor,
}

impl<'a> ResultFile<'a> {
    /// Reads the file: the sections that were rewritten, with the functions that the old programs have.
    pub(super) fn read(
        made: &'a [u8],
        rewrites: &[SectionRewrite<'_>],
        config: &RewriteConfig<'_>,
    ) -> Result<Self, Diagnostic> {
        let (object, image) = rayon::join(|| CodeObject::parse(made), || ObjectImage::parse(made));
        let (object, image) = (object?, image?);
        let isa = rewrites.first().map_or(config.target, |section| section.unit.isa());
        let (described, (sources, candidates)) = rayon::join(
            || object.check_descriptors(),
            || {
                rayon::join(
                    || CodeSource::sources_of_object(&object),
                    || find_candidates(&object, isa, config.rewriter),
                )
            },
        );
        let sources = sources?;
        described?;
        let processor = object.target_id().processor;
        drop(object);
        let by_number = candidates.into_iter().filter_map(|section| Some((section.number?, section)));
        let candidates: BTreeMap<usize, Candidates> = by_number.collect();
        let units = super::build_programs(
            sources,
            &image,
            |number| rewrites.iter().any(|section| section.unit.number == *number),
            |number, source| decoded_section_offsets(number, source, &candidates, rewrites),
        );
        Ok(Self { image, units, candidates, processor })
    }
}

fn decoded_section_offsets(
    number: usize,
    source: &CodeSource<'_>,
    candidates: &BTreeMap<usize, Candidates>,
    rewrites: &[SectionRewrite<'_>],
) -> Vec<u32> {
    let mut places = candidates.get(&number).map_or_else(Vec::new, Candidates::all_offsets);
    let old = rewrites.iter().filter(|section| section.unit.number == number);
    old.for_each(|section| places.extend(marks_of_functions(&section.unit.program, source)));
    // Two sorted runs, which this sort only merges.
    places.sort();
    places
}

/// The offsets, in the new source, of the marks of the old program's functions, in ascending order. Symbols keep their
/// order. Code without a symbol gets its marks when the new program is built.
fn marks_of_functions(old: &Program<'_>, new: &CodeSource<'_>) -> Vec<u32> {
    let all = new.marks.len() == old.source.marks.len();
    let mut places = vec![None; old.source.marks.len()];
    let wanted = old.source.marks.iter().zip(&mut places).filter(|(mark, _)| all || has_mark_name(mark));
    wanted.zip(&new.marks).for_each(|((_, place), mark)| *place = Some(mark.offset));
    old.functions.iter().filter_map(|function| *places.get(function.mark? as usize)?).collect()
}

fn has_mark_name(mark: &SectionSymbol<'_>) -> bool {
    !mark.name.is_empty()
}

/// Compares sections before and after.
pub(super) fn check_equivalent(
    (image, rewrites): (&ObjectImage<'_>, &[SectionRewrite<'_>]),
    (new_image, units): (&ObjectImage<'_>, &[SectionProgram<'_>]),
    config: &RewriteConfig<'_>,
) -> Result<Vec<SectionMap>, Diagnostic> {
    let mut maps = Vec::with_capacity(rewrites.len());
    for one in rewrites {
        let new = program_of_section(units, one.unit.number)?;
        let plan = verify::PlannedChanges::from_functions(one.outcomes.iter().map(|outcome| &outcome.changes));
        let images = (image, new_image);
        let (target, plain) = (config.target, config.plain_classifier(one.unit.isa()));
        let (old, data) = (&one.unit, verify::merged_data(&one.unit));
        let shifts = &config.shifts;
        let pair = verify::UnitPair { old, new, plan, data, images, target, plain, moved: &[], shifts };
        let new_size = new_image.sections.get(old.number).map_or(0, |section| section.size as u32);
        maps.push(SectionMap { number: old.number, new_size, followed: verify::verify_unit(&pair)? });
    }
    Ok(maps)
}

/// The program of a section of the result.
pub(super) fn program_of_section<'u, 'a>(
    units: &'u [SectionProgram<'a>],
    number: usize,
) -> Result<&'u SectionProgram<'a>, Diagnostic> {
    units.iter().find(|unit| unit.number == number).ok_or_else(missing_section_error)
}

fn missing_section_error() -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, "a section of code is missing")
}

/// Runs the families again on the result.
pub(super) fn check_idempotent(
    units: &[SectionProgram<'_>],
    mut found: BTreeMap<usize, Candidates>,
    processor: &Processor,
    config: &RewriteConfig<'_>,
) -> Result<(), Diagnostic> {
    if !config.shifts.is_empty() {
        // No family ran, and kernels whose counts are raised need no copies.
        return Ok(());
    }
    for unit in units {
        let Some(mut candidates) = found.remove(&unit.number) else { continue };
        add_unnamed(unit, config.rewriter, &mut candidates);
        // Nothing is left to spill for.
        let kernels = budget::kernel_budgets(unit, processor, &PrivateSegments::new());
        let what = "a second run would change or refuse the result";
        if let Some(UnsettledPlace { function, offset }) =
            each_function(unit, &candidates, &kernels, config, first_unsettled_offset).into_iter().flatten().next()
        {
            let mut error = idempotence_failure(offset, what, unit);
            error.place.kernel = Some(unit.program.name(&unit.program.functions[function]));
            return Err(error);
        }
        if let Some(refused) = unclaimed_refusals(unit, config.rewriter).first() {
            return Err(idempotence_failure(refused.offset, what, unit));
        }
    }
    Ok(())
}

/// A place that a second run would change or refuse.
struct UnsettledPlace {
    /// Number of the function.
    function: usize,
    offset: u32,
}

fn first_unsettled_offset(outcome: FunctionRewrite) -> Option<UnsettledPlace> {
    let place = outcome.changes.iter().next().map(|(offset, ..)| offset);
    let place = place.or(outcome.refused.first().map(|refused| refused.offset));
    place.map(|offset| UnsettledPlace { function: outcome.number, offset })
}

fn idempotence_failure(offset: u32, what: &str, unit: &SectionProgram<'_>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(unit.name).at_offset(u64::from(offset))
}
