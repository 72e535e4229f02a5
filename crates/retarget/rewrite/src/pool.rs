//! A pool at the end of a code section, for functions that have to grow where other code cannot be explained.
//!
//! In a file that was linked without its relocations a function whose code cannot be explained may depend on any
//! distance. So nothing that it can depend on moves: functions that are to grow are copied to the end of their section,
//! after everything else, and a branch at the old start leads to the copy. The meaning of the file is unchanged; in the
//! pool everything is free to move.
//!
//! Invariants: a moved function is explained itself and is entered at its start alone. Nothing else of the code changes
//! except distances to sections of the loader that move. The remains of a moved function are not instructions.
//!
//! Absent on purpose: files with debug information or call frames (their rows would have to be split), and data that
//! code may depend on: it must not move.

use crate::code::WordClassTable;
use crate::edit::CodeEdits;
use crate::inputs::MovableTail;
use crate::known::{self, KnownProgram};
use crate::padding::{CODE_END, ENTRY};
use crate::plan::{CodePlan, LongBranch, LongBranchForms};
use crate::proof::{Unrelocatable, find_unrelocatable};
use crate::rewrite::{self, RewriteOptions, RewrittenObject};
use crate::scan::{DistanceEncoding, PcComputation};
use crate::{refuse_layout, verify};
use hotswap_code_object::image::{ObjectImage, SymbolRow, SymbolRows};
use hotswap_isa::Isa;
use hotswap_isa::effects::ControlFlow;
use hotswap_program::Function;
use hotswap_report::Diagnostic;
use object::elf;
use std::collections::BTreeMap;

/// `s_endpgm`, for targets without `s_code_end`.
const END: u32 = 0xbf81_0000;
/// Bytes after the pool, so that instruction prefetching stays inside: as LLVM leaves after a file's last function.
const BEHIND: usize = 16 * 128;
/// Offset in a kernel descriptor of the distance to its code.
const CODE: usize = 16;
/// Bytes of a symbol.
const SYMBOL: usize = 24;

/// A function that was moved: offsets in its section, and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedFunction {
    /// Number of the section.
    pub section: usize,
    /// Old offset; transfers to it are redirected.
    pub from: u64,
    /// The new offset in its section.
    pub to: u64,
    /// Its size, which is unchanged.
    pub size: u64,
}

/// A file with pools.
#[derive(Debug, Clone)]
pub struct OutlinedFile {
    pub bytes: Vec<u8>,
    /// The pools: for [`RewriteOptions::free`].
    pub free: Vec<MovableTail>,
    /// The functions in the pools, by section and old offset.
    pub moved: Vec<MovedFunction>,
}

/// Moves functions, given by section and start offset, to pools. `None` where the file's relocations explain all
/// distances, so that no pool is needed.
///
/// # Errors
/// Errors of reading; `NO_LAYOUT` with the offset where a function cannot be moved or something must not move.
pub fn move_to_pools(
    data: &[u8],
    functions: &[(usize, u64)],
    options: &RewriteOptions<'_>,
) -> Result<Option<OutlinedFile>, Diagnostic> {
    let image = ObjectImage::parse(data)?;
    let relocations = image.relocations()?;
    if !rewrite::is_bare(&image, &relocations) {
        return Ok(None);
    }
    if let Some(part) = image.sections.iter().find(|part| is_debug_section_name(part.name)) {
        let what = format!("functions that `{}` describes cannot be moved away from each other", part.name);
        return Err(refuse_layout(part.offset, what).advise("strip the debug information"));
    }
    let known = known::build_programs(&image, options.programs)?;
    let marks = WordClassTable::new(rewrite::find_isa(&image)?);
    let symbols = image.symbol_tables()?;
    let edits: BTreeMap<usize, CodeEdits> = functions.iter().map(|(section, _)| (*section, CodeEdits::new())).collect();
    let plans = rewrite::plans_of(&image, &symbols, &relocations, &marks, &edits, (options, &known))?;
    let (mut edits, mut free, mut moved) = (BTreeMap::new(), Vec::new(), Vec::new());
    for plan in plans.iter().filter(|plan| functions.iter().any(|(section, _)| *section == plan.section)) {
        let Some(known) = known.get(&plan.section) else { continue };
        let mut starts: Vec<u64> =
            functions.iter().filter(|(section, _)| *section == plan.section).map(|(_, start)| *start).collect();
        starts.sort_unstable();
        starts.dedup();
        let bytes = image.sections[plan.section].bytes;
        if let Some(name) = begins_at_end(&image, &symbols, plan.section) {
            let what =
                format!("`{name}` has no instructions and begins where the code ends; moved functions would go there");
            return Err(refuse_layout(plan.file + bytes.len() as u64, what));
        }
        let mut bounds = find_unrelocatable(known, plan);
        bounds.sort_by_key(|bound| bound.at);
        let mut maker = PoolMaker { plan, known, bytes, isa: marks.isa, options, bounds, moved: Vec::new() };
        edits.insert(plan.section, maker.pool_edits(&starts)?);
        free.push(MovableTail { section: plan.section, from: bytes.len() as u64 });
        moved.append(&mut maker.moved);
    }
    let own = RewriteOptions {
        registers: options.registers,
        programs: options.programs,
        free: &free,
        ..RewriteOptions::default()
    };
    let RewrittenObject { mut bytes, .. } = rewrite::rewrite_object(data, &edits, &own)?;
    redirect_symbols(&mut bytes, &moved)?;
    verify::verify_object(&bytes)?;
    Ok(Some(OutlinedFile { bytes, free, moved }))
}

