//! Real libraries on emulated GPUs: algorithms of rocPRIM, hipCUB and rocThrust, generators of rocRAND, operators of ggml.
//!
//! Each program judges its results by the host's own. It runs on the GPU that it was compiled for, and relabelled on each of
//! that GPU's siblings with the shown name of the source (`docs/guide/gpu-names.md`). Relabelled without the shown name the host part
//! starts kernels that lack code: that is the planted fault, and it must be seen.

use crate::evidence::EvidenceRow;
use crate::workers::on_all_processors;
use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::skip;
use std::path::PathBuf;
use std::process::Command;

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

/// The directories of ggml's sources and of the headers that it needs; `cargo xtask prove` sets it.
const ENV_GGML: &str = "HOTSWAP_PROVE_GGML";
/// Operators of ggml: translation units of its back end for HIP.
const OPERATORS: [&str; 12] = [
    "acc", "argmax", "binbcast", "clamp", "concat", "cumsum", "diagmask", "norm", "scale", "softmax", "sumrows",
    "unary",
];
/// Results that the program judges.
const OPERATOR_RESULTS: usize = 15;

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

/// ggml's operators on each source and, retargeted, on its siblings; whether its sources are there.
fn operators(bench: &EmulationBench, hotswap: &str, tally: &mut LibraryTally) -> bool {
    let Some(directories) = std::env::var_os(ENV_GGML) else {
        skip("prove libraries: ggml", &format!("{ENV_GGML} is not set (`cargo xtask prove` sets it)"));
        return false;
    };
    let directories: Vec<PathBuf> = std::env::split_paths(&directories).collect();
    copy_sources(bench, &directories);
    let headers: String = (1..directories.len()).map(|number| format!(" -I$PWD/headers{number}")).collect();
    let include = format!("{headers} -Iggml/include -Iggml/src -Iggml/src/ggml-cuda -iquote .");
    bench.work.write("operators.hip", include_bytes!("../../emulated-hip/cases/ggml.hip"));
    // A header that ggml's build system makes.
    bench.work.write("ggml-version.h", b"#define GGML_VERSION \"\"\n#define GGML_COMMIT \"\"\n");
    bench.work.run(&format!(
        "for file in ggml ggml-quants; do gcc -O1 -w -D_GNU_SOURCE {include} -c ggml/src/$file.c -o $file.host.o; done
         g++ -O1 -w {include} -c ggml/src/ggml-threading.cpp -o ggml-threading.host.o"
    ));
    let units: Vec<String> = OPERATORS.iter().map(|name| format!("ggml/src/ggml-cuda/{name}.cu")).collect();
    let units: Vec<String> = units.into_iter().chain(["operators.hip".to_owned()]).collect();
    let gpus: String = SOURCES.iter().map(|(gpu, _)| format!(" --offload-arch={gpu}")).collect();
    on_all_processors(&units, |unit| {
        let name = unit.rsplit('/').next().unwrap_or(unit);
        let options = "-x hip -std=c++17 -O1 -w -DGGML_USE_HIP";
        bench.work.run(&format!("clang++-22 {options}{gpus} {include} -c {unit} -o {name}.o"));
    });
    // Of ggml's core only descriptions of tensors are used; the rest of it wants further libraries.
    bench.work.run(
        "clang++-22 --hip-link -fuse-ld=lld -Wl,--unresolved-symbols=ignore-all *.cu.o operators.hip.o *.host.o -o operators -lamdhip64 -lm",
    );
    for (source, siblings) in SOURCES {
        tally.judge(bench, (source, ""), "./operators", OPERATOR_RESULTS);
        for gpu in *siblings {
            bench.work.run(&format!("{hotswap} retarget operators --pairs '{source}=>{gpu}' -o operators.{gpu}"));
            tally.judge(bench, (gpu, ""), &format!("./operators.{gpu}"), OPERATOR_RESULTS);
        }
        println!("libraries: ggml for {source} and {} siblings, {} wrong", siblings.len(), tally.wrong.len());
    }
    true
}

/// Copies the sources to where the userland sees them.
fn copy_sources(bench: &EmulationBench, directories: &[PathBuf]) {
    for (number, directory) in directories.iter().enumerate() {
        let (from, to) = match number {
            0 => (directory.join("llama.cpp/ggml"), "ggml".to_owned()),
            _ => (directory.join("usr/include"), format!("headers{number}")),
        };
        let status = Command::new("cp").arg("-r").arg(&from).arg(bench.work.path(&to)).status();
        assert!(status.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
    }
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
    let has_operators = operators(&bench, &hotswap, &mut tally);
    tally.wrong.iter().for_each(|what| println!("{what}"));
    let LibraryTally { runs, results, wrong, planted, caught } = tally;
    Some(EvidenceRow {
        claim: "Device algorithms of real libraries give the host's results, relabelled ones too".to_owned(),
        method: format!(
            "rocPRIM, hipCUB, rocThrust, rocRAND{} under the real HIP runtime on emulated GPUs",
            if has_operators { " and operators of ggml" } else { "" }
        ),
        cases: format!(
            "{runs} runs on {} GPUs, {results} results; {planted} runs without the shown name must fail",
            SOURCES.iter().map(|(_, siblings)| 1 + siblings.len()).sum::<usize>()
        ),
        result: match wrong.len() {
            0 => format!("the host's results; {caught} of {planted} planted faults caught"),
            count => format!("{count} runs are wrong"),
        },
        open: "products of large matrices (rocBLAS) are not run".to_owned(),
        holds: wrong.is_empty() && caught == planted && runs > 0,
    })
}
