//! `hotswap run`: programs on emulated GPUs, as a user starts them.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};
use hotswap_userland::say;

const HELLO: &str = include_str!("../../../examples/hello-hip/hello.hip");
const SIBLINGS: [&str; 6] = ["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];

/// Runs the command with these words, without any variable of the library.
fn run(bench: &EmulationBench, hotswap: &str, words: &str) -> ProgramRun {
    bench.script("", &format!("{hotswap} run {words}"))
}

#[test]
fn retargeted_programs_run_on_each_gpu() {
    const TEST: &str = "hello on emulated GPUs";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("plain", HELLO, &["gfx1030"], "");
    bench.work.run(&format!("{hotswap} retarget plain --to {} -o hello", SIBLINGS.join(",")));
    for gpu in ["gfx1030"].iter().chain(&SIBLINGS) {
        let ran = run(&bench, &hotswap, &format!("--gpu {gpu} -- ./hello"));
        assert_eq!(
            (ran.code, ran.output.as_str(), ran.error.as_str()),
            (Some(0), "hello from 64 threads\n", ""),
            "{gpu}"
        );
        say(&format!("hello on {gpu}: {:.2} s", ran.time.as_secs_f64()));
    }
    // HIP took the entry of the GPU itself.
    let ran = bench.script("export AMD_LOG_LEVEL=3\n", &format!("{hotswap} run --gpu gfx1034 -- ./hello"));
    assert!(ran.error.contains("native code object for device: amdgcn-amd-amdhsa--gfx1034"), "{}", ran.error);
    // A GPU without an entry: HIP's own end, whatever it is, and one line before it.
    let ran = run(&bench, &hotswap, "--gpu gfx1100,gfx1034 -- ./hello");
    assert!(ran.code != Some(0) && ran.messages().is_empty(), "{:?} {}", ran.code, ran.error);
    let notes: Vec<&str> = ran.error.lines().filter(|line| line.contains("[HS0445]")).collect();
    assert!(
        matches!(notes.as_slice(), [note] if note.contains("no code for gfx1100, only for gfx1030, gfx1031")),
        "{notes:?}"
    );
}

/// A program whose only code is SPIR-V, which Debian's comgr does not compile: HIP ends it by a segmentation fault, without a word.
#[test]
fn code_that_comgr_does_not_compile_is_told_before() {
    const TEST: &str = "SPIR-V on emulated GPUs";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("plain", HELLO, &["gfx1030"], "");
    bench.work.run(&format!(
        "printf '\\003\\002\\043\\007\\000\\006\\001\\000\\000\\000\\000\\000\\001\\000\\000\\000\\000\\000\\000\\000' > any.spv; \
         {hotswap} add plain hip-spirv64-amd-amdhsa--amdgcnspirv=any.spv -o both && {hotswap} remove both gfx1030 -o any"
    ));
    let ran = run(&bench, &hotswap, "--gpu gfx1031 -- ./any");
    let notes: Vec<&str> = ran.error.lines().filter(|line| line.contains("[HS0445]")).collect();
    assert!(ran.code != Some(0), "{}", ran.error);
    assert!(
        matches!(notes.as_slice(), [note] if note.contains("for gfx1031 it has SPIR-V alone") && note.contains("COMGR_DISABLE_SPIRV")),
        "{}",
        ran.error
    );
    let doctor = bench.script("", &format!("{hotswap} doctor"));
    assert!(doctor.output.contains("it compiles no SPIR-V (amdgcnspirv)"), "{}", doctor.output);
}

/// A grid of three dimensions: each work-group writes its number.
const GROUPS: &str = "#include <hip/hip_runtime.h>
#include <cstdio>
__global__ void groups(int *p) {
  int group = blockIdx.x + 3 * (blockIdx.y + 5 * blockIdx.z);
  p[group * 32 + threadIdx.x] = group * 1000 + threadIdx.x + gridDim.y;
}
int main() {
  int *p, values[105 * 32], right = 0;
  if (hipMalloc(&p, sizeof values) != hipSuccess) return 1;
  groups<<<dim3(3, 5, 7), 32>>>(p);
  if (hipMemcpy(values, p, sizeof values, hipMemcpyDeviceToHost) != hipSuccess) return 2;
  for (int i = 0; i < 105 * 32; i++) right += values[i] == i / 32 * 1000 + i % 32 + 5;
  printf(\"%d right\\n\", right);
  return right != 105 * 32;
}";

/// The directions of RDNA 3 differ in the registers in which work-groups find their numbers.
#[test]
fn work_groups_have_their_numbers_in_each_direction_of_rdna_3() {
    const TEST: &str = "work-groups of RDNA 3";
    const GPUS: [&str; 4] = ["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    for source in GPUS {
        bench.compile("plain", GROUPS, &[source], "");
        let targets: Vec<&str> = GPUS.into_iter().filter(|gpu| *gpu != source).collect();
        let made =
            bench.work.run(&format!("rm -f groups; {hotswap} retarget plain --to {} -o groups", targets.join(",")));
        bench.work.run(&format!("{hotswap} verify groups"));
        for target in targets {
            let ran = run(&bench, &hotswap, &format!("--gpu {target} -- ./groups"));
            assert_eq!((ran.code, ran.output.as_str()), (Some(0), "3360 right\n"), "{source}=>{target}: {made}");
        }
    }
}

const STORE: &str = "#include <hip/hip_runtime.h>
__global__ void k(int *p) { *p = 42; }
extern \"C\" int store() {
  int *p = nullptr, value = 0;
  if (hipMalloc(&p, sizeof value) != hipSuccess) return 1;
  k<<<1, 1>>>(p);
  if (hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost) != hipSuccess) return 2;
  return value;
}";

