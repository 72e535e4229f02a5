//! Counters in device code with the real compilers: every mode of the driver links, the device code has what a drain
//! needs, and other builds are left alone.

#[allow(dead_code)] // not every test file uses all of it
mod common;

use common::{Bench, ok};
use hotswap_userland::{HIP_HEADER, in_turn};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fs;
use std::process::Output;

/// Shared by all sources.
const COMMON: &str = "inline __device__ int shared_by_all(int x) { return x > 9 ? x : 9; }\n";

const HIP: &str = r#"#include "tiny.h"
__device__ __attribute__((noinline)) float twice(float x) { return x > 3 ? x * 2 : x + 1; }
__global__ void saxpy(float a, float *x, float *y, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * twice(x[i]) + y[shared_by_all(i)];
}
"#;

/// Two sources that refer to each other: relocatable device code.
const USE: &str = r#"#include "tiny.h"
__device__ float given(float);
__global__ void other(float *p, int n) { p[shared_by_all(n)] = given(p[1]); }
"#;

const GIVEN: &str = r#"#include "tiny.h"
__device__ float given(float x) { return x > 1 ? x : shared_by_all((int)x); }
"#;

/// Shell functions: `code FILE` writes the code object for gfx90a of a program, library or bundle to `dev`; `facts`
/// prints one line about the symbols that a drain looks up in it.
const TOOLS: &str = r#"
code() {
    rm -f dev "$1".*gfx90a*
    $LLVM/llvm-objdump --offloading "$1" >/dev/null
    mv "$1".*gfx90a* dev
}
count() { $LLVM/llvm-readelf -SW dev | grep -c " $1 " || true; }
facts() {
    table=$($LLVM/llvm-readelf --dyn-syms -W dev | grep -c ' 72 OBJECT  GLOBAL PROTECTED .* __llvm_profile_sections$' || true)
    atomic=$($LLVM/llvm-objdump -d dev | grep -Ec 'atomic_add_(x2|u64)' || true)
    echo "data=$(count __llvm_prf_data) cnts=$(count __llvm_prf_cnts) ucnts=$(count __llvm_prf_ucnts)" \
        "table=$table atomic=$(echo $atomic | sed 's/[1-9][0-9]*/some/')"
}
"#;

fn bench(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    let tiny = format!("{HIP_HEADER}{COMMON}");
    for (name, text) in [("tiny.h", &*tiny), ("s.hip", HIP), ("use.hip", USE), ("given.hip", GIVEN)] {
        fs::write(bench.at(name), text).unwrap();
    }
    fs::write(bench.at("main.cpp"), "int main() { return 0; }\n").unwrap();
    // The drain is replaced by an object that reports its presence and the time of its run.
    let drain = "#include <stdlib.h>\n#include <unistd.h>\n\
        static void at_exit(void) { (void)!write(1, \"drained\\n\", 8); }\n\
        int hotswap_profile_drain(void) { at_exit(); return 0; }\n\
        __attribute__((constructor, visibility(\"hidden\"))) void hotswap_start(void) { atexit(at_exit); }\n";
    fs::write(bench.at("drain.c"), drain).unwrap();
    let made = bench.run(bench.versions()[0], "$RC -fPIC -fvisibility=hidden -c drain.c -o d.o && rm -f P/lib/hotswap/libhotswap-profile-drain.a && ar rcs P/lib/hotswap/libhotswap-profile-drain.a d.o");
    ok(&made);
    Some(bench)
}

fn run(bench: &Bench, version: u32, script: &str) -> Output {
    let set = format!("LLVM=/usr/lib/llvm-{version}/bin\nset -e\n{TOOLS}");
    bench.run(version, &format!("{set}{}", script.replace("X ", "$W $HIP ")))
}

/// The required facts about the device code of each version.
fn facts(version: u32) -> &'static str {
    if version == 22 {
        "data=1 cnts=1 ucnts=0 table=0 atomic=some"
    } else {
        "data=1 cnts=1 ucnts=1 table=1 atomic=some"
    }
}

