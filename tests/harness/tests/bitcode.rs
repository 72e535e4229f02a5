//! The reader of bitcode, on what each compiler writes: the kernels are those of the source, and a module under another
//! triple is one that LLVM reads, and nothing in it but the triple has changed.

use hotswap_code_object::bitcode::{parse_bitcode, with_triple};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, say};

const SOURCE: &str = r#"#include "hip.h"
__attribute__((device)) int helper(int x) { return x * 3; }
__attribute__((global)) void declared(int *p);
__attribute__((global)) void first(int *p) { p[0] = helper(p[1]); }
template <typename T> __attribute__((global)) void generic(T *p) { p[0] += 1; }
template __attribute__((global)) void generic<int>(int *);
extern "C" __attribute__((global)) void plain(int *p) { p[1] = 2; }
"#;
const KERNELS: [&str; 3] = ["_Z5firstPi", "_Z7genericIiEvPT_", "plain"];

fn judge(bench: &Bench, clang: &Clang) -> Result<String, String> {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    scratch.write("a.hip", SOURCE);
    let mut told = Vec::new();
    for level in ["-O0", "-O2", "-g"] {
        let words = ["--offload-arch=gfx1030", "--offload-device-only", "-fgpu-rdc", "-emit-llvm", level];
        let words = [&[clang.program.clone()][..], &clang.light(), &words.map(str::to_owned)].concat();
        let words = [&words[..], &["-c", "a.hip", "--no-gpu-bundle-output", "-o", "a.bc"].map(str::to_owned)].concat();
        let ran = Call::new(bench, &scratch.inside, &words).run();
        if !ran.ok() {
            return Err(ran.brief());
        }
        let bytes = scratch.read("a.bc");
        let read = parse_bitcode(&bytes).ok_or("the module cannot be read")?;
        if !read.kernels.iter().eq(KERNELS.iter()) {
            return Err(format!("{level}: {:?}", read.kernels));
        }
        let other = read.triple.replace("10.30", "10.31").replace("amdgcn-amd-amdhsa", "amdgcn-amd-amdpal");
        scratch.write("b.bc", with_triple(&bytes, &other).ok_or("the triple cannot be changed")?);
        let text = |file: &str| {
            let words = [clang.tool("llvm-dis"), "-o".into(), "-".into(), file.to_owned()];
            Call::new(bench, &scratch.inside, &words).run().stdout
        };
        let (before, after) = (text("a.bc"), text("b.bc"));
        let is_name = |line: &&str| line.contains("ModuleID") || line.contains("module: (path:");
        let without_name = |text: &str| {
            text.lines()
                .filter(|line| !is_name(line))
                .map(|line| {
                    format!(
                        "{line}
"
                    )
                })
                .collect::<String>()
        };
        let expected =
            before.replace(&format!("target triple = \"{}", read.triple), &format!("target triple = \"{other}"));
        if before.is_empty() || without_name(&expected) != without_name(&after) || !after.contains(&other) {
            return Err(format!("{level}: more than the triple has changed, or nothing"));
        }
        told.push(read.triple);
    }
    Ok(told.join(", "))
}

#[test]
fn modules_of_each_compiler_are_read_and_renamed() {
    let Some(bench) = Bench::ready("bitcode") else { return };
    for clang in &bench.clangs {
        let result = judge(&bench, clang);
        say(&format!("bitcode, clang {}: {result:?}", clang.version));
        assert!(result.is_ok(), "clang {}: {result:?}", clang.version);
    }
}
