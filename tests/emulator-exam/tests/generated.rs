//! Generated C programs: host and GPUs agree.

use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_userland::{Workbench, say};

/// Programs of one source.
const PROGRAMS: u32 = 16;
/// Target, and arguments of clang.
const RUNS: &[(&str, &str)] = &[
    ("gfx900", "-O0"),
    ("gfx906", "-O3"),
    ("gfx908", "-O3"),
    ("gfx90a", "-O0"),
    ("gfx90a", "-O3"),
    ("gfx942", "-O3"),
    ("gfx950", "-O2"),
    ("gfx1030", "-O0"),
    ("gfx1030", "-O3"),
    ("gfx1036", "-O2 -mwavefrontsize64"),
    ("gfx1100", "-O0"),
    ("gfx1101", "-O3"),
    ("gfx1150", "-O3 -mwavefrontsize64"),
    ("gfx1200", "-O0"),
    ("gfx1201", "-O3"),
    ("gfx1250", "-O0"),
    ("gfx1250", "-O3"),
];

#[test]
fn generated_programs_agree() {
    let Some(bench) = Workbench::new("generated") else { return };
    let header = include_str!("../twins/twin.h");
    let sources = if hotswap_userland::everything() { 20 } else { 2 };
    let mut failures = Vec::new();
    let mut counts = (0, 0);
    for seed in 1..=sources {
        let case = TwinCase::new(&format!("generated{seed}"), &generated_source(seed, PROGRAMS));
        let expected = case.host(&bench, header);
        for (number, (gpu, words)) in RUNS.iter().enumerate() {
            let clang = bench.versions[(number + seed as usize) % bench.versions.len()];
            match case.check(&bench, &TwinRun { clang, gpu, words }, &expected) {
                Ok(run) => counts = (counts.0 + 1, counts.1 + run.instructions),
                Err(failure) => failures.push(failure.to_string()),
            }
        }
    }
    say(&format!("generated: {} runs of {PROGRAMS} programs, {} wave-instructions", counts.0, counts.1));
    assert!(failures.is_empty(), "{} runs differ\n{}", failures.len(), failures.join("\n"));
}
