//! `hotswap prune` of directories: what a kept GPU's libraries open stays, links and names lead where they led, and hostile
//! directories are refused by name without an output.

mod made;

use hotswap_bundle::Compression;
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::Directory;
use predicates::prelude::*;
use predicates::str::contains;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

const DATA: &str = "rocm/lib/rocblas/library";
const GPUS: [&str; 2] = ["gfx1030", "gfx1100"];

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

impl Directory {
    /// A library with code for two GPUs, data files of rocBLAS for both, links and second names.
    fn new() -> Self {
        let directory = Self::empty();
        let bundle = made::bundle(&GPUS, Some(Compression::default()), object);
        directory.write("rocm/lib/librocblas.so.5.2", &hotswap_samples::host_files::library(&[&bundle]));
        directory.write("rocm/text", b"text");
        for gpu in GPUS {
            directory.write(&format!("{DATA}/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
            directory.write(&format!("{DATA}/TensileLibrary_{gpu}.dat"), b"\x82\xa9solutions\x90\xa7library\x80");
        }
        symlink("librocblas.so.5.2", directory.path("rocm/lib/librocblas.so.5")).unwrap();
        fs::hard_link(directory.path("rocm/text"), directory.path("rocm/second")).unwrap();
        fs::set_permissions(directory.path("rocm/text"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(directory.path("rocm/lib/rocblas"), fs::Permissions::from_mode(0o555)).unwrap();
        directory
    }

    /// The names in the directory of the test: nothing is left of a refused run.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[test]
fn a_directory_keeps_what_the_kept_gpu_loads() {
    let directory = Directory::new();
    let before = directory.run("uses rocm --gpu gfx1030").success().get_output().stdout.clone();
    directory.run("prune rocm --keep gfx1030 -o out").success().stdout(contains("1 files pruned, 2 left out"));
    let after = directory.run("uses out --gpu gfx1030").success().get_output().stdout.clone();
    let before = String::from_utf8(before).unwrap().replace("rocm", "out");
    assert_eq!(String::from_utf8(after).unwrap(), before);
    directory.run("list out/lib/librocblas.so.5").success().stdout(contains("gfx1100").not());
    assert!(!directory.path("out/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco").exists());
    assert_eq!(fs::read_link(directory.path("out/lib/librocblas.so.5")).unwrap(), PathBuf::from("librocblas.so.5.2"));
    let (one, other) =
        (directory.path("out/text").metadata().unwrap(), directory.path("out/second").metadata().unwrap());
    assert!(one.ino() == other.ino() && one.mode() & 0o777 == 0o640);
    assert_eq!(one.modified().unwrap(), directory.path("rocm/text").metadata().unwrap().modified().unwrap());
    assert_eq!(directory.path("out/lib/rocblas").metadata().unwrap().mode() & 0o777, 0o555);
    // The input is as it was.
    directory.run("list rocm/lib/librocblas.so.5").success().stdout(contains("gfx1100"));
    directory.run("prune rocm --keep gfx1030 -o out").code(14).stderr(contains("HS0502").and(contains("it exists")));
    directory.run("prune rocm --keep gfx1030 -o rocm/lib/out").code(2).stderr(contains("inside of the directory"));
    directory.run("prune rocm --keep gfx906 -o other").code(12).stderr(contains("HS0307").and(contains("gfx906")));
    assert!(!directory.path("other").exists());
}

#[test]
fn a_served_directory_is_pruned_for_the_gpu_that_is_shown_another_name() {
    let directory = Directory::new();
    directory.run("serve gfx1031 --root rocm --from gfx1030 --dest served").success();
    directory.run("prune served --keep gfx1031 -o out").success();
    assert!(directory.path("out/lib/rocblas/library/TensileLibrary_gfx1030.dat").exists());
    directory.run("uses out --gpu gfx1031 --shown gfx1030").success();
}

#[test]
fn links_that_lead_to_data_keep_it_or_stop_the_command() {
    let directory = Directory::new();
    // Data of the kept GPU that is a name of the other one's.
    let data = directory.path(DATA);
    fs::remove_file(data.join("TensileLibrary_gfx1030.dat")).unwrap();
    symlink("TensileLibrary_gfx1100.dat", data.join("TensileLibrary_gfx1030.dat")).unwrap();
    directory.run("prune rocm --keep gfx1030 -o out").success();
    assert!(directory.path("out/lib/rocblas/library/TensileLibrary_gfx1030.dat").is_file());
    // A link out of the directory leads to the same file from a directory beside it, and to none from one elsewhere.
    fs::rename(data.join("TensileLibrary_gfx1100.dat"), directory.path("aside.dat")).unwrap();
    fs::remove_file(data.join("TensileLibrary_gfx1030.dat")).unwrap();
    symlink("../../../../aside.dat", data.join("TensileLibrary_gfx1030.dat")).unwrap();
    directory.run("prune rocm --keep gfx1030 -o beside").success();
    fs::create_dir(directory.path("deep")).unwrap();
    let refused = directory.run("prune rocm --keep gfx1030 -o deep/out").code(13);
    refused.stderr(contains("HS0450").and(contains("gfx1030 would lose lib/rocblas/library")));
    assert!(fs::read_dir(directory.path("deep")).unwrap().next().is_none());
}

#[test]
fn hostile_directories_are_refused_by_name_and_leave_nothing() {
    for (make, what) in [
        (&(|at: PathBuf| drop(fs::write(at.join(OsStr::from_bytes(b"na\xffme")), "x"))) as &dyn Fn(PathBuf), "UTF-8"),
        (
            &|at: PathBuf| {
                assert!(std::process::Command::new("mkfifo").arg(at.join("pipe")).status().unwrap().success());
            },
            "neither a file nor a directory nor a link",
        ),
    ] {
        let directory = Directory::new();
        make(directory.path("rocm"));
        let refused = directory.run("prune rocm --keep gfx1030 -o out").code(13);
        refused.stderr(contains("HS0402").and(contains(what)));
        assert_eq!(directory.names(), ["rocm"], "{what}");
    }
    // Cycles of links are links as others.
    let directory = Directory::new();
    symlink("loop", directory.path("rocm/loop")).unwrap();
    symlink("..", directory.path("rocm/lib/up")).unwrap();
    directory.run("prune rocm --keep gfx1030 -o out").success();
    assert!(directory.path("out/lib/up").is_symlink() && directory.path("out/loop").is_symlink());
}
