//! Bad input, one line of a table each: the command reports the problem, its place and the remedy in one line. The exit
//! code is that of the kind of error. Nothing is written and the input stays unchanged.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Bundle, Compression, OffloadBinary, OffloadImage};
use made::{HOST, bitcode, id};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::fs;
use tempfile::TempDir;

fn bundle(ids: &[&str], compression: Option<Compression>) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.set_compression(compression);
    ids.iter().for_each(|id| bundle.push(*id, if *id == HOST { Vec::new() } else { bitcode(id) }).unwrap());
    bundle.to_bytes().unwrap().into_owned()
}

fn plain() -> Vec<u8> {
    bundle(&[HOST, &id("gfx900"), &id("gfx902")], None)
}

fn packed() -> Vec<u8> {
    bundle(&[HOST, &id("gfx900")], Some(Compression::default()))
}

fn binary() -> Vec<u8> {
    let strings = vec![("arch".into(), "gfx900".into()), ("triple".into(), "amdgcn-amd-amdhsa".into())];
    let image = OffloadImage { image_kind: 2, offload_kind: 4, flags: 0, strings, data: bitcode("a").into() };
    OffloadBinary { version: 2, compressed: false, images: vec![image] }.to_bytes().unwrap()
}

fn elf(architecture: Architecture, endian: Endianness) -> Vec<u8> {
    let mut file = Object::new(BinaryFormat::Elf, architecture, endian);
    let section = file.add_section(Vec::new(), b".hip_fatbin".to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, &plain(), 4096);
    file.write().unwrap()
}

/// A linked library whose section headers are gone.
fn stripped() -> Vec<u8> {
    let mut file = elf(Architecture::X86_64, Endianness::Little);
    file[16] = 3;
    file[40..48].fill(0);
    file[58..64].fill(0);
    file
}

/// An object whose fat binary requires an alignment of 4 GiB: a change would write as many zeros.
fn aligned() -> Vec<u8> {
    let file = elf(Architecture::X86_64, Endianness::Little);
    let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    // The first section that is not null.
    with(file, headers + 64 + 48, &(1u64 << 32).to_le_bytes())
}

/// An object whose fat binary has the section type of a string table.
fn strings() -> Vec<u8> {
    let file = elf(Architecture::X86_64, Endianness::Little);
    let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    with(file, headers + 64 + 4, &3u32.to_le_bytes())
}

/// A COFF object with a section that claims to begin at the header and to hold bytes.
fn coff_at_header() -> Vec<u8> {
    let mut file = Object::new(BinaryFormat::Coff, Architecture::X86_64, Endianness::Little);
    let section = file.add_section(Vec::new(), b".hip_fat".to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, &plain(), 16);
    let section = file.add_section(Vec::new(), b".data".to_vec(), SectionKind::Data);
    file.append_section_data(section, &[1; 200], 16);
    with(file.write().unwrap(), 20 + 40 + 20, &[0; 4])
}

/// A COFF object whose second section claims 255 relocations after the end, marked as more than a header can count.
fn coff_of_many_relocations() -> Vec<u8> {
    let bytes = with(coff_at_header(), 20 + 40 + 16, &[0; 8]);
    let end = (bytes.len() as u32).to_le_bytes();
    let bytes = with(bytes, 20 + 40 + 24, &end);
    with(bytes, 20 + 40 + 32, &[0xff, 0, 0, 0, 0x40, 0, 0, 0x41])
}

