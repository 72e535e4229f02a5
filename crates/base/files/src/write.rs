//! Replacing a file as a whole.

use crate::beside::{directory_of, name_file, remove_left_over, temporary_name, unnamed_file};
use crate::copy;
use crate::inode::{InodeState, directory_refusal};
use crate::input::{self, InputFile};
use crate::same_inode::{self, InPlaceError};
use hotswap_report::{Diagnostic, DiagnosticLocation, codes};
use rustix::fs::Mode;
use rustix::process;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Reads a whole file.
///
/// # Errors
/// [`codes::CANNOT_READ`] with the file and the operating system's error.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    fs::read(path).map_err(|error| Diagnostic::cannot_read(path, error))
}

/// Replaces the content of `path` by `bytes` in one step, keeping everything else that an existing file carries (`inode`).
///
/// The content is written to an unnamed file of the same directory first (`O_TMPFILE`: nothing is left when the process is
/// killed), then gets a temporary name and is renamed. On a file system without unnamed files it has the temporary name
/// from the start; the next run removes it.
///
/// # Errors
/// [`codes::UNSUPPORTED_OUTPUT`] for a device, pipe or directory, [`codes::CANNOT_WRITE`] otherwise.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    replace_with(path, bytes, 0o666 & !umask())
}

/// As [`replace`], for a changed copy of the file `model`: a new file gets its permissions, so that
/// a program stays executable.
///
/// # Errors
/// As [`replace`]; [`codes::CANNOT_READ`] where the model does not exist.
pub fn replace_like(path: &Path, bytes: &[u8], model: &Path) -> Result<(), Diagnostic> {
    replace_with(path, bytes, mode_of(model)?)
}

/// The permissions of a model, without those that the umask clears for new files; those of a new file where it
/// comes from a pipe.
fn mode_of(model: &Path) -> Result<u32, Diagnostic> {
    let meta =
        if input::is_stdin(model) { input::stdin_file().and_then(|file| file.metadata()) } else { fs::metadata(model) };
    let meta = meta.map_err(|error| Diagnostic::cannot_read(model, error))?;
    Ok(if meta.is_file() { meta.mode() & 0o777 & !umask() } else { 0o666 & !umask() })
}

/// Options for writing the parts of a file.
#[derive(Debug)]
pub struct WriteOptions<'h> {
    /// Inputs of which parts may be slices.
    pub sources: &'h [&'h InputFile],
    pub threads: usize,
    /// The way in which the content gets to its path.
    pub placement: Placement,
}

/// The way in which a complete new content gets to its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// A new file takes the path, in one step.
    #[default]
    NewFile,
    /// The content is copied into the existing file, so that its other names have it, too (`same_inode`).
    SameInode,
}

/// As [`replace_like`], for content that is made of parts, each with its offset, written by several threads and read
/// back before it takes its place.
///
/// Gaps between the parts, up to `size`, are zero and not stored where the file system supports holes. Large parts that
/// are slices of `sources` are copied from file to file, as `cp` does. Every part has been compared with the content of
/// the new file when `check` sees it.
///
/// # Errors
/// As [`replace_like`], and errors of `check`; the old content is kept then.
pub fn replace_parts<'p>(
    path: &Path,
    (size, model): (u64, &Path),
    how: WriteOptions<'_>,
    parts: impl Iterator<Item = (u64, &'p [u8])>,
    check: impl FnOnce(&InputFile) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mode = mode_of(model)?;
    let mut refused = None;
    let WriteOptions { sources, threads, placement } = how;
    let parts: Vec<_> = parts.collect();
    let done = replace_filled(path, mode, placement, |file: &mut File| {
        file.set_len(size)?;
        let put = copy::put_all(file, &parts, sources, threads).and_then(|()| copy::check_gaps(file, size, &parts));
        put.inspect_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                refused = Some(Diagnostic::error(codes::VERIFY_FAILED, error.to_string()).in_file(path));
            }
        })?;
        let written = if size == 0 { InputFile::empty() } else { InputFile::map_output(file)? };
        check(&written).map_err(|error| {
            refused = Some(error);
            io::Error::other("what was written is not what was planned")
        })
    });
    refused.map_or(done, Err)
}

/// As [`replace_like`], for content that `fill` writes into the new file.
///
/// # Errors
/// As [`replace_like`], and errors of `fill`; the old content is kept then.
pub fn replace_written(
    path: &Path,
    model: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mode = mode_of(model)?;
    let mut refused = None;
    let done = replace_filled(path, mode, Placement::NewFile, |file| {
        fill(file).map_err(|error| {
            refused = Some(error);
            io::Error::other("the content was refused")
        })
    });
    refused.map_or(done, Err)
}

/// `new`: permissions for a file that does not exist yet.
fn replace_with(path: &Path, bytes: &[u8], new: u32) -> Result<(), Diagnostic> {
    replace_filled(path, new, Placement::NewFile, |file| file.write_all(bytes))
}

