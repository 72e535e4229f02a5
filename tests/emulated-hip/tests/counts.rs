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

/// Code compiled at run time has no name of a file, and its bytes are overwritten after it was loaded. The compiler is comgr's,
/// of the LLVM of clang 22 here.
#[test]
fn code_compiled_at_run_time_counts() {
    let Some(counted) = CountBench::new("counts of code compiled at run time") else { return };
    counted.bench.work.write("modules.hip", include_bytes!("../cases/counted-modules.hip"));
    for &version in &counted.bench.work.versions {
        counted.program(version, "gfx1030", "modules.hip", "modules");
        let directory = format!("hiprtc-{version}");
        let run = counted.run(&directory, "gfx1030", "p.profraw", "$B/modules hiprtc");
        run.passed();
        assert!(!run.error.contains("warning"), "clang {version}: {}", run.error);
        let counts = counted.counts(22, &directory);
        assert_eq!(counts.get("count"), Some(&(3 * 64)), "clang {version}: {counts:?}");
    }
}

/// Runs that share a name for their profiles.
struct SharedName {
    /// Of `LLVM_PROFILE_FILE`.
    pattern: &'static str,
    /// Commands of a shell.
    commands: &'static str,
    launches: u64,
    /// LLVM's runtime empties the host's file when a program starts and appends when it ends, in several writes and without a
    /// lock. Where processes end at once that file may be torn (without our code, too: 71 of 2,000 runs of five processes), so
    /// the host's counts are no measure there. Children of a fork have the parent's `%p` in the name of the host's file (10 of 300
    /// runs of four processes were torn).
    is_host_torn: bool,
}

const AT_ONCE: &str = "$B/runs 1 3 & $B/runs 2 3 & $B/runs 3 3 & wait";
const FORKED: &str = "$B/runs 1 1 && $B/runs 2 1 3";

#[rustfmt::skip]
const SHARED_NAMES: &[SharedName] = &[
    SharedName { pattern: "default.profraw", commands: AT_ONCE, launches: 6, is_host_torn: true },
    SharedName { pattern: "x/p.profraw", commands: AT_ONCE, launches: 6, is_host_torn: true },
    SharedName { pattern: "p.profraw", commands: "$B/runs 2 1 4", launches: 10, is_host_torn: true },
    SharedName { pattern: "p.profraw", commands: "$B/runs 1 1 && $B/runs 2 1", launches: 2, is_host_torn: false },
    SharedName { pattern: "%m.profraw", commands: FORKED, launches: 9, is_host_torn: false },
    SharedName { pattern: "%0m.profraw", commands: FORKED, launches: 9, is_host_torn: false },
    SharedName { pattern: "%00m.profraw", commands: FORKED, launches: 9, is_host_torn: false },
    SharedName { pattern: "%12m.profraw", commands: AT_ONCE, launches: 6, is_host_torn: false },
    SharedName { pattern: "%p.profraw", commands: FORKED, launches: 9, is_host_torn: true },
];

#[test]
fn runs_that_share_a_name_lose_nothing() {
    let Some(counted) = CountBench::new("counts of runs") else { return };
    counted.bench.work.write("runs.hip", include_bytes!("../cases/counted-runs.hip"));
    for &version in &counted.bench.work.versions {
        counted.program(version, "gfx1030", "runs.hip", "runs");
        for (number, shared) in SHARED_NAMES.iter().enumerate() {
            let SharedName { pattern, commands, launches, is_host_torn } = shared;
            let directory = format!("runs-{version}-{number}");
            let run = counted.run(&directory, "gfx1030", pattern, &format!("sh -c 'export PIDS=; {commands}'"));
            run.passed();
            let context = format!("clang {version}, {pattern}: {commands}: {}", run.error);
            assert!(!run.error.contains("warning"), "{context}");
            let directory = if pattern.starts_with("x/") { format!("{directory}/x") } else { directory };
            assert_eq!(counted.counts(version, &directory).get("_Z5countPi"), Some(&(launches * 64)), "{context}");
            if !is_host_torn {
                // The host's own counts are those of the same processes.
                assert_eq!(counted.host_launches(version, &directory), *launches, "{context}");
            }
        }
    }
}

/// A run of Python, which has no drain, with a library that has one.
struct PythonEnd {
    variables: &'static str,
    end: &'static str,
    signal: Option<i32>,
    is_counted: bool,
}

#[rustfmt::skip]
const PYTHON_ENDS: &[PythonEnd] = &[
    PythonEnd { variables: "", end: "return", signal: None, is_counted: true },
    PythonEnd { variables: "", end: "SIGTERM", signal: Some(15), is_counted: false },
    PythonEnd { variables: "HOTSWAP_PROFILE_ENDS=SIGTERM,SIGABRT", end: "SIGTERM", signal: Some(15), is_counted: true },
    PythonEnd { variables: "HOTSWAP_PROFILE_ENDS=SIGTERM,SIGABRT", end: "SIGABRT", signal: Some(6), is_counted: true },
    PythonEnd { variables: "HOTSWAP_PROFILE_ENDS=SIGTERM,SIGABRT", end: "return", signal: None, is_counted: true },
    // Python handles this one and then ends itself by it, with the default action: no code of the library runs.
    PythonEnd { variables: "HOTSWAP_PROFILE_ENDS=SIGINT", end: "SIGINT", signal: Some(2), is_counted: false },
    PythonEnd { variables: "HOTSWAP_PROFILE_EVERY=1", end: "snapshot", signal: None, is_counted: true },
];

#[test]
fn libraries_in_python_are_profiled_at_signals_and_now_and_then() {
    const TEST: &str = "counts of libraries in Python";
    let Some(counted) = CountBench::new(TEST) else { return };
    if !counted.bench.work.shell("python3 -c 'import ctypes'").status.success() {
        return hotswap_userland::skip(TEST, "python3 is missing, or has no ctypes");
    }
    counted.bench.work.write("library.hip", include_bytes!("../cases/counted-library.hip"));
    counted.bench.work.write("counted.py", include_bytes!("../cases/counted.py"));
    for &version in &counted.bench.work.versions {
        counted.library(version, "gfx1030", "library.hip", "library.so");
        for (number, PythonEnd { variables, end, signal, is_counted }) in PYTHON_ENDS.iter().enumerate() {
            let directory = format!("python-{version}-{number}");
            // A runner of tests may ignore signals, and programs inherit that.
            let command = format!("env --default-signal=INT,TERM,ABRT {variables} python3 $B/counted.py {end}");
            let run = counted.run(&directory, "gfx1030", "p.profraw", &command);
            let context = format!("clang {version}, {variables} {end}: {}", run.error);
            assert!(run.output.contains("done") && !run.error.contains("hotswap-profile-drain"), "{context}");
            assert_eq!(run.signal, *signal, "{context}");
            let has_profile = counted.bench.work.shell(&format!("ls {directory}/gfx*")).status.success();
            assert_eq!(has_profile, *is_counted, "{context}");
            if has_profile {
                let counts = counted.counts(version, &directory);
                assert_eq!(counts.get("_Z5countPi"), Some(&(2 * 64)), "{context}: {counts:?}");
            }
        }
    }
}
