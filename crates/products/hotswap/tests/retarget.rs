//! `hotswap retarget --to` on hand-made files of every form: targets that are made, kept, dropped and refused.

mod made;

use hotswap_bundle::{Bundle, Compression, CompressionMethod, find_containers, parse, split_record};
use hotswap_code_object::CodeObject;
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{Directory, archive, id, section};
use object::BinaryFormat;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    let lanes = if target.starts_with("gfx9") { 64 } else { 32 };
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, lanes, ..Sample::default() }.build()
}

fn bundle(targets: &[&str], compression: Option<Compression>) -> Vec<u8> {
    made::bundle(targets, compression, object)
}

/// Bundles one after the other, as in the output of a host linker.
fn fatbin(count: usize, targets: &[&str], compression: Option<Compression>) -> Vec<u8> {
    let one = bundle(targets, compression);
    let mut all = Vec::new();
    for _ in 0..count {
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend_from_slice(&one);
    }
    all
}

fn host_object(content: &[u8]) -> Vec<u8> {
    section(".hip_fatbin", content, 4096, BinaryFormat::Elf)
}

impl Directory {
    /// Targets of the code objects of each container; each object is for the target that its entry names.
    fn targets(&self, name: &str) -> Vec<Vec<String>> {
        let bytes = self.read(name);
        let contents = find_containers(&bytes);
        assert_eq!(contents.problems, []);
        let targets = |found: &hotswap_bundle::FoundContainer<'_>| {
            let images = found.read().unwrap().images.into_iter().filter(|image| !image.data.is_empty());
            let target = |image: hotswap_bundle::ContainerImage<'_>| {
                let named = image.id.unwrap().split("amdhsa--").last().unwrap().to_owned();
                assert_eq!(CodeObject::parse(&image.data).unwrap().target_id().to_string(), named);
                named
            };
            images.map(target).collect()
        };
        contents.found.iter().map(targets).collect()
    }
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let directory = Directory::empty();
    directory.write("x", &fatbin(2, &["gfx1030"], None));
    let said = |words: &str| {
        let out = directory.json(words);
        (out["containers"][1]["targets"].clone(), out["written"].clone())
    };
    let (dry, written) = said("retarget x --to gfx1031 --dry-run");
    assert_eq!(written, false);
    assert_eq!(directory.targets("x"), vec![vec!["gfx1030"]; 2]);
    assert_eq!(fs::read_dir(directory.0.path()).unwrap().count(), 1);
    assert_eq!(said("retarget x --to gfx1031 -o y").0, dry);
    directory.run("retarget x --to gfx1031").code(2);
    directory.run("retarget x --to gfx1031 -o y --dry-run").code(2);
}

#[test]
fn the_order_of_targets_does_not_change_the_file() {
    let directory = Directory::empty();
    directory.write("x", &bundle(&["gfx1030"], None));
    let all = ["gfx1031,gfx1032,gfx10-3-generic", "gfx10-3-generic,gfx1032,gfx1031", "gfx1032,gfx10-3-generic,gfx1031"];
    let made = all.map(|targets| {
        directory.run(&format!("retarget x --to {targets} -o y")).success();
        directory.read("y")
    });
    assert!(made[0] == made[1] && made[1] == made[2]);
}

