//! The compatibility matrix: a verdict for each ordered pair of processors that HotSwap could convert code between.
//!
//! A row covers all its sources on all its targets, with the evidence for it. Pairs of one family, and pairs with a
//! generic target of that family, have exactly one row. A pair without a row is between families whose encodings
//! differ, and is refused for that reason.
//!
//! Invariants, each with a test: no pair has two rows, no row is without a pair. The checks of a row are those that
//! follow from LLVM's features and from the resources of both ([`crate::differences`]), no more and no fewer.
//!
//! A generic target runs on every processor that it covers, so its rows require the checks of the most demanding of
//! them, even where LLVM itself is less careful (GFX9-4 with the waits of gfx950, GFX11 with point sampling of gfx1150,
//! GFX9 with SRAMECC of gfx906).
//!
//! Absent on purpose: whether HotSwap applies a pair ([`crate::pair`]), whether a code object passes
//! ([`crate::check`]).

use crate::Check::{
    self, CodeObjectVersion, D16Loads, Exports, Features, Hazards, ImageSampling, Lds, MatrixWaits, SameInstructions,
    UserSgprs16, VgprFit,
};
use MatrixVerdict::{Conditional, Identical, Rewrite, Unsafe};
use hotswap_targets::IsaFamily::{Gfx117, Rdna1, Vega};
use hotswap_targets::Selection::{Family, Group, Named};
use hotswap_targets::{Processor, processors};

/// The verdict of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixVerdict {
    /// The compiler emits the same code for both; for a few pairs only for sources that pass the checks.
    Identical(&'static [Check]),
    /// Safe if the code object passes the checks.
    Conditional(&'static [Check]),
    /// Safe once code families have rewritten the differences.
    Rewrite,
    /// Unsafe for this reason.
    Unsafe(&'static str),
}

#[derive(Debug)]
pub struct MatrixRow {
    /// Processors that code was compiled for.
    pub sources: &'static [&'static str],
    /// Processors that it is to run on.
    pub targets: &'static [&'static str],
    pub answer: MatrixVerdict,
    /// The evidence for it.
    pub evidence: &'static str,
}

const fn row(
    sources: &'static [&'static str],
    targets: &'static [&'static str],
    answer: MatrixVerdict,
    evidence: &'static str,
) -> MatrixRow {
    MatrixRow { sources, targets, answer, evidence }
}

const GFX900: &[&str] = processors![Group("gfx900")];
const VEGA: &[&str] = processors![Family(Vega), Named("gfx908")];
const GFX9_AND_GENERIC: &[&str] = processors![Family(Vega), Named("gfx908"), Named("gfx9-generic")];
const GFX1010: &[&str] = processors![Group("gfx1010")];
const GFX1011: &[&str] = processors![Group("gfx1011")];
const RDNA1: &[&str] = processors![Family(Rdna1)];
const RDNA1_AND_GENERIC: &[&str] = processors![Family(Rdna1), Named("gfx10-1-generic")];
const RDNA2: &[&str] = processors![Group("gfx1030")];
/// RDNA 3.5 with 1024 vector registers.
const SMALL35: &[&str] = processors![Group("gfx1150"), Named("gfx1154")];
const GFX117: &[&str] = processors![Family(Gfx117)];
const RDNA4: &[&str] = processors![Group("gfx1200")];

const BYTES: &str = "the objects of clang 22, 23 and 24 are equal byte for byte once the name is changed; LLVM's feature lists are equal";
const BVH: &str = "the objects of clang 22, 23 and 24 are equal byte for byte once the name is changed; gfx1013 has ray tracing instructions besides";
const SAMPLES: &str = "the objects of clang 22, 23 and 24 are equal byte for byte once the name is changed; gfx1153 does not accelerate point sampling";
const TEXT: &str =
    "clang's code for both is equal on the test corpus; the generic target is the common subset of what it covers";
const MIX: &str = "opcodes are equal but for v_mad_mix_* of gfx900 and v_fma_mix_* of gfx904 and later, which share encodings and round differently: \
     every word decodes on both sides, so the check compares instructions and not words";
const SUBSET: &str = "the source's opcodes are a subset of the target's, no hazard is new";
const DOTS: &str = "nine v_dot* instructions are missing on the target; everything else is equal";
const RDNA1_TO_2: &str = "v_mac_f32, v_mad_f32, v_madmk_f32, v_madak_f32, ds_*_src2, scalar atomics and v_mul_lo_i32 are missing there and \
     v_mac_legacy_f32 decodes as v_fmac_legacy_f32; RDNA 2 has no hazard that RDNA 1 lacks; real code often has v_mac_f32";
const GFX11: &str =
    "opcodes and encodings are equal; they differ in vector registers and in the setup of scalar registers";
