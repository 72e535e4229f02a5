//! The code of a function after the rewrite: the instructions of each block, with the replacements of the changed ones.
//!
//! Invariants: blocks are those of the program, because nothing here adds or removes a branch. An unchanged instruction
//! keeps its bytes and its position in the list of edits.

use crate::changes::{InstChanges, NewChange, family_bit};
use hotswap_families::code::{FlowBlock, FunctionCode, FunctionFlow, Insertion, Scheduling};
use hotswap_families::{FamilyRefusal, FamilyRewriter};
use hotswap_isa::{Inst, Isa};
use hotswap_program::{AnalysisProblem, Function, ProblemReason, SectionProgram, Successors};
use std::cell::OnceCell;

/// The insertions of a family.
pub(super) struct InsertionCount {
    pub(super) family: &'static str,
    pub(super) count: u64,
}

/// An instruction of the original code.
struct InstInBlock {
    /// Number of its block.
    block: usize,
    inst: Inst,
}

/// Runs the families of scope `Function`, each on the result of the previous ones. `places` are the offsets in the
/// original code that may concern them. Returns the families that inserted something, with the number of insertions.
pub(super) fn run_families(
    rewriter: &FamilyRewriter,
    unit: &SectionProgram<'_>,
    number: usize,
    (target, scheduling): (Isa, Scheduling),
    places: impl Iterator<Item = u32>,
    changes: &mut InstChanges,
) -> Result<Vec<InsertionCount>, FamilyRefusal> {
    let mut counts = Vec::new();
    let function = &unit.program.functions[number];
    let successors: Vec<Successors<'_>> = (0..function.block_count()).map(|block| function.successors(block)).collect();
    let blocks = block_flow(unit, number, &successors);
    let mut there: Vec<InstInBlock> = Vec::with_capacity(places.size_hint().0);
    there.extend(places.filter_map(|offset: u32| {
        Some(InstInBlock { block: function.block_at(offset)?, inst: unit.program.decode(offset)? })
    }));
    let mut code = RewrittenBodies::new(unit, number);
    let mut families = rewriter.function_families().peekable();
    while let Some(family) = families.next() {
        let concerned = concerned_blocks(|one| concerns_flow_family(one, rewriter, family), function, &there, changes);
        let bodies = ChangedBodies { bodies: &code, changes };
        let flow = FunctionFlow { target, blocks: &blocks, code: &bodies, concerned: &concerned, scheduling };
        let found = rewriter.function_insertions(family, &flow).map_err(|refusal| FamilyRefusal { family, refusal })?;
        if !found.is_empty() {
            counts.push(InsertionCount { family: family.name, count: found.len() as u64 });
            insert(unit, number, found, changes, family_bit(family.name));
            if families.peek().is_some() {
                code = RewrittenBodies::new(unit, number);
            }
        }
    }
    Ok(counts)
}

fn concerns_flow_family(inst: &Inst, rewriter: &FamilyRewriter, family: &hotswap_families::PatchFamily) -> bool {
    rewriter.concerns_family(family, inst)
}

fn block_flow<'s>(unit: &SectionProgram<'_>, number: usize, successors: &'s [Successors<'s>]) -> Vec<FlowBlock<'s>> {
    let function = &unit.program.functions[number];
    let anywhere = function.entered_anywhere().is_some();
    let blocks = function.blocks().enumerate().map(|(block, line)| FlowBlock {
        banks: unit.banks.at_block(number, block),
        successors: &successors[block],
        leaves: function.leaves(block),
        begins: !anywhere && begins_at_kernel(line.start, function),
    });
    blocks.collect()
}

fn begins_at_kernel(start: u32, function: &Function) -> bool {
    function.entries.iter().any(|entry| entry.offset == start && entry.is_kernel())
}

