//! A section of code with the program in it and the analyses of that program.
//!
//! Invariants: costly analyses run when they are first needed, and once. The analyses ask one another through this
//! context, so each of them may depend on the summaries of the others.

use super::banks::BankMap;
use super::interprocedural::{self, InterproceduralLiveness, LiveAtReturn};
use super::liveness::{Liveness, Summaries};
use super::reachability;
use super::waitcnt::{CalledStates, Returns};
use crate::block::BlockExit;
use crate::coverage::Coverage;
use crate::function::{EntryPoint, Function};
use crate::problem::{AnalysisProblem, ProblemReason};
use crate::program::Program;
use crate::source::CodeSource;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};
use rayon::prelude::*;
use std::sync::OnceLock;

/// The liveness in a function.
#[derive(Debug, Clone)]
pub struct FunctionLiveness {
    pub liveness: Liveness,
    /// Whether it relies on the calling convention.
    pub trusts_convention: bool,
}

/// A section of code, see the module.
#[derive(Debug)]
pub struct SectionProgram<'a> {
    /// Number of the section in the file's table.
    pub number: usize,
    /// Name of the section.
    pub name: &'a str,
    /// The program in it.
    pub program: Program<'a>,
    /// The bytes that no function of the program claims.
    pub coverage: Coverage,
    /// Bank modes, provided that unknown callers and callees follow LLVM's calling convention.
    pub banks: BankMap,
    analyses: Analyses,
}

/// The analyses that were needed so far.
#[derive(Debug, Default)]
struct Analyses {
    proven_banks: OnceLock<BankMap>,
    summaries: OnceLock<Summaries>,
    returns: OnceLock<Returns>,
    called: OnceLock<CalledStates>,
    interprocedural: OnceLock<InterproceduralLiveness>,
    open: OnceLock<Vec<bool>>,
    callers_by_pointer: OnceLock<Option<Vec<u32>>>,
}

/// Functions have many small allocations, which all cores free.
impl Drop for SectionProgram<'_> {
    fn drop(&mut self) {
        let functions = std::mem::take(&mut self.program.functions);
        functions.into_par_iter().with_max_len(FUNCTIONS).for_each(drop);
    }
}

/// The most functions that one thread frees at once.
const FUNCTIONS: usize = 64;

