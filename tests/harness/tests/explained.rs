//! The examples of `hotswap explain`: each one that a few small files suffice for is run as it is printed, and ends with its code.
//!
//! Invariants: a code is run here, or stands in the list of those that are not, with the reason.

use hotswap_report::explanations::EXPLANATIONS;
use hotswap_tests::{Bench, Call, parallel};

/// Makes the files that the examples name.
const FILES: &str = r#"set -e
cat > app.hip <<'SOURCE'
#include <hip/hip_runtime.h>
__global__ void add(float *a) { a[threadIdx.x] += 1.0f; }
int main() { add<<<1, 64>>>(nullptr); return 0; }
SOURCE
sed 's/^__global__ void add.*/#ifdef __gfx1030__\n&\n#else\n__global__ void add(float *a) { a[0] = 2; }\n#endif/' app.hip > by-name.hip
cat > use.hip <<'SOURCE'
#include <hip/hip_runtime.h>
__device__ int helper(int);
__global__ void use(int *p) { *p = helper(*p); }
SOURCE
echo '__attribute__((device)) int helper(int x) { return x + 1; }' > helper.hip
hip="clang++-22 --offload-arch=gfx1030"
$hip app.hip -o app -lamdhip64
$hip --offload-device-only --no-gpu-bundle-output app.hip -o app.hsaco
clang++-22 --offload-arch=gfx1100 --offload-device-only --no-gpu-bundle-output app.hip -o kernel-for-gfx1100.hsaco
echo '__attribute__((global)) void f() {}' > old.hip
clang++-22 --offload-arch=gfx803 --offload-device-only --no-gpu-bundle-output -nogpulib -nogpuinc old.hip -o polaris.hsaco
hotswap retarget app.hsaco --to gfx1031 -o new.hsaco
hotswap bundle app.hipfb --entry gfx1030=app.hsaco
hotswap bundle two.hipfb --entry gfx1030=app.hsaco gfx1031=new.hsaco
head -c 20000 app.hipfb > cut.hipfb
printf 'CCOB\011\000\001\000 and more bytes than a header has' > new.bundle
echo text > notes.txt
mkdir open && chmod 777 open
cp "$(command -v hotswap)" hotswap
rdc="hotswap-clang++ -fgpu-rdc --offload-arch=gfx1030 -fPIC -c"
$rdc app.hip -o rdc.o
$rdc --no-offload-new-driver use.hip -o old.o
$rdc --offload-new-driver helper.hip -o new.o
export HOTSWAP_RETARGET='gfx1030=>gfx1031'
HOTSWAP_POLICY=warn $rdc use.hip -o warning.o
$rdc helper.hip -o plain.o
unset HOTSWAP_RETARGET
hotswap-clang++ -fprofile-generate --offload-arch=gfx1030 -c app.hip -o counted.o
"#;

