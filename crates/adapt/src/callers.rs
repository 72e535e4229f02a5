//! The interprocedural state of a function: the registers live when it returns, and the memory operations outstanding
//! when it is called.
//!
//! Callers in the same program contribute what is live after their calls. LLVM compiles callees first and lets callers
//! keep values in registers that a callee happens not to change, so these callers count even where others may call the
//! function, too: then they keep no value in a register that the function writes and the convention lets it clobber.
//! Those other callers know only LLVM's calling convention: they keep no value in VCC, M0, SCC, s16 to s29 (results may
//! be in those below) and every other group of eight vector registers from v32 on (`AMDGPUCallingConv.td`: the
//! registers that callees may clobber in all of LLVM 22 to 24). Mutually recursive functions are among them: LLVM
//! compiles one of them before it knows anything of the next.
//!
//! Unknown callees are assumed to follow the convention as well ([`hotswap_program::Summaries::by_convention`]).
//!
//! Invariants: the answer depends on the program alone, not on the order of queries. After call chains that are too
//! long, everything is live.

use crate::unit::Unit;
use crate::waitcnt::{WaitcntState, WaitcntStates};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::{Live, Liveness};
use std::sync::OnceLock;

/// The longest call chain that is followed.
const DEPTH: usize = 24;

/// The facts about each function of a unit, computed on demand.
#[derive(Debug)]
pub(crate) struct Callers {
    functions: Vec<OnceLock<Box<(Live, bool)>>>,
    flights: Vec<OnceLock<Box<WaitcntState>>>,
    /// The length of the longest call chain to each function, from a function without callers or a recursive one.
    depth: Vec<usize>,
    /// Functions that are recursive, directly or indirectly.
    recursive: Vec<bool>,
}

impl Callers {
    pub(crate) fn of(unit: &Unit<'_>) -> Self {
        let count = unit.program.functions.len();
        let (mut depth, mut recursive) = (vec![0; count], vec![false; count]);
        // Callers come after their callees.
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

    /// The registers live when a function returns, and whether that partly relies on the convention.
    pub(crate) fn returned(&self, unit: &Unit<'_>, number: usize) -> (Live, bool) {
        match self.recursive[number] {
            _ if unit.is_shared(number) => {
                **self.functions[number].get_or_init(|| Box::new(among_sections(unit, number)))
            }
            true => (by_convention(), true),
            false => **self.functions[number].get_or_init(|| Box::new(self.find(unit, number))),
        }
    }

    /// The memory operations that may be outstanding when a function is called.
    pub(crate) fn flight(&self, unit: &Unit<'_>, number: usize) -> WaitcntState {
        if self.recursive[number] || self.depth[number] > DEPTH || is_open(unit, number) {
            return WaitcntState::everything(unit.isa());
        }
        let find = || {
            let mut all = WaitcntState::NOTHING;
            for (caller, call) in unit.program.callers(number) {
                let block = unit.program.functions[caller].block_at(call.offset).unwrap_or(usize::MAX);
                all.join(&match block {
                    usize::MAX => WaitcntState::everything(unit.isa()),
                    block => WaitcntStates::of(unit, caller).before_last(unit, caller, block),
                });
            }
            Box::new(all)
        };
        WaitcntState::clone(self.flights[number].get_or_init(find))
    }

    /// For a function that is not recursive.
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

/// Whether the registers live at the return of a function depend on which registers it writes: new code in it writes
/// more.
pub(crate) fn gives_away(unit: &Unit<'_>, number: usize) -> bool {
    !unit.program.functions[number].is_kernel() && is_open(unit, number)
}

/// Whether unknown code may call a function. One without known callers is called from outside.
fn is_open(unit: &Unit<'_>, number: usize) -> bool {
    unit.is_called_from_outside(number) || unit.program.callers(number).next().is_none()
}

/// The liveness of a function that returns with `returned` live.
pub(crate) fn liveness(unit: &Unit<'_>, number: usize, returned: &Live) -> Liveness {
    Liveness::returning(&unit.program, number, unit.summaries(), &unit.banks, returned)
}

/// The registers live when a function returns to callers in other sections, which were compiled together with it: they
/// may rely on every register that it does not write, and keep no value in one that it writes and the convention lets
/// it clobber.
fn among_sections(unit: &Unit<'_>, number: usize) -> (Live, bool) {
    let mut live = Live::EVERYTHING;
    given_away(unit, number).for_each(|reg| live.remove(reg));
    (live, true)
}

/// The registers that a function writes and the convention lets it clobber: no caller keeps a value there. Empty if the
/// function cannot be decoded.
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

/// The registers that LLVM's calling convention lets a callee clobber and that hold no result.
fn clobbered() -> impl Iterator<Item = Reg> {
    let special = [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)];
    let special = special.into_iter().map(|(special, dwords)| Reg::special(special, dwords));
    // From s40 on, LLVM 22 lets callees clobber none, LLVM 24 some. Scalar results take the first of these.
    let scalar = (16..30).map(|index| Reg::new(RegFile::Sgpr, index, 1));
    special.chain(scalar).chain(caller_saved_vectors())
}

/// The vector registers among these: callees save v40 to v47, v56 to v63 and so on.
pub(crate) fn caller_saved_vectors() -> impl Iterator<Item = Reg> {
    (32..256).filter(|index| index / 8 % 2 == 0).map(|index| Reg::new(RegFile::Vgpr, index, 1))
}
