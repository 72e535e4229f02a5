//! The wrapper's own files between runs: manifest objects and answers of compilers.
//!
//! They lie in the user's cache folder, or, where that cannot be written (package builds often
//! have no home), in a folder of the temporary directory that nobody else can write to.
//!
//! Invariant: a folder in the temporary directory is only used if it is a folder, ours, and
//! closed to others; its name can be guessed, so somebody else could have made it.

use hotswap_report::{Diagnostic, codes};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A folder `name` to write into; made if absent.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] if neither place can be used.
pub fn folder(name: &str) -> Result<PathBuf, Diagnostic> {
    if let Some(folder) = hotswap_files::cache_dir().map(|cache| cache.join(name))
        && fs::create_dir_all(&folder).is_ok()
        && rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_ok()
    {
        return Ok(folder);
    }
    let uid = rustix::process::getuid().as_raw();
    private(&std::env::temp_dir().join(format!("hotswap-{uid}")), name, uid)
}

fn private(base: &Path, name: &str, uid: u32) -> Result<PathBuf, Diagnostic> {
    let refuse = |what: String| {
        Diagnostic::error(codes::CANNOT_WRITE, what)
            .in_file(base)
            .advise("set XDG_CACHE_HOME to a folder that can be written")
    };
    let folder = base.join(name);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let meta = fs::symlink_metadata(base).map_err(|error| refuse(error.to_string()))?;
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o077 != 0 {
        return Err(refuse("it is not a folder of this user alone".to_owned()));
    }
    made.map_err(|error| refuse(error.to_string()))?;
    Ok(folder)
}

/// Gives the file that content, unless it has it: an unchanged file keeps its time stamp, which
/// linkers write into dependency files. Commands of one build do this at the same time, so the
/// temporary name is each process's own.
///
/// # Errors
/// [`codes::CANNOT_WRITE`].
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let failed = |error: std::io::Error| Diagnostic::error(codes::CANNOT_WRITE, error.to_string()).in_file(path);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    hotswap_files::replace(Path::new(&own), bytes)?;
    fs::rename(&own, path).map_err(failed)
}

/// A file name for a text of any length. The file's content repeats the text, so a collision is seen.
pub fn name_for(text: &str) -> String {
    hash(text.as_bytes())
}

/// 64-bit FNV-1a: tells damage, not malice.
pub fn hash(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_private_folder_is_ours_alone() {
        let dir = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        let base = dir.path().join("base");
        assert_eq!(private(&base, "manifests", uid).unwrap(), base.join("manifests"));
        assert_eq!(fs::metadata(&base).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private(&base, "manifests", uid + 1).unwrap_err().code, codes::CANNOT_WRITE);
        fs::set_permissions(&base, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(private(&base, "manifests", uid).unwrap_err().code, codes::CANNOT_WRITE);
        let link = dir.path().join("link");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&base, &link).unwrap();
        assert_eq!(private(&link, "manifests", uid).unwrap_err().code, codes::CANNOT_WRITE);
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
    fn names_are_those_of_fnv() {
        assert_eq!(name_for(""), "cbf29ce484222325");
        assert_eq!(name_for("a"), "af63dc4c8601ec8c");
    }
}
