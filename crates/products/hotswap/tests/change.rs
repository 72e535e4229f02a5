//! The commands that change containers, on files made here, and `verify`.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Compression, CompressionMethod, OffloadBinary, OffloadImage, find_containers, parse};
use made::{Directory, archive, bitcode, id, section};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use sha2::Digest;
use std::fs;
use tempfile::TempDir;

fn hotswap(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    command.args(words);
    command
}

fn bundle(targets: &[&str], compression: Option<Compression>) -> Vec<u8> {
    made::bundle(targets, compression, bitcode)
}

fn binary(version: u32, targets: &[&str]) -> Vec<u8> {
    let image = |target: &&str| OffloadImage {
        image_kind: 2,
        offload_kind: 4,
        flags: 0,
        strings: vec![("arch".into(), (*target).into()), ("triple".into(), "amdgcn-amd-amdhsa".into())],
        data: bitcode(target).into(),
    };
    let images = targets.iter().map(image).collect();
    OffloadBinary { version, compressed: false, images }.to_bytes().unwrap()
}

/// A BSD archive: names before the data, a symbol table that names the second member.
fn bsd_archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let header = |name: usize, size: usize| {
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", format!("#1/{name}"), 0, 0, 0, 644)
    };
    let padded = |name: &str| [name.as_bytes(), &[0; 24][name.len()..]].concat();
    let second = 8 + 60 + 24 + 20 + 60 + 24 + members[0].1.len().next_multiple_of(2);
    let words = [8u32, 0, second as u32, 4].map(u32::to_le_bytes).concat();
    let table = [padded("__.SYMDEF"), words, b"abc\0".to_vec()].concat();
    let mut out = [b"!<arch>\n".as_slice(), header(24, table.len()).as_bytes(), &table].concat();
    for (name, data) in members {
        out.extend_from_slice(header(24, data.len() + 24).as_bytes());
        out.extend([padded(name), data.clone()].concat());
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

/// A Mach-O object as clang makes it for Apple's hosts.
fn macho(content: &[u8]) -> Vec<u8> {
    let mut file = Object::new(BinaryFormat::MachO, Architecture::X86_64, Endianness::Little);
    let section = file.add_section(b"__HIP".to_vec(), b"__hip_fatbin".to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, content, 8);
    file.write().unwrap()
}

impl Directory {
    fn new() -> Self {
        let directory = Self::empty();
        directory.write("new", &bitcode("new"));
        directory
    }

    /// Targets of the file's images and the numbers of the containers that they are in.
    fn targets(&self, name: &str) -> Vec<String> {
        let bytes = fs::read(self.path(name)).unwrap();
        let contents = find_containers(&bytes);
        assert_eq!(contents.problems, []);
        let images = contents.found.iter().enumerate().flat_map(|(number, found)| {
            let images = found.read().unwrap().images.into_iter().filter(|image| !image.data.is_empty());
            images.map(move |image| format!("{number} {}", image.id.unwrap().split("--").last().unwrap()))
        });
        images.collect()
    }
}

/// Every form with two containers of gfx900 and gfx90a:xnack-, and gfx1030.
fn forms() -> Vec<(&'static str, Vec<u8>)> {
    let packed = |version, method| Some(Compression { version, method, level: None });
    let two = |compression| {
        let mut bytes = bundle(&["gfx900", "gfx90a:xnack-"], compression);
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(bundle(&["gfx1030"], compression));
        bytes
    };
    let elf = |content: &[u8]| section(".hip_fatbin", content, 8, BinaryFormat::Elf);
    let members = |compression| {
        let first = elf(&bundle(&["gfx900", "gfx90a:xnack-"], compression));
        archive(&[("a.o", first), ("b.o", elf(&bundle(&["gfx1030"], compression)))])
    };
    let coff = |content: &[u8]| section(".hip_fatbin", content, 8, BinaryFormat::Coff);
    let windows = {
        let first = coff(&bundle(&["gfx900", "gfx90a:xnack-"], None));
        archive(&[("a.obj", first), ("b.obj", coff(&bundle(&["gfx1030"], None)))])
    };
    let bsd = {
        let first = elf(&bundle(&["gfx900", "gfx90a:xnack-"], None));
        bsd_archive(&[("a name that is long.o", first), ("b.o", elf(&bundle(&["gfx1030"], None)))])
    };
    let binaries = |version| [binary(version, &["gfx900", "gfx90a:xnack-"]), binary(version, &["gfx1030"])].concat();
    vec![
        ("plain", two(None)),
        ("V2 zstd", two(packed(2, CompressionMethod::Zstd))),
        ("V3 zstd", two(packed(3, CompressionMethod::Zstd))),
        ("V3 zlib", two(packed(3, CompressionMethod::Zlib))),
        ("archive", members(None)),
        ("archive, compressed", members(packed(3, CompressionMethod::Zstd))),
        ("archive of COFF objects", windows),
        ("archive of BSD", bsd),
        ("binaries V2", binaries(2)),
        ("binaries V3", binaries(3)),
        ("object with binaries", section(".llvm.offloading", &binaries(2), 8, BinaryFormat::Elf)),
        ("COFF object with binaries", section(".llvm.offloading", &binaries(2), 8, BinaryFormat::Coff)),
    ]
}

#[test]
fn entries_are_replaced_removed_and_pruned_in_every_form() {
    for (name, bytes) in forms() {
        let directory = Directory::new();
        directory.write("x", &bytes);
        assert_eq!(directory.targets("x"), ["0 gfx900", "0 gfx90a:xnack-", "1 gfx1030"], "{name}");
        directory.run("replace x gfx1030=new -o y --container 2").success().stdout(contains("replaced"));
        assert_eq!(directory.targets("y"), ["0 gfx900", "0 gfx90a:xnack-", "1 gfx1030"], "{name}");
        directory.run("extract y --target gfx1030 -o out").success();
        assert_eq!(fs::read(directory.path("out")).unwrap(), bitcode("new"), "{name}");
        directory.run("remove x gfx900 -o x").success().stdout(contains("removed").count(1));
        assert_eq!(directory.targets("x"), ["0 gfx90a:xnack-", "1 gfx1030"], "{name}");
        directory.run("prune y --drop gfx90a,gfx1030 -o x").success();
        assert_eq!(directory.targets("x"), ["0 gfx900"], "{name}");
        directory.run("prune --keep gfx90a:xnack-,gfx1030 y -o x").success();
        assert_eq!(directory.targets("x"), ["0 gfx90a:xnack-", "1 gfx1030"], "{name}");
        directory.run("verify x").success().stdout(contains("verified"));
        if name.contains("binaries") {
            directory.run("add x gfx942=new -o z --container 1").code(13).stderr(contains("HS0402"));
            continue;
        }
        directory
            .run("add x gfx942=new gfx9-4-generic=new -o x --container 1")
            .success()
            .stdout(contains("added").count(2));
        let now = ["0 gfx90a:xnack-", "0 gfx942", "0 gfx9-4-generic", "1 gfx1030"];
        assert_eq!(directory.targets("x"), now, "{name}");
    }
}

#[test]
fn bundles_are_compressed_and_decompressed_to_what_they_were() {
    let directory = Directory::new();
    let mut plain = bundle(&["gfx900", "gfx90a:xnack-"], None);
    plain.resize(plain.len().next_multiple_of(4096), 0);
    plain.extend(bundle(&["gfx1030"], None));
    directory.write("x", &plain);
    for words in ["", " --level 19", " --method zlib", " --method zlib --level 1 --header 2", " --header 2"] {
        directory.run(&format!("compress x -o y{words}")).success().stdout(contains("compressed:").count(2));
        assert!(fs::metadata(directory.path("y")).unwrap().len() < plain.len() as u64);
        let form = if words.contains("header") { "compressed bundle V2" } else { "compressed bundle V3" };
        directory.run("list y").success().stdout(contains(form).count(3));
        directory.run("decompress y -o y").success().stdout(contains("decompressed:").count(2));
        assert_eq!(fs::read(directory.path("y")).unwrap(), plain, "{words}");
    }
    for words in ["--level 23", "--level 10 --method zlib", "--header 1"] {
        directory.run(&format!("compress x -o z {words}")).code(2).stderr(contains("HS0001"));
    }
    directory.write("b", &binary(2, &["gfx900"]));
    directory.run("compress b -o z").code(13).stderr(contains("HS0402"));
    assert!(!directory.path("z").exists());
}

/// The command, its exit code, and its message. Nothing is written.
/// The header of a linked code object, and nothing after it.
fn linked_header(_target: &str) -> Vec<u8> {
    let mut device = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64];
    device.resize(4000, 0);
    device[16..20].copy_from_slice(&[3, 0, 224, 0]);
    device
}

