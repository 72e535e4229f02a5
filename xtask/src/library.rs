//! Libraries of a distribution as real input: the largest file of a package of Debian's.
//!
//! Absent on purpose: downloading packages ([`crate::packages`]).

use crate::outcome::{Outcome, fail};
use crate::packages::{self, Origin, Package, Packages};
use hotswap_userland::{ENV_HEADERS, ENV_LIBRARIES, ENV_STACK};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package whose largest file is the library.
pub(crate) struct Library {
    pub(crate) name: &'static str,
    /// Whether experimental's version is preferred, if there is one.
    experimental: bool,
}

impl Library {
    /// A package whose version in experimental is preferred, if there is one.
    pub(crate) const fn preferring_experimental(name: &'static str) -> Self {
        Self { name, experimental: true }
    }
}

/// rocRAND: 139 MB, 15 bundles for 10 targets.
pub(crate) const ROCRAND: Library = Library { name: "librocrand1", experimental: false };

/// GGML: 1.27 GB, 140 bundles for 10 targets.
pub(crate) const GGML: Library = Library { name: "libggml0-backend-hip", experimental: false };

/// rocSPARSE: 407 MB, 319 compressed bundles for 14 targets. The version in sid is not compressed: 1.6 GB.
pub(crate) const ROCSPARSE: Library = Library { name: "librocsparse1", experimental: true };

/// Headers of rocPRIM and of hipCUB, of the version whose kernels are instantiated for each GPU.
const HEADERS: &[&str] = &["librocprim-dev", "libhipcub-dev"];

/// Libraries with all of their files, which are served for further GPUs as a tree.
const STACK: &[&str] = &["librocblas5", "librocfft0", "librocrand1", "librocsparse1"];

/// Sets the variable of a command for the libraries that are served as a tree.
pub(crate) fn provide_stack(command: &mut Command) -> Outcome {
    let packages = Packages::open()?;
    let directories = STACK.iter().map(|one| package_lib_directory(one, &packages)).collect::<Outcome<Vec<_>>>()?;
    command.env(ENV_STACK, std::env::join_paths(directories)?);
    Ok(())
}

fn package_lib_directory(name: &&'static str, packages: &Packages) -> Result<PathBuf, crate::outcome::Failure> {
    let unpacked = packages.get(&Package { name, origin: Origin::Experimental })?;
    Ok(unpacked.directory.join("usr/lib"))
}

/// Sets the variable of a command for the headers with which tests compile.
pub(crate) fn provide_headers(command: &mut Command) -> Outcome {
    let packages = Packages::open()?;
    let directories =
        HEADERS.iter().map(|one| package_include_directory(one, &packages)).collect::<Outcome<Vec<_>>>()?;
    command.env(ENV_HEADERS, std::env::join_paths(directories)?);
    Ok(())
}

fn package_include_directory(name: &&'static str, packages: &Packages) -> Result<PathBuf, crate::outcome::Failure> {
    let unpacked = packages.get(&Package { name, origin: Origin::Experimental })?;
    Ok(unpacked.directory.join("usr/include"))
}

/// Sets the variable of a command for the libraries that tests change.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    let libraries = [&ROCRAND, &GGML, &ROCSPARSE].map(library).into_iter().collect::<Outcome<Vec<_>>>()?;
    let list = std::env::join_paths(libraries)?;
    command.env(ENV_LIBRARIES, list);
    Ok(())
}

/// The library, downloaded now if it does not exist.
pub(crate) fn library(library: &Library) -> Outcome<PathBuf> {
    let packages = Packages::open()?;
    let preferred =
        if library.experimental { package_of_origin(Origin::Experimental, &packages, library).ok() } else { None };
    let unpacked = preferred.map_or_else(|| package_of_origin(Origin::Sid, &packages, library), Ok)?;
    let largest = largest(&unpacked.directory)?;
    largest.map_or_else(|| fail(format!("{} holds no library: {}", library.name, unpacked.directory.display())), Ok)
}

fn package_of_origin(
    origin: Origin,
    packages: &Packages,
    library: &Library,
) -> Result<packages::Unpacked, crate::outcome::Failure> {
    packages.get(&Package { name: library.name, origin })
}

/// The largest file below the directory: a package of a library has it and a few lines of text.
fn largest(directory: &Path) -> Outcome<Option<PathBuf>> {
    let files = packages::files(directory)?;
    Ok(files.into_iter().max_by_key(|(_, size)| *size).map(|(path, _)| path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_largest_file_is_the_library() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("usr/lib")).unwrap();
        fs::write(directory.path().join("usr/notes"), "a").unwrap();
        fs::write(directory.path().join("usr/lib/x.so.1"), "library").unwrap();
        assert_eq!(largest(directory.path()).unwrap(), Some(directory.path().join("usr/lib/x.so.1")));
    }
}
