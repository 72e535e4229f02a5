//! What callers bring to a function and need of it: what is live when it returns, and what is under way when it is called.
//!
//! Callers in the same program are asked what they need behind their calls. LLVM compiles callees first and lets callers keep
//! what a callee happens to leave alone, so that counts even where others may call the function, too: then they keep nothing
//! in what it writes and the convention gives it. Those others know nothing but LLVM's calling convention: they keep nothing
//! in VCC, M0, SCC, s16 to s29 (results may be in those below) and every other eight vector registers from v32 on
//! (`AMDGPUCallingConv.td`; of LLVM 22 to 24 the registers that all let callees change).
//! Functions that call each other are among them: LLVM compiles one of them while it knows nothing of the next.
//!
//! The convention is asked about callees that are not known as well ([`hotswap_program::Summaries::by_convention`]).
//!
//! Invariants: the answer depends on the program alone, not on who asks first; behind chains of calls that are too long
//! everything is live.

use crate::flight::{Flight, Flights};
use crate::unit::Unit;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::{Live, Liveness};
use std::sync::OnceLock;

/// Calls of calls that are followed.
const DEPTH: usize = 24;

/// What is known of each function of a unit, as far as somebody asked.
#[derive(Debug)]
pub(crate) struct Callers {
    functions: Vec<OnceLock<Box<(Live, bool)>>>,
    flights: Vec<OnceLock<Box<Flight>>>,
    /// For each function how many calls lead to it at most, from a function without callers or one that calls itself.
    depth: Vec<usize>,
    /// Functions that call themselves, over others or not.
    recursive: Vec<bool>,
}

impl Callers {
    pub(crate) fn of(unit: &Unit<'_>) -> Self {
        let count = unit.program.functions.len();
        let (mut depth, mut recursive) = (vec![0; count], vec![false; count]);
        // Callers stand behind their callees.
        for group in unit.program.bottom_up().iter().rev() {
            let callers = |number: usize| unit.program.callers(number).map(|(caller, _)| caller);
            let calls_itself = |number: usize| callers(number).any(|caller| caller == number);
            let is_recursive = group.len() > 1 || group.iter().any(|number| calls_itself(*number as usize));
            for number in group.iter().map(|number| *number as usize) {
                recursive[number] = is_recursive;
                let most = callers(number).map(|caller| depth[caller] + 1).max();
                depth[number] = most.filter(|_| !is_recursive).unwrap_or(0);
            }
        }
        let (functions, flights) = ((0..count).map(|_| OnceLock::new()), (0..count).map(|_| OnceLock::new()));
        Self { functions: functions.collect(), flights: flights.collect(), depth, recursive }
    }

    /// What is live when a function returns, and whether that is in part what the convention says.
    pub(crate) fn returned(&self, unit: &Unit<'_>, number: usize) -> (Live, bool) {
        match self.recursive[number] {
            _ if unit.is_shared(number) => {
                **self.functions[number].get_or_init(|| Box::new(among_sections(unit, number)))
            }
            true => (by_convention(), true),
            false => **self.functions[number].get_or_init(|| Box::new(self.find(unit, number))),
        }
    }

    /// What memory instructions may still write when a function is called.
    pub(crate) fn flight(&self, unit: &Unit<'_>, number: usize) -> Flight {
        if self.recursive[number] || self.depth[number] > DEPTH || is_open(unit, number) {
            return Flight::everything(unit.isa());
        }
        let find = || {
            let mut all = Flight::NOTHING;
            for (caller, call) in unit.program.callers(number) {
                let block = unit.program.functions[caller].block_at(call.offset).unwrap_or(usize::MAX);
                all.join(&match block {
                    usize::MAX => Flight::everything(unit.isa()),
                    block => Flights::of(unit, caller).before_last(unit, caller, block),
                });
            }
            Box::new(all)
        };
        Flight::clone(self.flights[number].get_or_init(find))
    }

    /// Of a function that does not call itself.
    fn find(&self, unit: &Unit<'_>, number: usize) -> (Live, bool) {
        if self.depth[number] > DEPTH {
            return (Live::EVERYTHING, false);
        }
        let is_open = is_open(unit, number);
        let (mut trusts, mut live) = (is_open, Live::NOTHING);
        for (caller, call) in unit.program.callers(number) {
            let (returned, convention) = self.returned(unit, caller);
            trusts |= convention && !unit.program.functions[caller].is_kernel();
            trusts |= unit.summaries().trusts_convention(caller);
            match call.is_tail() {
                true => live.union_with(&returned),
                false => {
                    let liveness = liveness(unit, caller, &returned);
                    let around = liveness.around(&unit.program, unit.summaries(), &unit.banks, call.offset);
                    live.union_with(&around.map_or(Live::EVERYTHING, |(_, behind)| behind));
                }
            }
        }
        if is_open {
            given_away(unit, number).for_each(|reg| live.remove(reg));
            live.union_with(&by_convention());
        }
        (live, trusts)
    }
}

/// Whether what is needed when a function returns is told by what it writes itself: new code there writes more.
pub(crate) fn gives_away(unit: &Unit<'_>, number: usize) -> bool {
    !unit.program.functions[number].is_kernel() && is_open(unit, number)
}

/// Whether somebody who is not known may call a function: what nobody calls is called from outside.
fn is_open(unit: &Unit<'_>, number: usize) -> bool {
    unit.is_called_from_outside(number) || unit.program.callers(number).next().is_none()
}

/// Of a function that returns with so much live.
pub(crate) fn liveness(unit: &Unit<'_>, number: usize, returned: &Live) -> Liveness {
    Liveness::returning(&unit.program, number, unit.summaries(), &unit.banks, returned)
}

/// What is live when a function returns to callers in other sections, which were compiled together with it: they may count on
/// every register that it does not write, and keep nothing in what it does write and the convention lets it.
fn among_sections(unit: &Unit<'_>, number: usize) -> (Live, bool) {
    let mut live = Live::EVERYTHING;
    given_away(unit, number).for_each(|reg| live.remove(reg));
    (live, true)
}

/// What a function writes and the convention lets it: no caller keeps anything there. Nothing if it cannot be read.
fn given_away(unit: &Unit<'_>, number: usize) -> impl Iterator<Item = Reg> {
    let written = written(unit, number).unwrap_or(RegSet::EMPTY);
    clobbered().filter(move |reg| written.touches(*reg))
}

fn written(unit: &Unit<'_>, number: usize) -> Option<RegSet> {
    let mut written = RegSet::EMPTY;
    let all = unit.each_instruction(number, |inst, banks| {
        written.union_with(&inst.written_set(unit.isa(), banks));
    });
    all.then_some(written)
}

fn by_convention() -> Live {
    let mut live = Live::EVERYTHING;
    clobbered().for_each(|reg| live.remove(reg));
    live
}

/// What LLVM's calling convention lets a callee change and no result is in.
fn clobbered() -> impl Iterator<Item = Reg> {
    let special = [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)];
    let special = special.into_iter().map(|(special, dwords)| Reg::special(special, dwords));
    // Of s40 and more LLVM 22 lets callees change none, 24 some. Results take the first of these, as far as they are scalar.
    let scalar = (16..30).map(|index| Reg::new(RegFile::Sgpr, index, 1));
    special.chain(scalar).chain(caller_saved_vectors())
}

/// The vector registers among these: callees save v40 to v47, v56 to v63 and so on.
pub(crate) fn caller_saved_vectors() -> impl Iterator<Item = Reg> {
    (32..256).filter(|index| index / 8 % 2 == 0).map(|index| Reg::new(RegFile::Vgpr, index, 1))
}
