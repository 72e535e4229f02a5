//! Reads the result again and compares it with input and plan.

use super::layout::{LinkedPlan, PlannedPointer, SectionChange};
use super::own_segment;
use super::program::{LinkedProgram, SEGMENT_HEADER};
use crate::bytes::{slice, u64_at};
use crate::draft::DraftFacts;
use crate::elf::SectionHeader;
use crate::host_object::SECTION;
use hotswap_report::{Diagnostic, codes};
use std::ops::Range;

fn verify_failed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(SECTION)
}

/// The error for a result that a general reader of ELF files does not take: damage of the input, where it does not take that either.
fn unreadable_result(old: &LinkedProgram<'_>, error: &object::Error) -> Diagnostic {
    match object::File::parse(old.bytes) {
        Ok(_) => verify_failed(error.to_string()),
        Err(error) => Diagnostic::error(codes::MALFORMED, error.to_string()),
    }
}

pub(super) fn check_linked(
    old: &LinkedProgram<'_>,
    plan: &LinkedPlan<'_>,
    new: &[u8],
    known: DraftFacts,
) -> Result<(), Diagnostic> {
    let changed = LinkedProgram::read(new).map_err(|error| verify_failed(error.to_string()))?;
    object::File::parse(new).map_err(|error| unreadable_result(old, &error))?;
    check_loaded(old, plan, &changed)?;
    check_sections(old, plan, &changed)?;
    let planned = check_pieces(plan, &changed, known)?;
    for PlannedPointer { pointer, piece } in &plan.pointers {
        let places = pointer.addend.into_iter().chain(pointer.symbol).chain(pointer.stored.then_some(pointer.at));
        if places.into_iter().any(|at| u64_at(new, plan.lowered_offset(at)) != Some(plan.pieces[*piece].address)) {
            return Err(verify_failed("a wrapper does not lead to its bundle"));
        }
    }
    let contents = crate::find_containers(new);
    let here = contents.found.iter().filter(|found| is_here(&found.place));
    let found: Vec<_> = here.map(|found| (found.place.file_offset, found.bytes.len() as u64)).collect();
    if planned.iter().any(|range| !found.contains(&(range.start, range.end - range.start))) {
        return Err(verify_failed("a bundle is not found in the result"));
    }
    Ok(())
}

/// Compares the bundles; returns their ranges in the file.
fn check_pieces(
    plan: &LinkedPlan<'_>,
    new: &LinkedProgram<'_>,
    known: DraftFacts,
) -> Result<Vec<Range<u64>>, Diagnostic> {
    let mut planned = Vec::new();
    for piece in plan.pieces.iter().filter(|piece| piece.content.size() > 0) {
        let size = piece.content.size();
        let offset = new.offset_of(piece.address, size);
        let found = offset.and_then(|offset| slice(new.bytes, offset, size));
        if !found.is_some_and(|found| piece.content.equals_content(found, known)) {
            return Err(verify_failed(format!(
                "the bundle at address {:#x} is not the one that was planned",
                piece.address
            )));
        }
        planned.extend(offset.map(|offset| offset..offset + size));
    }
    Ok(planned)
}

fn is_here(place: &crate::ContainerPosition) -> bool {
    place.section.as_deref() == Some(SECTION)
}

/// Requires that loaded data keeps its address and its bytes, except for the changes in the plan. Where nothing is
/// removed from the file, it keeps its offset, too.
fn check_loaded(old: &LinkedProgram<'_>, plan: &LinkedPlan<'_>, new: &LinkedProgram<'_>) -> Result<(), Diagnostic> {
    check_segments(old, plan, new)?;
    let mut allowed: Vec<_> = changeable_ranges(old, plan)
        .into_iter()
        .filter_map(|range: Range<u64>| old.address_of(range.start).map(|at| at..at + (range.end - range.start)))
        .collect();
    allowed.sort_by_key(|range| range.start);
    for load in &old.loads {
        let (mut at, end) = (load.address, load.address + load.file_size);
        for range in allowed.iter().filter(|range| range.end > load.address && range.start < end) {
            same_content(old, new, at..range.start.max(at))?;
            at = at.max(range.end);
        }
        same_content(old, new, at..end.max(at))?;
    }
    Ok(())
}

