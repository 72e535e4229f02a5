//! `hotswap serve` on a hand-made tree: a host library, its data files, libraries that choose by name, damage, changes
//! between runs, interruption.

#[path = "serve/actions.rs"]
mod actions;
#[path = "serve/kept_use.rs"]
mod kept_use;
#[path = "serve/layouts.rs"]
mod layouts;
mod made;
#[path = "serve/unread.rs"]
mod unread;

use assert_cmd::Command;
use hotswap_bundle::{Compression, find_containers, split_record};
use hotswap_code_object::CodeObject;
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::Directory;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DATA: &str = "rocm/lib/rocblas/5/library";
const RAND: &str = "_ZN12rocrand_impl4host6kernelEv";

fn sample(target: &str) -> Sample {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }
}

fn object(target: &str) -> Vec<u8> {
    sample(target).build()
}

fn rand_object(target: &str) -> Vec<u8> {
    Sample { kernels: vec![RAND], ..sample(target) }.build()
}

fn bundle(targets: &[&str]) -> Vec<u8> {
    made::bundle(targets, Some(Compression::default()), object)
}

fn library(bundles: &[Vec<u8>]) -> Vec<u8> {
    hotswap_samples::host_files::library(&bundles.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Content and time of each file, text of each link.
type State = BTreeMap<PathBuf, (Vec<u8>, i64)>;

impl Directory {
    /// A ROCm tree with rocBLAS and rocRAND for gfx1030 and gfx1100.
    fn rocm() -> Self {
        let directory = Self::empty();
        directory
            .write("rocm/lib/librocblas.so.5.2", &library(&[bundle(&["gfx1030", "gfx1100"]), bundle(&["gfx1030"])]));
        symlink("librocblas.so.5.2", directory.path("rocm/lib/librocblas.so.5")).unwrap();
        for gpu in ["gfx1030", "gfx1100"] {
            directory.write(&format!("{DATA}/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
            directory.write(&format!("{DATA}/TensileLibrary_a_fallback_{gpu}.hsaco"), &object(gpu));
            directory.write(&format!("{DATA}/TensileLibrary_a_{gpu}.co"), &bundle(&[gpu]));
            directory.write(&format!("{DATA}/TensileLibrary_lazy_{gpu}.dat"), gpu.as_bytes());
        }
        directory.write(&format!("{DATA}/TensileLibrary_a_fallback.dat"), b"fallback");
        let rand = made::bundle(&["gfx1030", "gfx1100"], Some(Compression::default()), rand_object);
        directory.write("rocm/lib/librocrand.so.1.1", &library(&[rand]));
        symlink("librocrand.so.1.1", directory.path("rocm/lib/librocrand.so.1")).unwrap();
        directory.write("rocm/lib/readme.txt", b"no code");
        directory
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(made::installed());
        command.args(words.split(' ')).current_dir(self.0.path());
        command
    }

    fn serve(&self) -> assert_cmd::assert::Assert {
        self.run("serve gfx1031 --root rocm --dest out")
    }

    /// Targets of each container of an output; each code object is the one that the byte oracle expects.
    fn targets(&self, name: &str, expected: fn(&str) -> Vec<u8>) -> Vec<String> {
        let bytes = self.read(name);
        let contents = find_containers(&bytes);
        assert_eq!(contents.problems, []);
        let targets = |found: &hotswap_bundle::FoundContainer<'_>| {
            let images = found.read().unwrap().images.into_iter().filter(|image| !image.data.is_empty());
            let target = |image: hotswap_bundle::ContainerImage<'_>| {
                let target = CodeObject::parse(&image.data).unwrap().target_id().to_string();
                assert!(*image.data == *expected(&target), "{name}: {target}");
                target
            };
            images.map(target).collect::<Vec<_>>().join(" ")
        };
        contents.found.iter().map(targets).collect()
    }

    fn state(&self, name: &str) -> State {
        let mut state = State::new();
        collect(&self.path(name), &mut state);
        state
    }

    fn names(&self, name: &str) -> Vec<String> {
        let below = |path: &PathBuf| path.strip_prefix(self.path(name)).unwrap().to_str().unwrap().to_owned();
        self.state(name).keys().map(below).collect()
    }
}

fn collect(directory: &Path, state: &mut State) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            collect(&path, state);
        } else if meta.is_symlink() {
            let to = fs::read_link(&path).unwrap();
            state.insert(path, (to.to_str().unwrap().as_bytes().to_vec(), 0));
        } else {
            let time = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
            state.insert(path.clone(), (fs::read(path).unwrap(), time));
        }
    }
}

/// The same without times.
fn content(state: State) -> BTreeMap<PathBuf, Vec<u8>> {
    state.into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
}

