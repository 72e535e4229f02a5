//! The library beside the real one: symbols, versions, what it needs; and the interface of HSA itself, called from C.

use hotswap_emulated_hip::EmulationBench;
use hotswap_hsa_emulated::API_TABLES;
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

/// The names of functions in a structure of the header, in their order.
fn members(header: &str, table: &str) -> Vec<String> {
    let body = header.split_once(&format!("struct {table} {{")).unwrap().1.split_once("\n};").unwrap().0;
    let last = |line: &str| Some(line.trim().strip_suffix(";")?.trim().rsplit(['*', ' ']).next()?.to_owned());
    body.split_inclusive(';').filter_map(last).filter_map(|name| Some(name.strip_suffix("_fn")?.to_owned())).collect()
}

/// A tool finds a function at its place in a table by the header alone.
#[test]
fn tables_for_tools_have_the_functions_of_the_header() {
    let Some(bench) = EmulationBench::new("tables of HSA's functions") else { return };
    let header = bench.work.run("cat /usr/include/hsa/hsa_api_trace.h");
    let names = ["core", "amd_ext", "finalizer_ext", "image_ext", "tools", "pc_sampling_ext"];
    let structures =
        ["CoreApiTable", "AmdExtTable", "FinalizerExtTable", "ImageExtTable", "ToolsApiTable", "PcSamplingExtTable"];
    assert_eq!(API_TABLES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for ((name, ours), structure) in API_TABLES.iter().zip(structures) {
        assert_eq!(members(&header, structure), *ours, "{name}");
    }
    assert_eq!(API_TABLES.iter().map(|(_, functions)| functions.len()).sum::<usize>(), 234);
}

/// Libraries in `HSA_TOOLS_LIB` and preloaded ones, in the order and with the arguments of ROCr.
#[test]
fn tools_libraries_change_the_functions() {
    let Some(bench) = EmulationBench::new("tools libraries") else { return };
    bench.work.write("tool.cpp", include_bytes!("../cases/tool.cpp"));
    bench.work.write("tools.c", include_bytes!("../cases/tools.c"));
    bench.work.run(&format!(
        "gcc -O1 -Wall tools.c -o tools {EMULATED_DIRECTORY}/libhsa-runtime64.so.1 && \
         build() {{ g++ -O1 -Wall -Wno-missing-field-initializers -fPIC -shared tool.cpp -o $1.so -DTOOL=\\\"$1\\\" $2; }}; \
         build first && build second && build refuses -DREFUSES && build preloaded -DPRIORITY=7"
    ));
    let run = bench.run(
        "gfx1030",
        "HSA_TOOLS_LIB='./none.so ./first.so ./refuses.so ./first.so ./second.so' HSA_TOOLS_REPORT_LOAD_FAILURE=1",
        "env LD_PRELOAD=$PWD/preloaded.so ./tools",
    );
    let lines: Vec<&str> = run.passed().lines().collect();
    let failed = |tool: &str, failed: &str| format!("{tool}: version 3, tables as built, HSA 1 (0), failed: {failed}");
    // Each asks for the version by the table, and so calls the tools before it.
    let loaded = [
        failed("first", "./none.so"),
        "first is called".to_owned(),
        failed("refuses", "./none.so"),
        "first is called".to_owned(),
        failed("second", "./none.so ./refuses.so"),
        "second is called".to_owned(),
        "first is called".to_owned(),
        failed("preloaded", "./none.so ./refuses.so"),
    ];
    let called = ["preloaded is called", "second is called", "first is called", "status 0, HSA 1"];
    let mut wanted = vec!["before:", "status 100b, HSA 0"];
    wanted.extend(loaded.iter().map(String::as_str));
    for when in ["inside:", "still inside:"] {
        wanted.push(when);
        wanted.extend(called);
    }
    wanted.extend(["preloaded is unloaded", "second is unloaded", "first is unloaded", "after:", "status 100b, HSA 0"]);
    assert_eq!(lines, wanted, "{}", run.error);
    assert!(run.error.contains("hotswap-emulated: tools library ./none.so cannot be loaded"), "{}", run.error);
}
