//! The examples that use the library, run: a stack walker in C, a module and a loader of runners in Python, a loader in Rust.

mod common;

use common::{CLibrary, has_python_with_ctypes, here, succeed};
use hotswap_code_object::{CodeMap, CodeObject};
use hotswap_userland::{Workbench, say, tool};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Device code that inlines, calls and calls through a pointer, of which nothing is known.
const STACKS: &str = "
namespace math { __attribute__((device)) inline int rest(int x) { return x % 7; } }
__attribute__((device, noinline)) int inner(int *p) { return math::rest(p[1]) + p[2]; }
__attribute__((device, noinline)) int outer(int *p) { return inner(p + 1) + 3; }
__attribute__((device, noinline)) int apart(int *p) { return p[7]; }
__attribute__((global)) void kernel(int *p) { p[0] = outer(p) * 5; p[1] = apart(p); }
";

/// The path of an example.
fn example(name: &str) -> PathBuf {
    here().join("../../../examples").join(name)
}

/// A function of a code object: its first address, and its listing by LLVM.
struct Listed {
    start: u64,
    lines: Vec<String>,
}

impl Listed {
    /// The address of the first instruction with that mnemonic, and that of the one after it.
    fn after(&self, mnemonic: &str) -> u64 {
        let number = self.lines.iter().position(|line| line.contains(mnemonic)).expect("it is there");
        address_of_line(&self.lines[number + 1])
    }
}

/// The address that LLVM prints behind an instruction.
fn address_of_line(line: &str) -> u64 {
    let hex = line.split("// ").nth(1).and_then(|rest| rest.split(':').next()).expect("each line has it");
    u64::from_str_radix(hex, 16).expect("a number")
}

/// A function in LLVM's listing, up to its end: padding follows.
fn listed(listing: &str, name: &str) -> Listed {
    let own = listing.lines().skip_while(|line| !line.ends_with(&format!("<{name}>:"))).skip(1);
    let mut lines: Vec<String> = own.take_while(|line| !line.is_empty()).map(str::to_owned).collect();
    let end = lines.iter().position(|line| line.contains("s_setpc_b64") || line.contains("s_endpgm"));
    lines.truncate(end.expect("functions end") + 1);
    Listed { start: address_of_line(&lines[0]), lines }
}

