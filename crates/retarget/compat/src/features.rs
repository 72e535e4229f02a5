//! The feature differences between members of a family according to LLVM, and the consequence of each for code of one
//! member on the other.
//!
//! Source: the transitive closure of the features of every processor in LLVM 23's tables; features that all members of
//! a family have are left out. `tests/soundness.rs` compares those rows that are about instructions with the predicates
//! of `hotswap-isa`, and every row of the matrix with the consequences listed here. The two were written independently
//! of each other, and must agree.
//!
//! Absent on purpose: families without pairs, and features that change the compiler's choices only (rates, formats of
//! assembly, the code object version of generic targets).

use crate::Check;
use hotswap_targets::IsaFamily::{Rdna1, Rdna3, Rdna35, Vega};
use hotswap_targets::Selection::{Family, Group, Named};
use hotswap_targets::{Processor, Support, Vgprs, find_processor, processors};
use std::collections::BTreeSet;

/// The consequence of a feature for a pair of which one member has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// The source may use instructions that the target lacks or decodes differently.
    Instructions,
    /// The target needs something that the source's compiler does not do; this check determines whether it matters.
    Hazard(Check),
    /// As [`Consequence::Hazard`], but no check exists.
    Workaround,
    /// Kernels start or address registers differently: no pair across this line.
    Setup,
}

/// A feature of LLVM that not all members of a family have.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    pub names: &'static [&'static str],
    /// The processors with the feature.
    pub processors: &'static [&'static str],
    pub consequence: Consequence,
    /// A hazard of instructions that only processors with this feature have.
    pub within: Option<&'static str>,
    pub what: &'static str,
}

const fn instructions(
    names: &'static [&'static str],
    processors: &'static [&'static str],
    what: &'static str,
) -> Feature {
    Feature { names, processors, consequence: Consequence::Instructions, within: None, what }
}

const fn hazard(
    names: &'static [&'static str],
    processors: &'static [&'static str],
    check: Check,
    what: &'static str,
) -> Feature {
    Feature { names, processors, consequence: Consequence::Hazard(check), within: None, what }
}

const fn workaround(
    names: &'static [&'static str],
    processors: &'static [&'static str],
    what: &'static str,
) -> Feature {
    Feature { names, processors, consequence: Consequence::Workaround, within: None, what }
}

const fn setup(names: &'static [&'static str], processors: &'static [&'static str], what: &'static str) -> Feature {
    Feature { names, processors, consequence: Consequence::Setup, within: None, what }
}

/// The hazard concerns code with instructions of that other feature only.
const fn within(feature: Feature, name: &'static str) -> Feature {
    Feature { within: Some(name), ..feature }
}

const RDNA1: &[&str] = processors![Family(Rdna1), Named("gfx10-1-generic")];
const RDNA2: &[&str] = processors![Group("gfx1030"), Named("gfx10-3-generic")];
const DOTS_GFX10: &[&str] = processors![Group("gfx1011"), Group("gfx1030"), Named("gfx10-3-generic")];
const BVH: &[&str] = processors![Named("gfx1013"), Group("gfx1030"), Named("gfx10-3-generic")];
const GFX110: &[&str] = processors![Family(Rdna3), Named("gfx11-generic")];
const GFX115: &[&str] = processors![Family(Rdna35)];