/// Commands that write `out`, which has code for gfx90a.
#[rustfmt::skip]
const WAYS: &[(&str, &str)] = &[
    ("one step", "X P --offload-arch=gfx90a,gfx1030 s.hip main.cpp H -o out"),
    ("compile and link", "X P --offload-arch=gfx90a -c s.hip -o s.o; X P --hip-link s.o main.cpp H -o out"),
    ("rdc", "X P --offload-arch=gfx90a -fgpu-rdc -c use.hip -o u.o; X P --offload-arch=gfx90a -fgpu-rdc -c given.hip -o g.o; \
             X P --offload-arch=gfx90a -fgpu-rdc --hip-link u.o g.o main.cpp H -o out"),
    ("rdc archive", "X P --offload-arch=gfx90a -fgpu-rdc -c use.hip -o u.o; X P --offload-arch=gfx90a -fgpu-rdc -c given.hip -o g.o; \
             rm -f libg.a; ar rcs libg.a g.o; X P --offload-arch=gfx90a -fgpu-rdc --hip-link u.o main.cpp libg.a H -o out"),
    ("static archive", "X P --offload-arch=gfx90a -fPIC -c s.hip -o s.o; rm -f libs.a; ar rcs libs.a s.o; \
             X P --hip-link main.cpp -Wl,--whole-archive libs.a -Wl,--no-whole-archive H -o out"),
    ("shared", "X P --offload-arch=gfx90a -fPIC -shared s.hip H -o out"),
    ("shared rdc", "X P --offload-arch=gfx90a -fPIC -fgpu-rdc -shared use.hip given.hip H -o out"),
    ("old driver", "X P --no-offload-new-driver --offload-arch=gfx90a s.hip main.cpp H -o out"),
    ("old driver rdc", "X P --no-offload-new-driver -fgpu-rdc --offload-arch=gfx90a use.hip given.hip main.cpp H -o out"),
    ("new driver", "X P --offload-new-driver --offload-arch=gfx90a s.hip main.cpp H -o out"),
    ("thin", "X P -foffload-lto=thin --offload-arch=gfx90a s.hip main.cpp H -o out"),
    ("garbage collection", "X P --offload-arch=gfx90a s.hip main.cpp H -Wl,--gc-sections -ffunction-sections -o out"),
    ("lld", "X P --offload-arch=gfx90a s.hip main.cpp H -fuse-ld=lld -o out"),
    ("response file", "echo 'P --offload-arch=gfx90a s.hip main.cpp H -o out' >r; X @r"),
    ("rdc, one source", "X P --offload-arch=gfx90a -fgpu-rdc s.hip main.cpp H -o out"),
    ("device only", "X P --offload-device-only --no-gpu-bundle-output --offload-arch=gfx90a s.hip -o out.gfx90a; touch out"),
];

/// Clang 24 has no old driver, and warns about the flag.
fn warned(errors: &str) -> bool {
    errors.lines().any(|line| line.contains("warning") && !line.contains("no-offload-new-driver"))
}

