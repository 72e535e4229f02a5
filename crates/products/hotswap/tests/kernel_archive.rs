//! Kernel archives (kpack), which the test writes itself: listed, extracted, retargeted, pruned, served, damaged.

mod made;

use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::Directory;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

fn object(target: &str, kernel: &'static str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    let target = format!("amdgcn-amd-amdhsa--{target}");
    Sample { target, flags, kernels: vec![kernel], ..Sample::default() }.build()
}

/// MessagePack as the archives' own tool writes it.
#[derive(Default)]
struct Pack(Vec<u8>);

impl Pack {
    fn map(&mut self, count: usize) -> &mut Self {
        self.0.extend([0xde, 0, count as u8]);
        self
    }

    fn array(&mut self, count: usize) -> &mut Self {
        self.0.push(0x90 | count as u8);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend([0xd9, text.len() as u8]);
        self.0.extend(text.as_bytes());
        self
    }

    fn number(&mut self, number: usize) -> &mut Self {
        self.0.push(0xcf);
        self.0.extend((number as u64).to_be_bytes());
        self
    }
}

/// A code object of an archive: its fat binary, its target.
type Code = (&'static str, &'static str);

const CODE: [Code; 4] = [
    ("lib/librocrand.so.1#0", "gfx1030"),
    ("lib/librocrand.so.1#0", "gfx1100"),
    ("lib/librocrand.so.1#1", "gfx1030"),
    ("bin/tool#0", "gfx1100"),
];

fn code_of((binary, target): Code) -> Vec<u8> {
    object(target, if binary.ends_with('1') { "second" } else { "first" })
}

/// The layout that the archives' own reader takes (rocm-systems, shared/kpack).
fn archive(code: &[Code], is_packed: bool) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut places = Vec::new();
    if is_packed {
        bytes.extend((code.len() as u32).to_le_bytes());
    }
    for one in code {
        let data = code_of(*one);
        let stored = if is_packed { zstd(&data) } else { data };
        if is_packed {
            bytes.extend((stored.len() as u32).to_le_bytes());
        }
        places.push((bytes.len(), stored.len()));
        bytes.extend(stored);
    }
    let end = bytes.len();
    let mut table = Pack::default();
    table.map(if is_packed { 9 } else { 8 });
    table.text("format_version").number(1).text("group_name").text("rand").text("gfx_arch_family").text("gfx103X");
    table.text("gfx_arches").array(2).text("gfx1030").text("gfx1100");
    table.text("compression_scheme").text(if is_packed { "zstd-per-kernel" } else { "none" });
    table.text("a later key").number(7);
    let mut binaries: Vec<&str> = code.iter().map(|(binary, _)| *binary).collect();
    binaries.dedup();
    table.text("toc").map(binaries.len());
    for binary in binaries {
        let own = || code.iter().enumerate().filter(|(_, (name, _))| *name == binary);
        table.text(binary).map(own().count());
        for (ordinal, (name, target)) in own() {
            table.text(target).map(3).text("type").text("hsaco").text("ordinal").number(ordinal);
            table.text("original_size").number(code_of((name, target)).len());
        }
    }
    if is_packed {
        table.text("zstd_offset").number(64).text("zstd_size").number(end - 64);
    } else {
        table.text("blobs").array(places.len());
        for (offset, size) in places {
            table.map(2).text("offset").number(offset).text("size").number(size);
        }
    }
    bytes.extend(table.0);
    bytes[..4].copy_from_slice(b"KPAK");
    bytes[4] = 1;
    bytes[8..16].copy_from_slice(&(end as u64).to_le_bytes());
    bytes
}

/// A frame of one stored block: zstd's own format (RFC 8878), without its library.
fn zstd(data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((data.len() as u32).to_le_bytes());
    let blocks: Vec<&[u8]> = data.chunks(100_000).collect();
    for (number, block) in blocks.iter().enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(number + 1 == blocks.len());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(*block);
    }
    frame
}

impl Directory {
    /// PLACE, TARGET and MADE of each row of the list.
    fn list(&self, name: &str) -> Vec<String> {
        let output = self.run(&format!("list --format json {name}")).success().get_output().stdout.clone();
        let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
        let containers = value["files"][0]["containers"].as_array().unwrap().clone();
        let rows = containers.iter().flat_map(|container| {
            let place = container["place"].as_str().unwrap_or_default().to_owned();
            let images = container["entries"].as_array().unwrap().clone();
            images.into_iter().map(move |image| format!("{place} {}", image["target"].as_str().unwrap()))
        });
        rows.collect()
    }
}

#[test]
fn an_archive_is_listed_extracted_and_verified() {
    for is_packed in [false, true] {
        let bench = Directory::empty();
        bench.write("a_gfx103X.kpack", &archive(&CODE, is_packed));
        let expected = CODE.map(|(binary, target)| format!("{binary} {target}"));
        assert_eq!(bench.list("a_gfx103X.kpack"), expected);
        bench.run("extract a_gfx103X.kpack --output-dir out").success();
        for (number, code) in CODE.iter().enumerate() {
            let path = format!("out/a_gfx103X.kpack.{}.{}.co", number + 1, code.1);
            assert!(fs::read(bench.path(&path)).unwrap() == code_of(*code), "{path}");
        }
    }
}

