//! Objects for waves of 32 and of 64 lanes in one link: each pair that differs is told, and no pair that does not.

mod common;

use common::{check_pair, compiler, make_pair};
use hotswap_device_link::{DynamicStack, check_link, link_inputs};
use hotswap_userland::{Workbench, say, slice, tool};

/// Functions whose code depends on the size in different ways: a branch that lanes take apart, a loop, a call with saved registers,
/// masks of lanes that are computed with.
const FUNCTIONS: [&str; 4] = [
    "float f(const float *p, int n) { float s = 0; if (p[n] > 3) s = p[n + 1] * p[7]; return s; }",
    "float f(const float *p, int n) { float s = 0; for (int i = 0; i < n; i++) s += p[i] * p[n - i]; return s; }",
    "__attribute__((noinline)) static float g(float x) { return x * x + 7; } \
     float f(const float *p, int n) { return g(p[n]) + g(p[n + 1]); }",
    "float f(const float *p, int n) { int r = p[0] > p[1] ? n : 7; r ^= (p[2] > p[3]) == (p[4] > p[n]) ? 5 : 9; return r; }",
];

/// A vote: for 32 lanes its code is that of one for 64 that takes half of the mask, so that only the other one shows its size.
const VOTE: &str =
    "float f(const float *p, int n) { return __builtin_amdgcn_ballot_w64(p[n] > 3) != 0 ? p[1] : p[2]; }";

/// Functions that compute with halves of masks and with masks of the other size, so that their code shows either: nothing may be told
/// of a pair of one size.
const HALVES: [&str; 3] = [
    "float f(const float *p, int n) { return __builtin_amdgcn_readfirstlane(n) & (unsigned)__builtin_amdgcn_ballot_w64(p[n] > 3); }",
    "float f(const float *p, int n) { \
       unsigned long mask = 0x1234567890abcdeful * __builtin_amdgcn_readfirstlane(n); \
       return mask & __builtin_amdgcn_ballot_w64(p[n] > 3); }",
    "float f(const float *p, int n) { return (unsigned)__builtin_amdgcn_ballot_w64(p[n] > 3) != 0 ? p[1] : p[2]; }",
];

/// A function that is the same for both sizes.
const EQUAL: &str = "float f(const float *p, int n) { return p[0] * 3; }";

/// A function whose code shows no size and depends on it: the number of lanes is a constant.
const COUNT: &str = "float f(const float *p, int n) { return p[n] * __builtin_amdgcn_wavefrontsize(); }";

const OPTIONS: [&str; 2] = ["", "-mwavefrontsize64"];

fn sources(function: &str) -> [String; 2] {
    let (text, device) = (function.replace("float f(", "extern \"C\" DEVICE float f("), "__attribute__((device))");
    let text = text.replace("static float g", "static __attribute__((device)) float g");
    [
        format!(
            "extern \"C\" {device} float f(const float *, int);\n\
             extern \"C\" __attribute__((global)) void k(float *p, int n) {{ p[0] = f(p, n); }}\n"
        ),
        format!("#define DEVICE {device} __attribute__((noinline))\n{text}\n"),
    ]
}

/// The mixes of a kernel and a function with these options.
fn mixes(bench: &Workbench, version: u32, target: &str, options: [&str; 2], function: &str) -> Vec<String> {
    make_pair(bench, version, target, options, &sources(function));
    check_pair(bench).mixes.iter().map(|one| format!("{}: {}", one.code.id, one.what)).collect()
}

#[test]
fn objects_for_other_waves_are_told_and_equal_ones_are_not() {
    let test = "objects_for_other_waves_are_told_and_equal_ones_are_not";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let settings = [23, 24].into_iter().flat_map(|version| ["gfx1030", "gfx1100", "gfx1201"].map(|gpu| (version, gpu)));
    let mut planted = 0;
    for (version, target) in slice(test, settings.collect(), |number, _| number % 2 == 1) {
        for function in FUNCTIONS {
            for (kernel, own) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let found = mixes(&bench, version, target, [OPTIONS[kernel], OPTIONS[own]], function);
                let [kernel, own] = [kernel, own].map(|number| 32 << number);
                let told = format!(
                    "HS0426: kernel `k` runs in waves of {kernel} lanes, `f`, which it reaches, was compiled for {own}"
                );
                let wanted: &[String] = if kernel == own { &[] } else { &[told] };
                assert_eq!(found, wanted, "clang {version} {target}: {function}");
                planted += usize::from(kernel != own);
            }
        }
        for function in HALVES.into_iter().chain([VOTE]) {
            for one in OPTIONS {
                let found = mixes(&bench, version, target, [one; 2], function);
                assert!(found.is_empty(), "clang {version} {target} {one}: {function}: {found:?}");
            }
        }
        let found = mixes(&bench, version, target, OPTIONS, VOTE);
        assert!(found.len() == 1 && found[0].contains("was compiled for 64"), "clang {version} {target}: {found:?}");
        for options in [OPTIONS, [OPTIONS[1], OPTIONS[0]]] {
            assert!(mixes(&bench, version, target, options, EQUAL).is_empty(), "clang {version} {target} {options:?}");
        }
    }
    say(&format!("{test}: {planted} pairs of other sizes"));
    assert!(planted >= 2 * FUNCTIONS.len());
}

/// Code without a sign of its size is not the same for both: it is the reason why a binding believes the library's kernels.
#[test]
fn code_that_shows_no_size_may_depend_on_it() {
    let test = "code_that_shows_no_size_may_depend_on_it";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    for target in ["gfx1030", "gfx1100", "gfx1201"] {
        let codes = OPTIONS.map(|one| {
            assert!(mixes(&bench, 24, target, [OPTIONS[0], one], COUNT).is_empty(), "{target} {one}: it shows a size");
            bench.run(&format!("{} -d --disassemble-symbols=f --no-show-raw-insn native.co", tool(24, "llvm-objdump")))
        });
        let [small, large] = codes.each_ref().map(|code| code.contains("0x42000000"));
        assert!(small && !large && codes[1].contains("0x42800000"), "{target}: {codes:?}");
    }
    say(&format!("{test}: one source, two numbers of lanes, 3 GPUs"));
}

/// A kernel with a name of its own, which calls the function.
fn kernel_named(name: &str) -> String {
    sources(EQUAL)[0].replace("void k(", &format!("void {name}("))
}

/// Code that is the same for both sizes belongs to each kernel that reaches it: kernels of both may call it in one link.
#[test]
fn kernels_of_both_sizes_may_share_code_that_shows_none() {
    let test = "kernels_of_both_sizes_may_share_code_that_shows_none";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    for target in ["gfx1030", "gfx1100", "gfx1201"] {
        bench.write("library.hip", sources(EQUAL)[1].as_bytes());
        for name in ["small", "large"] {
            bench.write(&format!("{name}.hip"), kernel_named(name).as_bytes());
        }
        let compile = format!("{} -fno-offload-lto -c", compiler(24, target));
        bench.run(&format!(
            "{compile} small.hip -o small.o && {compile} {} large.hip -o large.o && {compile} library.hip -o library.o && \
             {} -shared small.o large.o library.o -o native.co",
            OPTIONS[1],
            tool(24, "ld.lld")
        ));
        let files = ["small.o", "large.o", "library.o"].map(|name| (name, bench.read(name)));
        let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
        let report = check_link(&bench.read("native.co"), &inputs, DynamicStack::OfHip).unwrap();
        assert_eq!(report.problems(), [], "{target}");
    }
    say(&format!("{test}: one function, kernels of both sizes, 3 GPUs"));
}
