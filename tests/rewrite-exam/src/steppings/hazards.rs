//! Pairs of instructions before LLVM's hazard recognizer: what it puts between them for one processor and not for the other.

use super::{PairDifferences, SteppingPair};
use crate::assembly::{Kernel, assemble};
use crate::listing::Listing;
use crate::mir::{Inserted, Spellings, inserted};
use hotswap_userland::Workbench;
use std::collections::BTreeMap;

/// Earlier instructions: matrix instructions of each class, vector, transcendental and scalar ones, memory.
const PRODUCERS: [(&str, &str); 13] = [
    ("wmma-f16", "v_wmma_f32_16x16x32_f16 v[2:9], v[10:17], v[18:25], v[2:9]"),
    ("wmma-fp8", "v_wmma_f32_16x16x64_fp8_fp8 v[2:9], v[10:17], v[18:25], v[2:9]"),
    ("wmma-iu8", "v_wmma_i32_16x16x64_iu8 v[2:9], v[10:17], v[18:25], v[2:9]"),
    ("wmma-f8f6f4", "v_wmma_scale_f32_16x16x128_f8f6f4 v[2:9], v[10:25], v[26:41], v[2:9], v50, v51"),
    (
        "wmma-f4",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[2:9], v[10:17], v[18:25], v[2:9], v50, v51 matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4",
    ),
    ("wmma-f32", "v_wmma_f32_16x16x4_f32 v[2:9], v[10:11], v[18:19], v[2:9]"),
    ("swmmac", "v_swmmac_f32_16x16x64_f16 v[2:9], v[10:17], v[18:33], v60"),
    ("swmmac-iu8", "v_swmmac_i32_16x16x128_iu8 v[2:9], v[10:17], v[18:33], v[60:61]"),
    ("vector", "v_add_nc_u32 v2, v10, v18"),
    ("transcendental", "v_exp_f32 v2, v10"),
    ("lds", "ds_load_b64 v[2:3], v10"),
    ("memory", "global_load_b64 v[2:3], v10, s[4:5]"),
    ("permute", "v_perm_pk16_b4_u4 v[2:3], v10, v11, v[12:13]"),
];
/// Later ones, which read v2 and v3, or overwrite registers that were read.
const CONSUMERS: [(&str, &str); 10] = [
    ("reads", "v_add_nc_u32 v70, v2, v3"),
    ("reads-transcendental", "v_exp_f32 v70, v2"),
    ("overwrites-result", "v_mov_b32 v2, v70"),
    ("overwrites-a", "v_mov_b32 v10, v70"),
    ("overwrites-b", "v_mov_b32 v18, v70"),
    ("reads-as-a", "v_wmma_f32_16x16x32_f16 v[70:77], v[2:9], v[80:87], v[70:77]"),
    ("reads-as-c", "v_wmma_f32_16x16x32_f16 v[2:9], v[70:77], v[80:87], v[2:9]"),
    ("stores", "global_store_b32 v70, v2, s[4:5]"),
    ("lds-stores", "ds_store_b32 v70, v2"),
    ("converts", "v_cvt_f32_fp8 v70, v2"),
];

/// Every producer directly before every consumer.
pub(super) fn compare_hazards(bench: &Workbench, pair: &SteppingPair, found: &mut PairDifferences) {
    let mut kernels = Vec::new();
    for (producer, first) in PRODUCERS {
        for (consumer, second) in CONSUMERS {
            let name = format!("{producer}__{consumer}").replace('-', "_");
            let code = format!("// vgprs: 128\n{name}:\n\tv_nop\n\t{first}\n\t{second}\n\ts_endpgm\n");
            kernels.push(Kernel { name, code });
        }
    }
    let [(_, bytes), _] = assemble(bench, "pairs", &kernels);
    bench.write("pairs", &bytes);
    let listing = Listing::read(&bench.run("llvm-objdump-24 -d pairs"));
    let mut spellings = Spellings::default();
    let [left, right] = [pair.source, pair.target].map(|processor| {
        let (all, count) = inserted(bench, &mut spellings, &listing, processor);
        assert_eq!(count, kernels.len());
        all.into_iter().map(|one| (one.function.clone(), one)).collect::<BTreeMap<_, _>>()
    });
    found.count_cases("pairs of instructions", kernels.len());
    for kernel in &kernels {
        let [before, after] = [&left, &right].map(|side| side.get(&kernel.name).map_or(Vec::new(), inserted_names));
        if before != after {
            let text = |all: &[String]| if all.is_empty() { "nothing".to_owned() } else { all.join(" ") };
            let name = kernel.name.replace("__", " then ");
            found.add(format!("hazard {name}: {} there, {} here", text(&before), text(&after)), &kernel.name);
        }
    }
}

/// The waiting instructions of a function, by how often.
fn inserted_names(one: &Inserted) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &one.lines {
        let name = line.split_whitespace().next().unwrap_or_default();
        if name.starts_with("V_NOP") || name.starts_with("S_WAIT") || name.starts_with("S_NOP") {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts.into_iter().map(|(name, count)| format!("{count} {name}")).collect()
}