fn is_debug_section_name(name: &str) -> bool {
    [".debug", ".zdebug", ".eh_frame"].iter().any(|begin| name.starts_with(begin))
}

/// A symbol at the end of a section: if code is appended, the name would denote that code.
fn begins_at_end<'s>(image: &ObjectImage<'_>, tables: &'s [SymbolRows<'_>], section: usize) -> Option<&'s str> {
    let end = image.sections[section].addresses().end;
    let is_there =
        |row: &&SymbolRow<'_>| row.section == Some(section) && row.value == end && row.kind != elf::STT_SECTION;
    tables.iter().flat_map(|table| &table.rows).find(is_there).map(|row| row.name)
}

/// Makes the pool of one section.
struct PoolMaker<'m, 'p> {
    plan: &'m CodePlan<'m>,
    known: &'m KnownProgram<'p>,
    bytes: &'m [u8],
    isa: Isa,
    options: &'m RewriteOptions<'m>,
    /// Parts that cannot be explained, by offset.
    bounds: Vec<Unrelocatable>,
    /// In ascending order of their old offsets.
    moved: Vec<MovedFunction>,
}

impl PoolMaker<'_, '_> {
    fn refuse_function(&self, at: u64, what: &str) -> Diagnostic {
        let name = self.known.known_function(at).map(|one| self.known.program().name(one)).unwrap_or_default();
        refuse_layout(self.plan.file + at, format!("`{name}` cannot be moved to where there is room: {what}"))
    }

    fn fill_word(&self) -> u32 {
        let has_end = self.isa.instruction_size(&CODE_END.to_le_bytes()).is_some();
        if has_end { CODE_END } else { END }
    }

    fn pool_edits(&mut self, starts: &[u64]) -> Result<CodeEdits, Diagnostic> {
        let size = self.bytes.len() as u64;
        let mut end = size;
        for start in starts {
            let length = self.check_movable(*start)?;
            // The same offset in a line of the cache, and modulo the alignment of kernels.
            let to = end.next_multiple_of(4);
            let to = to + (start % ENTRY + ENTRY - to % ENTRY) % ENTRY;
            self.moved.push(MovedFunction { section: self.plan.section, from: *start, to, size: length });
            end = to + length;
        }
        let mut pool = self.fill_word().to_le_bytes().repeat(((end - size) as usize + BEHIND) / 4);
        let mut edits = CodeEdits::new();
        for one in &self.moved {
            let at = (one.to - size) as usize;
            let copy = &mut pool[at..at + one.size as usize];
            copy.copy_from_slice(&self.bytes[one.from as usize..][..one.size as usize]);
            self.write_distances(one, copy)?;
            let mut left: Vec<u8> = self.entry_branch(one)?.iter().flat_map(|word| word.to_le_bytes()).collect();
            let room = one.size.checked_sub(left.len() as u64).map(|bytes| bytes as usize / 4);
            let room =
                room.ok_or_else(|| self.refuse_function(one.from, "it has no room for a branch to its new place"))?;
            left.extend(self.fill_word().to_le_bytes().repeat(room));
            left.resize(one.size as usize, 0);
            edits.replace(one.from, one.size, &left, &[]);
        }
        edits.append(size, &pool);
        Ok(edits)
    }