#[test]
fn targets_are_added_and_others_dropped() {
    for is_packed in [false, true] {
        let bench = Directory::empty();
        bench.write("in.kpack", &archive(&CODE, is_packed));
        bench.run("retarget in.kpack --to gfx1031 --policy warn -o out.kpack").success();
        let expected = [
            "lib/librocrand.so.1#0 gfx1030",
            "lib/librocrand.so.1#0 gfx1100",
            "lib/librocrand.so.1#0 gfx1031",
            "lib/librocrand.so.1#1 gfx1030",
            "lib/librocrand.so.1#1 gfx1031",
            "bin/tool#0 gfx1100",
        ];
        assert_eq!(bench.list("out.kpack"), expected);
        bench.run("extract out.kpack --target gfx1031 --output-dir out").success();
        for (number, kernel) in [(3, "first"), (5, "second")] {
            let path = format!("out/out.kpack.{number}.gfx1031.co");
            assert!(fs::read(bench.path(&path)).unwrap() == object("gfx1031", kernel), "{path}");
        }
        // The same request again, and the code that was there before: the same bytes.
        bench.run("retarget out.kpack --to gfx1031 --policy warn -o again.kpack").code(17);
        assert!(fs::read(bench.path("out.kpack")).unwrap() == fs::read(bench.path("again.kpack")).unwrap());
        bench.run("prune out.kpack --keep gfx1031 -o small.kpack").success();
        assert_eq!(bench.list("small.kpack"), ["lib/librocrand.so.1#0 gfx1031", "lib/librocrand.so.1#1 gfx1031"]);
        let text = String::from_utf8_lossy(&fs::read(bench.path("small.kpack")).unwrap()).into_owned();
        assert!(text.contains("a later key") && text.contains("retargeted") || text.contains("hotswap_records"));
        bench.run("prune out.kpack --keep gfx942 -o none.kpack").failure().stderr(contains("nothing is for `gfx942`"));
        bench.run("compress in.kpack -o none.kpack").failure().stderr(contains("one compression for all of its code"));
        assert!(!bench.path("none.kpack").exists());
    }
}

/// An archive from which nothing is to be removed keeps its bytes, alone and in a package.
#[test]
fn an_archive_with_nothing_to_remove_is_unchanged() {
    for is_packed in [false, true] {
        let bench = Directory::empty();
        bench.write("in.kpack", &archive(&CODE, is_packed));
        bench.run("prune in.kpack --keep gfx1030,gfx1100 -o out.kpack").code(17).stdout(contains("unchanged"));
        assert!(fs::read(bench.path("out.kpack")).unwrap() == fs::read(bench.path("in.kpack")).unwrap());
        bench.write("tree/.kpack/rand_lib_gfx1030.kpack", &archive(&CODE[..1], is_packed));
        bench.run("prune tree --keep gfx1030 -o pruned").code(17).stdout(contains("0 files pruned"));
        let name = ".kpack/rand_lib_gfx1030.kpack";
        let same =
            fs::read(bench.path("pruned").join(name)).unwrap() == fs::read(bench.path("tree").join(name)).unwrap();
        assert!(same);
    }
}

#[test]
fn archives_are_served_beside_their_libraries() {
    let bench = Directory::empty();
    let own: Vec<Code> = CODE.into_iter().filter(|(_, target)| *target == "gfx1030").collect();
    bench.write("rocm/.kpack/rand_lib_gfx1030.kpack", &archive(&own, true));
    bench.run("serve gfx1031 --root rocm --dest out").success().stdout(contains("kernel archives"));
    assert_eq!(
        bench.list("out/.kpack/rand_lib_gfx1031.kpack"),
        ["lib/librocrand.so.1#0 gfx1031", "lib/librocrand.so.1#1 gfx1031"]
    );
    assert!(!bench.path("out/.kpack/rand_lib_gfx1030.kpack").exists());
    bench.run("serve --check --dest out").success();
    let own_names = bench.run("serve gfx1031 --root rocm --dest own --names own");
    own_names.failure().stderr(contains("HS0421").and(contains("host libraries are other files")));
    bench.run("serve --undo --dest out").success();
    assert!(!bench.path("out").exists() && !bench.path("own").exists());
}

#[test]
fn damage_is_refused_and_nothing_is_written() {
    let bench = Directory::empty();
    let whole = archive(&CODE, true);
    let table = whole.len() - whole.windows(7).rev().position(|at| at == b"a later").unwrap();
    let mut cases: Vec<(&str, Vec<u8>, &str)> = Vec::new();
    for cut in [5, 15, 63, 70, whole.len() / 2, table, whole.len() - 1] {
        cases.push(("cut off", whole[..cut].to_vec(), "HS0302"));
    }
    let with = |from: &str, to: &str| {
        let at = whole.windows(from.len()).rposition(|at| at == from.as_bytes()).unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    cases.push(("another compression", with("zstd-per-kernel", "lzma-per-kernel"), "HS0303"));
    cases.push(("another type", with("hsaco", "spirv"), "HS0303"));
    cases.push(("no table of contents", with("toc", "tac"), "HS0302"));
    cases.push(("no offset", with("zstd_offset", "zstd_0ffset"), "HS0302"));
    cases.push(("bytes after the table", [&whole[..], b"\0"].concat(), "HS0302"));
    let mut version = whole.clone();
    version[4] = 2;
    cases.push(("version 2", version, "HS0303"));
    let mut frame = whole.clone();
    frame[68] ^= 1;
    cases.push(("size of a frame", frame, "HS0302"));
    for (name, bytes, code) in cases {
        bench.write("in.kpack", &bytes);
        for words in [
            "list in.kpack",
            "retarget in.kpack --to gfx1031 -o out.kpack",
            "prune in.kpack --drop gfx1100 -o out.kpack",
        ] {
            let failed = bench.run(words).failure();
            let text = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
            assert!(text.contains(code) && !bench.path("out.kpack").exists(), "{name}: {words}: {text}");
        }
    }
}
