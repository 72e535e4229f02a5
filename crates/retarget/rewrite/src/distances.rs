//! Distances in code without a relocation, and addresses in files that were linked without relocations.
//!
//! An address in such a file belongs to the section or object that contains it. It is ambiguous where parts of the file
//! move by different amounts and the address is between two of them, or where it is in nothing that code can refer to:
//! that is refused.

use crate::fix::{FieldPatch, LayoutContext, SectionOffset};
use crate::known::{CodeFacts, KnownProgram};
use crate::plan::CodePlan;
use crate::refuse_layout;
use crate::scan::{Fetch, PcComputation, Range32};
use hotswap_code_object::image::SectionPart;
use hotswap_report::Diagnostic;
use object::elf;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Sections that linkers write for loaders and unwinders: code refers to none of them.
const FOR_LOADERS: &[&str] = &[".eh_frame", ".eh_frame_hdr", ".relro_padding", ".interp"];

/// Bytes of a prefetch; the distance is in the low three of the second word.
const FETCH: u64 = 8;

pub(crate) fn is_data(section: &SectionPart<'_>) -> bool {
    let kinds = [elf::SHT_PROGBITS, elf::SHT_NOBITS, elf::SHT_INIT_ARRAY, elf::SHT_FINI_ARRAY];
    section.is_loaded() && !section.is_code() && kinds.contains(&section.kind) && !FOR_LOADERS.contains(&section.name)
}

/// The new value of an address of a linked file without relocations. `known` has the facts about its code.
pub(crate) fn moved_address(
    world: &LayoutContext<'_>,
    known: &BTreeMap<usize, KnownProgram<'_>>,
    address: u64,
) -> Option<u64> {
    let sections = world.image.sections.iter().enumerate().filter(|(_, section)| section.is_loaded());
    let mut code = sections.clone().filter(|(_, section)| section.is_code() && section.addresses().contains(&address));
    if let Some((number, section)) = code.next() {
        let place = SectionOffset { section: number, offset: address - section.address };
        let is_target = known.get(&number).is_none_or(|known| known.is_target(place.offset));
        return world.start_address(place).filter(|_| is_target);
    }
    let mut touching = sections
        .filter(|(_, section)| is_data(section) && section.address <= address && address <= section.addresses().end)
        .map(|(number, _)| section_shift(world, number));
    let shift = match touching.next() {
        Some(first) => touching.all(|other| other == first).then_some(first)?,
        None => common_shift(world, address)?,
    };
    Some(address.wrapping_add(shift))
}

/// The amount by which the start of a section moves, modulo 2^64.
fn section_shift(world: &LayoutContext<'_>, number: usize) -> u64 {
    world.layout.addresses[number].wrapping_sub(world.image.sections[number].address)
}

/// The amount by which both neighbours of an address move, if it is the same.
fn common_shift(world: &LayoutContext<'_>, address: u64) -> Option<u64> {
    let sections = world.image.sections.iter().enumerate();
    let filled = sections.filter(|(_, section)| section.size > 0 && (is_data(section) || section.is_code()));
    let below = filled.clone().filter(|(_, section)| section.addresses().end <= address);
    let below = below.max_by_key(|(_, section)| section.address).map(|(number, section)| {
        let grown = world.layout.sizes[number].wrapping_sub(section.size);
        section_shift(world, number).wrapping_add(grown)
    });
    let above = filled.filter(|(_, section)| section.address > address);
    let above = above.min_by_key(|(_, section)| section.address).map(|(number, _)| section_shift(world, number));
    below.filter(|shift| above == Some(*shift))
}

