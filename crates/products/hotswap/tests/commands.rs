//! The commands as programs, on files made here.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Compression, parse};
use made::{bitcode, id};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn hotswap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    command.env_remove("HOTSWAP_PLAN_DIR");
    command
}

fn bundle(targets: &[&str], compression: Option<Compression>) -> Vec<u8> {
    made::bundle(targets, compression, bitcode)
}

fn file(directory: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.assert().get_output().stdout).unwrap()
}

#[test]
fn unknown_variables_are_named_once_on_standard_error() {
    let mut command = hotswap();
    command.env("HOTSWAP_RETRAGET", "gfx1030=>gfx1031").env("HOTSWAP_TEST_X", "1");
    let said = "hotswap: warning: [HS0109] an environment variable is not known to HotSwap and has no effect: \
                HOTSWAP_RETRAGET; did you mean `HOTSWAP_RETARGET`?\n";
    command.args(["targets", "--format", "json"]).assert().success().stderr(said);
    let mut run = hotswap();
    run.env("HOTSWAP_EMULATE_MEMROY", "1").args(["run", "--gpu", "gfx1030", "--", "/nonexistent/program"]);
    run.assert().failure().stderr(contains("did you mean `HOTSWAP_EMULATE_MEMORY`?").count(1));
}

#[test]
fn list_shows_each_image_with_place_and_target() {
    let directory = TempDir::new().unwrap();
    let mut bytes = bundle(&["gfx1030", "gfx90a:sramecc+:xnack-"], Some(Compression::default()));
    bytes.resize(4096, 0);
    bytes.extend(bundle(&["gfx900"], None));
    let path = file(&directory, "a.hipfb", &bytes);
    let listed = json(hotswap().args(["list", "--format", "json"]).arg(&path));
    let containers = listed["files"][0]["containers"].as_array().unwrap();
    assert_eq!(containers[1]["file_offset"], 4096);
    assert_eq!(containers[0]["compressed"], true);
    assert_eq!(containers[0]["entries"][1]["target"], "gfx90a:sramecc+:xnack-");
    assert_eq!(containers[1]["entries"][0]["number"], 3);
    let text = hotswap().arg("list").arg(&path).assert().success();
    let sizes = [0, 1].map(|index| containers[index]["size"].as_u64().unwrap());
    let plain = containers[0]["uncompressed_size"].as_u64().unwrap();
    assert!(plain > sizes[0] && containers[1]["uncompressed_size"] == sizes[1]);
    assert_eq!(containers[0]["entries"][0]["made"], "compiled");
    let headline = format!("a.hipfb: 2 containers, 3 images, {} bytes in {}\n", plain + sizes[1], sizes[0] + sizes[1]);
    let text =
        text.stdout(contains("bitcode").count(3).and(contains("gfx90a:sramecc+:xnack-")).and(contains(headline)));
    // Only the first image of a container has its compressed size.
    text.stdout(contains(format!("  {}  ", sizes[0])).count(1));
}

#[test]
fn what_cannot_be_read_is_told_beside_what_can() {
    let directory = TempDir::new().unwrap();
    let mut bytes = bundle(&["gfx1030"], None);
    bytes.extend_from_slice(b"\0\0junk");
    let path = file(&directory, "a.hipfb", &bytes);
    let assert = hotswap().arg("list").arg(&path).assert().code(12);
    assert.stdout(contains("gfx1030")).stderr(contains("hotswap: error: [HS0303]").and(contains("\n").count(1)));
    let empty = file(&directory, "empty", b"");
    hotswap().arg("list").arg(&empty).assert().code(12).stderr(contains("HS0304"));
    hotswap().arg("list").arg(directory.path().join("absent")).assert().code(14).stderr(contains("HS0501"));
    hotswap().arg("list").arg(directory.path()).assert().code(14);
}

#[test]
fn a_wrong_hash_is_a_warning_in_list_and_an_error_in_extract() {
    let directory = TempDir::new().unwrap();
    let mut bytes = bundle(&["gfx1030"], Some(Compression::default()));
    bytes[24] ^= 0xff;
    let path = file(&directory, "a.hipfb", &bytes);
    hotswap().arg("list").arg(&path).assert().success().stderr(contains("hotswap: warning: [HS0302]"));
    let output = directory.path().join("out");
    hotswap().arg("extract").arg(&path).arg("-o").arg(&output).assert().code(12);
    assert!(!output.exists());
}

