//! The way of one code object, phase by phase: prescan, analyse, select, layout, emit, verify, label.
//!
//! | phase | makes | by |
//! |---|---|---|
//! | [`prescan`] | candidates, from the bytes alone | [`crate::prescan`] |
//! | [`analyse`] | the program in each section, and its kernels | `hotswap_program`, [`crate::registers`] |
//! | [`select`] | new code for each candidate, or refusals | [`crate::select`], `hotswap_families` |
//! | [`layout`] | edits, register counts of kernels, the record | [`crate::changes`], [`crate::registers`], [`crate::record`] |
//! | [`emit`] | the file | `hotswap_rewrite` |
//! | [`verify`] | the proof that it is equivalent, and that nothing is left to do | [`crate::verify`] |
//! | [`label`] | header and note that name the target | `hotswap_families` |
//!
//! Invariants: the source is read once ([`CodeSource`]). The file that was emitted is read by [`verify`], which takes
//! nothing from the phases before it except the planned changes; sections are identified by their numbers in both. A
//! file that cannot be laid out takes the way once more, with its functions in a pool ([`pooled`]).

mod check;
mod entry_copies;
mod pooled;
#[cfg(test)]
mod tests;

use self::check::{ResultFile, check_equivalent, check_idempotent};
use crate::certificate::{SectionMap, SectionSites, build_certificate};
use crate::config::RewriteConfig;
use crate::order::{AdaptRequest, ObjectRecord};
use crate::prepared::{RelabelPatch, UnlabelledObject};
use crate::prescan::{Candidates, Prescan, add_unnamed};
use crate::record;
use crate::registers::budget;
use crate::registers::kernel_registers::{self, SectionContents};
use crate::registers::spill::private_segments;
use crate::select::{AnalysedSection, SectionRewrite, check_refusals, edits_by_section, long_branch, unclaimed_bytes};
use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{CodeObject, with_certificate};
use hotswap_families::{FamilyRegistry, FamilyRewriter};
use hotswap_isa::{Isa, Target};
use hotswap_program::{CodeSource, SectionProgram};
use hotswap_report::{Diagnostic, codes};
use hotswap_rewrite::{
    CodeEdits, LentProgram, LongBranch, MovableTail, MovedFunction, RewriteOptions, SectionContent, rewrite_image,
};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(crate) use entry_copies::copy_at_entries;

/// Takes a code object through all phases.
pub(crate) fn run_phases<'a>(
    object: CodeObject<'a>,
    order: &AdaptRequest,
) -> Result<UnlabelledObject<'a>, Vec<Diagnostic>> {
    let source = object.target_id();
    let mut record =
        ObjectRecord { source: source.to_string(), target: order.target.to_string(), ..ObjectRecord::default() };
    if source.processor == order.target.processor {
        record.labelled = true;
        return Ok(UnlabelledObject::unchanged(object, None, record));
    }
    let (from, to) = (
        find_isa(source.processor.name).map_err(single_diagnostic)?,
        find_isa(order.target.processor.name).map_err(single_diagnostic)?,
    );
    let rewriter = FamilyRegistry::installed().prepare_rewriter().map_err(single_diagnostic)?;
    let (unchanged, found) =
        rayon::join(|| RelabelPatch::requested(&object, order), || prescan_object(&object, from, &rewriter));
    if found.is_clean() {
        return Ok(UnlabelledObject::unchanged(object, unchanged.map_err(single_diagnostic)?, record));
    }
    let config = RewriteConfig::new(&rewriter, to, found.scheduling_mode()).with_half_mode(found.half_mode(&object));
    match rewrite_code(&object, found, &config, &mut record)? {
        None => Ok(UnlabelledObject::unchanged(object, unchanged.map_err(single_diagnostic)?, record)),
        Some(code) => Ok(UnlabelledObject::rewritten(code, record)),
    }
}

