//! Bugs of processors for which their own compilers have workarounds and those of their siblings do not: one row each.
//!
//! A row applies where the target, or a processor that a generic target covers, has the bug and the source has not.

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::{Class, Flag, TableEntry};

struct ProcessorHazard {
    processors: &'static [&'static str],
    concerns: fn(TableEntry) -> bool,
    why: &'static str,
}

const GFX110: &[&str] = &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx11-generic"];

#[rustfmt::skip]
const HAZARDS: &[ProcessorHazard] = &[
    ProcessorHazard { processors: &["gfx942"], concerns: short_fp8_conversion, why: "the short form of conversions from FP8 and BF8 is unreliable" },
    ProcessorHazard { processors: GFX110, concerns: |entry| is_one_of(entry, &["v_mad_u64_u32", "v_mad_i64_i32"]), why: "the result must not overlap a source, to which this code does not keep" },
    ProcessorHazard { processors: GFX110, concerns: |entry| entry.is(Flag::Trans), why: "results of transcendental instructions must be waited for, which this code does not do" },
    ProcessorHazard { processors: GFX110, concerns: |entry| is_one_of(entry, &["image_msaa_load"]), why: "the destination of multisample loads is chosen wrongly" },
    ProcessorHazard { processors: GFX110, concerns: |entry| is_one_of(entry, &["s_trap"]), why: "traps end the wave otherwise than this code expects" },
];

pub(super) fn hazard_rules(pair: &ProcessorPair) -> Vec<InvalidInstructions> {
    let rules = HAZARDS.iter().filter_map(|row| {
        let target = pair.first_new_runner(row.processors)?;
        let why = format!("on {target} {}", row.why);
        Some(InvalidInstructions { check: Check::Hazards, concerns: row.concerns, is_invalid: every_form, why })
    });
    rules.collect()
}

fn is_one_of(entry: TableEntry, names: &[&str]) -> bool {
    names.contains(&entry.mnemonic())
}

fn short_fp8_conversion(entry: TableEntry) -> bool {
    let from_fp8 = entry.mnemonic().starts_with("v_cvt_") && entry.mnemonic().ends_with("8");
    from_fp8 && entry.class() == Some(Class::Vop1)
}
