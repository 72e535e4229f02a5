//! The library beside the real one: symbols, versions, what it needs; and the interface of HSA itself, called from C.

use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::EMULATED_DIRECTORY;
use std::collections::BTreeSet;

/// The symbols that a library defines, with their versions.
fn defined(bench: &EmulationBench, library: &str) -> BTreeSet<String> {
    let table = bench.work.run(&format!("nm -D --defined-only --with-symbol-versions {library}"));
    let names = table.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| name.contains('@')).map(str::to_owned).collect()
}

#[test]
fn every_symbol_of_the_real_library_is_defined() {
    let Some(bench) = EmulationBench::new("symbols of HSA's library") else { return };
    let own = defined(&bench, &format!("{EMULATED_DIRECTORY}/libhsa-runtime64.so.1"));
    let real = defined(&bench, "/usr/lib/*/libhsa-runtime64.so.1");
    assert!(real.len() >= 260, "{real:?}");
    assert_eq!(real.difference(&own).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(own.iter().all(|name| name.ends_with("@@ROCR_1")), "{own:?}");
    let needed = bench.work.run(&format!("readelf -d {EMULATED_DIRECTORY}/libhsa-runtime64.so.1"));
    assert!(needed.contains("Library soname: [libhsa-runtime64.so.1]"), "{needed}");
    let foreign = |line: &&str| {
        line.contains("(NEEDED)") && !["libc.so", "ld-linux", "libm.so"].iter().any(|name| line.contains(name))
    };
    assert_eq!(needed.lines().find(foreign), None);
}

#[test]
fn every_call_has_a_status() {
    let Some(bench) = EmulationBench::new("statuses of HSA") else { return };
    bench.work.write("handles.c", include_bytes!("../cases/handles.c"));
    bench.work.write("kernel.hip", include_bytes!("../cases/kernel.hip"));
    bench.work.run(&format!(
        "gcc -O1 -Wall -Wextra -Wno-unused-parameter handles.c -o handles {EMULATED_DIRECTORY}/libhsa-runtime64.so.1 && \
         clang-22 -x hip --cuda-device-only --no-gpu-bundle-output --offload-arch=gfx1030 -nogpuinc -nogpulib -O1 -c kernel.hip -o kernel.co \
             -Xoffload-linker --unresolved-symbols=ignore-all && \
         sed 's/^extern.*outside;/__attribute__((device)) int outside;/' kernel.hip > whole.hip && \
         clang-22 -x hip --cuda-device-only --no-gpu-bundle-output --offload-arch=gfx1030 -nogpuinc -nogpulib -O1 -c whole.hip -o whole.co"
    ));
    let run = bench.run("gfx1030", "", "./handles whole.co kernel.co");
    assert!(run.passed().lines().count() > 50, "{}", run.output);
    assert!(!run.error.contains("defect") && !run.error.contains("panicked"), "{}", run.error);
    // The same code object is for no other GPU.
    let run = bench.run("gfx1100", "", "./handles whole.co kernel.co");
    assert!(run.output.contains("WRONG load(bytes, size, NULL, NULL): 0x100d"), "{}", run.output);
    assert!(run.error.contains("it is for gfx1030, the GPU is gfx1100"), "{}", run.error);
}
