//! Loads that are used without a wait, on GPUs of every generation before GFX12 (`rows/load-outstanding.*` has those of GFX12.5):
//! each planted fault is found, and the code with the wait has no finding.
//!
//! A line `INSTRUCTION //fixed` is a wait that the fault lacks.

use hotswap_lint::lint_object;
use hotswap_rewrite_exam::assembly::{Kernel, assemble_for};
use hotswap_userland::{Workbench, say};
use std::collections::BTreeSet;

/// GPUs with the features that cases ask for.
const TARGETS: [Target; 7] = [
    Target { name: "gfx900", features: &["gfx9", "images"] },
    Target { name: "gfx908", features: &["gfx9", "matrix", "images"] },
    Target { name: "gfx90a", features: &["gfx9", "matrix", "unified"] },
    Target { name: "gfx942", features: &["gfx9", "matrix", "unified"] },
    Target { name: "gfx1030", features: &["gfx10", "single"] },
    Target { name: "gfx1100", features: &["gfx11", "single"] },
    Target { name: "gfx1151", features: &["gfx11", "single"] },
];

struct Target {
    name: &'static str,
    features: &'static [&'static str],
}

/// A planted fault, in the assembly of the targets that have one of its features; without features, of all.
struct PlantedFault {
    name: &'static str,
    features: &'static [&'static str],
    code: &'static str,
}

const FAULTS: [PlantedFault; 22] = [
    PlantedFault {
        name: "vector_memory",
        features: &[],
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "one_too_many",
        features: &[],
        code: "global_load_dword v1, v[2:3], off\nglobal_load_dword v5, v[2:3], off\ns_waitcnt vmcnt(2)\n\
               s_waitcnt vmcnt(1) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "other_counter",
        features: &[],
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "upper_bits",
        features: &[],
        // 16 has no bits in the lower half of the count.
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(16)\ns_waitcnt vmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "overwritten",
        features: &[],
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\nv_mov_b32 v1, 0\n",
    },
    PlantedFault {
        name: "address",
        features: &[],
        code: "global_load_dwordx2 v[2:3], v[4:5], off\ns_waitcnt vmcnt(0) //fixed\nglobal_load_dword v1, v[2:3], off\n",
    },
    PlantedFault {
        name: "before_a_loop",
        features: &[],
        code: "global_load_dword v1, v[2:3], off\ns_mov_b32 s4, 0\ns_waitcnt vmcnt(0) //fixed\n.Lplace:\nv_mov_b32 v4, v1\n\
               s_add_i32 s4, s4, 1\ns_cmp_lt_i32 s4, 9\ns_cbranch_scc1 .Lplace\n",
    },
    PlantedFault {
        name: "of_every_path",
        features: &[],
        // One path has a later load, so that a wait for 1 would be enough there.
        code: "global_load_dword v1, v[2:3], off\ns_cbranch_scc1 .Lplace\nglobal_load_dword v1, v[2:3], off\n.Lplace:\n\
               s_waitcnt vmcnt(1)\ns_waitcnt vmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "lower_half",
        features: &[],
        code: "global_load_short_d16 v1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\nds_write_b16 v2, v1\n",
    },
    PlantedFault {
        name: "upper_half",
        features: &[],
        code: "global_load_short_d16_hi v1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\nds_write_b16_d16_hi v2, v1\n",
    },
    PlantedFault {
        name: "address_beside_a_half",
        features: &[],
        code: "global_load_short_d16_hi v2, v[4:5], off\ns_waitcnt vmcnt(0) //fixed\nds_write_b16 v2, v2\n",
    },
    PlantedFault {
        name: "scalar_memory",
        features: &[],
        code: "s_load_dword s4, s[2:3], 0x0\ns_waitcnt lgkmcnt(0) //fixed\ns_add_u32 s5, s4, 1\n",
    },
    PlantedFault {
        name: "scalar_memory_out_of_order",
        features: &[],
        code: "s_load_dword s4, s[2:3], 0x0\ns_load_dword s6, s[2:3], 0x4\ns_waitcnt lgkmcnt(1)\n\
               s_waitcnt lgkmcnt(0) //fixed\ns_add_u32 s5, s4, 1\n",
    },
    PlantedFault {
        name: "lds",
        features: &[],
        code: "ds_read_b32 v1, v2\nds_read_b32 v3, v2 offset:4\ns_waitcnt lgkmcnt(2)\ns_waitcnt lgkmcnt(1) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "lds_beside_scalar_memory",
        features: &[],
        // The one that is left may be the access to LDS.
        code: "ds_read_b32 v1, v2\ns_load_dword s4, s[2:3], 0x0\ns_waitcnt lgkmcnt(1)\ns_waitcnt lgkmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "message",
        features: &["gfx11"],
        code: "s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_GET_REALTIME)\ns_waitcnt lgkmcnt(0) //fixed\ns_add_u32 s5, s4, 1\n",
    },
    PlantedFault {
        name: "image_address",
        features: &["images"],
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\n\
               image_sample_lz v6, v1, s[4:11], s[12:15] dmask:0x1\ns_waitcnt vmcnt(0)\n",
    },
    PlantedFault {
        name: "flat_address",
        features: &["gfx9"],
        // Later loads do not order it: it may complete as an access to LDS.
        code: "flat_load_dword v1, v[2:3]\nglobal_load_dword v5, v[2:3], off\ns_waitcnt vmcnt(1) lgkmcnt(0)\n\
               s_waitcnt vmcnt(0) lgkmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "flat_address_as_lds",
        features: &[],
        code: "flat_load_dword v1, v[2:3]\ns_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "accumulation_register",
        features: &["unified"],
        code: "global_load_dword a1, v[2:3], off\ns_waitcnt vmcnt(0) //fixed\nv_accvgpr_read_b32 v4, a1\n",
    },
    PlantedFault {
        name: "single_counter",
        features: &["single"],
        code: "global_load_dword v1, v[2:3], off\ns_waitcnt_vmcnt null, 0x1\ns_waitcnt_vmcnt null, 0x0 //fixed\nv_mov_b32 v4, v1\n",
    },
    PlantedFault {
        name: "stores_apart",
        features: &["gfx10", "gfx11"],
        // Stores have a counter of their own.
        code: "global_load_dword v1, v[2:3], off\nglobal_store_dword v[2:3], v6, off\ns_waitcnt vmcnt(1)\n\
               s_waitcnt vmcnt(0) //fixed\nv_mov_b32 v4, v1\n",
    },
];