/// The walker's output for lines of samples.
fn stacks_of(library: &CLibrary, walker: &PathBuf, file: &str, samples: &str) -> String {
    use std::io::Write;
    let mut command = library.command(walker);
    let mut child =
        command.args([file, "gfx1030"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("it has one").write_all(samples.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_stack_walker_names_inlined_frames_and_wrong_return_addresses() {
    let test = "a_stack_walker_names_inlined_frames_and_wrong_return_addresses";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    let walker = library.compile_file(&example("tool/stacks.c"), &[]);
    bench.write("a.hip", STACKS.as_bytes());
    let compile = format!(
        "{} -x hip --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output -O2 -w a.hip",
        tool(24, "clang++")
    );
    bench.run(&format!("{compile} -g -o a.co && {compile} -o plain.co"));
    let [whole, plain] = ["a.co", "plain.co"].map(|name| {
        let listing = bench.disassemble(24, "-d", name);
        ["_Z5innerPi", "_Z5outerPi", "_Z5apartPi", "_Z6kernelPi"].map(|function| listed(&listing, function))
    });
    let path = |name: &str| bench.path(name).display().to_string();
    let [inner, outer, apart, kernel] = &whole;
    let (to_outer, to_inner) = (kernel.after("s_swappc"), outer.after("s_swappc"));
    // Somewhere in the leaf is the inlined function.
    let samples: String =
        inner.lines.iter().map(|line| format!("{:#x} {to_inner:#x} {to_outer:#x}\n", address_of_line(line))).collect();
    let text = stacks_of(&library, &walker, &path("a.co"), &samples);
    let wanted = "#0 math::rest(int) a.hip:2 (inlined)\n#1 inner(int*) a.hip:3\n#2 outer(int*) a.hip:4\n#3 kernel(int*) a.hip:6\n\n";
    assert!(text.contains(wanted), "{text}");
    assert_eq!(text.matches("kernel(int*)").count(), inner.lines.len(), "{text}");
    // Return addresses that are none, and one behind a call of another function.
    let text = stacks_of(&library, &walker, &path("a.co"), &format!("{:#x} {:#x}\n", inner.start, kernel.start + 8));
    assert!(text.contains(&format!("{:#x} is not after a call", kernel.start + 8)), "{text}");
    let text = stacks_of(&library, &walker, &path("a.co"), &format!("{:#x} {to_inner:#x}\n", apart.start));
    assert!(text.contains("#1 outer(int*)") && text.contains("no call there leads to the function above"), "{text}");
    // Without debug information: functions and distances.
    let [inner, outer, _, _] = &plain;
    let address = outer.after("s_swappc");
    let text = stacks_of(&library, &walker, &path("plain.co"), &format!("{:#x} {address:#x} 0x1\n", inner.start + 4));
    let wanted =
        format!("#0 inner(int*)+0x4\n#1 outer(int*)+{:#x}\n   0x1 is not after a call\n\n", address - 4 - outer.start);
    assert_eq!(text, wanted);
    say(&format!("{test}: {} stacks", whole[0].lines.len() + 3));
}

/// A program whose runners have code for some GPUs, as clang makes them.
fn write_runners(bench: &Workbench) {
    bench.write("cpu.c", b"int on_the_cpu;\n");
    bench.write("one.hip", b"extern \"C\" __attribute__((global)) void one(int *p) { p[0] = p[1] * 3; }\n");
    bench.write("two.hip", b"extern \"C\" __attribute__((global)) void two(int *p) { p[0] = p[1] * 7; }\n");
    let compile =
        format!("{} -x hip -nogpuinc -nogpulib --offload-device-only -fuse-cuid=none -O2 -w", tool(24, "clang++"));
    let fat = "--gpu-bundle-output --offload-arch=gfx90a --offload-arch=gfx1030";
    // Each unit is a bundle in the section of fat binaries.
    bench.run(&format!(
        "mkdir -p runners && for unit in one two; do {compile} {fat} $unit.hip -o $unit.hipfb && \
         {compile} --no-gpu-bundle-output --offload-arch=gfx1031 $unit.hip -o $unit.own || exit 1; done && \
         printf '.section .hip_fatbin,\"a\"\\n.p2align 12\\n.incbin \"one.hipfb\"\\n.p2align 12\\n.incbin \"two.hipfb\"\\n' >fat.s && \
         cc -shared fat.s -o runners/libggml-hip.so && cp one.hip runners/libempty.txt && \
         cc -shared cpu.c -o runners/liba-cpu.so"
    ));
}

#[test]
fn a_loader_of_runners_in_python_finds_the_code_of_each_gpu() {
    let test = "a_loader_of_runners_in_python_finds_the_code_of_each_gpu";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    if !has_python_with_ctypes(test) {
        return;
    }
    let library = CLibrary::new();
    write_runners(&bench);
    let module = std::fs::read_to_string(example("loader/hotswap.py")).unwrap();
    assert!(module.lines().count() <= 40);
    let run = |gpus: &[&str]| {
        let mut command = Command::new("python3");
        command.env("HOTSWAP_LIBRARY", library.path("libhotswap.so.0")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(example("loader/runners.py")).args([bench.path("runners"), bench.path("out")]).args(gpus);
        let output = command.output().unwrap();
        let [text, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), text, error)
    };
    let (code, text, _) = run(&["gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (code, lines),
        (
            Some(0),
            vec![
                "gfx1030: libggml-hip.so, 2 code objects (native from gfx1030)",
                "gfx1031: libggml-hip.so, 2 code objects (relabelled from gfx1030)",
                "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-: libggml-hip.so, 2 code objects (native from gfx90a)",
            ]
        )
    );
    for (number, unit) in ["one", "two"].iter().enumerate() {
        let made = bench.read(&format!("out/gfx1031/libggml-hip.so.{number}.co"));
        assert!(made.starts_with(&bench.read(&format!("{unit}.own"))), "{unit}: clang's own bytes, then the record");
        let agent = bench.read(&format!("out/amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-/libggml-hip.so.{number}.co"));
        assert_eq!(CodeObject::parse(&agent).unwrap().target_id().to_string(), "gfx90a");
    }
    let (code, text, error) = run(&["gfx1030", "gfx1201"]);
    assert!(
        code == Some(1) && text.ends_with("gfx1201: no runner, the CPU\n") && error.contains("HS0401"),
        "{text}{error}"
    );
    assert!(!bench.path("out/gfx1201").exists());
    let (code, text, error) = run(&["gfx9999"]);
    assert!(code == Some(1) && text.contains("no runner") && error.contains("HS0202"), "{text}{error}");
    say(&format!("{test}: 3 GPUs served, 2 refused"));
}

/// The loader in Rust, compiled.
fn rust_loader(library: &CLibrary) -> PathBuf {
    let program = library.path("bytes_for_rust");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "-D", "warnings", "-L"]).arg(library.path("")).arg("-o").arg(&program);
    succeed(command.arg(example("loader/bytes_for.rs")));
    program
}

/// The end of a loader that writes the code of a GPU to `made.co`.
struct LoaderRun {
    code: Option<i32>,
    text: String,
}

fn run_loader(library: &CLibrary, program: &PathBuf, bench: &Workbench, [file, gpu]: [&str; 2]) -> LoaderRun {
    let mut command = library.command(program);
    let output = command.arg(bench.path(file)).arg(gpu).arg(bench.path("made.co")).output().unwrap();
    let [text, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    LoaderRun { code: output.status.code(), text: text + &error }
}

/// Clang's own bytes for a sibling, a refusal with its code for a GPU without one, and messages for what is no file or no code.
fn loader_writes_code(library: &CLibrary, program: &PathBuf, bench: &Workbench) {
    bench.write("made.co", b"");
    let LoaderRun { code, text } = run_loader(library, program, bench, ["one.hipfb", "gfx1031"]);
    assert!(code == Some(0) && text.contains("sibling"), "{text}");
    assert!(bench.read("made.co").starts_with(&bench.read("one.own")));
    assert!(CodeMap::read(&bench.read("made.co")).unwrap().processor.unwrap().name == "gfx1031");
    bench.write("made.co", b"");
    for (words, told) in [
        (["one.hipfb", "gfx1201"], "[HS0401]"),
        (["one.hipfb", "gfx9999"], "[HS0202]"),
        (["gone", "gfx1031"], "No such file"),
        (["one.hip", "gfx1031"], "no device code"),
    ] {
        let LoaderRun { code, text } = run_loader(library, program, bench, words);
        assert!(code == Some(1) && text.contains(told), "{words:?}: {code:?} {text}");
        assert!(bench.read("made.co").is_empty(), "{words:?}");
    }
}

#[test]
fn loaders_in_c_and_rust_write_the_code_of_a_gpu() {
    let test = "loaders_in_c_and_rust_write_the_code_of_a_gpu";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    write_runners(&bench);
    let programs = [library.compile_file(&example("loader/bytes_for.c"), &[]), rust_loader(&library)];
    for program in &programs {
        loader_writes_code(&library, program, &bench);
    }
}
