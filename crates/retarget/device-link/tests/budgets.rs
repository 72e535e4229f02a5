//! A library of device functions and its users, compiled apart and linked natively: the numbers of the kernels, compared with
//! those that LTO computes of the same sources.

use hotswap_device_link::{DynamicStack, LinkReport, check_link, link_inputs, raise_kernels};
use hotswap_userland::{Workbench, say, slice, tool};
use std::collections::BTreeMap;

const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];

/// The objects and links of both sources for one target.
fn make(bench: &Workbench, version: u32, target: &str, more: &str) {
    bench.write("library.hip", include_bytes!("library.hip"));
    bench.write("kernels.hip", include_bytes!("kernels.hip"));
    let (clang, lld) = (tool(version, "clang++"), tool(version, "ld.lld"));
    let common = format!(
        "{clang} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output \
         -O2 -w"
    );
    let mut script = String::new();
    for name in ["library", "kernels"] {
        script += &format!("{common} -emit-llvm -c {name}.hip -o {name}.bc && ");
        // Clang 22 compiles relocatable device code to bitcode alone.
        script += &match version {
            22 => format!(
                "{} -O2 -mcpu={target} -filetype=obj -relocation-model=pic {name}.bc -o {name}.o && ",
                tool(22, "llc")
            ),
            _ => format!("{common} -fno-offload-lto {more} -c {name}.hip -o {name}.o && "),
        };
    }
    bench.run(&format!(
        "{script}{lld} -shared kernels.o library.o -o native.co && {lld} -shared -plugin-opt=mcpu={target} \
         -plugin-opt=-amdgpu-internalize-symbols --lto-O2 kernels.bc library.bc -o lto.co"
    ));
}

fn report(bench: &Workbench, linked: &[u8]) -> LinkReport {
    report_with(bench, linked, DynamicStack::OfHip)
}

fn report_with(bench: &Workbench, linked: &[u8], stack: DynamicStack) -> LinkReport {
    let files = ["kernels.o", "library.o"].map(|name| (name, bench.read(name)));
    let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
    assert_eq!(inputs.len(), 2);
    check_link(linked, &inputs, stack).unwrap()
}

