//! Each family's instruction between two neighbours that could be too close to its replacement.
//!
//! Neighbours use registers of the site and the lowest ones that it does not use, which are free and will be borrowed.

use crate::assembly::Kernel;
use crate::variants::sites;
use std::collections::BTreeSet;

/// The selection of pairs of neighbours: every so many-th.
pub const FEW: usize = 41;
pub const ALL: usize = 1;

/// Registers that a site does not use and that neighbours do.
const FREE: usize = 6;

/// The kernels of each site; of the pairs with neighbours on both sides every `step`-th.
pub fn neighbours(step: usize) -> Vec<(&'static str, Vec<Kernel>)> {
    sites().map(|(name, site)| (name, kernels(name, site, step))).collect()
}

fn kernels(name: &str, site: &str, step: usize) -> Vec<Kernel> {
    let registers = registers(site);
    let (before, after) = (before(&registers), after(&registers));
    let mut all = Vec::new();
    for (first, earlier) in before.iter().enumerate() {
        for (second, later) in after.iter().enumerate() {
            let both = first > 0 && second > 0;
            if both && !(first * after.len() + second).is_multiple_of(step) {
                continue;
            }
            let name = format!("{name}_{first}_{second}");
            // The inputs of a site were written long before.
            let code = format!("// vgprs: 96\n// sgprs: 106\n{name}:\n\tv_nop\n{earlier}\t{site}\n{later}\ts_endpgm\n");
            all.push(Kernel { name, code });
        }
    }
    all
}

/// First and last vector registers of the site's operands, and the lowest that it does not use.
fn registers(site: &str) -> Vec<u32> {
    let (mut ends, mut named) = (BTreeSet::new(), BTreeSet::new());
    for word in site.split([' ', ',']).filter_map(|word| word.strip_prefix('v')) {
        let numbers = word.trim_matches(['[', ']']).split_once(':').unwrap_or((word, word));
        if let (Ok(first), Ok(last)) = (numbers.0.parse::<u32>(), numbers.1.parse::<u32>()) {
            ends.extend([first, last]);
            named.extend(first..=last);
        }
    }
    let free = (0..96).filter(|register| !named.contains(register)).take(FREE);
    ends.iter().copied().chain(free).collect()
}

fn before(registers: &[u32]) -> Vec<String> {
    let mut all = vec![String::new()];
    for register in registers {
        all.push(format!("\tv_exp_f32 v90, v{register}\n"));
        all.push(format!("\tv_exp_f32 v90, v{register}\n\ts_nop 0\n\ts_mov_b32 s0, s1\n"));
        all.push(format!("\tv_rcp_f32 v{register}, v90\n"));
    }
    all.extend(
        [
            "v_wmma_f32_16x16x64_fp8_fp8 v[64:71], v[0:7], v[48:55], v[64:71]",
            "v_wmma_i32_16x16x64_iu8 v[42:49], v[64:71], v[72:79], v[42:49]",
            "v_swmmac_f32_16x16x64_f16 v[64:71], v[0:7], v[72:87], v88",
            "v_perm_pk16_b4_u4 v[90:91], v92, v93, v[94:95]",
            "s_mov_b32 s102, s0",
            "v_readfirstlane_b32 s0, v90",
            "v_cmp_eq_u32 vcc_lo, v90, v91",
            "global_load_b32 v90, v[0:1], off",
        ]
        .map(|neighbour| format!("\t{neighbour}\n")),
    );
    all
}

fn after(registers: &[u32]) -> Vec<String> {
    let mut all = vec![String::new()];
    for register in registers {
        all.push(format!("\tv_mov_b32 v{register}, 0\n"));
        all.push(format!("\tv_add_nc_u32 v90, v{register}, v91\n"));
    }
    all.extend(
        [
            "v_exp_f32 v90, v2",
            "v_wmma_f32_16x16x32_f16 v[64:71], v[0:7], v[48:55], v[64:71]",
            "s_mov_b32 s0, src_flat_scratch_base_lo",
            "s_mov_b32 s0, src_flat_scratch_base_hi",
            "v_mov_b32 v90, s0",
        ]
        .map(|neighbour| format!("\t{neighbour}\n")),
    );
    all
}
