//! Generated C programs at scale: the host and every target agree.

use crate::evidence::EvidenceRow;
use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_userland::Workbench;

/// Programs of one source.
const PROGRAMS: u32 = 20;
/// Target, and arguments of clang.
#[rustfmt::skip]
const TARGETS: &[(&str, &str)] = &[
    ("gfx1030", "-O3"), ("gfx1036", "-O1 -mwavefrontsize64"), ("gfx1100", "-O3"), ("gfx1150", "-O2"), ("gfx1201", "-O3"),
    ("gfx1250", "-O0"), ("gfx1250", "-O3"),
];

/// `sources` sources of 20 programs each, for every target.
///
/// # Panics
/// If a compiler fails.
pub fn run(bench: &Workbench, sources: u64) -> EvidenceRow {
    let header = include_str!("../../emulator-exam/twins/twin.h");
    let (mut runs, mut instructions, mut failures) = (0, 0, Vec::new());
    for seed in 0..sources {
        let case = TwinCase::new(&format!("scale{seed}"), &generated_source(1000 + seed, PROGRAMS));
        let expected = case.host(bench, header);
        for (number, (gpu, words)) in TARGETS.iter().enumerate() {
            let clang = bench.versions[(number + seed as usize) % bench.versions.len()];
            match case.check(bench, &TwinRun { clang, gpu, words }, &expected) {
                Ok(counts) => (runs, instructions) = (runs + 1, instructions + counts.instructions),
                Err(failure) => failures.push(failure.to_string()),
            }
        }
        println!("twins: source {} of {sources}, {} failures", seed + 1, failures.len());
    }
    failures.iter().for_each(|failure| println!("{failure}"));
    let programs = sources * u64::from(PROGRAMS);
    EvidenceRow {
        claim: "The emulator executes what clang makes as the source says".to_owned(),
        method: "generated C programs, compiled for the host and for each target: the same memory".to_owned(),
        cases: format!(
            "{programs} programs on {} targets, {runs} runs, {instructions} wave-instructions",
            TARGETS.len()
        ),
        result: if failures.is_empty() {
            "the same memory".to_owned()
        } else {
            format!("{} runs differ", failures.len())
        },
        open: "floats are added, subtracted, multiplied and divided only".to_owned(),
        holds: failures.is_empty() && runs > 0,
    }
}