/// The blocks with an instruction that concerns a family, among the `old` instructions and the inserted ones.
/// Instructions that have since been replaced do no harm.
fn concerned_blocks(
    concerns: impl Fn(&Inst) -> bool,
    function: &Function,
    old: &[InstInBlock],
    changes: &InstChanges,
) -> Vec<usize> {
    let there = old.iter().filter(|one| concerns(&one.inst)).map(|one| one.block);
    let made = changes.iter().filter(|(_, _, new)| new.iter().any(&concerns));
    let mut all: Vec<usize> = there.chain(made.filter_map(|(offset, ..)| function.block_at(offset))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The instructions of a function after the rewrite. A block is decoded when it is first queried.
struct RewrittenBodies<'u, 'a> {
    unit: &'u SectionProgram<'a>,
    number: usize,
    blocks: Vec<OnceCell<Vec<Inst>>>,
}

impl<'u, 'a> RewrittenBodies<'u, 'a> {
    fn new(unit: &'u SectionProgram<'a>, number: usize) -> Self {
        let blocks = unit.program.functions[number].blocks().map(|_| OnceCell::new()).collect();
        Self { unit, number, blocks }
    }
}

/// Bodies with the changes to apply to them.
struct ChangedBodies<'c, 'u, 'a> {
    bodies: &'c RewrittenBodies<'u, 'a>,
    changes: &'c InstChanges,
}

impl FunctionCode for ChangedBodies<'_, '_, '_> {
    fn of_block(&self, number: usize) -> &[Inst] {
        let RewrittenBodies { unit, number: function, blocks } = self.bodies;
        let function = &unit.program.functions[*function];
        let Some(code) = blocks.get(number) else { return &[] };
        code.get_or_init(|| {
            let block = function.block(number);
            // Most instructions have eight bytes.
            let mut body = Vec::with_capacity((block.end - block.start) as usize / 6 + 1);
            each_instruction(unit, &block, self.changes, |_, inst, new| match new {
                Some(new) => body.extend_from_slice(new),
                None => body.push(inst),
            });
            body
        })
    }
}

/// The instructions of a block: the offset of each, the instruction, and its replacement.
pub(super) fn each_instruction(
    unit: &SectionProgram<'_>,
    block: &hotswap_program::BasicBlock,
    changes: &InstChanges,
    mut each: impl FnMut(u32, Inst, Option<&[Inst]>),
) {
    let mut at = block.start;
    let mut changed = changes.changes_in(block.start..block.end).peekable();
    while at < block.end {
        let Some(inst) = unit.program.decode(at) else { break };
        while changed.next_if(|(offset, ..)| *offset < at).is_some() {}
        let new = changed.next_if(|(offset, ..)| *offset == at).map(|(_, _, new)| new);
        each(at, inst, new);
        at += u32::from(inst.len());
    }
}

/// The place of an instruction of rewritten code.
#[derive(Clone, Copy)]
struct OriginalPlace {
    /// Offset of the instruction that it replaces.
    offset: u32,
    /// Its index in the replacement.
    index: usize,
}

/// The places of the instructions of a rewritten block.
fn original_places(
    unit: &SectionProgram<'_>,
    block: &hotswap_program::BasicBlock,
    changes: &InstChanges,
) -> Vec<OriginalPlace> {
    let mut places = Vec::new();
    each_instruction(unit, block, changes, |at, _, new| {
        places.extend((0..new.map_or(1, <[Inst]>::len)).map(|index| OriginalPlace { offset: at, index }))
    });
    places
}

fn insert(
    unit: &SectionProgram<'_>,
    number: usize,
    mut insertions: Vec<Insertion>,
    changes: &mut InstChanges,
    family: u32,
) {
    insertions.sort_by_key(|insertion| (insertion.block, insertion.before));
    let mut fresh: Vec<NewChange> = Vec::new();
    for group in insertions.chunk_by(|one, next| one.block == next.block) {
        let function = &unit.program.functions[number];
        let number = group.first().map(|one| one.block).filter(|block| *block < function.block_count());
        let Some(block) = number.map(|number| function.block(number)) else { continue };
        let places = self::original_places(unit, &block, changes);
        // In reverse order, so that the positions of the others stay valid.
        for Insertion { before, code, .. } in group.iter().rev() {
            let place = match places.get(*before) {
                Some(place) => Some(*place),
                // After the last instruction of the block.
                None => places.last().map(|last| OriginalPlace { index: last.index + 1, ..*last }),
            };
            let Some(OriginalPlace { offset, index }) = place else { continue };
            if changes.put_in(offset, index, code, family) {
                continue;
            }
            if fresh.last().is_none_or(|last| last.offset != offset) {
                let Some(old) = unit.program.decode(offset) else { continue };
                fresh.push(NewChange { offset, old, new: vec![old] });
            }
            let Some(NewChange { new, .. }) = fresh.last_mut() else { continue };
            let index = index.min(new.len());
            new.splice(index..index, code.iter().copied());
        }
    }
    changes.add_changes(&fresh, family);
}

/// Why the function is not understood well enough to be changed.
pub(super) fn unreadable_problem(unit: &SectionProgram<'_>, number: usize) -> Option<AnalysisProblem> {
    let problems = &unit.program.functions[number].problems;
    problems.iter().find(|problem| is_unreadable_code(problem.reason)).copied()
}

fn is_unreadable_code(reason: ProblemReason) -> bool {
    matches!(reason, ProblemReason::Undecodable | ProblemReason::Overlap)
}