#[test]
fn extract_refuses_to_guess() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "a.hipfb", &bundle(&["gfx1030", "gfx90a:sramecc+:xnack-"], None));
    let output = directory.path().join("out");
    let extract = || {
        let mut command = hotswap();
        command.arg("extract").arg(&path);
        command
    };
    extract().assert().code(2).stderr(contains("HS0001"));
    extract().arg("-o").arg(&output).assert().code(2).stderr(contains("2 images match: 1, 2"));
    extract().arg("-o").arg(&output).args(["--target", "gfx900"]).assert().code(12);
    assert!(!output.exists());
    extract().arg("-o").arg(&output).args(["--target", "gfx90a:xnack-:sramecc+"]).assert().success();
    assert_eq!(fs::read(&output).unwrap(), bitcode("gfx90a:sramecc+:xnack-"));
    extract().arg("-o").arg(&output).args(["--entry", "1"]).assert().success();
    assert_eq!(fs::read(&output).unwrap(), bitcode("gfx1030"));
    let directory = directory.path().join("all");
    extract().arg("--output-dir").arg(&directory).assert().success().stdout(contains("a.hipfb.1.gfx1030.bc"));
    assert!(directory.join("a.hipfb.2.gfx90a_sramecc+_xnack-.bc").is_file());
}

#[test]
fn inspect_compares_records_with_bytes() {
    let directory = TempDir::new().unwrap();
    let record = |sha256: &str| {
        let entry = format!(
            r#"{{"id":"{}","target":"gfx1031","route":"alias","sha256":"{sha256}","size":11,"source":"gfx1030"}}"#,
            id("gfx1031")
        );
        format!(
            r#"{{"schema":1,"hotswap":"0.1.0","identity":"x","plan":"p","plan_text":"hotswap-plan 1\n","entries":[{entry}]}}"#
        )
    };
    let with = |sha256: &str| {
        let bytes = bundle(&["gfx1031"], None);
        let (mut changed, _) = parse(&bytes).unwrap();
        changed.set_record(Some(record(sha256).into_bytes()));
        file(&directory, "a.hipfb", &changed.to_bytes().unwrap())
    };
    let wrong = with(&"0".repeat(64));
    let assert = hotswap().arg("inspect").arg(&wrong).assert().code(12);
    assert.stdout(contains("WRONG").and(contains("retargeted from gfx1030"))).stderr(contains("HS0302"));
    let told = json(hotswap().args(["inspect", "--format", "json"]).arg(&wrong));
    let found = told["files"][0]["containers"][0]["entries"][0]["sha256"].as_str().unwrap().to_owned();
    let good = with(&found);
    hotswap().arg("inspect").arg(&good).assert().success().stdout(contains("verified"));
}

#[test]
fn a_plan_is_written_found_and_made_into_a_manifest() {
    let directory = TempDir::new().unwrap();
    let run = |words: &[&str]| {
        let mut command = hotswap();
        command.current_dir(directory.path()).args(words);
        command
    };
    let plan = json(&mut run(&["plan", "gfx1030=>gfx1031,gfx1032", "--format", "json"]));
    let hash = plan["hash"].as_str().unwrap();
    assert_eq!(plan["targets"], serde_json::json!(["gfx1031", "gfx1032"]));
    assert!(directory.path().join(format!(".hotswap/plans/{hash}.plan")).is_file());
    run(&["plan", "gfx1030=>gfx1032;gfx1030=>gfx1031"]).assert().success().stdout(format!("{hash}\n"));
    for format in ["elf-x86_64", "elf-aarch64", "coff-x86_64"] {
        run(&["manifest", "--plan", hash, "-o", "m.o", "--format", format]).assert().success();
        run(&["inspect", "m.o"]).assert().success().stdout(contains(format!("manifest: plan {hash}")));
    }
    run(&["manifest", "--plan", "0123456789abcdef", "-o", "n.o"]).assert().code(11).stderr(contains("HS0204"));
    run(&["plan", "gfx1030=>gfx900"]).assert().code(11).stderr(contains("HS0203"));
    run(&["plan", "gfx1030=>gfx9999"]).assert().code(11).stderr(contains("HS0202"));
    run(&["plan", "gfx1030"]).assert().code(11).stderr(contains("HS0201"));
    run(&["plan", "gfx1030=>gfx1031", "--patches", "nothing_such"]).assert().code(11).stderr(contains("HS0207"));
}

