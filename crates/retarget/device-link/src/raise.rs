//! Descriptors and metadata with the numbers that kernels need.
//!
//! Invariants: fields are raised, never lowered. Every byte but those of the descriptors, of the metadata note and of the
//! rows that place it stays; the result is read again and checked.

use crate::budget::{KernelBudget, LinkReport};
use crate::granted::LaunchNumbers;
use hotswap_code_object::kernel_descriptor::{
    ACCUM_OFFSET, DYNAMIC_STACK, DYNAMIC_VGPRS_125, ENABLE_SCRATCH, KernelDescriptor, SCRATCH, SGPRS, VGPRS, WGP_MODE,
};
use hotswap_code_object::{CodeObject, KernelMetadata, KernelNumber, with_kernel_numbers};
use hotswap_program::{KernelNeeds, occupancy};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Capability, Processor, SgprFile};

/// VCC, which the metadata counts. Where scalar registers are allocated, the needs count it themselves.
const SPECIAL: u64 = 2;

/// The file with every short kernel raised to its needs.
///
/// # Errors
/// `NOT_RAISED` with the kernel, where its needs are beyond the processor, its work-group would not fit, or its code does not
/// set scratch up; as the readers and writers of code objects have them.
pub fn raise_kernels(linked: &[u8], report: &LinkReport) -> Result<Vec<u8>, Diagnostic> {
    let object = CodeObject::parse(linked)?;
    let processor = object.target_id().processor;
    let mut data = linked.to_vec();
    let mut numbers = Vec::new();
    for (kernel, place) in object.note().kernels.iter().zip(object.descriptors()) {
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
        let Some(budget) = report.short.iter().find(|budget| budget.kernel == name) else { continue };
        let bytes = data.get_mut(place.range.clone()).unwrap_or_default();
        let descriptor =
            KernelDescriptor::new(bytes, processor).ok_or_else(|| not_raised(budget, "it has no descriptor"))?;
        let needs = raise_descriptor(descriptor, processor, (kernel, budget))?;
        numbers.extend(changed_numbers(kernel, needs, processor));
        // Metadata before code object V5 does not state it.
        let states_stack = budget.lacks_dynamic_stack && kernel.uses_dynamic_stack.is_some();
        numbers.extend(states_stack.then_some(KernelNumber {
            symbol: kernel.symbol,
            key: ".uses_dynamic_stack",
            value: 1,
        }));
    }
    let made = with_kernel_numbers(&data, &numbers)?;
    verify_raised(&made, &numbers)?;
    Ok(made)
}

fn not_raised(budget: &KernelBudget, why: &str) -> Diagnostic {
    let KernelBudget { kernel, needs, forced_by, .. } = budget;
    let what = format!("kernel `{kernel}` needs {needs} because of `{forced_by}`, and {why}");
    Diagnostic::error(codes::NOT_RAISED, what)
}

