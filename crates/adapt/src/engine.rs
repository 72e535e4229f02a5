//! The phases of rewriting one code object.

use crate::MOST_REFUSALS;
use crate::certificate::{SectionMap, SectionSites, certificate};
use crate::kernel_registers::{self, KernelRegisters};
use crate::order::{FunctionRecord, ObjectRecord, Order, SiteCount, SpillCount};
use crate::prepared::{Code, Label, Prepared};
use crate::reach::{self, Kernel};
use crate::refusal::Refused;
use crate::scan::{Suspects, suspects};
use crate::site_context::FunctionContext;
use crate::sites::{self, Outcome, Places, Task};
use crate::spill::{PrivateSegments, private_segments};
use crate::unit::Unit;
use crate::unnamed;
use crate::verify;
use hotswap_code_object::image::Image;
use hotswap_code_object::kernel_descriptor::{DENORM_16_64, Field, KernelDescriptor, ROUND_16_64};
use hotswap_code_object::{CodeObject, SourceLines, with_certificate};
use hotswap_families::code::Scheduling;
use hotswap_families::{FAMILIES, Registry, Scope};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Isa, Target};
use hotswap_program::{Dead, Function, Mark, MarkKind, Program, Source};
use hotswap_report::{Diagnostic, FamilyCount, codes};
use hotswap_rewrite::{Edits, LongBranch, Moved, Options, rewrite};
use hotswap_targets::Processor;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

#[cfg(test)]
mod damage;
mod pooled;

/// A unit and its rewrite.
struct Work<'a> {
    unit: Unit<'a>,
    kernels: Vec<Kernel>,
    outcomes: Vec<Outcome>,
    /// Refusals in bytes that no function claims.
    unclaimed: Vec<Refused>,
}

pub(crate) fn prepare<'a>(object: CodeObject<'a>, order: &Order) -> Result<Prepared<'a>, Vec<Diagnostic>> {
    let one = |error: Diagnostic| vec![error];
    let source = object.target_id();
    let mut record =
        ObjectRecord { source: source.to_string(), target: order.target.to_string(), ..ObjectRecord::default() };
    if source.processor == order.target.processor {
        record.labelled = true;
        return Ok(Prepared::new(Code::Same(Box::new(object)), None, record));
    }
    let [from, to] = [source.processor.name, order.target.processor.name].map(isa);
    let (from, to) = (from.map_err(one)?, to.map_err(one)?);
    let rewriter = Registry::installed().rewriter().map_err(one)?;
    let label = || (!order.keep_machine).then(|| Label::of(&object, order.target)).transpose();
    let (label, found) = rayon::join(label, || suspects(&object, from, &rewriter));
    // A section in which the pass found nothing may hold code that no symbol names, if something can branch to it.
    if found.iter().all(Suspects::is_empty) && !unnamed::has_indirect_transfers(&object, from) {
        return Ok(Prepared::new(Code::Same(Box::new(object)), label.map_err(one)?, record));
    }
    let scheduled = found.iter().any(|section| section.schedules);
    let scheduling = if scheduled { Scheduling::Program } else { Scheduling::Hardware };
    let half_mode = half_mode(&object, found.iter().any(|section| section.sets_half_mode));
    let task = Task::new(&rewriter, to, scheduling).with_half_mode(half_mode);
    let Some(code) = code(&object, &task, found, &mut record)? else {
        return Ok(Prepared::new(Code::Same(Box::new(object)), label.map_err(one)?, record));
    };
    drop(label);
    let label = || CodeObject::parse(&code).and_then(|object| Label::of(&object, order.target));
    let label = (!order.keep_machine).then(label).transpose().map_err(one)?;
    Ok(Prepared::new(Code::New(code), label, record))
}

