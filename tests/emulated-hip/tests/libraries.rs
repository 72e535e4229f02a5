//! Real libraries on emulated GPUs: hipCUB against the host's results; and the known fault of relabelled code whose host
//! part chooses kernels by the GPU's name, which only execution shows.

use hotswap_emulated_hip::EmulationBench;

const TEST: &str = "hipCUB on emulated GPUs";

#[test]
fn hipcub_computes_what_the_host_does_and_empty_kernels_do_not() {
    let Some(bench) = EmulationBench::new(TEST) else { return };
    bench.work.write("check.h", include_bytes!("../cases/check.h"));
    bench.compile("hipcub", include_str!("../cases/hipcub.hip"), &["gfx1030"], "");
    let run = bench.run("gfx1030", "", "./hipcub");
    assert_eq!(run.passed().lines().filter(|line| line.starts_with("right ")).count(), 6, "{}", run.output);
    // Relabelled by force: on gfx1031 hipCUB's host part starts kernels that have no code. HIP reports nothing, the
    // results are wrong.
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.work.run(&format!("{hotswap} retarget hipcub --to gfx1031 --allow names -o forced"));
    let forced = bench.run("gfx1031", "", "./forced");
    assert!(forced.output.contains("WRONG") && forced.code.is_some_and(|code| code > 0), "{}", forced.output);
    assert!(!forced.output.contains("illegal") && forced.messages().is_empty(), "{}", forced.error);
    // The same program on the GPU that it was compiled for.
    bench.run("gfx1030", "", "./forced").passed();
}

#[test]
fn rocrand_gives_the_numbers_of_its_host_generators() {
    let Some(bench) = EmulationBench::new("rocRAND on emulated GPUs") else { return };
    bench.work.write("check.h", include_bytes!("../cases/check.h"));
    bench.work.write("numbers.cpp", include_bytes!("../cases/numbers.cpp"));
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ numbers.cpp -o numbers -lamdhip64 -lrocrand");
    assert_eq!(bench.run("gfx1030", "", "./numbers").passed(), "right philox\nright threefry\n");
}
