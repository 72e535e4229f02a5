//! The library's interface: the functions and structures of HIP that it knows are those of the real library and headers,
//! and every way of asking for a name gives the shown one.

use hotswap_dispatch::{Recorder, Setup};
use hotswap_names::{NAME_SIZE, PropertiesLayout, R0000, R0600, exported_functions};
use hotswap_userland::say;
use std::collections::BTreeSet;

const VARIANTS: &str = include_str!("../cases/variants.c");
const NAMES: &str = "HOTSWAP_NAMES=gfx1031=gfx1030,gfx902=gfx900";

#[test]
fn structures_are_those_of_the_headers() {
    let Some(recorder) = Recorder::new("offsets of HIP's structures") else { return };
    recorder.work.write("offsets.c", include_bytes!("../cases/offsets.c"));
    let found = recorder.work.run("gcc offsets.c -o offsets && ./offsets");
    let expected = [R0600, R0000].map(|PropertiesLayout { offset, size }| format!("{offset} {NAME_SIZE} {size}\n"));
    assert_eq!(found, expected.concat());
}

/// Names and versions of the functions that a library defines.
fn defined(recorder: &Recorder, library: &str) -> BTreeSet<(String, String)> {
    let table = recorder.work.run(&format!("nm -D --defined-only --with-symbol-versions {library}"));
    let names = table.lines().filter_map(|line| line.split_whitespace().nth(2));
    names.map(|name| name.split_once("@@").unwrap_or((name, ""))).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

#[test]
fn functions_are_those_of_hips_library() {
    let Some(recorder) = Recorder::new("functions of HIP's library") else { return };
    let hip = defined(&recorder, "/usr/lib/*/libamdhip64.so.7");
    let known: BTreeSet<_> =
        exported_functions().map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
    let missing: Vec<_> = known.difference(&hip).collect();
    assert!(missing.is_empty(), "not in HIP's library: {missing:?}");
    // Every call that returns properties or loads code is known.
    let is_meant = |name: &str| {
        name.contains("GetDeviceProperties") || name.contains("ModuleLoad") || name.contains("LibraryLoad")
    };
    let all: BTreeSet<_> = hip.iter().filter(|(name, _)| name.starts_with("hip") && is_meant(name)).cloned().collect();
    assert!(all.is_subset(&known), "new calls: {:?}", all.difference(&known).collect::<Vec<_>>());
    // Nothing else is defined, launches in particular, but the questions to the loader.
    let own: BTreeSet<_> = defined(&recorder, "libhotswap-names.so").into_iter().map(|(name, _)| name).collect();
    assert_eq!(own, known.into_iter().map(|(name, _)| name).chain(["dlsym", "dlvsym"].map(str::to_owned)).collect());
}

#[test]
fn it_needs_nothing_but_libc() {
    let Some(recorder) = Recorder::new("libraries that the names need") else { return };
    let table = recorder.work.run("readelf -d libhotswap-names.so");
    let needed = |line: &str| Some(line.split_once("(NEEDED)")?.1.split(['[', ']']).nth(1)?.to_owned());
    let needed: Vec<String> = table.lines().filter_map(needed).collect();
    let is_libc = |name: &String| ["libc.so", "libdl.so", "ld-linux"].iter().any(|prefix| name.starts_with(prefix));
    assert!(!needed.is_empty() && needed.iter().all(is_libc), "{needed:?}");
    assert!(table.contains("Library soname: [libhotswap-names.so]"), "{table}");
}

#[test]
fn every_way_of_asking_gives_the_shown_name() {
    let Some(recorder) = Recorder::new("ways of asking for the name") else { return };
    recorder.work.write("variants.c", VARIANTS.as_bytes());
    recorder.work.run("gcc -Wall -Wextra variants.c -o variants -lamdhip64");
    let setup = Setup { devices: "gfx1030,gfx1031,gfx902:xnack+,gfx1100", ..Setup::default() };
    let plain = recorder.run(&setup, "./variants");
    assert_eq!(plain.code, Some(0), "{}", plain.error);
    // HIP itself: each way gives each device's own name.
    for (device, name) in setup.devices.split(',').enumerate() {
        let of_device = |line: &&str| line.starts_with(&format!("{device} ")) && line.ends_with(&format!(" {name} 0"));
        assert_eq!(plain.output.lines().filter(of_device).count(), 9, "{}", plain.output);
    }
    let shown = recorder.run(&Setup { has_names: true, variables: NAMES, ..setup }, "./variants");
    let expect = |line: &str| line.replace("gfx1031", "gfx1030").replace("gfx902:", "gfx900:");
    let expected: Vec<String> = plain.output.lines().map(expect).collect();
    assert_eq!(shown.output.lines().collect::<Vec<_>>(), expected);
    assert_eq!((shown.code, shown.error.as_str()), (Some(0), ""));
    // Without names, with the names of other GPUs, and with a word of the compiler's, the library changes nothing.
    for variables in ["", "HOTSWAP_NAMES=", "HOTSWAP_NAMES=gfx1032=gfx1030", "HOTSWAP_NAMES=warn"] {
        let unchanged = recorder.run(&Setup { has_names: true, variables, ..setup }, "./variants");
        assert_eq!((unchanged.output, unchanged.error.as_str()), (plain.output.clone(), ""), "{variables}");
    }
}

/// The loader answers all other questions as before, with its own messages.
#[test]
fn versioned_questions_for_other_functions_are_the_loaders() {
    let Some(recorder) = Recorder::new("versioned questions to the loader") else { return };
    recorder.work.write("versions.c", include_bytes!("../cases/versions.c"));
    recorder.work.run("gcc -Wall -Wextra versions.c -o versions -Wl,--no-as-needed -lamdhip64");
    let setup = Setup { devices: "gfx1031", variables: NAMES, ..Setup::default() };
    let plain = recorder.run(&setup, "./versions");
    let expected = "own 0\nqsort 1\nnext 1\nno version 0 message 1\nno function 0 message 1\nhandle 1 hips 1\n";
    assert_eq!((plain.code, plain.output.as_str()), (Some(0), expected), "{}", plain.error);
    let shown = recorder.run(&Setup { has_names: true, ..setup }, "./versions");
    let expected = expected.replace("own 0", "own 1").replace("hips 1", "hips 0");
    assert_eq!((shown.code, shown.output.as_str()), (Some(0), expected.as_str()), "{}", shown.error);
}

#[test]
fn a_program_that_links_the_library_sees_the_names() {
    let Some(recorder) = Recorder::new("a program linked with the names") else { return };
    recorder.work.write("variants.c", VARIANTS.as_bytes());
    let words = "-L. -lhotswap-names -Wl,--no-as-needed -lamdhip64 -Wl,-rpath,'$ORIGIN'";
    recorder.work.run(&format!("gcc -Wall -Wextra variants.c -o linked {words}"));
    let setup = Setup { devices: "gfx1031", variables: NAMES, ..Setup::default() };
    let shown = recorder.run(&setup, "./linked");
    assert_eq!(shown.code, Some(0), "{}", shown.error);
    assert!(shown.output.contains("0 linked-R0600 gfx1030 0\n0 linked-R0000 gfx1030 0\n"), "{}", shown.output);
}

#[test]
fn a_wrong_variable_changes_nothing_and_is_reported_in_one_line() {
    let Some(recorder) = Recorder::new("wrong names") else { return };
    recorder.work.write("variants.c", VARIANTS.as_bytes());
    recorder.work.run("gcc -Wall -Wextra variants.c -o variants -lamdhip64");
    let setup = Setup { devices: "gfx1031", ..Setup::default() };
    let plain = recorder.run(&setup, "./variants");
    for (text, expected) in [
        ("gfx1031", "`gfx1031` is not of the form OWN=SHOWN"),
        ("gfx1031=gfx1030,gfx1032=", "`` is no GPU that HotSwap knows"),
        ("gfx1031=gfx1030,gfx1031=gfx1032", "gfx1031 has two names"),
        ("gfx90a=gfx1030", "gfx90a cannot be shown as gfx1030"),
        ("$(printf 'gfx1031=\\377')", "is not of the form"),
        ("$(printf 'gfx1031\\n=\\033[2J')", "not of the form"),
    ] {
        let variables = format!("\"HOTSWAP_NAMES={text}\"");
        let ran = recorder.run(&Setup { has_names: true, variables: &variables, ..setup }, "./variants");
        assert_eq!((ran.code, &ran.output), (Some(0), &plain.output), "{text}");
        assert_eq!((ran.messages().len(), ran.error.lines().count()), (1, 1), "{text}: {}", ran.error);
        assert!(ran.error.contains("HOTSWAP_NAMES: ") && ran.error.contains(expected), "{text}: {}", ran.error);
        assert!(!ran.error.contains('\x1b'), "{text}: {:?}", ran.error);
    }
}

/// Rows of `cost.cpp`: nanoseconds of a question for properties, a load, a launch.
fn cost(recorder: &Recorder, setup: &Setup<'_>) -> Vec<f64> {
    let ran = recorder.run(setup, "./cost");
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    say(&format!("names {}: {}", if setup.has_names { "shown" } else { "not shown" }, ran.output.trim()));
    ran.output.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn cost_of_a_call() {
    let Some(recorder) = Recorder::new("the cost of names") else { return };
    recorder.work.write("cost.cpp", include_bytes!("../cases/cost.cpp"));
    recorder.work.run("g++ -O2 -Wall -D__HIP_PLATFORM_AMD__ cost.cpp -o cost -lamdhip64 -lhiprtc");
    let setup = Setup { devices: "gfx1031", ..Setup::default() };
    let own = cost(&recorder, &setup);
    let shown = cost(&recorder, &Setup { has_names: true, variables: NAMES, ..setup });
    assert_eq!((own.len(), shown.len()), (3, 3));
    // A question to the dynamic loader in each call would be ten times as much: libraries ask in every call of theirs.
    assert!(shown[0] < own[0] + 20_000.0, "{own:?} {shown:?}");
}