fn replace_filled(
    path: &Path,
    new: u32,
    placement: Placement,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Diagnostic> {
    let target = resolve_link(path)?;
    same_inode::check_finished(&target)?;
    let access = InodeState::of_path(&target, new)
        .map_err(|error| Diagnostic { place: DiagnosticLocation::default(), ..error }.in_file(path))?;
    let written = match placement {
        Placement::NewFile => write_beside(&target, &access, fill).map_err(InPlaceError::Untouched),
        Placement::SameInode => same_inode::write_into(&target, &access, fill),
    };
    written.map_err(|error| match error {
        InPlaceError::Untouched(error) => refused_write(path, &target, &error),
        InPlaceError::Unfinished(what) => Diagnostic::error(codes::UNFINISHED_WRITE, what).in_file(path),
    })
}

/// A write that failed before the old content changed.
fn refused_write(path: &Path, target: &Path, error: &io::Error) -> Diagnostic {
    let is_forbidden = error.kind() == io::ErrorKind::PermissionDenied;
    let by_flag = is_forbidden.then(|| directory_refusal(directory_of(target))).flatten();
    by_flag.map_or_else(|| Diagnostic::cannot_write(path, error), |refusal| refusal.in_file(path))
}

/// A link is followed, so that its target is replaced and not the link; a dangling link is replaced. A link that another user
/// may have planted is refused.
///
/// A relative path stays relative: it may be short where the path from the root exceeds the system's limit.
pub(crate) fn resolve_link(path: &Path) -> Result<PathBuf, Diagnostic> {
    const MOST_LINKS: usize = 40; // the system's own limit
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_symlink() && is_planted(&meta, &target)? => {
                let what = "it is a link of another user in a directory where every user can make links";
                let refused = Diagnostic::error(codes::CANNOT_WRITE, what).in_file(path);
                return Err(refused.advise("name the file that is meant, or remove the link"));
            }
            Ok(meta) if meta.is_symlink() => {
                let next = fs::read_link(&target).map_err(|error| Diagnostic::cannot_write(path, &error))?;
                target = directory_of(&target).join(next);
            }
            Ok(_) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
            Err(error) => return Err(Diagnostic::cannot_write(path, &error)),
        }
    }
    Err(Diagnostic::cannot_write(path, std::io::Error::from(rustix::io::Errno::LOOP)))
}

/// The rule by which the kernel follows no link where `fs.protected_symlinks` is set (`man 5 proc`). It does not see that the
/// text of a link is read here.
fn is_planted(link: &Metadata, path: &Path) -> Result<bool, Diagnostic> {
    const STICKY_FOR_ALL: u32 = 0o1002;
    let directory = directory_of(path);
    let directory = fs::metadata(directory).map_err(|error| Diagnostic::cannot_write(directory, &error))?;
    let is_open = directory.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL;
    Ok(is_open && ![directory.uid(), process::geteuid().as_raw()].contains(&link.uid()))
}

/// The process's umask. The only call that returns it also sets it, which other threads could see, so it is read from
/// the kernel's status page (`man 5 proc`, since Linux 4.7), and by the call only where that page cannot be read twice: files that
/// other threads make during the call are closed to the group.
fn umask() -> u32 {
    let status = Path::new("/proc/self/status");
    umask_in(status).or_else(|| umask_in(status)).unwrap_or_else(umask_by_call)
}

fn umask_in(status: &Path) -> Option<u32> {
    let status = fs::read_to_string(status).ok()?;
    let digits = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(digits.trim(), 8).ok()
}

/// While it is asked, new files are the user's alone: a guess could give others rights that the user's umask forbids.
fn umask_by_call() -> u32 {
    static ASKED: Mutex<()> = Mutex::new(());
    let _asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let mask = process::umask(Mode::RWXG | Mode::RWXO);
    process::umask(mask);
    mask.as_raw_mode()
}

fn write_beside(target: &Path, access: &InodeState, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let directory = directory_of(target);
    remove_left_over(target);
    match unnamed_file(directory) {
        Ok(unnamed) => from_unnamed(unnamed, target, access, fill),
        Err(_) => from_named(target, access, fill),
    }
}

fn from_unnamed(
    mut file: File,
    target: &Path,
    access: &InodeState,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    fill(&mut file)?;
    access.give_to(&file)?;
    let temporary = temporary_name(target);
    name_file(&file, &temporary)?;
    rename_or_remove(&temporary, target)
}

/// For file systems without unnamed files, and for root directories without `/proc`.
fn from_named(target: &Path, access: &InodeState, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_name(target);
    let new = File::options().read(true).write(true).create_new(true).mode(0o600).open(&temporary);
    let filled = new.and_then(|mut file| {
        fill(&mut file)?;
        access.give_to(&file)
    });
    filled.and_then(|()| rename_or_remove(&temporary, target)).inspect_err(|_| {
        // The error that matters is the first one; the file may not exist at all.
        let _ = fs::remove_file(&temporary);
    })
}

