//! The task `dist`: packages for users. One build, one staged installation, a tarball and Debian packages of it.
//!
//! | module | task |
//! | --- | --- |
//! | `source_tarball` | the sources with vendored crates, without a repository |
//! | `stage` | the build with remapped paths, the installation below a directory |
//! | `deb` | Debian packages of parts of it |
//! | `glibc` | the C library that files need |
//! | `sysroot` | headers and libraries of an older C library, to build against |
//! | `from_source` | a project with HotSwap's sources, built by Debian's Rust without a network |
//! | `lint` | packages as lintian and rpmlint judge them |
//! | `maintained` | packages as a distribution's maintainer meets them |
//! | `tried` | packages installed in a Debian root directory, where a HIP project is built |
//! | `emulated` | a package for another machine, run under qemu and compared with that for this one |
//! | `twice` | two builds, one of a source tarball without a network, compared byte by byte |
//!
//! Invariants: the packages depend on the sources, the compiler and `SOURCE_DATE_EPOCH` only: names, order, owners, modes and
//! times of their entries are fixed. No path of the machine is in a file.
//!
//! Absent on purpose: signatures and uploads, which need keys.

mod deb;
mod emulated;
mod from_source;
mod glibc;
mod lint;
mod maintained;
mod source_tarball;
mod stage;
mod sysroot;
mod tried;
mod twice;

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, run, xz};
use clap::Parser;
use glibc::GlibcVersion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use sysroot::Sysroot;

/// Builds the packages: a tarball that can be unpacked anywhere, and Debian packages.
#[derive(Parser)]
struct Options {
    /// Directory for the packages.
    #[arg(long)]
    output: Option<PathBuf>,
    /// The target to build for, for example aarch64-unknown-linux-gnu; needs its standard library and a linker.
    #[arg(long)]
    target: Option<String>,
    /// The oldest glibc that the packages are for, for example 2.28: they are built against its libraries, which zig's wheel from
    /// PyPI has, and an installation with a file that needs a newer one makes none.
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["twice", "no_build"])]
    glibc: Option<GlibcVersion>,
    /// Build without optimisation, and compress little: to try the packages, not to publish them.
    #[arg(long)]
    debug: bool,
    /// Make the packages of this installation in place of a new build; with --twice, compare it with one build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
    /// Use the packages that are in the output directory.
    #[arg(long)]
    no_build: bool,
    /// Afterwards, install each package in a Debian root directory and build a HIP project there; with --target, run the program
    /// under qemu, and compare it with that of the packages for this machine.
    #[arg(long = "try")]
    try_them: bool,
    /// Afterwards, install the Debian package with apt in a new Debian root directory without HIP, with what it recommends, and
    /// build and run the project there.
    #[arg(long)]
    bare: bool,
    /// Afterwards, as a distribution's maintainer: in a Debian root directory, build a package of a library with device code by the
    /// Debian packages, twice, with Debian's flags; strip it, upgrade, and remove everything.
    #[arg(long)]
    maintain: bool,
    /// Afterwards, judge the Debian packages by lintian, and an RPM of the same files by rpmlint: no error and no warning.
    #[arg(long)]
    lint: bool,
    /// Afterwards, in a new Debian root directory with Debian's Rust, vendored crates and no network: build a project that has
    /// the sources of the last commit by FetchContent, and run it.
    #[arg(long)]
    source: bool,
    /// Build a copy of the sources, and a source tarball with vendored crates in a directory of another name without a network, and
    /// compare all installed files and packages.
    #[arg(long, conflicts_with_all = ["try_them", "bare", "maintain", "lint", "source", "no_build"])]
    twice: bool,
}

