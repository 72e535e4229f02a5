//! The fat binaries of the legacy driver that HotSwap writes in place of clang's bundler: the same objects, and the bundler does not run.
//! Where the environment has a variable of the bundler's, that tool runs: its objects are the measure.

use hotswap_tests::mode::write_sources;
use hotswap_tests::strace::{Log, STRACE};
use hotswap_tests::{Bench, Call, Clang, Scratch, say};

const KERNEL: &str = "#include \"hip.h\"\n__attribute__((global)) void kernel(int *p) { p[0] = p[1] * 3; }\n\
    extern \"C\" const void *address() { return reinterpret_cast<const void *>(kernel); }\n";
/// Plans and GPUs of commands; the last one is compressed, which is the bundler's work.
const COMMANDS: [(&[&str], bool); 4] = [
    (&["--offload-arch=gfx1030", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031,gfx1036"], true),
    (&["--offload-arch=gfx1030,gfx1100", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"], true),
    (&["--offload-arch=gfx1030,gfx1031,gfx1100", "-fhotswap-coalesce"], true),
    (
        &["--offload-arch=gfx1030", "--offload-compress", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"],
        false,
    ),
];

#[test]
fn the_bundlers_bytes_are_written_without_it() {
    let Some(bench) = Bench::ready("own bundle") else { return };
    let mut count = 0;
    // Clang 24 has the new driver only, whose wrapper of the linker writes the fat binary.
    for clang in bench.clangs.iter().filter(|clang| clang.version < 24) {
        for (words, is_ours) in COMMANDS {
            let scratch = bench.scratch();
            write_sources(&scratch, false);
            scratch.write("a.hip", KERNEL);
            let line = format!("clang {} {}", clang.version, words.join(" "));
            assert_eq!(
                compile(&bench, clang, &scratch, words, &[]),
                usize::from(!is_ours),
                "{line}: starts of the bundler"
            );
            let own = scratch.read("out.o");
            let variable = [("OFFLOAD_BUNDLER_IGNORE_ENV_VAR".to_owned(), "1".to_owned())];
            assert_eq!(compile(&bench, clang, &scratch, words, &variable), 1, "{line}: starts of the bundler");
            assert!(scratch.read("out.o") == own, "{line}: other bytes than with clang's bundler");
            count += 1;
        }
    }
    assert!(count > 0, "no clang has the legacy driver");
    say(&format!("own bundle: {count} objects are those with clang's bundler"));
}

/// Compiles, and counts how often clang's own bundler is started.
fn compile(bench: &Bench, clang: &Clang, scratch: &Scratch, words: &[&str], variables: &[(String, String)]) -> usize {
    let mut line = vec![bench.installed("bin/hotswap-clang++")];
    line.extend(clang.light());
    let rest = ["--no-offload-new-driver", "-O1", "-cuid=unit", "-c", "a.hip", "-o", "out.o"];
    line.extend(words.iter().chain(&rest).map(|word| (*word).to_owned()));
    let log = scratch.inside("strace.log");
    let strace: Vec<&str> = STRACE.iter().copied().chain([log.as_str()]).collect();
    let call = Call::new(bench, &scratch.inside, &line).under(&strace).env("HOTSWAP_CLANG", &clang.program);
    let ran = call.envs(variables).run();
    assert!(ran.ok(), "{}", ran.brief());
    let log = Log::parse(&String::from_utf8_lossy(&scratch.read("strace.log")));
    let tools = log.execs.iter().filter(|exec| exec.name() == "clang-offload-bundler");
    tools.filter(|exec| !exec.file.starts_with(&bench.installed(""))).count()
}
