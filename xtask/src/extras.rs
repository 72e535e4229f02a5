//! Additions to the userland besides Debian's packages: a ROCm directory, and CMake of other versions.

use crate::outcome::{During, Outcome};
use crate::recipe::{CMAKE, Part, ROCM_LINKS};
use crate::{paths, remove, rocm, run, userland};
use hotswap_userland::{CMAKE_DIRECTORY, Mount, ROCM_DIRECTORY, SOURCE, Userland};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Adds what belongs to the part; for the first one, builds the probe inside. Returns the missing items.
pub(crate) fn add(userland: &Userland, part: Part, downloads: &Path) -> Outcome<Vec<String>> {
    match part {
        Part::Base => {
            add_rocm_directory(userland)?;
            probe(userland)?;
            Ok(Vec::new())
        }
        Part::Tests => add_cmakes(userland, downloads),
    }
}

/// The other versions of CMake. Returns those that could not be had.
fn add_cmakes(userland: &Userland, downloads: &Path) -> Outcome<Vec<String>> {
    if !has_pip() && rustix::process::geteuid().is_root() {
        userland::install(&["python3", "python3-pip"])?;
    }
    let mut without = Vec::new();
    for version in CMAKE {
        if let Err(failure) = add_cmake(userland, downloads, version) {
            println!("note: no CMake {version} from PyPI: {failure}");
            without.push(format!("cmake-{version}"));
        }
    }
    Ok(without)
}

/// Whether pip is available for downloading wheels.
fn has_pip() -> bool {
    run::output(Command::new("python3").args(["-m", "pip", "--version"])).is_ok()
}

/// A wheel of CMake holds a relocatable installation in `cmake/data`.
fn add_cmake(userland: &Userland, downloads: &Path, version: &str) -> Outcome {
    let target = userland.outside(CMAKE_DIRECTORY).join(format!("cmake-{version}"));
    if target.exists() {
        return Ok(());
    }
    let wheels = downloads.join(format!("cmake-{version}"));
    let words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"];
    run::show(Command::new("python3").args(words).arg(&wheels).arg(format!("cmake=={version}")))?;
    let entries = fs::read_dir(&wheels).during("read", &wheels)?.flatten().map(|entry| entry.path());
    let wheel = entries.filter(|path| path.extension().is_some_and(|ext| ext == "whl")).max();
    let wheel = wheel.ok_or(std::io::Error::other("pip left no wheel"))?;
    let unpacked = wheels.join("unpacked");
    remove::delete(&unpacked)?; // of a run that was killed
    run::output(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    let data = unpacked.join("cmake/data");
    for program in fs::read_dir(data.join("bin")).during("read", &data)?.flatten() {
        fs::set_permissions(program.path(), Permissions::from_mode(0o755)).during("change", &program.path())?;
    }
    // The wheels are in the cache directory, as the userland is: one file system.
    fs::rename(&data, &target).during("place", &target)
}

fn add_rocm_directory(userland: &Userland) -> Outcome {
    let namespace = userland.namespace();
    run::output(&mut namespace.wrap(&userland.command("/", "/usr/sbin/ldconfig")))?;
    let multiarch = run::output(namespace.wrap(&userland.command("/", "/usr/bin/gcc")).arg("-print-multiarch"))?;
    for (link, target) in ROCM_LINKS {
        let link = userland.outside(ROCM_DIRECTORY).join(fill_multiarch_template(link, &multiarch));
        if let Some(directory) = link.parent() {
            fs::create_dir_all(directory).during("create", directory)?;
        }
        symlink(fill_multiarch_template(target, &multiarch), &link).during("link", &link)?;
    }
    Ok(())
}

fn fill_multiarch_template(text: &str, multiarch: &str) -> String {
    text.replace("{}", multiarch.trim())
}

/// Builds a HIP program inside, so that a userland that cannot do that is never marked complete.
fn probe(userland: &Userland) -> Outcome {
    let source = Mount::ReadOnly { source: paths::workspace().to_owned(), target: userland.outside(SOURCE) };
    let mut command = userland.command("/tmp", "/usr/bin/clang++-22");
    command.args(rocm::probe_words()).arg(PathBuf::from(SOURCE).join(rocm::PROBE)).args(["-o", "probe"]);
    run::output(&mut userland.namespace().with(source).wrap(&command)).map(drop)
}
