//! The task `install`: build HotSwap and lay out its installation. The demo builds and installs a part of it: what builds, lists
//! and runs programs, without libhotswap, the library of names, the profile runtime, man pages and notices.
//!
//! Invariants: The contents of the prefix after a run do not depend on its previous contents. Links are relative, so
//! that the directory can be moved. The tools find each other by their own path.

use crate::built::{Built, Profile};
use crate::c_compiler::CCompiler;
use crate::outcome::{During, Failure, Outcome, fail};
use crate::preflight::{self, TaskNeeds};
use crate::{c_library, documents, libdir, paths, remove, rocm, run};
use clap::Parser;
use hotswap_userland::{EMULATED_DIRECTORY, EMULATED_LIBRARY, link_emulated};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds HotSwap and installs it below a directory. DESTDIR is honoured.
#[derive(Parser)]
struct Options {
    /// Directory of the installation, for example /usr/local.
    #[arg(long)]
    prefix: PathBuf,
    /// Directory of libraries for programs, below the prefix: lib64, or the machine's directory.
    #[arg(long, default_value = "lib")]
    libdir: PathBuf,
    /// The clang that HotSwap uses where nothing else is configured. Without this option, the
    /// first one of the machine that builds a HIP program (not looked for with DESTDIR).
    #[arg(long)]
    clang: Option<PathBuf>,
    /// Link a patch family of your own into the tools: its name, and a static library that defines
    /// hotswap_register_NAME_patch. May be repeated; families are asked in that order, after HotSwap's own.
    #[arg(long, value_name = "NAME=LIBRARY")]
    family: Vec<String>,
    /// Link the machine's liblzma (5.8 or newer, found by pkg-config) in place of the copy that is compiled in.
    #[arg(long)]
    system_xz: bool,
    /// Install a build without optimisation.
    #[arg(long)]
    debug: bool,
}

/// Link-time optimisation needs the bitcode of all crates.
const NEEDS: TaskNeeds = TaskNeeds { target: 1_500_000_000, part: None };

/// Packages with installed files.
#[rustfmt::skip]
pub(crate) const PACKAGES: &[&str] = &["hotswap", "hotswap-driver-wrapper", "hotswap-linker-plugin", "hotswap-families",
                            "hotswap-profile-drain", "hotswap-names", "hotswap-c", "hotswap-hsa-emulated"];

/// Those that build, list and run HIP programs.
#[rustfmt::skip]
const DEMO_PACKAGES: &[&str] = &["hotswap", "hotswap-driver-wrapper", "hotswap-linker-plugin", "hotswap-families",
                                 "hotswap-hsa-emulated"];

/// Cargo's outputs, and their installed paths.
#[rustfmt::skip]
const PROGRAMS: &[(&str, &str)] = &[
    ("hotswap", "bin/hotswap"),
    ("hotswap-clang", "bin/hotswap-clang"),
    ("hotswap-lld", "libexec/hotswap/lld"),
];

/// Other names of programs: path, and the link's content.
#[rustfmt::skip]
const LINKS: &[(&str, &str)] = &[
    ("bin/hotswap-clang++", "hotswap-clang"),
    // For hipcc, whose HIP_CLANG_PATH is a directory.
    ("lib/hotswap/clang/clang", "../../../bin/hotswap-clang"),
    ("lib/hotswap/clang/clang++", "../../../bin/hotswap-clang"),
    ("libexec/hotswap/ld.lld", "lld"),
    ("libexec/hotswap/clang-offload-bundler", "lld"),
    ("libexec/hotswap/clang-linker-wrapper", "lld"),
    ("libexec/hotswap/llvm-offload-binary", "lld"),
    ("libexec/hotswap/clang-offload-packager", "lld"),
    ("libexec/hotswap/hotswap-host-link", "lld"),
];

/// Tools that build systems look for beside a clang: each is a link to the wrapper in two directories.
#[rustfmt::skip]
pub(crate) const TOOL_LINKS: &[&str] = &["clang-scan-deps", "llvm-addr2line", "llvm-ar", "llvm-config", "llvm-nm", "llvm-objcopy",
                              "llvm-objdump", "llvm-ranlib", "llvm-readelf", "llvm-strip"];