fn with(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// Offset of the table row of that ID.
fn row(target: &str) -> usize {
    let (bytes, id) = (plain(), id(target));
    bytes.windows(id.len()).position(|window| window == id.as_bytes()).unwrap() - 24
}

/// A compressed bundle whose zstd frame claims and holds `blocks` times 128 KiB of one byte.
fn bomb(blocks: u32, claim: u64) -> Vec<u8> {
    let mut payload = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    payload.extend(claim.to_le_bytes());
    for number in 0..blocks {
        let header = u32::from(number + 1 == blocks) | 1 << 1 | (128 << 10) << 3;
        payload.extend(&header.to_le_bytes()[..3]);
        payload.push(0);
    }
    let total = (payload.len() as u64 + 32).to_le_bytes();
    [b"CCOB\x03\0\x01\0".as_slice(), &total, &claim.to_le_bytes(), &[0; 8], &payload].concat()
}

/// Name, input, arguments of `hotswap` with `x` as the input, exit code, parts of the message.
type Row = (&'static str, Vec<u8>, &'static str, i32, &'static [&'static str]);

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    const LIST: &str = "list x";
    const VERIFY: &str = "verify x";
    const PRUNE: &str = "prune x --keep gfx900 -o z";
    const EXTRACT: &str = "extract x --target gfx900 -o z";
    let (big, no) = (u64::MAX.to_le_bytes(), 0u64.to_le_bytes());
    let one = |target: &str| id(target);
    vec![
        ("table cut off", plain()[..120].to_vec(), LIST, 12, &["HS0302", "entry table"]),
        ("entry cut off", plain()[..5000].to_vec(), LIST, 12, &["HS0302", "outside of the bundle", "gfx900"]),
        ("entry cut off, changed", plain()[..5000].to_vec(), PRUNE, 12, &["HS0302", "outside of the bundle"]),
        ("more entries than room", with(plain(), 24, &big), LIST, 12, &["HS0302", "more than it has room for", "0x18"]),
        ("size past the end", with(plain(), row("gfx902") + 8, &big), LIST, 12, &["HS0302", "outside of the bundle", "gfx902"]),
        ("offset past the end", with(plain(), row("gfx902"), &big), EXTRACT, 12, &["HS0302", "outside of the bundle"]),
        ("entry in the table", with(plain(), row("gfx902"), &40u64.to_le_bytes()), LIST, 12, &["HS0302", "inside of the entry table"]),
        ("overlapping entries", with(plain(), row("gfx900") + 8, &4200u64.to_le_bytes()), VERIFY, 12, &["HS0302", "overlaps with hipv4", "gfx902"]),
        ("ID that is no text", with(plain(), row("gfx902") + 24, &[0xff]), LIST, 12, &["HS0302", "no text"]),
        ("ID that is none", with(plain(), row("gfx902") + 24, b"-----"), VERIFY, 12, &["HS0302", "bundle entry ID"]),
        ("ID twice", with(plain(), row("gfx902") + 24, one("gfx900").as_bytes()), VERIFY, 12, &["HS0302", "the ID is there twice"]),
        ("ID twice, changed", with(plain(), row("gfx902") + 24, one("gfx900").as_bytes()), "replace x gfx900=new -o z", 2, &["HS0001", "names 2 entries"]),
        ("empty entry", with(plain(), row("gfx900") + 8, &no), VERIFY, 12, &["HS0302", "the entry is empty", "gfx900"]),
        ("empty entry, extracted", with(plain(), row("gfx900") + 8, &no), EXTRACT, 12, &["HS0304", "no image matches"]),
        ("feature in one of two", bundle(&[HOST, &one("gfx90a"), &one("gfx90a:xnack+")], None), VERIFY, 12, &["HS0302", "gfx90a is listed with and without xnack"]),
        ("no target", bundle(&[HOST, "hip-amdgcn-amd-amdhsa--"], None), VERIFY, 12, &["HS0302", "names no target"]),
        ("no host", bundle(&[&one("gfx900")], None), VERIFY, 0, &["warning", "no entry for the host"]),
        ("unknown kind", bundle(&[HOST, "magic-amdgcn-amd-amdhsa--gfx900"], None), VERIFY, 0, &["warning", "`magic` is no kind"]),
        ("wrong magic", with(plain(), 5, b"X"), LIST, 12, &["HS0304", "no container"]),
        ("junk behind a bundle", [plain(), b"\0\0junk".to_vec()].concat(), PRUNE, 12, &["HS0303", "neither a bundle nor padding"]),
        ("compressed, version 4", with(packed(), 4, &[4]), LIST, 12, &["HS0303", "version 4", "0x4"]),
        ("compressed, method 7", with(packed(), 6, &[7]), LIST, 12, &["HS0303", "compression method 7"]),
        ("compressed, cut off", packed()[..60].to_vec(), LIST, 12, &["HS0302", "60 are there"]),
        ("compressed, size past the end", with(packed(), 8, &big), LIST, 12, &["HS0302", "claims"]),
        ("compressed, wrong hash", with(packed(), 25, &[0, 0]), EXTRACT, 12, &["HS0302", "hash"]),
        ("compressed, wrong hash, changed", with(packed(), 25, &[0, 0]), PRUNE, 12, &["HS0302", "hash"]),
        ("compressed, damaged", with(packed(), 50, &[0xff; 30]), LIST, 12, &["HS0302"]),
        ("claims 16 EiB", bomb(1, u64::MAX), LIST, 12, &["HS0302", "more than can be held"]),
        ("claims more than its blocks", bomb(1, 1 << 30), LIST, 12, &["HS0302", "expands to 131072 at most"]),
        ("expands to zeros", bomb(8000, 8000 << 17), LIST, 12, &["HS0302", "is no bundle"]),
        ("offload binary, version 9", with(binary(), 4, &[9]), LIST, 12, &["HS0303", "offload binary version 9"]),
        ("offload binary, size past the end", with(binary(), 8, &big), LIST, 12, &["HS0302", "claims"]),
        ("offload binary, image outside", with(binary(), 56, &big), LIST, 12, &["HS0302", "outside"]),
        ("offload binary, strings outside", with(binary(), 40, &big), LIST, 12, &["HS0302", "strings"]),
        ("no section headers", stripped(), LIST, 12, &["HS0303", "section headers are stripped"]),
        ("no section headers, changed", stripped(), PRUNE, 12, &["HS0303", "section headers are stripped"]),
        ("alignment of 4 GiB, changed", aligned(), PRUNE, 12, &["HS0302", "the section's alignment is 4294967296"]),
        ("fat binary as a table of strings, changed", strings(), PRUNE, 12, &["HS0302", ".hip_fatbin is a section of type 0x3"]),
        (
            "COFF relocations outside, changed",
            coff_of_many_relocations(),
            PRUNE,
            12,
            &["HS0302", "a relocation is cut off"],
        ),
        ("COFF section in the header, changed", coff_at_header(), PRUNE, 12, &["HS0302", "sections or headers overlap"]),
        ("big-endian, changed", elf(Architecture::PowerPc64, Endianness::Big), PRUNE, 13, &["HS0402", "a big-endian ELF file"]),
        ("32-bit, changed", elf(Architecture::I386, Endianness::Little), PRUNE, 13, &["HS0402", "a 32-bit ELF file"]),
        ("other machine, changed", elf(Architecture::Riscv64, Endianness::Little), PRUNE, 13, &["HS0402", "machine 243"]),
        ("kernel archive, cut off", b"KPAK\x01\0\0\0".to_vec(), LIST, 12, &["HS0302", "kernel archive ends in its header"]),
        ("text bundle", b"# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx900\n".to_vec(), LIST, 12, &["HS0303", "text"]),
        ("thin archive", b"!<thin>\n".to_vec(), LIST, 12, &["HS0303", "thin archive"]),
        ("archive cut off", b"!<arch>\na.o/            0           0     0     644     99999     `\nabc".to_vec(), LIST, 12, &["HS0302", "archive"]),
        ("empty file", Vec::new(), LIST, 12, &["HS0304"]),
    ]
}

