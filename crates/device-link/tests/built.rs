//! Builds with an installation: budgets are checked and raised in the device link of the compiler, and code objects have tables of
//! their functions, which survive the tools that handle code objects.

use hotswap_userland::{ENV_PREFIX, Workbench, skip, tool};
use std::fmt::Write;

/// The installation's directory as a path inside, and a directory with the sources.
fn bench(test: &str) -> Option<(Workbench, String)> {
    let bench = Workbench::with_llvm(23, test)?;
    let Some(prefix) = std::env::var(ENV_PREFIX).ok().filter(|prefix| !prefix.is_empty()) else {
        skip(test, &format!("{ENV_PREFIX} names no installation"));
        return None;
    };
    bench.write("library.hip", include_bytes!("library.hip"));
    bench.write("kernels.hip", include_bytes!("kernels.hip"));
    bench.write("main.cpp", b"int main() { return 0; }\n");
    Some((bench, prefix))
}

/// The command of a compiler for both sources.
fn compiler(prefix: &str, version: u32) -> String {
    format!(
        "HOTSWAP_CLANG={} {prefix}/bin/hotswap-clang++ -x hip --offload-arch=gfx1030 -nogpuinc -nogpulib -fgpu-rdc \
         -fno-offload-lto -O2 -w",
        tool(version, "clang++")
    )
}

/// Compiles, and links for the device alone; returns the exit code and the messages.
fn link(bench: &Workbench, compiler: &str, words: &str) -> (Option<i32>, String) {
    let mut script = String::new();
    let words: String = words.split(' ').filter(|word| !word.is_empty()).fold(String::new(), |mut text, word| {
        let _ = if word.starts_with("-f") { write!(text, " {word}") } else { write!(text, " -Xoffload-linker {word}") };
        text
    });
    for name in ["library", "kernels"] {
        let _ = writeln!(script, "{compiler} {words} -c {name}.hip -o {name}.o || exit 9");
    }
    let linker = compiler.replace("-x hip ", "");
    let _ = writeln!(
        script,
        "{linker} {words} --offload-link --no-offload-new-driver kernels.o library.o -o app 2>&1 || {linker} {words} --hip-link -shared -nostdlib kernels.o library.o -o app"
    );
    let output = bench.shell(&script);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn placeholder() {
    let Some((bench, prefix)) = bench("placeholder") else { return };
    let (code, text) = link(&bench, &compiler(&prefix, 23), "--hotswap-device-link=check");
    panic!("{code:?} {text}");
}
