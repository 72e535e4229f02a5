//! The wrapper's own files between runs: manifest objects, cached facts about compilers, and warnings already shown.
//!
//! They are in the user's cache directory. Where that is not writable (package builds often lack a home) or another
//! user could have written to it, they are in a directory of the temporary directory that only this user can access.
//!
//! Invariant: only directories that [`hotswap_files::own_directory`] accepts are used, since programs are started by their
//! contents. Names in the temporary directory can be guessed, so another user may have taken them: the next one is
//! tried.

use hotswap_files::{Untrusted, own_directory};
use hotswap_plan::warm_headers::WARM_HEADERS;
use hotswap_report::{Diagnostic, codes};
use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A directory `name` to write into; made if absent.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] if no place can be used.
pub fn directory(name: &str) -> Result<PathBuf, Diagnostic> {
    let cached = hotswap_files::cache_dir().and_then(|cache| own(&cache, name).ok());
    cached.map_or_else(|| private(&std::env::temp_dir(), name), Ok)
}

/// Directories of the cache by name.
const NAMES: [&str; 8] =
    ["toolchains", "identities", "coalesce", "name-values", "profile-runtimes", "manifests", "units", WARM_HEADERS];

/// Warns where the user's cache is refused because of other users: once for each reason and temporary directory, not
/// once for each command of a build.
pub fn warn_of_refused_cache(warn: &dyn Fn(&str)) {
    let Some(cache) = hotswap_files::cache_dir() else { return };
    let parts = NAMES.iter().map(|name| cache.join(name)).filter(|part| part.exists());
    let refused = std::iter::once(cache.clone()).chain(parts).find_map(|part| own_directory(&part).err());
    // A cache that cannot be written is not a surprise: package builds lack one.
    let Some(why @ (Untrusted::Owner { .. } | Untrusted::Open { .. })) = refused else { return };
    let why = why.to_string();
    if is_new(&std::env::temp_dir(), &why) {
        warn(&Diagnostic::warning(codes::CACHE_REFUSED, why).to_string());
    }
}

/// Whether no command has shown that text before. Of concurrent commands only one creates the file.
fn is_new(temporary: &Path, text: &str) -> bool {
    let Ok(directory) = private(temporary, "warned") else { return true };
    let made = fs::File::options().write(true).create_new(true).open(directory.join(name_for(text)));
    made.map_or_else(|error| error.kind() != std::io::ErrorKind::AlreadyExists, |_| true)
}

fn own(base: &Path, name: &str) -> Result<PathBuf, Untrusted> {
    own_directory(base)?;
    own_directory(&base.join(name))
}

/// The first of a few directories below a temporary directory that belongs to this user.
fn private(temporary: &Path, name: &str) -> Result<PathBuf, Diagnostic> {
    const TRIES: u32 = 8;
    let user = rustix::process::geteuid().as_raw();
    let first = temporary.join(format!("hotswap-{user}"));
    let others = (1..TRIES).map(|number| temporary.join(format!("hotswap-{user}.{number}")));
    // Process names are harder to guess, and nothing is kept there from run to run.
    let last = temporary.join(format!("hotswap-{user}-{}", std::process::id()));
    let bases = std::iter::once(first.clone()).chain(others).chain([last]);
    let mut why = None;
    for base in bases {
        // A link could be changed between two checks.
        let is_link = fs::symlink_metadata(&base).is_ok_and(|meta| meta.is_symlink());
        match own(&base, name) {
            Ok(directory) if !is_link => return Ok(directory),
            found => why = why.or(found.err()),
        }
    }
    let what = why.map_or_else(|| "it is a link".to_owned(), |why| why.to_string());
    let advice = "set XDG_CACHE_HOME to a directory of this user that no one else can write to";
    Err(Diagnostic::error(codes::CANNOT_WRITE, what).in_file(&first).advise(advice))
}

/// Puts a file into the directory `name`; where that cannot be written (a full disk), into one of the temporary directory: a cache
/// that cannot be used costs time, never the build.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] if no place can be used.
pub fn put_in(name: &str, file: &Path, bytes: &[u8]) -> Result<PathBuf, Diagnostic> {
    let path = directory(name)?.join(file);
    match put(&path, bytes) {
        Ok(()) => Ok(path),
        Err(first) => {
            let other = private(&std::env::temp_dir(), name)?.join(file);
            put(&other, bytes).map(|()| other).map_err(|_| first)
        }
    }
}

