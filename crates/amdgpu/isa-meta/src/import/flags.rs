//! LLVM's flags of an instruction.

use super::json::{JsonRecord, Records};
use std::collections::BTreeSet;

/// Bits of `TSFlags` (SIInstrFormats.td); bits that every instruction has are left out.
#[rustfmt::skip]
const BITS: &[(u8, &str)] = &[
    (0, "salu"), (1, "valu"), (2, "sop1"), (3, "sop2"), (4, "sopc"), (5, "sopk"), (6, "sopp"), (7, "vop1"),
    (8, "vop2"), (9, "vopc"), (10, "vop3"), (12, "vop3p"), (13, "vintrp"), (14, "sdwa"), (15, "dpp"), (16, "trans"),
    (17, "mubuf"), (18, "mtbuf"), (19, "smrd"), (20, "mimg"), (21, "vimage"), (22, "vsample"), (23, "exp"),
    (24, "flat"), (25, "ds"), (26, "spill"), (28, "ldsdir"), (29, "vinterp"), (30, "vopd3"), (32, "vm_cnt"),
    (33, "exp_cnt"), (34, "lgkm_cnt"), (35, "wqm"), (36, "disable_wqm"), (37, "gather4"), (38, "tensor_cnt"),
    (39, "scalar_store"), (40, "fixed_size"), (41, "async_cnt"), (42, "vop3_opsel"), (45, "fp_clamp"),
    (46, "int_clamp"), (47, "clamp_lo"), (48, "clamp_hi"), (49, "packed"), (50, "d16_buf"), (51, "flat_global"),
    (52, "fp_dp_rounding"), (53, "fp_atomic"), (54, "mai"), (55, "dot"), (56, "flat_scratch"),
    (57, "atomic_no_ret"), (58, "atomic_ret"), (59, "wmma"), (60, "tied_source_not_read"), (61, "never_uniform"),
    (62, "gws"), (63, "swmmac"),
];

/// Fields of their own.
#[rustfmt::skip]
const FIELDS: &[(&str, &str)] = &[
    ("isBranch", "branch"), ("isTerminator", "terminator"), ("isBarrier", "no_fallthrough"), ("isCall", "call"),
    ("isReturn", "return"), ("isIndirectBranch", "indirect_branch"), ("isTrap", "trap"), ("mayLoad", "load"),
    ("mayStore", "store"), ("hasSideEffects", "side_effects"), ("isCommutable", "commutable"),
    ("isConvergent", "convergent"), ("IsSingle", "single"), ("mayRaiseFPException", "fp_exception"),
    // Ray intersection with 16-bit addresses: an operand whose value is fixed and lacks a bit.
    ("a16", "a16"),
];

/// The mnemonics whose result has 16 bits, by the profiles of their instructions: forms with DPP lack them.
pub(super) fn half_result_mnemonics(records: &Records) -> BTreeSet<&str> {
    records
        .profiles
        .iter()
        .filter(|known| has_half_result(&known.profile, records))
        .map(|known| known.mnemonic.as_str())
        .collect()
}

fn has_half_result(profile: &str, records: &Records) -> bool {
    let profile = records.named.get(profile).and_then(|profile| profile.def("DstVT"));
    matches!(profile, Some("f16" | "i16" | "bf16"))
}

/// The flags of a record, sorted.
pub(super) fn read_flags(record: &JsonRecord, half: bool) -> Vec<String> {
    let bits = record.bits("TSFlags");
    let set = BITS.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
    let fields = FIELDS.iter().filter(|(field, _)| record.int(field) == 1).map(|(_, name)| *name);
    let mut flags: Vec<String> = set.chain(fields).chain(half.then_some("dst16")).map(str::to_owned).collect();
    flags.sort_unstable();
    flags
}
