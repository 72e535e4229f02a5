//! Why pairs outside the groups are refused, as data.
//!
//! Sources: LLVM's tables of instructions, encodings and hazards for each processor, compared pair
//! by pair, and its AMDGPU usage guide. The first row that fits speaks; pairs without a row get a
//! reason from their families.

use hotswap_targets::Processor;

struct Reason {
    sources: &'static [&'static str],
    targets: &'static [&'static str],
    why: &'static str,
}

const GFX900: &[&str] = &["gfx900", "gfx902", "gfx909", "gfx90c"];
const GFX1010: &[&str] = &["gfx1010", "gfx1013"];
const GFX1011: &[&str] = &["gfx1011", "gfx1012"];
const RDNA1: &[&str] = &["gfx1010", "gfx1011", "gfx1012", "gfx1013"];
const RDNA2: &[&str] = &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
const RDNA3: &[&str] = &["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
const RDNA35: &[&str] = &["gfx1150", "gfx1151", "gfx1152", "gfx1153"];

const MIX: &str = "v_mad_mix_* of the one and v_fma_mix_* of the other have the same encodings and round differently";
const MIX_D16: &str = "v_mad_mix_* and v_fma_mix_* share their encodings and round differently, and with SRAMECC \
     16-bit (D16) loads do not preserve the other half of their register";
const D16: &str = "with SRAMECC, 16-bit (D16) loads do not preserve the other half of their register";
const VGPRS: &str = "its SIMDs have 1024 vector registers instead of 1536: kernels may not fit";
const SGPR16: &str = "it needs at least 16 initialised SGPRs in wave32, which the compiler provides only there";
const RDNA3_TO_35: &str = "RDNA 3.5 needs other waits around exports and accelerated point sampling, and all but gfx1151 \
     have fewer vector registers than gfx1100 and gfx1101";
const BETTER: &str = "the instructions fit, but compilers make different objects for the two, and only identical ones \
     are relabelled";

const fn row(sources: &'static [&'static str], targets: &'static [&'static str], why: &'static str) -> Reason {
    Reason { sources, targets, why }
}

