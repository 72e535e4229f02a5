//! Which kernels reach a function, and how many vector registers it may use.
//!
//! Terms: a kernel's *grant* is the count in its metadata. Its *ceiling* is the highest count with which a work-group
//! of its largest size still fits. The lowest registers are taken first, so waves are lost only if no other register is
//! left.
//!
//! Invariants: registers below the least grant of all kernels that reach a function are available to it. Those between
//! the highest grant and the least ceiling become available if the kernels' counts are raised, and hold no value in any
//! of them.
//!
//! The callers of a function by pointer are unknown. If the file is linked, they are the kernels of the file that call
//! unknown targets: LLVM sizes registers and stack of a kernel with indirect calls by the functions of its own code
//! object, too, so no other kernel can rely on having enough. This applies only if call and function have LLVM's form,
//! with the return address in s[30:31]. For other functions only registers that they name themselves are certain to be
//! available.

use crate::callers::caller_saved_vectors;
use crate::spill::{PrivateSegment, PrivateSegments};
use crate::unit::Unit;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{CallSite, Callee, Exit, Function, KernelNeeds, LINK, Problem, Reason, occupancy};
use hotswap_targets::Processor;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Scalar registers that instructions can name, VCC and other special ones left out.
pub(crate) const SGPRS: u16 = 106;

/// Scalar registers that new code never writes: scalar instructions that read the scratch base soon after would need a
/// wait, wherever they are (rows `scratch-base-lo` and `scratch-base-hi` of `hotswap-hazards`).
pub(crate) fn never_borrowed() -> impl Iterator<Item = Reg> {
    hotswap_hazards::SCRATCH_BASE_SGPRS.into_iter().map(|index| Reg::new(RegFile::Sgpr, index, 1))
}

/// A kernel of a unit.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) function: u32,
    pub(crate) name: String,
    pub(crate) needs: KernelNeeds,
    /// Vector registers: the count in its metadata, and the count to which that may be raised.
    pub(crate) granted: u16,
    pub(crate) ceiling: u16,
    pub(crate) private_segment: PrivateSegment,
}

/// The registers that a function may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    /// Vector registers below this number are available.
    pub(crate) there: u16,
    /// Registers from the first of these up to the second become available if counts are raised.
    pub(crate) more: (u16, u16),
    /// Indices, in the unit's list, of the kernels that reach the function.
    pub(crate) kernels: Vec<usize>,
    /// Registers from this one on are available only if its callers are the kernels that call unknown targets.
    pub(crate) by_pointer: Option<u16>,
}

/// The kernels of a unit, by function.
pub(crate) fn kernels(unit: &Unit<'_>, processor: &Processor, segments: &PrivateSegments) -> Vec<Kernel> {
    let functions = unit.program.functions.iter().enumerate();
    let kernel = |number: usize| {
        let needs = unit.program.kernel_needs(number)?;
        let granted = needs.vgprs.map_or(0, |count| u16::try_from(count).unwrap_or(u16::MAX));
        let name = unit.program.name(&unit.program.functions[number]);
        let (function, ceiling) = (number as u32, ceiling(processor, &needs, granted));
        let private_segment = segments.get(&name).copied().unwrap_or(Err("nothing states its private segment"));
        Some(Kernel { function, name, needs, granted, ceiling, private_segment })
    };
    let numbers: Vec<usize> =
        functions.filter(|(_, function)| function.is_kernel()).map(|(number, _)| number).collect();
    numbers.into_par_iter().filter_map(kernel).collect()
}

fn ceiling(processor: &Processor, needs: &KernelNeeds, granted: u16) -> u16 {
    let Some(before) = needs.vgprs.and_then(|_| occupancy(processor, needs)) else { return granted };
    let Some(limits) = processor.limits.vgprs(u64::from(needs.lanes)) else { return granted };
    let fits = |count: u16| {
        let needs = KernelNeeds { vgprs: Some(u32::from(count)), ..*needs };
        let after = occupancy(processor, &needs);
        after.is_some_and(|after| match before.workgroup_fits {
            true => after.workgroup_fits,
            // The metadata is not met anyway: it must not get worse.
            false => after.waves_per_simd >= before.waves_per_simd,
        })
    };
    // More registers never allow more waves, so the highest count is found by bisection.
    let (mut ceiling, mut beyond) = (granted, limits.addressable.saturating_add(1));
    while beyond.saturating_sub(ceiling) > 1 {
        let middle = ceiling.midpoint(beyond);
        *(if fits(middle) { &mut ceiling } else { &mut beyond }) = middle;
    }
    ceiling
}