    /// The size of a function that can be moved.
    fn check_movable(&self, start: u64) -> Result<u64, Diagnostic> {
        let program = self.known.program();
        let function = self.known.known_function(start).filter(|function| u64::from(function.start) == start);
        let function = function.ok_or_else(|| self.refuse_function(start, "its begin is unknown"))?;
        let bound = self.bounds.get(self.bounds.partition_point(|bound| bound.at < start));
        if let Some(bound) = bound.filter(|bound| bound.at < u64::from(function.end)) {
            return Err(self.refuse_function(bound.at, bound.why));
        }
        if let Some(entry) = function.entries.iter().find(|entry| entry.offset != function.start) {
            return Err(self.refuse_function(u64::from(entry.offset), "it is entered elsewhere than at its begin"));
        }
        if function.has_exit(hotswap_program::BlockExit::Table) {
            return Err(self.refuse_function(start, "words of the file lead into it"));
        }
        let marks = &program.source.marks;
        let first = marks.partition_point(|mark| u64::from(mark.offset) < start);
        let named = marks[first..].iter().take_while(|mark| u64::from(mark.offset) == start);
        let code = function.blocks().map(|block| block.end).max().unwrap_or(function.start);
        let end = named.map(|mark| mark.offset.saturating_add(mark.size)).max().unwrap_or(code).max(code);
        if end > function.end {
            return Err(self.refuse_function(start, "another function begins inside of it"));
        }
        if self.known.last_data(start, u64::from(end)).is_some() {
            return Err(self.refuse_function(start, "it holds data"));
        }
        self.stays_inside(function)?;
        Ok(u64::from(end) - start)
    }

    /// Execution must not run on into the following code.
    fn stays_inside(&self, function: &Function) -> Result<(), Diagnostic> {
        let program = self.known.program();
        for block in function.blocks() {
            let Some(inst) = program.decode(block.last) else { continue };
            let runs_on = match inst.control_flow(0, self.isa) {
                ControlFlow::Next | ControlFlow::Call { .. } => true,
                ControlFlow::Branch { conditional, .. } => conditional,
                ControlFlow::Indirect { conditional } => {
                    conditional
                        || !matches!(
                            block.exit,
                            hotswap_program::BlockExit::Jump
                                | hotswap_program::BlockExit::Return
                                | hotswap_program::BlockExit::Tail
                        )
                }
                ControlFlow::End => false,
            };
            if runs_on && !function.is_instruction(block.end) {
                return Err(
                    self.refuse_function(u64::from(block.last), "it falls through into the code that follows it")
                );
            }
        }
        Ok(())
    }

    /// The instructions that transfer control from the old place to the new one.
    fn entry_branch(&self, one: &MovedFunction) -> Result<Vec<u32>, Diagnostic> {
        let forms = LongBranchForms::new(self.isa);
        let distance = one.to.wrapping_sub(one.from + 4) as i64;
        if DistanceEncoding::Short.can_encode(distance) {
            return Ok(vec![forms.branch_word(distance)]);
        }
        let request = LongBranch { section: self.plan.section, at: one.from, target: one.from };
        let registers = self.options.registers.and_then(|registers| registers(&request));
        if let Some(first) = registers.filter(|first| first % 2 == 0 && *first < 106) {
            let mut words = Vec::new();
            forms.write_branch(forms.branch_word(0), first, one.from, one.to, &mut words);
            return Ok(words);
        }
        let program = self.known.program();
        let found = program.function_at(one.from as u32);
        let is_called = found.is_none_or(|(number, function)| {
            program.callers(number).next().is_some() || function.entries.iter().any(|entry| !entry.is_kernel())
        });
        match is_called {
            // Its descriptor points to the new place.
            false => Ok(Vec::new()),
            true => {
                Err(self
                    .refuse_function(one.from, "a branch there is out of reach, and no two scalar registers are free"))
            }
        }
    }

    /// Writes distances from a copy to targets that do not move with it.
    fn write_distances(&self, one: &MovedFunction, copy: &mut [u8]) -> Result<(), Diagnostic> {
        let first = self.plan.branches.partition_point(|branch| branch.at() < one.from);
        let own = self.plan.branches[first..].iter().take_while(|branch| computation_contains_offset(branch.at(), one));
        for branch in own.filter(|branch| !computation_contains_offset(branch.target_offset(self.bytes), one)) {
            let target = self.new_target(branch.at(), branch.target_offset(self.bytes))?;
            let at = branch.at() - one.from + one.to + branch.size();
            let distance = target.wrapping_sub(at) as i64;
            if branch.encoding_reach() != DistanceEncoding::Short || !DistanceEncoding::Short.can_encode(distance) {
                return Err(self.refuse_function(branch.at(), "a branch out of it would be out of reach"));
            }
            let field = (branch.at() - one.from) as usize;
            copy[field..field + 2].copy_from_slice(&((distance / 4) as i16).to_le_bytes());
        }
        let first = self.plan.computations.partition_point(|sum| sum.at < one.from);
        let mut sums =
            self.plan.computations[first..].iter().take_while(|sum| computation_contains_offset(sum.at, one));
        sums.try_for_each(|sum| self.write_computation(one, sum, copy))
    }

    /// The new position of a target of a moved function.
    fn new_target(&self, at: u64, target: u64) -> Result<u64, Diagnostic> {
        match holding_function(&self.moved, target) {
            Some(other) if target == other.from => Ok(other.to),
            Some(_) => Err(self.refuse_function(at, "its target is in the middle of another function that is moved")),
            None => Ok(target),
        }
    }

