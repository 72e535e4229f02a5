//! How many vector registers a function may use.
//!
//! Terms: a kernel's *grant* is the count in its metadata. Its *ceiling* is the highest count with which a work-group
//! of its largest size still fits. The lowest registers are taken first, so waves are lost only if no other register is
//! left.
//!
//! Invariants: registers below the least grant of all kernels that reach a function are available to it. Those between
//! the highest grant and the least ceiling become available if the kernels' counts are raised, and hold no value in any
//! of them.
//!
//! Which kernels reach a function is known from the program ([`SectionProgram::reached_from`]). Where other code may reach
//! it as well, only registers that it names itself are certain to be available.

use super::spill::{PrivateSegment, PrivateSegments};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{KernelNeeds, Occupancy, SectionProgram, occupancy};
use hotswap_targets::Processor;
use rayon::prelude::*;

/// Scalar registers that instructions can name, VCC and other special ones left out.
pub(crate) const SGPRS: u16 = 106;

/// Scalar registers that new code never writes: scalar instructions that read the scratch base soon after would need a
/// wait, wherever they are (rows `scratch-base-lo` and `scratch-base-hi` of `hotswap-hazards`).
pub(crate) fn never_borrowed() -> impl Iterator<Item = Reg> {
    hotswap_hazards::SCRATCH_BASE_SGPRS.into_iter().map(|index| Reg::new(RegFile::Sgpr, index, 1))
}

/// A kernel of a unit.
#[derive(Debug, Clone)]
pub(crate) struct KernelBudget {
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
pub(crate) struct VgprBudget {
    /// Vector registers below this number are available.
    pub(crate) allocated: u16,
    /// Registers from the first of these up to the second become available if counts are raised.
    pub(crate) growable: (u16, u16),
    /// Indices, in the unit's list, of the kernels that reach the function.
    pub(crate) kernels: Vec<usize>,
    /// Registers from this one on are available only if its callers are the kernels that call unknown targets.
    pub(crate) by_pointer: Option<u16>,
}

/// The kernels of a unit, by function.
pub(crate) fn kernel_budgets(
    unit: &SectionProgram<'_>,
    processor: &Processor,
    segments: &PrivateSegments,
) -> Vec<KernelBudget> {
    let functions = unit.program.functions.iter().enumerate();
    let numbers: Vec<usize> =
        functions.filter(|(_, function)| function.is_kernel()).map(|(number, _)| number).collect();
    numbers.into_par_iter().filter_map(|one| make_kernel_budget(one, unit, processor, segments)).collect()
}

fn make_kernel_budget(
    number: usize,
    unit: &SectionProgram<'_>,
    processor: &Processor,
    segments: &std::collections::BTreeMap<String, Result<u32, &'static str>>,
) -> Option<KernelBudget> {
    let needs = unit.program.kernel_needs(number)?;
    let granted = needs.vgprs.map_or(0, |count| u16::try_from(count).unwrap_or(u16::MAX));
    let name = unit.program.name(&unit.program.functions[number]);
    let (function, ceiling) = (number as u32, vgpr_ceiling(processor, &needs, granted));
    let private_segment = segments.get(&name).copied().unwrap_or(Err("nothing states its private segment"));
    Some(KernelBudget { function, name, needs, granted, ceiling, private_segment })
}

fn vgpr_ceiling(processor: &Processor, needs: &KernelNeeds, granted: u16) -> u16 {
    let Some(before) = needs.vgprs.and_then(|_| occupancy(processor, needs)) else { return granted };
    let Some(limits) = processor.limits.vgprs(u64::from(needs.lanes)) else { return granted };
    // More registers never allow more waves, so the highest count is found by bisection.
    let (mut ceiling, mut beyond) = (granted, limits.addressable.saturating_add(1));
    while beyond.saturating_sub(ceiling) > 1 {
        let middle = ceiling.midpoint(beyond);
        let more = KernelNeeds { vgprs: Some(u32::from(middle)), ..*needs };
        let fits = occupancy(processor, &more).is_some_and(|after| is_as_good(&before, &after));
        *(if fits { &mut ceiling } else { &mut beyond }) = middle;
    }
    ceiling
}

fn is_as_good(before: &Occupancy, after: &Occupancy) -> bool {
    match before.workgroup_fits {
        true => after.workgroup_fits,
        // The metadata is not met anyway: it must not get worse.
        false => after.waves_per_simd >= before.waves_per_simd,
    }
}

impl VgprBudget {
    /// The registers that a function may use.
    pub(crate) fn for_function(unit: &SectionProgram<'_>, kernels: &[KernelBudget], function: usize) -> Self {
        let (reached_from, open) = unit.reached_from(function);
        // Kernels are in the order of their functions.
        let numbers = reached_from.iter().map(|from| kernels.binary_search_by_key(from, |kernel| kernel.function));
        let known: Vec<usize> = numbers.filter_map(Result::ok).collect();
        let granted = known.iter().map(|number| kernels[*number].granted);
        let allocated = match (open, granted.clone().min()) {
            (false, Some(least)) => least,
            (true, Some(least)) => least.min(unit.highest_vgpr(function)),
            (_, None) => unit.highest_vgpr(function),
        };
        let growable = match open || known.is_empty() {
            true => (allocated, allocated),
            false => {
                let ceiling = known.iter().map(|number| kernels[*number].ceiling).min().unwrap_or(allocated);
                (granted.max().unwrap_or(allocated), ceiling)
            }
        };
        let by_pointer = (unit.is_open(function) && !open).then(|| unit.highest_vgpr(function));
        Self { allocated, growable, kernels: known, by_pointer }
    }
}
