//! Programs of csmith: the host and the targets agree.
//!
//! They are compiled as C, without HIP: csmith's source is not changed, only its header is another one (`csmith/csmith.h`),
//! which stores a checksum after each variable. A kernel is one work-item: csmith's variables are shared.
//!
//! Absent on purpose: programs that the host does not end in a second (csmith does not promise that they end), and runs that
//! take more instructions than the budget. Both are counted.

use crate::evidence::EvidenceRow;
use crate::workers::on_all_processors;
use hotswap_emulator::EmulatedDevice;
use hotswap_emulator_exam::TwinCase;
use hotswap_userland::{Workbench, skip};

/// The unpacked packages `csmith` and `libcsmith-dev`; `cargo xtask prove` sets it.
const ENV_CSMITH: &str = "HOTSWAP_PROVE_CSMITH";
const PROGRAM: &str = include_str!("../csmith/program.c");
const HEADER: &str = include_str!("../csmith/csmith.h");
const GPUS: [&str; 6] = ["gfx1030", "gfx1101", "gfx1201", "gfx1250", "gfx90a", "gfx942"];
const LEVELS: [&str; 2] = ["-O0", "-O3"];
/// Targets and levels of one program, in turn.
const RUNS: usize = 4;
/// A program of csmith takes thousands of instructions, or loops for ever.
const BUDGET: u64 = 30_000_000;
/// Volatile variables, structures of bits, unions and pointers are on by default.
const WORDS: &str = "--no-argc --concise --max-funcs 6";
const COMMON: &str = "-w -fwrapv -fno-strict-aliasing -ffp-contract=off -I.";

/// A program with the host's memory.
struct CsmithProgram {
    seed: u64,
    expected: Vec<u8>,
}

/// A run of one program on one target.
struct CsmithRun<'p> {
    program: &'p CsmithProgram,
    gpu: &'static str,
    level: &'static str,
    clang: u32,
}

/// The result of a run.
enum CsmithOutcome {
    Same(u64),
    TooLong,
    Different(String),
}

/// Copies csmith and its header to the bench; `false` after printing why that is not possible.
fn unpack(bench: &Workbench) -> bool {
    let Some(directories) = std::env::var_os(ENV_CSMITH) else {
        skip("prove csmith", &format!("{ENV_CSMITH} is not set (`cargo xtask prove` sets it)"));
        return false;
    };
    let directories: Vec<_> = std::env::split_paths(&directories).collect();
    for (file, name) in [("usr/bin/csmith", "csmith"), ("usr/include/csmith/safe_math.h", "safe_math.h")] {
        let found = directories.iter().map(|directory| directory.join(file)).find(|path| path.exists());
        let Some(found) = found else {
            skip("prove csmith", &format!("{ENV_CSMITH} has no {file}"));
            return false;
        };
        std::fs::copy(found, bench.path(name)).expect("scratch is writable");
    }
    bench.write("csmith.h", HEADER.as_bytes());
    bench.write("program.c", PROGRAM.as_bytes());
    true
}

/// The program of a seed, if the host ends it.
fn program(bench: &Workbench, seed: u64) -> Option<CsmithProgram> {
    let clang = bench.versions[0];
    bench.run(&format!("chmod +x csmith && ./csmith -s {seed} {WORDS} -o p{seed}.c"));
    bench.run(&format!("clang-{clang} -O1 {COMMON} -DSOURCE='\"p{seed}.c\"' program.c -o p{seed}.host"));
    let ran = bench.shell(&format!("timeout 1 ./p{seed}.host"));
    bench.remove(&format!("p{seed}.host"));
    let expected = ran.stdout;
    (ran.status.success() && !expected.is_empty()).then_some(CsmithProgram { seed, expected })
}

