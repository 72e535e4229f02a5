//! Queries about the surroundings of an instruction: its covering instructions, and those before and after it.
//!
//! Invariants: paths are followed within one function; a negative result is only valid if no path left the function
//! ([`AddressSteps::leaves`]).

use crate::block::{BlockExit, Predecessors};
use crate::function::Function;
use crate::program::Program;
use crate::source::{MarkKind, SectionSymbol};
use hotswap_isa::{Inst, Name};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Members of a clause: the low six bits and one more.
const CLAUSE: u64 = 63;
/// Instructions after an `s_delay_alu` that it may name.
const DELAY: usize = 6;

/// An instruction that affects the ones after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoveringInst {
    pub offset: u32,
    /// Offset of the last instruction that it affects.
    pub last: u32,
    /// The number of instructions that it counts.
    pub count: u8,
    /// The position of the queried instruction among them, from 0.
    pub place: u8,
}

/// The instructions that cover an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoveringInsts {
    /// An `s_clause` of which it is a member.
    pub clause: Option<CoveringInst>,
    /// An `s_delay_alu` that counts it.
    pub delay: Option<CoveringInst>,
}

/// Result of following paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathSteps {
    /// Number of visited instructions.
    pub count: usize,
    /// A path leaves the function within the bound: by a call, a return, an entry, or an unknown transfer.
    pub leaves: bool,
}

impl Program<'_> {
    /// Data that has a name and a size and that no path executes, in whole dwords; ascending.
    #[must_use]
    pub fn named_data(&self) -> Vec<Range<u32>> {
        let size = self.source.bytes.len() as u32;
        let objects = self.source.marks.iter().filter(|mark| mark.kind == MarkKind::Object && mark.size > 0);
        // Symbols with executed bytes are code, whatever their names say.
        objects
            .map(|one| aligned_mark_range(one, size))
            .filter(|data| !data.clone().step_by(4).any(|one| is_executed_offset(one, self)))
            .collect()
    }

    /// The clause and the delay that cover the instruction at an offset.
    #[must_use]
    pub fn covers(&self, offset: u32) -> CoveringInsts {
        let mut covers = CoveringInsts::default();
        let Some((_, function)) = self.function_at(offset) else { return covers };
        let mut at = offset;
        for distance in 0..=CLAUSE as usize + 1 {
            let Some(before) = function.instruction_before(at) else { break };
            let Some(inst) = self.decode(before) else { break };
            // Members are consecutive: none follows across a gap.
            if before + u32::from(inst.len()) != at {
                break;
            }
            at = before;
            match inst.mnemonic() {
                "s_clause" if covers.clause.is_none() => {
                    let count = (wait_immediate_value(&inst) & CLAUSE) as usize + 1;
                    covers.clause = self.cover(function, at, count, distance);
                }
                "s_delay_alu" if covers.delay.is_none() && distance < DELAY => {
                    covers.delay = self.cover(function, at, delayed(wait_immediate_value(&inst)), distance);
                }
                _ => {}
            }
        }
        covers
    }

    /// A cover of `count` instructions, if the one at distance `place` after it is among them.
    fn cover(&self, function: &Function, offset: u32, count: usize, place: usize) -> Option<CoveringInst> {
        if place >= count {
            return None;
        }
        let mut last = offset;
        for _ in 0..count {
            let inst = self.decode(last)?;
            let next = last + u32::from(inst.len());
            if !function.is_instruction(next) {
                break;
            }
            last = next;
        }
        Some(CoveringInst { offset, last, count: count as u8, place: place as u8 })
    }

    /// The paths through a function; builds the table of predecessors once.
    #[must_use]
    pub fn ways(&self, function: usize) -> Option<FunctionPaths<'_>> {
        let function = self.functions.get(function)?;
        Some(FunctionPaths { program: self, function, predecessors: function.predecessors() })
    }
}

fn is_executed_offset(at: u32, program: &Program<'_>) -> bool {
    program.function_at(at).is_some_and(|(_, function)| function.is_instruction(at))
}

fn aligned_mark_range(mark: &SectionSymbol<'_>, size: u32) -> Range<u32> {
    let end = mark.offset.saturating_add(mark.size).checked_next_multiple_of(4);
    mark.offset & !3..end.map_or(size, |end| end.min(size))
}

fn wait_immediate_value(inst: &Inst) -> u64 {
    inst.raw(Name::Simm16).unwrap_or(0)
}

/// The paths through a function, see [`Program::ways`].
#[derive(Debug, Clone)]
pub struct FunctionPaths<'p> {
    program: &'p Program<'p>,
    function: &'p Function,
    predecessors: Predecessors,
}

impl FunctionPaths<'_> {
    /// Visits the instructions that may be executed after the one at an offset, at most `bound` of them on a
    /// path; `each` gets the offset, the instruction and its distance, 1 for the next one, and returns
    /// whether to continue there.
    pub fn following(&self, offset: u32, bound: u32, mut each: impl FnMut(u32, &Inst, u32) -> bool) -> PathSteps {
        let function = self.function;
        self.paths(offset, bound, &mut each, |at: u32, inst: &Inst| {
            let Some(block) = function.block_at(at) else { return (Vec::new(), true) };
            let line = function.block(block);
            if at != line.last {
                return (vec![at + u32::from(inst.len())], false);
            }
            let to = function.successors(block).iter().map(|to| function.block(*to as usize).start).collect();
            (to, function.leaves(block))
        })
    }

    /// The same for instructions that may have been executed before.
    pub fn preceding(&self, offset: u32, bound: u32, mut each: impl FnMut(u32, &Inst, u32) -> bool) -> PathSteps {
        let (function, predecessors) = (self.function, &self.predecessors);
        self.paths(offset, bound, &mut each, |at: u32, _: &Inst| {
            let Some(block) = function.block_at(at) else { return (Vec::new(), true) };
            if at != function.block(block).start {
                return (function.instruction_before(at).into_iter().collect(), false);
            }
            let blocks = predecessors.of_block(block);
            let lines = blocks.iter().map(|before| function.block(*before as usize));
            let is_entry = function.entries.iter().any(|entry| entry.offset == at);
            let leaves = is_entry || blocks.is_empty() || lines.clone().any(|line| line.exit == BlockExit::Call);
            (lines.map(|line| line.last).collect(), leaves)
        })
    }

    fn paths(
        &self,
        offset: u32,
        bound: u32,
        each: &mut impl FnMut(u32, &Inst, u32) -> bool,
        next: impl Fn(u32, &Inst) -> (Vec<u32>, bool),
    ) -> PathSteps {
        let mut steps = PathSteps::default();
        let mut seen = BTreeMap::new();
        let mut work = VecDeque::from([(offset, 0)]);
        while let Some((at, distance)) = work.pop_front() {
            let Some(inst) = self.program.decode(at) else { continue };
            if distance > 0 {
                steps.count += 1;
                if !each(at, &inst, distance) {
                    continue;
                }
            }
            if distance == bound {
                continue;
            }
            let (more, leaves) = next(at, &inst);
            steps.leaves |= leaves;
            work.extend(more.into_iter().filter(|to| seen.insert(*to, ()).is_none()).map(|to| (to, distance + 1)));
        }
        steps
    }
}

/// The number of instructions after an `s_delay_alu` that it may refer to.
fn delayed(immediate: u64) -> usize {
    match (immediate >> 4 & 7, immediate >> 7 & 15) {
        (_, 0) => 1,
        (skip, _) => skip as usize + 1,
    }
}