impl PlantedFault {
    fn is_of_target(&self, target: &Target) -> bool {
        self.features.is_empty() || self.features.iter().any(|one| target.features.contains(one))
    }

    /// The code with the fault, or with its wait.
    fn kernel(&self, is_mended: bool) -> Kernel {
        let line = |line: &str| match line.strip_suffix(" //fixed") {
            Some(wait) if is_mended => format!("{wait}\n"),
            Some(_) => String::new(),
            None => format!("{line}\n"),
        };
        let code: String = self.code.lines().map(line).collect();
        kernel_of_case(self.name, &code)
    }
}

/// Code that is right for reasons that a careless count of operations would miss.
const RIGHT: [(&str, &str); 6] = [
    (
        "in_order",
        "global_load_dword v1, v[2:3], off\nglobal_load_dword v5, v[2:3], off\ns_waitcnt vmcnt(1)\nv_mov_b32 v4, v1\n",
    ),
    (
        "upper_half_during_a_load_of_the_lower",
        "global_load_short_d16 v1, v[2:3], off\nds_write_b16_d16_hi v2, v1\ns_waitcnt vmcnt(0)\n",
    ),
    (
        "lower_half_during_a_load_of_the_upper",
        "global_load_short_d16_hi v1, v[2:3], off\nds_write_b16 v2, v1\ns_waitcnt vmcnt(0)\n",
    ),
    ("lds_in_order", "ds_read_b32 v1, v2\nds_write_b32 v2, v6\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v4, v1\n"),
    (
        "same_queue",
        "global_load_dword v1, v[2:3], off\nglobal_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(0)\nv_mov_b32 v4, v1\n",
    ),
    (
        "halves",
        "global_load_short_d16 v1, v[2:3], off\nglobal_load_short_d16_hi v1, v[2:3], off\ns_waitcnt vmcnt(0)\nv_mov_b32 v4, v1\n",
    ),
];