/// As [`LINKS`], for programs that are linked with libhotswap.
const LIBRARY_LINK: (&str, &str) = ("lib/libhotswap.so", c_library::LIBRARY);

/// Cargo's shared libraries, and their installed names.
const LIBRARIES: &[(&str, &str)] = &[("libhotswap_names.so", "libhotswap-names.so")];

/// Archives for the programs of users, which the build scripts of `hotswap-families` and `hotswap-profile-drain` make.
const REGISTRY: &str = "libhotswap_registry.a";
const DRAIN: &str = "libhotswap-profile-drain.a";

/// Files and directories of the workspace, and their installed paths. A directory's files keep their names.
const FILES: &[(&str, &str)] = &[
    ("crates/retarget/families/patches.def", "share/hotswap/patches.def"),
    ("crates/retarget/family-abi/include", "include/hotswap"),
    ("crates/products/libhotswap/include/hotswap.h", "include/hotswap.h"),
    ("crates/products/libhotswap/hotswap.pc", "lib/pkgconfig/hotswap.pc"),
    ("cmake", "share/cmake/HotSwap"),
    ("LICENSE", "share/doc/hotswap/LICENSE"),
    ("CHANGELOG.md", "share/doc/hotswap/CHANGELOG.md"),
    ("SECURITY.md", "share/doc/hotswap/SECURITY.md"),
];

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    if !options.prefix.is_absolute() {
        return fail("--prefix must be an absolute path");
    }
    let libraries = libdir::relative(&options.prefix, &options.libdir)?;
    let staging = env::var_os("DESTDIR").map(PathBuf::from);
    let clang = options.clang.or_else(|| search_native_clang(&staging));
    let place = match &staging {
        Some(staging) => staging.join(options.prefix.strip_prefix("/")?),
        None => options.prefix,
    };
    let families = family_libraries(&options.family)?;
    preflight::check(&NEEDS)?;
    let profile = if options.debug { Profile::Dev } else { Profile::Dist };
    if options.system_xz {
        require_system_xz()?;
    }
    let features: &[&str] = if options.system_xz { &["--no-default-features"] } else { &[] };
    lay_out(&place, clang.as_deref(), &build_with(profile, &families, features)?)?;
    libdir::move_libraries(&place, &libraries)?;
    println!("Installed in {}", place.display());
    match clang {
        Some(clang) => println!("Default compiler: {}", clang.display()),
        None => println!("No default compiler: HotSwap looks for one when it runs (HOTSWAP_CLANG names one)"),
    }
    Ok(())
}

/// Stops with the version that is there: pkg-config itself says nothing of one that is too old.
fn require_system_xz() -> Outcome {
    if run::output(Command::new("pkg-config").args(["--atleast-version=5.8.0", "liblzma"])).is_ok() {
        return Ok(());
    }
    let present = match run::output(Command::new("pkg-config").args(["--modversion", "liblzma"])) {
        Ok(version) => format!("pkg-config finds {}", version.trim()),
        Err(error) => error.to_string(),
    };
    fail(format!("--system-xz needs liblzma 5.8.0 or newer with its headers (Debian's liblzma-dev): {present}"))
}

fn search_native_clang(staging: &Option<PathBuf>) -> Option<PathBuf> {
    rocm::search().found.map(|native| native.clang).filter(|_| staging.is_none())
}

/// Builds and installs below `place`; `clang` becomes the default compiler.
pub(crate) fn install(place: &Path, profile: Profile, clang: Option<&Path>) -> Outcome {
    lay_out(place, clang, &build(profile, OsStr::new(""))?)
}

/// Installs what was built.
pub(crate) fn lay_out(place: &Path, clang: Option<&Path>, built: &Built) -> Outcome {
    lay_out_from(paths::workspace(), place, clang, built, &CCompiler::from_env()?)
}

