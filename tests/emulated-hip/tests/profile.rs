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
