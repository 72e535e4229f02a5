//! The commands on clang's output. `HOTSWAP_TEST_ROOT` names the userland.

mod made;

use hotswap_userland::{Workbench, hip_clang, say};
use made::RunsHotswap;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

const KERNEL: &str = "typedef int hipError_t; typedef struct ihipStream_t *hipStream_t;
struct dim3 { unsigned x, y, z; };
extern \"C\" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
__attribute__((global)) void k(int *p) { p[0] += 1; }
";

/// A workbench with the kernel's source.
fn kernel_bench(test: &str) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    bench.write("k.hip", KERNEL.as_bytes());
    Some(bench)
}

fn compile(bench: &Workbench, version: u32, words: &str) {
    let clang = hip_clang(version);
    bench.run(&format!("{clang} -nogpulib --offload-arch=gfx1030,gfx900 {words} k.hip"));
}

#[test]
fn objects_and_fat_binaries_are_retargeted_listed_and_verified() {
    let Some(bench) = kernel_bench("objects_and_fat_binaries_are_retargeted_listed_and_verified") else { return };
    let pairs = ["--pairs", "gfx1030=>gfx1031,gfx1032;gfx900=>gfx902"];
    for version in bench.versions.clone() {
        for (words, compressed) in [
            ("-c -o x", false),
            ("--offload-compress -c -o x", true),
            ("--offload-device-only --gpu-bundle-output -o x", false),
        ] {
            compile(&bench, version, words);
            assert_eq!(bench.listed_targets("x"), ["gfx1030", "gfx900"]);
            bench.hotswap(&["retarget", "x", "-o", "y"]).args(pairs).assert().success();
            assert_eq!(bench.listed_targets("y"), ["gfx1030", "gfx1031", "gfx1032", "gfx900", "gfx902"]);
            let told = bench.hotswap(&["inspect", "y"]).assert().success();
            told.stdout(contains("verified").count(5).and(contains("retargeted from gfx1030").count(2)));
            bench.hotswap(&["extract", "y", "--target", "gfx1032", "-o", "gfx1032.co"]).assert().success();
            let flags = bench.run(&format!("llvm-readelf-{version} -h gfx1032.co"));
            assert!(flags.contains("gfx1032"), "{flags}");
            // A second run adds nothing and changes nothing.
            bench.hotswap(&["retarget", "y", "-o", "z"]).args(pairs).assert().code(17);
            assert_eq!(std::fs::read(bench.path("y")).unwrap(), std::fs::read(bench.path("z")).unwrap());
            let form = if compressed { "compressed bundle V3" } else { "offload bundle" };
            let listed = bench.hotswap(&["list", "z"]).assert().success().stdout(contains(form).count(5));
            let made = contains("  1        compiled ").count(2).and(contains("  1        retargeted from ").count(3));
            listed.stdout(made.and(contains("z: 1 container, 5 images, ")));
        }
    }
}

#[test]
fn a_changed_byte_is_told_by_inspect() {
    let Some(bench) = kernel_bench("a_changed_byte_is_told_by_inspect") else { return };
    compile(&bench, bench.versions[0], "--offload-device-only --gpu-bundle-output -o x");
    bench.hotswap(&["retarget", "x", "-o", "y", "--pairs", "gfx1030=>gfx1031"]).assert().success();
    let mut bytes = std::fs::read(bench.path("y")).unwrap();
    // The middle of the first code object's text: neither header nor note.
    let text = bytes.windows(4).position(|window| window == [0x00, 0x00, 0x81, 0xbf]).unwrap();
    bytes[text] ^= 1;
    std::fs::write(bench.path("y"), &bytes).unwrap();
    let told = bench.hotswap(&["inspect", "y"]).assert().code(12);
    told.stdout(contains("WRONG")).stderr(contains("HS0302").and(contains("SHA-256")));
}