/// Why MODE may have 16-bit floats rounded other than to the nearest even, or their denormals flushed, somewhere in an
/// object.
fn half_mode(object: &CodeObject<'_>, is_set: bool) -> Option<String> {
    /// Values of the descriptor fields: round to the nearest even, flush nothing.
    const USUAL: [(&Field, u64); 2] = [(ROUND_16_64, 0), (DENORM_16_64, 3)];
    if is_set {
        return Some("an instruction of this code object sets them otherwise".to_owned());
    }
    let kernels = object.note().kernels.iter().zip(object.descriptors());
    for (kernel, place) in kernels {
        let bytes = object.bytes().get(place.range.clone());
        let descriptor = bytes.and_then(|bytes| KernelDescriptor::new(bytes, object.target_id().processor));
        let Some(descriptor) = descriptor else { continue };
        for (field, usual) in USUAL {
            if let Some(value) = descriptor.get(field).filter(|value| *value != usual) {
                return Some(format!("the descriptor of `{}` has {} {value}", kernel.name, field.name));
            }
        }
    }
    None
}

fn isa(name: &str) -> Result<Isa, Diagnostic> {
    let target = Target::find(name).map(Isa::new);
    target.ok_or_else(|| Diagnostic::error(codes::NO_INSTRUCTIONS, format!("the code is for {name}")))
}

/// Changes the code of the sections. Returns `None` if nothing was found and nothing changes.
fn code(
    object: &CodeObject<'_>,
    task: &Task<'_>,
    found: Vec<Suspects>,
    record: &mut ObjectRecord,
) -> Result<Option<Vec<u8>>, Vec<Diagnostic>> {
    let one = |error: Diagnostic| vec![error];
    let image = Image::parse(object.bytes()).map_err(one)?;
    let is_clean = found.iter().all(Suspects::is_empty);
    let mut work = planned(object, &image, task, found)?;
    record.unclaimed = work.iter().map(|work| unnamed::unclaimed_bytes(&work.unit)).sum();
    if is_clean && work.iter().all(|work| work.outcomes.is_empty()) {
        return Ok(None);
    }
    let before = record.clone();
    let bytes = match written(object, (&image, &work), &[], record) {
        Err(error) if error.code == codes::NO_LAYOUT => {
            *record = before;
            return pooled::code(object, (&image, &work), task, record, error).map(Some);
        }
        result => result.map_err(one)?,
    };
    if bytes == object.bytes() {
        return Ok(Some(bytes));
    }
    let sites = sites_of(&work);
    work.iter_mut().for_each(Work::keep_changes);
    let maps = verified(&image, Spent(work), &bytes, task).map_err(one)?;
    certified(&image, bytes, &sites, &maps, &[]).map(Some).map_err(one)
}

