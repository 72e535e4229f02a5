//! Registers for branches that no longer reach their target.

use super::SectionRewrite;
use super::site_context::FunctionContext;
use crate::registers::budget::{SGPRS, VgprBudget, never_borrowed};
use hotswap_families::code::Scheduling;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::DeadLanes;
use hotswap_rewrite::LongBranch;

/// A register pair for a branch that is out of range: dead at the target, as SCC must be.
pub(crate) fn long_branch(work: &[SectionRewrite<'_>], branch: &LongBranch) -> Option<u8> {
    let one = work.iter().find(|work| work.unit.number == branch.section)?;
    let (at, target) = (u32::try_from(branch.at).ok()?, u32::try_from(branch.target).ok()?);
    let (number, function) = one.unit.program.function_at(at)?;
    let budget = VgprBudget::for_function(&one.unit, &one.kernels, number);
    if !function.is_instruction(at) || !function.is_instruction(target) {
        return None;
    }
    let context = FunctionContext::new(&one.unit, number, budget, Scheduling::Hardware, &[]);
    let (live, _) = context.live_around(target);
    if !live.is_dead(Reg::special(Special::Scc, 1), DeadLanes::InAllLanes) {
        return None;
    }
    let mut taken: RegSet = never_borrowed().collect();
    context.outstanding_at(at)?.add_to(&mut taken);
    let (_, behind) = context.live_around(at);
    let mut candidates = (0..SGPRS).step_by(2).map(|index| Reg::new(RegFile::Sgpr, index, 2));
    candidates.find(|one| is_free_register(one, &taken, &live, &behind)).map(|reg| reg.index as u8)
}

fn is_free_register(
    reg: &Reg,
    taken: &RegSet,
    live: &hotswap_program::LiveSet,
    behind: &hotswap_program::LiveSet,
) -> bool {
    !taken.touches(*reg) && live.is_dead(*reg, DeadLanes::InAllLanes) && behind.is_dead(*reg, DeadLanes::InAllLanes)
}
