//! The program in a section: its functions, and the calls between them.

use crate::address_slice::SliceCode;
use crate::block::BlockExit;
use crate::calls::{CallDestination, CallSite, bottom_up};
use crate::cfg::builder;
use crate::function::Function;
use crate::named::NamedRegisterSets;
use crate::ops::{AddressOp, Ops};
use crate::problem::{AnalysisProblem, ProblemReason};
use crate::source::CodeSource;
use crate::waves;
use hotswap_isa::{Inst, Isa};
use rayon::prelude::*;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// The program in one section of code.
#[derive(Debug)]
pub struct Program<'a> {
    pub source: CodeSource<'a>,
    /// Its functions by offset.
    pub functions: Vec<Function>,
    pub(crate) ops: Ops,
    /// Functions that call each other, callees before callers.
    pub(crate) groups: Vec<Vec<u32>>,
    callers: Callers,
    /// For each function the kernels that can reach it.
    pub(crate) kernels: OnceLock<Vec<Arc<[u32]>>>,
}

/// A call of a function.
#[derive(Debug, Clone, Copy, Default)]
struct CallerSite {
    caller: u32,
    /// The number of the call in the caller.
    call: u32,
}

/// For each function the calls of it.
#[derive(Debug)]
struct Callers {
    list: Vec<CallerSite>,
    /// Ends of the calls of each function; the next one's start there.
    ends: Vec<u32>,
}

/// Sums over a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramSums {
    pub functions: usize,
    /// Functions whose control flow is completely known.
    pub closed: usize,
    /// Kernels among the functions.
    pub kernels: usize,
    /// Instructions that an entry reaches.
    pub instructions: usize,
    pub blocks: usize,
    /// Edges between blocks of one function.
    pub edges: usize,
    /// Calls and jumps into other functions: of known functions, of code outside, of unknown ones.
    pub calls: [usize; 3],
    /// Problems of each reason.
    pub problems: BTreeMap<ProblemReason, usize>,
    /// Bytes of memory that the functions take.
    pub memory: usize,
}

impl<'a> Program<'a> {
    /// The functions of a section, with their calls; with `offsets` those that results about these may depend on.
    pub(crate) fn make(mut source: CodeSource<'a>, offsets: Option<&[u32]>) -> Self {
        let ops = Ops::new();
        let functions = match source.waves.is_empty() {
            true => builder::find_functions(&source, &ops, offsets),
            false => waves::functions(&mut source, &ops, offsets),
        };
        let (groups, callers) = rayon::join(
            || bottom_up(functions.len(), |number| callees_of(&functions[number])),
            || Callers::of(&functions),
        );
        let mut program = Self { source, functions, ops, groups, callers, kernels: OnceLock::new() };
        program.check_returns();
        program
    }