#[test]
fn the_tables_are_told() {
    hotswap().args(["explain", "hs0203"]).assert().success().stdout(contains("Exit code: 11"));
    hotswap()
        .args(["explain", "HS0414"])
        .assert()
        .success()
        .stdout(contains("Cause: The library's host part has a table"));
    hotswap().arg("explain").assert().success().stdout(contains("HS0001").and(contains("HS0601")));
    hotswap().args(["explain", "HS9999"]).assert().code(2);
    hotswap()
        .args(["explain", "vgpr-fit"])
        .assert()
        .success()
        .stdout(contains("vector registers").and(contains("HS0408")));
    hotswap()
        .args(["explain", "Bank-mode"])
        .assert()
        .success()
        .stdout(contains("s_set_vgpr_msb").and(contains("lint")));
    hotswap().args(["explain", "vgpr-fits"]).assert().code(2).stderr(contains("neither a code nor a check"));
    for check in hotswap_compat::Check::ALL {
        hotswap().args(["explain", check.name()]).assert().success().stdout(contains(check.meaning()));
    }
    hotswap().arg("targets").assert().success().stdout(contains("gfx10-3-generic"));
    let targets = json(hotswap().args(["targets", "--format", "json"]));
    let row = targets["targets"].as_array().unwrap().iter().find(|row| row["name"] == "gfx1031").unwrap();
    assert_eq!(row["mach"], 0x37);
    assert!(row["products"].as_array().unwrap().iter().any(|product| product["name"] == "Radeon RX 6700 XT"));
    assert_eq!(row["triples"][1], "amdgpu10.31-amd-amdhsa");
    assert_eq!(row["limits"]["vgprs"][1]["per_simd"], 512);
    assert!(row["capabilities"].as_array().unwrap().contains(&"wgp-mode".into()));
    hotswap().arg("families").assert().success().stdout(contains("target_note"));
    hotswap().args(["compat", "gfx1030", "gfx1031"]).assert().success().stdout(contains("allowed"));
    hotswap().args(["compat", "gfx904", "gfx900"]).assert().code(11).stderr(contains("HS0203"));
    let refused = json(hotswap().args(["compat", "gfx904", "gfx900", "--format", "json"]));
    assert_eq!(refused["allowed"], false);
}

#[test]
fn usage_errors_are_one_line_and_help_documents_exit_codes() {
    let assert = hotswap().args(["list", "--nonsense"]).assert().code(2);
    assert.stdout("").stderr(predicates::str::starts_with("hotswap: error: [HS0001]").and(contains("\n").count(1)));
    hotswap().assert().code(2);
    for command in [
        "list",
        "extract",
        "inspect",
        "add",
        "replace",
        "remove",
        "prune",
        "merge",
        "split",
        "compress",
        "decompress",
        "verify",
        "disasm",
        "explain",
        "targets",
        "compat",
        "families",
        "plan",
        "manifest",
        "exec",
        "retarget",
    ] {
        hotswap().args([command, "--help"]).assert().success().stdout(contains("Exit codes:"));
    }
}

