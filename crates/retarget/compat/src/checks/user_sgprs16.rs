//! `gfx1100` and `gfx1102` start waves of 32 lanes with wrong scalar registers unless at least 16 are set up. Their
//! compilers request more user registers than they need. In code for other processors the family `user_sgpr_count` does
//! so afterwards, and that moves the system registers, which follow the user registers: the workgroup's IDs and its
//! information. Clang enables at least one of them in each kernel. So a kernel is right only if it reads none of them
//! at their old position: none is live at its entry.
//!
//! Invariant: the set of live registers is never too small ([`hotswap_program::Liveness`]); at an unknown call or jump
//! every register is live.

use super::{KernelFacts, ProcessorPair};
use hotswap_code_object::CodeObject;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{BankMap, CodeSource, DeadLanes, LiveSet, Liveness, Program, Summaries};
use hotswap_targets::Capability;

const LEAST: u32 = 16;

/// Kernels that cannot get more user registers: name, offset of the descriptor, and the reason.
pub(super) fn judge_user_sgprs<'o>(pair: &ProcessorPair, object: &'o CodeObject<'_>) -> Vec<(&'o str, u64, String)> {
    let Some(target) = pair.runner_with(Capability::UserSgprInit16Bug) else { return Vec::new() };
    let kernels: Vec<_> = KernelFacts::kernels_of_object(object).filter(has_few_sgprs).collect();
    let programs = if kernels.is_empty() { Vec::new() } else { build_programs(object) };
    let why = |kernel: &KernelFacts<'_>| {
        let setup = InitialSgprs::from_kernel(kernel);
        let found = setup.first_read(&programs, kernel.descriptor.entry)?;
        let count = setup.total_sgprs();
        Some(format!(
            "the kernel sets up {count} scalar registers; {target} needs at least {LEAST}, and {found} moves then"
        ))
    };
    let judged = kernels.iter().map(|kernel| (kernel, why(kernel)));
    judged
        .filter_map(|(kernel, why)| Some((kernel.metadata.name, kernel.descriptor.range.start as u64, why?)))
        .collect()
}

fn has_few_sgprs(kernel: &KernelFacts<'_>) -> bool {
    kernel.lanes == 32 && InitialSgprs::from_kernel(kernel).total_sgprs() < LEAST
}

/// The initial scalar registers of a kernel.
struct InitialSgprs {
    user: u32,
    system: u32,
}

impl InitialSgprs {
    fn from_kernel(kernel: &KernelFacts<'_>) -> Self {
        let resources = kernel.resources2();
        // Bits 1 to 5: user registers; 7 to 10: workgroup ids x, y, z and the workgroup's information.
        Self { user: resources >> 1 & 31, system: (resources >> 7 & 15).count_ones() }
    }

    fn total_sgprs(&self) -> u32 {
        self.user + self.system
    }

    /// The first system register that the kernel may read, as half a sentence.
    fn first_read(&self, programs: &[SectionLiveness<'_>], entry: u64) -> Option<String> {
        let mut system = self.user..self.total_sgprs();
        if system.is_empty() {
            return None;
        }
        let Some(live) = programs.iter().find_map(|program| program.live_at(entry)) else {
            return Some("a register whose use is not known".to_owned());
        };
        system.find(|one| is_sgpr_read(one, &live)).map(|index| format!("s{index}, which it reads,"))
    }
}

fn is_sgpr_read(index: &u32, live: &LiveSet) -> bool {
    let reg = Reg::new(RegFile::Sgpr, u16::try_from(*index).unwrap_or(u16::MAX), 1);
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
    /// Registers that are live before the instruction at an address.
    fn live_at(&self, entry: u64) -> Option<LiveSet> {
        let offset = u32::try_from(entry.checked_sub(self.program.source.address)?).ok()?;
        let (function, _) = self.program.function_at(offset)?;
        let liveness = Liveness::of(&self.program, function, &self.summaries, &self.banks);
        Some(liveness.live_around(&self.program, &self.summaries, &self.banks, offset)?.0)
    }
}