#[test]
fn listed_actions_make_what_they_name() {
    let directory = Directory::empty();
    fs::create_dir_all(directory.0.path().join("in/deep")).unwrap();
    directory.write("in/a", &bundle(&["gfx1030"], None));
    directory.write("in/deep/b", &fatbin(2, &["gfx1030"], None));
    directory.write("in/deep/text", b"no device code");
    let listed = directory.run("retarget in --to gfx1032,gfx1031 --policy keep -o out --list-actions").success();
    let lines = String::from_utf8(listed.get_output().stdout.clone()).unwrap();
    let actions: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(actions.iter().map(|action| &action["inputs"][0]).collect::<Vec<_>>(), ["in/a", "in/deep/b"]);
    assert!(!directory.exists("out"), "nothing was run");
    fs::create_dir_all(directory.0.path().join("out/deep")).unwrap();
    for action in actions.iter().rev() {
        let words: Vec<&str> =
            action["arguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert!(words[0] == "hotswap" && words.contains(&"--policy=keep"), "{words:?}");
        directory.run(&words[1..].join(" ")).success();
        let name = action["outputs"][0].as_str().unwrap();
        assert!(directory.targets(name).concat().contains(&"gfx1031".to_owned()), "{name}");
    }
    let words =
        "--max-size 2M retarget in --to gfx1031 --drop gfx1030,gfx1100 --compress --allow names -o out --list-actions";
    let listed = directory.run(words).success();
    for option in ["--max-size=2097152", "--drop=gfx1030,gfx1100", "--compress", "--allow=names"] {
        assert!(String::from_utf8_lossy(&listed.get_output().stdout).contains(option), "{option}");
    }
    for option in ["--patches=x", "--names=warn", "--device-link=fix", "--device-symbols", "--device-exports=f"] {
        let refused = directory.run(&format!("retarget in/a --to gfx1031 {option} -o out")).code(2);
        refused.stderr(contains("can be used with --pairs, not with --to"));
    }
    directory.run("retarget --to gfx1031 in/deep/text -o out --list-actions").code(12);
    directory.run("retarget in --to gfx9999 -o out --list-actions").code(11);
    directory.run("retarget in --to gfx1031 --list-actions").code(2);
}

#[test]
fn a_target_is_not_served_by_code_that_is_dropped() {
    let directory = Directory::empty();
    directory.write("generic", &bundle(&["gfx10-3-generic", "gfx900"], None));
    directory.write("native", &bundle(&["gfx1030", "gfx900"], None));
    for (words, cover) in [
        ("generic --to gfx1030 --drop gfx10-3-generic", "gfx10-3-generic"),
        ("native --to gfx1030 --drop gfx1030", "gfx1030"),
    ] {
        let refused = directory.run(&format!("retarget {words} -o out")).code(13);
        refused.stderr(contains("HS0450").and(contains(format!("the code for {cover}, which is to be dropped"))));
        assert!(!directory.exists("out"), "{words}");
    }
    // Each setting of a feature counts by itself.
    directory.write("settings", &bundle(&["gfx90a:xnack+", "gfx90a:xnack-"], None));
    let refused = directory.run("retarget settings --to gfx90a --drop gfx90a:xnack- -o out").code(13);
    refused.stderr(contains("HS0450").and(contains("the code for gfx90a, which is to be dropped")));
    assert!(!directory.exists("out"));
    directory.write("open", &bundle(&["gfx90a:sramecc+", "gfx90a:sramecc-:xnack+", "gfx90a:sramecc-:xnack-"], None));
    directory.run("retarget open --to gfx90a --drop gfx90a:sramecc-:xnack+ -o out").code(13);
    // The source of the code that is made may go.
    directory.run("retarget native --to gfx1031 --drop gfx1030 -o out").success();
    assert_eq!(directory.targets("out"), [["gfx900", "gfx1031"]]);
}

#[test]
fn every_form_of_file_gets_natives_and_generics_and_keeps_its_form() {
    let packed = |version, method| Some(Compression { version, method, level: None });
    let targets = ["gfx1030", "gfx900"];
    let forms = [
        ("bundle", bundle(&targets, None)),
        ("bundles", fatbin(5, &targets, None)),
        ("zstd", fatbin(1, &targets, packed(3, CompressionMethod::Zstd))),
        ("zlib", fatbin(3, &targets, packed(2, CompressionMethod::Zlib))),
        ("object", host_object(&bundle(&targets, None))),
        ("packed object", host_object(&fatbin(1, &targets, packed(3, CompressionMethod::Zstd)))),
        ("archive", archive(&["a.o", "b.o"].map(|name| (name, host_object(&bundle(&targets, None)))))),
    ];
    for (form, bytes) in forms {
        let directory = Directory::empty();
        directory.write("x", &bytes);
        let before = directory.targets("x");
        let words = "retarget x --to gfx1031,gfx10-3-generic,gfx902,gfx1030";
        directory.run(&format!("{words} -o y --jobs 1")).success().stderr("");
        let all = ["gfx1030", "gfx900", "gfx902", "gfx1031", "gfx10-3-generic"];
        assert_eq!(directory.targets("y"), vec![all.to_vec(); before.len()], "{form}");
        // Any number of threads has the same output; a second run changes nothing.
        directory.run(&format!("{words} -o z --jobs 7")).success();
        assert!(directory.read("y") == directory.read("z"), "{form}");
        directory.run("retarget y --to gfx1031,gfx10-3-generic,gfx902,gfx1030 -o z").code(17);
        assert!(directory.read("y") == directory.read("z"), "{form}");
        directory.run("verify y").success();
        let (old, new) = (directory.read("x"), directory.read("y"));
        let forms = |bytes: &[u8]| find_containers(bytes).found.iter().map(|found| found.form).collect::<Vec<_>>();
        assert_eq!(forms(&old), forms(&new), "{form}");
    }
}

/// Results of large files are kept on disk; the scratch files are removed.
#[test]
fn large_files_are_done_bundle_by_bundle() {
    let directory = Directory::empty();
    let one = |number: u8| {
        let mut bundle = Bundle::default();
        bundle.push(id("gfx1030"), object("gfx1030")).unwrap();
        bundle.push(id("gfx906"), [b"BC\xc0\xde".to_vec(), vec![number; 700_000]].concat()).unwrap();
        let mut bytes = bundle.to_bytes().unwrap().into_owned();
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes
    };
    directory.write("x", &[one(1), one(2), one(3)].concat());
    directory.run("retarget x --to gfx1031 -o y --jobs 2").success();
    let made = directory.read("y");
    let contents = find_containers(&made);
    let mut wanted = Vec::new();
    for (number, found) in (1..).zip(&contents.found) {
        let (bundle, _) = parse(found.bytes).unwrap();
        assert!(bundle.entry(&id("gfx906")).unwrap().data[4..].iter().all(|byte| *byte == number));
        wanted.push(bundle.entry(&id("gfx1031")).unwrap().data.to_vec());
    }
    assert!(wanted == vec![object("gfx1031"); 3]);
    assert_eq!(fs::read_dir(directory.0.path()).unwrap().count(), 2);
}

#[test]
fn the_report_says_for_each_target_where_it_comes_from() {
    let directory = Directory::empty();
    directory.write("x", &[fatbin(2, &["gfx1030"], None), fatbin(1, &["gfx10-3-generic"], None)].concat());
    let words = "retarget x --to gfx1031,gfx10-3-generic,gfx1030 -o y";
    let told = directory.run(words).success().stderr("");
    let made =
        contains("gfx1031          made from gfx1030           2\ngfx1031          covered by gfx10-3-generic  1\n");
    told.stdout(made.and(contains("x: 3 containers; ")));
    let report = directory.json(words);
    assert_eq!((&report["schema"], &report["written"]), (&1.into(), &true.into()));
    let how = |container: usize| {
        let rows = report["containers"][container]["targets"].as_array().unwrap();
        rows.iter().map(|row| format!("{} {}", row["target"], row["how"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(how(0), ["gfx1030 native", "gfx1031 made", "gfx10-3-generic made"]);
    assert_eq!(how(2), ["gfx1030 generic", "gfx1031 generic", "gfx10-3-generic native"]);
    let made = &report["containers"][1]["targets"][1];
    assert_eq!((&made["source"], &made["status"]), (&"gfx1030".into(), &"validated".into()));
    assert_eq!(made["entries"][0], id("gfx1031"));
}

#[test]
fn what_cannot_be_made_follows_the_policy() {
    let directory = Directory::empty();
    directory.write("x", &bundle(&["gfx900", "gfx1030"], None));
    let words = "retarget x --to gfx1031,gfx1100 -o y";
    directory.run(words).code(13).stderr(contains("error: [HS0401] x: 0x0: ").and(contains("gfx1100 cannot be made")));
    assert!(!directory.exists("y"));
    directory.run(&format!("{words} --policy warn")).success().stderr(contains("warning: [HS0401]"));
    assert_eq!(directory.targets("y"), [["gfx900", "gfx1030", "gfx1031"]]);
    directory.run(&format!("{words} --policy keep")).success().stderr("").stdout(contains("refused"));
    // The record has the targets that were left out, and a second run finds nothing new.
    let first = directory.read("y");
    let (bundle, _) = parse(&first).unwrap();
    assert!(String::from_utf8_lossy(bundle.record().unwrap()).contains("gfx1100 cannot be made"));
    directory.run("retarget y --to gfx1031,gfx1100 -o z --policy keep").code(17);
    assert!(directory.read("z") == first);
}

/// An empty section of a device has no place of its own and stays when the contents after it change.
#[test]
fn an_empty_section_of_a_device_is_no_obstacle() {
    let directory = Directory::empty();
    let empty = section("__CLANG_OFFLOAD_BUNDLE__host-x86_64", b"", 1, BinaryFormat::Elf);
    directory.write("in", &archive(&[("a.o", empty), ("b.hipfb", bundle(&["gfx1030"], None))]));
    directory.run("retarget in --to gfx1031 --compress -o out").success();
    assert_eq!(directory.targets("out"), [vec![], vec!["gfx1030".to_owned(), "gfx1031".to_owned()]]);
}

#[test]
fn sources_may_be_dropped_and_bundles_compressed() {
    let directory = Directory::empty();
    directory.write("x", &fatbin(3, &["gfx900", "gfx1030"], None));
    directory.run("retarget x --to gfx10-3-generic --drop gfx1030,gfx900 --compress -o y").success();
    assert_eq!(directory.targets("y"), vec![["gfx10-3-generic"]; 3]);
    assert!(find_containers(&directory.read("y")).found.iter().all(|found| found.form.is_compressed_bundle()));
    directory.run("list y").success().stdout(contains("retargeted from gfx1030").count(3));
    directory.run("verify y").success();
}

#[test]
fn what_generic_targets_cover_is_dropped_where_it_is_said() {
    let directory = Directory::empty();
    directory.write("x", &fatbin(2, &["gfx900", "gfx1030", "gfx1031", "gfx90a"], None));
    let told = directory.run("retarget x --to gfx10-3-generic --drop covered,gfx900 -o y").success();
    told.stdout(contains("gfx1031  dropped, covered by gfx10-3-generic  2").and(contains("gfx900   dropped ")));
    assert_eq!(directory.targets("y"), vec![["gfx90a", "gfx10-3-generic"]; 2]);
    directory.run("retarget x --to gfx10-3-generic,gfx1031 --drop covered -o y").success();
    assert_eq!(directory.targets("y"), vec![["gfx900", "gfx1031", "gfx90a", "gfx10-3-generic"]; 2]);
    directory.run("verify y").success();
    // A second run changes nothing.
    directory.run("retarget y --to gfx10-3-generic,gfx1031 --drop covered -o z").code(17);
    assert_eq!(directory.read("y"), directory.read("z"));
}

#[test]
fn a_code_object_is_relabelled_on_its_own() {
    let directory = Directory::empty();
    directory.write("x.co", &object("gfx1030"));
    directory.run("retarget x.co --to gfx10-3-generic -o y.co").success();
    let made = directory.read("y.co");
    assert_eq!(CodeObject::parse(&made).unwrap().target_id().to_string(), "gfx10-3-generic");
    directory.run("retarget x.co --to gfx1031 -o y.co").success();
    assert!(split_record(&directory.read("y.co")).unwrap().0 == object("gfx1031"));
    directory.run("retarget x.co --to gfx1031,gfx1032 -o z").code(2).stderr(contains("room for one target"));
    directory.run("retarget x.co --to gfx900 -o z").code(13);
    directory.run("retarget x.co --pairs gfx1030=>gfx1031 -o z").code(13).stderr(contains("HS0402"));
    assert!(!directory.exists("z"));
}

/// Libraries with loose code objects have one file a GPU: a missing one is made from the best of several.
#[test]
fn a_code_object_is_made_from_the_best_of_several() {
    let directory = Directory::empty();
    for target in ["gfx1030", "gfx1100", "gfx1102", "gfx1103"] {
        directory.write(&format!("{target}.co"), &object(target));
    }
    let words = "retarget gfx1100.co --to gfx1103 -o made.co";
    let best = |words: &str| {
        directory.run(words).success();
        let made = directory.read("made.co");
        let record = String::from_utf8(split_record(&made).unwrap().1.unwrap().to_vec()).unwrap();
        serde_json::from_str::<Value>(&record).unwrap()["entries"][0]["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(best(words), "gfx1100");
    assert_eq!(best(&format!("{words} --source gfx1030.co --source gfx1102.co")), "gfx1102");
    assert_eq!(best("retarget gfx1030.co --source gfx1102.co --source gfx1100.co --to gfx1103 -o made.co"), "gfx1102");
    directory.run("verify made.co").success();
    // The options that go together, and sources that are none.
    let mut renamed = Sample { kernels: vec!["first", "third"], ..Sample::default() };
    (renamed.target, renamed.flags) =
        ("amdgcn-amd-amdhsa--gfx1102".into(), EFlags::of(&"gfx1102".parse().unwrap()).encode());
    directory.write("renamed.co", &renamed.build());
    directory.write("damaged.co", &object("gfx1102")[..200]);
    directory.write("bundle", &bundle(&["gfx1102"], None));
    fs::remove_file(directory.0.path().join("made.co")).unwrap();
    for (words, code, says) in [
        ("--source gfx1103.co --to gfx1103", 2, "one of the sources serves gfx1103 as it is"),
        ("--source gfx1100.co --to gfx1103", 2, "two of the sources are for one processor"),
        ("--source renamed.co --to gfx1103", 2, "second is in gfx1100, not in gfx1102"),
        ("--source bundle --to gfx1103", 2, "--source takes code objects"),
        ("--source damaged.co --to gfx1103", 12, "damaged.co: "),
        ("--source missing.co --to gfx1103", 14, "missing.co"),
        ("--source gfx1102.co --pairs gfx1100=>gfx1103", 2, "cannot be used with"),
        ("--source gfx1102.co --to gfx900", 13, "HS0401"),
    ] {
        directory.run(&format!("retarget gfx1100.co {words} -o made.co")).code(code).stderr(contains(says));
        assert!(!directory.exists("made.co"), "{words}");
    }
    directory
        .run("retarget bundle --source gfx1100.co --to gfx1103 -o x")
        .code(2)
        .stderr(contains("--source takes code objects"));
}

#[test]
fn wishes_that_make_no_sense_are_refused_and_the_input_stays() {
    let directory = Directory::empty();
    let bytes = bundle(&["gfx1030"], None);
    directory.write("x", &bytes);
    directory.write("text", b"no device code");
    for (words, code, says) in [
        ("retarget x -o y", 2, "required"),
        ("retarget x --to gfx9999 -o y", 11, "gfx9999"),
        ("retarget x --to gfx90a:xnack+ -o y", 2, "features are those of the code"),
        ("retarget x --to gfx1031 --pairs gfx1030=>gfx1031 -o y", 2, "cannot be used with"),
        ("retarget x --pairs gfx1030=>gfx1031 --drop gfx1030 -o y", 2, "cannot be used with"),
        ("retarget x --to gfx1031 --jobs 0 -o y", 2, "0"),
        ("retarget x --to gfx1031 --policy never -o y", 11, "never"),
        ("retarget x --to gfx1031 --patches target_note -o y", 2, "--patches"),
        ("retarget text --to gfx1031 -o y", 12, "HS0304"),
        ("retarget missing --to gfx1031 -o y", 14, "missing"),
    ] {
        directory.run(words).code(code).stderr(contains(says).and(contains("\n").count(1)));
        assert!(!directory.exists("y"), "{words}");
    }
    // Damage in one bundle of several.
    let mut damaged = fatbin(3, &["gfx1030"], Some(Compression::default()));
    let last = damaged.len() - 1;
    damaged[last] ^= 0x55;
    directory.write("x", &damaged);
    directory.run("retarget x --to gfx1031 -o x --policy keep").code(12);
    assert!(directory.read("x") == damaged);
}