/// Sets the fields of a descriptor; returns the numbers that the kernel has then.
fn raise_descriptor(
    mut descriptor: KernelDescriptor<&mut [u8]>,
    processor: &'static Processor,
    (kernel, budget): (&KernelMetadata<'_>, &KernelBudget),
) -> Result<LaunchNumbers, Diagnostic> {
    let needs = budget.needs;
    if needs.lds > budget.has.lds {
        return descriptor_refusal(
            "no linker lays the LDS of functions out: pass LDS to them by pointers, or link by LTO",
            budget,
        );
    }
    if descriptor.get(DYNAMIC_VGPRS_125) == Some(1) {
        return descriptor_refusal("it asks for vector registers while it runs", budget);
    }
    if !work_group_fits(&descriptor, processor, (kernel, needs)) {
        return descriptor_refusal(
            "a work-group of its largest size would not fit: compile it for a smaller one, or the function with fewer registers",
            budget,
        );
    }
    let vector = vector_blocks(&descriptor, processor, needs).ok_or_else(|| too_many_registers_error(budget))?;
    if let Some(first) = vector.first_agpr {
        descriptor.set_field(ACCUM_OFFSET, first).ok_or_else(|| too_many_registers_error(budget))?;
    }
    descriptor.set_field(VGPRS, vector.blocks).ok_or_else(|| too_many_registers_error(budget))?;
    if let (Some(file), Some(old)) = (&processor.limits.sgprs.shared, descriptor.get(SGPRS)) {
        descriptor
            .set_field(SGPRS, scalar_blocks(file, needs.sgprs).max(old))
            .ok_or_else(|| too_many_registers_error(budget))?;
    }
    if needs.scratch > 0 && needs.scratch > descriptor.get(SCRATCH).unwrap_or(0) {
        let is_architected = processor.capabilities.contains(Capability::ArchitectedFlatScratch);
        // Where the wave's offset comes in a register, the kernel's code was made with or without it.
        if descriptor.get(ENABLE_SCRATCH) != Some(1) && !is_architected && !budget.is_unfinished {
            return descriptor_refusal("its code does not set scratch up", budget);
        }
        descriptor.set_field(SCRATCH, needs.scratch).ok_or_else(|| too_many_registers_error(budget))?;
        descriptor.set_field(ENABLE_SCRATCH, 1).ok_or_else(|| too_many_registers_error(budget))?;
    }
    if budget.lacks_dynamic_stack {
        descriptor.set_field(DYNAMIC_STACK, 1).ok_or_else(|| too_many_registers_error(budget))?;
    }
    Ok(needs)
}

fn descriptor_refusal(why: &str, budget: &KernelBudget) -> Result<LaunchNumbers, Diagnostic> {
    Err(not_raised(budget, why))
}

fn too_many_registers_error(budget: &KernelBudget) -> Diagnostic {
    not_raised(budget, "the descriptor cannot state that")
}

/// Fields for vector registers.
struct VectorFields {
    blocks: u64,
    first_agpr: Option<u64>,
}

fn vector_blocks(
    descriptor: &KernelDescriptor<&mut [u8]>,
    processor: &Processor,
    needs: LaunchNumbers,
) -> Option<VectorFields> {
    let limits = processor.limits.vgprs(descriptor.wave_size())?;
    let old = descriptor.get(VGPRS)?;
    let Some(offset) = descriptor.get(ACCUM_OFFSET) else {
        let count =
            u32::try_from(needs.vgprs.max(needs.agprs)).ok().filter(|count| *count <= limits.allocatable.into())?;
        return Some(VectorFields { blocks: u64::from(limits.descriptor_blocks(count)?).max(old), first_agpr: None });
    };
    let first = needs.vgprs.next_multiple_of(4).max((offset + 1) * 4);
    let count = u32::try_from(first + needs.agprs).ok().filter(|count| *count <= limits.allocatable.into())?;
    let fits = needs.vgprs <= limits.addressable.into() && needs.agprs <= limits.addressable.into();
    let blocks = u64::from(limits.descriptor_blocks(count)?).max(old);
    fits.then_some(VectorFields { blocks, first_agpr: Some(first / 4 - 1) })
}

/// The descriptor counts in its granule, rounded up to what the hardware allocates.
fn scalar_blocks(file: &SgprFile, count: u64) -> u64 {
    let count = count.max(1).next_multiple_of(u64::from(file.granule));
    count / u64::from(file.descriptor_granule) - 1
}

fn work_group_fits(
    descriptor: &KernelDescriptor<&mut [u8]>,
    processor: &Processor,
    (kernel, needs): (&KernelMetadata<'_>, LaunchNumbers),
) -> bool {
    let stated = KernelNeeds {
        lanes: descriptor.wave_size() as u8,
        vgprs: checked_u32_number(needs.vgprs),
        agprs: checked_u32_number(needs.agprs),
        sgprs: checked_u32_number(needs.sgprs),
        lds: kernel.lds.and_then(checked_u32_number).unwrap_or(0),
        workgroup: kernel.max_flat_workgroup_size.and_then(checked_u32_number),
        // Metadata before code object V5 does not state it.
        wgp: descriptor.get(WGP_MODE) == Some(1),
        ..KernelNeeds::default()
    };
    occupancy(processor, &stated).is_some_and(|found| found.workgroup_fits)
}

fn checked_u32_number(value: u64) -> Option<u32> {
    u32::try_from(value).ok()
}

/// The numbers of the metadata that grow.
fn changed_numbers<'a>(
    kernel: &KernelMetadata<'a>,
    needs: LaunchNumbers,
    processor: &Processor,
) -> Vec<KernelNumber<'a>> {
    let is_unified = processor.capabilities.contains(Capability::UnifiedRegisterFile);
    let vgprs = if is_unified && needs.agprs > 0 { needs.vgprs.next_multiple_of(4) + needs.agprs } else { needs.vgprs };
    let is_named = processor.limits.sgprs.shared.is_none() && kernel.sgpr_count < Some(needs.sgprs);
    let sgprs = if is_named { needs.sgprs + SPECIAL } else { needs.sgprs };
    let all = [
        (".vgpr_count", kernel.vgpr_count, vgprs),
        (".agpr_count", kernel.agpr_count, needs.agprs),
        (".sgpr_count", kernel.sgpr_count, sgprs),
        (".private_segment_fixed_size", kernel.scratch, needs.scratch),
    ];
    let grows = all.into_iter().filter(|(_, old, new)| old.is_some_and(|old| old < *new));
    grows.map(|(key, _, value)| KernelNumber { symbol: kernel.symbol, key, value }).collect()
}

/// The file is read again: it agrees with itself, and has the numbers.
fn verify_raised(made: &[u8], numbers: &[KernelNumber<'_>]) -> Result<(), Diagnostic> {
    let object = CodeObject::parse(made).map_err(|error| raised_verify_failure(error.to_string()))?;
    object.check_descriptors().map_err(|error| raised_verify_failure(error.to_string()))?;
    for number in numbers {
        let kernel = object.note().kernels.iter().find(|kernel| kernel.symbol == number.symbol);
        let found = kernel.and_then(|kernel| match number.key {
            ".vgpr_count" => kernel.vgpr_count,
            ".agpr_count" => kernel.agpr_count,
            ".sgpr_count" => kernel.sgpr_count,
            ".uses_dynamic_stack" => kernel.uses_dynamic_stack.map(u64::from),
            _ => kernel.scratch,
        });
        if found != Some(number.value) {
            return Err(raised_verify_failure(format!(
                "{} of `{}` is {found:?}, not {}",
                number.key, number.symbol, number.value
            )));
        }
    }
    Ok(())
}

fn raised_verify_failure(what: String) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what)
}