    fn write_computation(&self, one: &MovedFunction, sum: &PcComputation, copy: &mut [u8]) -> Result<(), Diagnostic> {
        let target = sum.base.wrapping_add(sum.distance);
        let new = match one.from <= target && target < one.from + one.size {
            true => return Ok(()),
            false => self.new_target(sum.at, target)?,
        };
        let distance = new.wrapping_sub(sum.base - one.from + one.to);
        if sum.high.is_none() && sum.size == 4 && !sum.range.can_encode(distance as i64) {
            return Err(self.refuse_function(sum.at, "a distance to what it uses would not fit into its 32 bits"));
        }
        let low = write_computation_field(
            sum.low,
            usize::from(sum.size),
            distance.wrapping_sub(i64::from(sum.bias) as u64),
            one,
            copy,
        );
        let high = sum.high.map_or(Some(()), |high| write_computation_field(high, 4, distance >> 32, one, copy));
        low.zip(high)
            .map(drop)
            .ok_or_else(|| self.refuse_function(sum.at, "a distance that it adds is stored elsewhere"))
    }
}

fn computation_contains_offset(at: u64, one: &MovedFunction) -> bool {
    one.from <= at && at < one.from + one.size
}

fn write_computation_field(at: u64, size: usize, value: u64, one: &MovedFunction, copy: &mut [u8]) -> Option<()> {
    let at = at.checked_sub(one.from)? as usize;
    copy.get_mut(at..at + size)?.copy_from_slice(&value.to_le_bytes()[..size]);
    Some(())
}

/// The function, among some sorted by their old offsets, that held an offset of their section.
fn holding_function(moved: &[MovedFunction], at: u64) -> Option<&MovedFunction> {
    let before = moved.partition_point(|one| one.from <= at).checked_sub(1)?;
    moved.get(before).filter(|one| at - one.from < one.size)
}

impl MovedFunction {
    /// The new position of an offset, if one of these, sorted by their old offsets in one section, held it.
    #[must_use]
    pub fn moved_offset(moved: &[Self], at: u64) -> Option<u64> {
        holding_function(moved, at).map(|one| at - one.from + one.to)
    }
}

/// A field of the file with its new bytes.
struct NewField {
    at: usize,
    bytes: Vec<u8>,
}

/// The moved functions of a section.
struct MovedCode<'m> {
    /// Address of the section.
    start: u64,
    moved: &'m [MovedFunction],
}

/// Updates symbols and kernel descriptors to the new places.
fn redirect_symbols(bytes: &mut [u8], moved: &[MovedFunction]) -> Result<(), Diagnostic> {
    let mut fields: Vec<NewField> = Vec::new();
    {
        let image = ObjectImage::parse(bytes)?;
        let sections: Vec<MovedCode<'_>> = moved
            .chunk_by(|a, b| a.section == b.section)
            .map(|own| MovedCode { start: image.sections[own[0].section].address, moved: own })
            .collect();
        for table in image.symbol_tables()? {
            for (number, row) in table.rows.iter().enumerate() {
                let is_code = row.section.is_some_and(|section| image.sections[section].is_code());
                if let Some(to) =
                    moved_symbol_address(row.value, &sections).filter(|_| is_code && row.kind != elf::STT_SECTION)
                {
                    let at = table.at + number * SYMBOL;
                    let mut field = bytes[at..at + SYMBOL].to_vec();
                    SymbolRow::write(&mut field, to, row.size);
                    fields.push(NewField { at, bytes: field });
                }
                fields.extend(redirect_descriptor(&image, row, &|one| moved_symbol_address(one, &sections)));
            }
        }
    }
    for field in fields {
        bytes[field.at..field.at + field.bytes.len()].copy_from_slice(&field.bytes);
    }
    Ok(())
}

fn moved_symbol_address(address: u64, sections: &[MovedCode<'_>]) -> Option<u64> {
    sections
        .iter()
        .find_map(|code| Some(MovedFunction::moved_offset(code.moved, address.checked_sub(code.start)?)? + code.start))
}

/// The field of a kernel descriptor that points to its code, if that has moved.
fn redirect_descriptor(
    image: &ObjectImage<'_>,
    row: &SymbolRow<'_>,
    new: &dyn Fn(u64) -> Option<u64>,
) -> Option<NewField> {
    let section = &image.sections[row.section.filter(|_| row.name.ends_with(".kd"))?];
    let at = usize::try_from(row.value.checked_sub(section.address)?).ok()?.checked_add(CODE)?;
    let distance = i64::from_le_bytes(*section.bytes.get(at..)?.first_chunk()?);
    let to = new(row.value.wrapping_add_signed(distance))?;
    Some(NewField { at: section.offset as usize + at, bytes: to.wrapping_sub(row.value).to_le_bytes().to_vec() })
}
