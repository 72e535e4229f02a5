//! The same bytes for everyone: compile and link in one command, as two users with another home, directory for temporary files,
//! locale, umask, time zone and working directory, with a cold and a warm cache.
//!
//! Clang hashes the arguments of a command into the number of each unit (`__hip_cuid_…`), so a path of HotSwap's among them would
//! be in the program. The source and the output have one path for all, because clang hashes these, too.

use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Ran, Scratch, say, skip};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const KERNEL: &str = "#include \"hip.h\"\nstatic __attribute__((device)) int counter;\n\
    __attribute__((global)) void kernel(int *p) { p[0] = ++counter; }\n\
    extern \"C\" const void *address() { return reinterpret_cast<const void *>(kernel); }\n";
const MAIN: &str = "#include \"hip.h\"\n__attribute__((global)) void other(int *p) { p[0] = 7; }\n\
    extern \"C\" const void *address();\nint main() { return address() == nullptr; }\n";
const USER: &str = "61234";

/// One user's surroundings.
struct Surroundings {
    name: &'static str,
    is_root: bool,
    /// The umask and the working directory.
    shell: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

const SURROUNDINGS: [Surroundings; 2] = [
    Surroundings { name: "one", is_root: true, shell: "umask 022; cd /", variables: &[("TZ", "UTC"), ("LC_ALL", "C")] },
    Surroundings {
        name: "other-with-a-longer-name",
        is_root: false,
        shell: "umask 077; cd /tmp",
        variables: &[("TZ", "Asia/Tokyo"), ("LC_ALL", "C.UTF-8"), ("LIBRARY_PATH", "/usr/lib")],
    },
];

/// A form in which a command gets its plan.
struct PlanForm {
    name: &'static str,
    words: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const FORMS: [PlanForm; 4] = [
    PlanForm {
        name: "words",
        words: &["--offload-arch=gfx1030", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"],
        variables: &[],
    },
    PlanForm {
        name: "environment",
        words: &["--offload-arch=gfx1030"],
        variables: &[("HOTSWAP_RETARGET", "gfx1030=>gfx1031")],
    },
    PlanForm { name: "coalesce", words: &["-fhotswap-coalesce", "--offload-arch=gfx1030,gfx1031"], variables: &[] },
    PlanForm {
        name: "relocatable",
        words: &["-fgpu-rdc", "--offload-arch=gfx1030", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"],
        variables: &[],
    },
];

/// As `/tmp`: only the owner of a file removes it.
fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

fn built(
    bench: &Bench,
    scratch: &Scratch,
    words: &[String],
    (form, own): (&PlanForm, &Surroundings),
    clang: &str,
) -> Ran {
    let script = format!("{}; exec \"$@\"", own.shell);
    let mut outer = vec!["sh", "-c", script.as_str(), "sh"];
    if !own.is_root {
        outer.splice(0..0, ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    let inside = |part: &str| scratch.inside(&format!("{}/{part}", own.name));
    let call = Call::new(bench, scratch.inside.clone(), words).under(&outer);
    let variables = own.variables.iter().chain(form.variables);
    let call = variables.fold(call, |call, (name, value)| call.env(name, *value));
    let call = call.env("HOTSWAP_CLANG", clang);
    call.env("HOME", inside("home")).env("TMPDIR", inside("tmp")).run()
}

#[test]
fn two_users_get_the_same_program() {
    let Some(bench) = Bench::ready("same_bytes") else { return };
    if !hotswap_userland::can_be_two_users() {
        return skip("same_bytes", "only root can be two users");
    }
    let mut compared = 0;
    for clang in &bench.clangs {
        for driver in ["--no-offload-new-driver", "--offload-new-driver"] {
            for form in &FORMS {
                let scratch = bench.scratch();
                write_sources(&scratch, false);
                scratch.write("kernel.hip", KERNEL);
                scratch.write("main.hip", MAIN);
                for own in &SURROUNDINGS {
                    for part in ["home", "tmp"] {
                        scratch.write(&format!("{}/{part}/x", own.name), "");
                        open_to_all(&scratch.outside(&format!("{}/{part}", own.name)));
                        open_to_all(&scratch.outside(own.name));
                    }
                }
                scratch.write("out/x", "");
                open_to_all(&scratch.outside("out"));
                open_to_all(&scratch.outside(""));
                let mut words = vec![bench.installed("bin/hotswap-clang++")];
                words.extend(clang.light());
                words.extend(form.words.iter().map(|word| (*word).to_owned()));
                let rest = ["-O1", "-w", "-x", "hip", "kernel.hip", "main.hip", "-o", "out/program", driver];
                let is_path = |word: &str| word.ends_with(".hip") || word.starts_with("out/");
                words.extend(
                    rest.iter().map(|word| if is_path(word) { scratch.inside(word) } else { (*word).to_owned() }),
                );
                words.extend(["-I".to_owned(), scratch.inside.display().to_string(), "-x".into(), "none".into()]);
                words.extend(clang.link.iter().cloned());
                let mut programs: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
                for (own, cache) in SURROUNDINGS.iter().flat_map(|own| [(own, "cold"), (own, "warm")]) {
                    let ran = built(&bench, &scratch, &words, (form, own), &clang.program);
                    assert!(ran.ok(), "{} {driver} {} {}: {}", clang.version, form.name, own.name, ran.brief());
                    let program = scratch.read("out/program");
                    assert!(String::from_utf8_lossy(&program).contains("amdgcn-amd-amdhsa--gfx1031"), "{}", form.name);
                    programs.entry(program).or_default().push(format!("{} {cache}", own.name));
                    std::fs::remove_file(scratch.outside("out/program")).unwrap();
                    compared += 1;
                }
                let groups: Vec<_> = programs.values().collect();
                assert_eq!(groups.len(), 1, "clang {} {driver} {}: {groups:?}", clang.version, form.name);
            }
        }
    }
    say(&format!("same_bytes: {compared} programs of two users, each form the same bytes"));
}
