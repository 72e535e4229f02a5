//! What callers bring to a function and need of it: what is live when it returns, and what is under way when it is called.
//!
//! Where all callers are known it is what they need behind their calls. Otherwise it is everything but what LLVM's calling
//! convention says that nobody keeps over a call: VCC, M0, SCC, and every other eight vector registers from v32 on.
//!
//! Invariants: the answer depends on the program alone, not on who asks first: of functions that call each other, and of
//! chains of calls that are too long, the convention's answer is taken.

use crate::flight::{Flight, Flights};
use crate::unit::Unit;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_program::{Live, Liveness};
use std::sync::OnceLock;

/// Calls of calls that are followed.
const DEPTH: usize = 24;

/// What is known of each function of a unit, as far as somebody asked.
#[derive(Debug)]
pub(crate) struct Callers {
    functions: Vec<OnceLock<Box<(Live, bool)>>>,
    flights: Vec<OnceLock<Box<Flight>>>,
    /// For each function how many calls lead from a kernel to it at most; none where functions call each other.
    depth: Vec<Option<usize>>,
}

impl Callers {
    pub(crate) fn of(unit: &Unit<'_>) -> Self {
        let count = unit.program.functions.len();
        let mut depth: Vec<Option<usize>> = vec![None; count];
        // Callers stand behind their callees.
        for group in unit.program.bottom_up().iter().rev() {
            let [number] = group[..] else { continue };
            let own = unit.program.callers(number as usize).map(|(caller, _)| caller);
            let depths: Option<Vec<usize>> =
                own.map(|caller| depth[caller].filter(|_| caller != number as usize)).collect();
            depth[number as usize] = depths.map(|depths| depths.into_iter().max().map_or(0, |most| most + 1));
        }
        let (functions, flights) = ((0..count).map(|_| OnceLock::new()), (0..count).map(|_| OnceLock::new()));
        Self { functions: functions.collect(), flights: flights.collect(), depth }
    }

    /// What is live when a function returns, and whether that is what the convention says.
    pub(crate) fn returned(&self, unit: &Unit<'_>, number: usize) -> (Live, bool) {
        match self.are_known(unit, number) {
            true => **self.functions[number].get_or_init(|| Box::new(self.find(unit, number))),
            false => (by_convention(), true),
        }
    }

    /// What memory instructions may still write when a function is called.
    pub(crate) fn flight(&self, unit: &Unit<'_>, number: usize) -> Flight {
        if !self.are_known(unit, number) {
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

    /// Whether all callers are known, and the way to each of them is not too long.
    fn are_known(&self, unit: &Unit<'_>, number: usize) -> bool {
        let function = &unit.program.functions[number];
        let open = function.entries.iter().any(|entry| entry.open && !entry.is_kernel());
        let called = unit.program.callers(number).next().is_some();
        !open && called && self.depth[number].is_some_and(|depth| depth <= DEPTH)
    }

    /// Where all callers are known.
    fn find(&self, unit: &Unit<'_>, number: usize) -> (Live, bool) {
        let (mut live, mut trusts) = (Live::NOTHING, false);
        for (caller, call) in unit.program.callers(number) {
            let (returned, convention) = self.returned(unit, caller);
            trusts |= convention && !unit.program.functions[caller].is_kernel();
            match call.is_tail() {
                true => live.union_with(&returned),
                false => {
                    let liveness = liveness(unit, caller, &returned);
                    let around = liveness.around(&unit.program, unit.summaries(), &unit.banks, call.offset);
                    live.union_with(&around.map_or(Live::EVERYTHING, |(_, behind)| behind));
                }
            }
        }
        (live, trusts)
    }
}

/// Of a function that returns with so much live.
pub(crate) fn liveness(unit: &Unit<'_>, number: usize, returned: &Live) -> Liveness {
    Liveness::returning(&unit.program, number, unit.summaries(), &unit.banks, returned)
}

fn by_convention() -> Live {
    let mut live = Live::EVERYTHING;
    for (special, dwords) in [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)] {
        live.remove(Reg::special(special, dwords));
    }
    // Callees save v40 to v47, v56 to v63 and so on.
    for index in (32..256).filter(|index| index / 8 % 2 == 0) {
        live.remove(Reg::new(RegFile::Vgpr, index, 1));
    }
    live
}
