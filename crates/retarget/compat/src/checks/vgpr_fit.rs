//! Whether the target can run every workgroup that a kernel allows and that the source can run.
//!
//! A workgroup's waves share the SIMDs of a compute unit (two units in WGP mode), and each wave takes its vector
//! registers, rounded up to the target's granule: 137 registers and 1024 work-items in waves of 32 need 8 × 144 of
//! `gfx1100`'s 1536 registers and 8 × 144 of `gfx1102`'s 1024, which is too much. A launch that requests more than
//! available fails; a kernel whose largest workgroup did not fit the source either does not fare worse.
//!
//! The descriptor counts, because the hardware uses it. The metadata may state more, never less.

use super::{KernelFacts, ProcessorPair};
use hotswap_targets::{Capability, Processor};

/// COMPUTE_PGM_RSRC1, bit 29, from GFX10 on.
const WGP_MODE: u32 = 1 << 29;

pub(super) fn judge_vgprs(pair: &ProcessorPair, kernel: &KernelFacts<'_>) -> Option<String> {
    let source = pair.source.processor;
    let (count, largest) = (wave_vgprs(source, kernel), largest_workgroup(source, kernel));
    let small = pair.running_processors().find(|target| {
        let [before, after] = [source, *target].map(|processor| {
            let held = processor.limits.waves_with_vgprs(kernel.lanes, count);
            held.min(waves_per_simd(processor, kernel, largest))
        });
        after < before
    })?;
    let (wanted, total) =
        (waves_per_simd(small, kernel, largest), small.limits.vgprs(kernel.lanes).map_or(0, |v| v.total));
    Some(format!(
        "workgroups of {largest} put {wanted} waves with {count} VGPRs each on a SIMD, which has {total} on {small}"
    ))
}

/// Registers of a wave.
fn wave_vgprs(source: &Processor, kernel: &KernelFacts<'_>) -> u32 {
    let blocks = (kernel.resources1() & 0x3f) as u8;
    let described = source.limits.vgprs(kernel.lanes).map_or(0, |vgprs| vgprs.described_count(blocks));
    let stated = u32::try_from(kernel.metadata.vgpr_count.unwrap_or(0)).unwrap_or(u32::MAX);
    described.max(stated)
}

/// Work-items of the largest workgroup.
fn largest_workgroup(source: &Processor, kernel: &KernelFacts<'_>) -> u64 {
    kernel.metadata.max_flat_workgroup_size.unwrap_or(u64::from(source.limits.workgroup)).max(1)
}

/// Waves of the largest workgroup that share a SIMD.
fn waves_per_simd(processor: &Processor, kernel: &KernelFacts<'_>, largest: u64) -> u32 {
    let both = processor.has(Capability::WgpMode) && kernel.resources1() & WGP_MODE != 0;
    let simds = u64::from(processor.limits.simds_per_cu) * if both { 2 } else { 1 };
    let waves = largest.div_ceil(kernel.lanes.max(1)).div_ceil(simds.max(1));
    u32::try_from(waves).unwrap_or(u32::MAX)
}
