//! Writes the first inputs of each fuzz target: small files of every form, from the builders of the tests.

#![allow(missing_docs)]

#[path = "../../tests/common/mod.rs"]
mod common;

use hotswap_samples::host_files::{Oddity, archive_of, host_object, library};
use common::{bytes_with, forms, offload_binary, sample};
use hotswap_bundle::Bundle;
use object::{Architecture, BinaryFormat};
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    for (target, seeds) in all() {
        let directory = Path::new(&directory).join(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

/// Entries of a few bytes: the engine changes headers, not contents.
fn small() -> Bundle<'static> {
    let mut bundle = Bundle::default();
    bundle.push(common::HOST, Vec::new()).expect("it is empty");
    for (number, target) in ["gfx1030", "gfx90a:xnack-"].iter().enumerate() {
        bundle.push(common::id(target), common::object(number as u8, 9)).expect("it is new");
    }
    bundle
}

fn bundles() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for form in forms() {
        let mut bundle = small();
        bundle.set_compression(form);
        seeds.push(bundle.to_bytes().expect("it is small").into_owned());
        bundle.set_record(Some(br#"{"schema":1}"#.to_vec()));
        seeds.push(bundle.to_bytes().expect("it is small").into_owned());
    }
    seeds.push(sample().to_bytes().expect("it is small").into_owned());
    seeds.push([seeds[0].clone(), vec![0; 100], seeds[2].clone()].concat());
    seeds
}

type Target = (&'static str, Vec<Vec<u8>>);

fn all() -> Vec<Target> {
    let bundles = bundles();
    let hows = [0u8, 1, 2, 4, 5, 6, 10, 14];
    let compressed = hows.iter().map(|how| [&[*how][..], &bundles[0]].concat()).chain(bundles[2..10].to_vec());
    let binaries: Vec<Vec<u8>> = (1..=3).map(offload_binary).collect();
    let object = |format, machine, name: &str, content: &[u8]| host_object((format, machine), name, content, Oddity::None);
    let machines = [Architecture::X86_64, Architecture::Aarch64];
    let objects = machines.map(|machine| object(BinaryFormat::Elf, machine, ".hip_fatbin", &bundles[2])).into_iter();
    let objects = objects.chain([object(BinaryFormat::Elf, machines[0], ".llvm.offloading", &binaries[1])]);
    let objects: Vec<Vec<u8>> = objects.collect();
    let coffs: Vec<Vec<u8>> = [(".hip_fatbin", &bundles[2]), (".hip_fat", &bundles[0]), (".llvm.offloading", &binaries[1])]
        .map(|(name, content)| object(BinaryFormat::Coff, machines[0], name, content))
        .into();
    let libraries = vec![library(&[&bundles[2]]), library(&[&bundles[2], &bundles[4]]), library(&[&bytes_with(None)])];
    let archives = vec![
        archive_of(&[("a.o", &objects[0]), ("b.hipfb", &bundles[2])]),
        archive_of(&[("a.obj", &coffs[0]), ("odd", &binaries[0])]),
    ];
    let codes = [1, 2].map(|notes| hotswap_samples::code_object::Sample { notes, ..hotswap_samples::code_object::Sample::default() }.build()).into();
    vec![
        ("bundle", bundles.clone()),
        ("compressed", compressed.collect()),
        ("offload_binary", binaries),
        ("host_object", objects),
        ("linked", libraries),
        ("archive", archives),
        ("coff", coffs),
        ("code_object", codes),
    ]
}
