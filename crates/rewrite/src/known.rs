//! Analysis of a code section whose distances have no relocations: the executed bytes, the data, and the reasons why
//! nothing may move.
//!
//! A distance may be anywhere if the file states nothing about it. It does harm only where execution depends on it: in
//! an instruction that an entry reaches. So every reached instruction that reads the program counter must be explained
//! by the sum that follows it. Every computed address of code must stay an address of code. Every jump with an unknown
//! target must take a whole address from memory: those are the loader's, or results of such sums. Jumps by tables, for
//! which the program model has edges, do.
//!
//! Assumed, because neither LLVM nor assemblers emit it for AMD GPUs: distances to code as plain numbers in data that
//! reach a jump through the arguments of a function do not occur.

use crate::place::named_data;
use crate::plan::CodePlan;
use crate::scan::Computation;
use hotswap_code_object::image::{Image, SymbolRows};
use hotswap_program::{Callee, Function, Mark, MarkKind, Place, Program, Reason, Source};
use hotswap_report::Diagnostic;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

mod near;

pub(crate) use near::Near;

/// A program of the caller, or one made here.
pub(crate) enum Held<'p> {
    Own(Box<Program<'p>>),
    Lent(&'p Program<'p>),
}

/// The analysis of one section.
pub(crate) struct Known<'p> {
    program: Held<'p>,
    /// Bytes that are not code, sorted.
    data: Vec<(u64, u64)>,
}

/// Something that depends on distances and cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Offset in the section.
    pub(crate) at: u64,
    pub(crate) function: String,
    pub(crate) why: &'static str,
    /// It may depend on the position of data, too.
    pub(crate) is_about_data: bool,
}

/// Programs of the sections with code of a file, by the number of the section. Functions that depend on nothing may be
/// missing in them.
pub(crate) fn programs<'p>(
    image: &Image<'p>,
    lent: &[(usize, &'p Program<'p>)],
) -> Result<BTreeMap<usize, Known<'p>>, Diagnostic> {
    let mut found: BTreeMap<usize, Known<'p>> =
        lent.iter().map(|(section, program)| (*section, Known::new(Held::Lent(program)))).collect();
    let code = || image.sections.iter().enumerate().filter(|(_, section)| section.is_code() && section.size > 0);
    if code().all(|(number, _)| found.contains_key(&number)) {
        return Ok(found);
    }
    for source in Source::read(image.bytes())? {
        // Sources borrow the file: their address identifies the section.
        let number = code().find(|(_, section)| std::ptr::eq(section.bytes.as_ptr(), source.bytes.as_ptr()));
        if let Some((number, _)) = number.filter(|(number, _)| !found.contains_key(number)) {
            found.insert(number, Known::new(Held::Own(Box::new(Program::around(source, &[])))));
        }
    }
    Ok(found)
}

/// Programs of the sections of a file with relocations that hold data as well: relocations do not distinguish words of
/// a table from instructions.
pub(crate) fn mixed<'p>(
    image: &Image<'p>,
    symbols: &[SymbolRows<'_>],
    lent: &[(usize, &'p Program<'p>)],
) -> Result<BTreeMap<usize, Known<'p>>, Diagnostic> {
    let has_named = named_data(image, symbols).iter().any(|data| !data.is_empty());
    let mut found = match has_named {
        true => programs(image, lent)?,
        false => lent.iter().map(|(section, program)| (*section, Known::new(Held::Lent(program)))).collect(),
    };
    found.retain(|_, known| !known.data.is_empty());
    Ok(found)
}

/// Whether the instruction at an offset of a section only serves prefetching.
pub(crate) type Serves<'s> = dyn Fn(usize, u64) -> bool + Sync + 's;

/// The uses of program counters, queried where a get-PC is not explained by a sum; programs are made at the first
/// query.
pub(crate) struct Counters<'c> {
    image: &'c Image<'c>,
    known: &'c BTreeMap<usize, Known<'c>>,
    lent: &'c [(usize, &'c Program<'c>)],
    own: OnceLock<BTreeMap<usize, Known<'c>>>,
}

