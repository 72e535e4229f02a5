//! A file with code of both wave sizes: every function has the registers, scratch and callees that it has in a file of its
//! own size. The oracle is the same object linked alone.

use hotswap_device_symbols::{Function, analyse_file};
use hotswap_userland::{Workbench, say};

/// A kernel that calls a function with loops and many values; at -O3 it has dual instructions in waves of 32 lanes.
const SOURCE: &str = "
typedef float f8 __attribute__((ext_vector_type(8)));
__attribute__((noinline)) float NAME_callee(const float *p, int n) {
  f8 a[12]; float s = 0;
  for (int i = 0; i < 12; i++) a[i] = *(const f8 *)(p + 8 * i);
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < 12; i++) a[i] = a[i] * a[(i + 5) % 12] + a[(i + 7) % 12];
    if (p[k] > 0) s += p[k] * 3;
  }
  for (int i = 0; i < 12; i++) for (int j = 0; j < 8; j++) s += a[i][j];
  return s;
}
__attribute__((amdgpu_kernel)) void NAME_kernel(float *p, int n) {
  int lane = __builtin_amdgcn_workitem_id_x();
  if (lane < n) p[lane] = NAME_callee(p + lane, n) + p[2 * lane] * p[3 * lane];
}
";

fn rows(bytes: &[u8]) -> Vec<Function> {
    let (table, problems) = analyse_file(bytes).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let mut rows = table.functions;
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

#[test]
fn functions_of_two_wave_sizes_are_counted_as_alone() {
    let Some(bench) = Workbench::with_llvm(23, "wave sizes") else { return };
    let compile = |name: &str, options: &str| {
        bench.write(&format!("{name}.c"), SOURCE.replace("NAME", name).as_bytes());
        bench.run(&format!(
            "clang-23 --target=amdgcn-amd-amdhsa -mcpu=gfx1100 {options} -nogpulib -O3 -ffast-math -w -c {name}.c \
             -o {name}.o && ld.lld-23 -shared {name}.o -o {name}.co"
        ));
        bench.read(&format!("{name}.co"))
    };
    let alone = [compile("small", ""), compile("large", "-mwavefrontsize64")];
    bench.run("ld.lld-23 -shared small.o large.o -o both.co && ld.lld-23 -shared large.o small.o -o turned.co");
    let expected: Vec<Function> = alone.iter().flat_map(|bytes| rows(bytes)).collect();
    let duals = bench.run("llvm-objdump-23 -d small.co");
    assert!(duals.contains("v_dual_"), "nothing that exists in one size only");
    for name in ["both.co", "turned.co"] {
        let joined = bench.read(name);
        let found = rows(&joined);
        assert_eq!(found.len(), 4, "{name}");
        for row in &found {
            let own = expected.iter().find(|one| one.name == row.name).unwrap();
            assert_eq!((row.own, row.total), (own.own, own.total), "{name}: {}", row.name);
            assert_eq!((row.wave_size, row.callees.len()), (own.wave_size, own.callees.len()), "{name}: {}", row.name);
        }
    }
    say("wave sizes: 4 functions in two files of both sizes are counted as alone");
}

/// Functions of a file whose kernels have another size, and of one without kernels, which no kernel reaches: their code shows for which
/// size they were compiled.
#[test]
fn functions_that_no_kernel_reaches_are_counted_as_alone() {
    let test = "functions_that_no_kernel_reaches_are_counted_as_alone";
    let Some(bench) = Workbench::with_llvm(23, test) else { return };
    let mut compared = 0;
    for target in ["gfx1030", "gfx1100", "gfx1201"] {
        let compile = |name: &str, options: &str| {
            bench.write(&format!("{name}.c"), SOURCE.replace("NAME", name).as_bytes());
            bench.run(&format!(
                "clang-23 --target=amdgcn-amd-amdhsa -mcpu={target} {options} -nogpulib -O3 -ffast-math -w -c {name}.c -o {name}.o"
            ));
        };
        for (kernels, functions) in [("", "-mwavefrontsize64"), ("-mwavefrontsize64", "")] {
            compile("one", kernels);
            compile("other", functions);
            bench.run(
                "llvm-objcopy-23 --remove-section=.rela.rodata --remove-section=.rodata --strip-symbol=other_kernel.kd other.o bare.o; \
                 ld.lld-23 -shared one.o bare.o -o joined.co && ld.lld-23 -shared bare.o -o bare.co && \
                 ld.lld-23 -shared other.o -o alone.co && ld.lld-23 -shared one.o -o kernels.co",
            );
            let alone = rows(&bench.read("alone.co"));
            let expected = alone.iter().find(|one| one.name == "other_callee").unwrap();
            for file in ["joined.co", "bare.co"] {
                let found = rows(&bench.read(file));
                let row = found.iter().find(|one| one.name == "other_callee").unwrap();
                assert_eq!(
                    (row.own, row.wave_size),
                    (expected.own, expected.wave_size),
                    "{target} {functions} in {file}"
                );
                compared += 1;
            }
        }
    }
    say(&format!("{test}: {compared} functions"));
}

/// Functions without branches, loops and kernels: one file each, and all in one.
const STRAIGHT: [(&str, &str); 4] = [
    ("plain", "float plain(float x, float y) { return x * y + 3; }"),
    ("carry", "unsigned long carry(unsigned long a, unsigned long b) { return a - b > a ? a : b; }"),
    ("chosen", "float chosen(float x, float y) { return x > y ? x * 3 : y * 5; }"),
    (
        "many",
        "int many(int a, int b, int c, int d) { int r = 0; r += a > b ? c : d; r ^= a > c ? b : d; \
         r *= (a > d) == (b > c) ? 7 : 9; r += (a == b) != (c < d) ? r : d; return r; }",
    ),
];

/// The wave sizes of functions, and their code.
fn stated(bench: &Workbench, target: &str, options: &str, source: &str) -> (Vec<Option<u8>>, String) {
    bench.write("a.c", source.as_bytes());
    bench.run(&format!(
        "clang-24 --target=amdgcn-amd-amdhsa -mcpu={target} {options} -nogpulib -O2 -w -c a.c -o a.o && ld.lld-24 -shared a.o -o a.co"
    ));
    let sizes = rows(&bench.read("a.co")).iter().map(|row| row.wave_size).collect();
    (sizes, bench.run("llvm-objdump-24 -d --no-leading-addr a.o").replace("a.o", ""))
}

/// A library without kernels shows the size for which it was compiled wherever its code depends on it.
#[test]
fn straight_line_functions_show_their_wave_size_where_they_depend_on_it() {
    let test = "straight_line_functions_show_their_wave_size_where_they_depend_on_it";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let (mut shown, mut same) = (0, 0);
    for target in ["gfx1030", "gfx1100", "gfx1201"] {
        for (name, source) in STRAIGHT {
            let found = [(32, ""), (64, "-mwavefrontsize64")].map(|(lanes, options)| {
                let (sizes, code) = stated(&bench, target, options, source);
                assert!([None, Some(lanes)].contains(&sizes[0]), "{target} {name} for {lanes}: {sizes:?}");
                // Both are shown by instructions of one size alone.
                let depends = code.contains("v_dual") || code.contains("s_xor_b") || code.contains("s_and_b");
                assert_eq!(sizes[0].is_some(), depends, "{target} {name} for {lanes}: {code}");
                (sizes[0], code)
            });
            shown += found.iter().filter(|(size, _)| size.is_some()).count();
            same += usize::from(found[0].1 == found[1].1);
        }
        let all: String = STRAIGHT.iter().map(|(_, source)| format!("{source}\n")).collect();
        for (lanes, options) in [(32, ""), (64, "-mwavefrontsize64")] {
            assert_eq!(stated(&bench, target, options, &all).0, vec![Some(lanes); STRAIGHT.len()], "{target}");
        }
    }
    assert!(shown >= 8 && same >= 4, "{shown} {same}");
    say(&format!("{test}: {shown} functions of 24 show their size, {same} pairs have the same bytes"));
}
