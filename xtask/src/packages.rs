//! Packages of the registries as real input: Debian's by apt, wheels by pip, sources by apt, cargo and pip, unpacked in the cache
//! directory.
//!
//! Invariants: A package's directory gets its name only when complete. Downloads use the machine's own apt, pip and cargo,
//! which verify them. No part of them enters the repository.
//!
//! Absent on purpose: dependencies. Device code is read, never run, so only the files of a package are needed.

use crate::isa_source::Apt;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run, xz};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The origin of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Sid,
    Experimental,
    /// A wheel: its version, and its version of CPython.
    Wheel {
        version: &'static str,
        python: &'static str,
    },
    /// The same for Arm: a project whose wheels for x86-64 carry gigabytes of libraries has its headers and Python there, too.
    ArmWheel {
        version: &'static str,
        python: &'static str,
    },
    /// The sources of a package of Debian's: the newest version that the mirror has.
    DebianSource,
    /// The files of a crate of that version.
    Crate {
        version: &'static str,
    },
    /// The files of a source distribution of Python's index.
    Sdist {
        version: &'static str,
    },
}

/// A package of one registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) origin: Origin,
}

/// A package that was downloaded and unpacked.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// Its version, as the registry spells it.
    pub(crate) version: String,
    pub(crate) directory: PathBuf,
}

/// Platforms of wheels, the newest first: pip takes the first that a project has.
const PLATFORMS: &[&str] = &[
    "manylinux_2_34_x86_64",
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
];

/// Those of wheels for Arm.
const ARM_PLATFORMS: &[&str] = &["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"];

/// Inside the directory of a package: its files, and its version.
const CONTENT: &str = "content";
const VERSION: &str = "VERSION";

/// The store of packages in the cache directory. apt's lists are updated once, when the first package is missing.
pub(crate) struct Packages {
    directory: PathBuf,
    apt: OnceLock<Apt>,
}

impl Packages {
    pub(crate) fn open() -> Outcome<Self> {
        let directory = paths::cache()?.join("packages");
        fs::create_dir_all(&directory).during("create", &directory)?;
        Ok(Self { directory, apt: OnceLock::new() })
    }

    /// The package, downloaded and unpacked now if it does not exist.
    pub(crate) fn get(&self, package: &Package) -> Outcome<Unpacked> {
        let directory = self.directory.join(key(package));
        let _lock = self.lock()?;
        if !directory.exists() {
            let partial = directory.with_extension("partial");
            remove::delete(&partial)?;
            fs::create_dir_all(partial.join(CONTENT)).during("create", &partial)?;
            let version = match package.origin {
                Origin::Sid => self.download_deb(package.name, "sid", &partial)?,
                Origin::Experimental => self.download_deb(package.name, "experimental", &partial)?,
                Origin::Wheel { version, python } => {
                    download_wheel(package.name, version, python, PLATFORMS, &partial)?
                }
                Origin::ArmWheel { version, python } => {
                    download_wheel(package.name, version, python, ARM_PLATFORMS, &partial)?
                }
                Origin::DebianSource => self.download_source(package.name, &partial)?,
                Origin::Crate { version } => download_crate(package.name, version, &partial)?,
                Origin::Sdist { version } => download_sdist(package.name, version, &partial)?,
            };
            let file = partial.join(VERSION);
            fs::write(&file, format!("{version}\n")).during("write", &file)?;
            fs::rename(&partial, &directory).during("rename", &partial)?;
        }
        let file = directory.join(VERSION);
        let version = fs::read_to_string(&file).during("read", &file)?.trim().to_owned();
        Ok(Unpacked { version, directory: directory.join(CONTENT) })
    }

    /// The package as one file, downloaded now if it does not exist.
    pub(crate) fn file(&self, package: &Package) -> Outcome<PathBuf> {
        let directory = self.directory.join(format!("{}-file", key(package)));
        let _lock = self.lock()?;
        if !directory.exists() {
            let partial = directory.with_extension("partial");
            remove::delete(&partial)?;
            fs::create_dir_all(&partial).during("create", &partial)?;
            match package.origin {
                Origin::Sid => self.fetch_deb(package.name, "sid", &partial)?,
                Origin::Experimental => self.fetch_deb(package.name, "experimental", &partial)?,
                Origin::Wheel { version, python } => fetch_wheel(package.name, version, python, PLATFORMS, &partial)?,
                Origin::ArmWheel { version, python } => {
                    fetch_wheel(package.name, version, python, ARM_PLATFORMS, &partial)?
                }
                Origin::DebianSource | Origin::Crate { .. } | Origin::Sdist { .. } => {
                    return fail(format!("{} is no package", package.name));
                }
            };
            fs::rename(&partial, &directory).during("rename", &partial)?;
        }
        let extension =
            if matches!(package.origin, Origin::Wheel { .. } | Origin::ArmWheel { .. }) { "whl" } else { "deb" };
        only_file(&directory, extension)
    }

