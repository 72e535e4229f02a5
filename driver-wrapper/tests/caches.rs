//! Exam by editing: inputs of a compile change one by one under each compiler cache, and each object is that of a build
//! without a cache. A second build is answered by the cache alone.
//!
//! `caches.sh` makes the edits and prints a line for each: the label, what is wrong with the object, and whether the
//! cache answered the second build.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::{Bench, ok};
use hotswap_userland::{ENV_PREFIX, skip, slice};

/// A compiler cache and its mode: name, command, and variables. Modes that do not start the preprocessor before they answer
/// miss a header that appears earlier in the search path, with every compiler (`SEARCHES`).
const CACHES: &[(&str, &str, &str)] = &[
    ("ccache-direct", "ccache", "CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime"),
    ("ccache-preprocessor", "ccache", "CCACHE_NODIRECT=1 SEARCHES=1"),
    ("ccache-depend", "ccache", "CCACHE_DEPEND=1 CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime"),
    ("sccache-direct", "sccache", "SCCACHE_DIRECT=true"),
    ("sccache-preprocessor", "sccache", "SCCACHE_DIRECT=false SEARCHES=1"),
];

/// Arguments by which HotSwap takes part.
const MODES: &[(&str, &str)] = &[
    ("retarget", "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030"),
    ("coalesce", "-fhotswap-coalesce --offload-arch=gfx1030,gfx1031"),
    (
        "names-error",
        "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 -Xoffload-linker --hotswap-names=error --offload-arch=gfx1030",
    ),
    (
        "names-derive",
        "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 -Xoffload-linker --hotswap-names=derive --offload-arch=gfx1030",
    ),
    ("drain", "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030 -fprofile-instr-generate"),
    (
        "policy-compile",
        "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 -Xoffload-linker --hotswap-policy=compile --offload-arch=gfx1030",
    ),
    ("relocatable", "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030 -fgpu-rdc"),
    ("other-gpu", "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030,gfx1100"),
];

/// One cache with one mode.
struct ExamCase {
    cache: usize,
    name: String,
    launcher: &'static str,
    settings: &'static str,
    words: &'static str,
}

/// The lines of the script that show a fault.
fn faults(lines: &str) -> Vec<&str> {
    lines.lines().filter(|line| !line.ends_with(": same, then a hit") && !line.ends_with(": error in both")).collect()
}

#[test]
fn an_edit_is_never_answered_with_an_old_object() {
    let test = "an_edit_is_never_answered_with_an_old_object";
    let Some(bench) = Bench::new(test) else { return };
    let prefix = std::env::var(ENV_PREFIX).expect("the tests run with an installation");
    let mut cases = Vec::new();
    for (number, (cache, launcher, settings)) in CACHES.iter().enumerate() {
        if !bench.has(launcher) {
            skip("compiler caches", &format!("no {launcher} in the userland"));
            continue;
        }
        for (mode, words) in MODES {
            cases.push(ExamCase { cache: number, name: format!("{cache}-{mode}"), launcher, settings, words });
        }
    }
    // Every cache and every mode, each pair of them in the full run.
    let cases = slice(test, cases, |number, case| number % MODES.len() % CACHES.len() == case.cache);
    let versions = bench.versions();
    let mut wrong = Vec::new();
    for (number, ExamCase { name, launcher, settings, words, .. }) in cases.iter().enumerate() {
        let version = versions[number % versions.len()];
        let is_coalesced = words.contains("coalesce");
        let other = if is_coalesced {
            "--offload-arch=gfx1032"
        } else {
            "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1032"
        };
        let script = format!(
            "NAME={name} LAUNCHER={launcher} WORDS='{words}' OTHER_PLAN='{other}' W={prefix}/bin/hotswap-clang++\nexport {settings}\n{}",
            include_str!("caches.sh")
        );
        let (lines, _) = ok(&bench.run(version, &script));
        assert!(lines.lines().count() > 5, "{name}, clang {version}: {lines}");
        wrong.extend(faults(&lines).iter().map(|fault| format!("{name}, clang {version}: {fault}")));
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

/// Commands whose objects have the compiler's version in them, with and without a plan.
const COMMANDS: &[&str] =
    &["-x c++ main.cpp", "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030 a.hip"];

#[test]
fn an_upgrade_in_place_is_never_answered_with_an_old_object() {
    let test = "an_upgrade_in_place_is_never_answered_with_an_old_object";
    let Some(bench) = Bench::new(test) else { return };
    let versions = bench.versions();
    let [old, .., new] = versions[..] else {
        skip(test, "the userland has one clang only");
        return;
    };
    let prefix = std::env::var(ENV_PREFIX).expect("the tests run with an installation");
    let mut wrong = Vec::new();
    for (number, (cache, launcher, settings)) in CACHES.iter().enumerate() {
        if !bench.has(launcher) {
            skip("compiler caches", &format!("no {launcher} in the userland"));
            continue;
        }
        let script = format!(
            "NAME=upgrade-{cache} LAUNCHER={launcher} W={prefix}/bin/hotswap-clang++ OLD={old} NEW={new}
             export {settings}\nCOMMAND='{}'\n{}",
            COMMANDS[number % COMMANDS.len()],
            include_str!("upgrade.sh")
        );
        let (lines, _) = ok(&bench.run(old, &script));
        wrong.extend(
            lines.lines().filter(|line| !line.ends_with(": as it should be")).map(|line| format!("{cache}: {line}")),
        );
        assert_eq!(lines.lines().count(), 3, "{cache}: {lines}");
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}