#[test]
fn what_cannot_be_done_is_one_line_and_writes_nothing() {
    let directory = Directory::new();
    directory.write("x", &bundle(&["gfx900", "gfx90a:xnack-", "gfx90a:xnack+"], None));
    directory.write("many", &[bundle(&["gfx900"], None), vec![0; 80], bundle(&["gfx900"], None)].concat());
    directory.write("empty", b"");
    directory.write("macho.o", &macho(&bundle(&["gfx900"], None)));
    directory.write("cut", &bundle(&["gfx900"], None)[..5000]);
    directory.write("broken.co", &linked_header("gfx900"));
    directory.write("linked", &made::bundle(&["gfx900"], None, linked_header));
    for (words, code, says) in [
        ("add x gfx900=new -o z", 12, "HS0308"),
        ("add x gfx1030=empty -o z", 12, "HS0301"),
        ("add x gfx1030=broken.co -o z", 12, "HS030"),
        ("add linked gfx1030=new -o z", 12, "HS0301"),
        ("replace linked gfx900=new -o z", 12, "HIP loads no other form"),
        ("add x gfx1030 -o z", 2, "not of the form"),
        ("add x =new -o z", 2, "not of the form"),
        ("add x gfx1030=absent -o z", 14, "HS0501"),
        ("add x gfx9999=new -o z", 11, "HS0202"),
        ("add many gfx1030=new -o z", 2, "--container"),
        ("add many gfx1030=new -o z --container 3", 12, "HS0307"),
        ("replace x gfx1030=new -o z", 12, "HS0307"),
        ("remove x gfx900 gfx1030 -o z", 12, "nothing is for `gfx1030`"),
        ("prune x --keep gfx1030 -o z", 12, "HS0307"),
        ("prune x --drop gfx900,gfx1030 -o z", 12, "nothing is for `gfx1030`"),
        ("prune x --drop nonsense -o z", 11, "HS0202"),
        ("prune x -o z", 2, "HS0001"),
        ("prune --keep gfx900 gfx90a x -o z", 2, "unexpected argument 'x'"),
        ("prune x --keep gfx900 --drop gfx90a -o z", 2, "HS0001"),
        ("remove empty gfx900 -o z", 12, "HS0304"),
        ("remove cut gfx900 -o z", 12, "HS0302"),
        ("remove macho.o gfx900 -o z", 13, "nothing can be put into a Mach-O file"),
        ("decompress absent -o z", 14, "HS0501"),
    ] {
        directory.run(words).code(code).stdout("").stderr(contains(says).and(contains("\n").count(1)));
        assert!(!directory.path("z").exists(), "{words}");
    }
    let many: Vec<String> = (0..80).map(|number| format!("hip-amdgcn-amd-amdhsa-x{number}-gfx1030=new")).collect();
    directory.run(&format!("add x {} -o z", many.join(" "))).code(13).stderr(contains("HS0405"));
}

