//! `hotswap retarget` on linked programs and libraries, judged by their consumers: HIP, comgr, LLVM.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

mod made;

use hotswap_userland::{HIP_HEADER, Workbench, hip_clang};
use made::RunsHotswap;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

const PROGRAM: &str = "#include \"hip.h\"
#include <cstdio>
__global__ void first(int *p) { p[0] += 1; }
void second(int *p);
int main() {
  int *data = nullptr;
  if (const hipError_t status = hipMalloc(reinterpret_cast<void **>(&data), 64)) {
    std::printf(\"%s\\n\", hipGetErrorString(status));
    return 1;
  }
  first<<<1, 64>>>(data);
  second(data);
  return 0;
}
";
const LIBRARY: &str = "#include \"hip.h\"
__global__ void kernel(int *p) { p[0] *= 3; }
void second(int *p) { kernel<<<1, 64>>>(p); }
";

/// LLVM's bundler and comgr find every target in the file's bundle, and comgr returns exactly that object.
fn check_by_comgr(bench: &Workbench, version: u32, file: &str, targets: &[&str]) {
    bench.run(&format!("llvm-objcopy-{version} --dump-section=.hip_fatbin=fatbin {file} /dev/null"));
    let listed = bench.run(&format!("clang-offload-bundler-{version} --list --type=o --input=fatbin"));
    for target in targets {
        assert!(listed.lines().any(|line| line.ends_with(&format!("--{target}"))), "{file} {target}: {listed}");
        bench.run(&format!("./lookup -o found.co fatbin amdgcn-amd-amdhsa--{target}"));
        bench.hotswap(&["extract", file, "--target", target, "-o", "ours.co"]).assert().success();
        assert!(bench.read("found.co") == bench.read("ours.co"), "{file} {target}");
        let read =
            format!("llvm-readelf-{version} -hlS --notes found.co 2>&1; llvm-objdump-{version} -d found.co 2>&1");
        let read = bench.run(&read);
        assert!(read.contains(target) && read.contains("s_endpgm") && !read.contains("warning"), "{target}: {read}");
    }
}

/// Programs and libraries get natives and generics, HIP registers all of it, and comgr finds it.
#[test]
fn linked_programs_and_libraries_are_retargeted_and_go_on_working() {
    let Some(bench) = Workbench::new("linked_programs_and_libraries_are_retargeted_and_go_on_working") else {
        return;
    };
    bench.write("program.hip", PROGRAM.as_bytes());
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("library.hip", LIBRARY.as_bytes());
    bench.build_lookup();
    let to = "gfx902,gfx9-generic,gfx1031,gfx10-3-generic,gfx1036";
    let all = ["gfx10-3-generic", "gfx1030", "gfx1031", "gfx1036", "gfx9-generic", "gfx900", "gfx902"];
    for version in bench.versions.clone() {
        let clang = hip_clang(version);
        // Compilation takes most of the time, so each compiler tests one of the forms.
        let words = ["-O1 -fuse-ld=lld --offload-compress", "-O1"][version as usize % 2];
        bench.run(&format!(
            "set -e; hip=\"{clang} --offload-arch=gfx1030,gfx900 {words}\"
                 $hip -fPIC -shared library.hip -o lib.so -lamdhip64 -Wl,-soname,libmade.so
                 ln -sf lib.so libmade.so; $hip program.hip -o x -L. -lmade -lamdhip64"
        ));
        for (file, output) in [("x", "y"), ("lib.so", "libmade.so.new")] {
            bench.hotswap(&["retarget", file, "-o", output, "--to", to]).assert().success().stderr("");
            assert_eq!(bench.listed_targets(output), all);
            bench.hotswap(&["verify", output]).assert().success();
            bench.hotswap(&["retarget", output, "-o", "again", "--to", to]).assert().code(17);
            assert!(bench.read(output) == bench.read("again"), "clang {version} {words} {file}");
        }
        let ran = bench.shell("mv libmade.so.new libmade.so; LD_LIBRARY_PATH=. ./y 2>&1");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.code() == Some(1) && said.contains("no ROCm-capable device"), "{words}: {said}");
        for file in ["y", "libmade.so"] {
            check_by_comgr(&bench, version, file, &all);
        }
        bench.run("rm -f libmade.so");
    }
}

