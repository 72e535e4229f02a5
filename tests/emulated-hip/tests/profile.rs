//! Profiles by execution: the drain of a program with counters writes what its kernels executed.

use hotswap_emulated_hip::EmulationBench;

/// Counters of the drain's link, as HotSwap's driver adds them.
const DRAIN: &str = "-Xlinker -u -Xlinker hotswap_profile_drain -x none drain.a";

/// The counts of a function in a profile, without the words before them.
fn counts(bench: &EmulationBench, file: &str, function: &str) -> String {
    let shown = bench.work.run(&format!(
        "llvm-profdata-22 merge --failure-mode=any -o merged {file} && llvm-profdata-22 show --all-functions --counts merged"
    ));
    let of_function = shown.split_once(&format!("  {function}:\n")).unwrap_or_else(|| panic!("{function}: {shown}")).1;
    let lines = of_function.lines().take_while(|line| line.starts_with("    "));
    let numbers = |line: &&str| line.contains("Function count") || line.contains("Block counts");
    lines.filter(numbers).collect::<Vec<_>>().join("\n")
}

#[test]
fn counters_of_the_gpu_equal_those_of_the_host() {
    let Some(bench) = EmulationBench::new("profiles on emulated GPUs") else { return };
    bench.work.write("check.h", include_bytes!("../cases/check.h"));
    bench.work.write("twin.hip", include_bytes!("../cases/twin.hip"));
    bench.work.write("drain.a", hotswap_profile_drain::ARCHIVE);
    bench.work.run(&format!(
        "clang++-22 -O1 -w -x hip --offload-arch=gfx1030 -fprofile-instr-generate -fcoverage-mapping \
         -Xarch_device -fprofile-update=atomic -Xarch_device -mllvm=-disable-vp twin.hip {DRAIN} -o twin -lamdhip64"
    ));
    let run = bench.run("gfx1030", "LLVM_PROFILE_FILE=$PWD/twin.profraw", "./twin");
    run.passed();
    assert!(!run.error.contains("warning"), "{}", run.error);
    let found = bench.work.run("ls *.profraw");
    let device = found.lines().find(|name| name.contains("gfx1030")).unwrap_or_else(|| panic!("no profile: {found}"));
    let host = counts(&bench, "twin.profraw", "_Z5clampfff");
    assert!(host.contains("Function count: 500") && host.contains("Block counts"), "{host}");
    assert_eq!(counts(&bench, device, "_Z5clampfff"), host);
}

/// Instructions of the kernel `smooth`, and the program's output.
fn smoothed(bench: &EmulationBench, program: &str) -> (u64, String) {
    let run = bench.run("gfx1030", "HOTSWAP_EMULATE_COUNTERS=1", &format!("./{program}"));
    let row = run.error.lines().find(|line| line.contains("smooth")).unwrap_or_else(|| panic!("{}", run.error));
    let count = row.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    (count.unwrap_or_else(|| panic!("no count: {row}")), run.passed().to_owned())
}

#[test]
fn a_profile_saves_instructions_of_the_example() {
    let Some(bench) = EmulationBench::new("examples/pgo on emulated GPUs") else { return };
    bench.work.write("clamp.hip", include_bytes!("../../../examples/pgo/clamp.hip"));
    bench.work.write("drain.a", hotswap_profile_drain::ARCHIVE);
    let clang =
        "clang++-22 -O2 --offload-arch=gfx1030 -Xarch_device -fprofile-update=atomic -Xarch_device -mllvm=-disable-vp";
    bench.work.run(&format!(
        "{clang} -x hip clamp.hip -o plain -lamdhip64 && {clang} -fprofile-generate -x hip clamp.hip {DRAIN} -o counted -lamdhip64"
    ));
    bench.run("gfx1030", "LLVM_PROFILE_FILE=$PWD/counted.profraw", "./counted").passed();
    bench.work.run(&format!(
        "llvm-profdata-22 merge -o clamp.profdata *.profraw && {clang} -fprofile-use=clamp.profdata -x hip clamp.hip -o used -lamdhip64"
    ));
    let [plain, used] = ["plain", "used"].map(|program| smoothed(&bench, program));
    assert_eq!(plain.1, used.1);
    hotswap_userland::say(&format!(
        "examples/pgo on gfx1030, -O2: {} instructions, with the profile {}",
        plain.0, used.0
    ));
    assert!(used.0 * 100 <= plain.0 * 98, "{} and {}", plain.0, used.0);
}

/// A way to count, and how many times as many instructions its waves may execute.
struct CountingCost {
    version: u32,
    options: &'static str,
    most: f64,
}

#[rustfmt::skip]
const COUNTING_COSTS: &[CountingCost] = &[
    CountingCost { version: 22, options: COUNTS, most: 1.8 },
    CountingCost { version: 22, options: "-fprofile-generate", most: 1.5 },
    CountingCost { version: 23, options: COUNTS, most: 2.7 },
    CountingCost { version: 23, options: "-fprofile-generate", most: 2.1 },
    CountingCost { version: 24, options: COUNTS, most: 2.4 },
    CountingCost { version: 24, options: "-fprofile-generate", most: 1.9 },
    CountingCost { version: 24, options: "-fprofile-generate -Xarch_device -mllvm=-offload-pgo-sampling=3", most: 1.4 },
];

/// The front end's counters: those of all clangs are the same.
const COUNTS: &str = "-fprofile-instr-generate";

/// The factors of docs/guide/profiles.md, of the programs that the wrapper makes, and their counts.
#[test]
fn counters_cost_no_more_instructions_than_documented() {
    const TEST: &str = "cost of counters";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    let wrapper = hotswap.replace("/bin/hotswap", "/bin/hotswap-clang++");
    bench.work.write("clamp.hip", include_bytes!("../../../examples/pgo/clamp.hip"));
    let mut counts = Vec::new();
    for CountingCost { version, options, most } in COUNTING_COSTS {
        let rocm = if *version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" };
        let clang = format!(
            "HOTSWAP_CLANG=$(command -v clang++-{version}) {wrapper} {rocm} -O2 --offload-arch=gfx1030 -x hip clamp.hip"
        );
        bench
            .work
            .run(&format!("rm -f *.profraw; {clang} -o plain -lamdhip64 && {clang} {options} -o counted -lamdhip64"));
        let [plain, counting] = ["plain", "counted"].map(|program| smoothed(&bench, program));
        assert_eq!(plain.1, counting.1);
        let factor = counting.0 as f64 / plain.0 as f64;
        hotswap_userland::say(&format!("clang {version} {options}: {factor:.2} times the instructions"));
        assert!(factor <= *most, "clang {version} {options}: {factor}");
        if *options == COUNTS {
            counts.push(bench.work.run(&format!(
                "llvm-profdata-{version} merge -o device.profdata gfx1030.*.profraw && \
                 llvm-profdata-{version} show --all-functions --counts device.profdata | grep -v uniformity"
            )));
        }
    }
    assert!(counts[0].contains("Function count: 4096"), "{}", counts[0]);
    assert!(counts.iter().all(|own| *own == counts[0]), "{}", counts.join("\n"));
}
