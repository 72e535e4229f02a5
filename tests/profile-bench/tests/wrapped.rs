//! Whole builds through hotswap-clang++: kinds of programs, linkers and compilers; each is run and drained.

use hotswap_profile_bench::{Counts, PLUGIN, ProfileBench, SCRIPT, counts};
use hotswap_userland::in_turn;

/// Shell: `X` compiles HIP through the installation under test; `L` links with the linker of the row.
fn set_up(version: u32, linker: &str) -> String {
    let prefix = std::env::var("HOTSWAP_TEST_PREFIX").expect("the tests run with an installation");
    let path =
        if linker == "lld" { format!("/usr/lib/llvm-{version}/bin/ld.lld") } else { format!("/usr/bin/ld.{linker}") };
    format!(
        "set -e; export HOTSWAP_CLANG=/usr/bin/clang++-{version} XDG_CACHE_HOME=$PWD/cache
        [ {version} = 22 ] && ROCM=
        X() {{ {prefix}/bin/hotswap-clang++ -nogpulib -nogpuinc -I. -O1 --offload-arch=gfx90a ${{ROCM:+--rocm-path=$ROCM}} \"$@\"; }}
        R() {{ X -fprofile-instr-generate -fcoverage-mapping --hip-link --ld-path={path} \"$@\"; }}
        L() {{ R \"$@\" -lamdhip64; }}
        C='-fprofile-instr-generate -fcoverage-mapping -fPIC -c -x hip'\n"
    )
}

/// A build that writes `out`, and the arguments with which that runs.
struct Kind {
    name: &'static str,
    /// Made once for each compiler.
    objects: &'static str,
    link: &'static str,
    words: &'static str,
    launches: (u64, u64),
    /// Files of devices.
    files: usize,
}

const LINKERS: [&str; 3] = ["bfd", "lld", "mold"];

const PLAIN: &str = "X $C script.hip -o s.o; X $C plugin.hip -o p.o";

const fn kind(name: &'static str, objects: &'static str, link: &'static str) -> Kind {
    Kind { name, objects, link, words: "launch call", launches: (1, 1), files: 1 }
}

const KINDS: &[Kind] = &[
    kind("two sources", PLAIN, "L s.o p.o -rdynamic -o out"),
    kind("without what nobody uses", PLAIN, "L s.o p.o -rdynamic -Wl,--gc-sections -o out"),
    kind("position-dependent", PLAIN, "L s.o p.o -rdynamic -no-pie -o out"),
    kind("linked in two steps", PLAIN, "R -r s.o p.o -o both.o; L both.o -rdynamic -o out"),
    kind(
        "host code optimised in the link",
        "X $C -flto script.hip -o s.lto.o; X $C -flto plugin.hip -o p.lto.o",
        "L -flto s.lto.o p.lto.o -rdynamic -o out",
    ),
    // One code object: a run of one kernel of the stand-in runs all.
    Kind {
        words: "launch",
        ..kind(
            "relocatable device code",
            "X $C -fgpu-rdc script.hip -o s.rdc.o; X $C -fgpu-rdc plugin.hip -o p.rdc.o",
            "L -fgpu-rdc s.rdc.o p.rdc.o -rdynamic -o out",
        )
    },
    kind(
        "a library that the program needs",
        PLAIN,
        "L -shared p.o -o libp.so; L s.o -Wl,--no-as-needed libp.so -o out",
    ),
    Kind {
        words: "launch open $B/P.so call close launch open $B/P.so call",
        launches: (2, 2),
        ..kind("a library that is opened and closed", PLAIN, "L -shared -Wl,--gc-sections p.o -o out.so; L s.o -o out")
    },
];

/// No symbol of the drain is visible outside of its image.
fn shows_nothing(bench: &ProfileBench, version: u32, file: &str) -> bool {
    let seen = bench.work.run(&format!("llvm-nm-{version} -D --defined-only {file}"));
    let hidden = ["hotswap", "__llvm_profile_offload", "__llvm_profile_hip", "hipModuleUnload", "interceptor", "rust"];
    !seen.lines().any(|line| hidden.iter().any(|name| line.contains(name)))
}

fn check(linker: &str) {
    let Some(bench) = ProfileBench::new(&format!("profile drain, built through the wrapper, {linker}")) else { return };
    let (mut wrong, mut made) = (Vec::new(), (0, ""));
    // Each linker has the compilers in another turn.
    let mut versions = bench.work.versions.clone();
    let turn = LINKERS.iter().position(|name| *name == linker).unwrap_or_default() % versions.len();
    versions.rotate_left(turn);
    for (&version, kind) in in_turn(&format!("builds by {linker}"), KINDS, &versions, |_| false) {
        let context = format!("clang {version}, {linker}, {}", kind.name);
        let objects = if made == (version, kind.objects) { "" } else { kind.objects };
        made = (version, kind.objects);
        let script = format!("{}{objects}\n{}", set_up(version, linker), kind.link);
        let built = bench.work.shell(&script);
        if !built.status.success() {
            wrong.push(format!("{context}: {}", String::from_utf8_lossy(&built.stderr)));
            continue;
        }
        let program = format!("out-{version}-{}", kind.name.replace(' ', "-"));
        bench.work.run(&format!("mv out {program}; [ ! -e out.so ] || mv out.so {program}.so"));
        let words = kind.words.replace("P.so", &format!("{program}.so"));
        let ran = bench.start(&format!("run-{program}"), "LD_LIBRARY_PATH=$B/lib:$B", &format!("$B/{program} {words}"));
        let mut expected: Counts = counts(SCRIPT, kind.launches.0);
        expected.extend(counts(PLUGIN, kind.launches.1));
        let found = bench.counts(version, &ran, &ran.devices());
        let right = (ran.code, ran.error.as_str(), ran.devices().len()) == (Some(7), "", kind.files);
        if !right || found != expected || !shows_nothing(&bench, version, &program) {
            wrong.push(format!("{context}: {ran:?}, {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_of_program_is_drained_when_bfd_links_it() {
    check("bfd");
}

#[test]
fn every_kind_of_program_is_drained_when_lld_links_it() {
    check("lld");
}

#[test]
fn every_kind_of_program_is_drained_when_mold_links_it() {
    check("mold");
}

#[test]
fn context_sensitive_counters_are_counted() {
    let Some(bench) = ProfileBench::new("profile drain, context-sensitive counters") else { return };
    for &version in &bench.work.versions {
        let build = "X -O2 -fcs-profile-generate -x hip script.hip -x none -lamdhip64 -o";
        bench.work.run(&format!("{}{build} out-{version}", set_up(version, "bfd")));
        let ran =
            bench.start(&format!("run-{version}"), "LLVM_PROFILE_FILE=x.profraw", &format!("$B/out-{version} launch"));
        assert_eq!((ran.code, ran.error.as_str(), ran.devices().len()), (Some(7), "", 1), "clang {version}");
        let shown = bench.work.run(&format!(
            "cd {}; llvm-profdata-{version} merge -o m gfx*; llvm-profdata-{version} show --showcs --all-functions --counts m",
            ran.directory
        ));
        // Both functions, and none of the counting runtime.
        assert!(shown.contains("_Z5saxpyifPKfPf:") && shown.contains("_Z5scaleff:"), "clang {version}: {shown}");
        assert!(
            shown.contains("Total functions: 2\n") && shown.contains("Level: IR") | shown.contains("level: IR"),
            "{shown}"
        );
    }
}
