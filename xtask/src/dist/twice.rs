//! Two builds on machines that differ: all installed files and all packages must have the same bytes.
//!
//! The first is a build of a copy of the sources with the crates that cargo downloaded. The second is `cargo xtask dist` in a source
//! tarball with vendored crates, in a directory of another name and depth, without a network, a repository and a directory of cargo,
//! with another umask, time zone and locale.

use super::{source_tarball, stage};
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run, sources};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Builds and compares; where an installation is given, with that one in the place of the first build.
pub(super) fn compare(profile: Profile, installed: Option<PathBuf>) -> Outcome {
    let directory = paths::scratch("dist-twice");
    remove::delete(&directory)?;
    let first = match installed {
        Some(installed) => installed,
        None => build_copy(&directory.join("a"), profile)?,
    };
    let packages = directory.join("packages");
    make_packages(&first, &packages, profile)?;
    let second = build_tarball(&directory.join("another/and deeper"), profile)?;
    let differences = differences(&first, &second.stage)?;
    if !differences.is_empty() {
        return fail(format!("two builds of the same sources differ in {}", differences.join(", ")));
    }
    println!("{} files are the same in both builds", stage::entries(&first)?.len());
    compare_packages(&packages, &second.packages)
}

/// Builds a copy of the sources, and installs it.
fn build_copy(place: &Path, profile: Profile) -> Outcome<PathBuf> {
    let sources = place.join("sources");
    copy_sources(&sources)?;
    let stage = place.join("stage");
    stage::lay_out(&sources, &place.join("target"), profile, &stage::BuildTarget::NATIVE, &stage)?;
    remove::delete(&place.join("target"))?;
    Ok(stage)
}

/// The packages of an installation, made with this machine's settings.
fn make_packages(installed: &Path, output: &Path, profile: Profile) -> Outcome {
    let mut command = Command::new("sh");
    // By this process: cargo replaces the file while a task runs.
    command.args(["-c", "umask 022; exec \"$@\"", "sh"]).arg(format!("/proc/{}/exe", process::id()));
    command.args(["dist", "--installed"]).arg(installed).arg("--output").arg(output);
    command.args((profile != Profile::Dist).then_some("--debug"));
    run::output(command.env("SOURCE_DATE_EPOCH", stage::epoch()?).env("TZ", "UTC").env("LC_ALL", "C")).map(drop)
}

/// The output of the task that ran in a tarball.
struct TarballBuild {
    stage: PathBuf,
    packages: PathBuf,
}

/// Settings of the second machine.
const UMASK: &str = "umask 077; exec \"$@\"";
const VARIABLES: [(&str, &str); 2] = [("TZ", "Pacific/Kiritimati"), ("LC_ALL", "C.UTF-8")];

/// `cargo xtask dist` in a source tarball.
fn build_tarball(place: &Path, profile: Profile) -> Outcome<TarballBuild> {
    let sources = place.join("sources");
    source_tarball::unpack(&sources, &stage::epoch()?)?;
    let (target, packages) = (place.join("target"), place.join("packages"));
    let mut command = Command::new("unshare");
    // Who is not root gets a network namespace of one's own as root of a user namespace.
    let is_root = rustix::process::geteuid().is_root();
    command.args(["--map-root-user"].iter().filter(|_| !is_root));
    command.args(["--net", "sh", "-c", UMASK, "sh"]).arg(paths::cargo());
    command.args(["xtask", "dist", "--output"]).arg(&packages);
    command.args((profile != Profile::Dist).then_some("--debug"));
    command.current_dir(&sources).env("CARGO_TARGET_DIR", &target).env("CARGO_HOME", place.join("cargo"));
    // The time of the packages is that of the files.
    command.env_remove("SOURCE_DATE_EPOCH").envs(VARIABLES);
    run::show(&mut command)?;
    let stage = place.join("stage");
    fs::rename(target.join("xtask/dist-stage"), &stage).during("move", &target)?;
    remove::delete(&target)?;
    Ok(TarballBuild { stage, packages })
}

fn compare_packages(one: &Path, other: &Path) -> Outcome {
    let differences = differences(one, other)?;
    if !differences.is_empty() {
        return fail(format!("packages of the same files differ: {}", differences.join(", ")));
    }
    println!("{} packages are the same; those of a source tarball needed no network", stage::entries(one)?.len());
    Ok(())
}

/// The files of the last commit and the changes to them, or all of a tarball.
fn copy_sources(target: &Path) -> Outcome {
    fs::create_dir_all(target).during("create", target)?;
    for name in sources::tracked_files(paths::workspace())? {
        let (source, target) = (paths::workspace().join(&name), target.join(&name));
        let directory = target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory).during("create", directory)?;
        if source.is_symlink() {
            symlink(fs::read_link(&source).during("read", &source)?, &target).during("write", &target)?;
        } else {
            fs::copy(&source, &target).during("copy", &source)?;
        }
    }
    Ok(())
}

fn differences(a: &Path, b: &Path) -> Outcome<Vec<String>> {
    let (first, second) = (relative_entry_paths(a)?, relative_entry_paths(b)?);
    let mut found: Vec<String> = Vec::new();
    for name in first.iter().chain(second.iter().filter(|name| !first.contains(name))) {
        if content(&a.join(name)) != content(&b.join(name)) {
            found.push(name.display().to_string());
        }
    }
    Ok(found)
}

fn relative_entry_paths(root: &Path) -> Result<Vec<PathBuf>, crate::outcome::Failure> {
    stage::entries(root)?.iter().map(|path| Ok(path.strip_prefix(root)?.to_owned())).collect()
}

/// The text of a link or the bytes of a file.
fn content(path: &Path) -> Option<Vec<u8>> {
    let link = fs::read_link(path).ok().map(|text| text.into_os_string().into_encoded_bytes());
    link.or_else(|| fs::read(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_missing_file_and_a_link_are_differences() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
        for root in [&a, &b] {
            fs::create_dir_all(root.join("d")).unwrap();
            fs::write(root.join("d/same"), "x").unwrap();
            fs::write(root.join("byte"), root.file_name().unwrap().as_encoded_bytes()).unwrap();
            std::os::unix::fs::symlink(root.file_name().unwrap(), root.join("link")).unwrap();
        }
        fs::write(b.join("d/more"), "x").unwrap();
        assert_eq!(differences(&a, &b).unwrap(), ["byte", "link", "d/more"]);
    }
}
