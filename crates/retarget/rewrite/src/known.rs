//! Analysis of a code section whose distances lack relocations: the executed bytes, the data, and the possible
//! targets of addresses.
//!
//! Jumps by tables, for which the program model has edges, are part of the analysis.
//!
//! Absent on purpose: the proof that everything is explained ([`crate::proof`]).

use crate::inputs::LentProgram;
use crate::place::named_data;
use hotswap_code_object::image::{ObjectImage, SymbolRows};
use hotswap_program::{CodeSource, Function, MarkKind, Program, SectionSymbol};
use hotswap_report::Diagnostic;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

mod near;

pub(crate) use near::ProgramCursor;

/// A program of the caller, or one made here.
pub(crate) enum ProgramRef<'p> {
    Own(Box<Program<'p>>),
    Lent(&'p Program<'p>),
}

/// The analysis of one section.
pub(crate) struct KnownProgram<'p> {
    program: ProgramRef<'p>,
    /// Bytes that are not code, sorted.
    data: Vec<Range<u64>>,
}

/// Programs of the sections with code of a file, by the number of the section. Functions that depend on nothing may
/// be missing in them.
pub(crate) fn build_programs<'p>(
    image: &ObjectImage<'p>,
    lent: &[LentProgram<'p>],
) -> Result<BTreeMap<usize, KnownProgram<'p>>, Diagnostic> {
    let mut found: BTreeMap<usize, KnownProgram<'p>> =
        lent.iter().map(|lent| (lent.section, KnownProgram::new(ProgramRef::Lent(lent.program)))).collect();
    let code = image.sections.iter().enumerate().filter(|(_, section)| section.is_code() && section.size > 0);
    if code.clone().all(|(number, _)| found.contains_key(&number)) {
        return Ok(found);
    }
    for source in CodeSource::read(image.bytes())? {
        // Sources borrow the file: their address identifies the section.
        let number = code.clone().find(|(_, section)| std::ptr::eq(section.bytes.as_ptr(), source.bytes.as_ptr()));
        if let Some((number, _)) = number.filter(|(number, _)| !found.contains_key(number)) {
            found.insert(number, KnownProgram::new(ProgramRef::Own(Box::new(Program::around(source, &[])))));
        }
    }
    Ok(found)
}

/// Programs of the sections of a file with relocations that hold data as well: relocations do not distinguish words of
/// a table from instructions.
pub(crate) fn mixed_programs<'p>(
    image: &ObjectImage<'p>,
    symbols: &[SymbolRows<'_>],
    lent: &[LentProgram<'p>],
) -> Result<BTreeMap<usize, KnownProgram<'p>>, Diagnostic> {
    let has_named = named_data(image, symbols).iter().any(|data| !data.is_empty());
    let mut found = match has_named {
        true => build_programs(image, lent)?,
        false => lent.iter().map(|lent| (lent.section, KnownProgram::new(ProgramRef::Lent(lent.program)))).collect(),
    };
    found.retain(|_, known| !known.data.is_empty());
    Ok(found)
}

/// Whether the instruction at an offset of a section only serves prefetching.
pub(crate) type ServesPrefetch<'s> = dyn Fn(usize, u64) -> bool + Sync + 's;

/// The facts about code that decide about its distances.
#[derive(Clone, Copy)]
pub(crate) struct CodeFacts<'f> {
    /// Programs of a file that was linked without relocations; empty for others.
    pub(crate) known: &'f BTreeMap<usize, KnownProgram<'f>>,
    /// Programs that the caller has, by section.
    pub(crate) lent: &'f [LentProgram<'f>],
    pub(crate) serves: &'f ServesPrefetch<'f>,
}

impl CodeFacts<'_> {
    /// Whether a program that the caller has lacks any path to an instruction.
    pub(crate) fn is_never_reached(&self, section: usize, at: u64) -> bool {
        self.lent.iter().any(|lent| lent.section == section && is_unreached(lent.program, at))
    }

    /// Whether a program that the caller has does not know what a get-PC's sum is used for.
    pub(crate) fn is_untracked(&self, section: usize, at: u64) -> bool {
        let lent = self.lent.iter().filter(|lent| lent.section == section);
        let found = lent.filter_map(|lent| lent.program.function_at(u32::try_from(at).ok()?)).next();
        found.is_some_and(|(_, function)| {
            function.mark.is_some() && !function.pc_values.iter().any(|value| u64::from(value.pc) == at)
        })
    }
}

/// Whether a function contains an offset, and none of its paths, all of which are known, has an instruction there.
fn is_unreached(program: &Program<'_>, at: u64) -> bool {
    let Some((_, function)) = u32::try_from(at).ok().and_then(|at| program.function_at(at)) else { return false };
    let is_open = function.problems.iter().any(|problem| problem.reason.is_unknown_jump());
    function.mark.is_some() && !is_open && !function.is_instruction(at as u32)
}

/// The uses of program counters, queried where a get-PC is not explained by a sum; programs are made
/// at the first query.
pub(crate) struct PcUses<'c> {
    image: &'c ObjectImage<'c>,
    known: &'c BTreeMap<usize, KnownProgram<'c>>,
    lent: &'c [LentProgram<'c>],
    own: OnceLock<BTreeMap<usize, KnownProgram<'c>>>,
}