const TO_115: &str = "RDNA 3.5 has all opcodes of RDNA 3 and none of its hazards, but orders exports and, without gfx1153, accelerates \
     point sampling; compute code has neither (0 of 918,000 instructions of Debian's libraries)";
const GFX115: &str = "LLVM's feature lists differ in point sampling and the number of vector registers only";
const LARGE115: &str =
    "1536 vector registers against 1024, otherwise equal; users report crashes of kernels that were tuned for gfx1151";
const RAW_GFX11: &str = "opcodes and encodings are equal; the generic target has 1024 vector registers and heeds what each processor that it \
     covers needs, point sampling of gfx1150 to gfx1152 excepted";

const NO_MFMA: &str = "matrix instructions, accumulation registers, v_dot2c_*, v_pk_fmac_f16 and floating-point atomics are missing there";
const RARELY: &str = "its code uses v_fmac_f32 in most kernels (1038 in 29,000 instructions), so few objects pass";
const GFX90A: &str = "gfx90a needs even-aligned register tuples, packed work-item IDs and another kernel descriptor, and v_mul_legacy_f32 decodes as v_fmac_f64";
const TO_110: &str = "58 scalar floating-point instructions are missing there (1307 of them in 30,000 instructions), and its code lacks \
     workarounds around v_mad_u64_u32 and transcendental instructions, so few objects pass";
const STEPPINGS: &str = "of 75,200 encodings those of the conversions of UE5M3 and of nine matrix instructions decode for one alone (LLVM 24); LLVM's code for the \
     first stepping, and what is public about it, shows which other instructions, distances and waits differ";
const STRICT: &str =
    "gfx1250-strict is the first stepping (A0), which lacks instruction forms of gfx1250 and needs other sequences";

