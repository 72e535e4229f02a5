//! A wheel, a Debian package and one of conda, written here: the exam needs no Python and no dpkg.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A wheel of stored files.
pub(super) fn write_wheel(path: &Path, library: &[u8]) {
    let info = "pkg-1.0.dist-info";
    let files = [
        ("pkg/lib/libx.so".to_owned(), library.to_owned()),
        (format!("{info}/WHEEL"), b"Wheel-Version: 1.0\nTag: py3-none-any\n".to_vec()),
        (format!("{info}/METADATA"), b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n".to_vec()),
    ];
    let names = files.iter().map(|(name, _)| format!("{name},,\n"));
    let record = names.chain([format!("{info}/RECORD,,\n")]).collect::<String>().into_bytes();
    write_zip(path, &[&files[..], &[(format!("{info}/RECORD"), record)]].concat());
}

/// An archive of stored files.
fn write_zip(path: &Path, files: &[(String, Vec<u8>)]) {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in files {
        let fields = zip_fields(name, content);
        directory.extend([b"PK\x01\x02\x14\x03".as_slice(), &fields, &[0; 6]].concat());
        directory.extend((0o100_644_u32 << 16).to_le_bytes());
        directory.extend(u32::try_from(archive.len()).unwrap().to_le_bytes());
        directory.extend(name.bytes());
        archive.extend([b"PK\x03\x04".as_slice(), &fields, name.as_bytes(), content].concat());
    }
    let start = u32::try_from(archive.len()).unwrap();
    archive.extend(&directory);
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    archive.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count].concat());
    archive.extend([u32::try_from(directory.len()).unwrap().to_le_bytes(), start.to_le_bytes()].concat());
    archive.extend([0; 2]);
    fs::write(path, archive).unwrap();
}

/// The fields that a stored file has in front of it and in the directory: version, flags, method, time, date, sum, sizes, lengths.
fn zip_fields(name: &str, content: &[u8]) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(content);
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x5d, 0x58];
    fields.extend([sum.sum().to_le_bytes(), size, size].concat());
    fields.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    fields.extend([0; 2]);
    fields
}

/// A Debian package of the files of `work`.
pub(super) fn write_debian_package(directory: &Path, path: &Path) {
    let control = directory.join("control");
    fs::create_dir(&control).unwrap();
    let text =
        "Package: d\nVersion: 1.0\nArchitecture: amd64\nMaintainer: Nobody <n@example.org>\nDescription: files\n";
    fs::write(control.join("control"), text).unwrap();
    for (package, content) in [("control.tar.gz", "control"), ("data.tar.gz", "work")] {
        super::pack(directory, package, content);
    }
    let mut archive = b"!<arch>\n".to_vec();
    for name in ["debian-binary", "control.tar.gz", "data.tar.gz"] {
        let is_version = name == "debian-binary";
        let content = if is_version { b"2.0\n".to_vec() } else { fs::read(directory.join(name)).unwrap() };
        let size = content.len();
        archive.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644).bytes());
        archive.extend(&content);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
        let _ = fs::remove_file(directory.join(name));
    }
    fs::remove_dir_all(control).unwrap();
    fs::write(path, archive).unwrap();
}

/// A conda package of one library, with its two lists.
pub(super) fn write_conda_package(directory: &Path, path: &Path, library: &[u8]) {
    const NAME: &str = "a/lib/libx.so";
    let mut sum = String::new();
    Sha256::digest(library).iter().for_each(|byte| write!(sum, "{byte:02x}").unwrap());
    let row = format!(
        "{{\"_path\": \"{NAME}\", \"path_type\": \"hardlink\", \"sha256\": \"{sum}\", \"size_in_bytes\": {}}}",
        library.len()
    );
    let info = directory.join("conda/info");
    fs::create_dir_all(&info).unwrap();
    fs::write(info.join("paths.json"), format!("{{\"paths\": [{row}], \"paths_version\": 1}}")).unwrap();
    fs::write(info.join("files"), format!("{NAME}\n")).unwrap();
    fs::write(info.join("index.json"), "{\"name\": \"pkg\"}").unwrap();
    let infos = ["info/index.json", "info/files", "info/paths.json"];
    let files = [
        ("metadata.json".to_owned(), b"{\"conda_pkg_format_version\": 2}".to_vec()),
        ("info-pkg-1.0-0.tar.zst".to_owned(), stored_zstd(&tar_of(&directory.join("conda"), &infos))),
        ("pkg-pkg-1.0-0.tar.zst".to_owned(), stored_zstd(&tar_of(&directory.join("work"), &[NAME]))),
    ];
    fs::remove_dir_all(directory.join("conda")).unwrap();
    write_zip(path, &files);
}

fn tar_of(directory: &Path, names: &[&str]) -> Vec<u8> {
    let packed = Command::new("tar").args(["cf", "-", "-C"]).arg(directory).args(names).output().unwrap();
    assert!(packed.status.success());
    packed.stdout
}

/// A frame of zstd with its bytes as they are (RFC 8878).
fn stored_zstd(bytes: &[u8]) -> Vec<u8> {
    const SINGLE_SEGMENT_WITH_SIZE: u8 = 0xe0;
    const LARGEST_BLOCK: usize = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, SINGLE_SEGMENT_WITH_SIZE];
    frame.extend((bytes.len() as u64).to_le_bytes());
    let count = bytes.len().div_ceil(LARGEST_BLOCK);
    for (number, block) in bytes.chunks(LARGEST_BLOCK).enumerate() {
        let is_last = u32::from(number + 1 == count);
        let header = (u32::try_from(block.len()).unwrap() << 3) | is_last;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}