/// Puts a file into a directory `name` in which a linker can search, unless `dry`. A colon separates such directories, so those whose
/// paths have one are left out.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] if no place can be used.
pub fn put_for_link(name: &str, file: &Path, bytes: &[u8], dry: bool) -> Result<PathBuf, Diagnostic> {
    let mut first_error = None;
    for directory in searchable_directories(name) {
        let path = directory.and_then(|directory| {
            let path = directory.join(file);
            if dry { Ok(path) } else { put(&path, bytes).map(|()| path) }
        });
        match path {
            Ok(path) => return Ok(path),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(no_searchable_directory))
}

/// The directories that linkers can search: of the cache and for temporary files. They are made as they are taken.
fn searchable_directories(name: &str) -> impl Iterator<Item = Result<PathBuf, Diagnostic>> {
    let cached = hotswap_files::cache_dir().and_then(|cache| own(&cache, name).ok());
    let temporary = searchable_temporary_directories().into_iter().map(move |parent| private(&parent, name));
    cached.map(Ok).into_iter().chain(temporary).filter(is_searchable)
}

/// The user's directory for temporary files; the system's if that one cannot be searched.
fn searchable_temporary_directories() -> Vec<PathBuf> {
    let chosen = std::env::temp_dir();
    let resolved = fs::canonicalize(&chosen).unwrap_or_else(|_| chosen.clone());
    if has_colon(&resolved) { vec!["/tmp".into(), "/var/tmp".into()] } else { vec![chosen] }
}

fn is_searchable(directory: &Result<PathBuf, Diagnostic>) -> bool {
    directory.as_ref().map_or(true, |directory| !has_colon(directory))
}

fn has_colon(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&b':')
}

fn no_searchable_directory() -> Diagnostic {
    let what = "the paths of the cache and of all directories for temporary files have a colon, which separates the \
                directories that a linker searches";
    let advice = "set XDG_CACHE_HOME or TMPDIR to a directory without a colon in its path";
    Diagnostic::error(codes::CANNOT_WRITE, what).advise(advice)
}

/// The content of a regular file. What another file of that name has is not waited for: a pipe is endless.
///
/// # Errors
/// Those of the system.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As [`read_regular`], for a text; `None` where it does not exist: only time is lost.
pub fn read_regular_text(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path).ok()?).ok()
}

/// Gives the file that content, unless it has it already: an unchanged file keeps its time stamp, which linkers write
/// into dependency files. Commands of one build do this concurrently, so each process uses its own temporary name.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] with the path.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    if read_regular(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    hotswap_files::create_directories(path.parent().unwrap_or(Path::new(".")))
        .map_err(|error| unwritten_error(path, &error))?;
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    hotswap_files::replace_file(Path::new(&own), bytes)?;
    fs::rename(&own, path).map_err(|error| {
        let _ = fs::remove_file(&own);
        unwritten_error(path, &error)
    })
}

fn unwritten_error(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::cannot_write(path, error)
}

/// A file name for a text of any length.
pub fn name_for(text: &str) -> String {
    hash(text.as_bytes())
}

/// The first half of a SHA-256, as hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    hotswap_report::hex_digits(&Sha256::digest(bytes)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn a_directory_that_is_not_ours_alone_is_stepped_around() {
        let dir = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let [first, second, third] = ["", ".1", ".2"].map(|end| dir.path().join(format!("hotswap-{user}{end}")));
        assert_eq!(private(dir.path(), "manifests").unwrap(), first.join("manifests"));
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&first, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(private(dir.path(), "manifests").unwrap(), second.join("manifests"));
        fs::remove_dir_all(&second).unwrap();
        symlink(dir.path().join("elsewhere"), &second).unwrap();
        assert_eq!(private(dir.path(), "manifests").unwrap(), third.join("manifests"));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(private(dir.path(), "manifests").unwrap_err().code, codes::CANNOT_WRITE);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(private(dir.path(), "manifests").unwrap(), third.join("manifests"));
    }

    #[test]
    fn a_damaged_file_is_written_again_and_a_good_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/x.manifest.o");
        put(&path, b"good").unwrap();
        fs::write(&path, b"half").unwrap();
        put(&path, b"good").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"good");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        put(&path, b"good").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.manifest.o");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(read_regular(&path).is_err());
        put(&path, b"good").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"good");
    }

    #[test]
    fn names_are_those_of_sha256() {
        assert_eq!(name_for(""), "e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(name_for("a"), "ca978112ca1bbdcafac231b39a23dc4d");
    }
}