#[test]
fn exec_runs_compilers_through_the_wrapper_and_the_rest_as_it_is() {
    let directory = TempDir::new().unwrap();
    let own = directory.path().join("hotswap");
    make_program(&own, &fs::read(env!("CARGO_BIN_EXE_hotswap")).unwrap());
    let exec = |words: &[&str]| {
        let mut command = Command::new(&own);
        command.args(["exec", "--"]).args(words);
        command
    };
    exec(&["sh", "-c", "echo \"$1\"; exit 3", "x", "a b"]).assert().code(3).stdout("a b\n");
    exec(&["/bin/clang++-22", "-c"]).assert().code(10).stderr(contains("HS0105"));
    exec(&["/nonexistent/tool"]).assert().code(10).stderr(contains("HS0102"));
    let wrapper = directory.path().join("hotswap-clang++");
    make_program(&wrapper, b"#!/bin/sh\necho \"$HOTSWAP_CLANG $*\"\n");
    exec(&["/bin/clang++-22", "-c", "x y"]).assert().success().stdout("/bin/clang++-22 -c x y\n");
}

/// Written by a child: a file that this process has open for writing could be inherited by the children of other tests,
/// and could not be started as long as they live.
fn make_program(path: &Path, content: &[u8]) {
    Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .write_stdin(content)
        .assert()
        .success();
}

#[test]
fn a_closed_pipe_is_an_error_without_a_message() {
    let own = env!("CARGO_BIN_EXE_hotswap");
    let script = format!("{{ {own} targets; echo $? >&2; }} | true");
    Command::new("sh").args(["-c", &script]).assert().success().stderr("14\n");
}

#[test]
fn a_closed_or_full_standard_output_is_an_error() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "x", &made::bundle(&["gfx1030"], None, made::bitcode));
    let path = path.display();
    for words in ["targets", "families", "explain", &format!("list {path}"), &format!("inspect {path}")] {
        for (to, reason) in [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")] {
            let script = format!("{} {words} {to}", env!("CARGO_BIN_EXE_hotswap"));
            let done = Command::new("sh").args(["-c", &script]).assert();
            done.code(14).stderr(contains("HS0503").and(contains(reason)));
        }
    }
}

/// The containers of this file are not decompressed without need: costly facts are left out, and the output says so.
#[test]
fn of_large_compressed_containers_tables_are_read() {
    let directory = TempDir::new().unwrap();
    let made = |target: &str| [b"BC\xc0\xde".to_vec(), vec![target.len() as u8; 24 << 20]].concat();
    let large = made::bundle(&["gfx1030", "gfx90a:xnack+"], Some(Compression::default()), made);
    let path = file(&directory, "large", &large);
    let look =
        |command: &str, words: &[&str]| json(hotswap().arg(command).arg(&path).args(words).args(["--format", "json"]));
    for command in ["list", "inspect"] {
        let quick = look(command, &[])["files"][0]["containers"][0].take();
        let whole = look(command, &["--kernels"])["files"][0]["containers"][0].take();
        assert_eq!((&quick["hash"], &whole["hash"]), (&"not checked".into(), &"right".into()), "{command}");
        for number in 0..2 {
            let [quick, whole] = [&quick, &whole].map(|one| &one["entries"][number]);
            for field in ["number", "id", "target", "size"] {
                assert_eq!(quick[field], whole[field], "{command} {field}");
            }
            assert!(quick["kind"].is_null() && whole["kind"] == "bitcode", "{command}");
        }
        let told = || contains("--kernels");
        hotswap().arg(command).arg(&path).assert().success().stdout(told());
        hotswap().arg(command).arg(&path).arg("--kernels").assert().success().stdout(told().not());
    }

    // Damage after the table is left to `verify`; a table that claims absent entries is refused.
    let mut damaged = large.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 0xff;
    let damaged = file(&directory, "damaged", &damaged);
    hotswap().arg("verify").arg(&damaged).assert().code(12);
    hotswap().arg("list").arg(&damaged).assert().success().stderr("");
    hotswap().arg("list").arg("--kernels").arg(&damaged).assert().stderr(contains("the hash in the header"));
    let mut small = large;
    small[16..24].copy_from_slice(&(33u64 << 20).to_le_bytes());
    let small = file(&directory, "small", &small);
    hotswap().arg("list").arg(&small).assert().code(12).stderr(contains("outside of the bundle"));
}

