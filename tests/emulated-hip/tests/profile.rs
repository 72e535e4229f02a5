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
