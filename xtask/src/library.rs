//! Libraries of a distribution as real input: Debian's packages, unpacked in the cache folder.
//!
//! Invariants: a package's folder gets its name only when complete; the package comes from the machine's own mirror
//! and is verified by apt; nothing of it enters the repository.

use crate::isa_source::Apt;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run};
use hotswap_userland::ENV_LIBRARIES;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package whose largest file is the library.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// Whether experimental's version is wanted, if there is one.
    experimental: bool,
    /// Folder in the cache in which it is unpacked.
    pub(crate) folder: &'static str,
    /// Of the download, in words.
    pub(crate) size: &'static str,
}

/// rocRAND: 139 MB, 15 bundles for 10 targets.
pub(crate) const ROCRAND: Package =
    Package { name: "librocrand1", experimental: false, folder: "isa-exam", size: "40 MB" };

/// GGML: 1.27 GB, 140 bundles for 10 targets.
pub(crate) const GGML: Package =
    Package { name: "libggml0-backend-hip", experimental: false, folder: "libraries", size: "115 MB" };

/// rocSPARSE: 407 MB, 319 compressed bundles for 14 targets. The version in sid is not compressed: 1.6 GB.
pub(crate) const ROCSPARSE: Package =
    Package { name: "librocsparse1", experimental: true, folder: "libraries", size: "350 MB" };

/// Tells a command where the libraries are that tests change.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    let libraries = [&ROCRAND, &GGML, &ROCSPARSE].map(library).into_iter().collect::<Outcome<Vec<_>>>()?;
    let list = std::env::join_paths(libraries)?;
    command.env(ENV_LIBRARIES, list);
    Ok(())
}

/// The library, downloaded now if it is not there.
pub(crate) fn library(package: &Package) -> Outcome<PathBuf> {
    let folder = paths::cache()?.join(package.folder).join(package.name);
    if !folder.exists() {
        let partial = folder.with_extension("partial");
        remove::delete(&partial)?;
        fs::create_dir_all(&partial).during("create", &partial)?;
        download(package, &partial)?;
        fs::rename(&partial, &folder).during("rename", &partial)?;
    }
    find(&folder)?.map_or_else(|| fail(format!("{} holds no library: {}", package.name, folder.display())), Ok)
}

fn download(package: &Package, folder: &Path) -> Outcome {
    println!("Downloading {} (about {})", package.name, package.size);
    let apt = Apt::new(folder, "deb")?;
    run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
    get(package, &apt, folder)?;
    apt.remove()?;
    let Some(entry) = fs::read_dir(folder).during("read", folder)?.next() else {
        return fail(format!("apt downloaded no {}", package.name));
    };
    let archive = entry?.path();
    run::output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
    fs::remove_file(&archive).during("delete", &archive)
}

/// The package's file, of the suite that is preferred.
fn get(package: &Package, apt: &Apt, folder: &Path) -> Outcome {
    let get = |name: &str| run::output(apt.command("apt-get", &["download", "-q", name]).current_dir(folder));
    if package.experimental && get(&format!("{}/experimental", package.name)).is_ok() {
        return Ok(());
    }
    get(package.name).map(drop)
}

/// The largest file below the folder: a package of a library holds it and a few lines of text.
fn find(folder: &Path) -> Outcome<Option<PathBuf>> {
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).during("read", &folder)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata().during("read", &path)?;
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_file() && largest.as_ref().is_none_or(|(size, _)| metadata.len() > *size) {
                largest = Some((metadata.len(), path));
            }
        }
    }
    Ok(largest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_is_the_library() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("usr/lib")).unwrap();
        fs::write(folder.path().join("usr/notes"), "a").unwrap();
        fs::write(folder.path().join("usr/lib/x.so.1"), "library").unwrap();
        assert_eq!(find(folder.path()).unwrap(), Some(folder.path().join("usr/lib/x.so.1")));
    }
}