/// The code is in a library that the program is linked with, found by its run path.
#[test]
fn code_of_libraries_is_looked_for() {
    const TEST: &str = "libraries of run";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("libstore.so", STORE, &["gfx1030"], "-shared -fPIC");
    bench.work.write("main.c", b"int store(void); int main(void) { return store() != 42; }");
    bench.work.run("cc main.c -o main ./libstore.so -Wl,-rpath,'$ORIGIN'");
    let ran = run(&bench, &hotswap, "--gpu gfx1030 -- ./main");
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""));
    let ran = run(&bench, &hotswap, "--gpu gfx1030,gfx1031 -- ./main");
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    assert!(ran.error.contains("./libstore.so: code for the GPU"), "{}", ran.error);
    assert!(ran.error.contains("it has no code for gfx1031, only for gfx1030;"), "{}", ran.error);
}

#[test]
fn exit_codes_and_counters_are_the_programs() {
    const TEST: &str = "exit codes and counters";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("hello", HELLO, &["gfx1030"], "");
    let ran = run(&bench, &hotswap, "--gpu gfx1030 --counters -- ./hello");
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "hello from 64 threads\n"), "{}", ran.error);
    let row = ran.error.lines().find(|line| line.contains("5countEPj")).expect("the kernel has a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    // One dispatch of two waves.
    assert_eq!((words[0], words[1], words[3]), ("1", "2", "gfx1030"), "{row}");
    assert!(words[2].parse::<u64>().is_ok_and(|count| (8..200).contains(&count)), "{row}");
    let ran = run(&bench, &hotswap, "--gpu gfx1030 -- sh -c 'echo \"$1\"; exit 7' x 'a b'");
    assert_eq!((ran.code, ran.output.as_str(), ran.error.as_str()), (Some(7), "a b\n", ""));
}

/// comgr ends the program by a memory fault where it has no directory for temporary files.
#[test]
fn an_unusable_directory_for_temporary_files_is_a_diagnostic() {
    const TEST: &str = "TMPDIR of run";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("hello", HELLO, &["gfx1030"], "");
    for setting in ["TMPDIR=/nonexistent", "TMPDIR=/proc", "TEMP=./hello"] {
        let ran = bench.script("", &format!("env -u TMPDIR {setting} {hotswap} run --gpu gfx1030 -- ./hello"));
        assert_eq!((ran.code, ran.output.as_str()), (Some(14), ""), "{setting}: {}", ran.error);
        let value = setting.split('=').collect::<Vec<_>>();
        let is_named = value.iter().all(|part| ran.error.contains(part));
        assert!(is_named && ran.error.contains("[HS0505]") && ran.error.lines().count() == 1, "{}", ran.error);
    }
}

#[test]
fn wrong_arguments_are_diagnostics() {
    const TEST: &str = "wrong arguments of run";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    for (words, code, expected) in [
        ("-- true", 2, "--gpu"),
        ("--gpu gfx1030", 2, "PROGRAM"),
        ("--gpu gfx1 -- true", 2, "no known processor"),
        ("--gpu gfx1030 --budget 0 -- true", 2, "--budget"),
        ("--gpu gfx10-3-generic -- true", 11, "HS0202"),
        ("--gpu gfx1030 -- /nonexistent/program", 10, "HS0108"),
    ] {
        let ran = run(&bench, &hotswap, words);
        assert_eq!(ran.code, Some(code), "{words}: {}", ran.error);
        assert!(ran.error.contains(expected), "{words}: {}", ran.error);
    }
    let ran = run(&bench, &hotswap, "--gpu gfx1250 -- true");
    assert!(ran.code == Some(0) && ran.error.contains("HS0430"), "{}", ran.error);
}
