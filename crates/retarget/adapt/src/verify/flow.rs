//! Entries, calls, jump tables and computed addresses of a function, before and after, and words that hold code
//! addresses.

use super::follow::led_on;
use super::offset_map::CodeOffsetMap;
use super::{PlanDifference, UnitPair};
use hotswap_program::{BlockExit, CallDestination, CodeSource, Function, MarkKind, ProgramByte, SectionSymbol};

/// Compares one function; `number` is that of the old one.
pub(super) fn compare_function(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
    number: usize,
) -> Result<(), PlanDifference> {
    let (old, new) = (&pair.old.program, &pair.new.program);
    let before = &old.functions[number];
    // Code that no symbol covers is not followed. It is checked only if something branches into it.
    if before.mark.is_none() || before.block_count() == 0 {
        return Ok(());
    }
    let start = followed.new_start(before.start).ok_or((0, "a function is nowhere".to_owned()))?;
    let Some((_, after)) = new.function_at(start) else { return Err((start, "a function is gone".to_owned())) };
    for entry in &before.entries {
        let at = followed.new_start(entry.offset);
        if !after.entries.iter().any(|new| Some(new.offset) == at && new.kind == entry.kind) {
            return Err((start, format!("the entry at {:#x} is nowhere", entry.offset)));
        }
    }
    for call in &before.calls {
        let Some(found) = followed.new_offset(call.offset).and_then(|at| after.call_at(at)) else {
            return Err((start, format!("the call at {:#x} is gone", call.offset)));
        };
        let same = match (call.callee, found.callee) {
            (CallDestination::Function { entry, .. }, CallDestination::Function { entry: new, .. }) => {
                reaches_expected(pair, new, followed.new_start(entry))
            }
            (CallDestination::Outside(old), CallDestination::Outside(new)) => {
                new_place(pair, followed, old) == Some(new)
            }
            (CallDestination::Unknown, CallDestination::Unknown) => true,
            _ => false,
        };
        if !same || call.link != found.link {
            return Err((found.offset, "a call has another target than before".to_owned()));
        }
    }
    compare_jump_tables(followed, before, after)?;
    for value in &before.pc_values {
        let parts = [
            mapped_new_offset(value.pc, followed),
            mapped_new_offset(value.low, followed),
            mapped_new_offset(value.high, followed),
        ];
        let found = after.pc_values.iter().find(|one| has_expected_value(one, &parts)).map(|new| new.to);
        let expected = new_place(pair, followed, value.to);
        if found != expected && !is_led_there(pair, found, expected) {
            return Err((
                mapped_new_offset(value.pc, followed).unwrap_or(start),
                "an address is computed otherwise".to_owned(),
            ));
        }
    }
    if after.problems.len() > before.problems.len() {
        let problem =
            after.problems.iter().find(|problem| !before.problems.iter().any(|old| old.reason == problem.reason));
        let problem = problem.unwrap_or(&after.problems[0]);
        return Err((problem.offset, format!("less is known of the function than before: {}", problem.reason)));
    }
    Ok(())
}

/// Whether a computed address leads to the expected code, as a target of a branch may.
fn is_led_there(pair: &UnitPair<'_, '_, '_>, found: Option<ProgramByte>, expected: Option<ProgramByte>) -> bool {
    let source = &pair.new.program.source;
    let Some(found) = found.and_then(|place| source.offset_of(place)) else { return false };
    reaches_expected(pair, found, expected.and_then(|place| source.offset_of(place)))
}

fn mapped_new_offset(offset: u32, followed: &CodeOffsetMap) -> Option<u32> {
    followed.new_offset(offset)
}

fn has_expected_value(new: &&hotswap_program::PcValue, parts: &[Option<u32>; 3]) -> bool {
    [new.pc, new.low, new.high].map(Some) == *parts
}

