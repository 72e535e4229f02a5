//! Programs that look HIP's functions up by a handle, and what else passes through the library's `dlsym`.

use hotswap_dispatch::{Recorded, Recorder, Setup};

const NAMES: &str = "HOTSWAP_NAMES=gfx1031=gfx1030";

fn recorder(test: &str) -> Option<Recorder> {
    let recorder = Recorder::new(test)?;
    recorder.work.write("asker.c", include_bytes!("../cases/asker.c"));
    recorder.work.run("gcc -Wall -Wextra -shared -fPIC asker.c -o needs.so -lamdhip64");
    Some(recorder)
}

fn build(recorder: &Recorder, file: &str, text: &str, words: &str) {
    recorder.work.write(file, text.as_bytes());
    recorder.work.run(&format!("gcc -Wall -Wextra {file} {words}"));
}

fn run(recorder: &Recorder, names: Option<&str>, command: &str) -> Recorded {
    let setup = Setup { devices: "gfx1031", has_names: names.is_some(), variables: names.unwrap_or_default() };
    recorder.run(&setup, command)
}

const FOUND: &str = "without HIP 0 message 1
program without HIP 0 message 1
early NAME 0
handle NAME 0
old NAME 0
version NAME 0
found NAME 0
needs NAME 0
other 1
launch 1
no function 0 message 1
no version 0 message 1
other name 0 message 1
qsort 1
apart 1
";

#[test]
fn functions_looked_up_by_a_handle_show_the_name() {
    let Some(recorder) = recorder("HIP's functions by handles") else { return };
    recorder.work.write("other.c", b"int hipGetDevicePropertiesR0600(void *p, int i) { return p ? i : 4242; }\n");
    recorder.work.run("gcc -shared -fPIC other.c -o other.so");
    build(&recorder, "lookups.c", include_str!("../cases/lookups.c"), "-o lookups");
    // HIP itself: the fault, which these names would be without this library's `dlsym`.
    let plain = run(&recorder, None, "./lookups");
    assert_eq!(
        (plain.code, plain.output.as_str()),
        (Some(0), FOUND.replace("NAME", "gfx1031").as_str()),
        "{}",
        plain.error
    );
    let shown = run(&recorder, Some(NAMES), "./lookups");
    assert_eq!(
        (shown.code, shown.output.as_str()),
        (Some(0), FOUND.replace("NAME", "gfx1030").as_str()),
        "{}",
        shown.error
    );
    // The HIP library that calls do not reach is named.
    let [message] = shown.messages()[..] else { panic!("{}", shown.error) };
    assert!(message.contains("libamdhip64.so.7: ") && message.contains("or none"), "{message}");
    // Code that sees no names gets HIP's own.
    let none = run(&recorder, Some("HOTSWAP_NAMES="), "./lookups");
    assert_eq!((none.code, &none.output), (Some(0), &plain.output), "{}", none.error);
}

#[test]
fn a_second_hip_library_is_told_and_left_alone() {
    let Some(recorder) = recorder("two HIP libraries") else { return };
    build(&recorder, "second.c", include_str!("../cases/second.c"), "-o second_hip -lamdhip64");
    recorder.work.run("mkdir second && cp -L $(echo /usr/lib/*/libamdhip64.so.7) second/");
    let plain = run(&recorder, None, "./second_hip");
    assert_eq!(plain.output, "linked gfx1031\nhandle 0 first\nhandle 1 second\n", "{}", plain.error);
    let shown = run(&recorder, Some(NAMES), "./second_hip");
    assert_eq!(shown.output, "linked gfx1030\nhandle 0 first ours\nhandle 1 second\n", "{}", shown.error);
    let [message] = shown.messages()[..] else { panic!("{}", shown.error) };
    assert!(message.contains("second/libamdhip64.so.7: ") && message.contains("would reach another one"), "{message}");
    assert!(plain.messages().is_empty());
}