/// Writes distances in code that lack a relocation: long branches, and all of them in a file without relocations.
/// `seen` has the offsets of those that have one, ascending.
pub(crate) fn write_distances(
    world: &LayoutContext<'_>,
    plans: &[CodePlan<'_>],
    facts: CodeFacts<'_>,
    seen: &[SectionOffset],
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    for plan in plans {
        let pieces = plan.computations.par_chunks(PIECE);
        let found: Vec<Result<Vec<[Option<FieldPatch>; 2]>, Diagnostic>> = pieces
            .map(|piece| piece.iter().map(|one| unseen_fields(world, plan, facts, seen, one)).collect())
            .collect();
        for piece in found {
            piece?.into_iter().flatten().flatten().for_each(|patch| patch.write(out));
        }
        let found: Vec<Option<FieldPatch>> = plan
            .fetches
            .par_iter()
            .with_min_len(PIECE)
            .map(|one| computation_prefetch_patch(one, world, plan))
            .collect();
        found.into_iter().flatten().for_each(|patch| patch.write(out));
    }
    Ok(())
}

fn computation_prefetch_patch(one: &Fetch, world: &LayoutContext<'_>, plan: &CodePlan<'_>) -> Option<FieldPatch> {
    prefetch_patch(world, plan, one)
}

/// Computations that one task handles.
const PIECE: usize = 1 << 9;

/// A computation's fields, unless they have relocations.
fn unseen_fields(
    world: &LayoutContext<'_>,
    plan: &CodePlan<'_>,
    facts: CodeFacts<'_>,
    seen: &[SectionOffset],
    one: &PcComputation,
) -> Result<[Option<FieldPatch>; 2], Diagnostic> {
    let (start, low) = (unseen_field_offset(one.at, plan), unseen_field_offset(one.low, plan));
    if seen.binary_search(&low).is_ok() {
        return Ok([None, None]);
    }
    if world.maps.new_bytes(start, 4).is_none() && world.maps.new_bytes(low, 4).is_none() {
        return Ok([None, None]);
    }
    // It is never executed, and nothing says where it leads: it is left unchanged.
    if facts.is_never_reached(plan.section, one.at) {
        return Ok([None, None]);
    }
    let is_dead = facts.known.get(&plan.section).is_some_and(|known| !known.is_reached(one.at));
    match computation_patches(world, plan, facts.known, one) {
        // Its target is not certain, either.
        Err(_) if is_dead || (facts.serves)(plan.section, one.at) => Ok([None, None]),
        Ok([Some(low), _]) if low.value as u32 != one.written() && facts.is_untracked(plan.section, one.at) => {
            let what =
                "nothing that the code does with this distance from the program counter is known, and it changes";
            Err(refuse_layout(plan.file + one.at, what).advise("compile the kernel for the target"))
        }
        result => result,
    }
}

fn unseen_field_offset(offset: u64, plan: &CodePlan<'_>) -> SectionOffset {
    SectionOffset { section: plan.section, offset }
}

/// The new position of the target of an address in the code's own file; if its bytes were
/// removed, of their replacement.
fn new_target(world: &LayoutContext<'_>, section: usize, address: u64) -> Option<u64> {
    let place =
        if world.is_linked() { world.place_of_address(address)? } else { world.place_in_section(section, address)? };
    world.layout.addresses[place.section].checked_add(world.maps.start_or_replacement(place)?)
}

/// A prefetch: its distance is left unchanged where it cannot be encoded, because it changes no result.
fn prefetch_patch(world: &LayoutContext<'_>, plan: &CodePlan<'_>, one: &Fetch) -> Option<FieldPatch> {
    let base = world.base_address(plan.section) + one.from + u64::from(one.size);
    let target = new_target(world, plan.section, base.wrapping_add_signed(one.distance))?;
    let from = world.maps.new_bytes(prefetch_field_offset(one.from, plan), u64::from(one.size))? + u64::from(one.size);
    let distance = target.wrapping_sub(world.layout.addresses[plan.section] + from) as i64;
    let at = world.file_offset(prefetch_field_offset(one.at, plan), FETCH)? + 4;
    (-(1 << 23)..1 << 23).contains(&distance).then_some(FieldPatch { at, size: 3, value: distance as u64 })
}

fn prefetch_field_offset(offset: u64, plan: &CodePlan<'_>) -> SectionOffset {
    SectionOffset { section: plan.section, offset }
}

fn computation_patches(
    world: &LayoutContext<'_>,
    plan: &CodePlan<'_>,
    known: &BTreeMap<usize, KnownProgram<'_>>,
    one: &PcComputation,
) -> Result<[Option<FieldPatch>; 2], Diagnostic> {
    let target = (world.base_address(plan.section) + one.base).wrapping_add(one.distance);
    let new = match world.is_linked() {
        true if !known.is_empty() => moved_address(world, known, target),
        true => world.place_of_address(target).and_then(|target| world.start_address(target)),
        false => world.place_in_section(plan.section, target).and_then(|target| world.start_address(target)),
    };
    // The end of the code lacks a place that could move: what follows it is not known.
    let code = &world.image.sections[plan.section];
    let new = match target == world.base_address(plan.section) + code.size && known.is_empty() {
        true => None,
        false => new,
    };
    let field = world.maps.new_bytes(computation_field_offset(one.at, plan), 4);
    let (Some(new), Some(field)) = (new, field) else { return Err(unknown_target(plan, one, target)) };
    let base = field + 4;
    let distance = new.wrapping_sub(world.layout.addresses[plan.section] + base);
    if one.high.is_none() && one.size == 4 && !one.range.can_encode(distance as i64) {
        return Err(refuse_layout(plan.file + one.at, "a distance in code does not fit into its 32 bits any more"));
    }
    let Some(at) = field_in_file(world, plan, one.low, one.size) else { return Err(unknown_target(plan, one, target)) };
    let low = FieldPatch { at, size: one.size, value: distance.wrapping_sub(i64::from(one.bias) as u64) };
    let Some(high) = one.high else { return Ok([Some(low), None]) };
    let Some(at) = field_in_file(world, plan, high, 4) else { return Err(unknown_target(plan, one, target)) };
    Ok([Some(low), Some(FieldPatch { at, size: 4, value: distance >> 32 })])
}

/// The offset of a computation's field in the new file.
fn field_in_file(world: &LayoutContext<'_>, plan: &CodePlan<'_>, at: u64, size: u8) -> Option<usize> {
    world.file_offset(computation_field_offset(at, plan), u64::from(size))
}

fn unknown_target(plan: &CodePlan<'_>, one: &PcComputation, target: u64) -> Diagnostic {
    let what =
        format!("what this computes from the program counter is not known: {target:#x} belongs to nothing certain");
    refuse_layout(plan.file + one.at, what)
}

fn computation_field_offset(offset: u64, plan: &CodePlan<'_>) -> SectionOffset {
    SectionOffset { section: plan.section, offset }
}

impl Range32 {
    /// Whether 32 bits can encode that distance.
    pub(crate) fn can_encode(self, distance: i64) -> bool {
        match self {
            Self::Signed => i32::try_from(distance).is_ok(),
            Self::Positive => u32::try_from(distance).is_ok(),
            Self::Negative => (-(1 << 32)..=0).contains(&distance),
            Self::Small => (0..1 << 31).contains(&distance),
        }
    }
}