#[test]
fn a_tree_is_served_and_a_second_run_changes_nothing() {
    let directory = Directory::rocm();
    let before = directory.state("rocm");
    directory.serve().success().stdout(contains("rocBLAS  6      4     2       served").and(contains(". out/env.sh")));
    assert_eq!(
        directory.names("out"),
        [
            "env.sh",
            "hotswap-manifest.json",
            "hotswap-names.conf",
            "lib/librocblas.so.5",
            "lib/librocblas.so.5.2",
            "lib/librocrand.so.1",
            "lib/librocrand.so.1.1",
            "lib/rocblas/5/library/Kernels.so-000-gfx1030.hsaco",
            "lib/rocblas/5/library/TensileLibrary_a_fallback.dat",
            "lib/rocblas/5/library/TensileLibrary_a_fallback_gfx1030.hsaco",
            "lib/rocblas/5/library/TensileLibrary_a_gfx1030.co",
            "lib/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat",
        ]
    );
    let both = ["gfx1030 gfx1031"];
    for name in
        ["Kernels.so-000-gfx1030.hsaco", "TensileLibrary_a_fallback_gfx1030.hsaco", "TensileLibrary_a_gfx1030.co"]
    {
        assert_eq!(directory.targets(&format!("out/lib/rocblas/5/library/{name}"), object), both, "{name}");
        directory.run(&format!("verify out/lib/rocblas/5/library/{name}")).success();
    }
    let host = ["gfx1030 gfx1100 gfx1031", "gfx1030 gfx1031"];
    assert_eq!(directory.targets("out/lib/librocblas.so.5.2", object), host);
    assert_eq!(directory.targets("out/lib/librocrand.so.1.1", rand_object), ["gfx1030 gfx1100 gfx1031"]);
    assert_eq!(directory.read("out/lib/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat"), b"gfx1030");
    assert_eq!(fs::read_link(directory.path("out/lib/librocblas.so.5")).unwrap(), Path::new("librocblas.so.5.2"));
    let names = String::from_utf8(directory.read("out/hotswap-names.conf")).unwrap();
    let serves = names.lines().filter_map(|line| line.strip_prefix("serves ")).collect::<Vec<_>>().join(" ");
    assert!(names.contains("\nnames gfx1031=gfx1030\n"), "{names}");
    assert!(names.ends_with("\ncode gfx1030\ncode gfx1031\n"), "{names}");
    assert_eq!(serves, "lib/librocblas.so.5 lib/librocblas.so.5.2 lib/librocrand.so.1 lib/librocrand.so.1.1");
    let after = directory.state("out");
    std::thread::sleep(Duration::from_millis(20));
    directory.serve().code(17).stdout(contains("6 files as before")).stderr(contains("HS0470"));
    directory.run("serve gfx1031 --root rocm --dest out --allow-unchanged").success();
    assert!(directory.state("out") == after && directory.state("rocm") == before);
    directory.run("serve --check --dest out").success().stdout(contains("up to date"));
}