/// The changes in each section, for the certificate.
fn sites_of(work: &[Work<'_>]) -> Vec<SectionSites> {
    work.iter().map(|work| SectionSites::of(work.unit.number, &work.outcomes)).collect()
}

/// Adds the certificate to a verified result.
fn certified(
    image: &Image<'_>,
    made: Vec<u8>,
    sites: &[SectionSites],
    maps: &[SectionMap],
    moved: &[Moved],
) -> Result<Vec<u8>, Diagnostic> {
    let new = Image::parse(&made)?;
    let certificate = certificate((image, &new), sites, maps, moved).to_bytes();
    drop(new);
    with_certificate(made, &certificate).ok_or_else(|| {
        let what = "there is no room for the certificate of a change: the file has too many sections";
        Diagnostic::error(codes::NO_LAYOUT, what)
    })
}

/// Plans the changes of each section with suspects, or with code that no symbol names.
fn planned<'a>(
    object: &CodeObject<'a>,
    image: &Image<'a>,
    task: &Task<'_>,
    found: Vec<Suspects>,
) -> Result<Vec<Work<'a>>, Vec<Diagnostic>> {
    let one = |error: Diagnostic| vec![error];
    // Sections in which nothing was found may hold code that no symbol names.
    let has_transfers = unnamed::has_indirect_transfers(object, task.target);
    let is_wanted = |found: &Suspects| has_transfers || !found.is_empty();
    let mut found: BTreeMap<u64, Suspects> =
        found.into_iter().filter(is_wanted).map(|found| (found.file as u64, found)).collect();
    let sections =
        image.sections.iter().enumerate().filter(|(_, section)| section.is_code() && !section.bytes.is_empty());
    let numbers: Vec<usize> =
        sections.filter(|(_, section)| found.contains_key(&section.offset)).map(|(number, _)| number).collect();
    let (mut work, segments) = (Vec::new(), private_segments(object));
    let places = |number: usize, _: &Source<'_>| {
        found.get(&image.sections[number].offset).map_or_else(Vec::new, Suspects::places)
    };
    for unit in Unit::read(Unit::sources(object).map_err(one)?, image, &numbers, places) {
        let Some(mut suspects) = found.remove(&image.sections[unit.number].offset) else { continue };
        unnamed::complete(&unit, task.rewriter, &mut suspects);
        let kernels = reach::kernels(&unit, object.target_id().processor, &segments);
        let outcomes = run(&unit, &suspects, &kernels, task, |outcome| outcome);
        let mut unclaimed = unnamed::refusals(&unit, task.rewriter);
        // One report for each function is enough.
        let refused = outcomes.iter().filter(|outcome| !outcome.refused.is_empty());
        let refused: Vec<usize> = refused.map(|outcome| outcome.number).collect();
        let is_told = |number: usize| refused.binary_search(&number).is_ok();
        unclaimed.retain(|one| unit.program.function_at(one.offset).is_none_or(|(number, _)| !is_told(number)));
        work.push(Work { unit, kernels, outcomes, unclaimed });
    }
    if let Some(at) = found.iter().find(|(_, found)| !found.is_empty()).map(|(at, _)| at) {
        let what = "code that concerns a family is in no section";
        return Err(vec![Diagnostic::error(codes::NO_LAYOUT, what).at(*at)]);
    }
    refusals(&work, object)?;
    Ok(work)
}