impl<'c> PcUses<'c> {
    pub(crate) fn new(
        image: &'c ObjectImage<'c>,
        known: &'c BTreeMap<usize, KnownProgram<'c>>,
        lent: &'c [LentProgram<'c>],
    ) -> Self {
        Self { image, known, lent, own: OnceLock::new() }
    }

    /// Whether the instruction at an offset of a section only serves prefetching: a hint, whatever its address.
    pub(crate) fn serves_fetching(&self, section: usize, at: u64) -> bool {
        let known = match self.known.is_empty() {
            false => self.known,
            // The use is unknown if the code cannot be read.
            true => self.own.get_or_init(|| build_programs(self.image, self.lent).unwrap_or_default()),
        };
        known
            .get(&section)
            .is_some_and(|known| known.known_function(at).is_some_and(|one| one.serves_fetching(at as u32)))
    }
}

impl<'p> KnownProgram<'p> {
    fn new(program: ProgramRef<'p>) -> Self {
        let mut known = Self { program, data: Vec::new() };
        known.data = known.find_data();
        known
    }

    pub(crate) fn program(&self) -> &Program<'p> {
        match &self.program {
            ProgramRef::Own(program) => program,
            ProgramRef::Lent(program) => program,
        }
    }

    /// Whether execution reaches an instruction that begins there.
    pub(crate) fn is_reached(&self, at: u64) -> bool {
        self.known_function(at).is_some_and(|function| function.is_instruction(at as u32))
    }

    pub(crate) fn known_function(&self, at: u64) -> Option<&Function> {
        self.program().function_at(u32::try_from(at).ok()?).map(|(_, function)| function)
    }

    /// The end of the data that contains an offset.
    pub(crate) fn data_end(&self, at: u64) -> Option<u64> {
        let count = self.data.partition_point(|data| data.start <= at);
        let end = self.data.get(count.checked_sub(1)?)?.end;
        (at < end).then_some(end)
    }

    /// The offsets around one that is not data, up to the next data.
    fn free_around(&self, at: u64) -> Range<u64> {
        let count = self.data.partition_point(|data| data.start <= at);
        let start = count.checked_sub(1).and_then(|last| self.data.get(last)).map_or(0, |data| data.end);
        start..self.data.get(count).map_or(u64::MAX, |data| data.start)
    }

    /// The end of the last data that begins in `start..end`, or covers part of it.
    pub(crate) fn last_data(&self, start: u64, end: u64) -> Option<u64> {
        let count = self.data.partition_point(|data| data.start < end);
        let last = self.data.get(count.checked_sub(1)?)?.end;
        (last > start).then_some(last.min(end))
    }

    /// Whether an offset may be branched to or read from: the start of a block, or data.
    pub(crate) fn is_target(&self, at: u64) -> bool {
        self.data_end(at).is_some()
            || self.known_function(at).is_some_and(|one| begins_at_target(one, at))
            || self.skipped_function(at).is_some_and(|mark| u64::from(mark.offset) == at)
    }

    /// The name of a function that was skipped, because it depends on nothing.
    fn skipped_function(&self, at: u64) -> Option<&SectionSymbol<'_>> {
        let at = u32::try_from(at).ok().filter(|at| self.program().function_at(*at).is_none())?;
        let marks = &self.program().source.marks;
        let before = marks.get(..marks.partition_point(|mark| mark.offset <= at))?;
        before.iter().rev().find(is_function_mark).filter(|mark| at - mark.offset < mark.size.max(1))
    }

    /// Data that has a name, and the targets of addresses that are never executed.
    fn find_data(&self) -> Vec<Range<u64>> {
        let program = self.program();
        let source = &program.source;
        let named = program.named_data().into_iter();
        let mut found: Vec<Range<u64>> = named.map(|data| data.start.into()..data.end.into()).collect();
        let values = program.functions.par_iter().flat_map_iter(|function| &function.pc_values).map(|value| value.to);
        let targets = values.chain(source.slots.par_iter().map(|slot| slot.to));
        found.par_extend(targets.filter_map(|to| {
            let offset = source.offset_of(to).filter(|offset| !is_known_code(u64::from(*offset), self))?;
            Some(u64::from(offset)..self.data_limit(offset))
        }));
        found.sort_unstable_by_key(|data| (data.start, data.end));
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(found.len());
        for data in found {
            match merged.last_mut().filter(|last| data.start <= last.end) {
                Some(last) => last.end = last.end.max(data.end),
                None => merged.push(data),
            }
        }
        merged
    }

    /// Data of unknown size extends up to the next named or executed byte.
    fn data_limit(&self, offset: u32) -> u64 {
        let program = self.program();
        let marks = &program.source.marks;
        let next = marks.get(marks.partition_point(|mark| mark.offset <= offset)).map(mark_start_offset);
        let functions = &program.functions[program.functions.partition_point(|function| function.end <= offset)..];
        let blocks = functions.iter().flat_map(|function| function.blocks());
        let executed = blocks.map(|block| block.start).find(|start| *start > offset);
        let end = program.source.bytes.len() as u32;
        u64::from(next.into_iter().chain(executed).min().unwrap_or(end).min(end))
    }
}

fn begins_at_target(function: &Function, at: u64) -> bool {
    let at = at as u32;
    function.is_block_start(at) || function.entries.iter().any(|entry| entry.offset == at)
}

fn is_function_mark(mark: &&SectionSymbol<'_>) -> bool {
    matches!(mark.kind, MarkKind::Function | MarkKind::Kernel(_))
}

fn is_known_code(at: u64, program: &KnownProgram<'_>) -> bool {
    program.is_reached(at) || program.skipped_function(at).is_some()
}

fn mark_start_offset(mark: &SectionSymbol<'_>) -> u32 {
    mark.offset
}