/// The file is read by a shell, with a destination that a shell must not take apart.
#[test]
fn the_environment_is_for_a_shell() {
    let directory = Directory::rocm();
    let dest = "o'ut $HOME";
    directory.command("serve gfx1031 --root rocm --dest").arg(dest).assert().success();
    let script = "LD_PRELOAD= ; LD_LIBRARY_PATH=/before; . ./\"$1/env.sh\" && echo \"$LD_LIBRARY_PATH|$ROCBLAS_TENSILE_LIBPATH|$LD_PRELOAD|$HOTSWAP_NAMES\"";
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", script, "sh", dest]).current_dir(directory.0.path()).env_remove("HOTSWAP_NAMES");
    let output = output.output().unwrap();
    let out = directory.0.path().canonicalize().unwrap().join(dest);
    let preload = made::installed().ancestors().nth(2).unwrap().join("lib/hotswap/libhotswap-names.so");
    let (lib, data) = (out.join("lib"), out.join("lib/rocblas/5/library"));
    let expected = format!("{}:/before|{}|{}|\n", lib.display(), data.display(), preload.display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_dry_run_writes_nothing_and_json_has_it_all() {
    let directory = Directory::rocm();
    let json = |words: &str| -> Value {
        let out = directory.run(&format!("serve gfx1031 --root rocm --dest out --format json{words}")).success();
        serde_json::from_slice(&out.get_output().stdout).unwrap()
    };
    let planned = json(" --dry-run");
    assert!(!directory.exists("out") && planned["written"] == false);
    assert_eq!(planned["wanted"][0]["source"], "gfx1030");
    let served = json("");
    let library =
        &served["libraries"].as_array().unwrap().iter().find(|row| row["library"] == "rocBLAS").unwrap().clone();
    assert_eq!((library["made"].as_u64(), library["copied"].as_u64()), (Some(4), Some(2)));
    let files: usize =
        planned["libraries"].as_array().unwrap().iter().map(|row| row["files"].as_array().unwrap().len()).sum();
    assert_eq!(files, 7);
    assert_eq!(served["HOTSWAP_NAMES"], "gfx1031=gfx1030");
}

/// A library whose own kernels are missing ends a program by a segmentation fault.
#[test]
fn data_without_its_host_library_is_refused() {
    let directory = Directory::rocm();
    let served = directory.run("serve gfx1031 --root rocm/lib/rocblas rocm/lib/librocrand.so.1 --dest out").code(13);
    served.stderr(contains("HS0421").and(contains("librocblas.so")).and(contains("segmentation fault")));
    assert!(directory.exists("out/librocrand.so.1.1") && !directory.exists("out/5"));
    assert_eq!(fs::read_link(directory.path("out/librocrand.so.1")).unwrap(), Path::new("librocrand.so.1.1"));
    directory.run("serve gfx1031 --root rocm/lib/rocblas --dest other").code(13).stderr(contains("HS0421"));
    assert!(!directory.exists("other"));
    // The host library alone is served with a warning: its data may be found elsewhere.
    directory
        .run("serve gfx1031 --root rocm/lib/librocblas.so.5 --dest alone")
        .success()
        .stderr(contains("rocblas/library"));
    // Root directories inside of the library's own.
    directory.run("serve gfx1031 --root rocm/lib/rocblas/5/library rocm/lib/librocblas.so.5 --dest parts").success();
    let environment = String::from_utf8(directory.read("parts/env.sh")).unwrap();
    let parts = directory.0.path().canonicalize().unwrap().join("parts");
    assert!(
        environment.contains(&format!("ROCBLAS_TENSILE_LIBPATH={}/\n", parts.display()).replace("/\n", "")),
        "{environment}"
    );
}

/// Under the GPU's own name indices are read: one that is none refuses its library, and the rest is served.
#[test]
fn a_damaged_index_refuses_its_library_alone() {
    let directory = Directory::rocm();
    directory.write("rocm/lib/libplain.so.1", &library(&[bundle(&["gfx1030"])]));
    fs::remove_file(directory.path("rocm/lib/librocrand.so.1.1")).unwrap();
    directory.write(&format!("{DATA}/TensileLibrary_lazy_gfx1030.dat"), b"\x82\xa1a");
    let served = directory.run("serve gfx1031 --root rocm --dest out --names own").failure();
    served.stderr(contains("HS0303").and(contains("TensileLibrary_lazy_gfx1030.dat")));
    assert!(directory.exists("out/lib/libplain.so.1") && !directory.exists("out/lib/rocblas"));
}

#[test]
fn a_destination_among_the_libraries_is_refused() {
    let directory = Directory::rocm();
    symlink("rocm", directory.path("link")).unwrap();
    let before = directory.state("rocm");
    for words in [
        "--root rocm --dest rocm",
        "--root rocm --dest rocm/new/deep",
        "--root rocm --dest link/new",
        "--root link --dest rocm/lib",
        "--root rocm/lib --dest rocm",
        "--root rocm/lib/librocrand.so.1 --dest rocm/lib",
        "--root rocm/lib/librocrand.so.1 --dest .",
    ] {
        directory.run(&format!("serve gfx1031 {words}")).code(2).stderr(contains("inside of the other"));
        assert!(directory.state("rocm") == before, "{words}");
    }
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let directory = Directory::rocm();
    directory.write("empty/file", b"text");
    for (words, code, says) in [
        ("--root rocm --dest out", 2, "required"),
        ("gfx1031 --dest out", 2, "neither --root nor a package"),
        ("gfx9999 --root rocm --dest out", 11, "gfx9999"),
        ("gfx10-3-generic --root rocm --dest out", 11, "not the name of one GPU"),
        ("gfx90a --root rocm --dest out", 13, "none of that can serve gfx90a"),
        ("gfx1031 --from gfx1100 --root rocm --dest out", 11, "gfx1100"),
        ("gfx1031 --root empty --dest out", 12, "HS0304"),
        ("gfx1031 --keep gfx1200 --root rocm --dest out", 11, "gfx1200"),
        ("gfx1031 --root rocm --dest a:out", 2, "colon"),
        ("gfx1031 --root missing --dest out", 14, "missing"),
        ("gfx1030 --root rocm --dest out", 13, "have code for gfx1030 already"),
        ("--check --dest out", 14, "out"),
        ("--undo --dest empty", 12, "hotswap-manifest.json"),
        ("gfx1031 --check --dest out", 2, "cannot be used with"),
        ("--check --undo --dest out", 2, "cannot be used with"),
    ] {
        directory.run(&format!("serve {words}")).code(code).stderr(contains(says));
        assert!(!directory.exists("out"), "{words}");
    }
}

/// One damaged file: its library is refused as a whole, also what a run has written of it before; others are served.
#[test]
fn a_library_is_served_as_a_whole_or_not_at_all() {
    let damages: [(&str, &str, Vec<u8>, &str); 4] = [
        ("damaged container", "TensileLibrary_a_gfx1030.co", bundle(&["gfx1030"])[..60].to_vec(), "HS0302"),
        ("other GPU", "Kernels.so-000-gfx1030.hsaco", object("gfx1100"), "gfx1100"),
        ("unknown file", "TensileLibrary_a_gfx1030.new", b"?".to_vec(), "TensileLibrary_a_gfx1030.new"),
        (
            "text",
            "TensileLibrary_a_fallback_gfx1030.hsaco",
            b"text".to_vec(),
            "TensileLibrary_a_fallback_gfx1030.hsaco",
        ),
    ];
    for (what, name, bytes, says) in damages {
        let directory = Directory::rocm();
        directory.serve().success();
        directory.write(&format!("{DATA}/{name}"), &bytes);
        directory.serve().failure().stderr(contains(says));
        let names = directory.names("out");
        assert!(!names.iter().any(|name| name.contains("blas")), "{what}: {names:?}");
        assert!(names.contains(&"lib/librocrand.so.1".to_owned()), "{what}: {names:?}");
        let environment = String::from_utf8(directory.read("out/env.sh")).unwrap();
        assert!(!environment.contains("ROCBLAS"), "{what}: {environment}");
        directory.run("serve --undo --dest out").success();
        assert!(!directory.exists("out"), "{what}");
    }
}

/// Code of gfx1100 that no check lets pass: its first instruction is none. That of other GPUs is right.
fn unreadable(target: &str) -> Vec<u8> {
    let mut code = object(target);
    if target == "gfx1100" {
        let ends = 0xbfb0_0000_u32.to_le_bytes().repeat(8);
        let at = code.windows(ends.len()).position(|bytes| bytes == ends).unwrap();
        code[at..at + 4].fill(0xff);
    }
    code
}

/// A tree for gfx1100 with code that cannot serve gfx1103, beside code for gfx1102 and gfx1101 that can.
fn tree_with_other_sources() -> Directory {
    let directory = Directory::rocm();
    let fat = |gpus: &[&str]| made::bundle(gpus, Some(Compression::default()), unreadable);
    directory.write("rocm/lib/librocblas.so.5.2", &library(&[fat(&["gfx1101", "gfx1100", "gfx1102"])]));
    for gpu in ["gfx1100", "gfx1101", "gfx1102"] {
        directory.write(&format!("{DATA}/Kernels.so-000-{gpu}.hsaco"), &unreadable(gpu));
    }
    directory
}

const FROM_1100: &str = "serve gfx1103 --from gfx1100 --root rocm/lib/rocblas rocm/lib/librocblas.so.5.2 --dest out";

/// The name that the host sees is the source's; code that fails a check is made from the best of the others.
#[test]
fn each_file_takes_the_best_source_that_it_has() {
    let directory = tree_with_other_sources();
    let planned = directory.run(&format!("{FROM_1100} --dry-run")).success();
    planned.stdout(contains("where a code object for gfx1100 fails a check: that for gfx1102, else gfx1101"));
    let json = directory.run(&format!("{FROM_1100} --dry-run --format json")).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    let files = json["libraries"][0]["files"].as_array().unwrap();
    let others: Vec<(&str, usize)> = files
        .iter()
        .map(|file| (file["output"].as_str().unwrap(), file["others"].as_array().unwrap().len()))
        .filter(|(_, others)| *others > 0)
        .collect();
    assert_eq!(others, [("5/library/Kernels.so-000-gfx1100.hsaco", 2)]);
    let served = directory.run(FROM_1100).success();
    served
        .stderr(contains("HS0436").count(2).and(contains("code for gfx1103 was made from that for gfx1102").count(2)));
    let made = "out/5/library/Kernels.so-000-gfx1100.hsaco";
    // The source's own code stays, and the target's is the one that the better source gives.
    assert_eq!(directory.targets(made, unreadable), ["gfx1100 gfx1103"]);
    assert_eq!(directory.targets("out/librocblas.so.5.2", unreadable), ["gfx1101 gfx1100 gfx1102 gfx1103"]);
    assert!(!directory.exists("out/5/library/Kernels.so-000-gfx1102.hsaco"));
    let names = String::from_utf8(directory.read("out/hotswap-names.conf")).unwrap();
    assert!(names.contains("names gfx1103=gfx1100"), "{names}");
    // The record says what it was made from.
    directory.run(&format!("list {made} --format json")).success().stdout(contains("\"gfx1102\""));
    let first = directory.state("out");
    directory.run(FROM_1100).code(17);
    assert_eq!(directory.state("out"), first);
    directory.run(&format!("{FROM_1100}-alone --jobs 1")).success();
    assert!(directory.read("out-alone/librocblas.so.5.2") == directory.read("out/librocblas.so.5.2"));
    // A change of another source is told, and the file is made again.
    directory.run("serve --check --dest out").success();
    directory.write(&format!("{DATA}/Kernels.so-000-gfx1102.hsaco"), b"damaged");
    directory.run("serve --check --dest out").failure().stderr(contains("Kernels.so-000-gfx1102.hsaco"));
    directory.run(FROM_1100).success().stderr(contains("was made from that for gfx1101"));
    assert_eq!(directory.targets(made, unreadable), ["gfx1100 gfx1103"]);
}

/// A package's outputs are remarked on as a directory's are.
#[test]
fn a_package_names_the_files_with_another_source() {
    let directory = tree_with_other_sources();
    let words = ["-C", "rocm", "-cf", "rocm.tar", "lib"];
    Command::new("tar").args(words).current_dir(directory.path("")).assert().success();
    let served = directory.run("serve gfx1103 --from gfx1100 rocm.tar --dest packages").success();
    served.stderr(contains("HS0436").count(2).and(contains("Kernels.so-000-gfx1100.hsaco")));
}

/// Another source is none where the host would not find its kernels, or would start them in another way.
#[test]
fn code_with_other_kernels_is_no_source() {
    for what in ["names", "lanes"] {
        let directory = tree_with_other_sources();
        for gpu in ["gfx1101", "gfx1102"] {
            let other = match what {
                "names" => Sample { kernels: vec!["first", "third"], ..sample(gpu) },
                _ => Sample { lanes: 64, ..sample(gpu) },
            };
            directory.write(&format!("{DATA}/Kernels.so-000-{gpu}.hsaco"), &other.build());
        }
        let refused = directory.run(FROM_1100).code(13);
        refused.stderr(contains("Kernels.so-000-gfx1100.hsaco").and(contains("no instruction of gfx1100")));
        assert!(!directory.exists("out"), "{what}");
    }
    // The same in a fat binary, whose kernels are chosen by the name that the host sees.
    let directory = tree_with_other_sources();
    directory.write(&format!("{DATA}/Kernels.so-000-gfx1100.hsaco"), &object("gfx1100"));
    let fat = |gpu: &str| match gpu {
        "gfx1100" => unreadable(gpu),
        _ => Sample { kernels: vec!["first", "third"], ..sample(gpu) }.build(),
    };
    let bundle = made::bundle(&["gfx1100", "gfx1102"], Some(Compression::default()), fat);
    directory.write("rocm/lib/librocblas.so.5.2", &library(&[bundle]));
    directory.run(FROM_1100).code(13).stderr(contains("librocblas.so.5.2"));
    assert!(!directory.exists("out"));
}

/// A host part that sees the source's name must not meet code that was compiled for the GPU itself.
#[test]
fn code_for_the_gpu_itself_is_left_or_refused() {
    let rand = |targets: &[&str]| made::bundle(targets, Some(Compression::default()), rand_object);
    let directory = Directory::rocm();
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[rand(&["gfx1030", "gfx1031"])]));
    directory.serve().success().stdout(contains("rocRAND  -      -     -       has code for it already"));
    assert!(!directory.exists("out/lib/librocrand.so.1"));
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[rand(&["gfx1030", "gfx1031"]), rand(&["gfx1030"])]));
    directory.serve().code(13).stderr(contains("HS0414"));
    assert!(!directory.exists("out/lib/librocrand.so.1") && directory.exists("out/lib/librocblas.so.5.2"));
    // Code that does not choose by name is right whichever name the host sees.
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[bundle(&["gfx1030", "gfx1031"]), rand(&["gfx1030"])]));
    directory.serve().success();
    // A container without the source has nothing for the target, as on the source.
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[bundle(&["gfx1100"]), rand(&["gfx1030"])]));
    directory.serve().success();
    let other = |target: &str| if target == "gfx1100" { object(target) } else { rand_object(target) };
    assert_eq!(directory.targets("out/lib/librocrand.so.1.1", other), ["gfx1100", "gfx1030 gfx1031"]);
}

