//! Null pointers, wrong numbers, short buffers, damaged images, several threads: plainly, with AddressSanitizer, and under
//! valgrind.

mod common;

use common::{CLibrary, code_object, has};
use hotswap_userland::{Workbench, skip};
use std::path::PathBuf;

fn image(bench: &Workbench) -> PathBuf {
    code_object(bench, bench.versions[0], "gfx1030", "-O2 -g")
}

#[test]
fn no_call_ends_the_process() {
    let Some(bench) = Workbench::new("no_call_ends_the_process") else { return };
    let library = CLibrary::new();
    let text = library.run(&library.compile("abuse.c", &[]), &[image(&bench).to_str().unwrap(), "120"]);
    assert_eq!(text, "120 damaged images\n");
}

#[test]
fn address_sanitizer_finds_nothing() {
    let test = "address_sanitizer_finds_nothing";
    let Some(bench) = Workbench::new(test) else { return };
    let library = CLibrary::new();
    let probe = library.path("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }").unwrap();
    let mut cc = std::process::Command::new("cc");
    let built = cc.arg("-fsanitize=address").arg(&probe).arg("-o").arg(library.path("probe")).output();
    if !built.is_ok_and(|output| output.status.success()) {
        return skip(test, "the machine's cc has no AddressSanitizer");
    }
    let abuse = library.compile("abuse.c", &["-fsanitize=address,undefined"]);
    let text = library.run(&abuse, &[image(&bench).to_str().unwrap(), "30"]);
    assert_eq!(text, "30 damaged images\n");
}

#[test]
fn valgrind_finds_nothing() {
    let test = "valgrind_finds_nothing";
    let Some(bench) = Workbench::new(test) else { return };
    if !has(test, "valgrind") {
        return;
    }
    let library = CLibrary::new();
    let abuse = library.compile("abuse.c", &[]);
    let mut command = library.command("valgrind");
    command.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    let text = common::succeed(command.arg(abuse).arg(image(&bench)).arg("6"));
    assert_eq!(text, "6 damaged images\n");
}