    /// Tasks that run at the same time download one after the other.
    fn lock(&self) -> Outcome<File> {
        let path = self.directory.join("lock");
        let file = File::options().create(true).append(true).open(&path).during("open", &path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// Deletes an unpacked package: some have gigabytes.
    pub(crate) fn forget(&self, package: &Package) -> Outcome {
        remove::delete(&self.directory.join(key(package)))
    }

    fn apt(&self) -> Outcome<&Apt> {
        if let Some(apt) = self.apt.get() {
            return Ok(apt);
        }
        let apt = Apt::new(&self.directory, "deb")?;
        run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
        Ok(self.apt.get_or_init(|| apt))
    }

    /// Downloads and unpacks a package of Debian's. Returns its version.
    fn download_deb(&self, name: &str, suite: &str, partial: &Path) -> Outcome<String> {
        let archive = self.fetch_deb(name, suite, partial)?;
        let version = run::output(Command::new("dpkg-deb").arg("-f").arg(&archive).arg("Version"))?;
        run::output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(partial.join(CONTENT)))?;
        fs::remove_file(&archive).during("delete", &archive)?;
        Ok(version.trim().to_owned())
    }

    /// Downloads and unpacks the sources of a package, without Debian's changes. Returns their version.
    fn download_source(&self, name: &str, partial: &Path) -> Outcome<String> {
        println!("Downloading the sources of {name}");
        let directory = self.directory.join("apt-sources");
        fs::create_dir_all(&directory).during("create", &directory)?;
        let apt = Apt::new(&directory, "deb-src")?;
        run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
        let version = apt.download_source(name, partial)?;
        let archive = run::output(Command::new("sh").args(["-c", "ls *.orig.tar.*"]).current_dir(partial))?;
        let archive = partial.join(archive.trim());
        xz::unpack_parts(&archive, &partial.join(CONTENT), &[])?;
        fs::remove_file(&archive).during("delete", &archive)?;
        Ok(version)
    }

    fn fetch_deb(&self, name: &str, suite: &str, partial: &Path) -> Outcome<PathBuf> {
        println!("Downloading {name} of {suite}");
        let package = format!("{name}/{suite}");
        run::output(self.apt()?.command("apt-get", &["download", "-q", &package]).current_dir(partial))?;
        only_file(partial, "deb")
    }
}

/// Downloads and unpacks a crate, without those that it uses. Returns its version.
fn download_crate(name: &str, version: &str, partial: &Path) -> Outcome<String> {
    println!("Downloading the crate {name} {version}");
    let user = partial.join("user");
    fs::create_dir_all(user.join("src")).during("create", &user)?;
    let manifest = format!("[package]\nname = \"user\"\n[workspace]\n[dependencies]\n{name} = \"={version}\"\n");
    fs::write(user.join("Cargo.toml"), manifest).during("write", &user)?;
    fs::write(user.join("src/lib.rs"), "").during("write", &user)?;
    run::output(Command::new(paths::cargo()).args(["vendor", "--quiet", "vendored"]).current_dir(&user))?;
    let (from, to) = (user.join("vendored").join(name), partial.join(CONTENT));
    fs::remove_dir(&to).during("delete", &to)?;
    fs::rename(&from, &to).during("rename", &from)?;
    remove::delete(&user)?;
    Ok(version.to_owned())
}

/// Downloads and unpacks a source distribution. Returns its version. pip insists on running its setup afterwards, in this Python
/// without what it needs; `--no-clean` keeps what was unpacked, whether that works or not.
fn download_sdist(name: &str, version: &str, partial: &Path) -> Outcome<String> {
    println!("Downloading the sources of {name} {version} for Python");
    let temporary = partial.join("temporary");
    fs::create_dir_all(&temporary).during("create", &temporary)?;
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--no-binary=:all:"]);
    command.args(["--no-build-isolation", "--no-clean", "--dest"]).arg(partial.join("archive"));
    let output = command.arg(format!("{name}=={version}")).env("TMPDIR", &temporary).output()?;
    let Some(unpacked) = find_unpacked_sdist(&temporary)? else {
        return fail(format!("pip did not download {name} {version}\n{}", String::from_utf8_lossy(&output.stderr)));
    };
    let to = partial.join(CONTENT);
    fs::remove_dir(&to).during("delete", &to)?;
    fs::rename(&unpacked, &to).during("rename", &unpacked)?;
    remove::delete(&temporary)?;
    remove::delete(&partial.join("archive"))?;
    Ok(version.to_owned())
}

/// The directory that pip unpacked a source distribution into: the one with `PKG-INFO`, two levels below its temporary directory.
fn find_unpacked_sdist(temporary: &Path) -> Outcome<Option<PathBuf>> {
    for outer in fs::read_dir(temporary).during("read", temporary)? {
        let outer = outer?.path();
        for inner in fs::read_dir(&outer).into_iter().flatten() {
            let inner = inner?.path();
            if inner.join("PKG-INFO").exists() {
                return Ok(Some(inner));
            }
        }
    }
    Ok(None)
}

/// Downloads and unpacks a wheel. Returns its version.
fn download_wheel(name: &str, version: &str, python: &str, platforms: &[&str], partial: &Path) -> Outcome<String> {
    let wheel = fetch_wheel(name, version, python, platforms, partial)?;
    run::output(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(partial.join(CONTENT)))?;
    fs::remove_file(&wheel).during("delete", &wheel)?;
    Ok(version.to_owned())
}

fn fetch_wheel(name: &str, version: &str, python: &str, platforms: &[&str], partial: &Path) -> Outcome<PathBuf> {
    println!("Downloading the wheel {name} {version}");
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]);
    command.args(["--python-version", python, "--implementation", "cp"]);
    command.args(platforms.iter().flat_map(|platform| ["--platform", platform]));
    run::output(command.arg("--dest").arg(partial).arg(format!("{name}=={version}")))?;
    only_file(partial, "whl")
}