#[test]
fn each_kind_of_bad_input_is_one_line_with_its_exit_code() {
    let mut wrong = Vec::new();
    for (name, bytes, words, code, says) in rows() {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("x"), &bytes).unwrap();
        fs::write(path("new"), b"BC\xc0\xde").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        let output = command.current_dir(directory.path()).args(words.split(' ')).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        let is_line = line.starts_with("hotswap: ") && line.lines().count() == 1 && line.contains("; ");
        let is_told = line.contains(" x: ") && says.iter().all(|part| line.contains(part));
        let is_whole = fs::read(path("x")).unwrap() == bytes && !path("z").exists();
        if output.status.code() != Some(code) || !is_line || !is_told || !is_whole {
            wrong.push(format!("{name}: `{words}` {:?}: {line}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The readable parts of files of other hosts are listed.
#[test]
fn a_directory_is_named_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("build");
    fs::create_dir(&inside).unwrap();
    for arguments in [&["verify"][..], &["list"], &["inspect"], &["retarget", "--to", "gfx1031", "-o", "out"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_hotswap"))
            .args(arguments)
            .arg(&inside)
            .current_dir(dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(14), "{arguments:?}: {text}");
        assert!(text.contains("it is a directory; name the files in it"), "{arguments:?}: {text}");
    }
}

#[test]
fn files_for_other_hosts_are_listed() {
    for (architecture, endian) in [
        (Architecture::PowerPc64, Endianness::Big),
        (Architecture::I386, Endianness::Little),
        (Architecture::Riscv64, Endianness::Little),
    ] {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("x"), elf(architecture, endian)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        let output = command.current_dir(directory.path()).args(["list", "x"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("gfx900") && text.contains("gfx902"), "{text}");
    }
}
