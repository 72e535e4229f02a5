//! The fallback for a linked file without relocations that holds code with unresolved control flow: functions that grow
//! move to a pool after the rest of their section, which keeps its offsets. The engine then runs again on that file.
//!
//! Invariants: the file with pools is compared with the input, like every result, before it is changed any further.

use super::{Spent, Work, certified, planned, sites_of, suspects, verified, written};
use crate::order::ObjectRecord;
use crate::sites::{Outcome, Task};
use crate::unit::Unit;
use crate::verify;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::Image;
use hotswap_program::{Program, Source};
use hotswap_report::{Diagnostic, codes};
use hotswap_rewrite::{LongBranch, Moved, Options, Pooled, pool};
use std::collections::BTreeMap;

/// The assumption that the record states of each moved function.
const ENTERED: &str =
    "code that cannot be explained enters other functions at their begin alone; this one moved behind them";

/// Rewrites the object by way of pools. `refusal` is why the rewrite fails without them.
pub(super) fn code(
    object: &CodeObject<'_>,
    (image, work): (&Image<'_>, &[Work<'_>]),
    task: &Task<'_>,
    record: &mut ObjectRecord,
    refusal: Diagnostic,
) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let Pooled { bytes, free, moved } = match pooled(object, work) {
        Ok(Some(pooled)) => pooled,
        Ok(None) => return Err(vec![refusal]),
        Err(error) => return Err(vec![refusal, error]),
    };
    let one = |error: Diagnostic| vec![error];
    let made = CodeObject::parse(&bytes).map_err(one)?;
    let made_image = Image::parse(&bytes).map_err(one)?;
    same((image, work), &made_image, &moved).map_err(one)?;
    let source = work.first().map_or(task.target, |work| work.unit.isa());
    let found = suspects(&made, source, task.rewriter);
    let again = planned(&made, &made_image, task, found)?;
    let result = written(&made, (&made_image, &again), &free, record).map_err(one)?;
    let code = |image: &Image<'_>| {
        let parts = image.sections.iter().filter(|part| part.is_code());
        parts.map(|part| part.size as i64).sum::<i64>()
    };
    record.grown += code(&made_image) - code(image);
    let sections: BTreeMap<&str, usize> = again.iter().map(|work| (work.unit.name, work.unit.number)).collect();
    let sites = sites_of(&again);
    let maps = verified(&made_image, Spent(again), &result, task).map_err(one)?;
    for function in &mut record.functions {
        let is_moved =
            |one: &Moved| sections.get(&*function.section) == Some(&one.section) && one.to == function.offset;
        if moved.iter().any(is_moved) {
            function.assumes.push(ENTERED.to_owned());
        }
    }
    certified(image, result, &sites, &maps, &moved).map_err(one)
}

/// The file with every function that changes its size moved to a pool.
fn pooled(object: &CodeObject<'_>, work: &[Work<'_>]) -> Result<Option<Pooled>, Diagnostic> {
    let size = |code: &[hotswap_isa::Inst]| code.iter().map(|inst| usize::from(inst.len())).sum::<usize>();
    let mut functions = Vec::new();
    for one in work {
        let grows =
            |outcome: &&Outcome| outcome.changes.iter().any(|(_, old, new)| usize::from(old.len()) != size(new));
        for outcome in one.outcomes.iter().filter(grows) {
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
    let programs: Vec<(usize, &Program<'_>)> = work.iter().map(|work| (work.unit.number, &work.unit.program)).collect();
    let registers = |branch: &LongBranch| super::long_branch(work, branch);
    let options = Options { registers: Some(&registers), programs: &programs, ..Options::default() };
    pool(object.bytes(), &functions, &options)
}

/// Checks that the file with pools is equivalent to the input.
fn same((image, work): (&Image<'_>, &[Work<'_>]), made: &Image<'_>, moved: &[Moved]) -> Result<(), Diagnostic> {
    verify::descriptors(made.bytes())?;
    let numbers: Vec<usize> = work.iter().map(|work| work.unit.number).collect();
    let own = |number: usize| moved.iter().copied().filter(|one| one.section == number).collect::<Vec<Moved>>();
    let places = |number: usize, _: &Source<'_>| {
        let moved = own(number);
        let functions =
            work.iter().filter(|work| work.unit.number == number).flat_map(|work| &work.unit.program.functions);
        let mut places: Vec<u32> = functions.map(|function| verify::moved_to(&moved, function.start)).collect();
        places.sort_unstable();
        places
    };
    let object = CodeObject::parse(made.bytes())?;
    let units = Unit::read(Unit::sources(&object)?, made, &numbers, places);
    let missing = || Diagnostic::error(codes::VERIFY_FAILED, "a section of code is missing");
    for one in work {
        let new = units.iter().find(|unit| unit.number == one.unit.number).ok_or_else(missing)?;
        let (plan, moved) = (verify::Plan::default(), own(one.unit.number));
        let target = one.unit.isa();
        let plain = verify::Plain::new(target, target);
        let images = (image, made);
        verify::unit(&verify::Pair {
            old: &one.unit,
            new,
            plan,
            data: verify::data(&one.unit),
            images,
            target,
            plain: &plain,
            moved: &moved,
        })?;
    }
    Ok(())
}
