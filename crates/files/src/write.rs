//! Replacing a file as a whole.

use hotswap_report::{Diagnostic, codes};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Reads a whole file.
///
/// # Errors
/// [`codes::CANNOT_READ`] with the file and the system's reason.
pub fn read(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    fs::read(path).map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(path))
}

/// Gives `path` the content `bytes` in one step, keeping the permissions of a file that is there.
///
/// The content goes to an unnamed file of the same folder first (`O_TMPFILE`: nothing stays
/// behind when the process is killed), then gets a temporary name and is renamed. A file system
/// without unnamed files gets the temporary name from the start; the next run removes it.
///
/// # Errors
/// [`codes::UNSUPPORTED_OUTPUT`] for a device, pipe or folder, [`codes::CANNOT_WRITE`] otherwise.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let target = resolve(path)?;
    let mode = target_mode(&target).map_err(|error| cannot_write(path, &error))?;
    if let Some(kind) = mode.as_ref().err() {
        return Err(Diagnostic::error(codes::UNSUPPORTED_OUTPUT, format!("it is {kind}")).in_file(path));
    }
    write_beside(&target, bytes, mode.unwrap_or(0o644)).map_err(|error| cannot_write(path, &error))
}

/// A link is followed, so that the file behind it is replaced and not the link.
fn resolve(path: &Path) -> Result<PathBuf, Diagnostic> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// Permissions for the new file, or in words what kind of thing is there instead of a file.
fn target_mode(path: &Path) -> io::Result<Result<u32, &'static str>> {
    let kind = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Ok(0o666 & !umask()));
        }
        Err(error) => return Err(error),
        Ok(meta) if meta.is_file() => return Ok(Ok(meta.mode() & 0o7777)),
        Ok(meta) => meta.file_type(),
    };
    Ok(Err(if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device"
    }))
}

/// The process's umask; the only way to ask is to set it, which other threads could see, so it is
/// read from the kernel's status page instead (`man 5 proc`, since Linux 4.7).
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap_or("022");
    u32::from_str_radix(digits.trim(), 8).unwrap_or(0o022)
}

fn cannot_write(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string()).in_file(path)
}

fn write_beside(target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary_name(target);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let result = create(target, &temporary, bytes, mode).and_then(|()| fs::rename(&temporary, target));
    if result.is_err() {
        // The error that matters is the first one; the file may not exist at all.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn create(target: &Path, temporary: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(unnamed) = rustix::fs::openat(CWD, folder, flags, Mode::from_raw_mode(0o600)) else {
        let mut named = File::create_new(temporary)?;
        return fill(&mut named, bytes, mode);
    };
    let mut unnamed = File::from(unnamed);
    fill(&mut unnamed, bytes, mode)?;
    let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&unnamed));
    Ok(rustix::fs::linkat(CWD, source, CWD, temporary, AtFlags::SYMLINK_FOLLOW)?)
}

fn fill(file: &mut File, bytes: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode))
}

/// Always the same for one output, so that a later run finds what a killed one left.
fn temporary_name(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".hotswap-tmp");
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_content_keeps_mode_and_follows_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o750)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o750);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_a_killed_run_left_is_gone_after_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        fs::write(temporary_name(&file), "half").unwrap();
        replace(&file, b"whole").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_device_is_refused() {
        let error = replace(Path::new("/dev/null"), b"x").unwrap_err();
        assert_eq!(error.code, codes::UNSUPPORTED_OUTPUT);
    }

    #[test]
    fn a_full_disk_leaves_the_old_content() {
        // A folder that does not exist stands in for every error of creation.
        let error = replace(Path::new("/nonexistent-folder/out"), b"x").unwrap_err();
        assert_eq!(error.code, codes::CANNOT_WRITE);
    }
}
