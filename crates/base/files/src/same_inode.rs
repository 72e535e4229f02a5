//! New content for a file that keeps its inode, so that all of its names (hard links) have it.
//!
//! A file cannot change its content in one step, so the new content is made complete beside it first, under a name of its own
//! (`.NAME.hotswap-content`), and is then copied into it. Invariants, also when the process is killed or the machine stops: the file
//! has the old content or the new one, or the complete new content has that name; nothing reads or changes such a file until its user
//! has completed it ([`check_finished`]), because it cannot be known whether the file was built again since.
//!
//! The other programs that have the file open or mapped see the content change: that is what the user asks for.

use crate::beside::{directory_of, hidden_name, name_file, temporary_name, unnamed_file};
use crate::inode::InodeState;
use hotswap_report::{Diagnostic, codes};
use rustix::fs::{AtFlags, CWD, FallocateFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The end of the name of the complete content.
const MARK: &str = ".hotswap-content";

/// The place of the complete new content while it is copied.
fn content_path(target: &Path) -> PathBuf {
    target.with_file_name(hidden_name(target, MARK, 0))
}

/// Refuses a file of which an earlier write in place was not completed.
///
/// # Errors
/// [`codes::UNFINISHED_WRITE`] for such a file; [`codes::CANNOT_READ`] where the system does not say.
pub fn check_finished(path: &Path) -> Result<(), Diagnostic> {
    let content = content_path(path);
    match fs::symlink_metadata(&content) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(error) => Err(Diagnostic::cannot_read(&content, error)),
        Ok(_) => {
            let what = format!("the complete new content is {}", content.display());
            Err(Diagnostic::error(codes::UNFINISHED_WRITE, what).in_file(path))
        }
    }
}

/// Makes the new content by `fill`, and copies it into the existing file.
///
/// Until the copy begins, an error leaves the file as it was. An error during the copy leaves the complete content beside it.
///
/// # Errors
/// Those of the file system, and of `fill`.
pub(crate) fn write_into(
    target: &Path,
    access: &InodeState,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), InPlaceError> {
    // First, because a program that runs cannot be opened for writing.
    let mut old = File::options().write(true).open(target)?;
    access.check_restorable(&old)?;
    let content = content_path(target);
    let mut new = filled_content(target, &content, fill)?;
    let size = new.metadata()?.len();
    if let Err(error) = reserve_space(&old, size) {
        let _ = fs::remove_file(&content);
        return Err(error.into());
    }
    copy_content(&mut new, &mut old, size)
        .and_then(|()| access.give_to(&old))
        .and_then(|()| old.sync_all())
        .map_err(|error| InPlaceError::of_copy(&error, &content))?;
    fs::remove_file(&content)
        .and_then(|()| sync_directory(target))
        .map_err(|error| InPlaceError::of_removal(&error, &content))
}

/// The state of a file after a write in place that failed.
#[derive(Debug)]
pub(crate) enum InPlaceError {
    Untouched(io::Error),
    Unfinished(String),
}

impl From<io::Error> for InPlaceError {
    fn from(error: io::Error) -> Self {
        Self::Untouched(error)
    }
}

impl InPlaceError {
    fn of_copy(error: &io::Error, content: &Path) -> Self {
        let content = content.display();
        Self::Unfinished(format!("{error}; the file is incomplete, and the complete new content is {content}"))
    }

    fn of_removal(error: &io::Error, content: &Path) -> Self {
        let content = content.display();
        Self::Unfinished(format!("the file has all of its new content, and {content} cannot be removed ({error})"))
    }
}

/// The complete new content under its name, on the disk.
fn filled_content(target: &Path, content: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let Ok(mut file) = unnamed_file(directory_of(target)) else { return named_content(target, content, fill) };
    fill(&mut file)?;
    file.sync_all()?;
    name_file(&file, content)?;
    sync_directory(target).inspect_err(|_| drop(fs::remove_file(content)))?;
    Ok(file)
}

/// As [`filled_content`], for file systems without unnamed files and root directories without `/proc`.
fn named_content(target: &Path, content: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let temporary = temporary_name(target);
    let new = File::options().read(true).write(true).create_new(true).mode(0o600).open(&temporary);
    let filled = new.and_then(|mut file| {
        fill(&mut file)?;
        file.sync_all()?;
        Ok(file)
    });
    let named = filled.and_then(|file| {
        rustix::fs::linkat(CWD, &temporary, CWD, content, AtFlags::empty())?;
        Ok(file)
    });
    let _ = fs::remove_file(&temporary);
    let file = named?;
    sync_directory(target).inspect_err(|_| drop(fs::remove_file(content)))?;
    Ok(file)
}

/// A full disk is noticed before the first byte of the file changes.
fn reserve_space(file: &File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, size) {
            Err(Errno::INTR) => {}
            // A file system that cannot reserve space.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn copy_content(from: &mut File, to: &mut File, size: u64) -> io::Result<()> {
    const BLOCK: usize = 1 << 20;
    from.rewind()?;
    let mut block = vec![0; BLOCK];
    loop {
        match from.read(&mut block) {
            Ok(0) => break,
            Ok(count) => to.write_all(&block[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.set_len(size)
}

/// The directory's entries are on the disk afterwards.
fn sync_directory(target: &Path) -> io::Result<()> {
    File::open(directory_of(target))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Placement, WriteOptions, open_to_change, replace_parts};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn write_in_place(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
        let how = WriteOptions { sources: &[], threads: 1, placement: Placement::SameInode };
        replace_parts(path, (content.len() as u64, path), how, [(0, content)].into_iter(), |_| Ok(()))
    }

    #[test]
    fn all_names_of_a_file_get_its_new_content() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        fs::write(&file, "a long old content").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
        fs::hard_link(&file, &link).unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        for content in [&b"new"[..], b"a content that is longer than the old one"] {
            write_in_place(&file, content).unwrap();
            assert_eq!((fs::read(&file).unwrap(), fs::read(&link).unwrap()), (content.to_vec(), content.to_vec()));
        }
        let meta = fs::metadata(&file).unwrap();
        assert_eq!((meta.ino(), meta.nlink(), meta.mode() & 0o7777), (inode, 2, 0o4755));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_refused_content_leaves_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "old").unwrap();
        let how = WriteOptions { sources: &[], threads: 1, placement: Placement::SameInode };
        let refuse = |_: &crate::InputFile| Err(Diagnostic::error(codes::VERIFY_FAILED, "planted"));
        let refused = replace_parts(&file, (3, &file), how, [(0, &b"new"[..])].into_iter(), refuse).unwrap_err();
        assert_eq!((refused.code, fs::read(&file).unwrap()), (codes::VERIFY_FAILED, b"old".to_vec()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unfinished_write_is_reported_and_not_completed_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let [file, output] = ["file", "out"].map(|name| directory.path().join(name));
        fs::write(&file, "newcontent of before").unwrap();
        fs::write(content_path(&file), "new content").unwrap();
        for path in [&file, &output] {
            let refused = open_to_change(&file, path).unwrap_err();
            assert_eq!(refused.code, codes::UNFINISHED_WRITE);
            assert!(refused.to_string().contains(".file.hotswap-content"), "{refused}");
        }
        let refused = write_in_place(&file, b"other").unwrap_err();
        assert_eq!(refused.code, codes::UNFINISHED_WRITE);
        assert_eq!(fs::read(&file).unwrap(), b"newcontent of before");
    }
}