fn single_diagnostic(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

fn find_isa(name: &str) -> Result<Isa, Diagnostic> {
    let target = Target::find(name).map(Isa::new);
    target.ok_or_else(|| Diagnostic::error(codes::NO_INSTRUCTIONS, format!("the code is for {name}")))
}

/// The verified file with its certificate. Returns `None` if nothing changes.
fn rewrite_code(
    object: &CodeObject<'_>,
    found: Prescan,
    config: &RewriteConfig<'_>,
    record: &mut ObjectRecord,
) -> Result<Option<Vec<u8>>, Vec<Diagnostic>> {
    let source = ParsedObject::from_object(object).map_err(single_diagnostic)?;
    let has_no_candidates = found.has_no_candidates();
    let sections = analyse_sections(&source, found, config)?;
    let rewrites = select_code(&source, sections, config)?;
    record.unclaimed = rewrites.iter().map(|section| unclaimed_bytes(&section.unit)).sum();
    if has_no_candidates && rewrites.iter().all(|section| section.outcomes.is_empty()) {
        return Ok(None);
    }
    emit_verified(&source, rewrites, config, record)
}

/// The file with the selected code, verified, with its certificate. Returns `None` if nothing changes.
fn emit_verified(
    source: &ParsedObject<'_, '_>,
    mut rewrites: Vec<SectionRewrite<'_>>,
    config: &RewriteConfig<'_>,
    record: &mut ObjectRecord,
) -> Result<Option<Vec<u8>>, Vec<Diagnostic>> {
    let before = record.clone();
    let laid_out = layout_with_sgprs(source, &rewrites, config, record);
    let made = match laid_out.and_then(|layout| emit_file(source, &rewrites, layout, &[], record)) {
        Err(error) if error.code == codes::NO_LAYOUT => {
            *record = before;
            return pooled::rewrite_with_pools(source, &rewrites, config, record, error).map(Some);
        }
        result => result.map_err(single_diagnostic)?,
    };
    let Some(made) = made.filter(|made| made != source.object.bytes()) else { return Ok(None) };
    let sites = SectionSites::of_all(&rewrites);
    rewrites.iter_mut().for_each(SectionRewrite::keep_changes);
    let maps = verify_file(&source.image, rewrites, &made, config).map_err(single_diagnostic)?;
    add_certificate(&source.image, made, &sites, &maps, &[]).map(Some).map_err(single_diagnostic)
}

/// A file in the two views that the phases need, each read once.
struct ParsedObject<'o, 'a> {
    object: &'o CodeObject<'a>,
    image: ObjectImage<'a>,
}

impl<'o, 'a> ParsedObject<'o, 'a> {
    fn from_object(object: &'o CodeObject<'a>) -> Result<Self, Diagnostic> {
        Ok(Self { object, image: ObjectImage::parse(object.bytes())? })
    }
}

/// Finds the instructions that may concern a family.
fn prescan_object(object: &CodeObject<'_>, isa: Isa, rewriter: &FamilyRewriter) -> Prescan {
    Prescan::from_object(object, isa, rewriter)
}

/// Finds the programs in the sections with candidates, or with code that no symbol names.
fn analyse_sections<'a>(
    source: &ParsedObject<'_, 'a>,
    found: Prescan,
    config: &RewriteConfig<'_>,
) -> Result<Vec<AnalysedSection<'a>>, Vec<Diagnostic>> {
    let ParsedObject { object, image } = source;
    let (mut candidates, mut without_section) = (BTreeMap::new(), None);
    for section in found.sections {
        match section.number.filter(|number| is_filled_code(image, *number)) {
            Some(number) if found.has_indirect_transfers || !section.is_empty() => {
                candidates.insert(number, section);
            }
            None if !section.is_empty() => without_section = without_section.or(Some(section.file as u64)),
            _ => {}
        }
    }
    let places =
        |number: usize, _: &CodeSource<'_>| candidates.get(&number).map_or_else(Vec::new, Candidates::all_offsets);
    let units = build_programs(
        CodeSource::sources_of_object(object).map_err(single_diagnostic)?,
        image,
        |one| has_section_candidates(one, &candidates),
        places,
    );
    if let Some(at) = without_section {
        let what = "code that concerns a family is in no section";
        return Err(single_diagnostic(Diagnostic::error(codes::NO_LAYOUT, what).at_offset(at)));
    }
    let segments = private_segments(object);
    let mut sections = Vec::with_capacity(units.len());
    for unit in units {
        let mut candidates = candidates.remove(&unit.number).unwrap_or_default();
        add_unnamed(&unit, config.rewriter, &mut candidates);
        let kernels = budget::kernel_budgets(&unit, object.target_id().processor, &segments);
        sections.push(AnalysedSection { unit, candidates, kernels });
    }
    Ok(sections)
}

/// Whether a section of that number is there, is code and has bytes.
fn is_filled_code(image: &ObjectImage<'_>, number: usize) -> bool {
    image.sections.get(number).is_some_and(|section| section.is_code() && !section.bytes.is_empty())
}

fn has_section_candidates(number: &usize, candidates: &BTreeMap<usize, Candidates>) -> bool {
    candidates.contains_key(number)
}

/// The programs in some sections, as far as needed for the offsets that `places` returns in ascending order.
fn build_programs<'a>(
    sources: Vec<CodeSource<'a>>,
    image: &ObjectImage<'a>,
    is_wanted: impl Fn(&usize) -> bool,
    places: impl Fn(usize, &CodeSource<'a>) -> Vec<u32>,
) -> Vec<SectionProgram<'a>> {
    sources
        .into_iter()
        .filter_map(|source| {
            let number = source.number.filter(&is_wanted)?;
            let name = image.sections.get(number)?.name;
            Some(SectionProgram::new(number, name, source, |source| places(number, source)))
        })
        .collect()
}

