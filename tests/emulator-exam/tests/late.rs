//! Late completion: code that clang makes waits for what it reads; without one kind of wait, a fault says so.

use hotswap_emulator::{EmulatedDevice, PlantedFault};
use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_userland::{Workbench, say};
use std::path::Path;

/// GPUs, and waits of which each kernel needs one.
const GPUS: &[(&str, &[&str])] = &[
    ("gfx90a", &["s_waitcnt"]),
    ("gfx942", &["s_waitcnt"]),
    ("gfx1030", &["s_waitcnt"]),
    ("gfx1100", &["s_waitcnt"]),
    ("gfx1201", &["s_wait_kmcnt", "s_wait_loadcnt", "s_wait_dscnt"]),
    ("gfx1250", &["s_wait_kmcnt", "s_wait_loadcnt", "s_wait_dscnt"]),
];

fn cases() -> Vec<TwinCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("twins");
    let read = |name: &str| std::fs::read_to_string(directory.join(format!("{name}.cpp"))).unwrap();
    let names = ["bytes", "calls", "pairs", "sgemm", "sha256"];
    let mut cases: Vec<TwinCase> = names.iter().map(|name| TwinCase::new(name, &read(name))).collect();
    cases.push(TwinCase::new("generated", &generated_source(6, 8)));
    cases
}

#[test]
fn waits_are_enough_and_needed() {
    let Some(bench) = Workbench::new("late") else { return };
    bench.write("twin.h", include_bytes!("../twins/twin.h"));
    let (mut runs, mut failures) = (0, Vec::new());
    for (gpu, waits) in GPUS {
        let mut seen = vec![false; waits.len()];
        for case in cases() {
            bench.write(&format!("{}.cpp", case.name), case.source().as_bytes());
            for words in ["-O0", "-O3"] {
                let object = case.compile(&bench, &TwinRun { clang: bench.versions[0], gpu, words });
                let run = |planted: Option<PlantedFault>| {
                    let mut device = EmulatedDevice::new(gpu).unwrap();
                    (device.late_completion, device.planted) = (true, planted);
                    device.instruction_budget = Some(20_000_000);
                    case.emulate(&object, &device).err().map(|failure| failure.to_string())
                };
                runs += 1;
                failures.extend(run(None).map(|what| format!("{} for {gpu} {words}: {what}", case.name)));
                for (wait, seen) in waits.iter().zip(&mut seen) {
                    let skipped = run(Some(PlantedFault::Skipped((*wait).to_owned())));
                    *seen |= skipped.is_some_and(|what| what.contains("before the wait"));
                }
            }
        }
        let missed = waits.iter().zip(seen).filter(|(_, seen)| !seen);
        failures.extend(missed.map(|(wait, _)| format!("{gpu}: no kernel needs {wait}")));
    }
    say(&format!("late: {runs} runs"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
