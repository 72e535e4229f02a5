//! Real libraries on emulated GPUs: algorithms of rocPRIM, hipCUB and rocThrust, and generators of rocRAND.
//!
//! Each program judges its results by the host's own. It runs on the GPU that it was compiled for, and relabelled on each of
//! that GPU's siblings with the shown name of the source (`docs/names.md`). Relabelled without the shown name the host part
//! starts kernels that have no code: that is the planted fault, and it must be seen.

use crate::evidence::EvidenceRow;
use hotswap_emulated_hip::EmulationBench;

/// A GPU and those that run its code.
#[rustfmt::skip]
const SOURCES: &[(&str, &[&str])] = &[
    ("gfx1030", &["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    ("gfx1100", &["gfx1101", "gfx1102", "gfx1103"]),
];
/// GPUs that Debian's rocRAND has code for, and an emulated GPU can be.
const RANDOM: &[&str] =
    &["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"];

/// Programs: name, source, and how many results each judges.
const PROGRAMS: &[(&str, &str, usize)] = &[
    ("hipcub", include_str!("../../emulated-hip/cases/hipcub.hip"), 6),
    ("algorithms", include_str!("../../emulated-hip/cases/algorithms.hip"), 10),
];

/// The sums.
#[derive(Debug, Default)]
struct LibraryTally {
    runs: usize,
    results: usize,
    wrong: Vec<String>,
    planted: usize,
    caught: usize,
}

impl LibraryTally {
    /// A run that must give `expected` right results.
    fn judge(&mut self, bench: &EmulationBench, (gpu, variables): (&str, &str), command: &str, expected: usize) {
        let run = bench.run(gpu, variables, command);
        let right = run.output.lines().filter(|line| line.starts_with("right ")).count();
        self.runs += 1;
        self.results += right;
        if run.code != Some(0) || right != expected {
            self.wrong.push(format!("{command} on {gpu} {variables}: {}\n{}", run.output, run.error));
        }
    }

    /// A run that must give a wrong result, and not by a fault of the emulator.
    fn must_fail(&mut self, bench: &EmulationBench, gpu: &str, command: &str) {
        let run = bench.run(gpu, "", command);
        self.planted += 1;
        let is_seen =
            run.output.contains("WRONG") && run.code.is_some_and(|code| code > 0) && run.messages().is_empty();
        self.caught += usize::from(is_seen);
        if !is_seen {
            self.wrong.push(format!("{command} on {gpu} without the shown name is not seen: {}", run.output));
        }
    }
}

fn program(bench: &EmulationBench, hotswap: &str, names: &str, source: &str, tally: &mut LibraryTally) {
    let siblings = SOURCES.iter().find(|(gpu, _)| *gpu == source).map_or(&[][..], |(_, siblings)| siblings);
    for (name, text, expected) in PROGRAMS {
        bench.compile(name, text, &[source], "-std=c++17");
        tally.judge(bench, (source, ""), &format!("./{name}"), *expected);
        for gpu in siblings {
            bench.work.run(&format!("{hotswap} retarget {name} --to {gpu} --allow names -o {name}.{gpu}"));
            let shown = format!("LD_PRELOAD={names} HOTSWAP_NAMES={gpu}={source}");
            tally.judge(bench, (gpu, &shown), &format!("./{name}.{gpu}"), *expected);
            tally.must_fail(bench, gpu, &format!("./{name}.{gpu}"));
        }
        println!("libraries: {name} for {source} and {} siblings, {} wrong", siblings.len(), tally.wrong.len());
    }
}

/// The generators on GPUs that the library was compiled for, and with a relabelled library on one sibling of each source.
fn random(bench: &EmulationBench, hotswap: &str, names: &str, tally: &mut LibraryTally) {
    bench.work.write("numbers.cpp", include_bytes!("../../emulated-hip/cases/numbers.cpp"));
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ numbers.cpp -o numbers -lamdhip64 -lrocrand");
    for gpu in RANDOM {
        tally.judge(bench, (gpu, ""), "./numbers", 2);
    }
    for (source, siblings) in SOURCES {
        for gpu in siblings.iter().filter(|gpu| !has_code(bench, gpu)) {
            let library = "/usr/lib/x86_64-linux-gnu/librocrand.so.1";
            bench.work.run(&format!(
                "mkdir -p {gpu} && {hotswap} retarget {library} --pairs '{source}=>{gpu}' --allow names -o {gpu}/librocrand.so.1"
            ));
            let shown = format!("LD_PRELOAD={names}:$PWD/{gpu}/librocrand.so.1 HOTSWAP_NAMES={gpu}={source}");
            tally.judge(bench, (gpu, &shown), "./numbers", 2);
            bench.work.run(&format!("rm -r {gpu}"));
        }
        println!("libraries: rocRAND for the siblings of {source}, {} wrong", tally.wrong.len());
    }
}

/// Whether rocRAND was compiled for a GPU.
fn has_code(bench: &EmulationBench, gpu: &str) -> bool {
    bench.work.shell(&format!("grep -q amdhsa--{gpu} /usr/lib/x86_64-linux-gnu/librocrand.so.1")).status.success()
}

/// Runs all of it; `None` where the userland lacks something, after printing what.
///
/// # Panics
/// If a compiler or `hotswap` fails.
pub fn row() -> Option<EvidenceRow> {
    let bench = EmulationBench::new("prove libraries")?;
    let hotswap = bench.hotswap("prove libraries")?;
    let names = bench.names_library("prove libraries")?;
    bench.work.write("check.h", include_bytes!("../../emulated-hip/cases/check.h"));
    let mut tally = LibraryTally::default();
    for (source, _) in SOURCES {
        program(&bench, &hotswap, &names, source, &mut tally);
    }
    random(&bench, &hotswap, &names, &mut tally);
    tally.wrong.iter().for_each(|what| println!("{what}"));
    let LibraryTally { runs, results, wrong, planted, caught } = tally;
    Some(EvidenceRow {
        claim: "Device algorithms of real libraries give the host's results, relabelled ones too".to_owned(),
        method: "rocPRIM, hipCUB, rocThrust and rocRAND under the real HIP runtime on emulated GPUs".to_owned(),
        cases: format!(
            "{runs} runs on {} GPUs, {results} results; {planted} runs without the shown name must fail",
            SOURCES.iter().map(|(_, siblings)| 1 + siblings.len()).sum::<usize>()
        ),
        result: match wrong.len() {
            0 => format!("the host's results; {caught} of {planted} planted faults caught"),
            count => format!("{count} runs are wrong"),
        },
        open: "libraries of matrices (rocBLAS, ggml) are not run".to_owned(),
        holds: wrong.is_empty() && caught == planted && runs > 0,
    })
}
