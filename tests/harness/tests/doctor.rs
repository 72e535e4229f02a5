//! `hotswap doctor` in a real ROCm userland: as it is, with other compilers, and with single parts hidden by mounts.

use hotswap_tests::{Bench, Call, Ran};
use serde_json::Value;
use std::thread;

/// One situation, and what must be reported of it.
struct Situation {
    name: &'static str,
    /// Shell commands of the machine in a mount namespace of their own; `$R` is the userland's root directory.
    before: &'static str,
    /// A variable of the command; `{P}` in its value is HotSwap's prefix.
    variable: (&'static str, &'static str),
    exit: i32,
    /// Parts with their state, and a piece of their notes.
    parts: &'static [(&'static str, &'static str, &'static str)],
}

const NONE: (&str, &str) = ("LANG", "C.UTF-8");
const CLANG_23: (&str, &str) = ("HOTSWAP_CLANG", "clang++-23");
const BITCODE: &str = "mount -t tmpfs none $R/usr/lib/llvm-22/lib/clang/22/amdgcn";

#[rustfmt::skip]
const SITUATIONS: &[Situation] = &[
    Situation { name: "Debian as it is", before: "", variable: NONE, exit: 0, parts: &[
        ("hotswap", "good", ""), ("clang", "good", "found by"), ("lld", "good", ""), ("clang tools", "good", ""),
        ("device libraries", "good", ""), ("HIP headers", "good", ""), ("HIP runtime", "good", ""), ("comgr", "good", ""),
        ("HSA runtime", "good", ""), ("hipcc", "good", "HIP_CLANG_PATH is not set"), ("CMake", "good", ""),
        ("compiler-rt", "good", ""), ("profile tools", "good", ""),
        ("compiler caches", "good", "ccache --set-config compiler_check='%compiler% --hotswap-identity'"),
    ] },
    Situation {
        name: "ccache that asks for the toolchain", before: "",
        variable: ("CCACHE_COMPILERCHECK", "%compiler% --hotswap-identity"), exit: 0,
        parts: &[("compiler caches", "good", "ccache asks hotswap-clang++ for the toolchain")],
    },
    Situation { name: "clang 23 without ROCm's directory", before: "", variable: CLANG_23, exit: 0, parts: &[
        ("clang", "good", "environment HOTSWAP_CLANG"),
        ("device libraries", "good", "clang 23 finds them only with --rocm-device-lib-path=/usr/lib/llvm-22"),
        ("HIP runtime", "good", "give --rocm-path="),
    ] },
    Situation {
        name: "clang 23 and ROCm in /opt/rocm",
        before: "mount -t tmpfs none $R/opt; mkdir -p $R/opt/rocm/lib; cd $R/opt/rocm; ln -s /usr/include include; \
                 ln -s /usr/share share; ln -s /usr/bin bin; ln -s /usr/lib/llvm-22/lib/clang/22/amdgcn amdgcn; \
                 ln -s /usr/lib/x86_64-linux-gnu/libamdhip64.so lib/libamdhip64.so; cd /",
        variable: CLANG_23,
        exit: 0,
        parts: &[("device libraries", "good", ""), ("HIP runtime", "good", "")],
    },
    Situation { name: "no clang", before: "", variable: ("HOTSWAP_CLANG", "/nonexistent/clang++"), exit: 10, parts: &[
        ("clang", "missing", "HS0101"), ("lld", "not examined", ""), ("HIP runtime", "not examined", ""),
    ] },
    Situation {
        name: "an old clang",
        before: "mount -t tmpfs none $R/opt; printf '#!/bin/sh\\necho clang version 19.1.0\\n' >$R/opt/clang++; chmod +x $R/opt/clang++",
        variable: ("HOTSWAP_CLANG", "/opt/clang++"), exit: 10,
        parts: &[("clang", "unusable", "older than 22"), ("HIP headers", "not examined", "")],
    },
    Situation {
        name: "no lld", before: "mount --bind /dev/null $R/usr/lib/llvm-22/bin/lld", variable: NONE, exit: 10,
        parts: &[("clang", "good", ""), ("lld", "missing", "no ld.lld"), ("device libraries", "not examined", "")],
    },
    Situation {
        name: "no bundler", before: "mount --bind /dev/null $R/usr/lib/llvm-22/bin/clang-linker-wrapper", variable: NONE,
        exit: 10, parts: &[("clang tools", "missing", "no clang-linker-wrapper")],
    },
    Situation {
        name: "no objcopy for the bundler",
        before: "for f in $R/usr/lib/llvm-22/bin/llvm-objcopy $R/usr/bin/llvm-objcopy; do test ! -e $f || mount --bind /dev/null $f; done",
        variable: NONE, exit: 10,
        parts: &[("lld", "good", ""), ("clang tools", "missing", "no llvm-objcopy"), ("HIP headers", "not examined", "")],
    },
    Situation {
        name: "no compiler-rt",
        before: "for f in $R/usr/lib/llvm-22/lib/clang/22/lib/*; do mount -t tmpfs none $f; done",
        variable: NONE, exit: 0, parts: &[("HIP runtime", "good", ""), ("compiler-rt", "absent", "libclang_rt.builtins")],
    },
    Situation { name: "no device libraries", before: BITCODE, variable: NONE, exit: 10, parts: &[
        ("lld", "good", ""), ("device libraries", "missing", "cannot find ROCm device library"),
        ("HIP runtime", "not examined", ""),
    ] },
    Situation { name: "no headers", before: "mount -t tmpfs none $R/usr/include/hip", variable: NONE, exit: 10, parts: &[
        ("device libraries", "good", ""), ("HIP headers", "missing", "hip_runtime"), ("HIP runtime", "not examined", ""),
    ] },
    Situation {
        name: "no library to link",
        before: "mount --bind /dev/null $(readlink -f $R/usr/lib/x86_64-linux-gnu/libamdhip64.so)", variable: NONE, exit: 10,
        parts: &[("HIP headers", "good", ""), ("HIP runtime", "missing", "error")],
    },
    Situation { name: "hipcc through HotSwap", before: "", variable: ("HIP_CLANG_PATH", "{P}/lib/hotswap/clang"), exit: 0, parts: &[
        ("hipcc", "good", "leads to HotSwap"),
    ] },
    Situation { name: "hipcc through nothing", before: "", variable: ("HIP_CLANG_PATH", "/nonexistent"), exit: 0, parts: &[
        ("hipcc", "unusable", "has no clang++"),
    ] },
];