#[test]
fn own_names_are_refused_where_the_host_chooses_by_name() {
    let directory = Directory::rocm();
    let words = "serve gfx1031 --root rocm/lib/librocrand.so.1 --dest out --names own";
    directory.run(words).code(13).stderr(contains("HS0414").and(contains("--names source")));
    assert!(!directory.exists("out"));
}

/// A node of Tensile's index, as MessagePack.
fn placeholder(name: &str) -> Vec<u8> {
    let text = |text: &str| [&[0xa0 | text.len() as u8], text.as_bytes()].concat();
    [&[0x82][..], &text("type"), &text("Placeholder"), &text("value"), &text(name)].concat()
}

/// Files and indices are renamed, and the new ones have the target's code alone.
#[test]
fn own_names_are_those_of_files_and_indices() {
    let directory = Directory::rocm();
    fs::remove_file(directory.path("rocm/lib/librocrand.so.1")).unwrap();
    fs::remove_file(directory.path("rocm/lib/librocrand.so.1.1")).unwrap();
    let words = "serve gfx1031,gfx1032 --root rocm --dest out --names own";
    directory.run(words).code(12).stderr(contains("HS0303").and(contains("TensileLibrary_lazy_gfx1030.dat")));
    assert!(!directory.exists("out"));
    directory.write(&format!("{DATA}/TensileLibrary_lazy_gfx1030.dat"), &placeholder("x_gfx1030"));
    directory.run(words).success();
    for target in ["gfx1031", "gfx1032"] {
        let data = |name: &str| format!("out/lib/rocblas/5/library/{name}");
        assert!(
            directory.read(&data(&format!("TensileLibrary_lazy_{target}.dat"))) == placeholder(&format!("x_{target}"))
        );
        let bare = directory.read(&data(&format!("Kernels.so-000-{target}.hsaco")));
        assert!(split_record(&bare).unwrap().0 == object(target));
        assert_eq!(directory.targets(&data(&format!("TensileLibrary_a_{target}.co")), object), [target]);
    }
    let names = directory.names("out");
    assert!(!names.iter().any(|name| name.contains("gfx1030") || name.contains("names.conf")), "{names:?}");
    assert!(names.contains(&"lib/rocblas/5/library/TensileLibrary_a_fallback.dat".to_owned()));
    let environment = String::from_utf8(directory.read("out/env.sh")).unwrap();
    assert!(!environment.contains("LD_PRELOAD") && !environment.contains("HOTSWAP_NAMES"), "{environment}");
    let before = directory.state("out");
    directory.run(words).code(17);
    assert!(directory.state("out") == before);
    directory.write(&format!("{DATA}/TensileLibrary_a_gfx1030.co"), &bundle(&["gfx1100"]));
    directory.run(words).failure().stderr(contains("its code is not"));
    assert!(!directory.exists("out"));
}

