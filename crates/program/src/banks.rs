//! The VGPR bank mode of gfx12.5 at the start of every block.
//!
//! Invariants: a role is known only if every path brings the same bank; a function that someone unknown may enter, or
//! that comes back from an unknown callee, begins again with nothing known, unless the caller trusts LLVM's calling
//! convention ([`BankMap::by_convention`]: bank 0 for every role at entries and returns). On other targets everything is
//! bank 0.

use crate::bits::Bits;
use crate::block::Exit;
use crate::calls::Callee;
use crate::function::Function;
use crate::problem::Reason;
use crate::program::Program;
use hotswap_isa::Feature;
use hotswap_isa::bank::VgprBanks;
use std::collections::BTreeSet;
use std::ops::Range;

/// The bank mode everywhere in a program.
#[derive(Debug, Clone)]
pub struct BankMap {
    /// For each function the mode at the start of each block; empty where it is that of a kernel's entry.
    blocks: Vec<Vec<VgprBanks>>,
    /// Functions that have the first bank for every role everywhere.
    plain: Bits,
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
            return Self {
                blocks: vec![Vec::new(); program.functions.len()],
                plain: Bits::full(program.functions.len()),
            };
        }
        let mut solver = Solver::new(program, outside);
        solver.run();
        let known = |state: Option<VgprBanks>| state.unwrap_or(VgprBanks::UNKNOWN);
        let blocks = solver.states.into_iter().zip(&program.functions).map(|(states, function)| match states {
            // A jump to an unknown place may go to any block of its function.
            _ if has_unknown_jump(function) => vec![VgprBanks::UNKNOWN; function.block_count()],
            States::Same(state) if known(state) == VgprBanks::ENTRY => Vec::new(),
            States::Same(state) => vec![known(state); function.block_count()],
            States::Blocks(states) if states.iter().all(|state| *state == Some(VgprBanks::ENTRY)) => Vec::new(),
            States::Blocks(states) => states.into_iter().map(known).collect(),
        });
        let mut map = Self { blocks: blocks.collect(), plain: Bits::new(program.functions.len()) };
        for number in 0..program.functions.len() {
            if map.keeps_first_bank(program, number) {
                map.plain.set(number);
            }
        }
        map
    }

    fn keeps_first_bank(&self, program: &Program<'_>, number: usize) -> bool {
        let function = &program.functions[number];
        let is_first = |banks: &VgprBanks| banks.mode() == Some(0);
        if !self.blocks[number].iter().all(is_first) {
            return false;
        }
        let (mut next, mut stays) = (0, true);
        while let Some(offset) = function.modes.get(next).filter(|_| stays) {
            let Some(block) = function.block_at(*offset) else { return false };
            let line = function.block(block);
            through(program, function, line.start..line.end, self.at_block(number, block), |banks| {
                stays &= is_first(&banks);
                next += 1;
            });
        }
        stays
    }

    /// The mode at the start of a block.
    #[must_use]
    pub fn at_block(&self, function: usize, block: usize) -> VgprBanks {
        match self.blocks.get(function) {
            Some(states) if !states.is_empty() => states.get(block).copied().unwrap_or(VgprBanks::UNKNOWN),
            _ => VgprBanks::ENTRY,
        }
    }

    /// Whether a function has the first bank for every role everywhere.
    pub(crate) fn is_plain(&self, function: usize) -> bool {
        self.plain.get(function)
    }

    /// The mode before the instruction at an offset; `None` where no instruction begins.
    #[must_use]
    pub fn before(&self, program: &Program<'_>, offset: u32) -> Option<VgprBanks> {
        let (number, function) = program.function_at(offset)?;
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let code = function.block(block).start..offset;
        Some(Self::along(program, function, code, self.at_block(number, block)))
    }

    /// The mode behind instructions of one block, from the one before them.
    #[must_use]
    pub fn along(program: &Program<'_>, function: &Function, code: Range<u32>, banks: VgprBanks) -> VgprBanks {
        through(program, function, code, banks, |_| {})
    }
}

