//! Commands on files that they cannot process: no command exits with 0 as if it had carried out the request.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Bundle, Compression, OffloadBinary, OffloadImage, split_record};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{Directory, archive, bitcode, id, section};
use object::BinaryFormat;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::os::unix::fs::MetadataExt;
use tempfile::TempDir;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    let lanes = if target.starts_with("gfx9") { 64 } else { 32 };
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, lanes, ..Sample::default() }.build()
}

/// An OffloadBinary with one image; kind 1 is OpenMP, 4 HIP.
fn offload(kind: u16, target: &str, code: fn(&str) -> Vec<u8>) -> Vec<u8> {
    let strings = vec![("arch".into(), target.into()), ("triple".into(), "amdgcn-amd-amdhsa".into())];
    let image = OffloadImage { image_kind: 1, offload_kind: kind, flags: 0, strings, data: code(target).into() };
    OffloadBinary { version: 2, compressed: false, images: vec![image] }.to_bytes().unwrap()
}

fn host_object(content: &[u8]) -> Vec<u8> {
    section(".hip_fatbin", content, 4096, BinaryFormat::Elf)
}

fn offloading(content: &[u8]) -> Vec<u8> {
    section(".llvm.offloading", content, 8, BinaryFormat::Elf)
}

impl Directory {
    fn shell(&self, words: &str) {
        let mut command = std::process::Command::new("sh");
        assert!(command.args(["-c", words]).current_dir(self.0.path()).status().unwrap().success(), "{words}");
    }
}

/// Name, file, code and a part of the message when a further target is requested.
fn unsuited() -> Vec<(&'static str, Vec<u8>, &'static str, &'static str)> {
    let bundle = |code| made::bundle(&["gfx1030"], None, code);
    vec![
        ("OpenMP images", offload(1, "gfx1030", object), "HS0412", "OpenMP images (code object for gfx1030)"),
        ("OpenMP images in an object", offloading(&offload(1, "gfx1030", object)), "HS0412", "OpenMP images"),
        ("images of HIP", offload(4, "gfx1030", object), "HS0402", "an offload binary gets no further images"),
        ("bitcode", offloading(&offload(4, "gfx1030", bitcode)), "HS0402", "not linked yet (bitcode for gfx1030)"),
        ("bitcode of OpenMP", offload(1, "gfx1030", bitcode), "HS0402", "not linked yet (bitcode for gfx1030)"),
        ("bundle of bitcode", bundle(bitcode), "HS0402", "not linked yet (bitcode for gfx1030)"),
        ("code objects in an archive", archive(&["a", "b"].map(|n| (n, object("gfx1030")))), "HS0402", "archive"),
        ("host part alone", made::bundle(&[], None, object), "HS0304", "holds no code for an AMD GPU"),
    ]
}

#[test]
fn files_that_get_no_target_are_refused_by_every_form_of_the_wish() {
    for (name, bytes, code, what) in unsuited() {
        let exit = if code == "HS0304" { 12 } else { 13 };
        for wish in ["--to gfx1031,gfx1032", "--pairs gfx1030=>gfx1031,gfx1032"] {
            let directory = Directory::with("x", &bytes);
            let out = directory.run(&format!("retarget x {wish} -o y")).code(exit);
            out.stderr(contains(code).and(contains(what)).and(contains("\n").count(1)));
            assert!(!directory.0.path().join("y").exists(), "{name}: {wish}");
            // The policy decides as for other targets that cannot be made; without any device code there is nothing to
            // do.
            let warned = directory.run(&format!("retarget x {wish} --policy warn -o y"));
            if exit == 12 {
                warned.code(12)
            } else {
                warned.code(17).stderr(contains(format!("warning: [{code}]")))
            };
        }
        let directory = Directory::with("x", &bytes);
        directory.run("rewrite x --to gfx1250-strict -o y").failure().stderr(contains(code));
        assert!(!directory.0.path().join("y").exists(), "{name}");
    }
}