#[test]
fn several_gpus_each_have_their_source_and_others_are_kept() {
    let directory = Directory::rocm();
    directory.run("serve gfx1031 gfx1032,gfx1103 --root rocm --dest out").success();
    let data = "out/lib/rocblas/5/library";
    assert_eq!(directory.targets(&format!("{data}/Kernels.so-000-gfx1030.hsaco"), object), ["gfx1030 gfx1031 gfx1032"]);
    assert_eq!(directory.targets(&format!("{data}/Kernels.so-000-gfx1100.hsaco"), object), ["gfx1100 gfx1103"]);
    let host = "gfx1030 gfx1100 gfx1031 gfx1032 gfx1103";
    assert_eq!(directory.targets("out/lib/librocblas.so.5.2", object), [host, "gfx1030 gfx1031 gfx1032"]);
    // A library that lacks one of the sources says so.
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[bundle(&["gfx1030"])]));
    let says = "rocRAND: a library is not served: it has no code for gfx1100, so gfx1103 is not served by it";
    directory.run("serve gfx1031,gfx1032,gfx1103 --root rocm --dest out").success().stderr(contains(says));
    // Two versions cannot be told apart by one variable.
    fs::create_dir_all(directory.path("rocm/lib/rocblas/6/library")).unwrap();
    directory.write("rocm/lib/rocblas/6/library/TensileLibrary_lazy_gfx1030.dat", b"6");
    directory.run("serve gfx1031 --root rocm --dest two").code(13).stderr(contains("in two directories"));
    fs::remove_dir_all(directory.path("rocm/lib/rocblas/6")).unwrap();
    directory.run("serve gfx1031 --root rocm --dest kept --keep gfx1100").success();
    let kept = "rocblas/5/library/Kernels.so-000-gfx1100.hsaco";
    assert!(directory.read(&format!("kept/lib/{kept}")) == directory.read(&format!("rocm/lib/{kept}")));
}

