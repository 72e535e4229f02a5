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
