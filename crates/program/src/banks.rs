//! The VGPR bank mode of gfx12.5 at the start of every block.
//!
//! Invariants: a role is known only if every path brings the same bank; a function that someone unknown may enter, or
//! that comes back from an unknown callee, begins again with nothing known, unless the caller trusts LLVM's calling
//! convention ([`BankMap::by_convention`]: bank 0 for every role at entries and returns). On other targets everything is
//! bank 0.

use crate::block::Exit;
use crate::calls::Callee;
use crate::function::Function;
use crate::ops::Op;
use crate::problem::Reason;
use crate::program::Program;
use hotswap_isa::Feature;
use hotswap_isa::bank::VgprBanks;
use std::collections::BTreeSet;

/// The bank mode everywhere in a program.
#[derive(Debug, Clone)]
pub struct BankMap {
    /// For each function the mode at the start of each block; empty where it is the first bank everywhere.
    blocks: Vec<Vec<VgprBanks>>,
}

impl BankMap {
    /// What the code proves.
    #[must_use]
    pub fn of(program: &Program<'_>) -> Self {
        Self::solve(program, VgprBanks::UNKNOWN)
    }

    /// What the code proves if everybody outside keeps LLVM's calling convention.
    #[must_use]
    pub fn by_convention(program: &Program<'_>) -> Self {
        Self::solve(program, VgprBanks::ENTRY)
    }

    fn solve(program: &Program<'_>, outside: VgprBanks) -> Self {
        let isa = program.source.isa;
        if !isa.has(Feature::N1024AddressableVgprs) {
            return Self { blocks: vec![Vec::new(); program.functions.len()] };
        }
        let mut solver = Solver::new(program, outside);
        solver.run();
        let known = |state: Option<VgprBanks>| state.unwrap_or(VgprBanks::UNKNOWN);
        let blocks = solver.states.into_iter().map(|states| states.into_iter().map(known).collect());
        let mut map = Self { blocks: blocks.collect() };
        for (function, states) in program.functions.iter().zip(&mut map.blocks) {
            if !function.banked && states.iter().all(|state| *state == VgprBanks::ENTRY) {
                *states = Vec::new();
            }
        }
        // A jump to an unknown place may go to any block of its function.
        for (function, states) in program.functions.iter().zip(&mut map.blocks) {
            if function.problems.iter().any(|problem| problem.reason == Reason::UnknownJump) {
                *states = vec![VgprBanks::UNKNOWN; function.blocks.len()];
            }
        }
        map
    }

    /// The mode at the start of a block.
    #[must_use]
    pub fn at_block(&self, function: usize, block: usize) -> VgprBanks {
        match self.blocks.get(function) {
            Some(states) if !states.is_empty() => states.get(block).copied().unwrap_or(VgprBanks::UNKNOWN),
            _ => VgprBanks::ENTRY,
        }
    }

    /// Whether a function has the first bank for every role everywhere, as far as its own instructions go.
    pub(crate) fn is_plain(&self, function: usize) -> bool {
        self.blocks.get(function).is_some_and(Vec::is_empty)
    }

    /// The mode before the instruction at an offset; `None` where no instruction begins.
    #[must_use]
    pub fn before(&self, program: &Program<'_>, offset: u32) -> Option<VgprBanks> {
        let (number, function) = program.function_at(offset)?;
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let mut banks = self.at_block(number, block);
        let mut at = function.blocks[block].start;
        while function.banked && at < offset {
            let inst = program.decode(at)?;
            banks = banks.after(&inst, program.source.isa);
            at += u32::from(inst.len());
        }
        Some(banks)
    }
}

struct Solver<'p, 'a> {
    program: &'p Program<'a>,
    /// What unknown callers and callees leave.
    outside: VgprBanks,
    states: Vec<Vec<Option<VgprBanks>>>,
    /// What a function leaves when it returns.
    returned: Vec<Option<VgprBanks>>,
    work: BTreeSet<(u32, u32)>,
}

impl<'p, 'a> Solver<'p, 'a> {
    fn new(program: &'p Program<'a>, outside: VgprBanks) -> Self {
        let functions = &program.functions;
        let states = functions.iter().map(|function| vec![None; function.blocks.len()]).collect();
        Self { program, outside, states, returned: vec![None; functions.len()], work: BTreeSet::new() }
    }

    fn run(&mut self) {
        let program = self.program;
        for (number, function) in program.functions.iter().enumerate() {
            for entry in &function.entries {
                if entry.is_kernel() {
                    self.enter(number, entry.offset, VgprBanks::ENTRY);
                } else if entry.open || program.callers(number).next().is_none() {
                    self.enter(number, entry.offset, self.outside);
                }
            }
        }
        while let Some((number, block)) = self.work.pop_first() {
            self.block(number as usize, block as usize);
        }
    }

    fn enter(&mut self, function: usize, offset: u32, banks: VgprBanks) {
        if let Some(block) = self.program.functions[function].block_at(offset) {
            self.meet(function, block, banks);
        }
    }

    fn meet(&mut self, function: usize, block: usize, banks: VgprBanks) {
        let Some(slot) = self.states[function].get_mut(block) else { return };
        let joined = slot.map_or(banks, |known| known.join(banks));
        if *slot != Some(joined) {
            *slot = Some(joined);
            self.work.insert((function as u32, block as u32));
        }
    }

    fn block(&mut self, number: usize, block: usize) {
        let program = self.program;
        let function = &program.functions[number];
        let Some(entry) = self.states[number][block] else { return };
        let line = function.blocks[block];
        let mut banks = self.through(function, line.start, line.end, entry);
        let call = function.call_at(line.last);
        if let Some(call) = call {
            match call.callee {
                Callee::Function { function: callee, entry } => {
                    self.enter(callee as usize, entry, banks);
                    let returned = self.returned[callee as usize];
                    if call.is_tail() {
                        if let Some(returned) = returned {
                            self.give_back(number, returned);
                        }
                    } else {
                        // Nothing comes back before the callee was followed to its end.
                        let Some(returned) = returned else { return };
                        banks = returned;
                    }
                }
                _ if call.is_tail() => self.give_back(number, self.outside),
                _ => banks = self.outside,
            }
        }
        if line.exit == Exit::Return {
            self.give_back(number, banks);
        }
        for to in function.successors(block) {
            self.meet(number, *to as usize, banks);
        }
    }

    /// The mode behind instructions of one block.
    fn through(&self, function: &Function, start: u32, end: u32, mut banks: VgprBanks) -> VgprBanks {
        let program = self.program;
        let mut at = start;
        while function.banked && at < end {
            let Some(inst) = program.decode(at) else { break };
            at += u32::from(inst.len());
            // What a call leaves is its callee's business.
            if !matches!(program.ops.of(&inst), Op::SwapPc | Op::Call) {
                banks = banks.after(&inst, program.source.isa);
            }
        }
        banks
    }

    /// A function returns with this mode: everything behind calls of it is to be looked at again.
    fn give_back(&mut self, number: usize, banks: VgprBanks) {
        let joined = self.returned[number].map_or(banks, |known| known.join(banks));
        if self.returned[number] == Some(joined) {
            return;
        }
        self.returned[number] = Some(joined);
        let program = self.program;
        for (caller, site) in program.callers(number) {
            if let Some(block) = program.functions[caller].block_at(site.offset)
                && self.states[caller][block].is_some()
            {
                self.work.insert((caller as u32, block as u32));
            }
        }
    }
}