#[test]
fn what_is_there_already_is_no_refusal() {
    let directory = Directory::with("x", &offload(1, "gfx1030", object));
    directory.run("retarget x --to gfx1030 -o y").code(17).stdout(contains("there already"));
    assert_eq!(directory.read("x"), directory.read("y"));
    // Next to a fat binary that is processed, OpenMP's images are reported, too.
    let both = archive(&[
        ("a.o", host_object(&made::bundle(&["gfx1030"], None, object))),
        ("b.o", offloading(&offload(1, "gfx1030", object))),
    ]);
    let directory = Directory::with("x", &both);
    directory
        .run("retarget x --to gfx1031 -o y")
        .code(13)
        .stderr(contains("b.o:.llvm.offloading").and(contains("HS0412")));
    directory.run("retarget x --to gfx1031 --policy warn -o y").success();
    directory.run("list y").success().stdout(contains("retargeted from gfx1030").count(1));
}

#[test]
fn commands_that_find_nothing_to_change_say_so() {
    let plain = made::bundle(&["gfx1030", "gfx900"], None, bitcode);
    let packed = made::bundle(&["gfx1030"], Some(Compression::default()), bitcode);
    for (bytes, words, said) in [
        (&plain, "prune x --keep gfx1030,gfx900 -o y", "x: unchanged: nothing in it is to go\n"),
        (&packed, "compress x -o y", "x: unchanged: its fat binaries are compressed in this way already\n"),
        (&plain, "decompress x -o y", "x: unchanged: none of its fat binaries is compressed\n"),
    ] {
        let directory = Directory::with("x", bytes);
        directory.run(words).code(17).stdout(said.to_owned()).stderr(contains("note: [HS0470] x: "));
        assert_eq!(directory.read("x"), directory.read("y"));
        assert!(directory.json(words)["notice"].as_str().unwrap().starts_with("unchanged: "));
    }
    // Removing the only other entry of a host object saves bytes of the bundle, whose old place has become zeros.
    let directory = Directory::with("x", &plain);
    directory.run("prune x --keep gfx900 -o y").success().stdout(contains("removed").and(contains("nothing").not()));
    directory.run("prune x --drop gfx1100 -o y").code(12).stderr(contains("HS0307"));
    directory.run("remove x gfx1100 -o y").code(12).stderr(contains("HS0307"));
    directory.run("extract x --target gfx1100 -o y").code(12).stderr(contains("HS0304"));
    // A fat binary that does not become smaller stays as it is.
    let short = |_: &str| [&b"BC\xc0\xde"[..], &(0..=255u8).cycle().step_by(7).take(64).collect::<Vec<_>>()].concat();
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], None, short));
    directory.run("compress x --level 1 -o y").success();
    assert!(directory.read("y").len() <= directory.read("x").len());
}

/// A command, the preparation of its file `x`, and the files that it may not touch.
struct UnchangedCommand {
    prepare: &'static [&'static str],
    words: &'static str,
}

const fn unchanged(prepare: &'static [&'static str], words: &'static str) -> UnchangedCommand {
    UnchangedCommand { prepare, words }
}

/// Every command that changes files.
const UNCHANGED: &[UnchangedCommand] = &[
    unchanged(&["extract x --target gfx1030 -o part"], "replace x gfx1030=part -o x"),
    unchanged(&[], "prune x --keep gfx1030,gfx1100 -o x"),
    unchanged(&["compress x -o x"], "compress x -o x"),
    unchanged(&[], "decompress x -o x"),
    unchanged(&["retarget x --to gfx1031 -o x"], "retarget x --to gfx1031 -o x"),
    unchanged(&["retarget x --to gfx1031 -o x"], "retarget x --pairs gfx1030=>gfx1031 -o x"),
    unchanged(
        &["extract x --target gfx1030 -o part", "retarget part --to gfx1031 -o x"],
        "retarget x --to gfx1031 -o x",
    ),
    unchanged(&["extract x --target gfx1030 -o x"], "symbols x --write -o x"),
    unchanged(&["retarget p.tar --to gfx1031 -o x"], "retarget x --to gfx1031 -o x"),
    unchanged(&["prune p.tar --keep gfx1030 -o x"], "prune x --keep gfx1030 -o x"),
];