/// Requires the segments that were there, and the planned one among them in the place of the one that is not needed.
fn check_segments(old: &LinkedProgram<'_>, plan: &LinkedPlan<'_>, new: &LinkedProgram<'_>) -> Result<(), Diagnostic> {
    let mut kinds: Vec<u32> = old.segments.iter().map(|segment| segment.kind).collect();
    let (was, mut is) = (load_places(old), load_places(new));
    if let Some(own) = &plan.own {
        kinds = own_segment::expected_kinds(old, own);
        let is_last = is.pop() == Some(LoadPlace { offset: own.offset, address: own.address });
        let is_whole = new.loads.last().is_some_and(|load| load.file_size == load.memory_size);
        if !is_last || !is_whole {
            return Err(verify_failed("the last segment is not the planned one"));
        }
    }
    let is_same = kinds.into_iter().eq(new.segments.iter().map(|segment| segment.kind));
    if !is_same || was.len() != is.len() || plan.cut.is_none() && was != is {
        return Err(verify_failed("the segments are not those that were there"));
    }
    Ok(())
}

/// Where a segment is in the file and in memory.
#[derive(PartialEq)]
struct LoadPlace {
    offset: u64,
    address: u64,
}

fn load_places(program: &LinkedProgram<'_>) -> Vec<LoadPlace> {
    program.loads.iter().map(|load| LoadPlace { offset: load.offset, address: load.address }).collect()
}

fn same_content(old: &LinkedProgram<'_>, new: &LinkedProgram<'_>, addresses: Range<u64>) -> Result<(), Diagnostic> {
    let size = addresses.end - addresses.start;
    let was = old.offset_of(addresses.start, size).and_then(|offset| slice(old.bytes, offset, size));
    let is = new.offset_of(addresses.start, size).and_then(|offset| slice(new.bytes, offset, size));
    let is_same = size == 0 || was.is_some() && was == is;
    if is_same { Ok(()) } else { Err(verify_failed("bytes that are loaded have changed")) }
}

/// Ranges of the file that may differ.
fn changeable_ranges(old: &LinkedProgram<'_>, plan: &LinkedPlan<'_>) -> Vec<Range<u64>> {
    let section = &old.sections.all[plan.index];
    let mut ranges: Vec<_> = std::iter::once(section.file_range()).collect();
    for PlannedPointer { pointer, .. } in &plan.pointers {
        ranges.extend(pointer.addend.into_iter().chain(Some(pointer.at)).map(|at| at..at + 8));
    }
    ranges.extend(plan.symbols.iter().map(|symbol| symbol.at..symbol.at + 24));
    if plan.cut.is_some() || plan.own.is_some() {
        ranges.push(40..48);
        ranges.extend(old.segments.iter().map(|segment| segment.header..segment.header + SEGMENT_HEADER));
    }
    if plan.mode == SectionChange::Moved {
        // The ELF header has the position of the section headers; one program header has new sizes.
        ranges.extend([40..48, 60..62]);
        ranges.extend(old.loads.last().map(|last| last.header + 32..last.header + 48));
        ranges.push(old.sections.table..old.sections.table_end());
    }
    ranges
}

/// Whether a loaded section has its old address and the position that the segments give.
fn is_placed(was: &SectionHeader, is: &SectionHeader, new: &LinkedProgram<'_>, ours: bool) -> bool {
    let keeps = was.address == is.address && (ours || was.size == is.size);
    keeps && (is.stored_size() == 0 || !is.is_loaded() || new.offset_of(is.address, is.size) == Some(is.offset))
}

/// Requires that sections that no segment loads keep their bytes; symbol tables were changed.
fn check_sections(old: &LinkedProgram<'_>, plan: &LinkedPlan<'_>, new: &LinkedProgram<'_>) -> Result<(), Diagnostic> {
    let symbols: Vec<u64> = plan.symbols.iter().map(|symbol| symbol.at).collect();
    for (number, (was, is)) in old.sections.all.iter().zip(&new.sections.all).enumerate() {
        if plan.cut.is_some() && !is_placed(was, is, new, number == plan.index) {
            return Err(verify_failed(format!("section {number} is not where its segment is")));
        }
        let has_symbols = symbols.iter().any(|at| was.file_range().contains(at));
        // The contents of segments were compared already, whatever the section header says.
        if number == plan.index || has_symbols || was.is_loaded() || old.address_of(was.offset).is_some() {
            continue;
        }
        if old.section_content(was) != new.section_content(is) {
            return Err(verify_failed(format!("the content of section {number} has changed")));
        }
    }
    let first = plan.pieces.first().map(|piece| piece.address);
    let is_stated = new.sections.all.iter().any(|section| {
        new.is_named(section, SECTION)
            && Some(section.address) == first
            && section.offset == plan.offset_in_result(old, section.address)
    });
    if !is_stated && plan.mode == SectionChange::Moved {
        return Err(verify_failed("no section header names the new place"));
    }
    Ok(())
}
