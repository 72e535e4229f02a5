//! The HIP runtime on emulated GPUs: programs whose results only execution gives.

use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::say;

const CHECK: &[u8] = include_bytes!("../cases/check.h");
const RUNTIME: &str = include_str!("../cases/runtime.hip");
const MESSAGES: &str = include_str!("../cases/messages.hip");
const DEVICES: &str = include_str!("../cases/devices.hip");
const THREADS: &str = include_str!("../cases/threads.hip");

fn bench(test: &str) -> Option<EmulationBench> {
    let bench = EmulationBench::new(test)?;
    bench.work.write("check.h", CHECK);
    Some(bench)
}

#[test]
fn every_part_of_the_runtime_gives_right_results() {
    let Some(bench) = bench("the runtime on emulated GPUs") else { return };
    // One of each family: waves of 32 and of 64 lanes, four encodings.
    const GPUS: [&str; 4] = ["gfx900", "gfx1030", "gfx1100", "gfx1201"];
    bench.compile("runtime", RUNTIME, &GPUS, "");
    for gpu in GPUS {
        let run = bench.run(gpu, "", "./runtime");
        let checks = run.passed().lines().filter(|line| line.starts_with("right ")).count();
        say(&format!("runtime on {gpu}: {checks} checks, {:.2} s", run.time.as_secs_f64()));
        assert!(checks >= 25, "{}", run.output);
        assert!(run.messages().is_empty(), "{}", run.error);
        // Neither HIP nor a right program reads what nothing has written.
        let poisoned = bench.run(gpu, "HOTSWAP_EMULATE_POISON=1", "./runtime");
        assert_eq!(poisoned.passed(), run.output, "{gpu}: {}", poisoned.error);
    }
    // A planted fault: code that leaves memory as it was is seen.
    let broken = RUNTIME.replace("c[i] = a[i] + b[i];", "c[i] = a[i] + b[i] + (i == 77777);");
    bench.compile("broken", &broken, &["gfx1030"], "");
    let run = bench.run("gfx1030", "", "./broken vectors");
    assert_eq!((run.code, run.output.as_str()), (Some(1), "WRONG equal == n: false\n"), "{}", run.error);
}

#[test]
fn kernels_talk_to_the_host_while_they_run() {
    let Some(bench) = bench("messages of kernels") else { return };
    bench.compile("messages", MESSAGES, &["gfx1030"], "");
    let run = bench.run("gfx1030", "", "./messages printf");
    for thread in 0..40 {
        let line = format!("n 42 thread {thread} of a kernel");
        assert_eq!(run.passed().lines().filter(|printed| *printed == line).count(), 2, "{line}: {}", run.output);
    }
    bench.run("gfx1030", "", "./messages malloc").passed();
}

#[test]
fn assertions_and_traps_end_a_kernel() {
    let Some(bench) = bench("assertions of kernels") else { return };
    bench.compile("messages", MESSAGES, &["gfx1030"], "");
    let run = bench.run("gfx1030", "", "./messages assert");
    let all = format!("{}{}", run.output, run.error);
    assert!(all.contains("n != 42 && \"the answer\""), "{all}");
    assert_ne!(run.code, Some(0), "{all}");
    let run = bench.run("gfx1030", "", "./messages trap");
    assert_eq!(run.code, Some(3), "{}{}", run.output, run.error);
    let lines = run.messages();
    assert!(
        lines.len() == 1 && lines[0].contains("kernel _Z4trapv on gfx1030") && lines[0].contains("s_trap"),
        "{lines:?}"
    );
}

#[test]
fn several_gpus_have_code_of_their_own() {
    let Some(bench) = bench("several GPUs") else { return };
    bench.compile("devices", DEVICES, &["gfx1030", "gfx1100"], "");
    let run = bench.run("gfx1030,gfx1100", "", "./devices");
    assert!(run.passed().contains("device 0 gfx1030 wave 32") && run.output.contains("device 1 gfx1100 wave 32"));
    let run = bench.run("gfx1030,gfx1100", "HIP_VISIBLE_DEVICES=1", "./devices");
    assert!(run.passed().contains("device 0 gfx1100") && !run.output.contains("gfx1030"), "{}", run.output);
}

#[test]
fn work_groups_of_a_cooperative_launch_wait_for_each_other() {
    let Some(bench) = bench("cooperative launches") else { return };
    // By the global wave sync, and by atomics.
    bench.compile("grid", include_str!("../cases/grid.hip"), &["gfx1030", "gfx1100"], "");
    for gpu in ["gfx1030", "gfx1100"] {
        bench.run(gpu, "", "./grid").passed();
        bench.run(gpu, "HOTSWAP_EMULATE_THREADS=1", "./grid").passed();
    }
}

#[test]
fn threads_launch_at_the_same_time() {
    let Some(bench) = bench("threads that launch") else { return };
    bench.compile("threads", THREADS, &["gfx1030"], "");
    let run = bench.run("gfx1030", "", "./threads");
    say(&format!("18000 launches: {:.1} s", run.time.as_secs_f64()));
    assert_eq!(run.passed(), "right: 18000 launches\n");
}

#[test]
fn code_that_is_compiled_at_run_time_is_executed() {
    let Some(bench) = bench("code of hiprtc") else { return };
    bench.work.write("compiled.cpp", include_bytes!("../cases/compiled.cpp"));
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ compiled.cpp -o compiled -lamdhip64 -lhiprtc");
    bench.run("gfx1030", "", "./compiled").passed();
}