/// A tree shows one name for a GPU: two libraries never see different ones without a word.
#[test]
fn a_library_with_another_source_alone_is_served_apart() {
    let directory = Directory::rocm();
    directory.write("rocm/lib/librocsolver.so.0", &library(&[bundle(&["gfx1102"])]));
    let said = directory.run("serve gfx1103 --root rocm --dest out").code(13);
    said.stderr(
        contains("HS0421")
            .count(1)
            .and(contains("rocSOLVER: "))
            .and(contains("it has for gfx1102"))
            .and(contains("`--from gfx1102`")),
    );
    assert!(directory.exists("out/lib/librocrand.so.1") && !directory.exists("out/lib/librocsolver.so.0"));
    directory.run("serve gfx1103 --from gfx1102 --root rocm/lib/librocsolver.so.0 --dest apart").success();
    let names = |tree: &str| String::from_utf8(directory.read(&format!("{tree}/hotswap-names.conf"))).unwrap();
    assert!(names("out").contains("names gfx1103=gfx1100\n") && names("apart").contains("names gfx1103=gfx1102\n"));
    // Code that nothing can serve from is no error.
    directory.write("rocm/lib/librocsolver.so.0", &library(&[bundle(&["gfx90a"])]));
    directory.run("serve gfx1103 --root rocm --dest out").success().stdout(contains("has nothing for gfx1100"));
    // A library that compiles for the name that it sees is not sent there in vain.
    directory.write("rocm/lib/librocfft.so.0", &library(&[bundle(&["gfx1102"])]));
    let said = directory.run("serve gfx1103 --root rocm --dest out").code(13);
    said.stderr(contains("rocFFT: ").and(contains("leave it out of --root")).and(contains("--from").not()));
}

#[test]
fn a_check_says_what_is_stale() {
    type Change = fn(&Directory);
    let change: [(&str, Change, &str); 6] = [
        ("input changed", |d| d.write(&format!("{DATA}/TensileLibrary_lazy_gfx1030.dat"), b"new"), "has changed since"),
        (
            "input gone",
            |d| fs::remove_file(d.path(&format!("{DATA}/TensileLibrary_a_fallback.dat"))).unwrap(),
            "is gone since",
        ),
        ("output changed", |d| d.write("out/lib/librocblas.so.5.2", b"x"), "was changed since"),
        (
            "output gone",
            |d| fs::remove_file(d.path("out/lib/rocblas/5/library/Kernels.so-000-gfx1030.hsaco")).unwrap(),
            "is missing",
        ),
        ("link gone", |d| fs::remove_file(d.path("out/lib/librocblas.so.5")).unwrap(), "the link is gone"),
        (
            "new input",
            |d| d.write(&format!("{DATA}/TensileLibrary_b_gfx1030.co"), &bundle(&["gfx1030"])),
            "is not served",
        ),
    ];
    for (what, change, says) in change {
        let directory = Directory::rocm();
        directory.serve().success();
        change(&directory);
        directory.run("serve --check --dest out").code(13).stderr(contains("HS0422").and(contains(says)));
        if what == "output changed" {
            // Nobody's change is overwritten.
            directory.serve().code(13).stderr(contains("HS0423"));
            continue;
        }
        directory.serve().success();
        directory.run("serve --check --dest out").success();
    }
}

#[test]
fn an_upgrade_makes_what_changed_and_removes_what_is_gone() {
    let directory = Directory::rocm();
    directory.serve().success();
    let before = directory.state("out");
    let new = library(&[bundle(&["gfx1030"])]);
    fs::remove_file(directory.path("rocm/lib/librocblas.so.5.2")).unwrap();
    fs::remove_file(directory.path("rocm/lib/librocblas.so.5")).unwrap();
    directory.write("rocm/lib/librocblas.so.5.3", &new);
    symlink("librocblas.so.5.3", directory.path("rocm/lib/librocblas.so.5")).unwrap();
    directory.serve().success().stdout(contains("removed: 1 file of earlier runs"));
    let after = directory.state("out");
    assert!(directory.exists("out/lib/librocblas.so.5.3") && !directory.exists("out/lib/librocblas.so.5.2"));
    let same = after.iter().filter(|(path, state)| before.get(*path) == Some(state)).count();
    assert_eq!((same, after.len()), (9 - 1, 12), "the manifest, the link, the library and the names are new");
}