/// Name of a package's directory.
fn key(package: &Package) -> String {
    match package.origin {
        Origin::Sid => format!("{}-sid", package.name),
        Origin::Experimental => format!("{}-experimental", package.name),
        Origin::Wheel { version, python } => format!("{}-{version}-cp{python}", package.name),
        Origin::ArmWheel { version, python } => format!("{}-{version}-cp{python}-arm", package.name),
        Origin::DebianSource => format!("{}-source", package.name),
        Origin::Crate { version } => format!("{}-{version}-crate", package.name),
        Origin::Sdist { version } => format!("{}-{version}-sdist", package.name),
    }
}

/// The one file of the directory with that extension.
fn only_file(directory: &Path, extension: &str) -> Outcome<PathBuf> {
    let entries = fs::read_dir(directory).during("read", directory)?.collect::<Result<Vec<_>, _>>()?;
    let fits = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(fits).collect();
    match (paths.pop(), paths.len()) {
        (Some(path), 0) => Ok(path),
        (_, more) => fail(format!("{} holds {} files .{extension}, not one", directory.display(), more)),
    }
}

/// Regular files below the directory, with their sizes, in the order of their paths. Links are not followed.
pub(crate) fn files(directory: &Path) -> Outcome<Vec<(PathBuf, u64)>> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).during("read", &directory)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata().during("read", &path)?;
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_file() {
                found.push((path, metadata.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_a_directory_of_its_own() {
        let wheel = Origin::Wheel { version: "1.2", python: "3.12" };
        let [part, sdist] = [Origin::Crate { version: "1.2" }, Origin::Sdist { version: "1.2" }];
        let arm = Origin::ArmWheel { version: "1.2", python: "3.12" };
        let origins = [Origin::Sid, Origin::Experimental, wheel, arm, Origin::DebianSource, part, sdist];
        let keys = origins.map(|origin| key(&Package { name: "x", origin }));
        assert_eq!(
            keys,
            ["x-sid", "x-experimental", "x-1.2-cp3.12", "x-1.2-cp3.12-arm", "x-source", "x-1.2-crate", "x-1.2-sdist"]
        );
    }

    #[test]
    fn unpacked_sources_are_the_directory_with_their_description() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("pip-build-env-1/overlay")).unwrap();
        assert_eq!(find_unpacked_sdist(directory.path()).unwrap(), None);
        let sources = directory.path().join("pip-download-1/x_1");
        fs::create_dir_all(&sources).unwrap();
        fs::write(sources.join("PKG-INFO"), "").unwrap();
        assert_eq!(find_unpacked_sdist(directory.path()).unwrap(), Some(sources));
    }

    #[test]
    fn a_download_is_one_file() {
        let directory = tempfile::tempdir().unwrap();
        assert!(only_file(directory.path(), "deb").is_err());
        fs::write(directory.path().join("a.deb"), "").unwrap();
        assert_eq!(only_file(directory.path(), "deb").unwrap(), directory.path().join("a.deb"));
        fs::write(directory.path().join("b.deb"), "").unwrap();
        assert!(only_file(directory.path(), "deb").is_err());
    }

    #[test]
    fn files_are_found_in_the_order_of_their_paths() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("usr/lib")).unwrap();
        fs::write(directory.path().join("usr/notes"), "a").unwrap();
        fs::write(directory.path().join("usr/lib/x.so.1"), "library").unwrap();
        std::os::unix::fs::symlink("x.so.1", directory.path().join("usr/lib/x.so")).unwrap();
        let found = files(directory.path()).unwrap();
        let expected = [("usr/lib/x.so.1", 7), ("usr/notes", 1)];
        assert_eq!(found, expected.map(|(name, size)| (directory.path().join(name), size)));
    }
}
