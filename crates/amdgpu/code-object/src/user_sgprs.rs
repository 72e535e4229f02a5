//! User SGPRs that waves of 32 lanes must have on processors with LLVM's `user-sgpr-init16-bug` (gfx1100, gfx1102):
//! fewer than 16 registers are initialised wrongly there.
//!
//! Clang pads the user SGPRs with unused ones until they and the system SGPRs are 16, and writes that count. System
//! SGPRs (work-group IDs and work-group information) follow the user SGPRs, so they move when user SGPRs are added. Where
//! the code reads one of them, new code at the kernel's entry copies them to where it does (`hotswap-adapt`); elsewhere the
//! pair's checks show that it reads none (`user-sgprs-16`), before this is done.
//!
//! Absent on purpose: scratch. From GFX11 on its base is not an SGPR requested by the descriptor.

use crate::descriptor::DescriptorLocation;
use crate::kernel_descriptor::{self, KernelDescriptor};
use crate::metadata::KernelMetadata;
use crate::object_file::CodeObject;
use crate::patch::NewWord;
use hotswap_targets::{Capability, Processor, find_processor};
use std::ops::Range;

/// Number of registers that are initialised correctly.
const ENOUGH: u64 = 16;
/// COMPUTE_PGM_RSRC2 in the descriptor.
const RESOURCES2: Range<usize> = 52..56;

/// A kernel whose system SGPRs lie in higher registers once the user SGPRs are raised for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemSgprShift {
    /// Symbol of the kernel's code.
    pub kernel: String,
    /// Bytes of its descriptor in the file.
    pub descriptor: Range<usize>,
    /// Address of its first instruction.
    pub entry: u64,
    /// User SGPRs: as compiled, and as the target needs them.
    pub user: u16,
    pub raised: u16,
    /// The number of system SGPRs.
    pub system: u16,
}

impl SystemSgprShift {
    /// The registers as the code reads them, each with the one in which the raised count puts its value, in the order
    /// in which they can be moved: none is overwritten before it is read.
    pub fn register_pairs(&self) -> impl Iterator<Item = SgprMove> + use<> {
        let (from, to) = (self.user, self.raised);
        (0..self.system).map(move |number| SgprMove { from: to + number, to: from + number })
    }
}

/// A value that is copied from one SGPR to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SgprMove {
    pub from: u16,
    pub to: u16,
}

/// The kernels that need more user SGPRs on `target`.
pub fn system_sgpr_shifts(object: &CodeObject<'_>, target: &Processor) -> Vec<SystemSgprShift> {
    let source = object.target_id().processor;
    // Code for a processor that has the bug itself was compiled with the workaround.
    if has_bug(source) || !has_bug(target) {
        return Vec::new();
    }
    let kernels = object.note().kernels.iter().zip(object.descriptors());
    kernels.filter_map(|(kernel, location)| kernel_shift(object, kernel, location)).collect()
}

fn kernel_shift(
    object: &CodeObject<'_>,
    kernel: &KernelMetadata<'_>,
    location: &DescriptorLocation,
) -> Option<SystemSgprShift> {
    let mut bytes = object.bytes().get(location.range.clone())?.to_vec();
    let descriptor = KernelDescriptor::new(&mut bytes[..], object.target_id().processor)?;
    let system = system_sgprs(&descriptor);
    let user = descriptor.get(kernel_descriptor::USER_SGPRS)?;
    (descriptor.wave_size() == 32 && user + system < ENOUGH).then(|| SystemSgprShift {
        kernel: kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name).to_owned(),
        descriptor: location.range.clone(),
        entry: location.entry,
        user: user as u16,
        raised: (ENOUGH - system) as u16,
        system: system as u16,
    })
}

/// COMPUTE_PGM_RSRC2 of the kernels that need more user SGPRs on `target`.
pub(crate) fn raised_rsrc2_words(object: &CodeObject<'_>, target: &Processor) -> Vec<NewWord> {
    let raised = system_sgpr_shifts(object, target).into_iter().filter_map(|shift| {
        let mut bytes = object.bytes().get(shift.descriptor.clone())?.to_vec();
        let mut kernel = KernelDescriptor::new(&mut bytes[..], object.target_id().processor)?;
        kernel.set_field(kernel_descriptor::USER_SGPRS, u64::from(shift.raised))?;
        let word = bytes[RESOURCES2].try_into().map(u32::from_le_bytes).ok()?;
        Some(NewWord { at: shift.descriptor.start + RESOURCES2.start, value: word })
    });
    raised.collect()
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