/// Installs the tools that the demo shows, in the place of whatever is installed there.
pub(crate) fn lay_out_demo(place: &Path, clang: Option<&Path>, built: &Built) -> Outcome {
    for entry in fs::read_dir(place).during("read", place)?.flatten() {
        remove::delete(&entry.path())?;
    }
    lay_out_tools(paths::workspace(), place, built, &CCompiler::from_env()?, link_or_copy)?;
    write_defaults(place, clang)
}

/// Installs what was built from these sources, with the libraries that this C compiler links. Programs for another machine cannot
/// run here, and do not make their man pages.
pub(crate) fn lay_out_from(
    sources: &Path,
    place: &Path,
    clang: Option<&Path>,
    built: &Built,
    compiler: &CCompiler,
) -> Outcome {
    lay_out_tools(sources, place, built, compiler, copy)?;
    copy_archive(built, DRAIN, place)?;
    for (name, target) in LIBRARIES {
        copy(library(built, name)?, &place.join("lib/hotswap").join(target))?;
    }
    link(LIBRARY_LINK.1, &place.join(LIBRARY_LINK.0))?;
    let archive = archive_of(built, c_library::ARCHIVE)?;
    replace_by(&place.join("lib/libhotswap.a"), |temporary| c_library::write_archive(archive, temporary, compiler))?;
    replace_by(&place.join("lib").join(c_library::LIBRARY), |temporary| c_library::link(archive, temporary, compiler))?;
    documents::write(sources, place, !compiler.is_cross())?;
    write_defaults(place, clang)
}

/// Installs the programs by `put`, their files, and the library of emulated GPUs.
fn lay_out_tools(
    sources: &Path,
    place: &Path,
    built: &Built,
    compiler: &CCompiler,
    put: fn(&Path, &Path) -> Outcome,
) -> Outcome {
    for (name, target) in PROGRAMS {
        let program = built.programs.iter().find(|path| path.file_name().is_some_and(|file| file == *name));
        put(program.ok_or_else(|| missing(name))?, &place.join(target))?;
    }
    for (name, target) in LINKS {
        link(target, &place.join(name))?;
    }
    for name in TOOL_LINKS {
        link("hotswap-clang", &place.join(format!("bin/hotswap-{name}")))?;
        link("../../../bin/hotswap-clang", &place.join("lib/hotswap/clang").join(name))?;
    }
    copy_archive(built, REGISTRY, place)?;
    link_hsa(place, built, compiler)?;
    for (source, target) in FILES {
        copy_all(&sources.join(source), &place.join(target))?;
    }
    Ok(())
}

/// Installs an archive that a build script made.
fn copy_archive(built: &Built, name: &str, place: &Path) -> Outcome {
    let archive = built.directories.iter().map(|directory| directory.join(name)).find(|path| path.exists());
    copy(&archive.ok_or_else(|| missing(name))?, &place.join("lib/hotswap").join(name))
}

fn library<'b>(built: &'b Built, name: &str) -> Outcome<&'b PathBuf> {
    let found = built.libraries.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    found.ok_or_else(|| missing(name))
}

/// The archive of a library crate. Where cargo builds it for tests only, its name has the hash of the build.
fn archive_of<'b>(built: &'b Built, name: &str) -> Outcome<&'b PathBuf> {
    let stem = name.trim_end_matches(".a");
    built.libraries.iter().find(|one| is_archive_of_stem(one, stem)).ok_or_else(|| missing(name))
}

fn is_archive_of_stem(path: &&PathBuf, stem: &str) -> bool {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let own = file.strip_prefix(stem).and_then(|rest| rest.strip_suffix(".a"));
    own.is_some_and(|hash| hash.is_empty() || hash.starts_with('-'))
}

/// Links the HSA library of emulated GPUs.
fn link_hsa(place: &Path, built: &Built, compiler: &CCompiler) -> Outcome {
    let archive = archive_of(built, "libhotswap_hsa_emulated.a")?;
    replace_by(&place.join(EMULATED_DIRECTORY).join(EMULATED_LIBRARY), |temporary| {
        link_emulated(archive, paths::workspace(), temporary, compiler.command())
            .map_err(|error| std::io::Error::other(error).into())
    })
}

