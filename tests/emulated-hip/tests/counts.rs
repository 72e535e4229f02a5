//! Counts of device code by construction: the profiles of a program hold its launches, in whatever way the code was loaded,
//! and also where other processes write to the same names.

use hotswap_emulated_hip::CountBench;

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