/// Writes the file with these changes, and its record. `free` holds, for sections by number, the offset from which on
/// code may always move.
fn written(
    object: &CodeObject<'_>,
    (image, work): (&Image<'_>, &[Work<'_>]),
    free: &[(usize, u64)],
    record: &mut ObjectRecord,
) -> Result<Vec<u8>, Diagnostic> {
    let (changed, edits) = rayon::join(|| recorded(work, object.target_id().processor, record), || edits(work));
    if edits.is_empty() {
        return Ok(object.bytes().to_vec());
    }
    let (data, contents) = kernel_registers::write(object, image, &changed)?;
    let contents: Vec<(usize, &[u8])> = contents.iter().map(|(number, bytes)| (*number, &bytes[..])).collect();
    let programs: Vec<(usize, &Program<'_>)> = work.iter().map(|work| (work.unit.number, &work.unit.program)).collect();
    let registers = |branch: &LongBranch| long_branch(work, branch);
    let options = Options { registers: Some(&registers), programs: &programs, contents: &contents, free };
    let output = rewrite(&data, &edits, &options)?;
    record.grown = output.grown;
    Ok(output.bytes)
}

/// Fills in the record. Returns the kernels that get more registers.
fn recorded(work: &[Work<'_>], processor: &Processor, record: &mut ObjectRecord) -> BTreeMap<String, KernelRegisters> {
    let mut changed = BTreeMap::new();
    work.iter().for_each(|one| one.record(processor, record, &mut changed));
    for function in &record.functions {
        record.spilled.add(function.spilled);
    }
    count_families(work, record);
    changed
}

/// The changes of each section that has any.
fn edits(work: &[Work<'_>]) -> BTreeMap<usize, Edits> {
    let mut edits: BTreeMap<usize, Edits> = BTreeMap::new();
    for one in work {
        let list = edits.entry(one.unit.number).or_default();
        one.outcomes.iter().for_each(|outcome| outcome.changes.edits(list));
    }
    edits.retain(|_, edits| !edits.is_empty());
    edits
}

/// Parses the result and checks it, before it is labelled. No family may have work left in it. `work` is dropped as
/// soon as it is no longer needed.
fn verified<'a>(
    image: &Image<'_>,
    work: impl AsRef<[Work<'a>]> + Send + Sync,
    made: &[u8],
    task: &Task<'_>,
) -> Result<Vec<SectionMap>, Diagnostic> {
    let all = work.as_ref();
    let (object, new_image) = rayon::join(|| CodeObject::parse(made), || Image::parse(made));
    let (object, new_image) = (object?, new_image?);
    let numbers: Vec<usize> = all.iter().map(|work| work.unit.number).collect();
    let isa = all.first().map_or(task.target, |work| work.unit.isa());
    let suspects = || suspects(&object, isa, task.rewriter);
    let described = || object.check_descriptors();
    let (described, (sources, found)) = rayon::join(described, || rayon::join(|| Unit::sources(&object), suspects));
    let sources = sources?;
    described?;
    let processor = object.target_id().processor;
    drop(object);
    let places = |number: usize, source: &Source<'_>| {
        let file = new_image.sections[number].offset as usize;
        let mut places = found.iter().find(|found| found.file == file).map_or_else(Vec::new, Suspects::places);
        let old = all.iter().filter(|work| work.unit.number == number);
        old.for_each(|work| places.extend(marks_of_functions(&work.unit.program, source)));
        // Two sorted runs, which this sort only merges.
        places.sort();
        places
    };
    let units = Unit::read(sources, &new_image, &numbers, places);
    let same = || {
        let result = same((image, work.as_ref()), (&new_image, &units), task);
        // Freeing so much memory takes a while. The other check continues meanwhile.
        drop(work);
        result
    };
    let again = || again(&units, found, &new_image, processor, task);
    let (same, again) = rayon::join(same, again);
    let maps = same?;
    again.map(|()| maps)
}

/// The offsets, in the new source, of the marks of the old program's functions, in ascending order. Symbols keep their
/// order. Code without a symbol gets its marks when the new program is built.
fn marks_of_functions(old: &Program<'_>, new: &Source<'_>) -> Vec<u32> {
    let is_named = |mark: &Mark<'_>| !mark.name.is_empty();
    let all = new.marks.len() == old.source.marks.len();
    let mut places = vec![None; old.source.marks.len()];
    let wanted = old.source.marks.iter().zip(&mut places).filter(|(mark, _)| all || is_named(mark));
    wanted.zip(&new.marks).for_each(|((_, place), mark)| *place = Some(mark.offset));
    old.functions.iter().filter_map(|function| *places.get(function.mark? as usize)?).collect()
}

/// Work that is not needed after the check. It has many small allocations, which all cores free.
struct Spent<'a>(Vec<Work<'a>>);

impl<'a> AsRef<[Work<'a>]> for Spent<'a> {
    fn as_ref(&self) -> &[Work<'a>] {
        &self.0
    }
}

impl Drop for Spent<'_> {
    fn drop(&mut self) {
        for Work { unit, outcomes, .. } in self.0.drain(..) {
            let outcomes = || outcomes.into_par_iter().with_max_len(FUNCTIONS).for_each(drop);
            rayon::join(outcomes, || drop(unit));
        }
    }
}

/// Compares units before and after.
fn same(
    (image, work): (&Image<'_>, &[Work<'_>]),
    (new_image, units): (&Image<'_>, &[Unit<'_>]),
    task: &Task<'_>,
) -> Result<Vec<SectionMap>, Diagnostic> {
    let mut maps = Vec::with_capacity(work.len());
    let missing = || Diagnostic::error(codes::VERIFY_FAILED, "a section of code is missing");
    for one in work {
        let new = units.iter().find(|unit| unit.number == one.unit.number).ok_or_else(missing)?;
        let plan = verify::Plan::of(one.outcomes.iter().map(|outcome| &outcome.changes));
        let images = (image, new_image);
        let (target, plain) = (task.target, task.plain(one.unit.isa()));
        let (old, data) = (&one.unit, verify::data(&one.unit));
        let pair = verify::Pair { old, new, plan, data, images, target, plain, moved: &[] };
        maps.push(SectionMap { number: old.number, followed: verify::unit(&pair)? });
    }
    Ok(maps)
}