#[test]
fn a_command_with_nothing_to_change_has_an_exit_code_of_its_own() {
    for UnchangedCommand { prepare, words } in UNCHANGED {
        let directory = Directory::with("x", &made::bundle(&["gfx1030", "gfx1100"], None, object));
        directory.write("lib", &host_object(&directory.read("x")));
        directory.shell("tar cf p.tar lib");
        prepare.iter().for_each(|words| drop(directory.run(words).success()));
        if words.starts_with("symbols") {
            directory.run(words).success();
        }
        let inode =
            |name: &str| fs::metadata(directory.0.path().join(name)).map(|meta| (meta.ino(), meta.mtime_nsec()));
        let (before, content) = (inode("x").unwrap(), directory.read("x"));
        directory.run(words).code(17).stderr(contains("hotswap: note: [HS0470] x: ").and(contains("\n").count(1)));
        assert_eq!(inode("x").unwrap(), before, "{words}: it was written");
        directory.run(&format!("{words} --allow-unchanged")).success();
        assert_eq!((inode("x").unwrap(), directory.read("x")), (before, content), "{words}");
        // An output of another name is written all the same.
        let other = words.replace("-o x", "-o y");
        directory.run(&other).code(17);
        assert!(directory.0.path().join("y").exists(), "{other}");
        directory
            .run(&other.replace("-o y", "-o -"))
            .code(17)
            .stdout(predicate::function(|out: &[u8]| !out.is_empty()));
    }
}

/// A format, its first bytes, the expected message, and that of `list`, `retarget` and `compress`, which read packages and find these
/// damaged.
const FORMATS: &[(&str, &[u8], &str, &str)] = &[
    ("x.whl", b"PK\x03\x04....", "zip archive", "invalid Zip archive"),
    ("x.tar.gz", b"\x1f\x8b\x08....", "gunzip", "no tar archive"),
    ("x.kdb", b"SQLite format 3\0....", "MIOpen", "MIOpen"),
    ("x.dat", b"\x82\xa9solutions\x90\xa7library\x80", ".hsaco files next to it", ".hsaco files next to it"),
    (
        "x.deb",
        b"!<arch>\ndebian-binary   0           0     0     100644  4         `\n2.0\n",
        "dpkg-deb",
        "no control.tar",
    ),
];

#[test]
fn files_that_are_to_be_unpacked_are_named() {
    for (name, bytes, said, listed) in FORMATS {
        let directory = Directory::with(name, bytes);
        for words in
            ["list @", "inspect @", "verify @", "retarget @ -o y --to gfx1031", "compress @ -o y", "extract @ -o y"]
        {
            let out = directory.run(&words.replace('@', name)).code(12);
            let reads_packages = ["list", "retarget", "compress"].iter().any(|command| words.starts_with(command));
            let text = if reads_packages { *listed } else { *said };
            let id = if text.contains("invalid Zip") || text.contains("no control") { "HS0302" } else { "HS0304" };
            out.stderr(contains(id).and(contains(text)).and(contains("\n").count(1)));
        }
    }
}

#[test]
fn equal_refusals_are_one_line_and_json_has_all() {
    let one = made::bundle(&["gfx900"], None, object);
    let mut all = Vec::new();
    for _ in 0..241 {
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend_from_slice(&one);
    }
    let directory = Directory::with("x", &all);
    let out = directory.run("retarget x --to gfx1031 -o y").code(13);
    out.stderr(contains("[241 times; this is the first place]\n").and(contains("\n").count(1)));
    let report = directory.json("retarget x --to gfx1031 -o y");
    let containers = report["containers"].as_array().unwrap();
    assert_eq!(containers.iter().filter(|one| !one["targets"][0]["reasons"][0].is_null()).count(), 241);
}

