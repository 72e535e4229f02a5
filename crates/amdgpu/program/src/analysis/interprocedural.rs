//! The registers that are live when a function returns.
//!
//! Callers in the same program contribute what is live after their calls. LLVM compiles callees first and lets callers
//! keep values in registers that a callee happens not to change, so these callers count even where others may call the
//! function, too: then they keep no value in a register that the function writes and the convention lets it clobber.
//! Those other callers know only LLVM's calling convention: they keep no value in VCC, M0, SCC, s16 to s29 (results may
//! be in those below) and every other group of eight vector registers from v32 on (`AMDGPUCallingConv.td`: the
//! registers that callees may clobber in all of LLVM 22 to 24). Mutually recursive functions are among them: LLVM
//! compiles one of them before it knows anything of the next.
//!
//! Unknown callees are assumed to follow the convention as well ([`Summaries::by_convention`]).
//!
//! Invariants: the answer depends on the program alone, not on the order of queries. After call chains that are too
//! long, everything is live.
//!
//! [`Summaries::by_convention`]: super::liveness::Summaries::by_convention

use super::liveness::{LiveSet, Liveness};
use super::section::SectionProgram;
use crate::program::Program;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use std::sync::OnceLock;

/// The registers live when a function returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveAtReturn {
    pub(super) live: LiveSet,
    /// Whether that partly relies on the convention.
    pub(super) trusts_convention: bool,
}

/// The registers live at returns of each function, computed on demand.
#[derive(Debug)]
pub(crate) struct InterproceduralLiveness {
    returned: Vec<OnceLock<Box<LiveAtReturn>>>,
    chains: CallChains,
}

/// The call chains to each function.
#[derive(Debug)]
pub(crate) struct CallChains {
    /// The length of the longest call chain to each function, from a function without callers or a recursive one.
    depth: Vec<usize>,
    /// Functions that are recursive, directly or indirectly.
    recursive: Vec<bool>,
}

impl CallChains {
    /// The longest call chain that is followed.
    const MOST: usize = 24;

    fn of(program: &Program<'_>) -> Self {
        let count = program.functions.len();
        let (mut depth, mut recursive) = (vec![0; count], vec![false; count]);
        // Callers come after their callees.
        for group in program.bottom_up().iter().rev() {
            let members = group.iter().map(|number| *number as usize);
            let is_recursive = group.len() > 1
                || members.clone().any(|number| program.callers(number).any(|(caller, _)| caller == number));
            for number in members {
                recursive[number] = is_recursive;
                let most = program.callers(number).map(|(caller, _)| depth[caller] + 1).max();
                depth[number] = most.filter(|_| !is_recursive).unwrap_or(0);
            }
        }
        Self { depth, recursive }
    }

    pub(super) fn is_recursive(&self, function: usize) -> bool {
        self.recursive[function]
    }

    /// Whether the chains to a function are too long to be followed.
    pub(super) fn is_too_deep(&self, function: usize) -> bool {
        self.depth[function] > Self::MOST
    }
}

impl InterproceduralLiveness {
    pub(super) fn of(program: &Program<'_>) -> Self {
        let returned = program.functions.iter().map(|_| OnceLock::new()).collect();
        Self { returned, chains: CallChains::of(program) }
    }

    /// The call chains to each function.
    pub(super) fn chains(&self) -> &CallChains {
        &self.chains
    }

    /// The registers live when a function returns.
    pub(super) fn live_at_return(&self, section: &SectionProgram<'_>, number: usize) -> LiveAtReturn {
        match self.chains.is_recursive(number) {
            _ if section.is_shared(number) => {
                **self.returned[number].get_or_init(|| Box::new(among_sections(section, number)))
            }
            true => LiveAtReturn { live: by_convention(), trusts_convention: true },
            false => **self.returned[number].get_or_init(|| Box::new(self.find_live_at_return(section, number))),
        }
    }

    /// For a function that is not recursive.
    fn find_live_at_return(&self, section: &SectionProgram<'_>, number: usize) -> LiveAtReturn {
        if self.chains.is_too_deep(number) {
            return LiveAtReturn { live: LiveSet::EVERYTHING, trusts_convention: false };
        }
        let is_open = section.has_unknown_callers(number);
        let (mut trusts, mut live) = (is_open, LiveSet::NOTHING);
        for (caller, call) in section.program.callers(number) {
            let LiveAtReturn { live: returned, trusts_convention } = self.live_at_return(section, caller);
            trusts |= trusts_convention && !section.program.functions[caller].is_kernel();
            trusts |= section.summaries().trusts_convention(caller);
            match call.is_tail() {
                true => live.union_with(&returned),
                false => {
                    let liveness = liveness_with_returned(section, caller, &returned);
                    let around =
                        liveness.live_around(&section.program, section.summaries(), &section.banks, call.offset);
                    live.union_with(&around.map_or(LiveSet::EVERYTHING, |(_, behind)| behind));
                }
            }
        }
        if is_open {
            freely_clobbered(section, number).for_each(|reg| live.remove_register(reg));
            live.union_with(&by_convention());
        }
        LiveAtReturn { live, trusts_convention: trusts }
    }
}

/// The liveness of a function that returns with `returned` live.
pub(super) fn liveness_with_returned(section: &SectionProgram<'_>, number: usize, returned: &LiveSet) -> Liveness {
    Liveness::with_live_at_return(&section.program, number, section.summaries(), &section.banks, returned)
}

/// The registers live when a function returns to callers in other sections, which were compiled together with it:
/// they may rely on every register that it does not write, and keep no value in one that it writes and the
/// convention lets it clobber.
fn among_sections(section: &SectionProgram<'_>, number: usize) -> LiveAtReturn {
    let mut live = LiveSet::EVERYTHING;
    freely_clobbered(section, number).for_each(|reg| live.remove_register(reg));
    LiveAtReturn { live, trusts_convention: true }
}

/// The registers that a function writes and the convention lets it clobber: no caller keeps a value there. Empty if the
/// function cannot be decoded.
fn freely_clobbered(section: &SectionProgram<'_>, number: usize) -> impl Iterator<Item = Reg> {
    let written = written_registers(section, number).unwrap_or(RegSet::EMPTY);
    clobbered_by_callee().filter(move |reg| written.touches(*reg))
}

fn written_registers(section: &SectionProgram<'_>, number: usize) -> Option<RegSet> {
    let mut written = RegSet::EMPTY;
    let all = section.each_instruction(number, |_, inst, banks| {
        written.union_with(&inst.written_set(section.isa(), banks));
    });
    all.then_some(written)
}

fn by_convention() -> LiveSet {
    let mut live = LiveSet::EVERYTHING;
    clobbered_by_callee().for_each(|reg| live.remove_register(reg));
    live
}

/// The registers that LLVM's calling convention lets a callee clobber and that hold no result.
fn clobbered_by_callee() -> impl Iterator<Item = Reg> {
    let special = [(Special::VccLo, 2), (Special::M0, 1), (Special::Scc, 1)];
    let special = special.into_iter().map(|(special, dwords)| Reg::special(special, dwords));
    // From s40 on, LLVM 22 lets callees clobber none, LLVM 24 some. Scalar results take the first of these.
    let scalar = (16..30).map(|index| Reg::new(RegFile::Sgpr, index, 1));
    special.chain(scalar).chain(caller_saved_vectors())
}

/// The vector registers among these: callees save v40 to v47, v56 to v63 and so on.
pub fn caller_saved_vectors() -> impl Iterator<Item = Reg> {
    (32..256).filter(|index| index / 8 % 2 == 0).map(|index| Reg::new(RegFile::Vgpr, index, 1))
}