/// The registers that each function may use.
pub(crate) fn room(unit: &Unit<'_>, kernels: &[Kernel], function: usize) -> Room {
    let (reached_from, open) = reached_from(unit, function);
    // Kernels are in the order of their functions.
    let number = |function: &u32| kernels.binary_search_by_key(function, |kernel| kernel.function).ok();
    let known: Vec<usize> = reached_from.iter().filter_map(number).collect();
    let own = || highest(unit, function);
    let grants = || known.iter().map(|number| kernels[*number].granted);
    let there = match (open, grants().min()) {
        (false, Some(least)) => least,
        (true, Some(least)) => least.min(own()),
        (_, None) => own(),
    };
    let more = match open || known.is_empty() {
        true => (there, there),
        false => {
            let ceiling = known.iter().map(|number| kernels[*number].ceiling).min().unwrap_or(there);
            (grants().max().unwrap_or(there), ceiling)
        }
    };
    let by_pointer = (unit.is_open(function) && !open).then(own);
    Room { there, more, kernels: known, by_pointer }
}

/// Numbers of the kernels that reach a function, ascending, and whether other code may reach it as well.
pub(crate) fn reached_from<'u>(unit: &'u Unit<'_>, function: usize) -> (Cow<'u, [u32]>, bool) {
    let known = unit.program.kernels_of(function);
    if !unit.is_open(function) {
        return (Cow::Borrowed(known), false);
    }
    match unit.callers_by_pointer().filter(|_| returns_as_usual(&unit.program.functions[function])) {
        Some(callers) => {
            let all: BTreeSet<u32> = known.iter().chain(callers).copied().collect();
            (Cow::Owned(all.into_iter().collect()), false)
        }
        None => (Cow::Borrowed(known), true),
    }
}

/// Whether a function returns to the address in s[30:31] only.
fn returns_as_usual(function: &Function) -> bool {
    let usual = |block: hotswap_program::Block| match block.exit {
        Exit::Return => block.returns_to() == Some(LINK),
        Exit::Unknown | Exit::Tail => false,
        _ => true,
    };
    function.is_closed() && function.blocks().all(usual)
}

/// The kernels that reach a call of an unknown target. `None` if such a call, or what is kept over it, does not have
/// LLVM's form, if a jump target is unknown, if there are no such kernels, or if other files are still to be linked.
pub(crate) fn callers_by_pointer(unit: &Unit<'_>) -> Option<Vec<u32>> {
    let source = &unit.program.source;
    if !source.linked || !source.alone {
        return None;
    }
    let mut kernels = BTreeSet::new();
    for (number, function) in unit.program.functions.iter().enumerate() {
        let jumps = |problem: &Problem| problem.reason.is_unknown_jump() || problem.reason == Reason::UnknownReturn;
        if function.problems.iter().any(jumps) {
            return None;
        }
        let mut unknown =
            function.calls.iter().filter(|call| !matches!(call.callee, Callee::Function { .. })).peekable();
        if unknown.peek().is_some() {
            kernels.extend(unit.program.kernels_of(number));
        }
        let calls: Vec<&CallSite> = unknown.collect();
        if !calls.iter().all(|call| call.has_usual_link()) || keeps_what_callees_change(unit, number, &calls) {
            return None;
        }
    }
    Some(kernels.into_iter().collect()).filter(|kernels: &Vec<u32>| !kernels.is_empty())
}

/// Whether a function keeps a value over one of the calls in a vector register that LLVM's callees may clobber: then it
/// relies on more than the convention of its callees.
fn keeps_what_callees_change(unit: &Unit<'_>, function: usize, calls: &[&CallSite]) -> bool {
    if calls.is_empty() {
        return false;
    }
    let (liveness, _) = unit.liveness(function);
    calls.iter().any(|call| {
        let around = liveness.around(&unit.program, unit.summaries(), &unit.banks, call.offset);
        around.is_none_or(|(_, behind)| caller_saved_vectors().any(|reg| behind.any().touches(reg)))
    })
}

/// For each function whether unknown code may call it, or one of its callers.
pub(crate) fn open(unit: &Unit<'_>) -> Vec<bool> {
    let mut open = vec![false; unit.program.functions.len()];
    // Callers come after their callees.
    for group in unit.program.bottom_up().iter().rev() {
        let members = || group.iter().map(|member| *member as usize);
        let is_open = members().any(|member| {
            unit.is_called_from_outside(member) || unit.program.callers(member).any(|(caller, _)| open[caller])
        });
        members().for_each(|member| open[member] = is_open);
    }
    open
}

/// One more than the highest vector register that a function names.
pub(crate) fn highest(unit: &Unit<'_>, number: usize) -> u16 {
    let mut highest = 0;
    unit.each_instruction(number, |inst, banks| {
        for set in [inst.read_set(unit.isa(), banks), inst.written_set(unit.isa(), banks)] {
            let vgprs = set.iter().filter(|reg| reg.file == RegFile::Vgpr);
            highest = vgprs.map(|reg| reg.index + u16::from(reg.count)).fold(highest, u16::max);
        }
    });
    highest
}