/// Kernels with loops, a call, LDS and both widths of arithmetic; C, so that one file needs no headers.
const DEVICE: &str = "#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel)) void
__attribute__((noinline)) int helper(int x, int y) { int s = 0; for (int i = 0; i < x; ++i) s += y * i ^ s; return s; }
KERNEL add(GLOBAL float *a, GLOBAL float *b, int n) { int i = __builtin_amdgcn_workitem_id_x(); if (i < n) a[i] += b[i]; }
KERNEL call(GLOBAL int *p) { int i = __builtin_amdgcn_workitem_id_x(); p[i] = helper(p[i], i); }
KERNEL wide(GLOBAL double *p, GLOBAL long *q) { for (int i = 0; i < 9; ++i) { p[i] *= 1.5; q[i] /= 3; } }
";

/// The bytes of `.text`, copied by LLVM's tools.
fn text_of(bench: &Workbench, version: u32, file: &str) -> Vec<u8> {
    bench.run(&format!("llvm-objcopy-{version} --dump-section .text=text {file} /dev/null"));
    std::fs::read(bench.path("text")).unwrap()
}

#[test]
fn an_assembler_makes_the_same_bytes_of_a_disassembly() {
    let Some(bench) = kernel_bench("an_assembler_makes_the_same_bytes_of_a_disassembly") else { return };
    std::fs::write(bench.path("k.c"), DEVICE).unwrap();
    // The assembler of LLVM 22 is incompatible; from 23 on it accepts LLVM 23's text.
    let versions: Vec<u32> = bench.versions.iter().copied().filter(|version| *version >= 23).collect();
    let mut count = 0;
    for version in versions {
        for target in ["gfx900", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
            for options in ["-O2", "-O0", "-O2 -mwavefrontsize64"] {
                // The rarer options on two targets each.
                let targets: &[&str] = match options {
                    "-O2" => &[target],
                    "-O0" => &["gfx942", "gfx1250"],
                    _ => &["gfx1030", "gfx1100"],
                };
                if !targets.contains(&target) {
                    continue;
                }
                bench.run(&format!(
                    "clang-{version} --target=amdgcn-amd-amdhsa -mcpu={target} -nogpulib {options} -c k.c -o k.o
                     ld.lld-{version} -shared k.o -o k.co"
                ));
                for file in ["k.o", "k.co"] {
                    let shown =
                        bench.hotswap(&["disasm", file]).assert().success().stderr("").get_output().stdout.clone();
                    let text = String::from_utf8(shown).unwrap();
                    let words = text.lines().nth(1).and_then(|line| line.split_once("llvm-mc ")).expect("a command").1;
                    std::fs::write(bench.path("again.s"), &text).unwrap();
                    bench.run(&format!("llvm-mc-{version} {words} -filetype=obj again.s -o again.o"));
                    let (before, after) = (text_of(&bench, version, file), text_of(&bench, version, "again.o"));
                    assert!(!before.is_empty() && before == after, "clang-{version} {target} {options} {file}\n{text}");
                    count += 1;
                }
            }
        }
    }
    say(&format!("an_assembler_makes_the_same_bytes_of_a_disassembly: {count} files"));
}

#[test]
fn every_code_object_of_a_program_is_disassembled() {
    let Some(bench) = kernel_bench("every_code_object_of_a_program_is_disassembled") else { return };
    compile(&bench, bench.versions[0], "--offload-compress -c -o x");
    let refused = bench.hotswap(&["disasm", "x"]).assert().code(2);
    refused.stderr(contains("2 code objects match: 1 gfx900, 2 gfx1030").or(contains("1 gfx1030, 2 gfx900")));
    bench.hotswap(&["disasm", "x", "--target", "gfx900"]).assert().success().stdout(contains("kernel, wave64"));
    let all =
        bench.hotswap(&["disasm", "x", "--all", "--format", "json"]).assert().success().get_output().stdout.clone();
    let all: Value = serde_json::from_slice(&all).unwrap();
    let objects = all["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 2);
    for object in objects {
        let instructions = object["summary"]["instructions"].as_u64().unwrap();
        assert!(instructions > 4 && object["summary"]["opaque_bytes"] == 0, "{object}");
    }
}
