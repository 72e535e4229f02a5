//! `hotswap serve` on MIOpen: databases of kernels, made and read by Python, knowledge in text files, libraries with the
//! name of a GPU.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Compression, find_containers};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::Directory;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel_database.py");
const DATA: &str = "rocm/share/miopen/db";

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

fn library(targets: &[&str]) -> Vec<u8> {
    hotswap_samples::host_files::library(&[&made::bundle(targets, Some(Compression::default()), object)])
}

/// One row of a database.
#[derive(Debug, PartialEq)]
struct Row {
    number: String,
    name: String,
    options: String,
    code: Vec<u8>,
}

impl Directory {
    /// MIOpen with a database for gfx1030 with 36 units, and knowledge of three GPUs; rocRAND beside it.
    fn miopen(fault: &str) -> Option<Self> {
        let has_modules = Command::new("python3").args(["-c", "import bz2, hashlib, sqlite3"]).ok().is_ok();
        if !has_modules {
            hotswap_userland::skip("serve_miopen", "python3 is missing, or has no sqlite3");
            return None;
        }
        let directory = Self::empty();
        directory.write("one.co", &object("gfx1030"));
        directory.write("rocm/lib/libMIOpen.so.1.0", &hotswap_samples::host_files::library(&[]));
        directory.write("rocm/lib/librocrand.so.1", &library(&["gfx1030"]));
        for name in ["gfx1030_36.HIP.fdb.txt", "gfx90878.HIP.fdb.txt", "gfx908_metadata.tn.model", "gfx1030_36.db.txt"]
        {
            directory.write(&format!("{DATA}/{name}"), name.as_bytes());
        }
        directory.database("gfx1030_36.kdb", fault);
        Some(directory)
    }

    fn python(&self, words: &[&str]) -> String {
        let output = Command::new("python3").arg(SCRIPT).args(words).current_dir(self.0.path()).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn database(&self, name: &str, fault: &str) {
        self.python(&["make", &format!("{DATA}/{name}"), fault, "one.co", "one.co", "one.co"]);
    }

    fn rows(&self, name: &str) -> Vec<Row> {
        let text = self.python(&["read", name]);
        let row = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let byte = |at: usize| u8::from_str_radix(&words[3][at..at + 2], 16).unwrap();
            Row {
                number: words[0].to_owned(),
                name: words[1].to_owned(),
                options: words[2].replace('_', " "),
                code: (0..words[3].len()).step_by(2).map(byte).collect(),
            }
        };
        text.lines().map(row).collect()
    }