fn rename_or_remove(temporary: &Path, target: &Path) -> io::Result<()> {
    fs::rename(temporary, target).inspect_err(|_| {
        let _ = fs::remove_file(temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::{LONGEST_NAME, LONGEST_PATH};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn how<'h>(source: &'h &'h InputFile) -> WriteOptions<'h> {
        WriteOptions { sources: std::slice::from_ref(source), threads: 2, placement: Placement::NewFile }
    }

    #[test]
    fn replaces_content_keeps_mode_and_follows_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o750)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o750);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_longest_names_and_paths_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut deep = dir.path().to_owned();
        while deep.as_os_str().len() < LONGEST_PATH - 2 * 201 {
            deep.push("d".repeat(200));
        }
        fs::create_dir_all(&deep).unwrap();
        let rest = LONGEST_PATH - deep.as_os_str().len() - 1;
        let longest = [dir.path().join("n".repeat(LONGEST_NAME)), deep.join("p".repeat(rest.min(LONGEST_NAME)))];
        for file in &longest {
            for content in [b"old", b"new"] {
                replace_file(file, content).unwrap();
                assert_eq!(fs::read(file).unwrap(), content);
            }
            from_named(file, &InodeState::new(0o644), |file| file.write_all(b"without unnamed files")).unwrap();
            assert_eq!(fs::read(file).unwrap(), b"without unnamed files");
            assert_eq!(
                fs::read_dir(directory_of(file)).unwrap().count(),
                1 + usize::from(directory_of(file) == dir.path())
            );
        }
    }

    #[test]
    fn a_file_keeps_its_owner_and_set_id_bits() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        replace_file(&file, b"new").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o6755);
        if std::os::unix::fs::chown(&file, Some(65534), Some(65534)).is_ok() {
            // As root: the new file has their owner, with all of its bits.
            fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
            replace_file(&file, b"newer").unwrap();
            let meta = fs::metadata(&file).unwrap();
            assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (65534, 65534, 0o6755));
        }
    }

    #[test]
    fn what_a_killed_run_left_is_gone_after_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        let left = dir.path().join(".out.hotswap-tmp.4194305.0"); // above the largest process number of Linux
        let living = dir.path().join(".out.hotswap-tmp.1.0");
        fs::write(&left, "half").unwrap();
        fs::write(&living, "half").unwrap();
        replace_file(&file, b"whole").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"whole");
        assert_eq!((left.exists(), living.exists()), (false, true));
    }

    #[test]
    fn a_file_system_without_unnamed_files_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        from_named(&file, &InodeState::new(0o640), |file| file.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"whole");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn many_writers_of_one_file_leave_a_whole_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let file = &file;
                scope.spawn(move || (0..50).for_each(|_| replace_file(file, &[writer; 5000]).unwrap()));
            }
        });
        let content = fs::read(&file).unwrap();
        assert!(content.len() == 5000 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn parts_become_a_file_with_holes_that_is_checked_before_it_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (file, model) = (dir.path().join("out"), dir.path().join("model"));
        fs::write(&file, "old").unwrap();
        let mut wanted = vec![0; 3 << 20];
        wanted[70_000] = 7;
        wanted[(3 << 20) - 1] = 9;
        fs::write(&model, &wanted).unwrap();
        let source = crate::open_input(&model).unwrap();
        // From memory, and from a file; gaps are zero.
        let parts = || [(60_000, &wanted[60_000..80_000]), (2 << 20, &source[2 << 20..])].into_iter();
        let no = |_: &InputFile| Err(Diagnostic::error(codes::VERIFY_FAILED, "no"));
        let error = replace_parts(&file, (3 << 20, &model), how(&&source), parts(), no).unwrap_err();
        assert_eq!((error.code, fs::read(&file).unwrap()), (codes::VERIFY_FAILED, b"old".to_vec()));
        let yes = |written: &InputFile| if written[..] == wanted { Ok(()) } else { no(written) };
        replace_parts(&file, (3 << 20, &model), how(&&source), parts(), yes).unwrap();
        assert!(fs::read(&file).unwrap() == wanted);
        // Blocks of 512 bytes; a file system without holes needs 6144.
        assert!(fs::metadata(&file).unwrap().blocks() <= 6144);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let (file, model) = (dir.path().join("out"), dir.path().join("model"));
        fs::write(&file, "old").unwrap();
        fs::write(&model, vec![1; 1 << 20]).unwrap();
        let source = crate::open_input(&model).unwrap();
        let parts = [(0, &source[..]), (u64::MAX / 2, &source[..])].into_iter();
        let error = replace_parts(&file, (1 << 20, &model), how(&&source), parts, |_| Ok(())).unwrap_err();
        assert_eq!((error.code, fs::read(&file).unwrap()), (codes::CANNOT_WRITE, b"old".to_vec()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_device_is_refused() {
        let error = replace_file(Path::new("/dev/null"), b"x").unwrap_err();
        assert_eq!(error.code, codes::UNSUPPORTED_OUTPUT);
    }

    #[test]
    fn an_error_of_the_system_is_told() {
        let error = replace_file(Path::new("/nonexistent-directory/out"), b"x").unwrap_err();
        assert_eq!(error.code, codes::CANNOT_WRITE);
    }
}
