//! `hotswap doctor` in a real ROCm userland: as it is, with other compilers, and with single parts hidden by mounts.

use hotswap_tests::{Bench, Call, Ran};
use serde_json::Value;
use std::thread;

/// One situation, and what must be reported of it.
struct Situation {
    name: &'static str,
    /// Shell commands in a mount namespace of their own; `$0` is HotSwap's prefix.
    before: &'static str,
    exit: i32,
    /// Parts with their state, and a piece of their notes.
    parts: &'static [(&'static str, &'static str, &'static str)],
}

const BITCODE: &str = "mount -t tmpfs none /usr/lib/llvm-22/lib/clang/22/amdgcn";

#[rustfmt::skip]
const SITUATIONS: &[Situation] = &[
    Situation { name: "Debian as it is", before: "", exit: 0, parts: &[
        ("hotswap", "good", ""), ("clang", "good", "found by"), ("lld", "good", ""), ("clang tools", "good", ""),
        ("device libraries", "good", ""), ("HIP headers", "good", ""), ("HIP runtime", "good", ""), ("comgr", "good", ""),
        ("HSA runtime", "good", ""), ("hipcc", "good", "HIP_CLANG_PATH is not set"), ("CMake", "good", ""),
        ("profile tools", "good", ""),
    ] },
    Situation { name: "clang 23 without ROCm's directory", before: "export HOTSWAP_CLANG=clang++-23", exit: 0, parts: &[
        ("clang", "good", "environment HOTSWAP_CLANG"),
        ("device libraries", "good", "clang 23 finds them only with --rocm-device-lib-path=/usr/lib/llvm-22"),
        ("HIP runtime", "good", "give --rocm-path="),
    ] },
    Situation {
        name: "clang 23 and ROCm in /opt/rocm",
        before: "export HOTSWAP_CLANG=clang++-23; mount -t tmpfs none /opt && ln -s /mnt/rocm /opt/rocm && \
                 mkdir -p /mnt/rocm/lib && ln -s /usr/lib/x86_64-linux-gnu/libamdhip64.so /mnt/rocm/lib && \
                 ln -s /usr/lib/llvm-22/lib/clang/22/amdgcn /mnt/rocm/amdgcn && ln -s /usr/include /mnt/rocm/include && \
                 ln -s /usr/share /mnt/rocm/share && ln -s /usr/bin /mnt/rocm/bin",
        exit: 0,
        parts: &[("device libraries", "good", ""), ("HIP runtime", "good", "")],
    },
    Situation { name: "no clang", before: "export HOTSWAP_CLANG=/nonexistent/clang++", exit: 10, parts: &[
        ("clang", "missing", "HS0101"), ("lld", "not examined", ""), ("HIP runtime", "not examined", ""),
    ] },
    Situation {
        name: "an old clang",
        before: "mount -t tmpfs none /opt && printf '#!/bin/sh\\necho clang version 19.1.0\\n' > /opt/clang++ && \
                 chmod +x /opt/clang++ && export HOTSWAP_CLANG=/opt/clang++",
        exit: 10,
        parts: &[("clang", "unusable", "older than 22"), ("HIP headers", "not examined", "")],
    },
    Situation {
        name: "no lld", before: "mount --bind /dev/null /usr/lib/llvm-22/bin/lld", exit: 10,
        parts: &[("clang", "good", ""), ("lld", "missing", "no ld.lld"), ("device libraries", "not examined", "")],
    },
    Situation {
        name: "no bundler", before: "mount --bind /dev/null /usr/lib/llvm-22/bin/clang-linker-wrapper", exit: 10,
        parts: &[("clang tools", "missing", "no clang-linker-wrapper")],
    },
    Situation { name: "no device libraries", before: BITCODE, exit: 10, parts: &[
        ("lld", "good", ""), ("device libraries", "missing", "cannot find ROCm device library"),
        ("HIP runtime", "not examined", ""),
    ] },
    Situation { name: "no headers", before: "mount -t tmpfs none /usr/include/hip", exit: 10, parts: &[
        ("device libraries", "good", ""), ("HIP headers", "missing", "hip_runtime"), ("HIP runtime", "not examined", ""),
    ] },
    Situation {
        name: "no library to link", before: "mount --bind /dev/null /usr/lib/x86_64-linux-gnu/libamdhip64.so", exit: 10,
        parts: &[("HIP headers", "good", ""), ("HIP runtime", "missing", "error")],
    },
    Situation { name: "hipcc through HotSwap", before: "export HIP_CLANG_PATH=$0/lib/hotswap/clang", exit: 0, parts: &[
        ("hipcc", "good", "leads to HotSwap"),
    ] },
    Situation { name: "hipcc through nothing", before: "export HIP_CLANG_PATH=/nonexistent", exit: 0, parts: &[
        ("hipcc", "unusable", "has no clang++"),
    ] },
];

fn examine(bench: &Bench, before: &str, format: &str) -> Ran {
    let script = format!("{before}\nexec \"$0/bin/hotswap\" doctor --format {format}");
    let prefix = bench.prefix.display().to_string();
    Call::new(bench, "/tmp", &["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec", &script, &prefix]).run()
}

fn check(bench: &Bench, situation: &Situation) {
    let ran = examine(bench, situation.before, "json");
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
    let ran = examine(&bench, BITCODE, "text");
    let expected = ["rocm-device-libs-22 (Debian)", "rocm-device-libs (Fedora)", "rocmPackages.rocm-device-libs (Nix)"];
    assert!(expected.iter().all(|package| ran.stdout.contains(package)), "{}", ran.stdout);
    assert!(ran.stdout.contains("cannot be built through HotSwap here: device libraries"), "{}", ran.stdout);
    // The way out that the report names must be one.
    let debian = examine(&bench, "", "text");
    assert!(debian.ok() && debian.stdout.contains("HIP programs can be built"), "{}{}", debian.stdout, debian.stderr);
}