#[test]
fn a_plan_that_was_linked_in_must_be_in_a_record() {
    let directory = Directory::with("x", &made::bundle(&["gfx1030"], None, object));
    let plan = directory.json("plan gfx1030=>gfx1031 --out-dir .hotswap/plans");
    let hash = plan["hash"].as_str().unwrap();
    directory.run(&format!("manifest --plan {hash} -o m.o")).success();
    directory.run("verify m.o").code(11).stderr(contains("HS0209").and(contains(hash)).and(contains("gfx1031")));
    let linked = |name: &str, fat_binary: &[u8]| {
        directory.write(name, &archive(&[("m.o", directory.read("m.o")), ("a.o", host_object(fat_binary))]));
    };
    linked("lost", &directory.read("x"));
    directory.run("verify lost").code(11).stderr(contains("HS0209").and(contains("code for gfx1031 is missing")));
    assert_eq!(directory.json("verify lost")["files"][0]["verified"], false);
    directory.run(&format!("retarget x --plan {hash} -o kept.hipfb")).success();
    linked("kept", &directory.read("kept.hipfb"));
    directory.run("verify kept").success();
    linked("compiled", &made::bundle(&["gfx1030", "gfx1031"], None, object));
    directory.run("verify compiled").success();
}

#[test]
fn a_code_object_on_its_own_keeps_its_record() {
    let directory = Directory::with("x.co", &object("gfx1030"));
    directory.run("list x.co").success().stdout(contains("  compiled  "));
    directory.run("retarget x.co --to gfx1031 -o y.co").success();
    directory.run("list y.co").success().stdout(contains("retargeted from gfx1030"));
    let inspected = directory.run("inspect y.co").success();
    inspected.stdout(contains("verified").and(contains("plan: policy error; retarget gfx1030=>gfx1031")));
    directory.run("verify y.co").success();
    // Before the record are the bytes of a code object that was compiled for it.
    let made = directory.read("y.co");
    assert_eq!(split_record(&made).unwrap().0, object("gfx1031"));
    directory.run("extract y.co -o z.co").success();
    assert_eq!(directory.read("z.co"), object("gfx1031"));
    // The next one is made from the code object, without the record that follows it.
    directory.run("retarget y.co --to gfx1032 -o z.co").success();
    assert_eq!(split_record(&directory.read("z.co")).unwrap().0, object("gfx1032"));
    directory.run("list z.co").success().stdout(contains("retargeted from gfx1031"));
    // In a bundle the record is stored with the others.
    directory.write("b", &made::bundle(&["gfx1030"], None, object));
    directory.run("add b gfx1031=y.co -o b").success();
    directory.run("list b").success().stdout(contains("retargeted from gfx1030").count(1).and(contains(id("gfx1031"))));
    directory.run("verify b").success();
    directory.run("inspect b").success().stdout(contains("verified").count(2));
    // Where other bytes follow, a record has no place, and a warning says so.
    directory.write("long.co", &[object("gfx1030"), b"more".to_vec()].concat());
    directory
        .run("retarget long.co --to gfx1031 -o z.co")
        .success()
        .stderr(contains("there is no place for its record"));
    assert_eq!(directory.read("z.co"), [object("gfx1031"), b"more".to_vec()].concat());
    // A changed byte is detected.
    let mut damaged = made;
    damaged[9] ^= 1;
    directory.write("y.co", &damaged);
    directory.run("verify y.co").code(12).stderr(contains("SHA-256"));
}

