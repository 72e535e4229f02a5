//! Files with code for many GPUs, of which HotSwap does not know one: the others are read, and the one is reported.

use assert_cmd::Command;
use hotswap_userland::{Workbench, tool};
use predicates::prelude::*;
use predicates::str::contains;

/// Commands that judge a file of many pass over the entry, and it stays where the file is written again.
#[test]
fn unknown_targets_do_not_fail_a_file_of_many() {
    let Some(bench) = Workbench::with_llvm(22, "unknown_targets_do_not_fail_a_file_of_many") else { return };
    bundles(&bench);
    let file = "nameless.hipfb";
    let reported = || contains("warning: [HS0311]").and(contains("machine 0xfe")).and(contains("it is passed over"));
    run(&bench, &["verify", file]).success().stdout(contains("1 container, verified")).stderr(reported());
    run(&bench, &["verify", file, "--require", "gfx1030"]).success().stderr(reported());
    run(&bench, &["inspect", file])
        .success()
        .stdout(contains("not known").and(contains("WRONG").not()))
        .stderr(reported());
    run(&bench, &["size", file]).success().stdout(contains("gfx1030")).stderr(reported());
    run(&bench, &["diff", file, file]).success().stderr(reported());
    for words in [
        ["compress", file, "-o", "out"].as_slice(),
        &["remove", file, "gfx8zz", "-o", "out"],
        &["remove", file, "gfx1030", "-o", "alone.hipfb"],
    ] {
        run(&bench, words).success();
    }
    // The ID of another processor contradicts the header, and a file without known code has no verdict.
    let mut planted = bench.read(file);
    let name = (0..planted.len()).find(|at| planted[*at..].starts_with(b"--gfx8zz")).expect("the entry has a name");
    planted[name..name + 8].copy_from_slice(b"--gfx900");
    bench.write("planted.hipfb", &planted);
    for file in ["planted.hipfb", "alone.hipfb"] {
        run(&bench, &["verify", file]).code(12).stderr(contains("error: [HS0311]"));
    }
}

/// A bundle for gfx803, whose instructions are not known, and gfx1030; the same with a processor that has no name.
fn bundles(bench: &Workbench) {
    bench.write(
        "k.hip",
        b"extern \"C\" __attribute__((device, noinline)) int leaf(int x) { return x * 3; }\n\
        extern \"C\" __attribute__((global)) void k(int *p) { p[0] = leaf(p[1]); }\n",
    );
    let compile = format!(
        "{} -x hip -nogpuinc -nogpulib --offload-device-only -O2 -w k.hip --offload-arch=gfx803",
        tool(22, "clang++")
    );
    bench.run(&format!(
        "{compile} --offload-arch=gfx1030 --gpu-bundle-output -o known.hipfb && {compile} --no-gpu-bundle-output -o alone.co"
    ));
    let mut bytes = bench.read("known.hipfb");
    let is_gfx803 = |at: &usize| bytes[*at..].starts_with(b"\x7fELF") && bytes.get(at + 48) == Some(&0x2a);
    let at = (0..bytes.len()).find(is_gfx803).expect("clang made an entry for gfx803");
    bytes[at + 48] = 0xfe;
    let name = (0..bytes.len()).find(|at| bytes[*at..].starts_with(b"--gfx803")).expect("the entry has a name");
    bytes[name..name + 8].copy_from_slice(b"--gfx8zz");
    bench.write("nameless.hipfb", &bytes);
}

fn run(bench: &Workbench, words: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_hotswap")).current_dir(bench.path(".")).args(words).assert()
}

#[test]
fn unknown_targets_are_reported_and_passed_over() {
    let Some(bench) = Workbench::with_llvm(22, "unknown_targets_are_reported_and_passed_over") else { return };
    bundles(&bench);
    for (file, machine) in [("known.hipfb", "gfx803"), ("nameless.hipfb", "machine 0xfe")] {
        let reported = || contains("warning: [HS0311]").and(contains(machine)).and(contains("it is passed over"));
        run(&bench, &["symbols", file]).success().stdout(contains("leaf")).stderr(reported());
        run(&bench, &["symbols", file, "--flow", "k", "--format", "dot"]).success();
        run(&bench, &["addr2func", file, "0x1700"]).success().stdout(contains("k+0x0")).stderr(reported());
        run(&bench, &["lint", file]).success().stdout(contains("gfx1030, no findings")).stderr(reported());
        run(&bench, &["list", file]).success().stdout(contains("gfx1030"));
        run(&bench, &["uses", file, "--gpu", "gfx1030"]).success();
        // Asked for by name it is an error.
        let name = if file == "known.hipfb" { "gfx803" } else { "gfx8zz" };
        run(&bench, &["symbols", file, "--target", name]).code(12).stderr(contains("error: [HS0311]"));
    }
    for file in ["known.hipfb", "nameless.hipfb"] {
        run(&bench, &["retarget", file, "--to", "gfx1031", "-o", "more.hipfb"]).success();
        run(&bench, &["list", "more.hipfb"]).success().stdout(contains("gfx1031").and(contains("gfx8")));
        run(&bench, &["verify", "more.hipfb", "--require", "gfx1030,gfx1031"]).success().stdout(contains("verified"));
    }
    run(&bench, &["symbols", "alone.co"]).code(12).stderr(contains("error: [HS0311]").and(contains("gfx803")));
}
