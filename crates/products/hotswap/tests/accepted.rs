//! Whatever a command writes is accepted by `hotswap verify`, and entries of other tools are not HotSwap's to judge.

mod made;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use hotswap_bundle::{Bundle, Compression};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{Directory, HOST, bitcode, id};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

/// Entries of other tools: clang's own SPIR-V, OpenMP, SYCL, the host's code, bitcode for a GPU.
const FOREIGN: &[(&str, &[u8])] = &[
    ("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07SPIR-V"),
    ("openmp-amdgcn-amd-amdhsa--gfx1030", b"an image of OpenMP"),
    ("sycl-spir64-unknown-unknown-", b"an image of SYCL"),
    ("hip-amdgcn-amd-amdhsa--gfx1100", b"BC\xc0\xdebitcode"),
];

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// A bundle with code for gfx1030 and one more entry.
fn bundle(entry: &str, content: &[u8]) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push(HOST, Vec::new()).unwrap();
    bundle.push(id("gfx1030"), object("gfx1030")).unwrap();
    bundle.push(entry, content.to_vec()).unwrap();
    bundle.to_bytes().unwrap().into_owned()
}

impl Directory {
    /// Runs the command by a shell, which expands the arguments.
    fn run_line(&self, words: &str) -> Assert {
        self.shell(&format!("{} {words}", env!("CARGO_BIN_EXE_hotswap")))
    }

    fn shell(&self, script: &str) -> Assert {
        Command::new("bash").args(["-c", script]).current_dir(self.0.path()).assert()
    }
}

#[test]
fn entries_of_other_tools_need_no_record() {
    for (entry, content) in FOREIGN {
        let directory = Directory::with("x", &bundle(entry, content));
        directory.run_line("retarget x --to gfx1031 -o y").success();
        directory.run_line("verify x y").success().stdout(contains("verified").count(2));
        directory.run_line("inspect y").success();
    }
}

#[test]
fn bytes_that_are_not_code_of_the_gpu_are_an_error_and_are_not_written_again() {
    let code = object("gfx1031");
    let mut broken = code.clone();
    broken[1] = b'X';
    let mut host = code.clone();
    host[18..20].copy_from_slice(&62u16.to_le_bytes());
    for (what, content) in [("zeros", vec![0; 4096]), ("text", b"text".repeat(99)), ("magic", broken), ("x86-64", host)]
    {
        let input = bundle(&id("gfx1031"), &content);
        let directory = Directory::with("x", &input);
        let told = || contains("HS0302").and(contains("its ID names gfx1031, and its bytes are neither code"));
        directory.run_line("verify x").code(12).stdout("").stderr(told());
        for words in [
            "retarget x --to gfx1032 -o y",
            "compress x -o y",
            "compress x -o x",
            "prune x --keep gfx1030,gfx1031 -o y",
        ] {
            directory.run_line(words).code(12).stderr(told().and(contains("hotswap remove")));
            assert!(!directory.0.path().join("y").exists() && directory.read("x") == input, "{what}: {words}");
        }
        // The way out.
        directory.run_line("remove x gfx1031 -o y").success();
        directory.run_line("retarget y --to gfx1031 -o y").success();
        directory.run_line("verify y").success();
    }
}

#[test]
fn a_package_without_device_code_ends_as_a_file_without_it() {
    let directory = Directory::with("x", b"text");
    directory.shell("mkdir d && mv x d/ && tar czf p.tar.gz d").success();
    for words in [
        "retarget p.tar.gz --to gfx1031 -o q.tar.gz",
        "retarget p.tar.gz --to gfx1031 --dry-run",
        "retarget d/x --to gfx1031 -o y",
    ] {
        directory.run_line(words).code(12).stderr(contains("HS0304").and(contains("\n").count(1)));
    }
    assert!(!directory.0.path().join("q.tar.gz").exists());
}