/// Jump tables have the targets that they had.
fn compare_jump_tables(followed: &CodeOffsetMap, before: &Function, after: &Function) -> Result<(), PlanDifference> {
    for (number, block) in before.blocks().enumerate().filter(|(_, block)| block.exit == BlockExit::Table) {
        let Some(at) = followed.new_offset(block.last) else {
            return Err((after.start, "a jump is nowhere".to_owned()));
        };
        let found =
            after.block_at(at).filter(|new| after.block(*new).last == at && after.exit(*new) == BlockExit::Table);
        let Some(found) = found else { return Err((at, "a jump by a table is none any more".to_owned())) };
        let led = before.successors(number).into_iter().map(|to| followed.new_start(before.block(to as usize).start));
        let leads = after.successors(found).into_iter().map(|to| Some(after.block(to as usize).start));
        if !led.eq(leads) || before.leaves(number) != after.leaves(found) {
            return Err((at, "a jump through a table has another target than before".to_owned()));
        }
    }
    Ok(())
}

/// Address words outside instructions refer to the same places in functions as before.
pub(super) fn compare_address_words(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
) -> Result<(), PlanDifference> {
    let (before, after) = (&pair.old.program.source, &pair.new.program.source);
    if before.slots.len() != after.slots.len() {
        return Err((0, "words with addresses are missing".to_owned()));
    }
    for (old, new) in before.slots.iter().zip(&after.slots) {
        let Some(offset) = before.offset_of(old.to).filter(|offset| is_named(before, *offset)) else { continue };
        let found = after.offset_of(new.to);
        let is_led = found.is_some_and(|found| reaches_expected(pair, found, followed.new_start(offset)));
        let is_there = !is_followed(pair, old.place) || new_place(pair, followed, old.place) == Some(new.place);
        if !is_led || !is_there {
            let what = format!("the word at {:#x} no longer leads to the code that was at {offset:#x}", old.place.at);
            return Err((found.unwrap_or(0), what));
        }
    }
    Ok(())
}

/// Whether the new position of a word is known: in data, or in code of this unit that is followed.
fn is_followed(pair: &UnitPair<'_, '_, '_>, word: ProgramByte) -> bool {
    let source = &pair.old.program.source;
    let section = match source.linked {
        true => pair.images.0.section_at(word.at),
        // See `Source`: section numbers start at 1 there.
        false => word.base.checked_sub(1).map(|section| section as usize),
    };
    let is_code = section.and_then(|section| pair.images.0.sections.get(section)).is_some_and(|part| part.is_code());
    source.offset_of(word).map_or(!is_code, |offset| is_named(source, offset))
}

/// Whether the symbol of a function covers an offset: only such code is followed.
fn is_named(source: &CodeSource<'_>, offset: u32) -> bool {
    let before = &source.marks[..source.marks.partition_point(|mark| mark.offset <= offset)];
    before.iter().rev().find(is_function_mark).is_some_and(|mark| offset - mark.offset < mark.size.max(1))
}

fn is_function_mark(mark: &&SectionSymbol<'_>) -> bool {
    matches!(mark.kind, MarkKind::Function | MarkKind::Kernel(_))
}

/// Whether a new offset is the expected one, or branches on to it.
fn reaches_expected(pair: &UnitPair<'_, '_, '_>, new: u32, expected: Option<u32>) -> bool {
    expected == Some(new) || !pair.moved.is_empty() && expected.is_some() && led_on(pair, new) == expected
}

/// The new position of a place.
fn new_place(pair: &UnitPair<'_, '_, '_>, followed: &CodeOffsetMap, old: ProgramByte) -> Option<ProgramByte> {
    let (before, after) = (&pair.old.program.source, &pair.new.program.source);
    if let Some(offset) = before.offset_of(old) {
        return followed.new_start(offset).map(|offset| after.place_of(offset));
    }
    if !before.linked || old.base != ProgramByte::CODE {
        return Some(old);
    }
    // Data moves as a whole.
    let (images, number) = (pair.images, pair.images.0.section_at(old.at)?);
    let (old_section, new_section) = (&images.0.sections[number], images.1.sections.get(number)?);
    Some(ProgramByte { at: new_section.address + (old.at - old_section.address), ..old })
}