/// The instruction does not say whether it has more addresses than its first one.
const RIGHT_WITH_IMAGES: (&str, &str) = (
    "image_without_size",
    "ds_read_b32 v2, v3\nimage_sample_lz v6, v1, s[4:11], s[12:15] dmask:0x1\ns_waitcnt vmcnt(0) lgkmcnt(0)\n",
);

/// A fault on one of several paths is not found: kernels that are written by hand have paths which no execution takes.
const ON_ONE_PATH: [(&str, &str); 3] = [
    ("one_of_two_paths", "s_cbranch_scc1 .Lplace\nglobal_load_dword v1, v[2:3], off\n.Lplace:\nv_mov_b32 v4, v1\n"),
    (
        "more_operations_on_one_path",
        "global_load_dword v1, v[2:3], off\ns_cbranch_scc1 .Lplace\nglobal_load_dword v5, v[2:3], off\n.Lplace:\n\
         s_waitcnt vmcnt(1)\nv_mov_b32 v4, v1\n",
    ),
    (
        "loop_carried",
        "s_mov_b32 s4, 0\n.Lplace:\nv_mov_b32 v4, v1\nglobal_load_dword v1, v[2:3], off\n\
         s_add_i32 s4, s4, 1\ns_cmp_lt_i32 s4, 9\ns_cbranch_scc1 .Lplace\n",
    ),
];

impl Target {
    /// The largest number of operations of LDS that are outstanding.
    fn lds_count(&self) -> usize {
        if self.features.contains(&"gfx9") { 15 } else { 63 }
    }
}

/// A load that so many later ones follow: the hardware issues the last of them when the first is over, if they are as many as
/// the counter can count.
fn full_counter_kernel(load: &str, later: usize) -> Kernel {
    let name = format!("full_{}_{later}", &load[..2]);
    let others = format!("{}\n", load.replacen("v1", "v5", 1)).repeat(later);
    kernel_of_case(&name, &format!("{load}\n{others}v_mov_b32 v4, v1\n"))
}

fn kernel_of_case(name: &str, code: &str) -> Kernel {
    let code = format!("{name}:\n{code}s_endpgm\n").replace(".Lplace", &format!(".L{name}_place"));
    Kernel { name: name.to_owned(), code }
}

/// Functions with a finding of the rule, with the reasons.
fn found(bench: &Workbench, target: &Target, kernels: &[Kernel]) -> BTreeSet<String> {
    let [_, (_, made)] = assemble_for(bench, target.name, "waits", kernels);
    let findings = lint_object(&made).unwrap().into_iter().filter(|one| one.rule.id == "wait");
    findings.map(|one| one.function.unwrap_or_default()).collect()
}

#[test]
fn loads_without_a_wait_are_found_on_every_generation() {
    let Some(bench) = Workbench::with_llvm(24, "waits of every generation") else { return };
    let (mut planted, mut problems) = (0, Vec::new());
    for target in &TARGETS {
        let own: Vec<&PlantedFault> = FAULTS.iter().filter(|fault| fault.is_of_target(target)).collect();
        planted += own.len();
        let wrong: Vec<Kernel> = own.iter().map(|fault| fault.kernel(false)).collect();
        let seen = found(&bench, target, &wrong);
        let missed = own.iter().filter(|fault| !seen.contains(fault.name));
        problems.extend(missed.map(|fault| format!("{}: {} is not found", target.name, fault.name)));
        let mut right: Vec<Kernel> = own.iter().map(|fault| fault.kernel(true)).collect();
        for (limit, load) in [(63, "global_load_dword v1, v[2:3], off"), (target.lds_count(), "ds_read_b32 v1, v2")] {
            right.push(full_counter_kernel(load, limit));
            planted += 1;
            if found(&bench, target, &[full_counter_kernel(load, limit - 1)]).is_empty() {
                problems.push(format!("{}: {limit} operations are taken for more ({load})", target.name));
            }
        }
        let with_images = Some(&RIGHT_WITH_IMAGES).filter(|_| target.features.contains(&"images"));
        let cases = RIGHT.iter().chain(&ON_ONE_PATH).chain(with_images);
        right.extend(cases.map(|(name, code)| kernel_of_case(name, code)));
        let alarms = found(&bench, target, &right);
        problems.extend(alarms.into_iter().map(|name| format!("{}: {name} has a finding", target.name)));
    }
    say(&format!("waits of every generation: {planted} faults"));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
