//! Addresses that code computes, and words that hold addresses of code, have the same targets.

use super::map::AddressMap;
use super::walk::SectionWalk;
use crate::finding::{LintFinding, TARGET, UNCHANGED};
use hotswap_code_object::image::ObjectImage;
use hotswap_isa::Flag;
use hotswap_program::ProgramByte;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn compare_addresses(
    walk: &mut SectionWalk<'_, '_, '_>,
    images: (&ObjectImage<'_>, &ObjectImage<'_>),
    maps: &BTreeMap<usize, AddressMap>,
) {
    let explained = compare_computed(walk, images, maps);
    let source = &walk.old.program.source;
    // A changed literal is part of a computed address, or a linker's relocation explains it.
    for at in std::mem::take(&mut walk.literals) {
        let size = walk.old.program.decode(at).map_or(4, |inst| u32::from(inst.len()));
        let relocated = !source.fixups_in(at..at + size).is_empty();
        let serves = walk.old.program.function_at(at).is_some_and(|(_, function)| function.serves_fetching(at));
        if !explained.contains(&at) && !relocated && !serves {
            let what = "a literal has changed that is part of no computed address";
            walk.findings.push(LintFinding::at_offset(&UNCHANGED, walk.old, at, what));
        }
    }
    compare_words(walk, images, maps);
}

/// Compares values computed from the program counter; returns the instructions that take part.
fn compare_computed(
    walk: &mut SectionWalk<'_, '_, '_>,
    images: (&ObjectImage<'_>, &ObjectImage<'_>),
    maps: &BTreeMap<usize, AddressMap>,
) -> BTreeSet<u32> {
    let mut explained = BTreeSet::new();
    let mut findings = Vec::new();
    for function in &walk.old.program.functions {
        for value in &function.pc_values {
            let parts = [value.pc, value.low, value.high].map(|at| walk.new_offset(at));
            let found = parts[0].and_then(|at| walk.new.program.function_at(at)).and_then(|(_, after)| {
                after.pc_values.iter().find(|new| [new.pc, new.low, new.high].map(Some) == parts)
            });
            let expected = new_place(walk, images, maps, value.to);
            let alike = found.is_some_and(|found| {
                Some(found.to) == expected || expected.is_some() && follow_new_byte(found.to, walk) == expected
            });
            if !alike {
                let what = "an address that is computed from the program counter has another target than before";
                findings.push(LintFinding::at_offset(&TARGET, walk.old, value.pc, what));
                continue;
            }
            let ends = value.pc..=value.low.max(value.high);
            explained.extend(
                walk.literals.iter().copied().filter(|at| ends.contains(at)).filter(|one| is_scalar_alu(one, walk.old)),
            );
        }
    }
    walk.findings.append(&mut findings);
    explained
}

fn follow_new_byte(to: ProgramByte, walk: &SectionWalk<'_, '_, '_>) -> Option<ProgramByte> {
    let offset = walk.new.program.source.offset_of(to)?;
    Some(walk.new.program.source.place_of(walk.leads_on(offset)?))
}

fn is_scalar_alu(at: &u32, walk_old: &crate::unit::LintUnit<'_>) -> bool {
    walk_old.program.decode(*at).is_some_and(|inst| inst.is(Flag::Salu))
}

/// Compares words outside of the instructions that hold addresses.
fn compare_words(
    walk: &mut SectionWalk<'_, '_, '_>,
    images: (&ObjectImage<'_>, &ObjectImage<'_>),
    maps: &BTreeMap<usize, AddressMap>,
) {
    let (before, after) = (&walk.old.program.source, &walk.new.program.source);
    let mut findings = Vec::new();
    if before.slots.len() != after.slots.len() {
        findings.push(LintFinding::of_file(&TARGET, "words with addresses are missing, or new"));
    }
    let new: BTreeMap<ProgramByte, ProgramByte> = after.slots.iter().map(|slot| (slot.place, slot.to)).collect();
    for slot in &before.slots {
        let Some(offset) = before.offset_of(slot.to) else { continue };
        let at = new_place(walk, images, maps, slot.place);
        let found = at.and_then(|at| new.get(&at)).and_then(|to| after.offset_of(*to));
        let expected = walk.map.new_start(offset);
        let alike = found.is_some() && (found == expected || found.is_some_and(|to| walk.leads_on(to) == expected));
        if !alike {
            let what = format!("the word at {:#x} no longer leads to the code that was at {offset:#x}", slot.place.at);
            findings.push(LintFinding::at_offset(&TARGET, walk.old, offset, what));
        }
    }
    walk.findings.append(&mut findings);
}

/// The new position of a place of the original.
fn new_place(
    walk: &SectionWalk<'_, '_, '_>,
    (old, new): (&ObjectImage<'_>, &ObjectImage<'_>),
    maps: &BTreeMap<usize, AddressMap>,
    at: ProgramByte,
) -> Option<ProgramByte> {
    let (before, after) = (&walk.old.program.source, &walk.new.program.source);
    if let Some(offset) = before.offset_of(at) {
        return walk.map.new_start(offset).map(|offset| after.place_of(offset));
    }
    if before.linked && at.base == ProgramByte::CODE {
        let number = old.section_at(at.at)?;
        let distance = at.at - old.sections[number].address;
        let moved = match maps.get(&number) {
            Some(map) => u64::from(map.new_start(distance as u32)?),
            None => distance,
        };
        return Some(ProgramByte { at: new.sections.get(number)?.address + moved, ..at });
    }
    let section = (!before.linked).then(|| at.base.checked_sub(1)).flatten();
    match section.and_then(|number| maps.get(&(number as usize))) {
        Some(map) => Some(ProgramByte { at: u64::from(map.new_start(at.at as u32)?), ..at }),
        None => Some(at),
    }
}