/// Every difference within the families of [`crate::matrix`].
#[rustfmt::skip]
pub static FEATURES: &[Feature] = &[
    // GFX9
    instructions(&["mad-mix-insts"], processors![Group("gfx900")], "v_mad_mix_f32, v_mad_mixlo_f16 and v_mad_mixhi_f16, with the encodings of v_fma_mix_*"),
    instructions(&["fma-mix-insts"], &["gfx904", "gfx906", "gfx908", "gfx90a"], "v_fma_mix_f32, v_fma_mixlo_f16 and v_fma_mixhi_f16, with the encodings of v_mad_mix_*"),
    instructions(&["dl-insts"], &["gfx906", "gfx908", "gfx90a"], "v_fmac_f32 and v_xnor_b32"),
    instructions(&["dot1-insts", "dot2-insts", "dot7-insts", "dot10-insts"], &["gfx906", "gfx908", "gfx90a"], "v_dot2_*, v_dot4_* and v_dot8_*"),
    instructions(&["dot3-insts", "dot4-insts", "dot5-insts", "dot6-insts", "pk-fmac-f16-inst"], &["gfx908", "gfx90a"], "v_dot2c_*, v_dot4c_*, v_dot8c_* and v_pk_fmac_f16"),
    instructions(&["mai-insts"], &["gfx908", "gfx90a"], "matrix instructions (MFMA) and accumulation registers"),
    instructions(&["atomic-fadd-no-rtn-insts"], &["gfx908", "gfx90a"], "buffer and global atomic addition of f32"),
    instructions(&["atomic-buffer-global-pk-add-f16-no-rtn-insts"], &["gfx908"], "buffer and global atomic addition of packed f16"),
    hazard(&["sramecc-support"], &["gfx906", "gfx908", "gfx90a"], Check::D16Loads, "SRAMECC, with which 16-bit (D16) loads do not preserve the other half of their register"),
    hazard(&["image-gather4-d16-bug"], processors![Family(Vega), Named("gfx908"), Named("gfx9-generic")], Check::ImageSampling, "image_gather4 with 16-bit results is broken"),
    within(workaround(&["mfma-inline-literal-bug"], &["gfx908"], "MFMA cannot take an inline constant as its third source"), "mai-insts"),
    setup(&["gfx90a-insts", "packed-tid", "vgpr-align2", "kernarg-preload"], &["gfx90a"], "even-aligned register tuples, packed work-item IDs, another kernel descriptor; v_mul_legacy_f32 decodes as v_fmac_f64"),
    // GFX9.4
    instructions(&["fp8-conversion-insts", "fp8-insts"], &["gfx942", "gfx950"], "conversions and matrix instructions of FP8 and BF8"),
    instructions(&["xf32-insts"], &["gfx942"], "matrix instructions of XF32"),
    instructions(&["ashr-pk-insts", "bf16-cvt-insts", "bf8-cvt-scale-insts", "bitop3-insts", "cvt-pk-f16-f32-inst", "dot12-insts", "dot13-insts", "f16bf16-to-fp6bf6-cvt-scale-insts", "f32-to-f16bf16-cvt-sr-insts", "fp4-cvt-scale-insts", "fp6bf6-cvt-scale-insts", "fp8-cvt-scale-insts", "gfx950-insts", "minimum3-maximum3-f32", "minimum3-maximum3-pkf16", "permlane16-swap", "permlane32-swap", "prng-inst", "atomic-buffer-pk-add-bf16-inst"], &["gfx950"], "v_bitop3_*, scaled conversions, larger MFMA, v_permlane*_swap_b32 and more"),
    hazard(&["gfx950-insts"], &["gfx950"], Check::MatrixWaits, "MFMA results need one wait more, those of f64 up to eight"),
    within(hazard(&["cvt-fp8-vop1-bug"], &["gfx942"], Check::Hazards, "the short form of conversions from FP8 is unreliable"), "fp8-conversion-insts"),
    // GFX10
    instructions(&["dot1-insts", "dot2-insts", "dot5-insts", "dot6-insts", "dot7-insts", "dot10-insts"], DOTS_GFX10, "v_dot2_*, v_dot4_*, v_dot8_*, v_dot2c_* and v_dot4c_*"),
    instructions(&["gfx10_a-encoding"], BVH, "ray tracing (image_bvh_intersect_ray) and image_msaa_load"),
    instructions(&["ds-src2-insts", "mad-mac-f32-insts", "scalar-atomics", "scalar-flat-scratch-insts", "scalar-stores"], RDNA1, "v_mac_f32, v_mad_f32, v_madmk_f32, v_madak_f32, ds_*_src2, scalar stores and atomics; v_mac_legacy_f32 decodes as v_fmac_legacy_f32"),
    instructions(&["gfx10-3-insts", "gfx10_b-encoding", "shader-cycles-register"], RDNA2, "global_*_addtid, s_gl1_inv, other scratch encodings"),
    workaround(&["lds-branch-vmem-war-hazard", "lds-misaligned-bug", "nsa-clause-bug", "nsa-to-vmem-bug", "offset-3f-bug", "flat-segment-offset-bug", "inst-fwd-prefetch-bug", "negative-unaligned-scratch-offset-bug", "smem-to-vector-write-hazard", "vcmpx-exec-war-hazard", "vcmpx-permlane-hazard", "vmem-to-scalar-write-hazard"], RDNA1, "twelve bugs and hazards of RDNA 1"),
    // GFX11
    instructions(&["salu-float", "dpp-src1-sgpr"], GFX115, "scalar floating-point instructions, and scalar second operands of DPP"),
    hazard(&["required-export-priority"], processors![Family(Rdna35), Named("gfx11-generic")], Check::Exports, "exports need s_setprio around them"),
    hazard(&["point-sample-accel"], &["gfx1150", "gfx1151", "gfx1152"], Check::ImageSampling, "point sampling is accelerated, returns out of order and needs waits"),
    hazard(&["user-sgpr-init16-bug"], &["gfx1100", "gfx1102", "gfx11-generic"], Check::UserSgprs16, "in wave32 at least 16 scalar registers must be set up"),
    hazard(&["mad-intra-fwd-bug", "valu-trans-use-hazard", "msaa-load-dst-sel-bug", "priv-enabled-trap2-nop-bug"], GFX110, Check::Hazards, "results of v_mad_u64_u32 and of transcendental instructions are forwarded wrongly, and two bugs more"),
    // GFX12.5
    instructions(&["cube-insts", "cvt-norm-insts", "cvt-pknorm-vop2-insts", "cvt-pknorm-vop3-insts", "lerp-inst", "mqsad-insts", "mqsad-pk-insts", "msad-insts", "qsad-insts", "sad-insts", "swmmac-gfx1200-insts", "swmmac-gfx1250-insts"], &["gfx1250", "gfx1251"], "v_cube*, v_cvt_*norm*, v_*sad*, v_lerp_u8 and v_swmmac_*"),
    instructions(&["dpp-64bit", "gfx1251-gemm-insts", "packed-fp64-ops", "packed-u64-ops"], &["gfx1251"], "packed and matrix instructions of f64"),
    hazard(&["gfx125x-lowest-rate-wmma"], &["gfx1251", "gfx12-5-generic"], Check::MatrixWaits, "WMMA results need up to 17 waits instead of 9"),
    workaround(&["setreg-vgpr-msb-fixup"], &["gfx1250", "gfx12-5-generic"], "s_setreg of MODE changes the banks of vector registers"),
];

