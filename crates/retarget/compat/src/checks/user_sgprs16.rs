//! `gfx1100` and `gfx1102` start waves of 32 lanes with wrong scalar registers unless at least 16 are set up. Their
//! compilers request more user registers than they need. In code for other processors the family `user_sgpr_count` does
//! so afterwards, and that moves the system registers, which follow the user registers: the workgroup's IDs and its
//! information. Clang enables at least one of them in each kernel. A kernel that reads one of them at its old position gets
//! new code at its entry, which copies them back ([`shifts_to_make`]). That code must run once, before all other: a
//! kernel that branches to its own first instruction is refused.
//!
//! Invariant: the set of live registers is never too small ([`hotswap_program::Liveness`]); at an unknown call or jump
//! every register is live.

use super::{ProcessorPair, ProgramFinding};
use hotswap_code_object::{CodeObject, SystemSgprShift, system_sgpr_shifts};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{BankMap, CodeSource, DeadLanes, Function, LiveSet, Liveness, Program, Summaries};
use hotswap_targets::TargetId;

/// Kernels that cannot get more user registers.
pub(super) fn judge_user_sgprs<'o>(pair: &ProcessorPair, object: &'o CodeObject<'_>) -> Vec<ProgramFinding<'o>> {
    let shifts = shifts_to_make(object, &pair.target);
    let programs = if shifts.is_empty() { Vec::new() } else { build_programs(object) };
    let mut refused = Vec::new();
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
        let Some(shift) = shifts.iter().find(|shift| shift.descriptor == descriptor.range) else { continue };
        let Some(why) = immovable_reason(&programs, shift.entry) else { continue };
        let count = shift.user + shift.system;
        let target = pair.target.processor;
        let why = format!(
            "the kernel sets up {count} scalar registers and {target} needs at least 16; the system registers that it reads \
             move then, and cannot be copied back at its entry: {why}"
        );
        refused.push(ProgramFinding { kernel: kernel.name, offset: shift.descriptor.start as u64, why });
    }
    refused
}

/// The kernels that read a system register which lies elsewhere once their user registers are raised for `target`: their
/// code has to change at its entry.
pub fn shifts_to_make(object: &CodeObject<'_>, target: &TargetId) -> Vec<SystemSgprShift> {
    let mut shifts = system_sgpr_shifts(object, target.processor);
    shifts.retain(|shift| shift.system > 0);
    if shifts.is_empty() {
        return shifts;
    }
    let programs = build_programs(object);
    shifts.retain(|shift| may_read_system(&programs, shift));
    shifts
}

/// Whether a kernel may read one of its system registers.
fn may_read_system(programs: &[SectionLiveness<'_>], shift: &SystemSgprShift) -> bool {
    let live = programs.iter().find_map(|program| program.live_at(shift.entry));
    live.is_none_or(|live| (shift.user..shift.user + shift.system).any(|one| is_sgpr_read(one, &live)))
}

/// Why new code at a kernel's entry would not run exactly once, before all other.
fn immovable_reason(programs: &[SectionLiveness<'_>], entry: u64) -> Option<&'static str> {
    let offset = programs.iter().find_map(|program| program.offset_of(entry));
    let program = programs.iter().find(|program| program.offset_of(entry).is_some());
    let function = program.zip(offset).and_then(|(program, offset)| program.function_at(offset));
    let Some((function, offset)) = function.zip(offset) else { return Some("its code is in no known function") };
    if function.start != offset || !function.is_instruction(offset) {
        return Some("its first instruction is not the start of a function");
    }
    let branches_back = (0..function.block_count())
        .any(|block| function.successors(block).into_iter().any(|next| function.block(next as usize).start == offset));
    branches_back.then_some("it branches to its first instruction")
}

fn is_sgpr_read(index: u16, live: &LiveSet) -> bool {
    let reg = Reg::new(RegFile::Sgpr, index, 1);
    !live.is_dead(reg, DeadLanes::InAllLanes)
}

/// A section of code, and the live registers of its functions.
struct SectionLiveness<'o> {
    program: Program<'o>,
    banks: BankMap,
    summaries: Summaries,
}

fn build_programs<'o>(object: &'o CodeObject<'_>) -> Vec<SectionLiveness<'o>> {
    let sources = CodeSource::sources_of_object(object).unwrap_or_default();
    sources.into_iter().filter(|source| source.linked).map(build_whole_program).collect()
}

fn build_whole_program(source: CodeSource<'_>) -> SectionLiveness<'_> {
    let program = Program::build(source);
    let banks = BankMap::of(&program);
    let summaries = Summaries::of(&program, &banks);
    SectionLiveness { program, banks, summaries }
}

impl SectionLiveness<'_> {
    fn offset_of(&self, entry: u64) -> Option<u32> {
        let offset = u32::try_from(entry.checked_sub(self.program.source.address)?).ok()?;
        self.program.function_at(offset).map(|_| offset)
    }

    fn function_at(&self, offset: u32) -> Option<&Function> {
        self.program.function_at(offset).map(|(_, function)| function)
    }

    /// Registers that are live before the instruction at an address.
    fn live_at(&self, entry: u64) -> Option<LiveSet> {
        let offset = self.offset_of(entry)?;
        let (function, _) = self.program.function_at(offset)?;
        let liveness = Liveness::of(&self.program, function, &self.summaries, &self.banks);
        Some(liveness.live_around(&self.program, &self.summaries, &self.banks, offset)?.0)
    }
}
