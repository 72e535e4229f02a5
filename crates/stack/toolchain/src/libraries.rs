//! Libraries of ROCm in the file system: shared ones, and the bitcode of device functions.

use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::env;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct SharedLibrary {
    pub(crate) path: PathBuf,
    /// The numbers after `.so.`.
    pub(crate) version: Option<String>,
}

/// Where the dynamic loader and ROCm have libraries.
const DIRECTORIES: &[&str] = &[
    "/opt/rocm/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib64/rocm/lib",
    "/usr/lib",
];

/// Directories with directories `llvm*`, where Debian and Fedora keep clang's resources with the bitcode.
const LLVM_PARENTS: &[&str] = &["/usr/lib", "/usr/lib64/rocm", "/opt/rocm/lib"];
/// The directory of clang's resources in each of them, by version.
const RESOURCES: &str = "lib/clang";

/// The library with that name, with or without a version behind it.
///
/// # Errors
/// The first directory that could not be read, where no other one has the library.
pub(crate) fn find(name: &str) -> Result<Option<SharedLibrary>, Diagnostic> {
    let variable = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let set = env::split_paths(&variable).filter(|path| path.is_absolute()).collect::<Vec<_>>();
    let rocm = env::var_os("ROCM_PATH").map(|path| Path::new(&path).join("lib"));
    let directories = set.into_iter().chain(rocm).chain(DIRECTORIES.iter().map(PathBuf::from));
    let mut unread = None;
    for directory in directories {
        match find_in(&directory, name) {
            Ok(None) => {}
            Err(error) => unread = unread.or(Some(error)),
            found => return found,
        }
    }
    unread.map_or(Ok(None), Err)
}

fn find_in(directory: &Path, name: &str) -> Result<Option<SharedLibrary>, Diagnostic> {
    let files = names_in(directory)?;
    let mut hits: Vec<&String> = files.iter().filter(|file| is_version_of(file, name)).collect();
    hits.sort_unstable();
    let Some(first) = hits.first() else { return Ok(None) };
    let path = directory.join(first);
    let Some(real) = reads::resolve_path(&path)? else { return Ok(None) };
    let file = real.file_name().unwrap_or_default().to_string_lossy();
    let version = file.split_once(".so.").map(|(_, version)| version.to_owned());
    Ok(Some(SharedLibrary { path, version }))
}

fn is_version_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The names in a directory, sorted; none where there is no directory.
fn names_in(directory: &Path) -> Result<Vec<String>, Diagnostic> {
    let paths = reads::paths_in(directory)?;
    Ok(paths.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned()).collect())
}

/// The bitcode below a directory of clang's resources or of ROCm.
pub(crate) fn bitcode_of(directory: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    for below in ["amdgcn/bitcode", "lib/amdgcn/bitcode"] {
        let path = directory.join(below);
        if reads::is_regular(&path.join("ocml.bc"))? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Bitcode in one of the known places.
pub(crate) fn bitcode_anywhere() -> Result<Option<PathBuf>, Diagnostic> {
    Ok(arguments()?.into_iter().next().map(|found| found.directory))
}

/// An argument with which clang may find the bitcode.
pub(crate) struct BitcodeArgument {
    pub(crate) argument: String,
    /// The directory that it leads to.
    pub(crate) directory: PathBuf,
}

/// All such arguments: those of the ROCm directories first.
pub(crate) fn arguments() -> Result<Vec<BitcodeArgument>, Diagnostic> {
    let mut found = Vec::new();
    let set = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let versions = names_in(Path::new("/opt"))?.into_iter().rev().filter(|name| name.starts_with("rocm"));
    for root in set.chain(versions.map(|name| Path::new("/opt").join(name))) {
        let argument = format!("--rocm-path={}", root.display());
        found.extend(bitcode_of(&root)?.map(|directory| BitcodeArgument { argument, directory }));
    }
    for directory in resource_directories()? {
        found.extend(bitcode_of(&directory)?.map(|directory| BitcodeArgument {
            argument: format!("--rocm-device-lib-path={}", directory.display()),
            directory,
        }));
    }
    Ok(found)
}

/// `/usr/lib/llvm-22/lib/clang/22` and its like, the newest first.
fn resource_directories() -> Result<Vec<PathBuf>, Diagnostic> {
    let mut found = Vec::new();
    for root in LLVM_PARENTS {
        let llvm = names_in(Path::new(root))?.into_iter().rev().filter(|name| name.starts_with("llvm"));
        for directory in llvm.map(|name| Path::new(root).join(name).join(RESOURCES)) {
            found.extend(names_in(&directory)?.into_iter().rev().map(|version| directory.join(version)));
        }
    }
    Ok(found)
}

/// The processors that the bitcode has a file for: `oclc_isa_version_1030.bc`.
pub(crate) fn bitcode_targets(directory: &Path) -> Result<Vec<String>, Diagnostic> {
    let files = names_in(directory)?;
    let isa = files.iter().filter_map(|name| name.strip_prefix("oclc_isa_version_")?.strip_suffix(".bc"));
    Ok(isa.map(|number| format!("gfx{number}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_library_is_found_with_its_full_version() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["libamd_comgr.so.3.0.70201", "libamd_comgr.so.3x", "libamd_comgr_loader.so"] {
            fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink("libamd_comgr.so.3.0.70201", at("libamd_comgr.so.3")).unwrap();
        let found = find_in(directory.path(), "libamd_comgr.so").unwrap().unwrap();
        assert_eq!((found.path, found.version.as_deref()), (at("libamd_comgr.so.3"), Some("3.0.70201")));
        assert!(find_in(directory.path(), "libhsa-runtime64.so").unwrap().is_none());
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_not_one_without_libraries() {
        let directory = tempfile::tempdir().unwrap();
        let looped = directory.path().join("loop");
        std::os::unix::fs::symlink("loop", &looped).unwrap();
        for unread in [find_in(&looped, "liba.so").map(drop), bitcode_of(&looped).map(drop)] {
            assert!(unread.unwrap_err().to_string().contains("symbolic links"));
        }
        assert!(find_in(&directory.path().join("absent"), "liba.so").unwrap().is_none());
    }

    #[test]
    fn bitcode_is_known_by_ocml_and_tells_its_processors() {
        let directory = tempfile::tempdir().unwrap();
        let bitcode = directory.path().join("amdgcn/bitcode");
        fs::create_dir_all(&bitcode).unwrap();
        assert_eq!(bitcode_of(directory.path()).unwrap(), None);
        for name in ["ocml.bc", "oclc_isa_version_1030.bc", "oclc_isa_version_90a.bc"] {
            fs::write(bitcode.join(name), "").unwrap();
        }
        assert_eq!(bitcode_of(directory.path()).unwrap(), Some(bitcode.clone()));
        assert_eq!(bitcode_targets(&bitcode).unwrap(), ["gfx1030", "gfx90a"]);
    }
}