fn judge(bench: &Workbench, run: &CsmithRun<'_>) -> CsmithOutcome {
    let CsmithRun { program: CsmithProgram { seed, expected }, gpu, level, clang } = run;
    let object = format!("p{seed}.{gpu}{level}.co");
    let words = "-x c -nogpulib -ffreestanding -nostdlibinc --target=amdgcn-amd-amdhsa";
    let source = format!("-DSOURCE='\"p{seed}.c\"' program.c");
    bench.run(&format!("clang-{clang} {words} -mcpu={gpu} {level} {COMMON} {source} -o {object}"));
    let bytes = bench.read(&object);
    bench.remove(&object);
    let mut device = match EmulatedDevice::new(gpu) {
        Ok(device) => device,
        Err(error) => return different_outcome_at(error.to_string(), seed, gpu, level, clang),
    };
    device.instruction_budget = Some(BUDGET);
    match TwinCase::new("csmith", PROGRAM).emulate(&bytes, &device) {
        Ok((memory, counts)) if memory == *expected => CsmithOutcome::Same(counts.instructions),
        Ok((memory, _)) => different_outcome_at(first_difference(expected, &memory), seed, gpu, level, clang),
        Err(failure) if failure.to_string().contains("budget is exhausted") => CsmithOutcome::TooLong,
        Err(failure) => different_outcome_at(failure.to_string(), seed, gpu, level, clang),
    }
}

fn different_outcome_at(
    what: String,
    seed: &u64,
    gpu: &&'static str,
    level: &&'static str,
    clang: &u32,
) -> CsmithOutcome {
    CsmithOutcome::Different(format!("seed {seed} {gpu} {level} clang {clang}: {what}"))
}

fn first_difference(expected: &[u8], memory: &[u8]) -> String {
    let number = expected.iter().zip(memory).position(|(a, b)| a != b).unwrap_or(expected.len().min(memory.len())) / 4;
    format!("the first other checksum is number {number}")
}

/// The runs of a program: targets and levels take turns with its number, compilers too.
fn runs<'p>(bench: &Workbench, number: usize, program: &'p CsmithProgram) -> Vec<CsmithRun<'p>> {
    let versions = &bench.versions;
    let one = |turn: usize| {
        let turn = number * RUNS + turn;
        let clang = versions[(number + turn) % versions.len()];
        CsmithRun { program, gpu: GPUS[turn % GPUS.len()], level: LEVELS[turn / GPUS.len() % 2], clang }
    };
    (0..RUNS).map(one).collect()
}

/// That many programs; `None` where csmith is missing, after printing so.
///
/// # Panics
/// If a compiler fails.
pub fn row(bench: &Workbench, count: u64) -> Option<EvidenceRow> {
    if !unpack(bench) {
        return None;
    }
    let seeds: Vec<u64> = (1..=count).collect();
    let programs: Vec<CsmithProgram> =
        on_all_processors(&seeds, |seed| program(bench, *seed)).into_iter().flatten().collect();
    println!("csmith: {} of {count} programs end on the host", programs.len());
    let all: Vec<CsmithRun<'_>> =
        programs.iter().enumerate().flat_map(|(number, program)| runs(bench, number, program)).collect();
    let (mut same, mut instructions, mut long, mut failures) = (0, 0, 0, Vec::new());
    for outcome in on_all_processors(&all, |run| judge(bench, run)) {
        match outcome {
            CsmithOutcome::Same(count) => (same, instructions) = (same + 1, instructions + count),
            CsmithOutcome::TooLong => long += 1,
            CsmithOutcome::Different(what) => failures.push(what),
        }
    }
    failures.iter().for_each(|failure| println!("{failure}"));
    Some(EvidenceRow {
        claim: "The emulator executes csmith's programs as C says".to_owned(),
        method: "csmith's programs, compiled for the host and for targets at -O0 and -O3: the same checksum after each variable"
            .to_owned(),
        cases: format!(
            "{} programs on {} targets, {same} runs, {instructions} wave-instructions",
            programs.len(),
            GPUS.len()
        ),
        result: match failures.len() {
            0 => "the same checksums".to_owned(),
            count => format!("{count} runs differ"),
        },
        open: format!(
            "{} programs that the host does not end, {long} runs of more than {BUDGET} instructions",
            count - programs.len() as u64
        ),
        holds: failures.is_empty() && same > long,
    })
}