/// The mode behind some instructions of one block; `each` gets it behind each of those that may change it.
fn through(
    program: &Program<'_>,
    function: &Function,
    code: Range<u32>,
    mut banks: VgprBanks,
    mut each: impl FnMut(VgprBanks),
) -> VgprBanks {
    let mut at = code.start;
    for offset in function.modes_in(code.start, code.end) {
        let before = if *offset == at { banks } else { banks.after_other() };
        let inst = program.decode(*offset);
        banks = inst.map_or(VgprBanks::UNKNOWN, |inst| before.after(&inst, program.source.isa));
        at = offset + inst.map_or(4, |inst| u32::from(inst.len()));
        each(banks);
    }
    if at == code.end { banks } else { banks.after_other() }
}

fn has_unknown_jump(function: &Function) -> bool {
    function.problems.iter().any(|problem| problem.reason == Reason::UnknownJump)
}

struct Solver<'p, 'a> {
    program: &'p Program<'a>,
    /// What unknown callers and callees leave.
    outside: VgprBanks,
    states: Vec<States>,
    /// What a function leaves when it returns.
    returned: Vec<Option<VgprBanks>>,
    /// Functions with blocks to be looked at, and these blocks.
    work: BTreeSet<u32>,
    pending: Vec<Bits>,
    /// The function whose blocks are looked at now.
    current: u32,
}

/// What is known of a function's blocks; `None` where nobody has come yet.
#[derive(Debug, Clone)]
enum States {
    /// The function neither sets modes nor calls anybody: it is the same everywhere.
    Same(Option<VgprBanks>),
    Blocks(Vec<Option<VgprBanks>>),
}

impl<'p, 'a> Solver<'p, 'a> {
    fn new(program: &'p Program<'a>, outside: VgprBanks) -> Self {
        let functions = &program.functions;
        let states = |function: &Function| match function.banked || !function.calls.is_empty() {
            true => States::Blocks(vec![None; function.block_count()]),
            false => States::Same(None),
        };
        let states = functions.iter().map(states).collect();
        let (returned, pending) = (vec![None; functions.len()], vec![Bits::default(); functions.len()]);
        Self { program, outside, states, returned, work: BTreeSet::new(), pending, current: u32::MAX }
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
        while let Some(number) = self.work.pop_first() {
            let mut block = 0;
            self.current = number;
            while let Some(next) = self.pending[number as usize].next(block) {
                self.pending[number as usize].clear(next);
                block = next + 1;
                self.block(number as usize, next);
            }
            self.current = u32::MAX;
            if self.pending[number as usize].next(0).is_some() {
                self.work.insert(number);
            }
        }
    }

    fn enter(&mut self, function: usize, offset: u32, banks: VgprBanks) {
        if let Some(block) = self.program.functions[function].block_at(offset) {
            self.meet(function, block, banks);
        }
    }

    fn meet(&mut self, function: usize, block: usize, banks: VgprBanks) {
        let slot = match &mut self.states[function] {
            States::Same(state) => Some(state),
            States::Blocks(states) => states.get_mut(block),
        };
        let Some(slot) = slot else { return };
        let joined = slot.map_or(banks, |known| known.join(banks));
        if *slot == Some(joined) {
            return;
        }
        *slot = Some(joined);
        let program = self.program;
        match self.states[function] {
            States::Blocks(_) => self.again(function, block),
            States::Same(_) if program.functions[function].has_exit(Exit::Return) => self.give_back(function, joined),
            States::Same(_) => {}
        }
    }

    fn again(&mut self, function: usize, block: usize) {
        let pending = &mut self.pending[function];
        if pending.bytes() == 0 {
            pending.reset(self.program.functions[function].block_count());
        }
        pending.set(block);
        if self.current != function as u32 {
            self.work.insert(function as u32);
        }
    }

    fn state(&self, function: usize, block: usize) -> Option<VgprBanks> {
        match &self.states[function] {
            States::Same(state) => *state,
            States::Blocks(states) => states.get(block).copied().flatten(),
        }
    }

    fn block(&mut self, number: usize, block: usize) {
        let program = self.program;
        let function = &program.functions[number];
        let Some(entry) = self.state(number, block) else { return };
        let line = function.block(block);
        // What a call leaves is its callee's business.
        let end = if line.exit == Exit::Call { line.last } else { line.end };
        let mut banks = through(program, function, line.start..end, entry, |_| {});
        let may_call = matches!(line.exit, Exit::Call | Exit::Tail | Exit::Unknown);
        let call = may_call.then(|| function.call_at(line.last)).flatten();
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
            self.meet(number, to as usize, banks);
        }
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
                && self.state(caller, block).is_some()
            {
                self.again(caller, block);
            }
        }
    }
}