/// `RTLD_NEXT` means what is behind the caller, whichever library is preloaded first.
#[test]
fn other_wrappers_find_what_is_behind_them() {
    let Some(recorder) = recorder("other wrappers of HIP") else { return };
    build(&recorder, "asking.c", include_str!("../cases/asking.c"), "-o asking -lamdhip64");
    build(&recorder, "wrapper.c", include_str!("../cases/wrapper.c"), "-shared -fPIC -o wrapper.so");
    build(
        &recorder,
        "wrapper.c",
        include_str!("../cases/wrapper.c"),
        "-shared -fPIC -o needing.so -Wl,--no-as-needed -lamdhip64",
    );
    for wrapper in ["wrapper", "needing"] {
        let (ours, theirs) = ("$PWD/libhotswap-names.so", format!("$PWD/{wrapper}.so"));
        for (preloaded, expected) in [
            (theirs.clone(), "gfx1031"),
            (format!("{ours}:{theirs}"), "gfx1030"),
            (format!("{theirs}:{ours}"), "gfx1030"),
        ] {
            let setup = format!("{NAMES} LD_PRELOAD={preloaded}");
            let ran = recorder.run(&Setup { devices: "gfx1031", has_names: false, variables: &setup }, "./asking");
            let expected = format!("wrapped 1\nprogram {expected} 0\n");
            assert_eq!((ran.code, ran.output), (Some(0), expected), "{preloaded}: {}", ran.error);
        }
    }
}

/// Not covered, as `docs/guide/gpu-names.md` says: these libraries find HIP's own functions before the preloaded ones, or in a namespace of
/// their own.
#[test]
fn libraries_that_bind_deep_or_apart_see_hips_own_name() {
    let Some(recorder) = recorder("libraries with RTLD_DEEPBIND and by dlmopen") else { return };
    for name in ["usual", "deep", "apart"] {
        build(
            &recorder,
            "shown.c",
            include_str!("../cases/shown.c"),
            &format!("-shared -fPIC -o {name}.so -lamdhip64"),
        );
    }
    build(&recorder, "deep.c", include_str!("../cases/deep.c"), "-o deep");
    for (names, usual) in [(None, "gfx1031"), (Some(NAMES), "gfx1030")] {
        let ran = run(&recorder, names, "./deep");
        let expected = format!("usual {usual}\ndeep gfx1031\napart gfx1031\n");
        assert_eq!((ran.code, ran.output), (Some(0), expected), "{}", ran.error);
    }
}

#[test]
fn threads_look_up_at_the_same_time() {
    let Some(recorder) = recorder("look-ups by several threads") else { return };
    build(&recorder, "threads.c", include_str!("../cases/lookup_threads.c"), "-o lookup_threads -pthread");
    for (names, expected) in [(None, "gfx1031"), (Some(NAMES), "gfx1030")] {
        let ran = run(&recorder, names, &format!("timeout 60 ./lookup_threads {expected}"));
        assert_eq!((ran.code, ran.output.as_str(), ran.error.as_str()), (Some(0), "", ""));
    }
}

#[test]
fn an_allocator_may_ask_when_it_is_first_called() {
    let Some(recorder) = recorder("an allocator that asks") else { return };
    build(&recorder, "allocator.c", include_str!("../cases/allocator.c"), "-shared -fPIC -o allocator.so");
    build(&recorder, "asking.c", include_str!("../cases/asking.c"), "-o asking -lamdhip64");
    for preloaded in ["$PWD/allocator.so:$PWD/libhotswap-names.so", "$PWD/libhotswap-names.so:$PWD/allocator.so"] {
        let setup = format!("{NAMES} LD_PRELOAD={preloaded}");
        let ran = recorder.run(&Setup { devices: "gfx1031", has_names: false, variables: &setup }, "./asking");
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "program gfx1030 0\n"), "{preloaded}: {}", ran.error);
    }
}

#[test]
fn pythons_ctypes_sees_the_name() {
    let Some(recorder) = recorder("Python's ctypes") else { return };
    recorder.work.write("properties.py", include_bytes!("../cases/properties.py"));
    for (names, expected) in [(None, "0 gfx1031\n"), (Some(NAMES), "0 gfx1030\n")] {
        let ran = run(&recorder, names, "python3 properties.py");
        assert_eq!((ran.code, ran.output.as_str(), ran.error.as_str()), (Some(0), expected, ""));
    }
}
