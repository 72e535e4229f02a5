//! Libraries of ROCm in the file system: shared ones, and the bitcode of device functions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct SharedLibrary {
    pub(super) path: PathBuf,
    /// The numbers after `.so.`.
    pub(super) version: Option<String>,
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

/// Directories of clang's resources, below which Debian and Fedora keep the bitcode. `*` is one version.
const RESOURCES: &[(&str, &str)] =
    &[("/usr/lib", "lib/clang"), ("/usr/lib64/rocm", "lib/clang"), ("/opt/rocm/lib", "lib/clang")];

/// The library with that name, with or without a version behind it.
pub(super) fn find(name: &str) -> Option<SharedLibrary> {
    let variable = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let set = env::split_paths(&variable).filter(|path| path.is_absolute()).collect::<Vec<_>>();
    let rocm = env::var_os("ROCM_PATH").map(|path| Path::new(&path).join("lib"));
    let directories = set.into_iter().chain(rocm).chain(DIRECTORIES.iter().map(PathBuf::from));
    directories.into_iter().find_map(|directory| find_in(&directory, name))
}

fn find_in(directory: &Path, name: &str) -> Option<SharedLibrary> {
    let files = names(directory);
    let mut hits: Vec<&String> = files.iter().filter(|file| is_version_of(file, name)).collect();
    hits.sort_unstable();
    let path = directory.join(hits.first()?);
    let real = path.canonicalize().ok()?;
    let file = real.file_name()?.to_string_lossy().into_owned();
    let version = file.split_once(".so.").map(|(_, version)| version.to_owned());
    Some(SharedLibrary { path, version })
}

fn is_version_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The names in a directory, sorted; none if it cannot be read.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// The bitcode below a directory of clang's resources or of ROCm.
pub(super) fn bitcode_of(directory: &Path) -> Option<PathBuf> {
    let candidates = ["amdgcn/bitcode", "lib/amdgcn/bitcode"].map(|below| directory.join(below));
    candidates.into_iter().find(|path| path.join("ocml.bc").is_file())
}

/// Bitcode in one of the known places.
pub(super) fn bitcode_anywhere() -> Option<PathBuf> {
    arguments().into_iter().next().map(|(_, directory)| directory)
}

/// Arguments with which clang may find the bitcode, and the directory that each leads to: the ROCm directories first.
pub(super) fn arguments() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let set = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let versions = names(Path::new("/opt")).into_iter().rev().filter(|name| name.starts_with("rocm"));
    for root in set.chain(versions.map(|name| Path::new("/opt").join(name))) {
        found.extend(bitcode_of(&root).map(|bitcode| (format!("--rocm-path={}", root.display()), bitcode)));
    }
    for directory in resource_directories() {
        found.extend(
            bitcode_of(&directory).map(|bitcode| (format!("--rocm-device-lib-path={}", bitcode.display()), bitcode)),
        );
    }
    found
}

/// `/usr/lib/llvm-22/lib/clang/22` and its like, the newest first.
fn resource_directories() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (root, below) in RESOURCES {
        let llvm = names(Path::new(root)).into_iter().rev().filter(|name| name.starts_with("llvm"));
        for directory in llvm.map(|name| Path::new(root).join(name).join(below)) {
            found.extend(names(&directory).into_iter().rev().map(|version| directory.join(version)));
        }
    }
    found
}

/// The processors that the bitcode has a file for: `oclc_isa_version_1030.bc`.
pub(super) fn bitcode_targets(directory: &Path) -> Vec<String> {
    let files = names(directory);
    let isa = files.iter().filter_map(|name| name.strip_prefix("oclc_isa_version_")?.strip_suffix(".bc"));
    isa.map(|number| format!("gfx{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_with_its_full_version() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["libamd_comgr.so.3.0.70201", "libamd_comgr.so.3x", "libamd_comgr_loader.so"] {
            fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink("libamd_comgr.so.3.0.70201", at("libamd_comgr.so.3")).unwrap();
        let found = find_in(directory.path(), "libamd_comgr.so").unwrap();
        assert_eq!((found.path, found.version.as_deref()), (at("libamd_comgr.so.3"), Some("3.0.70201")));
        assert!(find_in(directory.path(), "libhsa-runtime64.so").is_none());
    }

    #[test]
    fn bitcode_is_known_by_ocml_and_tells_its_processors() {
        let directory = tempfile::tempdir().unwrap();
        let bitcode = directory.path().join("amdgcn/bitcode");
        fs::create_dir_all(&bitcode).unwrap();
        assert_eq!(bitcode_of(directory.path()), None);
        for name in ["ocml.bc", "oclc_isa_version_1030.bc", "oclc_isa_version_90a.bc"] {
            fs::write(bitcode.join(name), "").unwrap();
        }
        assert_eq!(bitcode_of(directory.path()), Some(bitcode.clone()));
        assert_eq!(bitcode_targets(&bitcode), ["gfx1030", "gfx90a"]);
    }
}
