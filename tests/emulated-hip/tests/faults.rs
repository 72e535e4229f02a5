//! Kernels that fail, GPUs that are full, settings that are wrong: HIP's own error, one line of ours, never a crash.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};

const FAULTS: &str = include_str!("../cases/faults.hip");

fn bench(test: &str) -> Option<EmulationBench> {
    let bench = EmulationBench::new(test)?;
    bench.compile("faults", FAULTS, &["gfx1030"], "-g");
    Some(bench)
}

/// The only line of ours, of a program that saw HIP's error and could not go on with the GPU.
fn line<'r>(run: &'r ProgramRun, error: &str) -> &'r str {
    assert_eq!((run.code, run.signal), (Some(3), None), "{}{}", run.output, run.error);
    assert!(run.output.contains(error) && run.output.contains("afterwards 1"), "{}", run.output);
    let lines = run.messages();
    assert_eq!(lines.len(), 1, "{}", run.error);
    lines[0]
}

#[test]
fn accesses_outside_of_memory_are_memory_faults() {
    let Some(bench) = bench("kernels out of bounds") else { return };
    for case in ["beyond", "null", "host", "freed"] {
        let run = bench.run("gfx1030", "", &format!("./faults {case}"));
        let line = line(&run, "an illegal memory access was encountered");
        for part in [
            "kernel _Z5storePil on gfx1030 (GPU 0): invalid write of 4 bytes at 0x",
            " at PC 0x",
            "lane 0",
            "(faults.hip:7) `",
            "global_store_b",
        ] {
            assert!(
                line.contains(part) || part == "global_store_b" && line.contains("global_store_dword"),
                "{part}: {line}"
            );
        }
    }
}

#[test]
fn more_frames_than_scratch_are_a_fault() {
    let Some(bench) = bench("kernels with many frames") else { return };
    let run = bench.run("gfx1030", "", "./faults deep");
    let line = line(&run, "an illegal memory access was encountered");
    assert!(
        line.contains("of scratch, of which a lane has 1024 bytes") && line.contains("[_Z6framesiPVi+0x"),
        "{line}"
    );
    // The limit of the program counts, as on hardware.
    let enough = bench.run("gfx1030", "", "./faults frames 8192");
    assert!(enough.code == Some(0) && enough.output.contains("status 0"), "{}{}", enough.output, enough.error);
    let less = bench.run("gfx1030", "", "./faults frames");
    assert_eq!(less.code, Some(3), "{}{}", less.output, less.error);
}

#[test]
fn processes_end_as_they_want() {
    let Some(bench) = EmulationBench::new("children of fork") else { return };
    bench.compile("exits", include_str!("../cases/exits.hip"), &["gfx1030"], "");
    for (case, variables, code, lines) in [
        ("before", "", 0, 0),
        ("reset", "", 0, 0),
        ("after", "", 0, 1),
        ("running", "HOTSWAP_EMULATE_BUDGET=200000", 8, 1),
    ] {
        let run = bench.run("gfx1030", variables, &format!("./exits {case}"));
        assert_eq!((run.code, run.messages().len()), (Some(code), lines), "{case}: {}{}", run.output, run.error);
        assert!(
            case != "after" || run.messages()[0].contains("a child of fork uses the GPUs of its parent"),
            "{}",
            run.error
        );
    }
}

#[test]
fn code_that_cannot_be_executed_is_named() {
    let Some(bench) = EmulationBench::new("kernels that cannot be executed") else { return };
    let gpus = ["gfx1030", "gfx90a"];
    bench.compile("faults", FAULTS, &gpus, "");
    for gpu in gpus {
        for (case, error, reason) in [
            ("misaligned", "an illegal memory access was encountered", "atomic access of 4 bytes at 0x"),
            ("unknown", "unspecified launch failure", "unknown instruction s_atc_probe ("),
            ("illegal", "unspecified launch failure", "bytes that are no instruction (ffffffff"),
            ("nowhere", "unspecified launch failure", "the program counter is not at code at PC 0x14"),
        ] {
            let run = bench.run(gpu, "", &format!("./faults {case}"));
            let line = line(&run, error);
            for part in [format!("kernel _Z{}{case}Pi on {gpu}", case.len()), reason.to_owned(), " at PC 0x".to_owned()]
            {
                assert!(line.contains(&part), "{part}: {line}");
            }
        }
    }
}