#[test]
fn a_stream_is_an_input_like_a_file() {
    let directory = Directory::with("x", &made::bundle(&["gfx1030", "gfx1100"], None, object));
    directory.shell("mkdir -p d && cp x d/ && tar czf p.tar.gz d && mkfifo f").success();
    let own = env!("CARGO_BIN_EXE_hotswap");
    for words in ["list", "inspect", "verify", "uses --gpu gfx1030"] {
        let expected = directory.shell(&format!("{own} {words} x | tail -n +2")).success().get_output().stdout.clone();
        for input in ["<(cat x)", "/dev/stdin"] {
            let out =
                directory.shell(&format!("set -o pipefail; cat x | {own} {words} {input} | tail -n +2")).success();
            assert_eq!(out.get_output().stdout, expected, "{words} {input}");
        }
        // A FIFO is opened once.
        let out =
            directory.shell(&format!("cat x > f & timeout 20 {own} {words} f | tail -n +2; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(out.success().get_output().stdout, expected, "{words}");
    }
    directory.run_line("list p.tar.gz").success();
    directory.run_line("list <(cat p.tar.gz)").success().stdout(contains("d/x").and(contains("/dev/fd/")));
    directory.run_line("retarget x --to gfx1031 -o y").success();
    directory.run_line("retarget <(cat x) --to gfx1031 -o z").success();
    assert_eq!(directory.read("y"), directory.read("z"));
    let mode = |name: &str| fs::metadata(directory.0.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("z"), mode("x"));
    directory.run_line("retarget <(cat p.tar.gz) --to gfx1031 -o q.tar.gz").success();
    directory
        .run_line("list <(head -c 5000 x)")
        .code(12)
        .stderr(contains("/dev/fd/").and(contains("hotswap-stream").not()));
    directory.run_line("add x gfx1031=<(echo text) -o w").failure().stderr(contains("hotswap-stream").not());
    assert_eq!(
        fs::read_dir(std::env::temp_dir())
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("hotswap-stream-"))
            .count(),
        0
    );
}

#[test]
fn a_package_expands_to_its_limit() {
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], None, bitcode));
    directory.shell("mkdir d && head -c 300000000 /dev/zero > d/zeros && cp x d/").success();
    for (form, name) in [("z", "p.tar.gz"), ("J", "p.tar.xz"), ("-zstd", "p.tar.zst")] {
        let packed =
            directory.shell(&format!("XZ_OPT=-0 tar c{form}f {name} d 2>/dev/null || tar c --{form} -f {name} d"));
        if packed.try_success().is_err() {
            hotswap_userland::say(&format!("a_package_expands_to_its_limit: no program for {name}"));
            continue;
        }
        directory
            .run(&format!("--max-size 16M list {name}"))
            .code(13)
            .stderr(contains("HS0417").and(contains("16777216")));
        directory.run_line(&format!("--max-size 400M list {name}")).success();
    }
}

#[test]
fn what_is_over_the_limit_is_not_taken_for_missing() {
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], Some(Compression::default()), object));
    directory.run_line("retarget x --to gfx1031 -o y").success();
    directory.run_line("verify y").success();
    let refused = directory.run_line("--max-size 1K verify y").code(13);
    refused.stderr(contains("HS0417").and(contains("1024")).and(contains("missing").not()));
}

