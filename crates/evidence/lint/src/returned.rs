//! Registers that are live when a function returns.
//!
//! A kernel does not return. For callers in the same section, the registers needed after their calls are used. Other
//! callers keep LLVM's calling convention (`AMDGPUCallingConv.td`): no value is kept across a call in VCC, M0, SCC, s16
//! to s29, and in the eight of every sixteen vector registers from v32 on that callees need not save. LLVM compiles
//! callees first and lets callers in the same file keep values in registers that a callee happens to preserve; so does
//! this.

use crate::unit::LintUnit;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::{LiveSet, Liveness};
use std::collections::BTreeMap;

/// Maximum depth of call chains; beyond it everything is live.
const DEPTH: usize = 24;

/// See the module; results are cached.
struct ReturnLiveness {
    known: BTreeMap<usize, LiveSet>,
    recursive: Vec<bool>,
}

impl ReturnLiveness {
    fn for_unit(unit: &LintUnit<'_>) -> Self {
        let mut recursive = vec![false; unit.program.functions.len()];
        for group in unit.program.bottom_up() {
            let itself =
                |number: &u32| unit.program.callers(*number as usize).any(|(caller, _)| caller == *number as usize);
            let all = group.len() > 1 || group.iter().any(itself);
            group.iter().for_each(|number| recursive[*number as usize] = all);
        }
        Self { known: BTreeMap::new(), recursive }
    }

    /// The registers that are live when a function returns.
    fn live_at_return(&mut self, unit: &LintUnit<'_>, number: usize) -> LiveSet {
        self.find_live(unit, number, 0)
    }

    fn find_live(&mut self, unit: &LintUnit<'_>, number: usize, depth: usize) -> LiveSet {
        if let Some(known) = self.known.get(&number) {
            return *known;
        }
        let shared = unit.program.source.shared && !unit.program.functions[number].is_kernel();
        let live = match () {
            () if shared => given_away(unit, number),
            () if self.recursive[number] => by_convention(),
            () if depth > DEPTH => return LiveSet::EVERYTHING,
            () => self.by_callers(unit, number, depth),
        };
        self.known.insert(number, live);
        live
    }

    fn by_callers(&mut self, unit: &LintUnit<'_>, number: usize, depth: usize) -> LiveSet {
        let program = &unit.program;
        let open = program.functions[number].entries.iter().any(|entry| entry.open && !entry.is_kernel());
        let calls: Vec<_> = program.callers(number).map(|(caller, call)| (caller, *call)).collect();
        let mut live = LiveSet::NOTHING;
        for (caller, call) in &calls {
            let returned = self.find_live(unit, *caller, depth + 1);
            if call.is_tail() {
                live.union_with(&returned);
                continue;
            }
            let liveness = Liveness::with_live_at_return(program, *caller, unit.summaries(), &unit.banks, &returned);
            let around = liveness.live_around(program, unit.summaries(), &unit.banks, call.offset);
            live.union_with(&around.map_or(LiveSet::EVERYTHING, |(_, behind)| behind));
        }
        if open || calls.is_empty() {
            written_registers(unit, number).for_each(|reg| live.remove_register(reg));
            live.union_with(&by_convention());
        }
        live
    }
}

/// Everything except the registers that a function writes and that the convention allows it to change.
fn given_away(unit: &LintUnit<'_>, number: usize) -> LiveSet {
    let mut live = LiveSet::EVERYTHING;
    written_registers(unit, number).for_each(|reg| live.remove_register(reg));
    live
}

fn written_registers(unit: &LintUnit<'_>, number: usize) -> impl Iterator<Item = Reg> {
    let mut written = RegSet::EMPTY;
    unit.each_instruction(number, |_, _, inst, banks| {
        written.union_with(&inst.written_set(unit.isa(), banks));
    });
    caller_saved().filter(move |reg| written.touches(*reg))
}

fn by_convention() -> LiveSet {
    let mut live = LiveSet::EVERYTHING;
    caller_saved().for_each(|reg| live.remove_register(reg));
    live
}

/// The registers that the convention allows a callee to change and that hold no result.
fn caller_saved() -> impl Iterator<Item = Reg> {
    let special = [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)];
    let special = special.into_iter().map(|(special, dwords)| Reg::special(special, dwords));
    let scalar = (16..30).map(|index| Reg::new(RegFile::Sgpr, index, 1));
    let vector = (32..256).filter(|index| index / 8 % 2 == 0).map(|index| Reg::new(RegFile::Vgpr, index, 1));
    special.chain(scalar).chain(vector)
}

/// Registers live around instructions of a unit; functions are solved on demand.
pub(crate) struct LiveRegisters<'u, 'a> {
    unit: &'u LintUnit<'a>,
    functions: BTreeMap<usize, Liveness>,
    returned: ReturnLiveness,
}

impl<'u, 'a> LiveRegisters<'u, 'a> {
    pub(crate) fn new(unit: &'u LintUnit<'a>) -> Self {
        Self { unit, functions: BTreeMap::new(), returned: ReturnLiveness::for_unit(unit) }
    }

    /// The registers live before and after the instruction at an offset; everything without an instruction.
    pub(crate) fn live_around(&mut self, offset: u32) -> (LiveSet, LiveSet) {
        let everything = (LiveSet::EVERYTHING, LiveSet::EVERYTHING);
        let unit = self.unit;
        let Some((number, _)) = unit.program.function_at(offset) else { return everything };
        if !self.functions.contains_key(&number) {
            let live = self.returned.live_at_return(unit, number);
            let made = Liveness::with_live_at_return(&unit.program, number, unit.summaries(), &unit.banks, &live);
            self.functions.insert(number, made);
        }
        let found = self.functions[&number].live_around(&unit.program, unit.summaries(), &unit.banks, offset);
        found.unwrap_or(everything)
    }
}
