//! HIP on emulated GPUs of gfx9 and CDNA: the runtime's parts, its own kernels, libraries, and what programs ask a GPU.

use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::{everything, say};

/// GPUs with `gcnArchName`, compute units, LDS of a work-group, waves of 64.
const GPUS: [(&str, u32, u32); 5] = [
    ("gfx906:sramecc+:xnack-", 60, 65536),
    ("gfx908:sramecc+:xnack-", 120, 65536),
    ("gfx90a:sramecc+:xnack-", 104, 65536),
    ("gfx942:sramecc+:xnack-", 304, 65536),
    ("gfx950:sramecc+:xnack-", 256, 163840),
];

fn processor(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

fn bench(test: &str) -> Option<EmulationBench> {
    let bench = EmulationBench::new(test)?;
    bench.work.write("check.h", include_bytes!("../cases/check.h"));
    Some(bench)
}

#[test]
fn every_part_of_the_runtime_gives_right_results() {
    let Some(bench) = bench("the runtime on emulated CDNA") else { return };
    // Clang takes the time: by default one with and one without scratch that hardware addresses.
    let all = GPUS.map(|(name, ..)| processor(name));
    let gpus: Vec<&str> = all.into_iter().filter(|gpu| everything() || ["gfx90a", "gfx942"].contains(gpu)).collect();
    bench.compile("runtime", include_str!("../cases/runtime.hip"), &gpus, "");
    bench.work.write("compiled.cpp", include_bytes!("../cases/compiled.cpp"));
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ compiled.cpp -o compiled -lamdhip64 -lhiprtc");
    for gpu in gpus {
        let run = bench.run(gpu, "", "./runtime");
        let checks = run.passed().lines().filter(|line| line.starts_with("right ")).count();
        say(&format!("runtime on {gpu}: {checks} checks, {:.2} s", run.time.as_secs_f64()));
        assert!(checks >= 25, "{gpu}: {}", run.output);
        assert!(run.messages().is_empty(), "{gpu}: {}", run.error);
        bench.run(gpu, "", "./compiled").passed();
    }
}

#[test]
fn programs_see_the_gpus_attributes() {
    let Some(bench) = bench("attributes of emulated CDNA") else { return };
    bench.compile("attributes", include_str!("../cases/attributes.hip"), &["gfx90a"], "");
    for (name, units, lds) in GPUS {
        let run = bench.run(processor(name), "", "./attributes");
        assert_eq!(run.output, format!("{name} {units} {lds} 64\n"), "{}", run.error);
    }
}

#[test]
fn kernels_print_synchronise_and_find_each_other() {
    let Some(bench) = bench("messages on emulated CDNA") else { return };
    let gpus = ["gfx90a", "gfx942"];
    bench.compile("messages", include_str!("../cases/messages.hip"), &gpus, "");
    bench.compile("grid", include_str!("../cases/grid.hip"), &gpus, "");
    bench.compile("devices", include_str!("../cases/devices.hip"), &gpus, "");
    for gpu in gpus {
        let run = bench.run(gpu, "", "./messages printf");
        let line = "n 42 thread 17 of a kernel";
        assert_eq!(run.passed().lines().filter(|printed| *printed == line).count(), 2, "{gpu}: {}", run.output);
        bench.run(gpu, "", "./grid").passed();
    }
    let run = bench.run(&gpus.join(","), "", "./devices");
    assert!(run.passed().contains("device 0 gfx90a:sramecc+:xnack- wave 64"), "{}", run.output);
    assert!(run.output.contains("device 1 gfx942:sramecc+:xnack- wave 64"), "{}", run.output);
}

#[test]
fn hipcub_computes_what_the_host_does() {
    let Some(bench) = bench("hipCUB on emulated CDNA") else { return };
    let gpus: &[&str] = if everything() { &["gfx90a", "gfx942"] } else { &["gfx90a"] };
    bench.compile("hipcub", include_str!("../cases/hipcub.hip"), gpus, "");
    for gpu in gpus {
        let run = bench.run(gpu, "", "./hipcub");
        say(&format!("hipCUB on {gpu}: {:.2} s", run.time.as_secs_f64()));
        assert_eq!(run.passed().lines().filter(|line| line.starts_with("right ")).count(), 6, "{gpu}: {}", run.output);
    }
}
