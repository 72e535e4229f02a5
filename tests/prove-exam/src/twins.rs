//! Generated C programs at scale: the host and every target agree.

use crate::evidence::EvidenceRow;
use crate::workers::on_all_processors;
use hotswap_emulator::EmulatedDevice;
use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_rewrite_exam::exam;
use hotswap_userland::Workbench;

/// Programs of one source.
const PROGRAMS: u32 = 20;
/// Every target: its name, and whether it has waves of both sizes.
#[rustfmt::skip]
const TARGETS: &[(&str, bool)] = &[
    ("gfx900", false), ("gfx906", false), ("gfx908", false), ("gfx90a", false), ("gfx942", false), ("gfx950", false),
    ("gfx1030", true), ("gfx1031", true), ("gfx1032", true), ("gfx1033", true), ("gfx1034", true), ("gfx1035", true),
    ("gfx1036", true), ("gfx1100", true), ("gfx1101", true), ("gfx1102", true), ("gfx1103", true), ("gfx1150", true),
    ("gfx1151", true), ("gfx1152", true), ("gfx1153", true), ("gfx1200", true), ("gfx1201", true), ("gfx1250", false),
    ("gfx1250-strict", false),
];
/// The levels of optimisation.
const LEVELS: [&str; 2] = ["-O0", "-O3"];
const STRICT: &str = "gfx1250-strict";

/// A run of the programs of one source.
struct ScaleRun {
    clang: u32,
    gpu: &'static str,
    words: String,
}

/// All targets at both levels; compilers and sizes of waves take turns with the source.
fn runs(bench: &Workbench, seed: u64) -> Vec<ScaleRun> {
    let mut all = Vec::new();
    for (number, (gpu, both)) in TARGETS.iter().enumerate() {
        for (turn, level) in LEVELS.iter().enumerate() {
            let turn = number + turn + seed as usize;
            let wave = if *both && turn.is_multiple_of(2) { " -mwavefrontsize64" } else { "" };
            // The rewriter needs relocations where addresses in the code cannot be determined; LLVM 22 lacks relocations of it.
            let strict = *gpu == STRICT;
            let relocations = if strict { " -Wl,--emit-relocs" } else { "" };
            let clang = if strict { bench.versions.len() - 1 } else { turn % bench.versions.len() };
            all.push(ScaleRun { clang: bench.versions[clang], gpu, words: format!("{level}{wave}{relocations}") });
        }
    }
    all
}

/// Executed wave-instructions, or how a run differs.
fn check(bench: &Workbench, case: &TwinCase, run: &ScaleRun, expected: &[u8]) -> Result<u64, String> {
    let ScaleRun { clang, gpu, words } = run;
    if *gpu != STRICT {
        let found = case.check(bench, &TwinRun { clang: *clang, gpu, words }, expected);
        return found.map(|counts| counts.instructions).map_err(|failure| failure.to_string());
    }
    let object = case.compile(bench, &TwinRun { clang: *clang, gpu: "gfx1250", words });
    let made = exam::run(&object, false)
        .map_err(|refusals| twin_case_failure(&format!("refused: {refusals:?}"), case, words))?;
    let mut device = EmulatedDevice::new(STRICT).map_err(|error| twin_case_failure(&error.to_string(), case, words))?;
    device.instruction_budget = Some(20_000_000);
    let (memory, counts) =
        case.emulate(&made.bytes, &device).map_err(|error| twin_case_failure(&error.to_string(), case, words))?;
    if memory == expected { Ok(counts.instructions) } else { Err(twin_case_failure("other memory", case, words)) }
}

fn twin_case_failure(what: &str, case: &TwinCase, words: &str) -> String {
    format!("{} for {STRICT} {words}: {what}", case.name)
}

/// `sources` sources of 20 programs each, for every target.
///
/// # Panics
/// If a compiler fails.
pub fn run(bench: &Workbench, sources: u64) -> EvidenceRow {
    let header = include_str!("../../emulator-exam/twins/twin.h");
    let (mut total, mut instructions, mut failures) = (0, 0, Vec::new());
    for seed in 0..sources {
        let case = TwinCase::new(&format!("scale{seed}"), &generated_source(1000 + seed, PROGRAMS));
        let expected = case.host(bench, header);
        let runs = runs(bench, seed);
        for result in on_all_processors(&runs, |run| check(bench, &case, run, &expected)) {
            match result {
                Ok(count) => (total, instructions) = (total + 1, instructions + count),
                Err(failure) => failures.push(failure),
            }
        }
        println!("twins: source {} of {sources}, {} failures", seed + 1, failures.len());
    }
    failures.iter().for_each(|failure| println!("{failure}"));
    let programs = sources * u64::from(PROGRAMS);
    EvidenceRow {
        claim: "The emulator executes what clang makes as the source says".to_owned(),
        method: "generated C programs, compiled for the host and for each target at -O0 and -O3: the same memory"
            .to_owned(),
        cases: format!(
            "{programs} programs on {} targets, {total} runs, {instructions} wave-instructions",
            TARGETS.len()
        ),
        result: if failures.is_empty() {
            "the same memory".to_owned()
        } else {
            format!("{} runs differ", failures.len())
        },
        open: "floats are added, subtracted, multiplied and divided only".to_owned(),
        holds: failures.is_empty() && total > 0,
    }
}
