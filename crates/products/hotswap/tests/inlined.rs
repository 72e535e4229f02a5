//! Inlined functions at an address, compared with llvm-symbolizer.

use assert_cmd::Command;
use hotswap_code_object::CodeMap;
use hotswap_userland::{Workbench, say, tool};
use std::fmt::Write;

const SOURCE: &str = "\
namespace math {
__attribute__((device)) inline float square(float x) { return x * x; }
template <class T> __attribute__((device)) inline T cube(T x) {
  return square(x) * x;
}
}
__attribute__((device, noinline)) float far(float x) {
  return math::cube(x) + 1;
}
__attribute__((global)) void kernel(float *p, int n) {
  for (int i = 0; i < n; i++)
    p[i] = math::cube(p[i]) + far(p[i + 1]);
  p[0] = math::square(p[1]);
}
";

/// The frames of each address by llvm-symbolizer: function, file and line of each, the innermost first.
fn frames_by_llvm(bench: &Workbench, version: u32, addresses: &[u64]) -> Vec<String> {
    let words: String = addresses.iter().map(|address| format!(" {address:#x}")).collect();
    let symbolizer = tool(version, "llvm-symbolizer");
    let text = bench.run(&format!("{symbolizer} --obj=a.co --inlines --basenames --demangle{words}"));
    let frames = |block: &str| {
        let lines: Vec<&str> = block.lines().collect();
        lines.chunks(2).fold(String::new(), |mut all, pair| {
            let place = pair[1].rsplit_once(':').unwrap().0;
            // A row without a line is no place.
            let place = if place.ends_with(":0") { ":0" } else { place };
            let _ = writeln!(all, "  {}  {place}", pair[0]);
            all
        })
    };
    text.trim_end().split("\n\n").map(frames).collect()
}

/// The same by `hotswap addr2func`.
fn frames_by_hotswap(bench: &Workbench, addresses: &[u64]) -> Vec<String> {
    let words = addresses.iter().map(|address| format!("{address:#x}"));
    let output = Command::new(env!("CARGO_BIN_EXE_hotswap"))
        .current_dir(bench.path("."))
        .args(["addr2func", "a.co", "--inlines", "--demangle"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.starts_with("  "), found.last_mut()) {
            (true, Some(last)) => *last += &format!("{line}\n"),
            _ => found.push(String::new()),
        }
    }
    found
}

#[test]
fn inlined_functions_are_those_of_llvm_symbolizer() {
    let test = "inlined_functions_are_those_of_llvm_symbolizer";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    bench.write("a.hip", SOURCE.as_bytes());
    let (mut compared, mut deepest) = (0, 0);
    for (version, target, level) in [(22, "gfx90a", "-O2"), (23, "gfx1030", "-O3"), (24, "gfx1201", "-O1")] {
        bench.run(&format!(
            "{} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output {level} -g -w a.hip -o a.co",
            tool(version, "clang++")
        ));
        let bytes = bench.read("a.co");
        let map = CodeMap::read(&bytes).unwrap();
        let code = &map.sections[0];
        let symbols = code.symbols.iter().filter(|symbol| symbol.size > 0);
        let addresses: Vec<u64> = symbols
            .flat_map(|symbol| (symbol.offset..symbol.offset + symbol.size).step_by(4))
            .map(|offset| code.address + offset as u64)
            .collect();
        let (found, wanted) = (frames_by_hotswap(&bench, &addresses), frames_by_llvm(&bench, version, &addresses));
        assert_eq!(found.len(), wanted.len(), "{version} {target}");
        for ((address, found), wanted) in addresses.iter().zip(&found).zip(&wanted) {
            assert_eq!(found, wanted, "clang {version} {target} {level} {address:#x}");
        }
        deepest = deepest.max(found.iter().map(|frames| frames.lines().count()).max().unwrap_or(0));
        compared += addresses.len();
    }
    say(&format!("{test}: {compared} addresses"));
    assert!(compared > 50 && deepest >= 3, "{deepest}");
}
