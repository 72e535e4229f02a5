//! Offload binaries: entries that hold nothing, containers in images, sections that leave the file.

mod made;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use hotswap_bundle::{OffloadBinary, OffloadImage};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::section;
use object::BinaryFormat;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::path::Path;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// An image of HIP; kind 1 is an object, 2 bitcode, 4 a fat binary.
fn image(image_kind: u16, target: &str, data: Vec<u8>) -> OffloadImage<'static> {
    let strings = [("arch", target), ("producer", "clang 23"), ("triple", "amdgcn-amd-amdhsa")];
    let strings = strings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    OffloadImage { image_kind, offload_kind: 4, flags: 0, strings, data: data.into() }
}

fn binary(images: Vec<OffloadImage<'_>>) -> Vec<u8> {
    OffloadBinary { version: 2, compressed: false, images }.to_bytes().unwrap()
}

fn hotswap(directory: &Path, words: &str) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_hotswap")).current_dir(directory).args(words.split(' ')).assert()
}

#[test]
fn entries_that_hold_nothing_are_listed_with_gpu_kind_and_producer() {
    let directory = tempfile::tempdir().unwrap();
    let images = vec![image(1, "gfx1030", object("gfx1030")), image(2, "gfx1100", Vec::new())];
    fs::write(directory.path().join("x"), binary(images)).unwrap();
    fs::write(directory.path().join("empty"), binary(vec![image(1, "gfx1030", Vec::new())])).unwrap();
    let listed = hotswap(directory.path(), "list x").success();
    listed.stdout(contains("gfx1100").and(contains("empty bc")).and(contains("clang 23")));
    let listed = hotswap(directory.path(), "list empty").success();
    listed.stdout(contains("gfx1030").and(contains("empty o")).and(contains("clang 23")));
    let listed = hotswap(directory.path(), "list x --format json").success();
    listed.stdout(contains("\"producer\": \"clang 23\"").and(contains("\"kind\": \"bc\"")));
}

#[test]
fn containers_in_images_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = made::bundle(&["gfx1030", "gfx1031"], None, object);
    let inner = binary(vec![image(4, "gfx1030", bundle.clone())]);
    fs::write(directory.path().join("x"), binary(vec![image(4, "gfx1030", inner)])).unwrap();
    hotswap(directory.path(), "list x").success().stdout(contains("offload bundle").count(2).and(contains("gfx1031")));
    hotswap(directory.path(), "inspect x").success().stdout(contains("gfx1031"));
    hotswap(directory.path(), "extract x --target gfx1031 -o y").success();
    assert_eq!(fs::read(directory.path().join("y")).unwrap(), object("gfx1031"));
    hotswap(directory.path(), "verify x").success();
    // Four bytes of garbage in the place of the code, two containers deep.
    let at = bundle.windows(4).position(|window| window == b"\x7fELF").unwrap();
    let mut damaged = bundle;
    damaged[at..at + 4].copy_from_slice(b"junk");
    fs::write(directory.path().join("z"), binary(vec![image(4, "gfx1030", damaged)])).unwrap();
    let refused = hotswap(directory.path(), "verify z").code(12);
    refused.stderr(contains("gfx1030").and(contains("neither code of an AMD GPU nor bitcode")));
}

#[test]
fn a_section_that_leaves_the_file_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let content = binary(vec![image(1, "gfx1030", object("gfx1030"))]);
    for (name, content) in [(".llvm.offloading", &content), (".hip_fatbin", &made::bundle(&["gfx1030"], None, object))]
    {
        let file = section(name, content, 4096, BinaryFormat::Elf);
        let beyond = file.len() as u64 + 1;
        for (section, field, value) in [
            (name, 24, u64::MAX / 2),
            (name, 24, beyond),
            (name, 32, beyond),
            (name, 0, beyond & 0xffff_ffff),
            (".shstrtab", 24, beyond),
            (".shstrtab", 32, beyond),
        ] {
            let mut damaged = file.clone();
            let (at, size) = (section_header(&file, section) + field, if field == 0 { 4 } else { 8 });
            damaged[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            fs::write(directory.path().join("x"), damaged).unwrap();
            for command in ["list", "verify", "inspect"] {
                let refused = hotswap(directory.path(), &format!("{command} x")).code(12);
                refused.stderr(contains("HS0302").and(contains("no container").not()));
            }
        }
        for size in [file.len() - 1, file.len() / 2, 100] {
            fs::write(directory.path().join("x"), &file[..size]).unwrap();
            hotswap(directory.path(), "list x").code(12).stderr(contains("HS0302"));
        }
    }
}

/// The offset of a section's header in a 64-bit ELF file.
fn section_header(file: &[u8], name: &str) -> usize {
    let number = |at: usize, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&file[at..at + size]);
        u64::from_le_bytes(bytes) as usize
    };
    let (table, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let strings = number(table + 64 * names + 24, 8);
    let headers = (0..count).map(|index| table + 64 * index);
    let is_it = |at: &usize| file[strings + number(*at, 4)..].starts_with(&[name.as_bytes(), b"\0"].concat());
    headers.into_iter().find(is_it).unwrap()
}
