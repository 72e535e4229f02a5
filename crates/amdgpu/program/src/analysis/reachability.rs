//! Which kernels reach a function, and whether unknown code does.
//!
//! The callers of a function by pointer are unknown. If the file is linked, they are the kernels of the file that call
//! unknown targets: LLVM sizes registers and stack of a kernel with indirect calls by the functions of its own code
//! object, too, so no other kernel can rely on having enough. This applies only if call and function have LLVM's form,
//! with the return address in s[30:31]. For other functions only registers that they name themselves are certain to be
//! available.

use super::interprocedural::caller_saved_vectors;
use super::section::SectionProgram;
use crate::block::{BasicBlock, BlockExit};
use crate::calls::{CallDestination, CallSite, LINK};
use crate::function::Function;
use crate::problem::{AnalysisProblem, ProblemReason};
use hotswap_isa::reg::RegFile;
use std::borrow::Cow;
use std::collections::BTreeSet;

impl SectionProgram<'_> {
    /// Numbers of the kernels that reach a function, ascending, and whether other code may reach it as well.
    pub fn reached_from(&self, function: usize) -> (Cow<'_, [u32]>, bool) {
        let known = self.program.kernels_of(function);
        if !self.is_open(function) {
            return (Cow::Borrowed(known), false);
        }
        match self.callers_by_pointer().filter(|_| returns_as_usual(&self.program.functions[function])) {
            Some(callers) => {
                let all: BTreeSet<u32> = known.iter().chain(callers).copied().collect();
                (Cow::Owned(all.into_iter().collect()), false)
            }
            None => (Cow::Borrowed(known), true),
        }
    }

    /// One more than the highest vector register that a function names.
    pub fn highest_vgpr(&self, function: usize) -> u16 {
        let mut highest = 0;
        let isa = self.program.isa_of(function);
        self.each_instruction(function, |_, inst, banks| {
            for set in [inst.read_set(isa, banks), inst.written_set(isa, banks)] {
                let vgprs = set.iter().filter(|reg| reg.file == RegFile::Vgpr);
                highest = vgprs.map(|reg| reg.index + u16::from(reg.count)).fold(highest, u16::max);
            }
        });
        highest
    }
}

/// Whether a function returns to the address in s[30:31] only.
fn returns_as_usual(function: &Function) -> bool {
    function.is_closed() && function.blocks().all(is_usual_exit)
}

fn is_usual_exit(block: BasicBlock) -> bool {
    match block.exit {
        BlockExit::Return => block.returns_to() == Some(LINK),
        BlockExit::Unknown | BlockExit::Tail => false,
        _ => true,
    }
}

/// The kernels that reach a call of an unknown target. `None` if such a call, or what is kept over it, does not have
/// LLVM's form, if a jump target is unknown, if such kernels do not exist, or if further files are to be linked.
pub(super) fn callers_by_pointer(section: &SectionProgram<'_>) -> Option<Vec<u32>> {
    let source = &section.program.source;
    if !source.linked || !source.alone {
        return None;
    }
    let mut kernels = BTreeSet::new();
    for (number, function) in section.program.functions.iter().enumerate() {
        if function.problems.iter().any(is_jump_problem) {
            return None;
        }
        let mut unknown =
            function.calls.iter().filter(|call| !matches!(call.callee, CallDestination::Function { .. })).peekable();
        if unknown.peek().is_some() {
            kernels.extend(section.program.kernels_of(number));
        }
        let calls: Vec<&CallSite> = unknown.collect();
        if !calls.iter().all(|call| call.has_usual_link()) || keeps_what_callees_change(section, number, &calls) {
            return None;
        }
    }
    Some(kernels.into_iter().collect()).filter(|kernels: &Vec<u32>| !kernels.is_empty())
}

fn is_jump_problem(problem: &AnalysisProblem) -> bool {
    problem.reason.is_unknown_jump() || problem.reason == ProblemReason::UnknownReturn
}

/// Whether a function keeps a value over one of the calls in a vector register that LLVM's callees may clobber: then it
/// relies on more than the convention of its callees.
fn keeps_what_callees_change(section: &SectionProgram<'_>, function: usize, calls: &[&CallSite]) -> bool {
    if calls.is_empty() {
        return false;
    }
    let liveness = section.function_liveness(function).liveness;
    calls.iter().any(|call| {
        let around = liveness.live_around(&section.program, section.summaries(), &section.banks, call.offset);
        around.is_none_or(|(_, behind)| caller_saved_vectors().any(|reg| behind.live_in_any_lane().touches(reg)))
    })
}

/// For each function whether unknown code may call it, or one of its callers.
pub(super) fn open_functions(section: &SectionProgram<'_>) -> Vec<bool> {
    let mut open = vec![false; section.program.functions.len()];
    // Callers come after their callees.
    for group in section.program.bottom_up().iter().rev() {
        let members = group.iter().map(|member| *member as usize);
        let is_open = members.clone().any(|member| {
            section.is_called_from_outside(member) || section.program.callers(member).any(|(caller, _)| open[caller])
        });
        members.for_each(|member| open[member] = is_open);
    }
    open
}
