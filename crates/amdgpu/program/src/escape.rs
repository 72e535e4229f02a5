//! Functions whose address stays in a register in which it is not tracked any more, and is read there.
//!
//! The tracker (`cfg::const_prop`) follows addresses to the calls that use them. Where it loses one (paths disagree, a
//! callee has the register, the function returns) the register may still be read, copied and called. The function at
//! the address then has unknown callers. Most addresses are lost in registers that are dead by then: every call through
//! a register leaves its callee's address in it. So liveness decides.
//!
//! Invariants: a lost address matters only if some call or jump has an unknown target or origin, in or out of the
//! section. Undecidable cases open the function. Summaries list the registers that a callee reads; at a return the
//! callers are checked, and theirs.
//!
//! Absent: values in memory or vector arithmetic. The tracker counts their addresses as taken at the instruction that
//! reads them.

use crate::address::{LossPoint, LostAddress};
use crate::analysis::banks::BankMap;
use crate::analysis::liveness::{LiveSet, Liveness, Summaries};
use crate::block::BlockExit;
use crate::calls::CallDestination;
use crate::function::{EntryPoint, Function};
use crate::program::Program;
use hotswap_isa::reg::Reg;
use std::collections::{BTreeSet, HashMap};

/// Opens the functions whose addresses escape.
pub(crate) fn open_escaping(program: &mut Program<'_>) {
    if !has_unknown_transfer(program) || program.functions.iter().all(|function| function.lost.is_empty()) {
        return;
    }
    let mut analysis = EscapeAnalysis::of(program);
    let numbers = 0..program.functions.len();
    let escaping: BTreeSet<u32> = numbers.flat_map(|number| analysis.escaping(number)).collect();
    escaping.into_iter().for_each(|to| open(program, to));
}

/// Opens all functions whose addresses may escape: every lost address counts, whether its register is read or not.
/// That takes no liveness.
pub(crate) fn open_lost(program: &mut Program<'_>) {
    if !has_unknown_transfer(program) {
        return;
    }
    let lost: BTreeSet<u32> =
        program.functions.iter().flat_map(|function| function.lost.iter().map(|lost| lost.to)).collect();
    lost.into_iter().for_each(|to| open(program, to));
}

fn open(program: &mut Program<'_>, to: u32) {
    let number = program.function_at(to).map(|(number, _)| number);
    let function = number.and_then(|number| program.functions.get_mut(number));
    match function.into_iter().flat_map(|function| &mut function.entries).find(|entry| entry.offset == to) {
        Some(entry) => entry.open |= !entry.is_kernel(),
        // The address of another instruction, or the first part of a sum: its target may be anything.
        None => open_all(program),
    }
}

fn open_all(program: &mut Program<'_>) {
    let entries = program.functions.iter_mut().flat_map(|function| &mut function.entries);
    entries.filter(|entry| !entry.is_kernel()).for_each(|entry| entry.open = true);
}

/// Whether some call or jump has an unknown target or an unknown origin.
fn has_unknown_transfer(program: &Program<'_>) -> bool {
    program.source.shared
        || program.functions.iter().any(|function| {
            function.calls.iter().any(|call| !matches!(call.callee, CallDestination::Function { .. }))
                || function.has_exit(BlockExit::Unknown)
                || function.strays
                || function.entries.iter().any(is_open_function_entry)
        })
}

fn is_open_function_entry(entry: &EntryPoint) -> bool {
    entry.open && !entry.is_kernel()
}

struct EscapeAnalysis<'p, 'a> {
    program: &'p Program<'a>,
    banks: BankMap,
    summaries: Summaries,
    /// The registers that each queried function reads itself, or passes to callees: nothing is live when it returns.
    own: HashMap<usize, Liveness>,
}

impl<'p, 'a> EscapeAnalysis<'p, 'a> {
    fn of(program: &'p Program<'a>) -> Self {
        // Functions that escape are entered as by convention, so their bank modes do not change.
        let banks = BankMap::by_convention(program);
        let summaries = Summaries::by_convention(program, &banks);
        Self { program, banks, summaries, own: HashMap::new() }
    }

    /// Offsets of the code whose address escapes from a function.
    fn escaping(&mut self, number: usize) -> BTreeSet<u32> {
        let function = &self.program.functions[number];
        let mut found = BTreeSet::new();
        for lost in &function.lost {
            if !found.contains(&lost.to) && !self.is_open(lost.to) && self.is_read(number, lost) {
                found.insert(lost.to);
            }
        }
        found
    }

    /// Whether there is nothing to open at an offset: it is open already, or it is the entry of a kernel.
    fn is_open(&self, to: u32) -> bool {
        let entries = self.program.function_at(to).map(|(_, function)| &function.entries);
        entries.into_iter().flatten().any(|entry| entry.offset == to && (entry.open || entry.is_kernel()))
    }

    fn is_read(&mut self, number: usize, lost: &LostAddress) -> bool {
        let function = &self.program.functions[number];
        match lost.at {
            LossPoint::Block(offset) => {
                let block = function.block_at(offset);
                let live = block.and_then(|block| self.own(number).at_block(block));
                live.is_none_or(|live| holds(&live, lost.reg))
            }
            LossPoint::Callee(offset) => self.is_read_by_callee(function, offset, lost.reg),
            LossPoint::Exit => self.is_read_by_callers(number, lost.reg),
        }
    }

    fn own(&mut self, number: usize) -> &Liveness {
        let (program, summaries, banks) = (self.program, &self.summaries, &self.banks);
        self.own
            .entry(number)
            .or_insert_with(|| Liveness::with_live_at_return(program, number, summaries, banks, &LiveSet::NOTHING))
    }

    /// Whether a callee, or one of its callees, reads a register that its caller filled.
    fn is_read_by_callee(&self, function: &Function, offset: u32, reg: Reg) -> bool {
        let mut calls = function.calls.iter().filter(|call| call.offset == offset);
        calls.any(|call| holds(&self.summaries.before_call(call, &LiveSet::NOTHING), reg))
    }

    /// Whether a direct or indirect caller reads, after the return, a register that the function filled.
    fn is_read_by_callers(&mut self, number: usize, reg: Reg) -> bool {
        let (mut seen, mut work) = (BTreeSet::from([number]), vec![number]);
        while let Some(number) = work.pop() {
            let function = &self.program.functions[number];
            if function.has_exit(BlockExit::Unknown) || function.strays || self.may_return_results(number, reg) {
                return true;
            }
            for (caller, call) in self.program.callers(number) {
                let behind = if call.is_tail() { Some(LiveSet::NOTHING) } else { self.behind(caller, call.offset) };
                if behind.is_none_or(|live| holds(&live, reg)) {
                    return true;
                }
                if seen.insert(caller) {
                    work.push(caller);
                }
            }
        }
        false
    }

    fn behind(&mut self, number: usize, offset: u32) -> Option<LiveSet> {
        self.own(number);
        let around = self.own.get(&number)?.live_around(self.program, &self.summaries, &self.banks, offset)?;
        Some(around.1)
    }

    /// Whether unknown callers may take a function's result from a register.
    fn may_return_results(&self, number: usize, reg: Reg) -> bool {
        let function = &self.program.functions[number];
        let is_open = function.entries.iter().any(|entry| entry.open && !entry.is_kernel());
        let is_called = is_open || self.program.source.shared || self.program.callers(number).next().is_none();
        !function.is_kernel() && is_called && holds(&LiveSet::argument_registers(true), reg)
    }
}

fn holds(live: &LiveSet, reg: Reg) -> bool {
    live.live_in_any_lane().touches(reg)
}
