//! Counts of device code by construction: the profiles of a program hold its launches, in whatever way the code was loaded,
//! and also where other processes write to the same names.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};
use std::collections::BTreeMap;

/// Counters of the drain's link, as HotSwap's driver adds them.
const DRAIN: &str = "-Xlinker -u -Xlinker hotswap_profile_drain -x none drain.a";

/// A bench with the drain, and the device runtimes of the clangs that need one.
struct CountBench {
    bench: EmulationBench,
}

impl CountBench {
    fn new(test: &str) -> Option<Self> {
        let bench = EmulationBench::new(test)?;
        bench.work.write("drain.a", hotswap_profile_drain::ARCHIVE);
        bench.work.write("runtime.c", include_bytes!("../../profile-bench/standin/device_runtime.c"));
        for version in bench.work.versions.iter().filter(|version| **version > 22) {
            bench.work.run(&format!(
                "clang-{version} --target=amdgcn-amd-amdhsa -nogpulib -nostdlibinc -ffreestanding -flto \
                 -Xclang -mcode-object-version=none -fPIC -fvisibility=hidden -O2 -c runtime.c -o runtime.o && \
                 llvm-ar-{version} crs runtime-{version}.a runtime.o"
            ));
        }
        Some(Self { bench })
    }

    /// A clang with counters in host and device code, up to the inputs.
    fn clang(version: u32) -> String {
        let own = if version > 22 {
            format!(
                "${{ROCM:+--rocm-path=$ROCM}} -Xoffload-linker $PWD/runtime-{version}.a -Xarch_device -mllvm=-offload-pgo-sampling=0"
            )
        } else {
            "-Xarch_device -fprofile-update=atomic".to_owned()
        };
        format!("clang++-{version} -O1 -w {own} -fprofile-instr-generate -fcoverage-mapping")
    }

    /// Compiles sources to a program with the drain.
    fn program(&self, version: u32, gpus: &str, sources: &str, output: &str) {
        let clang = Self::clang(version);
        self.bench
            .work
            .run(&format!("{clang} --offload-arch={gpus} -x hip {sources} {DRAIN} -lamdhip64 -lhiprtc -o {output}"));
    }

    /// Runs a program in a directory of its own, with a pattern for its profiles.
    fn run(&self, directory: &str, gpus: &str, pattern: &str, command: &str) -> ProgramRun {
        self.bench.work.run(&format!("mkdir -p {directory}"));
        let library = "$PWD/lib/hotswap/emulated";
        let variables = format!("LD_LIBRARY_PATH={library} HOTSWAP_EMULATE={gpus} LLVM_PROFILE_FILE={pattern} B=$PWD");
        self.bench.script(&format!("export {variables}\ncd {directory}\n"), command)
    }

    /// How often each function was entered, by the profiles of devices of a directory.
    fn counts(&self, version: u32, directory: &str) -> BTreeMap<String, u64> {
        self.counts_of(version, directory, "gfx*.profraw*", "Function count: ")
    }

    /// How often the loop with the launches ran, by the profiles of the host.
    fn host_launches(&self, version: u32, directory: &str) -> u64 {
        let counts = self.counts_of(version, directory, "$(ls | grep -v ^gfx | grep profraw)", "Block counts: [");
        counts.iter().find(|(name, _)| name.ends_with("_ZL4worki")).map_or(0, |(_, count)| *count)
    }

    /// The first number after `key` of each function, in the profiles with those names.
    fn counts_of(&self, version: u32, directory: &str, files: &str, key: &str) -> BTreeMap<String, u64> {
        let shown = self.bench.work.run(&format!(
            "cd {directory} && llvm-profdata-{version} merge --failure-mode=any -o merged.profdata {files} && \
             llvm-profdata-{version} show --all-functions --counts merged.profdata"
        ));
        let mut counts = BTreeMap::new();
        let mut name = String::new();
        for line in shown.lines() {
            let word = line.trim();
            if let Some(count) = word.strip_prefix(key) {
                let count = count.split([',', ']']).nth(usize::from(key.ends_with('['))).unwrap_or_default();
                *counts.entry(name.clone()).or_default() += count.trim().parse::<u64>().unwrap_or_default();
            } else if line.starts_with("  ") && word.ends_with(':') {
                word.trim_end_matches(':').clone_into(&mut name);
            }
        }
        counts
    }
}