/// Code with the kernels of another container, and a compressed bundle that LLVM reads and HIP does not.
#[test]
fn code_that_hip_would_not_find_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let run = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(directory.path()).args(words.split(' ')).assert()
    };
    let code = |target: &str, kernel: &'static str| {
        let flags = EFlags::of(&target.parse().unwrap()).encode();
        let target = format!("amdgcn-amd-amdhsa--{target}");
        Sample { target, flags, kernels: vec![kernel], ..Sample::default() }.build()
    };
    let mut fat = Bundle::default();
    fat.set_compression(Some(Compression::default()));
    fat.push(made::HOST, Vec::new()).unwrap();
    fat.push(id("gfx1030"), code("gfx1030", "first")).unwrap();
    let bundle = fat.to_bytes().unwrap();
    fs::write(path("fat"), &bundle).unwrap();
    for (file, target, kernel) in
        [("same.co", "gfx1031", "first"), ("other.co", "gfx1031", "second"), ("old.co", "gfx1030", "second")]
    {
        fs::write(path(file), code(target, kernel)).unwrap();
    }
    run("add fat gfx1031=same.co -o out").success();
    for words in ["add fat gfx1031=other.co -o bad", "replace fat gfx1030=old.co -o bad"] {
        run(words).code(13).stderr(contains("HS0434").and(contains("first")));
    }
    assert!(!path("bad").exists());
    let plain = hotswap_bundle::parse(&bundle).unwrap().0.to_plain_bytes().unwrap();
    let size = u32::try_from(plain.len()).unwrap().to_le_bytes();
    let first = [b"CCOB\x01\0\x01\0", &size[..], &bundle[24..]].concat();
    fs::write(path("first"), first).unwrap();
    run("list first").success();
    run("verify first").code(12).stderr(contains("version 1").and(contains("HIP 7.2")));
    run("uses first --gpu gfx1030").code(13).stdout(contains("nothing"));
    run("compress first -o third").success();
    run("verify third").success();
    run("uses third --gpu gfx1030").success().stdout(contains("the GPU's own"));
}

#[test]
fn a_rule_that_cannot_be_judged_is_an_error_where_it_is_required() {
    let directory = Directory::with("x", &object("gfx1030"));
    directory.run("lint x").success().stdout(contains("not judged"));
    directory.run("lint x --require all").code(16).stderr(contains("[HS0455] x: ").and(contains("gfx1030")));
}

/// Two code objects as constants of the host's, as Mojo's compiler writes them.
#[test]
fn code_objects_without_a_container_are_counted_by_each_command() {
    let constants = [vec![1; 40], object("gfx942"), vec![0; 24], object("gfx1030")].concat();
    let file = section(".rodata", &constants, 8, BinaryFormat::Elf);
    let counted = || {
        contains("error: [HS0304] ")
            .and(contains(
                "no container of device code is in it, but 2 code objects are in it without one, the first at 0x",
            ))
            .and(contains(" for gfx942; "))
            .and(contains("HotSwap neither reads nor changes code without a container"))
    };
    for words in [
        "list x",
        "verify x",
        "uses x --gpu gfx942",
        "retarget x --to gfx1031 -o y",
        "prune x --keep gfx942 -o y",
        "compress x -o y",
    ] {
        let directory = Directory::with("x", &file);
        directory.run(words).code(12).stderr(counted().and(contains(" x: ")));
        assert!(directory.read("x") == file && !directory.0.path().join("y").exists(), "{words}");
    }
    // The same bytes without the code objects: nothing is counted.
    let directory = Directory::with("x", &section(".rodata", &[1; 4000], 8, BinaryFormat::Elf));
    directory.run("verify x").code(12).stderr(contains("HS0304").and(contains("without one").not()));
}

/// Files are checked side by side; what is told of them is what each is told alone, in their order.
#[test]
fn verify_tells_of_many_files_in_their_order() {
    let directory = Directory(TempDir::new().unwrap());
    let bundle = made::bundle(&["gfx1030", "gfx1031"], Some(Compression::default()), object);
    let names: Vec<String> = (0..24).map(|number| format!("f{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let size = if number % 5 == 0 { bundle.len() / 2 } else { bundle.len() };
        directory.write(name, &bundle[..size]);
    }
    directory.write("empty", b"");
    let words = format!("verify empty {} absent", names.join(" "));
    let all = directory.run(&words).failure().get_output().clone();
    let (mut text, mut errors) = (Vec::new(), Vec::new());
    for name in ["empty"].into_iter().chain(names.iter().map(String::as_str)).chain(["absent"]) {
        let one = directory.run(&format!("verify {name}")).get_output().clone();
        text.extend(one.stdout);
        errors.extend(one.stderr);
    }
    assert_eq!(String::from_utf8(all.stdout).unwrap(), String::from_utf8(text).unwrap());
    let errors = String::from_utf8(errors).unwrap();
    assert!(!errors.contains("[HS0002]"), "{errors}");
    assert_eq!(String::from_utf8(all.stderr).unwrap(), errors);
}