/// Selects the new code of each section. All refusals of the object are returned together.
fn select_code<'a>(
    source: &ParsedObject<'_, '_>,
    sections: Vec<AnalysedSection<'a>>,
    config: &RewriteConfig<'_>,
) -> Result<Vec<SectionRewrite<'a>>, Vec<Diagnostic>> {
    let rewrites: Vec<_> = sections.into_iter().map(|section| SectionRewrite::select(section, config)).collect();
    check_refusals(&rewrites, source.object)?;
    Ok(rewrites)
}

/// The input of the layout engine.
struct LayoutInput<'a> {
    /// The edits of each section that has any.
    edits: BTreeMap<usize, CodeEdits>,
    /// The file; a copy if a kernel descriptor is within code.
    data: Cow<'a, [u8]>,
    /// New contents of sections.
    contents: SectionContents,
}

/// Collects the edits and what kernels need for them, and fills in the record. Returns `None` without edits.
fn layout_edits<'a>(
    source: &ParsedObject<'_, 'a>,
    rewrites: &[SectionRewrite<'_>],
    record: &mut ObjectRecord,
) -> Result<Option<LayoutInput<'a>>, Diagnostic> {
    let ParsedObject { object, image } = source;
    let processor = object.target_id().processor;
    let (changed, edits) =
        rayon::join(|| record::fill_record(rewrites, processor, record), || edits_by_section(rewrites));
    if edits.is_empty() {
        return Ok(None);
    }
    let (data, contents) = kernel_registers::write_registers(object, image, &changed)?;
    Ok(Some(LayoutInput { edits, data, contents }))
}

/// The same with the user SGPRs that copies at the entries of kernels need.
fn layout_with_sgprs<'a>(
    source: &ParsedObject<'_, 'a>,
    rewrites: &[SectionRewrite<'_>],
    config: &RewriteConfig<'_>,
    record: &mut ObjectRecord,
) -> Result<Option<LayoutInput<'a>>, Diagnostic> {
    let mut layout = layout_edits(source, rewrites, record)?;
    if let Some(layout) = &mut layout {
        entry_copies::raise_user_sgprs(source, config, layout)?;
    }
    Ok(layout)
}

/// Writes the file. `free` holds, for sections by number, the offset from which on code may always move.
fn emit_file(
    source: &ParsedObject<'_, '_>,
    rewrites: &[SectionRewrite<'_>],
    layout: Option<LayoutInput<'_>>,
    free: &[MovableTail],
    record: &mut ObjectRecord,
) -> Result<Option<Vec<u8>>, Diagnostic> {
    let Some(LayoutInput { edits, data, contents }) = layout else { return Ok(None) };
    let contents: Vec<SectionContent<'_>> =
        contents.iter().map(|(number, bytes)| SectionContent { section: *number, bytes }).collect();
    let programs: Vec<LentProgram<'_>> =
        rewrites.iter().map(|one| LentProgram { section: one.unit.number, program: &one.unit.program }).collect();
    let options = RewriteOptions {
        registers: Some(&|one| find_branch_registers(one, rewrites)),
        programs: &programs,
        contents: &contents,
        free,
    };
    let output = match &data {
        Cow::Borrowed(_) => rewrite_image(&source.image, &edits, &options)?,
        Cow::Owned(data) => rewrite_image(&ObjectImage::parse(data)?, &edits, &options)?,
    };
    record.grown = output.grown;
    Ok(Some(output.bytes))
}

fn find_branch_registers(branch: &LongBranch, rewrites: &[SectionRewrite<'_>]) -> Option<u8> {
    long_branch(rewrites, branch)
}

/// Reads the file again and checks it, before it is labelled: it is equivalent to the input, and no family has work left
/// in it. `rewrites` is dropped as soon as it is not needed any more.
fn verify_file<'a>(
    image: &ObjectImage<'_>,
    rewrites: impl AsRef<[SectionRewrite<'a>]> + Send + Sync,
    made: &[u8],
    config: &RewriteConfig<'_>,
) -> Result<Vec<SectionMap>, Diagnostic> {
    let ResultFile { image: new_image, units, candidates, processor } =
        ResultFile::read(made, rewrites.as_ref(), config)?;
    let (maps, idempotent) = rayon::join(
        || {
            let maps = check_equivalent((image, rewrites.as_ref()), (&new_image, &units), config);
            // Freeing so much memory takes a while. The other check continues meanwhile.
            drop(rewrites);
            maps
        },
        || check_idempotent(&units, candidates, processor, config),
    );
    let maps = maps?;
    idempotent.map(|()| maps)
}

/// Adds the certificate to a verified result.
fn add_certificate(
    image: &ObjectImage<'_>,
    made: Vec<u8>,
    sites: &[SectionSites],
    maps: &[SectionMap],
    moved: &[MovedFunction],
) -> Result<Vec<u8>, Diagnostic> {
    let certificate = build_certificate(image, sites, maps, moved);
    with_certificate(made, &certificate.to_bytes()).ok_or_else(|| {
        let what = "there is no room for the certificate of a change: the file has too many sections";
        Diagnostic::error(codes::NO_LAYOUT, what)
    })
}