#[test]
fn a_debian_package_whose_member_has_another_name_is_refused() {
    let member = |name: &str, data: &[u8]| {
        let mut bytes = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100644, data.len()).into_bytes();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        bytes
    };
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], None, object));
    directory.shell("mkdir d && cp x d/ && printf 'Package: x\nInstalled-Size: 1\n' > control && tar cf control.tar control && tar cf data.tar d").success();
    let package = |names: [&str; 3]| {
        let [binary, control, data] = names;
        let parts = [
            member(binary, b"2.0\n"),
            member(control, &directory.read("control.tar")),
            member(data, &directory.read("data.tar")),
        ];
        [b"!<arch>\n".to_vec(), parts.concat()].concat()
    };
    let good = ["debian-binary", "control.tar", "data.tar"];
    fs::write(directory.0.path().join("p.deb"), package(good)).unwrap();
    directory.run_line("list p.deb").success().stdout(contains("gfx1030"));
    let mut tried = 0;
    for (number, name) in good.iter().enumerate() {
        for at in 0..name.len() {
            let mut changed = name.as_bytes().to_vec();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            let mut names = good;
            names[number] = &changed;
            fs::write(directory.0.path().join("q.deb"), package(names)).unwrap();
            directory.run_line("list q.deb").failure().stdout("");
            directory.run_line("retarget q.deb --to gfx1031 -o r.deb").failure();
            assert!(!directory.0.path().join("r.deb").exists(), "{changed}");
            tried += 1;
        }
    }
    hotswap_userland::say(&format!("a_debian_package_whose_member_has_another_name_is_refused: {tried} names"));
}

#[test]
fn many_images_are_extracted_in_a_time_that_grows_with_their_number() {
    let targets: Vec<String> = (0..4000).map(|number| format!("{number}")).collect();
    let mut all = Vec::new();
    for _ in &targets {
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend_from_slice(&made::bundle(&["gfx1030"], None, |_| b"BC\xc0\xde".to_vec()));
    }
    let directory = Directory::with("x", &all);
    let start = std::time::Instant::now();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_hotswap"))
        .args(["extract", "x", "--output-dir", "out"])
        .current_dir(directory.0.path())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let count = fs::read_dir(directory.0.path().join("out")).unwrap().count();
    hotswap_userland::say(&format!("{count} images extracted in {:?}", start.elapsed()));
    assert_eq!(count, 4000);
}

#[test]
fn other_names_of_a_file_that_is_replaced_are_named() {
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], None, object));
    directory.shell("ln x link").success();
    let before = directory.read("x");
    directory.run_line("retarget x --to gfx1031 -o y").success().stderr("");
    let told = directory.run_line("retarget x --to gfx1031 -o x").success();
    told.stderr(contains("warning: [HS0506] x:").and(contains("1 more name")).and(contains("\n").count(1)));
    assert!(directory.read("link") == before && directory.read("x") != before);
    directory.run_line("compress x -o x").success().stderr("");
}

/// The names of a file get its new content where the user asks for it, and what the inode carries stays.
#[test]
fn a_file_is_written_in_place_where_that_is_asked_for() {
    for words in [
        "retarget x --to gfx1031 -o x",
        "compress x -o x",
        "prune x --keep gfx1030 -o x",
        "remove x gfx1100 -o x",
        "retarget x --pairs 'gfx1030=>gfx1031' -o x",
    ] {
        let directory = Directory::with("x", &made::bundle(&["gfx1030", "gfx1100"], None, object));
        directory.shell("chmod 750 x && ln x link && cp x apart");
        directory.run_line(&words.replace("-o x", "-o expected")).success();
        directory.run_line(&words.replace("-o x", "-o apart --in-place")).code(2).stderr(contains("--in-place"));
        directory.run_line(&format!("{words} --in-place")).success().stderr("");
        let expected = directory.read("expected");
        assert!(directory.read("x") == expected && directory.read("link") == expected, "{words}");
        directory.shell("test $(stat -c %h-%a x) = 2-750 && test $(ls -A | wc -l) = 4").success();
        directory.run_line("verify x").success();
    }
    let directory = Directory::with("x", &object("gfx1030"));
    directory.shell("ln x link").success();
    directory.run_line("symbols x --write -o x --in-place").success();
    assert!(directory.read("x") == directory.read("link") && directory.read("x") != object("gfx1030"));
    directory.shell("tar cf p.tar x").success();
    directory.run_line("prune p.tar --keep gfx1030 -o p.tar --in-place").code(2).stderr(contains("written anew"));
}