    /// The function that holds an offset, with its number.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<(usize, &Function)> {
        let number = self.functions.partition_point(|function| function.start <= offset).checked_sub(1)?;
        self.functions.get(number).filter(|function| offset < function.end).map(|function| (number, function))
    }

    /// The name of a function: its symbol's, or one made from its offset.
    #[must_use]
    pub fn name(&self, function: &Function) -> String {
        let mark = function.mark.and_then(|mark| self.source.marks.get(mark as usize));
        let mark = mark.filter(|mark| !mark.name.is_empty());
        mark.map_or_else(|| format!("code at {:#x}", function.start), |mark| mark.name.clone().into_owned())
    }

    pub(crate) fn into_source(self) -> CodeSource<'a> {
        self.source
    }

    /// The calls of a function from known call sites: the caller's number and the call.
    pub fn callers(&self, function: usize) -> impl Iterator<Item = (usize, &CallSite)> {
        self.callers.calls_of(function).iter().filter_map(|CallerSite { caller, call }| {
            let site = self.functions.get(*caller as usize)?.calls.get(*call as usize)?;
            Some((*caller as usize, site))
        })
    }

    /// Groups of functions that call each other, callees before callers.
    #[must_use]
    pub fn bottom_up(&self) -> &[Vec<u32>] {
        &self.groups
    }

    #[must_use]
    pub fn facts(&self) -> ProgramSums {
        let mut facts = ProgramSums { functions: self.functions.len(), ..ProgramSums::default() };
        for function in &self.functions {
            facts.closed += usize::from(function.is_closed());
            facts.kernels += usize::from(function.is_kernel());
            facts.instructions += function.instruction_count();
            facts.blocks += function.block_count();
            facts.edges += function.blocks.edge_count();
            facts.memory += function.memory();
            for call in &function.calls {
                let kind = match call.callee {
                    CallDestination::Function { .. } => 0,
                    CallDestination::Outside(_) => 1,
                    CallDestination::Unknown => 2,
                };
                facts.calls[kind] += 1;
            }
            for problem in &function.problems {
                *facts.problems.entry(problem.reason).or_default() += 1;
            }
        }
        facts
    }

    /// The instruction set of a function, with its wave size.
    #[must_use]
    pub fn isa_of(&self, function: usize) -> Isa {
        self.functions.get(function).map_or(self.source.isa, |function| self.source.isa_at(function.start))
    }

    /// The instruction at an offset.
    #[must_use]
    pub fn decode(&self, offset: u32) -> Option<Inst> {
        self.source.isa_at(offset).decode(self.source.bytes.get(offset as usize..)?).ok()
    }

    /// Whether the jump or call target of the instruction at an offset of a function comes from memory, from
    /// a caller or from an address that was computed in full, and was only copied since: arithmetic would
    /// turn distances into it.
    #[must_use]
    pub fn comes_whole(&self, function: &Function, offset: u32) -> bool {
        let code = SliceCode {
            source: &self.source,
            ops: &self.ops,
            blocks: &function.blocks,
            starts: &function.starts,
            span: (function.start, function.end),
            entries: Vec::new(),
            values: &function.pc_values,
            before: OnceCell::new(),
        };
        code.origins(offset).is_some()
    }

    /// Registers that a function names.
    pub(crate) fn named(&self, function: &Function) -> NamedRegisterSets {
        let bytes = self.source.bytes.get(function.start as usize..).unwrap_or_default();
        NamedRegisterSets::of(self.source.isa_at(function.start), &self.ops, bytes, &function.starts)
    }

    /// Whether an instruction is a call or a jump through registers.
    #[must_use]
    pub fn is_indirect(&self, inst: &Inst) -> bool {
        matches!(self.ops.address_op(inst), AddressOp::SetPc | AddressOp::SwapPc)
    }

    /// A jump to the value that a register held at the entry is a return only where a caller puts
    /// a return address there.
    fn check_returns(&mut self) {
        let wrong: Vec<WrongReturns> = (0..self.functions.len())
            .into_par_iter()
            .with_min_len(256)
            .map(|function| WrongReturns { function, blocks: self.wrong_returns(function) })
            .filter(|wrong| !wrong.blocks.is_empty())
            .collect();
        for WrongReturns { function, blocks } in wrong {
            let function = &mut self.functions[function];
            for block in blocks {
                let offset = function.block(block).last;
                function.blocks.forget_exit(block);
                function.problems.push(AnalysisProblem { offset, reason: ProblemReason::UnknownReturn });
            }
            function.problems.sort();
        }
    }

    /// Numbers of the blocks of a function whose return lacks a caller.
    fn wrong_returns(&self, number: usize) -> Vec<usize> {
        let function = &self.functions[number];
        let mut returns =
            (0..function.block_count()).filter(|block| function.exit(*block) == BlockExit::Return).peekable();
        if returns.peek().is_none() {
            return Vec::new();
        }
        let links: BTreeSet<u8> = self.callers(number).filter_map(|(_, call)| call.link).collect();
        // LLVM's functions are called with the return address in s[30:31].
        let by_convention = function.entries.iter().any(|entry| !entry.is_kernel());
        returns.filter(|block| !is_known_link_register(function.block(*block).link, &links, by_convention)).collect()
    }
}

fn is_known_link_register(link: u8, links: &BTreeSet<u8>, by_convention: bool) -> bool {
    if links.is_empty() { by_convention && link == 30 } else { links.contains(&link) }
}

/// Blocks of a function that seem to return, and do not.
struct WrongReturns {
    /// Number of the function.
    function: usize,
    blocks: Vec<usize>,
}

impl Callers {
    fn of(functions: &[Function]) -> Self {
        let mut ends = vec![0u32; functions.len()];
        for callee in functions.iter().flat_map(|function| &function.calls).filter_map(known_callee_index) {
            ends[callee] += 1;
        }
        let mut all = 0;
        for end in &mut ends {
            // Starts of the lists, until the lists are filled.
            all += std::mem::replace(end, all);
        }
        let mut list = vec![CallerSite::default(); all as usize];
        for (caller, function) in functions.iter().enumerate() {
            for (number, call) in function.calls.iter().enumerate() {
                if let Some(callee) = known_callee_index(call) {
                    list[ends[callee] as usize] = CallerSite { caller: caller as u32, call: number as u32 };
                    ends[callee] += 1;
                }
            }
        }
        Self { list, ends }
    }

    fn calls_of(&self, function: usize) -> &[CallerSite] {
        let start = function.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(function).copied().unwrap_or(start);
        self.list.get(start as usize..end as usize).unwrap_or_default()
    }
}

fn known_callee_index(call: &CallSite) -> Option<usize> {
    match call.callee {
        CallDestination::Function { function, .. } => Some(function as usize),
        _ => None,
    }
}

fn callees_of(function: &Function) -> impl Iterator<Item = u32> {
    function.calls.iter().filter_map(|call| match call.callee {
        CallDestination::Function { function, .. } => Some(function),
        _ => None,
    })
}