/// The value of `HOTSWAP_FAMILIES` for these `NAME=LIBRARY`: absolute paths of existing libraries.
fn family_libraries(families: &[String]) -> Outcome<OsString> {
    let all: Vec<String> = families.iter().map(absolute_family_library).collect::<Outcome<_>>()?;
    env::join_paths(all).or_else(|_| fail("--family: the path of a library has a colon"))
}

fn absolute_family_library(family: &String) -> Result<String, Failure> {
    let Some((name, library)) = family.split_once('=') else {
        return fail(format!("--family {family}: NAME=LIBRARY is expected"));
    };
    let path = fs::canonicalize(library).during("read", Path::new(library))?;
    Ok(format!("{name}={}", path.display()))
}

/// The configuration with the lowest precedence.
fn write_defaults(place: &Path, clang: Option<&Path>) -> Outcome {
    let file = &place.join("lib/hotswap/defaults.toml");
    let Some(clang) = clang.map(|clang| clang.display().to_string()) else {
        let _ = fs::remove_file(file); // of an earlier installation
        return Ok(());
    };
    if clang.contains(['\'', '\n']) {
        return fail(format!("{clang}: a path with a quote cannot be the default compiler"));
    }
    replace(file, |temporary| fs::write(temporary, format!("# Written by the installation.\nclang = '{clang}'\n")))
}

fn missing(name: &str) -> Failure {
    std::io::Error::other(format!("cargo built no {name}")).into()
}

/// Builds what has something to install, with these libraries of patch families in the tools.
pub(crate) fn build(profile: Profile, families: &OsStr) -> Outcome<Built> {
    build_with(profile, families, &[])
}

/// As [`build`], with cargo's arguments for features.
fn build_with(profile: Profile, families: &OsStr, features: &[&str]) -> Outcome<Built> {
    let mut command = Command::new(paths::cargo());
    // Without the option, the environment's own value applies: cargo would build again for an empty one.
    if !families.is_empty() {
        command.env("HOTSWAP_FAMILIES", families);
    }
    let packages = if profile == Profile::Demo { DEMO_PACKAGES } else { PACKAGES };
    let packages = packages.iter().flat_map(|name| ["-p", name]);
    Built::new(
        command,
        &["build"]
            .into_iter()
            .chain(profile.arguments())
            .chain(features.iter().copied())
            .chain(packages)
            .collect::<Vec<_>>(),
    )
}

/// Copies a file next to its destination and renames it: a running program is not disturbed.
fn copy(source: &Path, target: &Path) -> Outcome {
    replace(target, |temporary| fs::copy(source, temporary).map(drop))
}

/// A further name of a program that cargo has built, where the file system allows it: cargo replaces its outputs, and never
/// writes into them.
fn link_or_copy(source: &Path, target: &Path) -> Outcome {
    replace(target, |temporary| fs::hard_link(source, temporary).or_else(|_| fs::copy(source, temporary).map(drop)))
}

fn link(text: &str, target: &Path) -> Outcome {
    replace(target, |temporary| symlink(text, temporary))
}

pub(crate) fn replace(target: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Outcome {
    replace_by(target, |temporary| make(temporary).during("write", temporary))
}

/// As [`replace`], for files that another program writes.
fn replace_by(target: &Path, make: impl FnOnce(&Path) -> Outcome) -> Outcome {
    let directory = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).during("create", directory)?;
    let temporary = directory.join(format!(".{}.installing", target.file_name().unwrap_or_default().display()));
    let _ = fs::remove_file(&temporary); // left by a killed run, if at all
    make(&temporary)?;
    fs::rename(&temporary, target).during("write", target)
}

/// A file, or the files of a directory and its directories.
fn copy_all(source: &Path, target: &Path) -> Outcome {
    if !source.is_dir() {
        return copy(source, target);
    }
    // Files of an older version must not stay: CMake reads every file of its directory.
    let _ = fs::remove_dir_all(target);
    for entry in fs::read_dir(source).during("read", source)?.flatten() {
        copy_all(&entry.path(), &target.join(entry.file_name()))?;
    }
    Ok(())
}