/// A plan is followed in linked programs as in the link.
#[test]
fn a_plan_is_followed_in_a_linked_library() {
    let Some(bench) = Workbench::new("a_plan_is_followed_in_a_linked_library") else { return };
    let version = bench.versions[0];
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("library.hip", LIBRARY.as_bytes());
    bench.run(&format!(
        "clang++-{version} -nogpuinc --offload-arch=gfx1030,gfx900 -fPIC -shared library.hip -o x.so -lamdhip64"
    ));
    let pairs = ["--pairs", "gfx1030=>gfx1031"];
    let told = bench.hotswap(&["retarget", "x.so", "-o", "y.so"]).args(pairs).assert().success();
    told.stdout("added hipv4-amdgcn-amd-amdhsa--gfx1031\n");
    assert_eq!(bench.listed_targets("y.so"), ["gfx1030", "gfx1031", "gfx900"]);
    let again = bench.hotswap(&["retarget", "y.so", "-o", "z.so"]).args(pairs).assert().code(17);
    again.stdout(contains("unchanged: nothing to add"));
    assert!(bench.read("y.so") == bench.read("z.so"));
}

const DOT: &str = "#include \"hip.h\"
__global__ void with_dot(float *p, unsigned a, unsigned b) {
  asm volatile(\"v_dot2_f32_f16 %0, %1, %2, %0\" : \"+v\"(p[0]) : \"v\"(a), \"v\"(b));
}
__global__ void plain(float *p) { p[__builtin_amdgcn_workitem_id_x()] += 1; }
int main() { plain<<<1, 64>>>(nullptr); with_dot<<<1, 64>>>(nullptr, 1, 2); return 0; }
";

/// A kernel with an instruction that the target lacks is refused, or left out by name; LLVM reads the rest.
#[test]
fn kernels_that_cannot_be_made_are_left_out_where_that_is_asked_for() {
    let name = "kernels_that_cannot_be_made_are_left_out_where_that_is_asked_for";
    let Some(bench) = Workbench::new(name) else { return };
    let version = bench.versions[0];
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("dot.hip", DOT.as_bytes());
    bench.run(&format!("clang++-{version} -x hip -nogpuinc --offload-arch=gfx1011 -O2 dot.hip -o dot -lamdhip64"));
    let words = ["retarget", "dot", "--to", "gfx1010", "--allow", "experimental", "-o", "made"];
    bench.hotswap(&words).assert().code(13).stderr(contains("[HS0408]").and(contains("with_dot")));
    let asked = [&words[..], &["--leave-out", "kernels"]].concat();
    let said = bench.hotswap(&asked).assert().success().get_output().stdout.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("made from gfx1011, experimental, without one kernel"), "{said}");
    assert!(said.contains("left out for gfx1010: _Z8with_dotPfjj"), "{said}");
    bench.hotswap(&["verify", "made"]).assert().success();
    let record = bench.hotswap(&["inspect", "--format", "json", "made"]).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(record).unwrap().contains("1 kernels are left out: _Z8with_dotPfjj"));
    for (target, dots) in [("gfx1011", true), ("gfx1010", false)] {
        bench.hotswap(&["extract", "made", "--target", target, "-o", "one.co"]).assert().success();
        let read = bench.run(&format!("llvm-readelf-{version} --dyn-syms -s --notes one.co 2>&1"));
        assert_eq!((read.contains("with_dot"), read.contains("plain")), (dots, true), "{target}: {read}");
        assert!(!read.contains("warning"), "{target}: {read}");
        let code = bench.run(&format!("llvm-objdump-{version} -d one.co 2>&1"));
        assert_eq!(code.contains("v_dot2"), dots, "{target}");
    }
    // A second run changes nothing.
    bench.hotswap(&["retarget", "made", "--to", "gfx1010", "--allow", "experimental", "-o", "again"]).assert().code(17);
    assert!(bench.read("made") == bench.read("again"));
}

