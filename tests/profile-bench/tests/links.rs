//! The archive in every kind of link: it is linked, it drains in time, and it exports no symbols from the image.

use hotswap_profile_bench::{DRAIN, Instrument, PLUGIN, ProfileBench, SCRIPT, counts};

const LINKERS: &[(&str, &str)] = &[("bfd", "-fuse-ld=bfd"), ("lld", "-fuse-ld=lld"), ("mold", "-fuse-ld=mold")];

/// Kinds of programs and libraries: name, arguments of the link.
const KINDS: &[(&str, &str)] = &[
    ("program", ""),
    ("collected", "-Wl,--gc-sections"),
    ("position", "-no-pie"),
    ("bound", "-Wl,-z,now,-z,relro,-z,noseparate-code"),
    ("optimised", "-flto -O2"),
    ("library", "-shared"),
    ("library-collected", "-shared -Wl,--gc-sections -Wl,-Bsymbolic"),
];

/// Symbols that must not be visible outside of the image.
const HIDDEN: &[&str] =
    &["hotswap", "__llvm_profile_offload", "__llvm_profile_hip", "hipModuleUnload", "interceptor", "rust"];

#[test]
fn every_kind_of_link_drains_and_shows_nothing() {
    let Some(bench) = ProfileBench::new("profile drain, links") else { return };
    let version = *bench.work.versions.last().expect("there is a compiler");
    let clang = bench.clang(version, Instrument::Coverage);
    bench.script(version, Instrument::Coverage, "script", true);
    bench.work.run(&format!(
        "for s in script plugin; do {clang} --offload-arch=gfx90a -fPIC -x hip -c $s.hip -o $s.o || exit 1; done; \
         {clang} --offload-arch=gfx90a -fPIC -flto -x hip -c script.hip -o script-lto.o"
    ));
    for (linker, choice) in LINKERS {
        for (kind, words) in KINDS {
            for (place, first) in [("last", false), ("first", true)] {
                let library = words.contains("-shared");
                let object = match (library, *kind) {
                    (true, _) => "plugin.o",
                    (false, "optimised") => "script-lto.o",
                    _ => "script.o",
                };
                let output = format!("{linker}-{kind}-{place}");
                let inputs = if first { format!("{DRAIN} {object}") } else { format!("{object} {DRAIN}") };
                let llvm = format!("--ld-path=/usr/lib/llvm-{version}/bin/ld.lld");
                let choice = if *linker == "lld" { llvm.as_str() } else { choice };
                let profile = "-fprofile-instr-generate";
                bench
                    .work
                    .run(&format!("clang++-{version} {choice} {words} {profile} {inputs} -lamdhip64 -o {output}"));
                check_symbols(&bench, version, &output);
                let command =
                    if library { format!("$B/script open $B/{output} call") } else { format!("$B/{output} launch") };
                let ran = bench.start(&format!("run-{output}"), "", &command);
                assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{output}");
                let expected = if library { counts(PLUGIN, 1) } else { counts(SCRIPT, 1) };
                assert_eq!(bench.counts(version, &ran, &ran.devices()), expected, "{output}: {:?}", ran.files);
            }
        }
    }
}

fn check_symbols(bench: &ProfileBench, version: u32, output: &str) {
    let seen = bench.work.run(&format!("llvm-nm-{version} -D --defined-only {output}"));
    let leaks: Vec<&str> = seen.lines().filter(|line| HIDDEN.iter().any(|name| line.contains(name))).collect();
    assert!(leaks.is_empty(), "{output}: {leaks:?}");
    let all = bench.work.run(&format!("llvm-nm-{version} {output}"));
    assert!(all.contains("hotswap_profile_drain") && !all.contains("__interceptor_hip"), "{output}");
}

#[test]
fn programs_that_are_linked_statically_run_and_say_nothing() {
    let Some(bench) = ProfileBench::new("profile drain, static links") else { return };
    let version = *bench.work.versions.last().expect("there is a compiler");
    bench.work.write("seven.c", b"int main(void) { return 7; }\n");
    for (linker, choice) in LINKERS {
        for (index, words) in ["-static-pie -fPIE", "-static"].iter().enumerate() {
            let output = format!("{linker}-{index}");
            bench.work.run(&format!("clang-{version} {choice} {words} seven.c {DRAIN} -o {output} 2>&1"));
            let ran = bench.start(&format!("run-{output}"), "", &format!("$B/{output}"));
            assert_eq!((ran.code, ran.error.as_str(), ran.files.len()), (Some(7), "", 0), "{output}");
        }
    }
}

#[test]
fn llvms_drain_beside_ours_is_no_conflict() {
    let Some(bench) = ProfileBench::new("profile drain, beside LLVM's in one image") else { return };
    for &version in bench.work.versions.iter().filter(|version| **version > 22) {
        let clang = bench.clang(version, Instrument::Coverage);
        bench.work.run(&format!("{clang} --offload-arch=gfx90a -fPIC -x hip -c script.hip -o script.o"));
        let theirs = format!("$(clang-{version} -print-file-name=lib/linux/libclang_rt.profile_rocm-x86_64.a)");
        for (index, inputs) in [
            format!("-Wl,--whole-archive {theirs} -Wl,--no-whole-archive script.o {DRAIN}"),
            format!("script.o {theirs} {DRAIN}"),
            format!("script.o {DRAIN} {theirs}"),
            format!("script.o {DRAIN} {DRAIN}"),
        ]
        .iter()
        .enumerate()
        {
            let output = format!("both-{version}-{index}");
            bench.work.run(&format!("clang++-{version} -fprofile-instr-generate {inputs} -lamdhip64 -o {output}"));
            let ran = bench.start(&format!("run-{output}"), "", &format!("$B/{output} launch"));
            assert_eq!(ran.code, Some(7), "{output}: {}", ran.error);
            let ours: Vec<String> = ran.devices().into_iter().filter(|name| name.contains(".n1.")).collect();
            assert_eq!(bench.counts(version, &ran, &ours), counts(SCRIPT, 1), "{output}: {:?}", ran.files);
        }
    }
}
