//! Null pointers, wrong numbers, short buffers, damaged images, several threads: plainly, with AddressSanitizer, and under
//! valgrind.

mod common;

use common::{CLibrary, code_object, has, user_and_library};
use hotswap_device_symbols::note::with_exports;
use hotswap_userland::{Workbench, skip};
use std::collections::BTreeSet;
use std::path::Path;

/// A program, its files, and the unit of what it damages.
struct AbuseProgram {
    source: &'static str,
    files: Vec<String>,
    unit: &'static str,
}

/// All calls on an image, and those on a binding.
fn programs(bench: &Workbench) -> [AbuseProgram; 2] {
    let text = |path: &Path| path.to_str().expect("paths of tests are text").to_owned();
    let image = text(&code_object(bench, bench.versions[0], "gfx1030", "-O2 -g"));
    user_and_library(bench, (23, "gfx90a", "-O2"));
    let exports = BTreeSet::from(["lib_fn".to_owned()]);
    bench.write("library.co", &with_exports(&bench.read("library.co"), &exports).expect("it has the function").0);
    let pair = ["user.co", "library.co"].map(|name| text(&bench.path(name)));
    [
        AbuseProgram { source: "abuse.c", files: vec![image], unit: "images" },
        AbuseProgram { source: "bindings.c", files: pair.into(), unit: "files" },
    ]
}

#[test]
fn no_call_ends_the_process() {
    let Some(bench) = Workbench::with_llvm(23, "no_call_ends_the_process") else { return };
    let library = CLibrary::new();
    for AbuseProgram { source, files, unit } in programs(&bench) {
        let mut command = library.command(library.compile(source, &[]));
        assert_eq!(common::succeed(command.args(files).arg("120")), format!("120 damaged {unit}\n"));
    }
}

#[test]
fn address_sanitizer_finds_nothing() {
    let test = "address_sanitizer_finds_nothing";
    let Some(bench) = Workbench::with_llvm(23, test) else { return };
    let library = CLibrary::new();
    let probe = library.path("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }").unwrap();
    let mut cc = std::process::Command::new("cc");
    let built = cc.arg("-fsanitize=address").arg(&probe).arg("-o").arg(library.path("probe")).output();
    if !built.is_ok_and(|output| output.status.success()) {
        return skip(test, "the machine's cc has no AddressSanitizer");
    }
    for AbuseProgram { source, files, unit } in programs(&bench) {
        let mut command = library.command(library.compile(source, &["-fsanitize=address,undefined"]));
        assert_eq!(common::succeed(command.args(files).arg("30")), format!("30 damaged {unit}\n"));
    }
}

#[test]
fn valgrind_finds_nothing() {
    let test = "valgrind_finds_nothing";
    let Some(bench) = Workbench::with_llvm(23, test) else { return };
    if !has(test, "valgrind") {
        return;
    }
    let library = CLibrary::new();
    for AbuseProgram { source, files, unit } in programs(&bench) {
        let mut command = library.command("valgrind");
        command.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        let text = common::succeed(command.arg(library.compile(source, &[])).args(files).arg("6"));
        assert_eq!(text, format!("6 damaged {unit}\n"));
    }
}