#[test]
fn a_dash_is_standard_input() {
    let directory = TempDir::new().unwrap();
    let bytes = bundle(&["gfx1030", "gfx900"], None);
    let path = file(&directory, "in", &bytes);
    let run = |words: &str| {
        let mut command = hotswap();
        command.current_dir(directory.path()).args(words.split(' '));
        command
    };
    for words in ["list", "inspect", "verify"] {
        let named = run(&format!("{words} in")).output().unwrap();
        let expected = String::from_utf8(named.stdout).unwrap().replacen("in:", "-:", 1);
        // By a pipe, and as a file that can be mapped.
        run(&format!("{words} -")).write_stdin(bytes.clone()).assert().success().stdout(expected.clone());
        let redirected = std::process::Command::new(env!("CARGO_BIN_EXE_hotswap"))
            .args([words, "-"])
            .stdin(fs::File::open(&path).unwrap())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(redirected.stdout).unwrap(), expected);
    }
    for words in ["extract FILE --target gfx900 -o out", "prune FILE --keep gfx900 -o out", "compress FILE -o out"] {
        run(&words.replace("FILE", "in")).assert().success();
        let expected = fs::read(directory.path().join("out")).unwrap();
        fs::remove_file(directory.path().join("out")).unwrap();
        run(&words.replace("FILE", "-")).write_stdin(bytes.clone()).assert().success();
        assert_eq!(fs::read(directory.path().join("out")).unwrap(), expected, "{words}");
    }
    run("list -").write_stdin("").assert().code(12);
}

#[test]
fn targets_that_only_newer_compilers_know_are_labelled() {
    let targets = json(hotswap().args(["targets", "--format", "json"]));
    let rows = targets["targets"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    for (name, llvm, has_instructions) in [
        ("gfx1170", 23, true),
        ("gfx11-7-generic", 23, true),
        ("gfx12-5-generic", 23, true),
        ("gfx1250-strict", 24, true),
        ("gfx1310", 23, false),
        ("gfx13-generic", 23, false),
        ("gfx1250", 22, true),
        ("gfx1201", 22, true),
    ] {
        assert_eq!(
            (&row(name)["first_llvm"], &row(name)["instructions"]),
            (&llvm.into(), &has_instructions.into()),
            "{name}"
        );
        let label = format!("known to the compiler (LLVM {llvm} on)");
        let is_labelled = hotswap().args(["targets", name]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(is_labelled).unwrap().contains(&label), llvm > 22, "{name}");
    }
}

#[test]
fn products_are_taken_for_their_gpus() {
    let only = hotswap().args(["targets", "RX 6700 XT"]).assert().success();
    only.stdout(
        contains("gfx1031")
            .and(contains("Radeon RX 6750 XT"))
            .and(contains("gfx1030,").not())
            .and(contains("ROCm documentation")),
    );
    hotswap().args(["targets", "840M"]).assert().code(11).stderr(contains("gfx1152").and(contains("gfx1153")));
    hotswap()
        .args(["compat", "RX 6900 XT", "RX 6700 XT"])
        .assert()
        .success()
        .stdout(contains("gfx1030=>gfx1031: allowed"));
    let meant = contains("did you mean gfx1031 (Radeon RX 6700 XT)?");
    hotswap().args(["compat", "gfx1030", "1031"]).assert().code(11).stderr(contains("did you mean gfx1031?"));
    hotswap().args(["run", "--gpu", "6700xt", "--", "true"]).assert().failure().stderr(meant);
    let ambiguous = hotswap().args(["serve", "840M", "--root", "/", "--dest", "no-such"]).assert().code(11);
    ambiguous.stderr(contains("HS0202").and(contains("Radeon 840M is gfx1153")));
}

/// Examples of `hotswap explain` that need no files end as it says.
#[test]
fn examples_end_with_their_codes() {
    for id in ["HS0201", "HS0202", "HS0203", "HS0204", "HS0207", "HS0304", "HS0501"] {
        let code = hotswap_report::codes::find_code(id).unwrap();
        let example = hotswap_report::explanations::find_explanation(code).unwrap().example;
        let command = example.split("     (").next().unwrap().strip_prefix("hotswap ").unwrap();
        let words = command.split_whitespace().map(|word| word.trim_matches('\''));
        hotswap().args(words).assert().code(i32::from(code.exit)).stderr(contains(id));
    }
}