/// `ways`: names of those that are tried; all if it is empty.
fn check_ways(test: &str, flags: &str, ways: &[&str]) {
    let Some(bench) = bench(test) else { return };
    let ways: Vec<_> = WAYS.iter().filter(|(name, _)| ways.is_empty() || ways.contains(name)).collect();
    let mut wrong = Vec::new();
    for (&version, (name, script)) in in_turn(test, &ways, &bench.versions(), |_| false) {
        let host = if version == 22 { "-lamdhip64" } else { "" };
        let script = script.replace("P ", &format!("-O1 {flags} ")).replace(" H ", &format!(" {host} "));
        let script = format!("rm -f out out.*\n{script}\n[ -e out.gfx90a ] && mv out.gfx90a dev || code out\nfacts");
        let output = run(&bench, version, &script);
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        // Our linker separates the names of two sources; in this bench a script replaces it. Builds with it are in
        // `tests/profile-bench`.
        let apart = version == 22 && script.contains("given.hip");
        let right = match apart {
            true => errors.contains("duplicate symbol: __llvm_prf_nm") && !errors.contains("hotswap"),
            false => said == facts(version) && output.status.success() && !warned(&errors),
        };
        if !right {
            wrong.push(format!("clang {version}, {name}: {said}\n{errors}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn coverage_links_in_every_mode() {
    check_ways("coverage_links_in_every_mode", "-fprofile-instr-generate -fcoverage-mapping", &[]);
}

#[test]
fn counters_of_the_optimiser_link_in_every_mode() {
    check_ways(
        "counters_of_the_optimiser_link_in_every_mode",
        "-fprofile-generate",
        &["one step", "rdc", "old driver", "device only"],
    );
}

#[test]
fn context_sensitive_counters_link_in_every_mode() {
    check_ways(
        "context_sensitive_counters_link_in_every_mode",
        "-O2 -fcs-profile-generate",
        &["one step", "compile and link", "rdc", "old driver", "shared", "thin"],
    );
}

/// Other builds reach clang unchanged; impossible ones are refused with the reason.
#[test]
fn other_builds_are_left_alone() {
    let Some(bench) = bench("other_builds_are_left_alone") else { return };
    for version in bench.versions() {
        let lines = |script: &str| {
            let output = run(&bench, version, script);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().filter(|line| line.contains(" run: ")).map(str::to_owned).collect::<Vec<_>>()
        };
        for (flags, adds) in [
            ("--offload-arch=gfx90a -c s.hip", false),
            ("-fprofile-instr-generate -c main.cpp", false),
            ("-fprofile-instr-generate main.cpp -o plain", false),
            ("--offload-arch=gfx90a -Xarch_host -fprofile-instr-generate -c s.hip", false),
            ("--offload-arch=gfx90a -fprofile-instr-generate -c s.hip", true),
        ] {
            let said = lines(&format!("HOTSWAP_VERBOSE=1 X {flags}"));
            let rocm = std::env::var(hotswap_userland::ENV_ROCM).unwrap_or_default();
            let hip = if version == 22 || rocm.is_empty() { String::new() } else { format!("--rocm-path={rocm} ") };
            let plain = format!("hotswap-clang: run: /usr/bin/clang++-{version} {hip}-nogpuinc {flags}");
            assert_eq!(said.len(), 1, "{flags}");
            assert_eq!(said[0].replace('\'', "") != plain, adds, "{flags}: {}", said[0]);
        }
        // Without counters nothing is queried and nothing is made.
        assert!(
            version != bench.versions()[0]
                || bench.at("home/.cache/hotswap/profile-runtimes").exists() == (version > 22)
        );
    }
}

#[test]
fn the_drain_comes_once_and_last_and_can_be_refused() {
    let Some(bench) = bench("the_drain_comes_once_and_last_and_can_be_refused") else { return };
    for version in bench.versions() {
        let host = if version == 22 { "-lamdhip64" } else { "" };
        let build = |more: &str| {
            format!("X -fprofile-instr-generate --offload-arch=gfx90a s.hip main.cpp {host} {more} -o out")
        };
        let has = "$LLVM/llvm-nm out | grep -c ' T hotswap_profile_drain' || true";
        let count = |script: String| ok(&run(&bench, version, &script)).0.trim().to_owned();
        assert_eq!(count(format!("{}; {has}", build(""))), "1");
        assert_eq!(count(format!("{}; {has}", build("--hotswap-no-drain"))), "0");
        assert_eq!(count(format!("export HOTSWAP_DRAIN=0; {}; {has}", build(""))), "0");
        assert_eq!(
            count(format!("export HOTSWAP_DRAIN=0; {}; {has}", build("-Xoffload-linker --hotswap-drain=1"))),
            "1"
        );
        assert_eq!(count(format!("X -fprofile-instr-generate main.cpp -o out; {has}")), "0");
        // Its exit handler runs before the one that unregisters the fat binary: it was registered later.
        let order = "$LLVM/llvm-readelf -sW out | grep -E ' (hotswap_start|__hip_module_ctor|[a-z_.]*offloading.descriptor_reg[a-z_.0-9]*)$' | wc -l";
        assert!(count(format!("{}; {order}", build(""))).parse::<u32>().unwrap() >= 1);
        fs::rename(bench.at("P/lib/hotswap/libhotswap-profile-drain.a"), bench.at("away")).unwrap();
        let output = run(&bench, version, &build(""));
        fs::rename(bench.at("away"), bench.at("P/lib/hotswap/libhotswap-profile-drain.a")).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("lib/hotswap/libhotswap-profile-drain.a"), "{said}");
    }
}

#[test]
fn every_gpu_can_have_counters_and_all_blocks_count() {
    let Some(bench) = bench("every_gpu_can_have_counters_and_all_blocks_count") else { return };
    let gpus = "gfx906,gfx908,gfx90a,gfx942,gfx950,gfx1030,gfx1100,gfx1201,gfx1250,gfx9-4-generic,gfx11-generic";
    for version in bench.versions() {
        let flags = "-fprofile-instr-generate -fcoverage-mapping";
        let script = format!(
            "X {flags} -O1 --offload-arch={gpus} -c s.hip -o s.o; $LLVM/llvm-objdump --offloading s.o | grep -c amdgcn"
        );
        assert_eq!(ok(&run(&bench, version, &script)).0.trim(), "11");
        let calls = |more: &str| {
            let script = format!(
                "X {flags} {more} --offload-device-only --no-gpu-bundle-output --offload-arch=gfx90a -S -emit-llvm s.hip -o s.ll; grep -c 'call.*__llvm_profile_sampling_gpu' s.ll || true"
            );
            ok(&run(&bench, version, &script)).0.trim().to_owned()
        };
        assert_eq!(calls(""), "0");
        if version > 22 {
            assert_ne!(calls("-mllvm -offload-pgo-sampling=3"), "0");
        }
    }
}

/// The structural hash of a function, from its data record: it follows the hash of the name.
fn shape(code_object: &std::path::Path, function: &str) -> u64 {
    let bytes = fs::read(code_object).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let name = format!("__profd_{function}");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(&name)).unwrap();
    let section = file.section_by_name("__llvm_prf_data").unwrap();
    let record = section.data_range(symbol.address(), 16).unwrap().unwrap();
    u64::from_le_bytes(record[8..].try_into().unwrap())
}

/// The device compile must read the profile of its GPU, and that of another GPU must not reach it.
#[test]
fn a_profile_reaches_the_device_compile() {
    let Some(bench) = bench("a_profile_reaches_the_device_compile") else { return };
    for version in bench.versions() {
        ok(&run(&bench, version, "X -fprofile-instr-generate -O1 --offload-arch=gfx90a s.hip -c -o s.o; code s.o"));
        let hash = shape(&bench.at("dev"), "_Z5twicef");
        fs::write(bench.at("p.proftext"), format!("_Z5twicef\n{hash}\n2\n1000\n3\n\n")).unwrap();
        ok(&run(&bench, version, "$LLVM/llvm-profdata merge p.proftext -o p.profdata"));
        for (gpu, words, count) in [
            ("gfx90a", "", "0"),
            ("gfx90a", "-fprofile-use=p.profdata", "1"),
            ("gfx90a", "-Xarch_gfx90a -fprofile-use=p.profdata", "1"),
            ("gfx1030", "-fprofile-use=p.profdata", "1"),
            ("gfx1030", "-Xarch_gfx90a -fprofile-use=p.profdata", "0"),
        ] {
            let script = format!(
                "X -O1 --offload-device-only --no-gpu-bundle-output --offload-arch={gpu} -S -emit-llvm s.hip {words} -o s.ll; \
                 grep -c 'function_entry_count., i64 1000' s.ll || true"
            );
            assert_eq!(ok(&run(&bench, version, &script)).0.trim(), count, "clang {version}, {gpu}, {words}");
        }
    }
}
