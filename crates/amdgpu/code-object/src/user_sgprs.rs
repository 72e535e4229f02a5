//! User SGPRs that waves of 32 lanes must have on processors with LLVM's `user-sgpr-init16-bug` (gfx1100, gfx1102):
//! fewer than 16 registers are initialised wrongly there.
//!
//! Clang pads the user SGPRs with unused ones until they and the system SGPRs are 16, and writes that count. System
//! SGPRs (work-group IDs and work-group information) follow the user SGPRs, so they move when user SGPRs are added. The
//! pair's checks show that the code reads none of them (`user-sgprs-16`), before this is done.
//!
//! Absent on purpose: scratch. From GFX11 on its base is not an SGPR requested by the descriptor.

use crate::descriptor::DescriptorLocation;
use crate::kernel_descriptor::{self, KernelDescriptor};
use crate::object_file::CodeObject;
use hotswap_targets::{Capability, Processor, find_processor};

/// Number of registers that are initialised correctly.
const ENOUGH: u64 = 16;
/// COMPUTE_PGM_RSRC2 in the descriptor.
const RESOURCES2: std::ops::Range<usize> = 52..56;

/// Positions in the file of COMPUTE_PGM_RSRC2 of kernels that need more user SGPRs on `target`, and its new value.
pub(crate) fn raised_rsrc2_words(object: &CodeObject<'_>, target: &Processor) -> Vec<(usize, u32)> {
    let source = object.target_id().processor;
    // Code for a processor that has the bug itself was compiled with the workaround.
    if has_bug(source) || !has_bug(target) {
        return Vec::new();
    }
    let place = |descriptor: &DescriptorLocation| {
        let mut bytes = object.bytes().get(descriptor.range.clone())?.to_vec();
        let mut kernel = KernelDescriptor::new(&mut bytes[..], source).filter(|kernel| kernel.wave_size() == 32)?;
        let system = system_sgprs(&kernel);
        kernel.get(kernel_descriptor::USER_SGPRS).filter(|user| user + system < ENOUGH)?;
        kernel.set_field(kernel_descriptor::USER_SGPRS, ENOUGH - system)?;
        let word = bytes[RESOURCES2].try_into().map(u32::from_le_bytes).ok()?;
        Some((descriptor.range.start + RESOURCES2.start, word))
    };
    object.descriptors().iter().filter_map(place).collect()
}

/// Whether code for the processor runs where user SGPRs are initialised wrongly.
fn has_bug(processor: &Processor) -> bool {
    let covered = processor.covers.iter().filter_map(|name| find_processor(name));
    std::iter::once(processor).chain(covered).any(|processor| processor.has(Capability::UserSgprInit16Bug))
}

/// The number of enabled work-group IDs and work-group information.
fn system_sgprs(descriptor: &KernelDescriptor<&mut [u8]>) -> u64 {
    use kernel_descriptor::{WORKGROUP_ID_X, WORKGROUP_ID_Y, WORKGROUP_ID_Z, WORKGROUP_INFO};
    let enabled = [WORKGROUP_ID_X, WORKGROUP_ID_Y, WORKGROUP_ID_Z, WORKGROUP_INFO];
    enabled.iter().filter_map(|field| descriptor.get(field)).sum()
}
