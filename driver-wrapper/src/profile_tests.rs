//! Commands with counters as a table: the additions for each clang, without running one.

use super::*;
use crate::command::scan;
use crate::options::OptionValues;
use std::os::unix::fs::PermissionsExt;

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn text(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn none(_: &str) -> Option<OsString> {
    None
}

/// A directory whose name shows the version, with a clang that no test may query.
fn clang(directory: &Path, version: u32) -> PathBuf {
    let path = directory.join(format!("llvm-{version}/bin/clang++"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The additions, abbreviated: atomic, vp, sampling, runtime, cs, lto, noprofile; then drain with its forms.
fn show(version: u32, line: &str, env: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let words = words(line);
    let command = scan(&words);
    let own = crate::judge::own_words(&command).unwrap();
    let value = |name: &str| env.strip_prefix(name)?.strip_prefix('=').map(OsString::from);
    let settings = OptionValues::gather(&own, &value, &[]);
    let profile = match ProfileSettings::profile_of_command(&command, &words, &settings) {
        Ok(Some(profile)) => profile,
        Ok(None) => return "nothing".to_owned(),
        Err(error) => return error.code.id.to_owned(),
    };
    let path = clang(dir.path(), version);
    let toolchain = Toolchain::answered(&path, version, version >= 23);
    let front = match profile.front(&command, &words, &toolchain, true) {
        Ok(front) => front,
        Err(error) => return error.code.id.to_owned(),
    };
    let drain = profile.back(&command, Path::new("/p"));
    let all = format!("{} {} . {}", text(&front), text(&drain.early), text(&drain.late));
    let parts = [
        ("-Xarch_device -fprofile-update=atomic", "atomic"),
        ("-Xarch_device -mllvm=-disable-vp", "vp"),
        ("-Xarch_device -mllvm=-offload-pgo-sampling=0", "all"),
        ("-Xoffload-linker /", "runtime"),
        ("-Xoffload-linker --lto-cs-profile-generate", "cs"),
        ("-foffload-lto", "lto"),
        ("-noprofilelib", "noprofile"),
        ("-Wl,-u,hotswap_profile_drain", "force"),
        ("-Wl,-u,__llvm_profile_runtime", "host"),
        (". -Wl,", "last"),
        ("-Xlinker /p/lib/hotswap/libhotswap-profile-drain.a", "drain"),
        (". /p/lib/hotswap/libhotswap-profile-drain.a", "input"),
    ];
    let found: Vec<_> = parts.iter().filter(|(part, _)| all.contains(part)).map(|(_, name)| *name).collect();
    if found.is_empty() { "empty".to_owned() } else { found.join(" ") }
}

const G: &str = "-fprofile-instr-generate";
const C: &str = "-fprofile-instr-generate -fcoverage-mapping";
const I: &str = "-fprofile-generate";
const A: &str = "--offload-arch=gfx90a";
/// `drain` and `host` in the form for instrumented hosts.
const D: &str = "force host last drain";

/// Clang's version, command (with `G`, `C`, `I`, `A`), environment, expectation (with `D`).
#[rustfmt::skip]
const TABLE: &[(u32, &str, &str, &str)] = &[
    // No counters, or none in device code, or no HIP.
    (23, "A a.hip -o x", "", "nothing"),
    (23, "-c a.cpp G", "", "nothing"),
    (23, "a.cpp G -o x", "", "nothing"),
    (23, "a.o G -o x", "", "nothing"),
    (23, "A a.o G -o x", "", "nothing"),
    (23, "-fopenmp A a.cpp G", "", "nothing"),
    (23, "-c a.cu G", "", "nothing"),
    (23, "A a.hip -fprofile-use=x.profdata", "", "nothing"),
    (23, "A a.hip -fprofile-instr-use=x.profdata", "", "nothing"),
    (23, "A a.hip --coverage", "", "nothing"),
    (23, "A a.hip -fprofile-arcs -ftest-coverage", "", "nothing"),
    (23, "A a.hip -fcoverage-mapping", "", "nothing"),
    (23, "A a.hip G -fno-profile-instr-generate", "", "nothing"),
    (23, "A a.hip -fprofile-instr-generate=f.profraw -fno-profile-instr-generate", "", "nothing"),
    (23, "A a.hip -fno-profile-instr-generate G", "", "all runtime D"),
    (23, "A a.hip I -fno-profile-generate", "", "nothing"),
    (23, "A a.hip -fcs-profile-generate -fno-profile-generate", "", "nothing"),
    (23, "A a.hip -Xarch_host G", "", "nothing"),
    (23, "A a.hip C -Xarch_device -fno-profile-instr-generate -Xarch_device -fno-coverage-mapping", "", "nothing"),
    (23, "--version A G a.hip", "", "nothing"),
    (23, "A G", "", "nothing"),
    (23, "-E A a.hip G", "", "nothing"),
    (23, "-fsyntax-only A a.hip G", "", "nothing"),
    (23, "-M A a.hip G", "", "nothing"),
    (23, "--offload-host-only A -c a.hip G", "", "nothing"),
    (23, "--target=amdgcn-amd-amdhsa -mcpu=gfx90a a.cl G", "", "nothing"),
    (23, "--driver-mode=cl A -c a.hip G", "", "nothing"),
    (22, "A a.hip -o x", "", "nothing"),
    // Links of the host with HIP's library and the flag, in every form; and where the drain is asked for.
    (22, "main.cpp libk.a -lamdhip64 C -o x", "", "D"),
    (24, "main.o k.o /rocm/lib/libamdhip64.so G -o x", "", "D"),
    (24, "main.o k.o /rocm/lib/libamdhip64.so.7 G -o x", "", "D"),
    (23, "-shared k.o -lamdhip64 I -o libk.so", "", "D"),
    (23, "main.o k.o -lamdhip64 G -o x -Xoffload-linker --hotswap-drain=0", "", "nothing"),
    (23, "main.o k.o -lamdhip64 G -o x", "HOTSWAP_DRAIN=0", "nothing"),
    (23, "-c main.cpp -lamdhip64 G", "", "nothing"),
    (23, "-r a.o b.o -lamdhip64 G -o c.o", "", "nothing"),
    (23, "main.cpp -lamdhip64 -o x -Xoffload-linker --hotswap-drain=1", "", "force last drain"),
    (22, "main.cpp -o x -Xoffload-linker --hotswap-drain=1", "", "force last drain"),
    (22, "main.cpp -o x C -Xoffload-linker --hotswap-drain=1", "", "D"),
    (22, "-c main.cpp -Xoffload-linker --hotswap-drain=1", "", "nothing"),
    // Clang 22.
    (22, "A a.hip G -o x", "", "atomic D"),
    (22, "A -c a.hip C -o a.o", "", "atomic"),
    (22, "A a.hip I -o x", "", "atomic vp D"),
    (22, "A a.hip -fprofile-generate=dir -o x", "", "atomic vp D"),
    (22, "A a.hip -fcs-profile-generate -o x", "", "atomic vp cs D"),
    (22, "A a.hip I -mllvm -disable-vp -o x", "", "atomic D"),
    (22, "A -fgpu-rdc -c a.hip G", "", "atomic"),
    (22, "--hip-link a.o G -o x", "", "atomic D"),
    (22, "A --offload-device-only a.hip G", "", "atomic"),
    (22, "A --offload-new-driver a.hip G", "", "atomic D"),
    (22, "A -fgpu-rdc a.hip G -o x", "", "atomic D"),
    (22, "A -fgpu-rdc --hip-link a.o I -o x", "", "atomic vp runtime D"),
    (22, "A a.hip I -ftemporal-profile -o x", "", "atomic vp runtime lto D"),
    (22, "A -c a.hip I -mllvm -pgo-temporal-instrumentation", "", "atomic vp runtime lto"),
    (22, "A -fgpu-rdc a.hip I -ftemporal-profile -o x", "", "atomic vp runtime D"),
    (22, "A a.hip I -ftemporal-profile -fno-offload-lto -o x", "", "HS0410"),
    // Clang 23 and 24.
    (23, "A a.hip I -ftemporal-profile -o x", "", "all runtime D"),
    (23, "A a.hip G -o x", "", "all runtime D"),
    (24, "A a.hip G -o x", "", "all runtime D"),
    (23, "A a.hip I -o x", "", "all runtime D"),
    (23, "A a.hip -fcs-profile-generate=dir -o x", "", "all runtime cs D"),
    (23, "A -c a.hip -fcs-profile-generate -Xoffload-linker --lto-cs-profile-generate", "", "all runtime"),
    (23, "A a.hip -Xarch_host -fcs-profile-generate -o x", "", "nothing"),
    (23, "A -x hip a.cpp C -o x", "", "all runtime D"),
    (23, "A -c a.hip C -o a.o", "", "all runtime"),
    (24, "A -c a.hip C -o a.o", "", "all runtime"),
    (23, "A -S a.hip G", "", "all runtime"),
    (23, "A -fgpu-rdc -c a.hip G", "", "all runtime"),
    (23, "A -fgpu-rdc --hip-link a.o b.o G -o x", "", "all runtime D"),
    (23, "--hip-link a.o G -o x", "", "all runtime D"),
    (23, "--hip-link -shared a.o G -o x.so", "", "all runtime D"),
    (23, "--hip-link -lfoo G", "", "all runtime D"),
    (23, "--offload-link a.o G", "", "all runtime D"),
    (23, "--hipstdpar A a.cpp G", "", "all runtime D"),
    (23, "A a.hip -Xarch_device G -o x", "", "all runtime force last drain"),
    (23, "A a.hip -Xarch_gfx90a G -o x", "", "all runtime force last drain"),
    (23, "A a.hip -Xarch_x86_64 G -o x", "", "nothing"),
    (23, "A a.hip G -Xarch_gfx90a -fno-profile-instr-generate -o x", "", "all runtime D"),
    (23, "A a.hip G -Xarch_host -fno-profile-instr-generate -o x", "", "all runtime force last drain"),
    (23, "A a.hip C -mllvm -offload-pgo-sampling=3 -o x", "", "runtime D"),
    (23, "A a.hip C -Xarch_device -mllvm=-offload-pgo-sampling=0 -o x", "", "runtime D"),
    (23, "A a.hip G -Xoffload-linker /elsewhere/libhotswap-profile-device.a", "", "all D"),
    // The old chain of tools.
    (23, "A --no-offload-new-driver a.hip G", "", "all runtime lto D"),
    (23, "A --no-offload-new-driver -c a.hip G", "", "all runtime lto"),
    (23, "A --no-offload-new-driver -fgpu-rdc a.hip G", "", "all runtime D"),
    (23, "A --no-offload-new-driver --hip-link a.o G", "", "all runtime D"),
    (23, "A --no-offload-new-driver -foffload-lto=thin a.hip G", "", "all runtime D"),
    (23, "A --no-offload-new-driver -fno-offload-lto a.hip G", "", "HS0410"),
    (23, "A --offload-new-driver -fno-offload-lto a.hip G", "", "all runtime D"),
    (24, "A --no-offload-new-driver a.hip G", "", "all runtime D"),
    (23, "A --offload-device-only a.hip G", "", "all runtime lto"),
    (24, "A --offload-device-only a.hip G", "", "all runtime lto noprofile"),
    (24, "A --offload-device-only -noprofilelib -foffload-lto a.hip G", "", "all runtime"),
    (24, "A --offload-device-only -fno-offload-lto a.hip G", "", "HS0410"),
    (23, "A --offload-device-only -S a.hip G", "", "all runtime"),
    // The drain: not in partial links, only once, and not where it is switched off.
    (23, "--hip-link -r a.o G -o b.o", "", "all runtime"),
    (23, "--emit-static-lib A a.hip G", "", "all runtime"),
    (23, "A a.hip G --hotswap-no-drain -o x", "", "all runtime"),
    (23, "A a.hip G -Xoffload-linker --hotswap-drain=0 -o x", "", "all runtime"),
    (23, "A a.hip G -Xoffload-linker --hotswap-drain=1 -o x", "HOTSWAP_DRAIN=0", "all runtime D"),
    (23, "A a.hip G -o x", "HOTSWAP_DRAIN=0", "all runtime"),
    (23, "A a.hip G -o x", "HOTSWAP_DRAIN=maybe", "HS0104"),
    (23, "A a.hip -o x", "HOTSWAP_DRAIN=maybe", "nothing"),
    (23, "A a.hip G -Xlinker /q/libhotswap-profile-drain.a", "", "all runtime"),
    (23, "A a.hip G -Wl,--as-needed,/q/libhotswap-profile-drain.a", "", "all runtime"),
    (23, "A G -o x -- a.hip b.o", "", "all runtime force host input"),
    (23, "-x hip A G -- a.cpp", "", "HS0001"),
];

#[test]
fn every_command_gets_what_its_clang_needs() {
    let mut wrong = Vec::new();
    for (version, line, env, expected) in TABLE {
        let line = line.split_whitespace().map(expand_sample_word).collect::<Vec<_>>().join(" ");
        let expected = expected.replace('D', D);
        let found = show(*version, &line, env);
        if found != expected {
            wrong.push(format!("{version} {line} [{env}]: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn expand_sample_word(word: &str) -> String {
    match word {
        "G" => G.to_owned(),
        "C" => C.to_owned(),
        "I" => I.to_owned(),
        "A" => A.to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn a_runtime_of_clangs_own_is_left_to_clang() {
    let dir = tempfile::tempdir().unwrap();
    let clang = clang(dir.path(), 24);
    let own = dir.path().join("llvm-24/lib/clang/24/lib/amdgpu-amd-amdhsa/libclang_rt.profile.a");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let line = words("--offload-arch=gfx90a a.hip -fprofile-instr-generate");
    let command = scan(&line);
    let profile =
        ProfileSettings::profile_of_command(&command, &line, &OptionValues::gather(&[], &none, &[])).unwrap().unwrap();
    assert!(profile_front_text(&profile, &command, &line, &clang).contains("-Xoffload-linker"));
    std::fs::write(&own, "").unwrap();
    assert!(!profile_front_text(&profile, &command, &line, &clang).contains("-Xoffload-linker"));
    let elsewhere = words("--offload-arch=gfx90a a.hip -fprofile-instr-generate -resource-dir=/nowhere");
    assert_eq!(scan(&elsewhere).resource_directory, Some("/nowhere".into()));
}

fn profile_front_text(profile: &ProfileSettings, command: &ClangCommand, line: &[OsString], clang: &Path) -> String {
    text(&profile.front(command, line, &Toolchain::answered(clang, 24, true), true).unwrap())
}

#[test]
fn levels_at_which_context_sensitive_counters_are_left_out_are_told() {
    let dir = tempfile::tempdir().unwrap();
    for (version, line, advice) in [
        (22, "", Some("-O1")),
        (22, "-O0", Some("-O1")),
        (22, "-O1", None),
        (22, "-O0 -fgpu-rdc", Some("-O2")),
        (22, "-O1 -fgpu-rdc", None),
        (23, "", None),
        (23, "-O2 -O0", Some("-O2")),
        (23, "-O", Some("-O2")),
        (24, "-O1", Some("-O2")),
        (24, "-Og -O3", None),
        (24, "-Os", None),
        (24, "-O1 -fprofile-generate", None),
    ] {
        let line = words(&format!("--offload-arch=gfx90a a.hip -fcs-profile-generate {line}"));
        let command = scan(&line);
        let profile = ProfileSettings::profile_of_command(&command, &line, &OptionValues::gather(&[], &none, &[]))
            .unwrap()
            .unwrap();
        let path = clang(dir.path(), version);
        let told = profile.limit(&command, &line, &Toolchain::answered(&path, version, version > 22)).unwrap();
        assert_eq!(told.is_some(), advice.is_some(), "{version} {line:?}");
        assert!(told.is_none_or(|told| told.to_string().contains(advice.unwrap())), "{version} {line:?}");
    }
}
