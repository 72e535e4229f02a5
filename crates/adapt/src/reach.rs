//! Which kernels get to a function, and how many vector registers it may use.
//!
//! Terms: a kernel's *grant* is what its metadata counts. Its *ceiling* is the highest count with which a work-group of its
//! largest size still fits. The lowest registers are taken first, so waves are lost only where nothing else is left.
//!
//! Invariants: registers up to the least grant of all kernels that get to a function are there for it; those between the
//! highest grant and the least ceiling are there if the kernels' counts are raised, and hold nothing in any of them.
//!
//! Who calls a function by pointer is not known. If the file is linked, such callers are the kernels of the file that call what
//! is not known: LLVM sizes registers and stack of a kernel with indirect calls by the functions of its own code object, too,
//! so nothing else can count on having enough. That is asked only where call and function are as LLVM makes them, with the way
//! back in s[30:31]; of other functions only registers that they name themselves are certain to be there.

use crate::callers::caller_saved_vectors;
use crate::unit::Unit;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{CallSite, Callee, Exit, Function, KernelNeeds, LINK, Problem, Reason, occupancy};
use hotswap_targets::Processor;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Scalar registers that instructions can name, VCC and other special ones left out.
pub(crate) const SGPRS: u16 = 106;

/// Scalar registers that new code never writes: scalar instructions that read the scratch base soon after would need a wait,
/// wherever they stand (rows `scratch-base-lo` and `scratch-base-hi` of `hotswap-hazards`).
pub(crate) fn never_borrowed() -> impl Iterator<Item = Reg> {
    hotswap_hazards::SCRATCH_BASE_SGPRS.into_iter().map(|index| Reg::new(RegFile::Sgpr, index, 1))
}

/// A kernel of a unit.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) function: u32,
    pub(crate) name: String,
    pub(crate) needs: KernelNeeds,
    /// Vector registers: what its metadata counts, and up to what that may be raised.
    pub(crate) granted: u16,
    pub(crate) ceiling: u16,
}

/// What a function may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    /// Below this vector registers are there.
    pub(crate) there: u16,
    /// From the first of these on, up to the second, they are if counts are raised.
    pub(crate) more: (u16, u16),
    /// Numbers, in the unit's list, of the kernels that get to it.
    pub(crate) kernels: Vec<usize>,
    /// Registers from here on are there only if the kernels that call what is not known are its callers.
    pub(crate) by_pointer: Option<u16>,
}

/// The kernels of a unit, by function.
pub(crate) fn kernels(unit: &Unit<'_>, processor: &Processor) -> Vec<Kernel> {
    let functions = unit.program.functions.iter().enumerate();
    let kernel = |number: usize| {
        let needs = unit.program.kernel_needs(number)?;
        let granted = needs.vgprs.map_or(0, |count| u16::try_from(count).unwrap_or(u16::MAX));
        let name = unit.program.name(&unit.program.functions[number]);
        Some(Kernel { function: number as u32, name, needs, granted, ceiling: ceiling(processor, &needs, granted) })
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
            // What the metadata says does not hold anyway: it must not get worse.
            false => after.waves_per_simd >= before.waves_per_simd,
        })
    };
    // With more registers never more waves fit, so the highest count is found by halves.
    let (mut ceiling, mut beyond) = (granted, limits.addressable.saturating_add(1));
    while beyond.saturating_sub(ceiling) > 1 {
        let middle = ceiling.midpoint(beyond);
        *(if fits(middle) { &mut ceiling } else { &mut beyond }) = middle;
    }
    ceiling
}

/// What each function may use.
pub(crate) fn room(unit: &Unit<'_>, kernels: &[Kernel], function: usize) -> Room {
    let (reached_from, open) = reached_from(unit, function);
    // Kernels stand in the order of their functions.
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

/// Numbers of the kernels that get to a function, rising, and whether other code may as well.
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

/// Whether a function leaves to the address in s[30:31] alone.
fn returns_as_usual(function: &Function) -> bool {
    let usual = |block: hotswap_program::Block| match block.exit {
        Exit::Return => block.returns_to() == Some(LINK),
        Exit::Unknown | Exit::Tail => false,
        _ => true,
    };
    function.is_closed() && function.blocks().all(usual)
}

/// The kernels that get to a call of what is not known; nothing if such a call, or what is kept over it, is otherwise than LLVM
/// makes them, if a jump may lead anywhere, if there are none, or if other files are still to be linked.
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

/// Whether a function keeps something over one of the calls in a vector register that LLVM's callees may change: then it
/// knows more of its callees than their convention.
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

/// For each function whether code that is not known may call it, or one that calls it.
pub(crate) fn open(unit: &Unit<'_>) -> Vec<bool> {
    let mut open = vec![false; unit.program.functions.len()];
    // Callers stand behind their callees.
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