/// Codes whose examples need more than that, and who sees them.
const NOT_RUN: &[(&str, &str)] = &[
    ("HS0002", "a defect of HotSwap"),
    ("HS0003", "llvm-cov, dot or git with an error: crates/products/hotswap"),
    ("HS0103", "the example has the path of an installation: tests/harness, modes"),
    ("HS0205", "a build system: tests/cmake"),
    ("HS0206", "two plans of a build system for one target: tests/harness, bad_input"),
    ("HS0209", "a link past HotSwap: tests/link-matrix"),
    ("HS0309", "a profile: tests/profile-bench"),
    ("HS0311", "a code object for gfx803: crates/products/hotswap, unknown_targets"),
    ("HS0310", "a table of functions that is older than its code: crates/retarget/device-symbols"),
    ("HS0402", "a Windows program: tests/link-matrix"),
    ("HS0408", "a kernel with many registers: crates/retarget/compat"),
    ("HS0110", "/proc is hidden: crates/products/hotswap, without_proc"),
    ("HS0409", "code of another stepping: tests/rewrite-exam"),
    ("HS0412", "OpenMP: tests/harness, openmp"),
    ("HS0416", "an old profile: tests/profile-bench"),
    ("HS0417", "a file of gigabytes: crates/containers/bundle"),
    ("HS0418", "code that breaks a rule: crates/evidence/lint"),
    ("HS0420", "a profile: tests/profile-bench"),
    ("HS0421", "a tree of libraries: crates/products/hotswap, serve"),
    ("HS0422", "a tree of libraries: crates/products/hotswap, serve"),
    ("HS0423", "a tree of libraries: crates/products/hotswap, serve"),
    ("HS0424", "device functions with many registers: crates/retarget/device-link"),
    ("HS0425", "device functions with many registers: crates/retarget/device-link"),
    ("HS0426", "objects of two compilers: crates/retarget/device-link"),
    ("HS0427", "calls through pointers: crates/retarget/device-link"),
    ("HS0428", "a kernel archive: crates/products/hotswap, kernel_archive"),
    ("HS0432", "exported device functions: crates/retarget/device-link"),
    ("HS0433", "matrix instructions: crates/emulation/emulator"),
    ("HS0434", "code that differs: crates/evidence/check"),
    ("HS0435", "code that is not executed: crates/evidence/check"),
    ("HS0436", "a tree of libraries: crates/products/hotswap, serve"),
    ("HS0437", "outputs of other machines: crates/products/hotswap, serve"),
    ("HS0440", "recursion: crates/retarget/device-link"),
    ("HS0111", "machines with a GPU: tests/emulated-hip, confirm"),
    ("HS0459", "a wrong table: tests/emulated-hip, confirm"),
    ("HS0448", "a tree of libraries: tests/dispatch"),
    ("HS0453", "units of different builds: tests/harness, compile_refused"),
    ("HS0454", "a precompiled header of clang's own: driver-wrapper"),
    ("HS0450", "entries that several GPUs load: crates/containers/load-model"),
    ("HS0452", "programs for several GPUs: crates/products/hotswap"),
    ("HS0458", "a fat binary of more than a gigabyte: linker-plugin/src/fat_binary.rs"),
    ("HS0456", "profiles: tests/emulated-hip, reports"),
    ("HS0457", "profiles: tests/emulated-hip, reports"),
    ("HS0455", "waits that cannot be judged: crates/evidence/lint"),
    ("HS0503", "standard error is captured here as well: crates/products/hotswap, scarce"),
    ("HS0470", "it changes a file that other examples read: crates/products/hotswap, nothing_done"),
    ("HS0506", "it changes a file that other examples read: crates/base/files"),
    ("HS0507", "a command is killed: crates/products/hotswap, faults"),
    ("HS0601", "a defect of HotSwap, of memory or disk"),
];

#[test]
fn examples_end_with_their_codes() {
    let Some(bench) = Bench::ready("examples_end_with_their_codes") else { return };
    let scratch = bench.scratch();
    let path = format!("{}:/usr/bin:/bin", bench.installed("bin"));
    let shell = |script: &str| {
        let words = ["sh", "-c", script];
        Call::new(&bench, &scratch.inside, &words).env("PATH", path.clone()).env("HOTSWAP_CLANG", "clang++-22").run()
    };
    let made = shell(FILES);
    assert!(made.ok(), "{}", made.brief());
    let is_run = |id: &str| NOT_RUN.iter().all(|(other, _)| *other != id);
    let examples: Vec<_> = EXPLANATIONS.iter().filter(|explanation| is_run(explanation.code.id)).collect();
    assert_eq!(examples.len() + NOT_RUN.len(), EXPLANATIONS.len(), "NOT_RUN has a code that does not exist");
    let wrong = parallel(&examples, |explanation| {
        // The remark in parentheses is for people.
        let command = explanation.example.split("     (").next().unwrap_or_default();
        let ran = shell(command);
        let mark = format!("[{}]", explanation.code.id);
        let is_right = ran.stderr.contains(&mark) || ran.stdout.contains(&mark);
        (!is_right)
            .then(|| format!("{mark} {command}: {}{}", ran.brief(), ran.stdout.chars().take(300).collect::<String>()))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
