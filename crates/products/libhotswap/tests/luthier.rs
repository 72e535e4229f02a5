//! A program in C that answers the questions of an instrumentation framework, Luthier, by the C interface, and compares the answers
//! with an ELF reader of its own: on inputs like that framework's tests.

mod common;

use common::CLibrary;
use hotswap_userland::{Workbench, say, slice, tool};

const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];

/// Device functions of all kinds, and variables of all kinds.
const VARIABLES: &str = "
extern \"C\" {
__attribute__((device)) int counter = 3;
__attribute__((constant)) float weights[4] = {1, 2, 3, 4};
__attribute__((device)) static int own[8];
__attribute__((global)) void counts(int *p, int n) { own[n & 7] += counter; p[0] = own[p[1] & 7] + (int)weights[n & 3]; }
}
";

/// A function that calls one of the other object, which calls it in turn.
fn half(own: &str, other: &str) -> String {
    format!(
        "extern \"C\" __attribute__((device)) int {other}(int);\n\
         extern \"C\" __attribute__((device)) int {own}(int n) {{ return n < 2 ? n : {other}(n - 1) + 1; }}\n\
         extern \"C\" __attribute__((global)) void k_{own}(int *p) {{ p[0] = {own}(p[1]); }}\n"
    )
}

fn make(bench: &Workbench, (version, target, level): (u32, &str, &str)) {
    let functions = include_str!("../../../retarget/device-symbols/tests/functions.hip");
    bench.write("a.hip", format!("{functions}{VARIABLES}").as_bytes());
    bench.write("ping.hip", half("ping", "pong").as_bytes());
    bench.write("pong.hip", half("pong", "ping").as_bytes());
    let (clang, lld) = (tool(version, "clang++"), tool(version, "ld.lld"));
    let compile = format!(
        "{clang} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
         --no-gpu-bundle-output -fuse-cuid=none {level} -w -c"
    );
    bench.run(&format!("{compile} a.hip -o a.o && {lld} -shared --emit-relocs a.o -o a.co"));
    for name in ["ping", "pong"] {
        bench.run(&format!(
            "{compile} -fvisibility=default {name}.hip -o {name}.o && {lld} -shared {name}.o -o {name}.co"
        ));
    }
}

#[test]
fn the_questions_of_an_instrumentation_framework_have_answers() {
    let test = "the_questions_of_an_instrumentation_framework_have_answers";
    let Some(bench) = Workbench::new(test) else { return };
    let library = CLibrary::new();
    let program = library.compile("luthier.c", &[]);
    // Clang 22 compiles relocatable device code to bitcode alone.
    let versions = bench.versions.iter().copied().filter(|version| (23..=24).contains(version));
    let targets = versions.flat_map(|version| TARGETS.map(|target| (version, target)));
    let all: Vec<_> =
        targets.flat_map(|(version, target)| ["-O0", "-O2"].map(|level| (version, target, level))).collect();
    let mut compared = 0;
    for setting in slice(test, all, |number, _| number % 6 == number / 6) {
        make(&bench, setting);
        let paths = ["a.co", "ping.co", "pong.co"].map(|name| bench.path(name));
        let text = common::succeed(library.command(&program).args(paths));
        let counts: Vec<&str> = text.lines().collect();
        assert!(counts.len() == 3 && counts[0].contains("8 kernels"), "{setting:?}: {text}");
        say(&format!("{setting:?}: {}", counts.join("; ")));
        compared += 1;
    }
    assert!(compared >= 4);
}
