//! The numbers that a kernel is launched with: registers are granted in the granules of generation and wave size, which the descriptor
//! counts in.
//!
//! Source: `GRANULATED_WORKITEM_VGPR_COUNT`, `GRANULATED_WAVEFRONT_SGPR_COUNT` and `ACCUM_OFFSET` of LLVM's AMDGPU usage guide; the
//! numbers are in `hotswap_targets::Limits`, which a test compares with compilers.
//!
//! Invariants: a grant is never larger than what the descriptor states. Memory (scratch, LDS) is granted as it is declared: what
//! follows it in the hardware's granule may belong to dynamic LDS, or to another wave.
//!
//! Absent on purpose: the larger granules in which some generations allocate vector registers; the guide promises none of that.

use hotswap_code_object::kernel_descriptor::{ACCUM_OFFSET, KernelDescriptor, SGPRS};
use hotswap_device_symbols::instructions;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::{Flag, Inst, Isa};
use hotswap_targets::{Capability, SgprFile, Support, TargetId};
use std::fmt;

/// Registers and scratch of a work-item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchNumbers {
    /// Vector registers, accumulation registers not counted.
    pub vgprs: u64,
    /// Number of accumulation registers.
    pub agprs: u64,
    /// Number of scalar registers.
    pub sgprs: u64,
    /// Size of scratch, in bytes.
    pub scratch: u64,
    /// Bytes of LDS of a work-group.
    pub lds: u64,
}

impl LaunchNumbers {
    pub(crate) fn registers(&self) -> String {
        let Self { vgprs, agprs, sgprs, .. } = self;
        format!("{vgprs} VGPRs, {agprs} AGPRs and {sgprs} SGPRs")
    }
}

impl fmt::Display for LaunchNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vgprs, agprs, sgprs, scratch, lds } = self;
        match lds {
            0 => write!(f, "{vgprs} VGPRs, {agprs} AGPRs, {sgprs} SGPRs and {scratch} bytes of scratch"),
            _ => write!(f, "{vgprs} VGPRs, {agprs} AGPRs, {sgprs} SGPRs, {scratch} bytes of scratch and {lds} of LDS"),
        }
    }
}

/// The numbers that a kernel with this descriptor gets, where it declares `declared`.
pub(crate) fn granted_numbers(
    descriptor: &KernelDescriptor<&[u8]>,
    target: TargetId,
    declared: LaunchNumbers,
) -> LaunchNumbers {
    let limits = &target.processor.limits;
    let total = descriptor.vector_registers().map_or(declared.vgprs + declared.agprs, u64::from);
    let has_agprs = target.processor.capabilities.contains(Capability::AccumulationRegisters);
    let (vgprs, agprs) = match descriptor.get(ACCUM_OFFSET) {
        Some(offset) => {
            let first = (offset + 1) * 4;
            (first.min(total), total.saturating_sub(first))
        }
        // Two files of the same size.
        None if has_agprs => (total, total),
        None => (total, 0),
    };
    let sgprs = match (&limits.sgprs.shared, descriptor.get(SGPRS)) {
        (Some(file), Some(blocks)) => described_sgprs(file, blocks),
        // Every wave has all of them, and VCC, which the declared number counts.
        _ => u64::from(limits.sgprs.addressable).max(declared.sgprs),
    };
    LaunchNumbers { vgprs, agprs, sgprs, ..declared }
}

/// The descriptor counts in steps of its own, and the hardware rounds up.
fn described_sgprs(file: &SgprFile, blocks: u64) -> u64 {
    ((blocks + 1) * u64::from(file.descriptor_granule)).next_multiple_of(u64::from(file.granule))
}

/// Special scalar registers at the end of a wave's own, where they are allocated: those that every kernel of the target has.
pub(crate) fn special_sgprs_of_target(target: TargetId) -> u64 {
    let processor = target.processor;
    match (processor.limits.sgprs.shared.is_some(), processor.capabilities.contains(Capability::ArchitectedFlatScratch))
    {
        (false, _) => 0,
        (true, true) => FLAT_SCRATCH,
        (true, false) if processor.xnack != Support::No && target.xnack != Some(false) => XNACK_MASK,
        (true, false) => 0,
    }
}

/// Registers from the start of the special ones to the end of VCC, as LLVM counts them.
const VCC: u64 = 2;
const XNACK_MASK: u64 = 4;
const FLAT_SCRATCH: u64 = 6;

/// Special scalar registers that code names.
pub(crate) fn special_sgprs_of_code(bytes: &[u8], isa: Isa) -> u64 {
    instructions(bytes, isa).map(|inst| special_sgprs_of_instruction(&inst, isa)).max().unwrap_or(0)
}

/// Memory instructions with generic addresses read the base of scratch, too, but where the kernel does not set it up they never use it:
/// LLVM does not count them.
fn special_sgprs_of_instruction(inst: &Inst, isa: Isa) -> u64 {
    let mut named = inst.read_set(isa, VgprBanks::ENTRY);
    named.union_with(&inst.written_set(isa, VgprBanks::ENTRY));
    let kinds = [(FLAT_SCRATCH, Special::FlatScratchLo), (XNACK_MASK, Special::XnackMaskLo), (VCC, Special::VccLo)];
    let first = if inst.is(Flag::Salu) || inst.is(Flag::Valu) { 0 } else { 1 };
    kinds[first..].iter().find(|(_, low)| named.touches(Reg::special(*low, 2))).map_or(0, |(count, _)| *count)
}