impl<'a> SectionProgram<'a> {
    /// Finds the program in section number `number`, as far as needed for the offsets that `places`
    /// returns in ascending order.
    pub fn new(
        number: usize,
        name: &'a str,
        source: CodeSource<'a>,
        places: impl Fn(&CodeSource<'a>) -> Vec<u32>,
    ) -> Self {
        let (program, coverage) = Program::covering(source, places);
        let banks = BankMap::by_convention(&program);
        Self { number, name, program, coverage, banks, analyses: Analyses::default() }
    }

    /// The instruction set of the code.
    pub fn isa(&self) -> Isa {
        self.program.source.isa
    }

    /// The effects of calls on liveness, by convention where callees are unknown.
    pub fn summaries(&self) -> &Summaries {
        self.analyses.summaries.get_or_init(|| Summaries::by_convention(&self.program, &self.banks))
    }

    pub(super) fn returns(&self) -> &Returns {
        self.analyses.returns.get_or_init(|| Returns::of(self))
    }

    pub(super) fn called_states(&self) -> &CalledStates {
        self.analyses.called.get_or_init(|| CalledStates::of(self))
    }

    pub(super) fn interprocedural(&self) -> &InterproceduralLiveness {
        self.analyses.interprocedural.get_or_init(|| InterproceduralLiveness::of(&self.program))
    }

    /// Whether code outside this program may call a function. A kernel does not return.
    pub fn is_called_from_outside(&self, function: usize) -> bool {
        let mut entries = self.program.functions[function].entries.iter();
        self.is_shared(function) || entries.any(|entry| entry.open && !entry.is_kernel())
    }

    /// Whether unknown code may call a function. One without known callers is called from outside.
    pub(super) fn has_unknown_callers(&self, function: usize) -> bool {
        self.is_called_from_outside(function) || self.program.callers(function).next().is_none()
    }

    /// Whether code outside this program may call a function, or one of its callers.
    pub fn is_open(&self, function: usize) -> bool {
        self.analyses.open.get_or_init(|| reachability::open_functions(self))[function]
    }

    /// The kernels that may reach a function by a call of an unknown target, ascending; `None` if others may.
    pub fn callers_by_pointer(&self) -> Option<&[u32]> {
        self.analyses.callers_by_pointer.get_or_init(|| reachability::callers_by_pointer(self)).as_deref()
    }

    /// Whether functions in other sections of a relocatable file may call a function.
    pub(super) fn is_shared(&self, function: usize) -> bool {
        self.program.source.shared && !self.program.functions[function].is_kernel()
    }

    /// Visits the instructions of a function, each with its offset and the bank mode in force. Returns whether all could be decoded.
    pub fn each_instruction(&self, function: usize, mut each: impl FnMut(u32, &Inst, VgprBanks)) -> bool {
        let mut all = true;
        for block in 0..self.program.functions[function].block_count() {
            all &= self.each_of_block(function, block, &mut each);
        }
        all
    }

    /// The same for one block. Ends at the first instruction that cannot be decoded.
    pub(super) fn each_of_block(
        &self,
        function: usize,
        block: usize,
        mut each: impl FnMut(u32, &Inst, VgprBanks),
    ) -> bool {
        let line = self.program.functions[function].block(block);
        let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
        while at < line.end {
            let Some(inst) = self.program.decode(at) else { return false };
            each(at, &inst, banks);
            banks = banks.mode_after(&inst, self.isa());
            at += u32::from(inst.len());
        }
        true
    }

    /// The liveness in a function.
    pub fn function_liveness(&self, function: usize) -> FunctionLiveness {
        let LiveAtReturn { live: returned, trusts_convention: convention } =
            self.interprocedural().live_at_return(self, function);
        let mut exits = self.program.functions[function].blocks().map(|block| block.exit);
        let returns = convention && exits.any(|exit| matches!(exit, BlockExit::Return | BlockExit::Tail));
        let liveness = interprocedural::liveness_with_returned(self, function, &returned);
        let trusts_convention = returns || self.summaries().trusts_convention(function);
        FunctionLiveness { liveness, trusts_convention }
    }

    /// Whether the registers live at the return of a function depend on which registers it writes: new code
    /// in it writes more.
    pub fn return_depends_on_writes(&self, function: usize) -> bool {
        !self.program.functions[function].is_kernel() && self.has_unknown_callers(function)
    }

    /// Whether the bank mode of a block relies on the calling convention.
    pub fn trusts_convention(&self, function: usize, block: usize) -> bool {
        let one = &self.program.functions[function];
        // If a kernel neither calls a function nor is called by one, it does not have to keep a convention.
        let is_alone = one.entries.iter().all(EntryPoint::is_kernel)
            && one.calls.is_empty()
            && self.program.callers(function).next().is_none();
        if is_alone {
            return false;
        }
        let proven = self.analyses.proven_banks.get_or_init(|| BankMap::of(&self.program));
        proven.at_block(function, block).mode().is_none() && self.banks.at_block(function, block).mode().is_some()
    }
}

impl Function {
    /// Why unknown code may enter the function at any point.
    #[must_use]
    pub fn entered_anywhere(&self) -> Option<&AnalysisProblem> {
        self.problems.iter().find(|problem: &&AnalysisProblem| {
            problem.reason.is_unknown_jump()
                || matches!(
                    problem.reason,
                    ProblemReason::UnknownReturn | ProblemReason::Exception | ProblemReason::TooDeep
                )
        })
    }
}