    fn serve(&self, words: &str) -> assert_cmd::assert::Assert {
        let mut command = Command::new(made::installed());
        command.arg("serve").args(words.split(' ')).args(["--root", "rocm"]).current_dir(self.0.path()).assert()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The bundle has the source's own bytes and those that the byte oracle expects for the target.
fn check_bundle(code: &[u8]) {
    let contents = find_containers(code);
    let container = contents.found[0].read().unwrap();
    let images: Vec<&[u8]> =
        container.images.iter().map(|image| &*image.data).filter(|data| !data.is_empty()).collect();
    assert_eq!((contents.found.len(), contents.problems.len()), (1, 0));
    assert!(images == [&object("gfx1030")[..], &object("gfx1031")[..]]);
}

#[test]
fn each_code_object_of_a_database_gets_the_target() {
    let Some(directory) = Directory::miopen("none") else { return };
    let before = fs::read(directory.path(&format!("{DATA}/gfx1030_36.kdb"))).unwrap();
    directory.serve("gfx1031 --dest out").success().stdout(contains("MIOpen   4      1     3       served"));
    // The target has another number of units than the source.
    let names = ["gfx1030.kdb", "gfx1030_36.HIP.fdb.txt", "gfx1030_36.db.txt"];
    assert_eq!(directory.names("out/share/miopen/db"), names);
    let rows = directory.rows("out/share/miopen/db/gfx1030.kdb");
    let old = directory.rows(&format!("{DATA}/gfx1030_36.kdb"));
    assert_eq!((rows.len(), old.len()), (3, 3));
    for (row, old) in rows.iter().zip(&old) {
        assert_eq!((&row.number, &row.name, &row.options), (&old.number, &old.name, &old.options));
        check_bundle(&row.code);
    }
    let environment = fs::read_to_string(directory.path("out/env.sh")).unwrap();
    assert!(
        environment.contains("MIOPEN_SYSTEM_DB_PATH=") && environment.contains("out/share/miopen/db"),
        "{environment}"
    );
    assert!(
        fs::read_to_string(directory.path("out/hotswap-names.conf")).unwrap().contains("serves lib/libMIOpen.so.1.0")
    );
    // The same bytes on any number of threads, and whatever free pages the input has.
    let bytes = fs::read(directory.path("out/share/miopen/db/gfx1030.kdb")).unwrap();
    directory.serve("gfx1031 --dest again --jobs 1").success();
    assert!(fs::read(directory.path("again/share/miopen/db/gfx1030.kdb")).unwrap() == bytes);
    directory.serve("gfx1031 --dest out").code(17).stdout(contains("4 files as before"));
    assert!(fs::read(directory.path(&format!("{DATA}/gfx1030_36.kdb"))).unwrap() == before);
}

#[test]
fn under_its_own_name_the_target_has_databases_of_its_own() {
    let Some(directory) = Directory::miopen("none") else { return };
    directory.database("gfx1030_30.kdb", "none");
    directory.serve("gfx1031 --dest out --names own").success();
    let names = ["gfx1031.kdb", "gfx1031_30.kdb", "gfx1031_36.HIP.fdb.txt", "gfx1031_36.db.txt"];
    assert_eq!(directory.names("out/share/miopen/db"), names);
    for row in directory.rows("out/share/miopen/db/gfx1031.kdb") {
        assert!(row.options.ends_with(" -mcpu=gfx1031") && !row.options.contains("gfx1030"), "{}", row.options);
        assert!(row.code.starts_with(&object("gfx1031")));
    }
}

/// Libraries that MIOpen opens by the GPU's name get code under the source's name, and only for it.
#[test]
fn libraries_with_a_gpus_name_are_served_under_the_sources() {
    let Some(directory) = Directory::miopen("none") else { return };
    for gpu in ["gfx1030", "gfx942"] {
        directory.write(&format!("rocm/lib/libMIOpenCKGroupedConv_{gpu}.so"), &library(&[gpu]));
    }
    directory.serve("gfx1031 --dest out").success();
    let lib = directory.names("out/lib");
    assert_eq!(lib, ["libMIOpen.so.1.0", "libMIOpenCKGroupedConv_gfx1030.so", "librocrand.so.1"]);
    let bytes = fs::read(directory.path("out/lib/libMIOpenCKGroupedConv_gfx1030.so")).unwrap();
    let container = find_containers(&bytes).found[0].read().unwrap();
    assert!(container.images.iter().any(|image| *image.data == *object("gfx1031")));
    directory.serve("gfx1031 --dest own --names own").success();
    assert_eq!(directory.names("own/lib"), ["libMIOpen.so.1.0", "librocrand.so.1"]);
}

/// A library that compiles for the shown name is of no use where that code is not loaded; without databases nothing is
/// there to serve.
#[test]
fn what_is_compiled_at_run_time_decides() {
    let Some(directory) = Directory::miopen("none") else { return };
    directory.write("rocm/lib/librocrand.so.1", &library(&["gfx1102"]));
    directory.python(&["make", &format!("{DATA}/gfx1102_16.kdb"), "none"]);
    let served = directory.serve("gfx1103 --from gfx1102 --dest out").code(13);
    served.stderr(contains("HS0421").and(contains("compiles kernels at run time")).and(contains("MIOpen")));
    assert_eq!(directory.names("out/lib"), ["librocrand.so.1"]);
    fs::remove_dir_all(directory.path(DATA)).unwrap();
    directory
        .serve("gfx1103 --dest other")
        .success()
        .stdout(contains("MIOpen   -      -     -       compiles its kernels"));
}

#[test]
fn a_database_that_is_not_understood_is_refused_and_the_rest_is_served() {
    for (fault, code, says) in [
        ("hash", "HS0302", "Kernel0.cl.obj of row 1"),
        ("size", "HS0302", "bytes that its row states"),
        ("claim", "HS0302", "1099511627776"),
        ("negative", "HS0302", "its size is -1"),
        ("packed", "HS0302", "row 1"),
        ("gpu", "HS0303", "the row is for gfx900"),
        ("no-gpu", "HS0303", "do not end in `-mcpu=`"),
        ("text", "HS0302", "kernel_blob is no bytes"),
        ("no-code", "HS0303", "no code object"),
        ("column", "HS0303", "checksum"),
        ("table", "HS0303", "`kern_db, other`"),
        ("trigger", "HS0303", "`kern_db, t`"),
    ] {
        let Some(directory) = Directory::miopen(fault) else { return };
        let output = directory.serve("gfx1031 --dest out").failure().get_output().clone();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(code) && error.contains(says) && error.contains("gfx1030_36.kdb"), "{fault}: {error}");
        assert_eq!(directory.names("out/lib"), ["librocrand.so.1"], "{fault}");
        assert!(directory.names("out/share").is_empty(), "{fault}");
    }
    let Some(directory) = Directory::miopen("named-twice") else { return };
    directory.serve("gfx1031 --dest out").success();
    directory
        .serve("gfx1031 --dest own --names own")
        .failure()
        .stderr(contains("HS0303").and(contains("-DDEVICE").not()));
}

#[test]
fn a_damaged_file_is_no_database() {
    let Some(directory) = Directory::miopen("none") else { return };
    let name = format!("{DATA}/gfx1030_36.kdb");
    let whole = fs::read(directory.path(&name)).unwrap();
    let mut page = whole.clone();
    page[4096 + 3..4096 + 13].fill(0xff);
    for (what, bytes) in [
        ("half", whole[..whole.len() / 2].to_vec()),
        ("text", b"text".repeat(300)),
        ("empty", Vec::new()),
        ("page", page),
    ] {
        directory.write(&name, &bytes);
        directory.serve("gfx1031 --dest out").failure().stderr(contains("gfx1030_36.kdb"));
        assert_eq!(directory.names("out/lib"), ["librocrand.so.1"], "{what}");
    }
    directory.write(&name, &whole);
    directory.write(&format!("{name}-wal"), b"rows that are not in the database yet");
    directory.serve("gfx1031 --dest out").failure().stderr(contains("-wal"));
}