#[test]
fn an_undo_removes_what_was_written_and_nothing_else() {
    let directory = Directory::rocm();
    directory.serve().success();
    directory.run("serve --undo --dest out").success();
    assert!(!directory.exists("out"));
    // A destination that was there stays, with the files of others.
    directory.write("out/lib/mine.txt", b"mine");
    directory.serve().success();
    directory.run("serve --undo --dest out").success();
    assert_eq!(directory.names("out"), ["lib/mine.txt"]);
    // A changed file stays, is told, and the rest can be undone later.
    directory.serve().success();
    let changed = "out/lib/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat";
    directory.write(changed, b"changed");
    directory.run("serve --undo --dest out").code(13).stderr(contains("HS0423").and(contains("TensileLibrary_lazy")));
    assert_eq!(directory.names("out").len(), 3, "{:?}", directory.names("out"));
    fs::remove_file(directory.path(changed)).unwrap();
    directory.run("serve --undo --dest out").success();
    assert_eq!(directory.names("out"), ["lib/mine.txt"]);
}

#[test]
fn files_of_others_are_never_replaced() {
    let directory = Directory::rocm();
    directory.write("out/lib/librocblas.so.5.2", b"mine");
    directory.write("out/lib/librocrand.so.1", b"mine");
    directory.serve().code(13).stderr(contains("HS0423").and(contains("no record")));
    assert_eq!(directory.read("out/lib/librocblas.so.5.2"), b"mine");
    assert_eq!(directory.read("out/lib/librocrand.so.1"), b"mine");
    // A manifest that leads out of the destination removes nothing there.
    let directory = Directory::rocm();
    directory.serve().success();
    let manifest = String::from_utf8(directory.read("out/hotswap-manifest.json")).unwrap();
    directory.write("out/hotswap-manifest.json", manifest.replace("lib/librocblas.so.5.2", "../rocm/lib/x").as_bytes());
    directory.run("serve --undo --dest out").code(12).stderr(contains("HS0302"));
}

/// A file that another program changed takes nothing away from the GPU: programs that ran on the tree still do.
#[test]
fn a_changed_output_stays_with_all_others_of_its_library() {
    let directory = Directory::rocm();
    directory.serve().success();
    let changed = "out/lib/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat";
    let own = directory.read(changed);
    directory.write(changed, b"changed");
    let before = content(directory.state("out"));
    let report = "CHANGED BY OTHERS";
    directory.serve().code(13).stderr(contains("HS0423").and(contains("it was changed"))).stdout(contains(report));
    assert_eq!(content(directory.state("out")), before);
    directory.run("serve --check --dest out").code(13).stderr(contains("was changed since"));
    // New files are not mixed with those that stay.
    directory.write(&format!("{DATA}/TensileLibrary_b_gfx1030.co"), &bundle(&["gfx1030"]));
    directory.serve().code(13).stderr(contains("HS0423"));
    assert_eq!(content(directory.state("out")), before);
    directory.write(changed, &own);
    directory.serve().success();
    assert!(directory.exists("out/lib/rocblas/5/library/TensileLibrary_b_gfx1030.co"));
    directory.run("serve --check --dest out").success();
}