#[test]
fn a_program_stays_a_program() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    directory.write("x", &bundle(&["gfx900", "gfx902"], None));
    let mode = |name: &str| fs::metadata(directory.path(name)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(directory.path("x"), fs::Permissions::from_mode(0o750)).unwrap();
    directory.run("prune x --keep gfx900 -o y").success();
    assert_eq!((mode("x"), mode("y")), (0o750, 0o750));
    directory.run("prune x --keep gfx900 -o x").success();
    assert_eq!(mode("x"), 0o750);
}

/// A container with nothing but the host's part is listed.
#[test]
fn a_bundle_without_device_code_is_listed() {
    let directory = Directory::new();
    directory.write("x", &bundle(&["gfx900"], None));
    directory.run("remove x gfx900 -o x").success();
    directory.run("list x").success().stdout(contains("no device code"));
}

fn bundle_entry(bytes: &[u8], target: &str) -> Vec<u8> {
    parse(bytes).unwrap().0.entry(&id(target)).unwrap().data.to_vec()
}

#[test]
fn records_follow_their_entries() {
    let directory = Directory::new();
    let bytes = bundle(&["gfx900", "gfx902"], None);
    let (mut changed, _) = parse(&bytes).unwrap();
    let row = |target: &str, sha256: &str| {
        let id = id(target);
        format!(r#"{{"id":"{id}","target":"{target}","route":"alias","sha256":"{sha256}","size":1,"source":"gfx900"}}"#)
    };
    let head = r#"{"schema":1,"hotswap":"0.1.0","identity":"x","plan":"p","plan_text":"hotswap-plan 1\n","entries":["#;
    let mut write = |hashes: [&str; 2]| {
        let record = format!("{head}{},{}]}}", row("gfx900", hashes[0]), row("gfx902", hashes[1]));
        changed.set_record(Some(record.into_bytes()));
        directory.write("x", &changed.to_bytes().unwrap());
    };
    // A fault that `verify` rejects is not written again.
    write(["00", "00"]);
    directory.run("verify x").code(12).stdout("").stderr(contains("SHA-256"));
    directory
        .run("remove x gfx902 -o y")
        .code(12)
        .stderr(contains("the fault was there before").and(contains("SHA-256")));
    assert!(!directory.path("y").exists());
    directory.run("remove x gfx902 gfx900 -o y").success();
    let hashes = ["gfx900", "gfx902"].map(|target| {
        let entry = bundle_entry(&bytes, target);
        sha2::Sha256::digest(entry).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    write([&hashes[0], &hashes[1]]);
    directory.run("verify x").success();
    directory.run("remove x gfx902 -o x").success();
    directory.run("replace x gfx900=new -o x").success();
    directory.run("add x gfx906=new -o x").success();
    directory.run("verify x").success();
    directory.run("list x").success().stdout(contains("compiled").count(2));
}

#[test]
fn verify_tells_what_readers_would_stumble_on() {
    let directory = Directory::new();
    let told = |bytes: &[u8], says: &str| {
        directory.write("x", bytes);
        directory.run("verify x").code(12).stdout("").stderr(contains(says));
        let out = directory.run("verify x --format json").code(12).get_output().stdout.clone();
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["files"][0]["verified"], false);
    };
    let good = bundle(&["gfx900", "gfx902"], None);
    let entry = |name: &str| good.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
    let changed = |at: usize, with: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let second = entry(&id("gfx902"));
    told(&changed(second + id("gfx902").len() - 1, b"0"), "the ID is there twice");
    told(&changed(second - 16, &0u64.to_le_bytes()), "the entry is empty");
    told(&changed(second - 24, &4100u64.to_le_bytes()), "overlaps");
    told(&changed(second, b"-----"), "bundle entry ID");
    let mut packed = bundle(&["gfx900"], Some(Compression::default()));
    packed[25] ^= 1;
    told(&packed, "hash");
    directory.write("x", &good);
    directory.run("verify x x").success().stdout("x: 1 container, verified\nx: 1 container, verified\n");
}

#[test]
fn a_dash_is_standard_output_and_gets_complete_files_only() {
    let directory = TempDir::new().unwrap();
    let input = directory.path().join("x");
    fs::write(&input, bundle(&["gfx900", "gfx902"], None)).unwrap();
    let run = |words: &[&str], output: &str| {
        let mut command = hotswap(words);
        command.current_dir(directory.path()).env("TMPDIR", directory.path().join("tmp")).args(["-o", output]);
        command.assert()
    };
    fs::create_dir(directory.path().join("tmp")).unwrap();
    for words in [&["compress", "x"][..], &["prune", "x", "--keep", "gfx900"], &["extract", "x", "--entry", "2"]] {
        let report = run(words, "y").success().get_output().stdout.clone();
        let printed = run(words, "-").success();
        assert_eq!(printed.get_output().stdout, fs::read(directory.path().join("y")).unwrap(), "{words:?}");
        assert_eq!(printed.get_output().stderr, report, "{words:?}");
    }
    // After an error nothing is printed; no file of that name and nothing temporary is left.
    let failed = run(&["remove", "x", "gfx1030"], "-").failure();
    assert!(failed.get_output().stdout.is_empty());
    assert!(!directory.path().join("-").exists());
    assert_eq!(fs::read_dir(directory.path().join("tmp")).unwrap().count(), 0);
}
