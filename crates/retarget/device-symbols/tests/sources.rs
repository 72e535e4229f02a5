//! The source file of each function: known here, because the test writes the files.

use hotswap_device_symbols::analyse_file;
use hotswap_userland::{Workbench, say, slice, tool};
use std::collections::BTreeMap;

const ONE: &str = "__attribute__((device)) float two(float x);
__attribute__((device, noinline)) float one(float x) { return two(x) * x; }
extern \"C\" __attribute__((global)) void k_one(float *p) { p[0] = one(p[1]); }
";
const TWO: &str = "static __attribute__((device, noinline)) float own(float x) { return x * x + 3; }
__attribute__((device, noinline)) float two(float x) { return own(x) + own(x + 1); }
extern \"C\" __attribute__((global)) void k_two(float *p) { p[0] = two(p[1]); }
";

/// The source of each function of a code object.
fn sources(bytes: &[u8]) -> BTreeMap<String, Option<String>> {
    let (table, _) = analyse_file(bytes).unwrap();
    let source = |function| table.source_of(function).map(str::to_owned);
    table.functions.iter().map(|one| (one.name.clone(), source(one))).collect()
}

/// Separate objects of two sources, by link of machine code or by optimisation at link time.
fn link(bench: &Workbench, version: u32, target: &str, options: &str) -> Vec<u8> {
    bench.write("one.hip", ONE.as_bytes());
    bench.write("two.hip", TWO.as_bytes());
    let (clang, lld) = (tool(version, "clang++"), tool(version, "ld.lld"));
    bench.run(&format!(
        "for name in one two; do {clang} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc \
         --no-gpu-bundle-output -O2 -w {options} -c $name.hip -o $name.o || exit 1; done; {lld} -shared -plugin-opt=mcpu={target} one.o two.o -o a.co"
    ));
    bench.read("a.co")
}

#[test]
fn sources_are_told_by_debug_information() {
    let test = "sources_are_told_by_debug_information";
    let Some(bench) = Workbench::with_llvm(23, test) else { return };
    let names = [("_Z3onef", "one.hip"), ("k_one", "one.hip"), ("_ZL3ownf", "two.hip"), ("_Z3twof", "two.hip")];
    let names = names.into_iter().chain([("k_two", "two.hip")]);
    let expected: BTreeMap<String, Option<String>> =
        names.map(|(name, file)| (name.to_owned(), Some(file.to_owned()))).collect();
    let mut compared = 0;
    let all = [(23, "gfx90a"), (24, "gfx1250"), (24, "gfx1100"), (23, "gfx1201")];
    for (version, target) in slice(test, all.to_vec(), |number, _| number < 2) {
        for options in ["-g", "-gline-tables-only", "-g -gz=zlib", "-gdwarf-4"] {
            let found = sources(&link(&bench, version, target, &format!("-fno-offload-lto {options}")));
            assert_eq!(found, expected, "{version} {target} {options}");
        }
        // Before the link, too.
        assert_eq!(sources(&bench.read("two.o"))["k_two"].as_deref(), Some("two.hip"));
        // Optimised at link time: the units stay, functions of one may be in the other's code.
        let found = sources(&link(&bench, version, target, "-foffload-lto -g"));
        for (name, source) in &found {
            assert_eq!(source, &expected[name], "{version} {target} {name}");
        }
        // Without any statement it is not known.
        let bare = sources(&link(&bench, version, target, "-fno-offload-lto"));
        assert!(bare.len() == expected.len() && bare.values().all(Option::is_none), "{bare:?}");
        compared += 1;
    }
    say(&format!("{test}: {compared} settings"));
    assert!(compared >= 2);
}