/// Killed at any time: the next run completes the tree, and an undo leaves nothing.
#[test]
fn a_killed_run_is_continued_or_undone() {
    let directory = Directory::rocm();
    for number in 0..60 {
        directory.write(&format!("{DATA}/TensileLibrary_{number}_gfx1030.co"), &bundle(&["gfx1030"]));
    }
    let start = Instant::now();
    directory.serve().success();
    let duration = start.elapsed();
    let whole = content(directory.state("out"));
    directory.run("serve --undo --dest out").success();
    let mut interrupted = 0;
    // The kills are spread over a whole run, however long that takes on this machine.
    for round in 0..40_u32 {
        let mut child = std::process::Command::new(made::installed())
            .args("serve gfx1031 --root rocm --dest out".split(' '))
            .current_dir(directory.0.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(duration * round / 40);
        child.kill().unwrap();
        child.wait().unwrap();
        interrupted += usize::from(directory.exists("out/hotswap-journal.jsonl"));
        if round % 2 == 0 && directory.exists("out") {
            let undone = directory.run("serve --undo --dest out");
            undone.success();
            assert!(!directory.exists("out"), "round {round}: {:?}", directory.names("out"));
        } else {
            // The kill may have come after the last step.
            directory.run("serve gfx1031 --root rocm --dest out --allow-unchanged").success();
            let found = content(directory.state("out"));
            let differs = |name: &&PathBuf| found.get(*name) != whole.get(*name);
            let differing: Vec<&PathBuf> = found.keys().chain(whole.keys()).filter(differs).collect();
            assert!(found == whole, "round {round}: {differing:?}");
            directory.run("serve --undo --dest out").success();
            assert!(!directory.exists("out"), "round {round}: {:?}", directory.names("out"));
        }
    }
    assert!(interrupted > 2, "{interrupted} runs were interrupted");
}

/// A write that fails: an error, no half file, and the next run goes on.
#[test]
fn a_full_disk_leaves_what_is_whole() {
    let directory = Directory::rocm();
    // Larger than the limit, so that the copy fails half-way.
    directory.write(&format!("{DATA}/TensileLibrary_z_fallback.dat"), &vec![7; 3 << 20]);
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" serve gfx1031 --root rocm --dest out";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(made::installed()).current_dir(directory.0.path());
    shell.assert().code(14).stderr(contains("HS0502"));
    assert!(
        !directory.exists("out/hotswap-manifest.json")
            && !directory.exists("out/lib/rocblas/5/library/TensileLibrary_z_fallback.dat")
    );
    directory.run("serve --check --dest out").code(13).stderr(contains("interrupted"));
    directory.serve().success();
    directory.run("serve --check --dest out").success();
    assert!(!directory.names("out").iter().any(|name| name.contains("hotswap-tmp")));
}

#[test]
fn files_that_cannot_be_written_to_are_served_all_the_same() {
    let directory = Directory::rocm();
    for path in directory.state("rocm").keys().filter(|path| !path.is_symlink()) {
        let mut permissions = fs::metadata(path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(path, permissions).unwrap();
    }
    directory.serve().success();
    directory.write(&format!("{DATA}/TensileLibrary_b_gfx1030.co"), &bundle(&["gfx1030"]));
    directory.serve().success();
    directory.run("serve --check --dest out").success();
    directory.run("serve --undo --dest out").success();
}

#[test]
fn code_objects_become_a_bundle() {
    let directory = Directory(TempDir::new().unwrap());
    for gpu in ["gfx1030", "gfx1100"] {
        directory.write(&format!("{gpu}.hsaco"), &object(gpu));
    }
    directory.run("bundle out.co --entry gfx1030=gfx1030.hsaco gfx1100=gfx1100.hsaco").success();
    let expected = made::bundle(&["gfx1030", "gfx1100"], None, object);
    assert!(directory.read("out.co") == expected);
    directory.run("bundle out.co --compress --entry gfx1030=gfx1030.hsaco --entry gfx1100=gfx1100.hsaco").success();
    assert!(directory.read("out.co") == bundle(&["gfx1030", "gfx1100"]));
    let printed = directory.run("bundle - --compress --entry gfx1030=gfx1030.hsaco gfx1100=gfx1100.hsaco").success();
    assert!(printed.get_output().stdout == directory.read("out.co") && !directory.exists("-"));
    printed.stderr(predicates::str::starts_with("standard output: 2 entries"));
    for (words, code, says) in [
        ("--entry gfx1030=gfx1100.hsaco", 11, "gfx1100.hsaco"),
        ("--entry gfx1030=gfx1030.hsaco gfx1030=gfx1030.hsaco", 2, "two entries"),
        ("--entry gfx1030", 2, "TARGET=FILE"),
        ("--entry gfx9999=gfx1030.hsaco", 11, "gfx9999"),
        ("--entry gfx1030=out.co", 12, "out.co"),
        ("--entry gfx1030=missing", 14, "missing"),
        ("", 2, "required"),
    ] {
        directory.run(format!("bundle x {words}").trim_end()).code(code).stderr(contains(says));
        assert!(!directory.exists("x"), "{words}");
    }
    // The same from one source, and a record that says which is which.
    directory.run("retarget gfx1030.hsaco --to gfx1031,gfx1032 --keep-source -o kept.co").success();
    assert_eq!(directory.targets("kept.co", object), ["gfx1030 gfx1031 gfx1032"]);
    directory.run("verify kept.co").success();
    directory.run("retarget gfx1030.hsaco --to gfx1031 -o made.hsaco").success();
    directory.run("bundle both.co --entry gfx1030=gfx1030.hsaco gfx1031=made.hsaco").success();
    directory.run("list both.co").success().stdout(contains("retargeted from gfx1030"));
    directory.run("verify both.co").success();
    directory.run("retarget kept.co --to gfx1033 --keep-source -o x").code(2).stderr(contains("--keep-source"));
    directory.run("retarget gfx1030.hsaco --to gfx1031,gfx90a --keep-source -o x").code(13);
    assert!(!directory.exists("x"));
}

#[test]
fn files_that_cannot_be_served_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let directory = Directory::rocm();
    let name = std::ffi::OsStr::from_bytes(b"librocsparse\xff.so.1");
    fs::copy(directory.path("rocm/lib/librocrand.so.1.1"), directory.path("rocm/lib").join(name)).unwrap();
    let mut damaged = directory.read("rocm/lib/librocrand.so.1.1");
    let header = damaged.windows(4).position(|bytes| bytes == b"CCOB").unwrap();
    damaged[header + 4] = 0xff; // its version
    directory.write("rocm/lib/librocfft.so.0", &damaged);
    let served = directory.serve();
    let text = String::from_utf8_lossy(&served.get_output().stderr).into_owned();
    assert!(text.contains("is not UTF-8") && text.contains("librocfft.so.0"), "{text}");
    let mut command = Command::new(made::installed());
    command.args(["serve", "gfx1031", "--root", "rocm", "--dest"]).arg(std::ffi::OsStr::from_bytes(b"out\xff"));
    command.current_dir(directory.0.path()).assert().code(2).stderr(contains("UTF-8"));
}

/// Without the library that env.sh preloads, the libraries of a tree see the GPU's own name and look for files that it does not have.
#[test]
fn an_installation_without_the_names_library_serves_nothing() {
    let directory = Directory::rocm();
    fs::create_dir_all(directory.path("bare/bin")).unwrap();
    let program = directory.path("bare/bin/hotswap");
    fs::copy(env!("CARGO_BIN_EXE_hotswap"), &program).unwrap();
    let bare = |words: &str| {
        let mut command = Command::new(&program);
        command.args(words.split(' ')).current_dir(directory.0.path()).assert()
    };
    let refused = bare("serve gfx1031 --root rocm --dest out").code(10).stdout("");
    refused.stderr(contains("[HS0105]").and(contains("libhotswap-names.so")).and(contains("No such file")));
    assert!(!directory.exists("out"));
    bare("serve gfx1031 --root rocm --dest out --dry-run").success();
    fs::create_dir_all(directory.path("bare/lib/hotswap/libhotswap-names.so")).unwrap();
    bare("serve gfx1031 --root rocm --dest out").code(10).stderr(contains("not a file"));
    assert!(!directory.exists("out"));
}