/// Runs the families again on the result.
fn again(
    units: &[Unit<'_>],
    found: Vec<Suspects>,
    image: &Image<'_>,
    processor: &Processor,
    task: &Task<'_>,
) -> Result<(), Diagnostic> {
    let mut found: BTreeMap<u64, Suspects> = found.into_iter().map(|found| (found.file as u64, found)).collect();
    for unit in units {
        let Some(suspects) = found.get_mut(&image.sections[unit.number].offset) else { continue };
        unnamed::complete(unit, task.rewriter, suspects);
        let left = |outcome: Outcome| {
            let place = outcome.changes.iter().next().map(|(offset, ..)| offset);
            let place = place.or(outcome.refused.first().map(|refused| refused.offset));
            place.map(|offset| (outcome.number, offset))
        };
        // Nothing is left to spill for.
        let kernels = reach::kernels(unit, processor, &PrivateSegments::new());
        let what = "a second run would change or refuse the result";
        if let Some((number, offset)) = run(unit, suspects, &kernels, task, left).into_iter().flatten().next() {
            let mut error = Diagnostic::error(codes::VERIFY_FAILED, what);
            error.place.kernel = Some(unit.program.name(&unit.program.functions[number]));
            return Err(error.in_entry(unit.name).at(u64::from(offset)));
        }
        if let Some(refused) = unnamed::refusals(unit, task.rewriter).first() {
            return Err(Diagnostic::error(codes::VERIFY_FAILED, what)
                .in_entry(unit.name)
                .at(u64::from(refused.offset)));
        }
    }
    Ok(())
}

/// The most functions that one thread takes at once: with larger shares one thread would be busy alone at the end.
const FUNCTIONS: usize = 64;

/// Rewrites all functions with suspects in parallel. The results are in the order of the code.
fn run<T: Send>(
    unit: &Unit<'_>,
    suspects: &Suspects,
    kernels: &[Kernel],
    task: &Task<'_>,
    result: impl Fn(Outcome) -> T + Sync,
) -> Vec<T> {
    let early = &suspects.early;
    let one = |(number, [sites, reasons]): &Found| {
        let Function { start, end, .. } = unit.program.functions[*number];
        let early = &early[early.partition_point(|offset| *offset < start)..];
        let early = &early[..early.partition_point(|offset| *offset < end)];
        let (sites, reasons) = (&suspects.sites[sites.clone()], &suspects.reasons[reasons.clone()]);
        result(sites::function(task, unit, kernels, *number, &Places { sites, reasons, early }))
    };
    by_function(&unit.program, suspects).par_iter().with_max_len(FUNCTIONS).map(one).collect()
}

/// The number of a function, and the ranges of its sites and reasons in their lists.
type Found = (usize, [Range<usize>; 2]);

/// Functions by number, each with its sites and reasons.
fn by_function(program: &Program<'_>, suspects: &Suspects) -> Vec<Found> {
    let (sites, reasons) = rayon::join(|| runs(program, &suspects.sites), || runs(program, &suspects.reasons));
    let mut functions = Vec::with_capacity(sites.len().max(reasons.len()));
    let (mut sites, mut reasons) = (sites.into_iter().peekable(), reasons.into_iter().peekable());
    let first = |runs: &mut Peekable<IntoIter<Run>>| runs.peek().map(|(number, _)| *number);
    while let Some(number) = first(&mut sites).into_iter().chain(first(&mut reasons)).min() {
        let own = |runs: &mut Peekable<IntoIter<Run>>| {
            runs.next_if(|(other, _)| *other == number).map_or(0..0, |(_, range)| range)
        };
        functions.push((number, [own(&mut sites), own(&mut reasons)]));
    }
    functions
}

/// The number of a function, and the range of the offsets that are in it, or after it without a symbol of their own.
type Run = (usize, Range<usize>);

/// Groups the offsets, which are in ascending order, by function. Functions are in ascending order, too.
fn runs(program: &Program<'_>, offsets: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    while let Some(offset) = offsets.get(at) {
        // All offsets in one function at once.
        let found = program.function_at(*offset);
        let held = |function: &Function| offsets[at..].iter().take_while(|other| **other < function.end).count();
        let end = at + found.map_or(1, |(_, function)| held(function));
        if let Some(number) = found.map(|(number, _)| number).or_else(|| behind(program, *offset)) {
            match runs.last_mut().filter(|(last, _)| *last == number) {
                Some((_, range)) => range.end = end,
                None => runs.push((number, at..end)),
            }
        }
        at = end;
    }
    runs
}