/// One code object with counters, as a file.
fn code_object(bench: &CountBench, version: u32, number: u32) {
    let clang = CountBench::clang(version);
    // Clang 23 calls its old chain of tools for device code alone, which needs bitcode of the code.
    let lto = if version > 22 { "-foffload-lto -noprofilelib" } else { "" };
    bench.bench.work.run(&format!(
        "{clang} --offload-arch=gfx1030 --cuda-device-only --no-gpu-bundle-output {lto} -DNUMBER={number} \
         -x hip counted.hip -o object-{version}-{number}"
    ));
}

/// The program may free, overwrite or unmap the memory that it loaded a code object from; HIP does not keep it.
#[test]
fn modules_count_whatever_becomes_of_their_files() {
    let Some(counted) = CountBench::new("counts of modules") else { return };
    counted.bench.work.write("counted.hip", include_bytes!("../cases/counted.hip"));
    counted.bench.work.write("modules.hip", include_bytes!("../cases/counted-modules.hip"));
    for &version in &counted.bench.work.versions {
        (0..3).for_each(|number| code_object(&counted, version, number));
        counted.program(version, "gfx1030", "modules.hip", "modules");
        let objects: String = (0..3).map(|number| format!(" $B/object-{version}-{number}")).collect();
        for way in ["file", "data", "freed", "unmapped", "shared"] {
            let directory = format!("{way}-{version}");
            let run = counted.run(&directory, "gfx1030", "p.profraw", &format!("$B/modules {way}{objects}"));
            run.passed();
            assert!(!run.error.contains("warning"), "clang {version}, {way}: {}", run.error);
            // Two, three and four launches of 64 lanes.
            let counts = counted.counts(version, &directory);
            assert_eq!(counts.get("count"), Some(&(9 * 64)), "clang {version}, {way}: {counts:?}");
            assert_eq!(counts.get("_Z4morei"), Some(&(9 * 32)), "clang {version}, {way}: {counts:?}");
            assert_eq!(counts.get("_Z5neverPi"), Some(&0), "clang {version}, {way}: {counts:?}");
        }
    }
}

/// Runs that share a name for their profiles: a pattern, and commands of a shell.
const SHARED_NAMES: [(&str, &str, u64); 9] = [
    // LLVM's runtime empties the host's file when a program starts, and appends when it ends.
    ("default.profraw", "$B/runs 1 3 & $B/runs 2 3 & $B/runs 3 3 & wait", 6),
    ("x/p.profraw", "$B/runs 1 3 & $B/runs 2 3 & $B/runs 3 3 & wait", 6),
    ("p.profraw", "$B/runs 2 1 4", 10),
    ("p.profraw", "$B/runs 1 1 && $B/runs 2 1", 2),
    ("%m.profraw", "$B/runs 1 1 && $B/runs 2 1 3", 9),
    ("%0m.profraw", "$B/runs 1 1 && $B/runs 2 1 3", 9),
    ("%00m.profraw", "$B/runs 1 1 && $B/runs 2 1 3", 9),
    ("%12m.profraw", "$B/runs 1 3 & $B/runs 2 3 & $B/runs 3 3 & wait", 6),
    ("%p.profraw", "$B/runs 1 1 && $B/runs 2 1 3", 9),
];

#[test]
fn runs_that_share_a_name_lose_nothing() {
    let Some(counted) = CountBench::new("counts of runs") else { return };
    counted.bench.work.write("runs.hip", include_bytes!("../cases/counted-runs.hip"));
    for &version in &counted.bench.work.versions {
        counted.program(version, "gfx1030", "runs.hip", "runs");
        for (number, (pattern, command, launches)) in SHARED_NAMES.iter().enumerate() {
            let directory = format!("runs-{version}-{number}");
            let run = counted.run(&directory, "gfx1030", pattern, &format!("sh -c 'export PIDS=; {command}'"));
            run.passed();
            let context = format!("clang {version}, {pattern}: {command}: {}", run.error);
            assert!(!run.error.contains("warning"), "{context}");
            let directory = if pattern.starts_with("x/") { format!("{directory}/x") } else { directory };
            assert_eq!(counted.counts(version, &directory).get("_Z5countPi"), Some(&(launches * 64)), "{context}");
            // The host's own counts are those of the same processes.
            let host = counted.host_launches(version, &directory);
            assert_eq!(host, *launches, "{context}");
        }
    }
}