/// 150 values that live at once where 1024 work-items share a work-group: gfx1100 has the registers, gfx1102 has not. It
/// reads no work-group ID, so code for gfx1103 serves gfx1102.
const WIDE: &str = "#include \"hip.h\"
__global__ __attribute__((launch_bounds(1024))) void wide(float *p) {
  float x[150];
  #pragma unroll
  for (int i = 0; i < 150; ++i) x[i] = p[__builtin_amdgcn_workitem_id_x() + i * 1024];
  asm volatile(\"\" ::: \"memory\");
  #pragma unroll
  for (int i = 0; i < 150; ++i) p[__builtin_amdgcn_workitem_id_x() + i * 1024] = x[149 - i];
}
";

/// The preferred source fails a check of its pair, so the next one is taken; alone it is refused.
#[test]
fn the_next_source_file_serves_where_the_best_fails_its_checks() {
    let name = "the_next_source_file_serves_where_the_best_fails_its_checks";
    let Some(bench) = Workbench::new(name) else { return };
    let version = bench.versions[0];
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("wide.hip", WIDE.as_bytes());
    for target in ["gfx1100", "gfx1103"] {
        let compile = "-nogpuinc -O2 --offload-device-only --no-gpu-bundle-output";
        bench.run(&format!("clang++-{version} -x hip --offload-arch={target} {compile} wide.hip -o {target}.co"));
    }
    let words = ["retarget", "gfx1100.co", "--to", "gfx1102", "-o", "made.co"];
    bench.hotswap(&words).assert().code(13).stderr(contains("[HS04").and(contains("wide")));
    let asked = [&words[..], &["--source", "gfx1103.co"]].concat();
    bench.hotswap(&asked).assert().success().stdout(contains("made from gfx1103"));
    bench.hotswap(&["verify", "made.co"]).assert().success();
    let read = bench.run(&format!("llvm-readelf-{version} -h --notes made.co 2>&1"));
    assert!(read.contains("gfx1102") && !read.contains("warning"), "{read}");
}

/// The kernels and the GPU of one row of `--require`.
fn required_row(report: &Value, gpu: &str) -> Value {
    let gpus = report["files"][0]["required"][0]["gpus"].as_array().unwrap();
    gpus.iter().find(|row| row["gpu"] == gpu).unwrap().clone()
}

/// `verify --require` finds planted losses: a GPU without code, a GPU with an empty code object, one with fewer kernels,
/// one mode of a feature.
#[test]
fn required_gpus_have_code_with_every_kernel() {
    let Some(bench) = Workbench::new("required_gpus_have_code_with_every_kernel") else { return };
    let version = bench.versions[0];
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("library.hip", LIBRARY.as_bytes());
    bench.write(
        "fewer.hip",
        b"#include \"hip.h\"\n__global__ void all(int *p) { p[0] = 1; }\n\
          #if !defined(__gfx1031__) && !defined(EMPTY)\n__global__ void some(int *p) { p[0] = 2; }\n#endif\n\
          #if !defined(__gfx1032__) && !defined(EMPTY)\n__global__ void more(int *p) { p[0] = 2; }\n#endif\n",
    );
    let clang = format!("clang++-{version} -nogpuinc -nogpulib -fPIC -shared -O1");
    bench.run(&format!(
        "set -e; {clang} --offload-arch=gfx1030,gfx1031,gfx10-3-generic,gfx90a:xnack+ library.hip -o x.so
         {clang} --offload-arch=gfx1030,gfx1031,gfx1032 fewer.hip -o fewer.so"
    ));
    for (file, gpus, code, told) in [
        ("x.so", "gfx1030,gfx1031,gfx90a:xnack+", 0, "gfx1030 1 kernel, gfx1031 1 kernel"),
        ("x.so", "gfx1032", 0, "gfx1032 1 kernel by gfx10-3-generic"),
        ("x.so", "gfx900", 13, "no code object serves gfx900"),
        ("x.so", "gfx90a", 13, "no code object serves gfx90a:sramecc+:xnack-, which gfx90a includes,"),
        ("x.so", "gfx9999", 11, "HS0202"),
        ("fewer.so", "gfx1030", 0, "3 kernels"),
        ("fewer.so", "gfx1030,gfx1031", 13, "the code for gfx1031 has 2 kernels and lacks"),
    ] {
        let assert = bench.hotswap(&["verify", "--require", gpus, file]).assert().code(code);
        let said = [&assert.get_output().stdout[..], &assert.get_output().stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(told), "{file} {gpus}: {said}");
    }
    let output = bench.hotswap(&["verify", "--require", "gfx1031,gfx1032", "fewer.so", "--format", "json"]).output();
    let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let row = required_row(&report, "gfx1031");
    assert_eq!((&row["kernels"], &row["code"][0]), (&2.into(), &"gfx1031".into()));
    assert!(row["problem"].as_str().unwrap().contains("which gfx1030 has"), "{row}");
    assert_eq!(report["files"][0]["verified"], false);
}