fn examine(bench: &Bench, before: &str, variable: (&str, &str), format: &str) -> Ran {
    let prefix = bench.prefix.display().to_string();
    let program = bench.installed("bin/hotswap");
    let root = bench.userland.root().display().to_string();
    let script = format!("R={root}\n{before}\nexec \"$@\"");
    let namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", &script, "sh"];
    let call = Call::new(bench, "/tmp", &[program.as_str(), "doctor", "--format", format]);
    call.env(variable.0, variable.1.replace("{P}", &prefix)).outside_of(&namespace).run()
}

fn check(bench: &Bench, situation: &Situation) {
    let ran = examine(bench, situation.before, situation.variable, "json");
    let name = situation.name;
    assert_eq!(ran.code, Some(situation.exit), "{name}: {} {}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr.contains("HS0107"), situation.exit != 0, "{name}: {}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(report["usable"], situation.exit == 0, "{name}");
    for (part, state, note) in situation.parts {
        let parts = report["parts"].as_array().expect("the report has parts");
        let found = parts.iter().find(|found| found["part"] == *part).unwrap_or_else(|| panic!("{name}: no {part}"));
        assert_eq!(found["state"], *state, "{name}: {found:#}");
        let notes = found["notes"].to_string();
        let is_told =
            if note.is_empty() && part != &"clang" { !notes.contains("--rocm") } else { notes.contains(note) };
        assert!(is_told, "{name}: `{note}` of {part} is not in {notes}");
    }
}

#[test]
fn parts_are_found_or_said_to_be_missing() {
    let Some(bench) = Bench::ready("doctor") else { return };
    if !bench.userland.outside("/usr/lib/llvm-22/lib/clang/22/amdgcn").exists() || bench.clang(23).is_none() {
        return hotswap_tests::skip("doctor", "the situations are those of Debian's directories with clang 22 and 23");
    }
    thread::scope(|scope| {
        let half = SITUATIONS.len().div_ceil(2);
        let bench = &bench;
        for some in SITUATIONS.chunks(half) {
            scope.spawn(move || some.iter().for_each(|situation| check(bench, situation)));
        }
    });
}

#[test]
fn the_report_for_people_names_the_packages() {
    let Some(bench) = Bench::ready("doctor") else { return };
    let ran = examine(&bench, BITCODE, NONE, "text");
    let expected = ["rocm-device-libs-22 (Debian)", "rocm-device-libs (Fedora)", "rocmPackages.rocm-device-libs (Nix)"];
    assert!(expected.iter().all(|package| ran.stdout.contains(package)), "{}", ran.stdout);
    assert!(ran.stdout.contains("cannot be built through HotSwap here: device libraries"), "{}", ran.stdout);
    // The way out that the report names must be one.
    let debian = examine(&bench, "", NONE, "text");
    assert!(debian.ok() && debian.stdout.contains("HIP programs can be built"), "{}{}", debian.stdout, debian.stderr);
}

/// Compilers report a full directory as parts that cannot be used, and packages would not help.
#[test]
fn a_full_directory_for_temporary_files_is_told_as_that() {
    let Some(bench) = Bench::ready("doctor") else { return };
    let full = "mount -t tmpfs -o size=1m none $R/opt; head -c 1000000 /dev/zero >$R/opt/file";
    for (before, directory) in [(full, "/opt"), ("", "/nonexistent")] {
        let ran = examine(&bench, before, ("TMPDIR", directory), "text");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(14), ""), "{directory}: {}", ran.stderr);
        assert!(ran.stderr.contains("[HS0505]") && ran.stderr.contains(directory), "{}", ran.stderr);
    }
}
