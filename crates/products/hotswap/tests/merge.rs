//! `hotswap merge` of data files that are lone fat binaries, and the warnings of merged files, alone and in packages.
//!
//! Programs and libraries are merged, and executed, in `tests/emulated-hip`.

mod made;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use hotswap_bundle::{Bundle, Compression};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{Directory, HOST, id};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

const SPIRV: &str = "hip-spirv64-amd-amdhsa--amdgcnspirv";
const SYCL: &str = "sycl-spir64-unknown-unknown-";
const DATA: &str = "lib/hipblaslt/library/hipblasltTransform.hsaco";

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

fn bundle(targets: &[&str]) -> Vec<u8> {
    made::bundle(targets, Some(Compression::default()), object)
}

/// Code for a GPU, and entries of other kinds.
fn bundle_with_others(target: &str) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push(HOST, Vec::new()).unwrap();
    bundle.push(id(target), object(target)).unwrap();
    bundle.push(SPIRV, b"\x03\x02\x23\x07SPIR-V".to_vec()).unwrap();
    bundle.push(SYCL, b"an image of SYCL".to_vec()).unwrap();
    bundle.to_bytes().unwrap().into_owned()
}

impl Directory {
    /// Files of the same name in `a` and `b`, and packages of each.
    fn with_builds(builds: [&[u8]; 2]) -> Self {
        let directory = Self::empty();
        for (build, content) in ["a", "b"].iter().zip(builds) {
            let path = directory.0.path().join(build).join(DATA);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            directory.shell(&format!("tar czf {build}.tar.gz -C {build} lib"));
        }
        directory
    }

    fn shell(&self, script: &str) -> Assert {
        Command::new("sh").args(["-ec", script]).current_dir(self.0.path()).assert().success()
    }

    /// The words of a merge of single files, of packages and of directories.
    fn merges() -> [String; 3] {
        [
            format!("merge a/{DATA} b/{DATA} -o out"),
            "merge a.tar.gz b.tar.gz -o out.tar.gz".to_owned(),
            "merge a b -o out-directory".to_owned(),
        ]
    }
}

/// The code of each build, with its bytes.
#[test]
fn lone_bundles_of_the_same_name_become_one() {
    let directory = Directory::with_builds([&bundle(&["gfx1030"]), &bundle(&["gfx1100", "gfx1201"])]);
    Directory::merges().iter().for_each(|words| drop(directory.run(words).success().stderr("")));
    directory.shell(&format!("mkdir t && tar xzf out.tar.gz -C t && cmp t/{DATA} out && cmp out-directory/{DATA} out"));
    directory.run("verify out").success();
    directory.run("extract out --output-dir code").success();
    for (number, target) in ["gfx1030", "gfx1100", "gfx1201"].iter().enumerate() {
        let name = format!("code/out.{}.{target}.co", number + 1);
        assert!(directory.read(&name) == object(target), "{name}");
        directory.run(&format!("uses out --gpu {target}")).success();
    }
    // Merging again changes nothing, and a build that is there already is not added twice.
    directory.run(&format!("merge out b/{DATA} -o again")).code(17);
    assert!(directory.read("again") == directory.read("out"));
}

#[test]
fn other_code_for_the_same_gpu_is_refused() {
    let mut other = object("gfx1030");
    *other.last_mut().unwrap() ^= 1;
    let changed = [object("gfx1030"), other];
    let [own, their] = changed.map(|code| {
        let mut bundle = Bundle::default();
        bundle.push(HOST, Vec::new()).unwrap();
        bundle.push(id("gfx1030"), code).unwrap();
        bundle.to_bytes().unwrap().into_owned()
    });
    let directory = Directory::with_builds([&own, &their]);
    for words in Directory::merges() {
        let refused = directory.run(&words).failure();
        refused.stderr(contains("HS0308").and(contains("hipblasltTransform.hsaco")));
    }
    directory.shell("test ! -e out && test ! -e out.tar.gz && test ! -e out-directory");
}

/// The warnings of a single file are those of its package, too.
#[test]
fn entries_that_are_for_no_gpu_are_reported() {
    let directory = Directory::with_builds([&bundle(&["gfx1030"]), &bundle_with_others("gfx1100")]);
    for words in Directory::merges() {
        let told = contains("HS0402").and(contains(SYCL)).and(contains("hipblasltTransform.hsaco"));
        directory.run(&words).success().stderr(told.and(contains("\n").count(1)));
    }
    directory.run("list out").success().stdout(contains(SPIRV).and(contains(SYCL).not()));
    // The entry stays where the first file has it.
    directory.run(&format!("merge b/{DATA} a/{DATA} -o stays")).success().stderr("");
    directory.run("list stays").success().stdout(contains(SYCL));
}

#[test]
fn other_names_of_the_first_file_are_named() {
    let directory = Directory::with_builds([&bundle(&["gfx1030"]), &bundle(&["gfx1100"])]);
    directory.shell(&format!("ln a/{DATA} link && ln a.tar.gz link.tar.gz && cp link before"));
    let told = || contains("warning: [HS0506]").and(contains("\n").count(1));
    directory.run(&format!("merge a/{DATA} b/{DATA} -o a/{DATA}")).success().stderr(told());
    directory.run("merge a.tar.gz b.tar.gz -o a.tar.gz").success().stderr(told());
    assert!(directory.read("link") == directory.read("before"));
}