impl<'c> Counters<'c> {
    pub(crate) fn new(
        image: &'c Image<'c>,
        known: &'c BTreeMap<usize, Known<'c>>,
        lent: &'c [(usize, &'c Program<'c>)],
    ) -> Self {
        Self { image, known, lent, own: OnceLock::new() }
    }

    /// Whether the instruction at an offset of a section only serves prefetching: a hint, whatever its address.
    pub(crate) fn serves_fetching(&self, section: usize, at: u64) -> bool {
        let known = match self.known.is_empty() {
            false => self.known,
            // The use is unknown if the code cannot be read.
            true => self.own.get_or_init(|| programs(self.image, self.lent).unwrap_or_default()),
        };
        known.get(&section).is_some_and(|known| known.function(at).is_some_and(|one| one.serves_fetching(at as u32)))
    }
}

impl<'p> Known<'p> {
    fn new(program: Held<'p>) -> Self {
        let mut known = Self { program, data: Vec::new() };
        known.data = known.find_data();
        known
    }

    pub(crate) fn program(&self) -> &Program<'p> {
        match &self.program {
            Held::Own(program) => program,
            Held::Lent(program) => program,
        }
    }

    /// Whether execution reaches an instruction that begins there.
    pub(crate) fn is_reached(&self, at: u64) -> bool {
        self.function(at).is_some_and(|function| function.is_instruction(at as u32))
    }

    pub(crate) fn function(&self, at: u64) -> Option<&Function> {
        self.program().function_at(u32::try_from(at).ok()?).map(|(_, function)| function)
    }

    /// The end of the data that contains an offset.
    pub(crate) fn data_end(&self, at: u64) -> Option<u64> {
        let count = self.data.partition_point(|(start, _)| *start <= at);
        let (_, end) = *self.data.get(count.checked_sub(1)?)?;
        (at < end).then_some(end)
    }

    /// The offsets around one that is not data, up to the next data.
    fn free_around(&self, at: u64) -> Range<u64> {
        let count = self.data.partition_point(|(start, _)| *start <= at);
        let start = count.checked_sub(1).and_then(|last| self.data.get(last)).map_or(0, |(_, end)| *end);
        start..self.data.get(count).map_or(u64::MAX, |(start, _)| *start)
    }

    /// The end of the last data that begins in `start..end`, or covers part of it.
    pub(crate) fn last_data(&self, start: u64, end: u64) -> Option<u64> {
        let count = self.data.partition_point(|(from, _)| *from < end);
        let (_, last) = *self.data.get(count.checked_sub(1)?)?;
        (last > start).then_some(last.min(end))
    }

    /// Whether an offset may be branched to or read from: the start of a block, or data.
    pub(crate) fn is_target(&self, at: u64) -> bool {
        let begins = |function: &Function| {
            let at = at as u32;
            function.is_block_start(at) || function.entries.iter().any(|entry| entry.offset == at)
        };
        self.data_end(at).is_some()
            || self.function(at).is_some_and(begins)
            || self.plain(at).is_some_and(|mark| u64::from(mark.offset) == at)
    }

    /// The name of a function that was skipped, because it depends on nothing.
    fn plain(&self, at: u64) -> Option<&Mark<'_>> {
        let at = u32::try_from(at).ok().filter(|at| self.program().function_at(*at).is_none())?;
        let marks = &self.program().source.marks;
        let before = marks.get(..marks.partition_point(|mark| mark.offset <= at))?;
        let is_function = |mark: &&Mark<'_>| matches!(mark.kind, MarkKind::Function | MarkKind::Kernel(_));
        before.iter().rev().find(is_function).filter(|mark| at - mark.offset < mark.size.max(1))
    }

    /// Data that has a name, and the targets of addresses that are never executed.
    fn find_data(&self) -> Vec<(u64, u64)> {
        let program = self.program();
        let source = &program.source;
        let named = program.named_data().into_iter();
        let mut found: Vec<(u64, u64)> = named.map(|data| (data.start.into(), data.end.into())).collect();
        let values = program.functions.par_iter().flat_map_iter(|function| &function.pc_values).map(|value| value.to);
        let data = |to: Place| {
            let is_code = |at: u64| self.is_reached(at) || self.plain(at).is_some();
            let offset = source.offset_of(to).filter(|offset| !is_code(u64::from(*offset)))?;
            Some((u64::from(offset), self.data_limit(offset)))
        };
        found.par_extend(values.chain(source.slots.par_iter().map(|slot| slot.to)).filter_map(data));
        found.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(found.len());
        for (start, end) in found {
            match merged.last_mut().filter(|last| start <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => merged.push((start, end)),
            }
        }
        merged
    }

    /// Data of unknown size extends up to the next named or executed byte.
    fn data_limit(&self, offset: u32) -> u64 {
        let program = self.program();
        let marks = &program.source.marks;
        let named = |mark: &Mark<'_>| mark.offset;
        let next = marks.get(marks.partition_point(|mark| mark.offset <= offset)).map(named);
        let functions = &program.functions[program.functions.partition_point(|function| function.end <= offset)..];
        let blocks = functions.iter().flat_map(|function| function.blocks());
        let executed = blocks.map(|block| block.start).find(|start| *start > offset);
        let end = program.source.bytes.len() as u32;
        u64::from(next.into_iter().chain(executed).min().unwrap_or(end).min(end))
    }

    /// Everything that cannot be explained, with the findings of the section's plan.
    pub(crate) fn bounds(&self, plan: &CodePlan<'_>) -> Vec<Bound> {
        let program = self.program();
        let mut found = Vec::new();
        for function in &program.functions {
            let mut add = |at: u32, why: &'static str, is_about_data: bool| {
                found.push(Bound { at: u64::from(at), function: program.name(function), why, is_about_data });
            };
            for problem in &function.problems {
                match problem.reason {
                    // The caller put a whole address there, and nothing is executed past the end.
                    Reason::UnknownReturn | Reason::LeavesSection => {}
                    reason if reason.is_unknown_jump() && program.comes_whole(function, problem.offset) => {}
                    // After bytes that cannot be decoded the use of the program counter is unknown.
                    reason => add(problem.offset, reason.text(), !reason.is_unknown_jump()),
                }
            }
            for call in &function.calls {
                if call.callee == Callee::Unknown && !program.comes_whole(function, call.offset) {
                    add(call.offset, "the address of the call is computed from what is not known", false);
                }
            }
            if function.lets_addresses_escape() {
                add(function.start, "an address of an instruction goes where it is not followed", true);
            }
            for value in &function.pc_values {
                if !self.explains(&plan.computations, value.pc, value.low, value.to.at) {
                    add(value.low, "it is not known how an address comes of the program counter", true);
                }
            }
            let own = |at: &&u64| u64::from(function.start) <= **at && **at < u64::from(function.end);
            for at in plan.unexplained.iter().filter(own) {
                add(*at as u32, "it is not known what it computes from the program counter", true);
            }
        }
        found
    }

    /// Whether the value is the result of the computation of its program counter, or at the same distance from it in
    /// data.
    fn explains(&self, computations: &[Computation], pc: u32, low: u32, to: u64) -> bool {
        let found = computations.binary_search_by_key(&u64::from(pc), |one| one.at);
        let Some(one) = found.ok().map(|found| &computations[found]) else { return false };
        let source = &self.program().source;
        let target = source.address.wrapping_add(one.base).wrapping_add(one.distance);
        let is_code =
            |address: u64| address.checked_sub(source.address).is_some_and(|offset| offset < source.bytes.len() as u64);
        let is_own = one.adds_at(u64::from(low)) && to == target;
        is_own || !is_code(target) && !is_code(to) && u64::from(low) > one.at
    }
}