/// LLVM's view of a kernel: numbers of the metadata and of the descriptor.
fn numbers(bench: &Workbench, version: u32, file: &str, kernel: &str) -> BTreeMap<String, u64> {
    let notes = bench.run(&format!("{} --notes {file}", tool(version, "llvm-readelf")));
    let part = notes.split("- .a").find(|part| part.contains(&format!(".name:           {kernel}\n")));
    let descriptor =
        bench.run(&format!("{} -D --disassemble-symbols={kernel}.kd {file}", tool(version, "llvm-objdump")));
    let all = part.unwrap_or_else(|| panic!("{notes}")).lines().chain(descriptor.lines());
    let row = |line: &str| {
        let (key, value) = line.trim().trim_start_matches("- ").split_once(' ')?;
        let value = value.trim();
        let number = value.strip_prefix("0x").map_or(value.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
        Some((key.trim_end_matches(':').to_owned(), number?))
    };
    all.filter_map(row).collect()
}

/// Fields that a kernel is launched with.
const FIELDS: [&str; 4] =
    [".vgpr_count", ".private_segment_fixed_size", ".amdhsa_next_free_vgpr", ".amdhsa_private_segment_fixed_size"];

#[test]
fn numbers_are_raised_to_those_of_lto() {
    let test = "numbers_are_raised_to_those_of_lto";
    let Some(bench) = Workbench::new(test) else { return };
    let versions = bench.versions.iter().copied().filter(|version| *version <= 24);
    let all: Vec<_> = versions.flat_map(|version| TARGETS.map(|target| (version, target))).collect();
    let mut compared = 0;
    for (version, target) in slice(test, all, |number, _| number % 6 == number / 6 * 2) {
        make(&bench, version, target, "");
        let native = bench.read("native.co");
        let found = report(&bench, &native);
        let names: Vec<&str> = found.short.iter().map(|budget| budget.kernel.as_str()).collect();
        assert_eq!((names, found.kernels, found.open.len()), (vec!["k_use"], 2, 0), "{version} {target}");
        let budget = &found.short[0];
        assert!(budget.has.vgprs < 48 && budget.has.scratch == 0 && budget.forced_by == "lib_fn", "{budget:?}");
        assert!(found.problems()[0].to_string().contains("`lib_fn` makes it need"), "{:?}", found.problems());
        let made = raise_kernels(&native, &found).unwrap();
        bench.write("raised.co", &made);
        let again = report(&bench, &made);
        assert!(again.short.is_empty() && again.mixes.is_empty(), "{version} {target}: {again:?}");
        assert_eq!(raise_kernels(&made, &again).unwrap(), made, "nothing is raised twice");
        let [raised, lto] = ["raised.co", "lto.co"].map(|file| numbers(&bench, version, file, "k_use"));
        for field in FIELDS {
            let (found, wanted) = (raised[field], lto[field]);
            let slack = if field.contains("segment") { 16 } else { 0 };
            assert!(
                (wanted.saturating_sub(slack)..=wanted + slack).contains(&found),
                "{version} {target} {field}: {found}, LTO {wanted}"
            );
        }
        let row = |numbers: &BTreeMap<String, u64>| {
            FIELDS[..2].iter().map(|field| numbers[*field].to_string()).collect::<Vec<_>>()
        };
        say(&format!(
            "exam budgets | {version} | {target} | {} | {} |",
            row(&raised).join(" | "),
            row(&lto).join(" | ")
        ));
        let [before, after] = ["native.co", "raised.co"].map(|file| numbers(&bench, version, file, "k_alone"));
        assert_eq!(before, after, "{version} {target}: a kernel without callees");
        tools_keep_it(&bench, version);
        compared += 1;
    }
    say(&format!("{test}: {compared} links"));
    assert!(compared >= 3);
}

/// A note that moved is where LLVM's tools look for it, and stays there.
fn tools_keep_it(bench: &Workbench, version: u32) {
    let code = |file: &str| {
        let text = bench.disassemble(version, "-r -t", file);
        text.lines().filter(|line| !line.contains("file format")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(code("native.co"), code("raised.co"), "the code is the same");
    for (program, words, out) in [("strip", "--strip-debug", "-o"), ("objcopy", "", ""), ("strip", "--strip-all", "-o")]
    {
        let command = tool(version, &format!("llvm-{program}"));
        bench.run(&format!("{command} {words} raised.co {out} kept.co"));
        let [kept, raised] = ["kept.co", "raised.co"].map(|file| numbers(bench, version, file, "k_use"));
        assert_eq!(kept[".vgpr_count"], raised[".vgpr_count"], "{program} {words}");
        hotswap_code_object::CodeObject::parse(&bench.read("kept.co")).unwrap();
    }
}

/// The compiler's own records replace what the code tells; kernels of such objects wait for a linker altogether.
#[test]
fn the_compilers_records_count() {
    let Some(bench) = Workbench::with_llvm(23, "the_compilers_records_count") else { return };
    for target in ["gfx90a", "gfx1250"] {
        make(&bench, 23, target, "-mllvm -amdgpu-enable-object-linking");
        let found = report(&bench, &bench.read("native.co"));
        let lto = numbers(&bench, 23, "lto.co", "k_use");
        let budget = found.short.iter().find(|budget| budget.kernel == "k_use").unwrap();
        assert_eq!(budget.needs.vgprs, lto[".vgpr_count"], "{target}");
        let wanted = lto[".private_segment_fixed_size"];
        assert!((wanted - 16..=wanted + 16).contains(&budget.needs.scratch), "{target}: {budget:?}, LTO {wanted}");
        raise_kernels(&bench.read("native.co"), &found).unwrap();
    }
}

/// The row of a fault in the table of `cargo xtask symbols exam`.
fn refused(fault: &str, told: &hotswap_report::Diagnostic) {
    say(&format!("exam refused | {fault} | {} | {} |", told.code.id, told.what));
}

/// Objects that must not meet: a compiler before the change of preserved registers, waves of 64 lanes, a function that was
/// replaced by one that writes more.
#[test]
fn mixes_of_conventions_are_told() {
    let Some(bench) = Workbench::with_llvm(23, "mixes_of_conventions_are_told") else { return };
    make(&bench, 23, "gfx1030", "");
    let mixes = |bench: &Workbench| report(bench, &bench.read("native.co")).mixes;
    assert!(mixes(&bench).is_empty());
    refused("callee over the budget", &report(&bench, &bench.read("native.co")).problems()[0]);
    let lld = tool(23, "ld.lld");
    bench.write("old", b"clang version 20.1.8\0");
    bench.run(&format!(
        "{} --update-section .comment=old library.o && {lld} -shared kernels.o library.o -o native.co",
        tool(23, "llvm-objcopy")
    ));
    let found = mixes(&bench);
    assert!(found.len() == 1 && found[0].what.contains("library.o was compiled by clang 20"), "{found:?}");
    refused("compilers with other preserved registers", &found[0]);
    let clang = tool(23, "clang++");
    let common = format!(
        "{clang} -x hip --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output -fno-offload-lto -O2 -w"
    );
    bench.write("library.hip", b"extern \"C\" __attribute__((device, noinline)) float lib_fn(const float *p, int n) { float s = 0; if (p[n] > 3) s = p[n + 1] * p[7]; return s; }\n");
    bench.run(&format!(
        "{common} -mwavefrontsize64 -c library.hip -o library.o && {lld} -shared kernels.o library.o -o native.co"
    ));
    let found = mixes(&bench);
    assert!(found.len() == 1 && found[0].what.contains("`lib_fn`, which it reaches, was compiled for 64"), "{found:?}");
    refused("another wave size", &found[0]);
    bench.write(
        "kernels.hip",
        b"extern \"C\" __attribute__((device, noinline)) float lib_fn(const float *p, int n) { return n; }\n\
        extern \"C\" __attribute__((global)) void k_use(float *p, int n) { p[0] = lib_fn(p, n) + 1; }\n",
    );
    bench.run(&format!("{common} -c library.hip -o library.o && {common} -c kernels.hip -o kernels.o && {lld} -shared -z muldefs library.o kernels.o -o native.co"));
    let found = mixes(&bench);
    assert!(
        found.len() == 1 && found[0].what.contains("`lib_fn` of kernels.o was replaced by one that also writes"),
        "{found:?}"
    );
    refused("replaced by one that writes more", &found[0]);
}

/// Needs that cannot be met, and calls that are not known, are told with their numbers.
#[test]
fn needs_that_cannot_be_met_are_refused() {
    let Some(bench) = Workbench::with_llvm(24, "needs_that_cannot_be_met_are_refused") else { return };
    make(&bench, 24, "gfx90a", "");
    let native = bench.read("native.co");
    let mut found = report(&bench, &native);
    found.short[0].needs.vgprs = 513;
    let error = raise_kernels(&native, &found).unwrap_err();
    refused("more than the processor has", &error);
    assert!(error.code.id == "HS0425" && error.what.contains("513 VGPRs") && error.what.contains("lib_fn"), "{error}");
    // 1,024 work-items are 16 waves: 4 for each SIMD, of 128 registers each.
    found.short[0].needs.vgprs = 200;
    let error = raise_kernels(&native, &found).unwrap_err();
    assert!(error.what.contains("a work-group of its largest size would not fit"), "{error}");
    bench.write(
        "kernels.hip",
        b"typedef float (*Function)(const float *, int);\n__attribute__((device)) Function chosen;\n\
        extern \"C\" __attribute__((global)) void k_any(float *p, int n) { p[0] = chosen(p, n); }\n",
    );
    let clang = tool(24, "clang++");
    bench.run(&format!("{clang} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output -fno-offload-lto -O2 -w -c kernels.hip -o kernels.o && {} -shared kernels.o library.o -o native.co", tool(24, "ld.lld")));
    let found = report(&bench, &bench.read("native.co"));
    assert_eq!((found.open.as_slice(), found.short.len()), (["k_any".to_owned()].as_slice(), 0));
    assert_eq!(found.problems()[0].code.id, "HS0427");
    refused("a call through a pointer", &found.problems()[0]);
}

const FRAMES: [(&str, &str); 2] = [
    (
        "library.hip",
        "extern \"C\" __attribute__((device, noinline)) void fill(int *a, int x) { for (int i = 0; i < 100; i++) a[i] = x * i; }
extern \"C\" __attribute__((device, noinline)) int small(int x) { int a[100]; fill(a, x); return a[x & 63]; }
extern \"C\" __attribute__((device, noinline)) int hidden(int x) {
  volatile int a[1000];
  for (int i = 0; i < 1000; i++) a[i] = x * i;
  return a[x & 63];
}
extern \"C\" __attribute__((device, noinline)) int again(int n) { return n < 2 ? n : again(n - 1) + again(n - 2); }
",
    ),
    (
        "kernels.hip",
        "#define KERNEL(f) extern \"C\" __attribute__((device)) int f(int); \\
  extern \"C\" __attribute__((global)) void k_##f(int *p) { p[0] = f(p[1]); }
KERNEL(small) KERNEL(hidden) KERNEL(again)
",
    ),
];

/// HIP gives kernels with a dynamic stack 1,024 bytes: less is no error, but numbers that are written are exact. Frames that the
/// code does not show, and recursions, are told.
#[test]
fn frames_that_are_small_hidden_or_without_a_bound() {
    let Some(bench) = Workbench::with_llvm(24, "frames_that_are_small_hidden_or_without_a_bound") else { return };
    FRAMES.iter().for_each(|(name, text)| bench.write(name, text.as_bytes()));
    for target in ["gfx90a", "gfx1201"] {
        let common = format!(
            "{} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output -O2 -w",
            tool(24, "clang++")
        );
        bench.run(&format!(
            "for name in kernels library; do {common} -fno-offload-lto -c $name.hip -o $name.o || exit 1; done; \
             {} -shared kernels.o library.o -o native.co",
            tool(24, "ld.lld")
        ));
        let native = bench.read("native.co");
        let scratch = |report: &LinkReport| {
            report.short.iter().find(|one| one.kernel == "k_small").map_or(0, |one| one.needs.scratch - one.has.scratch)
        };
        // On gfx1201 the kernel has too few registers as well.
        if target == "gfx90a" {
            let found = report(&bench, &native);
            assert_eq!(scratch(&found), 0, "{:?}", found.short);
        }
        let found = report_with(&bench, &native, DynamicStack::AsStated);
        assert!((400..=432).contains(&scratch(&found)), "{target}: {:?}", found.short);
        bench.write("native.co", &raise_kernels(&native, &found).unwrap());
        assert!(numbers(&bench, 24, "native.co", "k_small")[".private_segment_fixed_size"] >= 400, "{target}");
        let mut told: Vec<_> =
            found.unbounded.iter().map(|one| (&*one.kernel, &*one.function, one.is_recursive)).collect();
        told.sort_unstable();
        assert_eq!(told, [("k_again", "again", true), ("k_hidden", "hidden", false)], "{target}");
        assert!(found.open.is_empty(), "{target}: {:?}", found.open);
        for told in found.problems().iter().filter(|one| one.what.contains(" reaches ")) {
            assert_eq!(told.code.id, "HS0440");
            if target == "gfx90a" {
                refused("scratch without a known bound", told);
            }
        }
    }
}