#[test]
fn a_kernel_that_never_ends_is_ended() {
    let Some(bench) = bench("endless kernels") else { return };
    let run = bench.run("gfx1030", "HOTSWAP_EMULATE_BUDGET=200000", "./faults forever");
    let line = line(&run, "unspecified launch failure");
    assert!(
        line.contains("kernel _Z7foreverPVi on gfx1030 (GPU 0): the instruction budget is exhausted at PC 0x"),
        "{line}"
    );
    assert!(line.contains("[_Z7foreverPVi+0x"), "{line}");
}

#[test]
fn a_full_gpu_is_hips_error() {
    let Some(bench) = bench("full GPUs") else { return };
    let run = bench.run("gfx1030", "", "./faults memory");
    assert_eq!((run.code, run.messages().len()), (Some(0), 0), "{}{}", run.output, run.error);
    let run = bench.run("gfx1030", "HOTSWAP_EMULATE_MEMORY=64", "./faults memory");
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.error);
}

#[test]
fn wrong_settings_are_one_line_and_no_gpu() {
    let Some(bench) = bench("wrong settings") else { return };
    for (gpus, variables, expected) in [
        ("", "", "HOTSWAP_EMULATE names no GPU"),
        ("gfx9999", "", "`gfx9999` is no known processor"),
        ("gfx10-3-generic", "", "a target for several GPUs"),
        ("gfx1030", "HOTSWAP_EMULATE_BUDGET=x", "HOTSWAP_EMULATE_BUDGET: `x` is not a positive number"),
    ] {
        let run = bench.run(gpus, variables, "./faults beyond");
        assert_eq!((run.code, run.messages().len()), (Some(10), 1), "{}{}", run.output, run.error);
        assert!(run.messages()[0].contains(expected), "{}", run.error);
    }
}

/// Runs the cases of `access.hip`: name, exit code, and a part of the line of ours.
#[test]
fn a_gpu_accesses_what_the_program_has_allowed() {
    let Some(bench) = EmulationBench::new("access") else { return };
    bench.compile("access", include_str!("../cases/access.hip"), &["gfx1030"], "-std=c++17");
    for (case, part) in [
        (
            "peer",
            "that is memory of gfx1030 (GPU 1), to which this GPU has no access: hipDeviceEnablePeerAccess gives it",
        ),
        ("unset", "this GPU has no access to that memory: hipMemSetAccess (or hipMemPoolSetAccess) gives it"),
        ("readonly", "this GPU may only read that memory: hipMemSetAccess has set it so"),
    ] {
        let run = bench.run("gfx1030,gfx1030", "", &format!("./access {case}"));
        assert!(run.code == Some(3) && run.output.contains("an illegal memory access"), "{case}: {}", run.output);
        assert!(run.messages().len() == 1 && run.messages()[0].contains(part), "{case}: {}", run.error);
    }
    // The addresses of freed memory are not used again at once.
    let run = bench.run("gfx1030", "", "./access freed");
    assert!(run.code == Some(3) && run.messages().len() == 1, "{:?}: {}{}", run.code, run.output, run.error);
    assert!(run.messages()[0].contains("invalid write of 4 bytes"), "{}", run.error);
    for case in ["enabled", "set", "read", "unmapped"] {
        let run = bench.run("gfx1030,gfx1030", "", &format!("./access {case}"));
        assert_eq!((run.code, run.messages().len()), (Some(0), 0), "{case}: {}{}", run.output, run.error);
    }
}

/// The exit code says which of memory and LDS is not zero.
#[test]
fn poison_shows_what_nothing_has_written() {
    let Some(bench) = EmulationBench::new("poison") else { return };
    bench.compile("access", include_str!("../cases/access.hip"), &["gfx1030"], "-std=c++17");
    for (variables, code) in [("", 0), ("HOTSWAP_EMULATE_POISON=1", 3)] {
        let run = bench.run("gfx1030", variables, "./access unwritten");
        assert_eq!((run.code, run.messages().len()), (Some(code), 0), "{variables}: {}{}", run.output, run.error);
    }
}

#[test]
fn counters_of_cycles_run_with_the_clock_that_the_gpu_states() {
    let Some(bench) = EmulationBench::new("clock") else { return };
    // gfx11's counter has 20 bits.
    let gpus = ["gfx900", "gfx1030", "gfx1201"];
    bench.compile("access", include_str!("../cases/access.hip"), &gpus, "-std=c++17");
    for gpu in gpus {
        let run = bench.run(gpu, "", "./access clock");
        assert_eq!(run.code, Some(0), "{gpu}: {}{}", run.output, run.error);
    }
}
