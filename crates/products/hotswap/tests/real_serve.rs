//! `hotswap serve` on a distribution's rocBLAS, rocRAND and rocSPARSE, judged by LLVM's bundler, by LLVM's reader and by
//! comgr, which the HIP runtime asks.
//!
//! `HOTSWAP_TEST_ROOT` names the userland, `HOTSWAP_TEST_STACK` the libraries; without them each test reports that it was
//! skipped. rocRAND and rocSPARSE, which take longest, are served where all cases are run.

mod made;

use assert_cmd::Command;
use hotswap_userland::{ENV_STACK, Workbench, everything, skip};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

const SOURCE: &str = "gfx1030";
const TARGETS: [&str; 2] = ["gfx1031", "gfx1036"];

struct LibraryBench {
    bench: Workbench,
    libraries: Vec<PathBuf>,
}

impl LibraryBench {
    fn new(test: &str) -> Option<Self> {
        let bench = Workbench::new(test)?;
        let Some(stack) = std::env::var_os(ENV_STACK) else {
            skip(test, &format!("{ENV_STACK} is not set"));
            return None;
        };
        let libraries: Vec<PathBuf> = std::env::split_paths(&stack).collect();
        Some(Self { bench, libraries })
    }

    fn library(&self, name: &str) -> &Path {
        self.libraries.iter().find(|path| path.to_string_lossy().contains(name)).unwrap()
    }

    fn serve(&self, words: &[&str], roots: &[&Path]) -> assert_cmd::assert::Assert {
        let mut command = Command::new(made::installed());
        command.current_dir(self.bench.directory()).arg("serve").args(words);
        for root in roots {
            command.arg("--root").arg(root);
        }
        command.assert()
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn states(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime, u64)> {
    let state = |path: PathBuf| {
        let meta = path.symlink_metadata().unwrap();
        (path, meta.modified().unwrap(), meta.len())
    };
    files(directory).into_iter().map(state).collect()
}

/// LLVM's bundler finds in each code file the source's code object, byte for byte, and one for each target.
const UNBUNDLE: &str = r"set -e
cd out/x86_64-linux-gnu/rocblas/5/library
count=0
for file in *.co *.hsaco; do
  clang-offload-bundler-23 --list --type=o --input=$file > list
  for target in gfx1030 gfx1031 gfx1036; do grep -q -- --$target'$' list; done
  count=$((count + 1))
done
rm list
echo $count
";

#[test]
fn a_distributions_libraries_are_served() {
    let Some(bench) = LibraryBench::new("a_distributions_libraries_are_served") else { return };
    let mut roots = vec![bench.library("rocblas")];
    if everything() {
        roots.extend(["rocrand", "rocsparse"].map(|name| bench.library(name)));
    }
    let words = ["gfx1031,gfx1036", "--dest", "out"];
    bench.serve(&words, &roots).success().stdout(contains("served by code for gfx1030"));
    let out = bench.bench.directory().join("out");
    let data = bench.library("rocblas").join("x86_64-linux-gnu/rocblas/5/library");
    let of_source = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains(SOURCE) || name.ends_with("_fallback.dat")
    };
    let expected = files(&data).into_iter().filter(of_source).count();
    let served: Vec<PathBuf> = files(&out.join("x86_64-linux-gnu/rocblas/5/library"));
    assert_eq!(served.len(), expected);
    let code = |path: &&PathBuf| path.extension().is_some_and(|end| end == "co" || end == "hsaco");
    assert_eq!(served.iter().filter(code).count(), 71);
    // Indices are the same bytes: the host looks for the source's.
    for index in served.iter().filter(|path| !code(path)) {
        assert!(
            fs::read(index).unwrap() == fs::read(data.join(index.file_name().unwrap())).unwrap(),
            "{}",
            index.display()
        );
    }
    assert_eq!(bench.bench.run(UNBUNDLE).trim(), "71");
    bench.judge_by_comgr(&data);
    let before = states(&out);
    bench.serve(&words, &roots).code(17);
    assert_eq!(states(&out), before);
    bench.serve(&["--check", "--dest", "out"], &[]).success();
    bench.serve(&["--undo", "--dest", "out"], &[]).success();
    assert!(!out.exists());
}

impl LibraryBench {
    /// comgr, which the HIP runtime asks, returns the source's own bytes for the source, and code for each target that
    /// differs from it in the label only.
    fn judge_by_comgr(&self, data: &Path) {
        self.bench.build_lookup();
        let helper = format!("Kernels.so-000-{SOURCE}.hsaco");
        let served = format!("out/x86_64-linux-gnu/rocblas/5/library/{helper}");
        self.bench.run(&format!("./lookup -o found.co {served} amdgcn-amd-amdhsa--{SOURCE}"));
        let own = fs::read(data.join(&helper)).unwrap();
        assert!(self.bench.read("found.co") == own);
        for target in TARGETS {
            self.bench.run(&format!("./lookup -o found.co {served} amdgcn-amd-amdhsa--{target}"));
            let made = self.bench.read("found.co");
            let id = self.build_id();
            assert_ne!(made[id.clone()], own[id.clone()], "{target}: the build ID is a hash of the file");
            let pairs = made.iter().zip(&own).enumerate().filter(|(at, _)| !id.contains(at));
            let differing = pairs.filter(|(_, (one, other))| one != other).count();
            let kernels = self.bench.run("llvm-readelf-23 --notes found.co | grep -c amdhsa.target");
            let kernels: usize = kernels.trim().parse().unwrap();
            assert_eq!(
                (made.len(), differing),
                (own.len(), kernels + 1),
                "{target}: the flags, and one digit of each note"
            );
            let flags = self.bench.run("llvm-readelf-23 -h found.co");
            assert!(flags.contains(target), "{flags}");
        }
    }
}

impl LibraryBench {
    /// The place of the build ID in the code object that comgr found, as LLVM reads it.
    fn build_id(&self) -> Range<usize> {
        self.bench.run("rm -f part; llvm-objcopy-23 --dump-section=.note.gnu.build-id=part found.co /dev/null");
        let (code, note) = (self.bench.read("found.co"), self.bench.read("part"));
        // After the words of a note and its owner, `GNU`.
        let id = &note[16..];
        let at = code.windows(id.len()).position(|window| window == id).expect("the note is in the file");
        at..at + id.len()
    }
}

/// The planted faults: names that host part and code would disagree about, and data without the host library.
#[test]
fn a_distributions_libraries_are_not_served_by_halves() {
    let Some(bench) = LibraryBench::new("a_distributions_libraries_are_not_served_by_halves") else { return };
    let rocrand = bench.library("rocrand");
    bench
        .serve(&["gfx1031", "--dest", "out", "--names", "own"], &[rocrand])
        .code(13)
        .stderr(contains("HS0414").and(contains("rocRAND")).and(contains("--names source")));
    let data = bench.library("rocblas").join("x86_64-linux-gnu/rocblas");
    bench
        .serve(&["gfx1031", "--dest", "out"], &[&data])
        .code(13)
        .stderr(contains("HS0421").and(contains("librocblas.so")));
    assert!(!bench.bench.directory().join("out").exists());
}