#[rustfmt::skip]
const REASONS: &[Reason] = &[
    row(GFX900, &["gfx904"], MIX),
    row(&["gfx904"], GFX900, MIX),
    row(GFX900, &["gfx906", "gfx908"], MIX_D16),
    row(&["gfx904"], &["gfx906", "gfx908"], D16),
    row(&["gfx906"], GFX900, "v_dot*, v_fmac_f32 and v_xnor_b32 are missing there, and v_fma_mix_* means v_mad_mix_*"),
    row(&["gfx906"], &["gfx904"], "v_dot*, v_fmac_f32 and v_xnor_b32 are missing there"),
    row(&["gfx906"], &["gfx908"], BETTER),
    row(&["gfx908"], &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"], "matrix instructions (MFMA), accumulation registers and floating-point atomics are missing there"),
    row(&["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c"], &["gfx90a"], "gfx90a needs even-aligned register tuples, packed work-item IDs and another kernel descriptor, and v_mul_legacy_f32 decodes as v_fmac_f64"),
    row(&["gfx90a"], &["gfx942", "gfx950"], "v_mac_f32, v_mad_f32 and image instructions are missing there, MFMA forms differ, the cache bits sc0/sc1/nt replace glc/slc, and scratch is set up by the hardware"),
    row(&["gfx942"], &["gfx950"], "XF32 matrix instructions are missing there, and matrix instructions need longer waits"),
    row(&["gfx950"], &["gfx942"], "99 instructions (v_bitop3 among them) are missing there, and LDS is 64 KiB instead of 160 KiB"),
    row(GFX1010, GFX1011, "gfx1011 and gfx1012 have dot instructions that compilers use: the objects differ"),
    row(GFX1011, GFX1010, "v_dot* instructions are missing there"),
    row(RDNA1, RDNA2, "v_mac_f32, v_mad_f32, v_madmk_f32, v_madak_f32, ds_*_src2 and scalar atomics are missing there, and v_mac_legacy_f32 decodes as v_fmac_legacy_f32"),
    row(RDNA2, RDNA1, "scratch encodings differ, 19 instructions are missing there, and so are ten hazard workarounds that RDNA 1 needs"),
    row(&["gfx1100"], &["gfx1102", "gfx1103"], VGPRS),
    row(&["gfx1101"], &["gfx1102"], "its SIMDs have 1024 vector registers instead of 1536, and it needs at least 16 initialised SGPRs in wave32"),
    row(&["gfx1101"], &["gfx1103"], VGPRS),
    row(&["gfx1101", "gfx1103"], &["gfx1100", "gfx1102"], SGPR16),
    row(RDNA3, RDNA3, BETTER),
    row(RDNA3, RDNA35, RDNA3_TO_35),
    row(RDNA35, RDNA3, "58 scalar floating-point instructions are missing there, and so are hazard workarounds that RDNA 3 needs"),
    row(&["gfx1151"], RDNA35, VGPRS),
    row(&["gfx1153"], &["gfx1151"], "gfx1151 accelerates point sampling and needs waits that the compiler leaves out for gfx1153"),
    row(RDNA35, RDNA35, BETTER),
    row(&["gfx1250"], &["gfx1250-strict"], "gfx1250-strict is the first stepping (A0), which lacks instruction forms of gfx1250 and needs other sequences"),
    row(&["gfx1250-strict"], &["gfx1250"], BETTER),
    row(&["gfx1250", "gfx1250-strict"], &["gfx1251"], BETTER),
    row(&["gfx1251"], &["gfx1250", "gfx1250-strict"], "packed and matrix instructions for f64 are missing there, and 46 encodings differ"),
];

/// The reason, as half a sentence that names both.
pub(crate) fn why(source: &Processor, target: &Processor) -> String {
    let pair = format!("code for {source} cannot serve {target}");
    if let Some(withdrawn) = [source, target].into_iter().find(|processor| processor.withdrawn) {
        return format!("{pair}: {withdrawn} was withdrawn before its hardware shipped");
    }
    if let Some(reason) = generic(source, target) {
        return format!("{pair}: {reason}");
    }
    let fits = |row: &&Reason| row.sources.contains(&source.name) && row.targets.contains(&target.name);
    match REASONS.iter().find(fits) {
        Some(row) => format!("{pair}: {}", row.why),
        None if source.family != target.family => {
            format!("{pair}: {} and {} encode instructions differently", source.family, target.family)
        }
        None => format!("{pair}: both are {}, but nobody has shown that their objects are the same", source.family),
    }
}

fn generic(source: &Processor, target: &Processor) -> Option<String> {
    match (source.is_generic(), target.is_generic()) {
        (true, false) if source.covers(target) => {
            Some(format!("it need not, since a runtime loads {source} on {target} as it is"))
        }
        (true, false) => Some(format!("{source} covers {} only", source.covers.join(", "))),
        (_, true) => Some(format!("a generic target is compiled for; add --offload-arch={target}")),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::REASONS;
    use crate::{Verdict, verdict};
    use hotswap_targets::{PROCESSORS, find};
    use std::collections::BTreeSet;

    /// A row that no pair reaches, or a name that no processor has, is a mistake in the table.
    #[test]
    fn every_row_speaks_for_some_pair() {
        let mut said = BTreeSet::new();
        for source in PROCESSORS {
            for target in PROCESSORS {
                if let Verdict::Refused { why } = verdict(source, target) {
                    assert!(why.contains(source.name) && why.contains(target.name), "{why}");
                    said.insert(why);
                }
            }
        }
        for row in REASONS {
            assert!(row.sources.iter().chain(row.targets).all(|name| find(name).is_some()));
            assert!(said.iter().any(|why| why.ends_with(row.why)), "{}", row.why);
        }
    }
}
