//! Where a function may spill vector registers: private segments of the kernels that reach it.
//!
//! A slot is a dword at an absolute offset of the private segment, beyond what every kernel that reaches the function has of
//! it. `private_segment_fixed_size` counts the frames of a kernel and of all that it calls, so nothing of the input lies
//! there. No site calls, so all sites of a function share its slots.
//!
//! Invariants: all kernels that reach the function are known, all functions that these call are known and do not call
//! themselves, and none of the kernels has a dynamic stack; descriptor and metadata state the same size.

use super::budget::KernelBudget;
use hotswap_code_object::CodeObject;
use hotswap_code_object::kernel_descriptor::{DYNAMIC_STACK, ENABLE_SCRATCH, KernelDescriptor, SCRATCH};
use hotswap_families::code::SPILL_LIMIT;
use hotswap_program::{CallDestination, SectionProgram};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The alignment of the stack: slots begin and private segments end at a multiple of it.
pub(crate) const ALIGNMENT: u32 = 16;

/// Bytes of a slot.
pub(crate) const SLOT: u32 = 4;

/// Why nothing is spilled.
pub(crate) type SpillRefusal = Cow<'static, str>;

/// The private segment of a kernel: its bytes, or why slots beyond them cannot be used.
pub(crate) type PrivateSegment = Result<u32, &'static str>;

/// Private segments by the symbol of the kernel.
pub(crate) type PrivateSegments = BTreeMap<String, PrivateSegment>;

/// Reads the private segments of the kernels of a code object.
pub(crate) fn private_segments(object: &CodeObject<'_>) -> PrivateSegments {
    let kernels = object.note().kernels.iter().zip(object.descriptors());
    let segment =
        |(kernel, place): (&hotswap_code_object::KernelMetadata<'_>, &hotswap_code_object::DescriptorLocation)| {
            let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name).to_owned();
            let bytes = object.bytes().get(place.range.clone());
            let descriptor = bytes.and_then(|bytes| KernelDescriptor::new(bytes, object.target_id().processor));
            (
                name,
                descriptor
                    .map_or(Err("its descriptor cannot be read"), |descriptor| private_segment(kernel, &descriptor)),
            )
        };
    kernels.map(segment).collect()
}

fn private_segment(
    kernel: &hotswap_code_object::KernelMetadata<'_>,
    descriptor: &KernelDescriptor<&[u8]>,
) -> PrivateSegment {
    if kernel.uses_dynamic_stack == Some(true) || descriptor.get(DYNAMIC_STACK) != Some(0) {
        return Err("it has a dynamic stack");
    }
    let (size, enabled) = (descriptor.get(SCRATCH), descriptor.get(ENABLE_SCRATCH));
    match size.filter(|_| size == kernel.scratch).zip(enabled) {
        None => Err("descriptor and metadata state different private segments"),
        Some((1.., 0)) => Err("its descriptor states a private segment and does not enable it"),
        Some((size, _)) => u32::try_from(size).map_err(|_| "its private segment is too large"),
    }
}

/// The offset of the first slot of a function.
///
/// # Errors
/// Why it lacks one.
pub(crate) fn first_slot(
    unit: &SectionProgram<'_>,
    number: usize,
    reached_from: &[&KernelBudget],
) -> Result<u32, SpillRefusal> {
    if !unit.program.source.linked {
        return Err("the file is not linked".into());
    }
    if !unit.program.source.alone {
        return Err("the file has several sections of code".into());
    }
    if unit.is_open(number) {
        return Err("not all callers of the function are known".into());
    }
    if reached_from.is_empty() {
        return Err("no kernel is known that reaches the function".into());
    }
    let mut first = 0;
    for kernel in reached_from {
        let size = kernel.private_segment;
        let size = size.and_then(|size| has_known_stack(unit, kernel.function as usize).map(|()| size));
        let size = size.map_err(|why| SpillRefusal::from(format!("`{}`: {why}", kernel.name)))?;
        first = first.max(size.next_multiple_of(ALIGNMENT));
    }
    match first < SPILL_LIMIT {
        true => Ok(first),
        false => Err("the offset of a slot does not fit a scratch instruction".into()),
    }
}

/// Whether `private_segment_fixed_size` of a kernel counts all frames: all callees are known, and no function is entered
/// again before it returns.
fn has_known_stack(unit: &SectionProgram<'_>, kernel: usize) -> Result<(), &'static str> {
    let program = &unit.program;
    let groups = program.bottom_up().iter().filter(|group| group.len() > 1);
    let recursive: BTreeSet<u32> = groups.flatten().copied().collect();
    for number in program.reachable(kernel) {
        let Some(function) = program.functions.get(number as usize) else { continue };
        if !function.is_closed() {
            return Err("it reaches code whose control flow is not known");
        }
        for call in &function.calls {
            match call.callee {
                CallDestination::Function { function, .. } if function == number || recursive.contains(&function) => {
                    return Err("functions that it reaches call themselves, and the size of their stack is not known");
                }
                CallDestination::Function { .. } => {}
                _ => return Err("it reaches a call of what is not known, and the size of that stack is not known"),
            }
        }
    }
    Ok(())
}