/// A difference between the members of a pair that needs a check or forbids the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureDifference {
    /// The processor with the feature: the source (its code may use it), the target (its code must allow for it), or a
    /// processor that a generic target covers.
    pub owner: &'static str,
    pub feature: &'static Feature,
    /// The check that settles it; `None` where none can.
    pub check: Option<Check>,
}

fn has_feature(processor: &str, name: &str) -> bool {
    FEATURES.iter().any(|feature| feature.names.contains(&name) && feature.processors.contains(&processor))
}

/// Whether `owner` has the feature and the source has not, and code of the source that passes for the target can
/// be affected by it.
fn is_new(feature: &Feature, owner: &str, source: &Processor, target: &Processor) -> bool {
    let reaches = feature.within.is_none_or(|name| has_feature(source.name, name) && has_feature(target.name, name));
    feature.processors.contains(&owner) && !feature.processors.contains(&source.name) && reaches
}

/// The differences in LLVM's features that concern code of `source` on `target` and on all that
/// a generic `target` covers.
///
/// Instructions that a covered processor lacks do not matter: the generic target lacks them, too.
pub fn feature_differences(source: &Processor, target: &Processor) -> Vec<FeatureDifference> {
    let mut found: Vec<FeatureDifference> = Vec::new();
    for feature in FEATURES {
        let owners = std::iter::once(target.name).chain(target.covers.iter().copied());
        let mut new_to = owners.filter(|owner| is_new(feature, owner, source, target));
        let lost = feature.processors.contains(&source.name) && !feature.processors.contains(&target.name);
        let (owner, check) = match feature.consequence {
            Consequence::Instructions if lost => (Some(source.name), Some(Check::SameInstructions)),
            Consequence::Instructions => (None, None),
            Consequence::Setup if lost => (Some(source.name), None),
            Consequence::Setup | Consequence::Workaround => (new_to.next(), None),
            Consequence::Hazard(check) => (new_to.next(), Some(check)),
        };
        found.extend(owner.map(|owner| FeatureDifference { owner, feature, check }));
    }
    found
}

/// The maximum number of vector registers with which a workgroup of `waves` waves on each SIMD runs.
fn max_vgprs(vgprs: &Vgprs, waves: u16) -> u16 {
    let share = vgprs.total / waves;
    (share - share % u16::from(vgprs.granule)).min(vgprs.allocatable)
}

/// Whether some kernel fits the vector registers of `source` and not those of `target`.
fn fewer_vgprs(source: &Processor, target: &Processor) -> bool {
    [32, 64].into_iter().any(|lanes| match (source.limits.vgprs(lanes), target.limits.vgprs(lanes)) {
        (Some(one), Some(other)) => (1..=16).any(|waves| max_vgprs(one, waves) > max_vgprs(other, waves)),
        _ => false,
    })
}

/// The checks that follow from resources, settings and the code object version, whatever the instructions.
pub fn by_limits(source: &Processor, target: &Processor) -> BTreeSet<Check> {
    let covered = target.covers.iter().filter_map(|name| find_processor(name));
    let owners: Vec<&Processor> = std::iter::once(target).chain(covered).collect();
    [
        (target.is_generic(), Check::CodeObjectVersion),
        (
            differs_in_support(source.xnack, target.xnack) || differs_in_support(source.sramecc, target.sramecc),
            Check::Features,
        ),
        (source.waves != target.waves, Check::WaveSize),
        (owners.iter().any(|owner| owner.limits.lds.addressable < source.limits.lds.addressable), Check::Lds),
        (owners.iter().any(|owner| fewer_vgprs(source, owner)), Check::VgprFit),
    ]
    .into_iter()
    .filter_map(|(needed, check)| needed.then_some(check))
    .collect()
}

fn differs_in_support(one: Support, other: Support) -> bool {
    one != other
}
