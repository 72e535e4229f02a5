//! libamd_comgr finds a retargeted code object by the queries of the HIP runtime.

use hotswap_tests::artifact::devices;
use hotswap_tests::mode::{plan_words, write_sources};
use hotswap_tests::{Bench, Call, Clang, Scratch, say};

const LOOKUP: &str = include_str!("../../comgr/lookup.c");

fn run(bench: &Bench, scratch: &Scratch, words: &[&str]) -> String {
    let ran = Call::new(bench, &scratch.inside, words).run();
    assert!(ran.ok(), "{words:?}: {}", ran.brief());
    ran.stdout
}

fn build(bench: &Bench, scratch: &Scratch, clang: &Clang, more: &[&str]) {
    write_sources(scratch, false);
    let mut words = [vec![bench.installed("bin/hotswap-clang++")], plan_words("gfx1030=>gfx1031", None)].concat();
    words.extend(clang.light());
    words.extend(more.iter().chain(&["--offload-arch=gfx1030", "a.hip", "-o", "x"]).map(|word| (*word).to_owned()));
    words.extend(clang.link.clone());
    let ran = Call::new(bench, &scratch.inside, &words).env("HOTSWAP_CLANG", clang.program.clone()).run();
    assert!(ran.ok(), "{}", ran.brief());
}

fn check(bench: &Bench, scratch: &Scratch, clang: &Clang, more: &[&str]) {
    build(bench, scratch, clang, more);
    run(bench, scratch, &[&clang.tool("llvm-objcopy"), "--dump-section=.hip_fatbin=x.hipfb", "x"]);
    let isa = "amdgcn-amd-amdhsa--gfx1031";
    let line = run(bench, scratch, &["./lookup", "-o", "comgr.co", "x.hipfb", isa]);
    assert!(line.starts_with(&format!("{isa} ")) && !line.contains("absent"), "{line}");
    let hotswap = bench.installed("bin/hotswap");
    run(bench, scratch, &[&hotswap, "extract", "x", "--target", "gfx1031", "-o", "ours.co"]);
    let found = scratch.read("comgr.co");
    assert_eq!(found, scratch.read("ours.co"), "comgr and `hotswap extract` differ");
    let all = devices(&scratch.read("x")).unwrap();
    assert!(all.iter().any(|device| device.target() == "gfx1031" && device.bytes == found));
    assert_eq!(all.iter().find_map(|device| device.fault(device.target())), None);
}

#[test]
fn comgr_finds_and_extracts_the_retargeted_code_object() {
    let Some(bench) = Bench::ready("comgr") else { return };
    let tools = bench.scratch();
    tools.write("lookup.c", LOOKUP);
    let words = ["cc", "-std=c11", "-O1", "-o", "lookup", "lookup.c", "-lamd_comgr"];
    let made = Call::new(&bench, &tools.inside, &words).run();
    assert!(made.ok(), "{}", made.brief());
    let mut count = 0;
    for clang in &bench.clangs {
        for driver in ["--no-offload-new-driver", "--offload-new-driver"] {
            for compress in ["--no-offload-compress", "--offload-compress"] {
                let scratch = bench.scratch();
                std::fs::copy(tools.outside("lookup"), scratch.outside("lookup")).unwrap();
                check(&bench, &scratch, clang, &[driver, compress]);
                count += 1;
            }
        }
    }
    say(&format!("comgr: the retargeted gfx1031 found and extracted from {count} programs"));
}