/// The rows, by family.
#[rustfmt::skip]
pub const MATRIX: &[MatrixRow] = &[
    // GFX9: Vega and CDNA 1
    row(GFX900, GFX900, Identical(&[]), BYTES),
    row(GFX900, &["gfx904"], Conditional(&[SameInstructions]), MIX),
    row(&["gfx904"], GFX900, Conditional(&[SameInstructions]), MIX),
    row(GFX900, &["gfx906", "gfx908"], Conditional(&[Features, SameInstructions, D16Loads]), MIX),
    row(&["gfx904"], &["gfx906", "gfx908"], Conditional(&[Features, SameInstructions, D16Loads]), SUBSET),
    row(&["gfx906"], GFX900, Conditional(&[Features, SameInstructions]), RARELY),
    row(&["gfx906"], &["gfx904"], Conditional(&[Features, SameInstructions]), RARELY),
    row(&["gfx906"], &["gfx908"], Conditional(&[SameInstructions]), SUBSET),
    row(&["gfx908"], &["gfx906"], Conditional(&[SameInstructions]), NO_MFMA),
    row(&["gfx908"], processors![Group("gfx900"), Named("gfx904")], Conditional(&[Features, SameInstructions]), NO_MFMA),
    row(GFX900, &["gfx9-generic"], Conditional(&[CodeObjectVersion, SameInstructions, D16Loads]), TEXT),
    row(&["gfx904"], &["gfx9-generic"], Conditional(&[CodeObjectVersion, SameInstructions, D16Loads]), MIX),
    row(&["gfx906"], &["gfx9-generic"], Conditional(&[CodeObjectVersion, Features, SameInstructions]), RARELY),
    row(&["gfx908"], &["gfx9-generic"], Conditional(&[CodeObjectVersion, Features, SameInstructions]), NO_MFMA),
    row(VEGA, &["gfx90a"], Unsafe(GFX90A), "LLVM's features vgpr-align2, packed-tid and kernarg-preload; 105 mnemonics are absent"),
    row(&["gfx90a"], GFX9_AND_GENERIC, Unsafe("work-item IDs are packed on gfx90a only, its descriptor counts registers otherwise, and v_fmac_f64 decodes as v_mul_legacy_f32"), "LLVM's features packed-tid, kernarg-preload and gfx90a-insts"),
    row(&["gfx90a"], &["gfx942", "gfx950", "gfx9-4-generic"], Unsafe("v_mac_f32, v_mad_f32 and image instructions are missing there, MFMA forms differ, the cache bits sc0/sc1/nt replace glc/slc, and scratch is set up by the hardware"), "61 mnemonics are absent; LLVM's feature architected-flat-scratch"),
    // GFX9.4: CDNA 3 and 4
    row(&["gfx942"], &["gfx950"], Conditional(&[SameInstructions, MatrixWaits]), "two XF32 matrix instructions are missing there; results of matrix instructions need one wait more, those of f64 up to eight"),
    row(&["gfx950"], &["gfx942"], Conditional(&[Lds, SameInstructions, Hazards]), "99 instructions are missing there, v_bitop3 among them, which most of its code uses (184 words of 30,000), so few objects pass"),
    row(&["gfx942"], &["gfx9-4-generic"], Conditional(&[CodeObjectVersion, SameInstructions, MatrixWaits]), TEXT),
    row(&["gfx950"], &["gfx9-4-generic"], Conditional(&[CodeObjectVersion, Lds, SameInstructions]), "gfx950's waits are long enough for gfx942; most of its code uses v_bitop3, so few objects pass"),
    // GFX10.1: RDNA 1
    row(&["gfx1010"], &["gfx1013"], Identical(&[]), BVH),
    row(&["gfx1013"], &["gfx1010"], Identical(&[SameInstructions]), BVH),
    row(GFX1011, GFX1011, Identical(&[]), BYTES),
    row(&["gfx1010"], GFX1011, Conditional(&[SameInstructions]), SUBSET),
    row(&["gfx1013"], GFX1011, Conditional(&[SameInstructions]), "ray tracing instructions are missing on the target; everything else is a subset"),
    row(GFX1011, GFX1010, Conditional(&[SameInstructions]), DOTS),
    row(GFX1010, &["gfx10-1-generic"], Conditional(&[CodeObjectVersion, SameInstructions]), TEXT),
    row(GFX1011, &["gfx10-1-generic"], Conditional(&[CodeObjectVersion, SameInstructions]), DOTS),
    row(RDNA1, RDNA2, Conditional(&[Features, VgprFit, SameInstructions]), RDNA1_TO_2),
    row(RDNA1, &["gfx10-3-generic"], Conditional(&[CodeObjectVersion, Features, VgprFit, SameInstructions]), RDNA1_TO_2),
    // GFX10.3: RDNA 2
    row(RDNA2, RDNA2, Identical(&[]), BYTES),
    row(RDNA2, &["gfx10-3-generic"], Conditional(&[CodeObjectVersion, SameInstructions]), TEXT),
    row(RDNA2, RDNA1_AND_GENERIC, Unsafe("scratch encodings differ, 19 instructions are missing there, and so are workarounds of RDNA 1's hazards"), "LLVM's feature lists; 22 encodings differ"),
    // GFX11: RDNA 3 and 3.5
    row(&["gfx1100"], &["gfx1101"], Conditional(&[SameInstructions]), GFX11),
    row(&["gfx1100"], &["gfx1102", "gfx1103"], Conditional(&[VgprFit, SameInstructions]), "as gfx1101, but with 1024 vector registers instead of 1536: 11 of 7184 kernels of Debian's libggml-hip do not fit"),
    row(&["gfx1101"], &["gfx1100"], Conditional(&[UserSgprs16, SameInstructions]), GFX11),
    row(&["gfx1101"], &["gfx1102"], Conditional(&[VgprFit, UserSgprs16, SameInstructions]), GFX11),
    row(&["gfx1101"], &["gfx1103"], Conditional(&[VgprFit, SameInstructions]), GFX11),
    row(&["gfx1102"], &["gfx1100", "gfx1101", "gfx1103"], Conditional(&[SameInstructions]), "gfx1102 has the workarounds of all four and the fewest registers"),
    row(&["gfx1103"], &["gfx1101"], Conditional(&[SameInstructions]), GFX11),
    row(&["gfx1103"], &["gfx1100", "gfx1102"], Conditional(&[UserSgprs16, SameInstructions]), GFX11),
    row(&["gfx1100", "gfx1101"], &["gfx1150", "gfx1152"], Conditional(&[VgprFit, SameInstructions, ImageSampling, Exports]), TO_115),
    row(&["gfx1100", "gfx1101"], &["gfx1151"], Conditional(&[SameInstructions, ImageSampling, Exports]), TO_115),
    row(&["gfx1100", "gfx1101"], &["gfx1153", "gfx1154"], Conditional(&[VgprFit, SameInstructions, Exports]), TO_115),
    row(&["gfx1102", "gfx1103"], &["gfx1150", "gfx1151", "gfx1152"], Conditional(&[SameInstructions, ImageSampling, Exports]), TO_115),
    row(&["gfx1102", "gfx1103"], &["gfx1153", "gfx1154"], Conditional(&[SameInstructions, Exports]), TO_115),
    row(&["gfx1102"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, SameInstructions, ImageSampling, Exports]), TEXT),
    row(&["gfx1103"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, UserSgprs16, SameInstructions, ImageSampling, Exports]), RAW_GFX11),
    row(&["gfx1100"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, VgprFit, SameInstructions, ImageSampling, Exports]), RAW_GFX11),
    row(&["gfx1101"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, VgprFit, UserSgprs16, SameInstructions, ImageSampling, Exports]), RAW_GFX11),
    row(&["gfx1150", "gfx1152"], &["gfx1150", "gfx1152", "gfx1153"], Identical(&[]), BYTES),
    row(&["gfx1153"], &["gfx1150", "gfx1152"], Identical(&[ImageSampling]), SAMPLES),
    row(&["gfx1150", "gfx1152"], &["gfx1151"], Conditional(&[SameInstructions]), GFX115),
    row(&["gfx1150", "gfx1152"], &["gfx1154"], Conditional(&[SameInstructions]), GFX115),
    row(&["gfx1153"], &["gfx1154"], Conditional(&[SameInstructions]), "LLVM's feature lists are equal; gfx1154 is new in LLVM 23"),
    row(&["gfx1154"], &["gfx1153"], Conditional(&[SameInstructions]), "LLVM's feature lists are equal; gfx1154 is new in LLVM 23"),
    row(&["gfx1154"], &["gfx1150", "gfx1151", "gfx1152"], Conditional(&[SameInstructions, ImageSampling]), GFX115),
    row(&["gfx1153"], &["gfx1151"], Conditional(&[SameInstructions, ImageSampling]), GFX115),
    row(&["gfx1151"], &["gfx1150", "gfx1152", "gfx1153"], Conditional(&[VgprFit, SameInstructions]), LARGE115),
    row(&["gfx1151"], &["gfx1154"], Conditional(&[VgprFit, SameInstructions]), LARGE115),
    row(SMALL35, &["gfx1101", "gfx1103"], Conditional(&[SameInstructions, Hazards]), TO_110),
    row(SMALL35, &["gfx1100", "gfx1102"], Conditional(&[UserSgprs16, SameInstructions, Hazards]), TO_110),
    row(&["gfx1151"], &["gfx1101"], Conditional(&[SameInstructions, Hazards]), TO_110),
    row(&["gfx1151"], &["gfx1100"], Conditional(&[UserSgprs16, SameInstructions, Hazards]), TO_110),
    row(&["gfx1151"], &["gfx1102"], Conditional(&[VgprFit, UserSgprs16, SameInstructions, Hazards]), TO_110),
    row(&["gfx1151"], &["gfx1103"], Conditional(&[VgprFit, SameInstructions, Hazards]), TO_110),
    row(&["gfx1150", "gfx1152"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, UserSgprs16, SameInstructions, Hazards]), TO_110),
    row(&["gfx1153", "gfx1154"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, UserSgprs16, SameInstructions, ImageSampling, Hazards]), TO_110),
    row(&["gfx1151"], &["gfx11-generic"], Conditional(&[CodeObjectVersion, VgprFit, UserSgprs16, SameInstructions, Hazards]), TO_110),
    // GFX11.7
    row(GFX117, GFX117, Conditional(&[SameInstructions]), "LLVM's feature lists are equal; objects have not been compared"),
    row(GFX117, &["gfx11-7-generic"], Conditional(&[CodeObjectVersion, SameInstructions]), "LLVM's feature lists are equal; objects have not been compared"),
    // GFX12: RDNA 4
    row(RDNA4, RDNA4, Identical(&[]), BYTES),
    row(RDNA4, &["gfx12-generic"], Conditional(&[CodeObjectVersion, SameInstructions]), TEXT),
    // GFX12.5
    row(&["gfx1250"], &["gfx1251"], Conditional(&[SameInstructions, MatrixWaits]), "gfx1251 has all opcodes of gfx1250 and not its bug of s_setreg; results of its slowest matrix instructions need more waits"),
    row(&["gfx1250"], &["gfx12-5-generic"], Conditional(&[CodeObjectVersion, SameInstructions, MatrixWaits]), "44 instructions are missing there, and gfx1251, which it covers, needs more waits around matrix instructions"),
    row(&["gfx1251"], &["gfx1250", "gfx12-5-generic"], Unsafe("packed and matrix instructions for f64 are missing there, 46 encodings differ, and s_setreg changes the banks of vector registers"), "LLVM's feature setreg-vgpr-msb-fixup"),
    row(&["gfx1250"], &["gfx1250-strict"], Rewrite, STEPPINGS),
    row(&["gfx1251"], &["gfx1250-strict"], Unsafe(STRICT), "LLVM 24's processor list"),
    row(&["gfx1250-strict"], &["gfx1250", "gfx1251", "gfx12-5-generic"], Unsafe("the two steppings have not been compared beyond their instructions"), "LLVM 24's processor list"),
];

/// The row for an ordered pair.
pub fn find_row(source: &Processor, target: &Processor) -> Option<&'static MatrixRow> {
    MATRIX.iter().find(|row| row.speaks_for(source, target))
}

impl MatrixRow {
    /// Whether it covers that pair.
    pub fn speaks_for(&self, source: &Processor, target: &Processor) -> bool {
        source.name != target.name && self.sources.contains(&source.name) && self.targets.contains(&target.name)
    }
}
