//! Planted faults: an instruction that does nothing, or has its sources exchanged, changes the memory of some twin.

use hotswap_emulator::{EmulatedDevice, PlantedFault};
use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_userland::{Workbench, say};
use std::collections::BTreeSet;

/// The sources that judge.
const TWINS: &[&str] = &["integers", "floats", "halves", "calls", "reduce", "bytes", "atomics", "sgemm"];

/// Instructions whose absence no memory shows: waits, hints, caches, and the end, which goes on into padding.
const INVISIBLE: &[&str] = &[
    "s_waitcnt",
    "s_waitcnt_vscnt",
    "s_waitcnt_depctr",
    "s_delay_alu",
    "s_clause",
    "s_nop",
    "s_inst_prefetch",
    "s_set_inst_prefetch_distance",
    "s_sendmsg",
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "v_nop",
];

/// Instructions that the twins execute without depending on them; `instructions.rs` has cases for them, each of which fails
/// where the instruction is left out.
const BY_INSTRUCTION: &[&str] = &[
    "ds_read_u16",
    "s_brev_b32",
    "s_mul_i32",
    "v_cmp_gt_u64",
    "v_cmp_lt_u32",
    "v_cmp_lt_u64",
    "v_cmpx_ne_u64",
    "v_fmac_f32",
    "v_mbcnt_hi_u32_b32",
    "v_trunc_f64",
    // In the twins it sets the base of scratch, which the emulator does not need.
    "s_setreg_b32",
];

struct Judge {
    case: TwinCase,
    object: Vec<u8>,
    expected: Vec<u8>,
}

impl Judge {
    /// Whether the memory differs, or the kernel does not end.
    fn sees(&self, gpu: &str, planted: PlantedFault) -> bool {
        let mut device = EmulatedDevice::new(gpu).unwrap();
        device.planted = Some(planted);
        device.instruction_budget = Some(300_000);
        device.threads = 1;
        self.case.emulate(&self.object, &device).map_or(true, |(memory, _)| memory != self.expected)
    }
}

fn judges(bench: &Workbench, gpu: &str) -> (Vec<Judge>, BTreeSet<&'static str>) {
    let header = include_str!("../twins/twin.h");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("twins");
    let read = |name: &str| std::fs::read_to_string(directory.join(format!("{name}.cpp"))).unwrap();
    let mut cases: Vec<TwinCase> = TWINS.iter().map(|name| TwinCase::new(name, &read(name))).collect();
    cases.push(TwinCase::new("generated", &generated_source(3, 16)));
    let mut mnemonics = BTreeSet::new();
    let judge = |case: TwinCase| {
        let expected = case.host(bench, header);
        let object = case.compile(bench, &TwinRun { clang: bench.versions[0], gpu, words: "-O3" });
        let mut device = EmulatedDevice::new(gpu).unwrap();
        device.counters = true;
        let (memory, counts) = case.emulate(&object, &device).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(memory == expected, "{} differs without a planted fault", case.name);
        mnemonics.extend(counts.by_mnemonic.into_keys());
        Judge { case, object, expected }
    };
    let judges = cases.into_iter().map(judge).collect();
    (judges, mnemonics)
}

fn unseen(bench: &Workbench, gpu: &str) -> Vec<String> {
    let (judges, mnemonics) = judges(bench, gpu);
    let visible: Vec<&str> =
        mnemonics.into_iter().filter(|name| !INVISIBLE.contains(name) && !BY_INSTRUCTION.contains(name)).collect();
    let mut unseen = Vec::new();
    for name in &visible {
        if !judges.iter().any(|judge| judge.sees(gpu, PlantedFault::Skipped((*name).to_owned()))) {
            unseen.push(format!("{gpu}: {name} skipped"));
        }
    }
    for name in visible.iter().filter(|name| name.starts_with("v_sub_") || name.starts_with("v_lshlrev_b32")) {
        if !judges.iter().any(|judge| judge.sees(gpu, PlantedFault::Exchanged((*name).to_owned()))) {
            unseen.push(format!("{gpu}: {name} with exchanged sources"));
        }
    }
    say(&format!("planted: {} instructions of {gpu}, {} faults not seen", visible.len(), unseen.len()));
    unseen
}

#[test]
fn planted_faults_are_seen() {
    let Some(bench) = Workbench::new("planted") else { return };
    let unseen: Vec<String> = ["gfx90a", "gfx1030", "gfx1100"].iter().flat_map(|gpu| unseen(&bench, gpu)).collect();
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}
