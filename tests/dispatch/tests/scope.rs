//! Who sees the names: code of the served tree, and no other.

use hotswap_dispatch::{Recorded, Recorder, Setup};

/// A tree with the library `served/lib/a.so`, the same library beside it, and programs that ask.
fn recorder(test: &str) -> Option<Recorder> {
    let recorder = Recorder::new(test)?;
    recorder.work.write("asker.c", include_bytes!("../cases/asker.c"));
    recorder.work.write("asking.c", include_bytes!("../cases/asking.c"));
    recorder.work.write("late.c", include_bytes!("../cases/late.c"));
    recorder.work.run(
        "mkdir -p served/lib other && gcc -Wall -Wextra -shared -fPIC asker.c -o served/lib/a.so -lamdhip64 && \
         cp served/lib/a.so served/lib/b.so && cp served/lib/a.so other/a.so && ln -s ../served/lib/a.so other/link.so && \
         gcc -Wall -Wextra asking.c -o asking -lamdhip64 && gcc -Wall -Wextra late.c -o late",
    );
    Some(recorder)
}

const ASK: &str = "./asking served/lib/a.so $PWD/served/lib/b.so other/a.so";

fn ask(recorder: &Recorder, variables: &str) -> Recorded {
    let ran = recorder.run(&Setup { devices: "gfx1031", has_names: true, variables }, ASK);
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    ran
}

/// The last digits of the names that the program and the libraries saw.
fn seen(ran: &Recorded) -> String {
    let digit = |line: &str| line.split(' ').nth(1).and_then(|name| name.chars().last());
    ran.output.lines().filter_map(digit).collect()
}

#[test]
fn code_of_the_tree_sees_its_names() {
    let Some(recorder) = recorder("names of a tree") else { return };
    assert_eq!(seen(&ask(&recorder, "")), "1111");
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\n");
    // The same library elsewhere sees HIP's own.
    let ran = ask(&recorder, "");
    assert_eq!((seen(&ran).as_str(), ran.error.as_str()), ("1001", ""));
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\nserves lib/a.so\n");
    // A link into the tree leads to it, and a program that has left its first directory is found.
    let setup = Setup { devices: "gfx1031", has_names: true, variables: "" };
    assert_eq!(seen(&recorder.run(&setup, "./asking other/link.so other/a.so")), "101");
    assert_eq!(seen(&recorder.run(&setup, "./asking / other/link.so other/a.so")), "101");
    recorder.work.run("cp asking served/program");
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\nserves lib/a.so\nserves program\n");
    assert_eq!(seen(&recorder.run(&setup, "served/program / other/a.so served/lib/b.so")), "011");
    assert_eq!(seen(&ask(&recorder, "")), "1011");
    // The variable replaces the file: for all callers, or for those of a directory.
    assert_eq!(seen(&ask(&recorder, "HOTSWAP_NAMES=gfx1031=gfx1030")), "0000");
    assert_eq!(seen(&ask(&recorder, "HOTSWAP_NAMES=gfx1031=gfx1030 HOTSWAP_NAMES_TREE=$PWD/other")), "1110");
    assert_eq!(seen(&ask(&recorder, "HOTSWAP_NAMES=")), "1111");
}

/// Libraries of two trees in one process.
#[test]
fn each_tree_has_a_name_of_its_own() {
    let Some(recorder) = recorder("names of two trees") else { return };
    recorder.work.write("served/hotswap-names.conf", b"names gfx1103=gfx1102\n");
    recorder.work.write("other/hotswap-names.conf", b"names gfx1103=gfx1100\n");
    let ran = recorder.run(&Setup { devices: "gfx1103", has_names: true, variables: "" }, ASK);
    assert_eq!((ran.code, seen(&ran).as_str(), ran.error.as_str()), (Some(0), "3220", ""));
}

/// A GPU that the tree has nothing for: HIP's own behaviour, and one line.
#[test]
fn code_of_the_tree_is_told_of_a_gpu_that_is_not_served() {
    let Some(recorder) = recorder("a GPU that is not served") else { return };
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\ncode gfx1030\ncode gfx1031\n");
    let ask = |devices| recorder.run(&Setup { devices, has_names: true, variables: "" }, ASK);
    let other = ask("gfx1100");
    assert_eq!((other.code, seen(&other).as_str()), (Some(0), "0000"), "{}", other.error);
    let line = "hotswap-names: gfx1100 is not served: the libraries have files for gfx1030, gfx1031\n";
    assert_eq!(other.error, line);
    for served in ["gfx1030", "gfx1031"] {
        assert_eq!(ask(served).error, "", "{served}");
    }
}

#[test]
fn a_wrong_file_changes_nothing_and_is_reported_in_one_line() {
    let Some(recorder) = recorder("wrong files of a tree") else { return };
    for (text, expected) in [
        ("names gfx1031\n", "`gfx1031` is not of the form"),
        ("names gfx1031=gfx1030\nnames gfx1031=gfx1032\n", "gfx1031 has two names"),
        ("names gfx1031=gfx1030\nfoo\n", "line 2 begins with none of"),
        ("names gfx1031=gfx1030\nserves ../other\n", "line 2: the path is not inside"),
        ("\u{0}\u{1}", "line 1 begins with none of"),
    ] {
        recorder.work.write("served/hotswap-names.conf", text.as_bytes());
        let ran = ask(&recorder, "");
        assert_eq!((seen(&ran).as_str(), ran.messages().len(), ran.error.lines().count()), ("1111", 1, 1), "{text:?}");
        assert!(ran.error.contains("served/hotswap-names.conf: ") && ran.error.contains(expected), "{}", ran.error);
    }
}

#[test]
fn hip_in_a_scope_of_its_own_is_found() {
    let Some(recorder) = recorder("HIP loaded late") else { return };
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\n");
    let setup = Setup { devices: "gfx1031", has_names: true, variables: "" };
    for (library, expected) in [("served/lib/a.so", "late gfx1030 0\n"), ("other/a.so", "late gfx1031 0\n")] {
        let ran = recorder.run(&setup, &format!("./late $PWD/{library}"));
        assert_eq!((ran.code, ran.output.as_str(), ran.error.as_str()), (Some(0), expected, ""), "{library}");
    }
}

#[test]
fn another_library_at_the_same_address_is_another_caller() {
    let Some(recorder) = recorder("libraries at one address") else { return };
    recorder.work.write("reload.c", include_bytes!("../cases/reload.c"));
    recorder.work.run("gcc -Wall -Wextra reload.c -o reload -lamdhip64");
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\n");
    let setup = Setup { devices: "gfx1031", has_names: true, variables: "" };
    let ran = recorder.run(&setup, "./reload served/lib/a.so other/a.so served/lib/b.so other/a.so");
    assert_eq!((ran.code, seen(&ran).as_str()), (Some(0), "0101"), "{}", ran.error);
    let addresses: Vec<&str> = ran.error.lines().collect();
    assert!((1..addresses.len()).any(|number| addresses[number] == addresses[number - 1]), "{addresses:?}");
}
