//! The task `corpus`: the contents of the packages that people install, and whether HotSwap handles them correctly.
//!
//! Each file with device code is listed, verified, extracted and compared with the output of clang-offload-bundler,
//! retargeted, pruned and compressed. Each output is verified, and loaded where the file itself can be. The results are
//! the table `docs/evidence/corpus.md`. It is run by hand and at night: the packages have gigabytes.
//!
//! Invariants: no part of a package enters the repository; a failing package gets a row with the reason, and the next
//! one follows.
//!
//! Absent on purpose: figures for comparison with another machine. Times are shown with that of `cp`.

mod file;
mod table;

use crate::built::Profile;
use crate::outcome::{During, Outcome};
use crate::packages::{self, Origin, Package, Packages};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove, run};
use clap::Parser;
use file::{PackageBench, Row};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Treats every file with device code in packages of Debian's and in wheels, and writes docs/evidence/corpus.md.
#[derive(Parser)]
struct Options {
    /// Only packages whose name contains this; the table keeps the rows of the others.
    only: Option<String>,
    /// Use this program instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    hotswap: Option<PathBuf>,
    /// Delete each package when it is done: together they have tens of gigabytes.
    #[arg(long)]
    forget: bool,
}

const fn sid(name: &'static str) -> Package {
    Package { name, origin: Origin::Sid }
}

const fn experimental(name: &'static str) -> Package {
    Package { name, origin: Origin::Experimental }
}

const fn wheel(name: &'static str, version: &'static str, python: &'static str) -> Package {
    Package { name, origin: Origin::Wheel { version, python } }
}

#[rustfmt::skip]
const PACKAGES: &[Package] = &[
    sid("librocrand1"), experimental("librocrand1"), sid("librocsparse1"), experimental("librocsparse1"),
    sid("librocblas4"), experimental("librocblas5"), sid("librocsolver0"), experimental("librocsolver0"),
    experimental("librccl1"), sid("migraphx-tools"), sid("libmagma2-rocm"), experimental("librpp2-hip"),
    sid("libggml0-backend-hip"), experimental("libhipblaslt1"),
    wheel("jax-rocm7-pjrt", "0.12.0", "3.12"), wheel("bitsandbytes", "0.50.2", "3.12"),
    wheel("tensorflow-rocm", "2.14.0.600", "3.11"), wheel("cupy-rocm-7-0", "14.2.0", "3.12"),
    wheel("onnxruntime-rocm", "1.22.2.post1", "3.12"),
    wheel("cyllama-rocm", "0.7.0", "3.12"), wheel("inferna-rocm", "0.7.0", "3.12"), wheel("ftllm-rocm", "0.1.5.1", "3.12"),
    wheel("gafime-rocm", "0.4.7", "3.12"), wheel("jax-rocm7-plugin", "0.12.0", "3.12"),
];

/// The first bytes of host files and containers.
const MAGICS: &[&[u8]] = &[b"\x7fELF", b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__", b"!<arch>\n", b"\x10\xff\x10\xad"];

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("corpus"));
    remove::delete(&work)?;
    let session = Session::open(Part::Tests, &prefix, &work)?;
    let hotswap = match &options.hotswap {
        Some(program) => fs::canonicalize(program).during("find", program)?,
        None => {
            install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
            prefix.join("bin/hotswap")
        }
    };
    let loader = fs::read(paths::workspace().join("tests/comgr/load.c"))?;
    fs::write(work.join("load.c"), loader).during("write", &work)?;
    let build = ["-std=c11", "-rdynamic", "-o", "load", "load.c", "-lamdhip64", "-ldl"];
    run::quiet(session.inside(&session.work, "cc").args(build))?;
    let bench = PackageBench { session, hotswap, work: work.clone() };
    let store = Packages::open()?;
    let output = paths::workspace().join("docs/evidence/corpus.md");
    let is_wanted = |package: &&Package| options.only.as_ref().is_none_or(|part| package.name.contains(part.as_str()));
    for package in PACKAGES.iter().filter(is_wanted) {
        let rows = rows(&bench, &store, package)?;
        table::update(&output, &title(&store, package), &rows)?;
        if options.forget {
            store.forget(package)?;
        }
    }
    remove::delete(&work)?;
    println!("The table is in {}", output.display());
    Ok(())
}

/// Name and version, as the table has them.
fn title(store: &Packages, package: &Package) -> String {
    let kind = match package.origin {
        Origin::Sid => "Debian sid",
        Origin::Experimental => "Debian experimental",
        Origin::Wheel { .. } | Origin::ArmWheel { .. } => "wheel",
        Origin::DebianSource => "sources of Debian",
        Origin::Crate { .. } => "crate",
        Origin::Sdist { .. } => "source distribution",
    };
    let version = store.get(package).map_or_else(|_| "not to be had".to_owned(), |unpacked| unpacked.version);
    format!("{} {version} ({kind})", package.name)
}

/// A row for each library, and one for all files with another extension.
fn rows(bench: &PackageBench, store: &Packages, package: &Package) -> Outcome<Vec<(String, Row)>> {
    let unpacked = match store.get(package) {
        Ok(unpacked) => unpacked,
        Err(error) => {
            println!("{}: {error}", package.name);
            return Ok(vec![("-".to_owned(), Row::failed("the package is not to be had"))]);
        }
    };
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (path, size) in packages::files(&unpacked.directory)? {
        if size < 64 || !can_hold_code(&path)? {
            continue;
        }
        let Some(row) = bench.file(&path)? else { continue };
        println!("{}: {}", path.display(), row.text());
        rows.entry(key(&path)).or_default().add(row);
    }
    Ok(rows.into_iter().collect())
}

fn can_hold_code(path: &Path) -> Outcome<bool> {
    let mut begin = [0; 24];
    let count = File::open(path).during("open", path)?.read(&mut begin).during("read", path)?;
    Ok(MAGICS.iter().any(|magic| begin[..count].starts_with(magic)))
}

/// Libraries have rows of their own; of kernel files there are hundreds.
fn key(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    match extension.filter(|extension| ["co", "hsaco", "o", "a"].contains(&extension.as_str())) {
        Some(extension) => format!("*.{extension}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_share_a_row() {
        let of = |path: &str| key(Path::new(path));
        assert_eq!((of("a/x.co"), of("b/Kernels.so-000-gfx900.hsaco")), ("*.co".to_owned(), "*.hsaco".to_owned()));
        assert_eq!(of("usr/lib/librccl.so.1.0"), "librccl.so.1.0");
    }

    #[test]
    fn no_package_is_there_twice() {
        let same = |one: &Package| PACKAGES.iter().filter(|other| *other == one).count();
        assert!(PACKAGES.iter().all(|package| same(package) == 1));
    }
}