/// The function before an offset: code after it without a symbol of its own is in question if that function is.
fn behind(program: &Program<'_>, offset: u32) -> Option<usize> {
    let before = program.functions.partition_point(|function| function.start <= offset).checked_sub(1)?;
    let function = &program.functions[before];
    // A function that does not exist counts as closed.
    let marks = &program.source.marks;
    let next = &marks[marks.partition_point(|mark| mark.offset < function.end)..];
    let mut between = next.iter().take_while(|mark| mark.offset <= offset);
    let is_code = |mark: &Mark<'_>| matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function);
    (!function.is_closed() && !between.any(is_code)).then_some(before)
}

impl Work<'_> {
    /// Releases the inputs of the record: the check of the result needs the changes only.
    fn keep_changes(&mut self) {
        self.kernels = Vec::new();
        for outcome in &mut self.outcomes {
            let Outcome { number, changes, .. } = std::mem::take(outcome);
            *outcome = Outcome { number, changes, ..Outcome::default() };
        }
    }

    fn record(
        &self,
        processor: &Processor,
        record: &mut ObjectRecord,
        changed: &mut BTreeMap<String, KernelRegisters>,
    ) {
        let outcomes: Vec<&Outcome> = self.outcomes.iter().collect();
        let grants = kernel_registers::grants(&self.kernels, &outcomes);
        for (kernel, grant) in self.kernels.iter().zip(&grants) {
            let had = kernel.needs.sgprs.unwrap_or(0);
            if grant.vgprs > kernel.granted || u32::from(grant.sgprs) > had || grant.private_segment.is_some() {
                changed.insert(kernel.name.clone(), grant.clone());
            }
        }
        let program = &self.unit.program;
        let mut functions: BTreeMap<usize, FunctionRecord> = BTreeMap::new();
        for outcome in self.outcomes.iter().filter(|outcome| !outcome.counts.is_empty()) {
            functions.insert(outcome.number, self.function(outcome));
        }
        for (kernel, grant) in self.kernels.iter().zip(&grants) {
            let number = kernel.function as usize;
            if functions.contains_key(&number) || changed.contains_key(&kernel.name) {
                let function = functions.entry(number).or_insert_with(|| self.place(number));
                function.kernel = Some(kernel_registers::record(kernel, grant, processor));
            }
        }
        debug_assert!(functions.keys().all(|number| *number < program.functions.len()));
        record.functions.extend(functions.into_values());
    }

    fn place(&self, number: usize) -> FunctionRecord {
        let function = &self.unit.program.functions[number];
        FunctionRecord {
            name: self.unit.program.name(function),
            section: self.unit.name.to_owned(),
            offset: u64::from(function.start),
            ..FunctionRecord::default()
        }
    }

    fn function(&self, outcome: &Outcome) -> FunctionRecord {
        let mut record = self.place(outcome.number);
        let is_kernel = self.unit.program.functions[outcome.number].is_kernel();
        if !is_kernel {
            record.reached_from =
                outcome.room.kernels.iter().map(|kernel| self.kernels[*kernel].name.clone()).collect();
        }
        let site = |((family, left), count): (&(&str, Option<&str>), &u64)| SiteCount {
            family: (*family).to_owned(),
            left: left.map(str::to_owned),
            count: *count,
        };
        record.sites = outcome.counts.iter().map(site).collect();
        record.grown = outcome.changes.grown();
        record.cycles = outcome.cycles;
        let registers = |(_, slots): &(u32, Vec<_>)| slots.len() as u64;
        let sites = outcome.spilled.len() as u64;
        record.spilled = SpillCount { sites, registers: outcome.spilled.iter().map(registers).sum() };
        record.assumes = outcome.assumes.iter().map(|what| (*what).to_owned()).collect();
        record
    }
}