/// The largest package that is published without a question.
const LARGEST: u64 = 15 << 20;

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let profile = if options.debug { Profile::Checked } else { Profile::Dist };
    if options.twice {
        return twice::compare(profile, options.installed);
    }
    let output = options.output.clone().unwrap_or_else(|| paths::scratch("dist"));
    fs::create_dir_all(&output).during("create", &output)?;
    if !options.no_build {
        make(&options, profile, &output)?;
    }
    for package in packages(&output)? {
        let size = fs::metadata(&package).during("read", &package)?.len();
        println!("{}: {:.1} MB", package.display(), size as f64 / f64::from(1 << 20));
        if size > LARGEST && !options.debug {
            return fail(format!("{} is larger than {} MB", package.display(), LARGEST >> 20));
        }
    }
    if options.try_them && options.target.is_some() {
        return try_emulated(&options, &output);
    }
    if options.try_them {
        tried::install_and_build(&packages(&output)?)?;
    }
    if options.maintain {
        maintained::build_package(&packages(&output)?)?;
    }
    if options.lint {
        lint::judge_packages(&packages(&output)?, &options.installed.clone().unwrap_or_else(|| stage_of(None)))?;
    }
    if options.source {
        from_source::fetch_and_build(&packages(&output)?)?;
    }
    if options.bare { tried::in_bare_root(&packages(&output)?) } else { Ok(()) }
}

/// The directory that packages are made of.
fn stage_of(target: Option<&str>) -> PathBuf {
    paths::scratch(&target.map_or_else(|| "dist-stage".to_owned(), |target| format!("dist-stage-{target}")))
}

fn try_emulated(options: &Options, output: &Path) -> Outcome {
    let machine = stage::Machine::of(options.target.as_deref())?;
    let name = format!("hotswap-{VERSION}-{}-linux.tar.xz", machine.linux);
    emulated::compare(&output.join(name), machine, &stage_of(None).join("bin/hotswap"))
}

fn make(options: &Options, profile: Profile, output: &Path) -> Outcome {
    for old in packages(output)? {
        fs::remove_file(&old).during("delete", &old)?;
    }
    let target = options.target.as_deref();
    let stage = options.installed.clone().unwrap_or_else(|| stage_of(target));
    if options.installed.is_none() {
        build(options, profile, &stage)?;
    }
    glibc::judge_installation(&stage, options.glibc.as_ref())?;
    let machine = stage::Machine::of(target)?;
    // The programs share tables of megabytes, which the largest dictionary finds.
    let level = if options.debug { 0 } else { 9 };
    tarball(&stage, output, machine, level)?;
    deb::make_all(&stage, &deb::Destination { output, machine, level })
}

/// Builds the sources, against an older glibc where that is asked for, and installs them below `stage`.
fn build(options: &Options, profile: Profile, stage: &Path) -> Outcome {
    let target = options.target.as_deref();
    let Some(version) = &options.glibc else {
        let build = stage::BuildTarget { target, sysroot: None };
        return stage::lay_out(paths::workspace(), &paths::scratch("dist-target"), profile, &build, stage);
    };
    let sysroot = Sysroot::lay_out(version, stage::Machine::of(target)?, &stage::compiler_for(target)?)?;
    let directory = paths::scratch(&format!("dist-target-{version}"));
    let build = stage::BuildTarget { target, sysroot: Some(&sysroot) };
    stage::lay_out(paths::workspace(), &directory, profile, &build, stage)
}

/// The packages in a directory, in the order of their names.
fn packages(output: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(output).during("read", output)?.flatten().map(|entry| entry.path());
    let is_package = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".tar.xz") || name.ends_with(".deb")
    };
    let mut found: Vec<PathBuf> = entries.filter(is_package).collect();
    found.sort();
    Ok(found)
}

/// The version of the packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn tarball(stage: &Path, output: &Path, machine: &stage::Machine, level: u32) -> Outcome {
    let name = format!("hotswap-{VERSION}-{}-linux", machine.linux);
    let mut command = Command::new("tar");
    command.arg("--transform").arg(format!("s,^\\.,{name},rSH")).args(FIXED);
    command.arg(format!("--mtime=@{}", stage::epoch()?)).arg("-C").arg(stage).args(["-cf", "-", "."]);
    let file = output.join(format!("{name}.tar.xz"));
    println!("$ {} (compressed to {})", run::line(&command), file.display());
    xz::compress(&mut command, &file, level)
}

/// Options of tar that leave nothing of the machine in the archive. Links keep their text.
const FIXED: &[&str] =
    &["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "--format=gnu"];