/// Returns all refusals, or `Ok` if there are none.
fn refusals(work: &[Work<'_>], object: &CodeObject<'_>) -> Result<(), Vec<Diagnostic>> {
    let mut all: Vec<(&Work<'_>, String, &Refused)> = Vec::new();
    for one in work {
        for outcome in one.outcomes.iter().filter(|outcome| !outcome.refused.is_empty()) {
            let name = one.unit.program.name(&one.unit.program.functions[outcome.number]);
            all.extend(outcome.refused.iter().map(|refused| (one, name.clone(), refused)));
        }
        all.extend(one.unclaimed.iter().map(|refused| (one, format!("code at {:#x}", refused.offset), refused)));
    }
    if all.is_empty() {
        return Ok(());
    }
    let lines = SourceLines::read(object.bytes());
    let diagnostic = |(one, name, refused): &(&Work<'_>, String, &Refused)| {
        let line = lines.at(one.unit.number, u64::from(refused.offset));
        refused.diagnostic(name, one.unit.name, line)
    };
    let mut told: Vec<Diagnostic> = all.iter().take(MOST_REFUSALS).map(diagnostic).collect();
    if all.len() > told.len() {
        told.push(Diagnostic::error(
            codes::NOT_SAFE,
            format!("{} more places cannot be made to run there", all.len() - told.len()),
        ));
    }
    Err(told)
}

/// Sums over the object, in the order in which families run.
fn count_families(work: &[Work<'_>], record: &mut ObjectRecord) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for ((family, left), count) in work.iter().flat_map(|work| &work.outcomes).flat_map(|outcome| &outcome.counts) {
        if left.is_none() {
            *sums.entry(family).or_default() += count;
        }
    }
    let order = |name: &str| {
        let family = FAMILIES.iter().find(|family| family.name == name);
        family.map_or((Scope::Instruction, u32::MAX), |family| (family.scope, family.order))
    };
    let mut sums: Vec<(&str, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(name, _)| (order(name), *name));
    record.families.extend(sums.into_iter().map(|(name, sites)| FamilyCount { name: name.to_owned(), sites }));
}

/// A register pair for a branch that is out of range: dead at the target, as SCC must be.
fn long_branch(work: &[Work<'_>], branch: &LongBranch) -> Option<u8> {
    let one = work.iter().find(|work| work.unit.number == branch.section)?;
    let (at, target) = (u32::try_from(branch.at).ok()?, u32::try_from(branch.target).ok()?);
    let (number, function) = one.unit.program.function_at(at)?;
    let room = reach::room(&one.unit, &one.kernels, number);
    if !function.is_instruction(at) || !function.is_instruction(target) {
        return None;
    }
    let scene = FunctionContext::new(&one.unit, number, room, Scheduling::Hardware, &[]);
    let (live, _) = scene.live(target);
    if !live.is_dead(Reg::special(Special::Scc, 1), Dead::InAllLanes) {
        return None;
    }
    let mut taken: RegSet = reach::never_borrowed().collect();
    scene.flight_at(at)?.add_to(&mut taken);
    let (_, behind) = scene.live(at);
    let mut candidates = (0..reach::SGPRS).step_by(2).map(|index| Reg::new(RegFile::Sgpr, index, 2));
    let free = |reg: &Reg| {
        !taken.touches(*reg) && live.is_dead(*reg, Dead::InAllLanes) && behind.is_dead(*reg, Dead::InAllLanes)
    };
    candidates.find(free).map(|reg| reg.index as u8)
}
