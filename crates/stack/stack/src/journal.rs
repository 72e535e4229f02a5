//! The journal of a run: the rows of the manifest, one a line, each before its file gets its name.
//!
//! Invariants: a line is written whole or is ignored: one without its end is a write that was interrupted. So every
//! output of an interrupted run has a row with its hash, and the files of others lack one.

use crate::manifest::{FileRow, LinkRow, MakerSettings, TreeManifest, check_path};
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Its name in the destination.
pub(crate) const JOURNAL: &str = "hotswap-journal.jsonl";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum JournalLine {
    Begin(MakerSettings),
    File(FileRow),
    Link(LinkRow),
    Directory(PathBuf),
}

impl JournalLine {
    /// As it is in the file.
    fn line_text(&self) -> Result<String, Diagnostic> {
        let text = serde_json::to_string(self);
        text.map(|text| text + "\n").map_err(|error| Diagnostic::error(codes::CANNOT_WRITE, error.to_string()))
    }
}

/// A row of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalRow {
    pub(crate) row: FileRow,
    /// Whether its settings are those of this run.
    pub(crate) is_current: bool,
}

/// Rows of earlier runs, complete or not.
#[derive(Debug, Default)]
pub(crate) struct JournalHistory {
    /// The rows of each path, the oldest first.
    pub(crate) files: BTreeMap<PathBuf, Vec<JournalRow>>,
    pub(crate) links: BTreeSet<LinkRow>,
    pub(crate) directories: BTreeSet<PathBuf>,
    /// Whether there was any run.
    pub(crate) is_any: bool,
    /// Whether one was interrupted.
    pub(crate) is_interrupted: bool,
}

impl JournalHistory {
    /// The rows of manifest and journal.
    pub(crate) fn read(destination: &Path, maker: Option<&MakerSettings>) -> Result<Self, Diagnostic> {
        let mut past = Self::default();
        if let Some(manifest) = TreeManifest::read(destination)? {
            past.is_any = true;
            past.take_manifest(&manifest, maker);
        }
        past.read_journal(destination, maker)?;
        Ok(past)
    }

    fn take_manifest(&mut self, manifest: &TreeManifest, maker: Option<&MakerSettings>) {
        let is_current = maker.is_some_and(|maker| *maker == manifest.maker);
        manifest.files.iter().for_each(|row| self.add_row(row.clone(), is_current));
        self.links.extend(manifest.links.iter().cloned());
        self.directories.extend(manifest.directories.iter().cloned());
    }

    fn add_row(&mut self, row: FileRow, is_current: bool) {
        self.files.entry(row.path.clone()).or_default().push(JournalRow { row, is_current });
    }

    fn read_journal(&mut self, destination: &Path, maker: Option<&MakerSettings>) -> Result<(), Diagnostic> {
        let path = destination.join(JOURNAL);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Diagnostic::cannot_read(path, error)),
        };
        (self.is_any, self.is_interrupted) = (true, true);
        let mut is_current = false;
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for line in whole {
            let line: JournalLine = serde_json::from_str(line)
                .map_err(|error| Diagnostic::error(codes::MALFORMED, error.to_string()).in_file(&path))?;
            match line {
                JournalLine::Begin(begun) => is_current = maker.is_some_and(|maker| *maker == begun),
                JournalLine::File(row) => check_path(&row.path).map(|()| self.add_row(row, is_current))?,
                JournalLine::Link(row) => {
                    check_path(&row.path)?;
                    self.links.insert(row);
                }
                // The destination itself is the empty path.
                JournalLine::Directory(path) => {
                    check_path(&path)?;
                    self.directories.insert(path);
                }
            }
        }
        Ok(())
    }

    /// A journal with content that was not there when the rows were read: no other process writes below the lock, so that the file system
    /// has hidden it, and its rows would be lost.
    fn refuse_unseen_journal(&self, path: &Path, journal: &File) -> Result<(), Diagnostic> {
        let size = journal.metadata().map_err(|error| Diagnostic::cannot_write(path, &error))?.len();
        if self.is_interrupted || size == 0 {
            return Ok(());
        }
        let hidden = io::Error::from(rustix::io::Errno::NOENT);
        let what = format!("{hidden}; a moment later it was there");
        Err(Diagnostic::error(codes::CANNOT_READ, what).in_file(path).advise("run the command again"))
    }

    /// Whether one of the rows of a path has this hash.
    pub(crate) fn has_row(&self, path: &Path, sha256: &str) -> bool {
        self.files.get(path).is_some_and(|rows| rows.iter().any(|known| known.row.sha256 == sha256))
    }
}

/// The journal of this run.
#[derive(Debug)]
pub(crate) struct Journal {
    destination: PathBuf,
    state: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    file: File,
    directories: BTreeSet<PathBuf>,
}

impl Journal {
    /// Begins or continues the journal of a destination, which exists.
    pub(crate) fn begin_or_continue(
        destination: &Path,
        maker: &MakerSettings,
        past: &JournalHistory,
    ) -> Result<Self, Diagnostic> {
        let path = destination.join(JOURNAL);
        let file = open_journal_file(&path).map_err(|error: io::Error| Diagnostic::cannot_write(&path, &error))?;
        past.refuse_unseen_journal(&path, &file)?;
        let state = Mutex::new(JournalState { file, directories: past.directories.clone() });
        let journal = Self { destination: destination.to_owned(), state };
        journal.append_line(&JournalLine::Begin(maker.clone()))?;
        Ok(journal)
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut JournalState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn append_line(&self, line: &JournalLine) -> Result<(), Diagnostic> {
        let path = self.destination.join(JOURNAL);
        let text = line.line_text().map_err(|error| error.in_file(&path))?;
        let written = self.with_state(|state| state.file.write_all(text.as_bytes()));
        written.map_err(|error| Diagnostic::cannot_write(&path, &error))
    }

    /// Notes a file that is about to get its name.
    pub(crate) fn note_file(&self, row: &FileRow) -> Result<(), Diagnostic> {
        self.append_line(&JournalLine::File(row.clone()))
    }

    /// Notes a link that is about to be made.
    pub(crate) fn note_link(&self, row: &LinkRow) -> Result<(), Diagnostic> {
        self.append_line(&JournalLine::Link(row.clone()))
    }

    /// Makes the directories of a file, and notes those that are new.
    pub(crate) fn directories_of(&self, path: &Path) -> Result<(), Diagnostic> {
        let mut parents: Vec<&Path> =
            path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).collect();
        parents.reverse();
        for parent in parents {
            let full = self.destination.join(parent);
            match fs::symlink_metadata(&full) {
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Diagnostic::cannot_write(&full, &error)),
            }
            self.append_line(&JournalLine::Directory(parent.to_owned()))?;
            self.with_state(|state| state.directories.insert(parent.to_owned()));
            match fs::create_dir(&full) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Diagnostic::cannot_write(&full, &error));
                }
                // Another thread may have made it.
                _ => {}
            }
        }
        Ok(())
    }

    /// The directories that runs have made.
    pub(crate) fn made_directories(&self) -> Vec<PathBuf> {
        self.with_state(|state| state.directories.iter().cloned().collect())
    }

    /// Ends it: the manifest has all of its rows.
    pub(crate) fn end_journal(self) -> Result<(), Diagnostic> {
        let path = self.destination.join(JOURNAL);
        fs::remove_file(&path).map_err(|error| Diagnostic::cannot_write(&path, &error))
    }
}

fn open_journal_file(path: &Path) -> Result<File, io::Error> {
    let file = File::options().read(true).append(true).create(true).open(path)?;
    // A line without its end is cut off, or the next one would continue it.
    let whole = fs::read(path)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    file.set_len(whole as u64)?;
    Ok(file)
}

/// The beginning of the names of directories in which destinations are made.
const UNFINISHED: &str = ".hotswap-serve.";

/// Makes a destination, if it does not exist, with a journal that says that a run made it. Both appear in one step:
/// whenever a run is killed, an undo knows whose the directory is.
pub(crate) fn create_destination(destination: &Path) -> Result<(), Diagnostic> {
    match fs::metadata(destination) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Diagnostic::cannot_write(destination, &error));
        }
        // A file in its place is refused by the rename.
        _ => {}
    }
    let parent = destination.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    hotswap_files::create_directories(parent).map_err(|error| Diagnostic::cannot_write(parent, &error))?;
    let scratch = ScratchDirectory::new(parent, UNFINISHED)?;
    // The scratch directory is for this user alone; the destination is as the umask says.
    let made = scratch.path().join("new");
    fs::create_dir(&made).map_err(|error| Diagnostic::cannot_write(&made, &error))?;
    let line = JournalLine::Directory(PathBuf::new()).line_text()?;
    fs::write(made.join(JOURNAL), line).map_err(|error| Diagnostic::cannot_write(&made, &error))?;
    match fs::rename(&made, destination) {
        // Another run was sooner.
        Err(_) if destination.is_dir() => Ok(()),
        renamed => renamed.map_err(|error| Diagnostic::cannot_write(destination, &error)),
    }
}

/// Locks a destination until the result is dropped, so that two runs do not mix.
pub(crate) fn lock_destination(destination: &Path) -> Result<File, Diagnostic> {
    let directory = File::open(destination).map_err(|error| Diagnostic::cannot_write(destination, &error))?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let what = "another `hotswap serve` is working there";
            Err(Diagnostic::error(codes::CANNOT_WRITE, what).in_file(destination).advise("wait until it has ended"))
        }
        // A file system without locks is used without.
        _ => Ok(directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ServeRequest;

    fn row(path: &str) -> FileRow {
        FileRow { path: path.into(), sha256: path.to_uppercase(), ..FileRow::default() }
    }

    #[test]
    fn an_interrupted_line_is_cut_off_and_the_next_run_continues() {
        let directory = tempfile::tempdir().unwrap();
        let maker = MakerSettings::of_request(&ServeRequest::default());
        let begin = |past: &JournalHistory| Journal::begin_or_continue(directory.path(), &maker, past).unwrap();
        let journal = begin(&JournalHistory::default());
        journal.note_file(&row("a")).unwrap();
        journal.directories_of(Path::new("x/y/z")).unwrap();
        drop(journal);
        let path = directory.path().join(JOURNAL);
        let whole = fs::read_to_string(&path).unwrap();
        for cut in 1..whole.lines().last().unwrap().len() {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let past = JournalHistory::read(directory.path(), Some(&maker)).unwrap();
            assert!(past.is_interrupted && past.has_row(Path::new("a"), "A") && !past.has_row(Path::new("a"), "B"));
            assert_eq!(past.directories.len(), 1, "{cut}");
            drop(begin(&past));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.lines().all(|line| serde_json::from_str::<JournalLine>(line).is_ok()), "{text}");
        }
    }

    /// As a file system does that answers "no such file" once.
    #[test]
    fn a_journal_that_was_not_seen_is_not_continued() {
        let directory = tempfile::tempdir().unwrap();
        let maker = MakerSettings::of_request(&ServeRequest::default());
        let begin = |past: &JournalHistory| Journal::begin_or_continue(directory.path(), &maker, past);
        begin(&JournalHistory::default()).unwrap().note_file(&row("a")).unwrap();
        let error = begin(&JournalHistory::default()).unwrap_err();
        assert!(error.code == codes::CANNOT_READ && error.to_string().contains("No such file"), "{error}");
        begin(&JournalHistory::read(directory.path(), Some(&maker)).unwrap()).unwrap();
    }

    #[test]
    fn rows_of_another_request_are_not_current() {
        let directory = tempfile::tempdir().unwrap();
        let maker = MakerSettings::of_request(&ServeRequest::default());
        Journal::begin_or_continue(directory.path(), &maker, &JournalHistory::default())
            .unwrap()
            .note_file(&row("a"))
            .unwrap();
        let other =
            MakerSettings::of_request(&ServeRequest { targets: vec!["gfx1031".to_owned()], ..ServeRequest::default() });
        for (asked, expected) in [(&maker, true), (&other, false)] {
            let past = JournalHistory::read(directory.path(), Some(asked)).unwrap();
            assert_eq!(past.files[Path::new("a")], [JournalRow { row: row("a"), is_current: expected }]);
        }
    }

    #[test]
    fn paths_out_of_the_destination_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["../a", "/etc/passwd", "a/../../b"] {
            let line = serde_json::to_string(&JournalLine::File(row(path))).unwrap();
            fs::write(directory.path().join(JOURNAL), format!("{line}\n")).unwrap();
            assert_eq!(JournalHistory::read(directory.path(), None).unwrap_err().code, codes::MALFORMED, "{path}");
        }
        fs::write(directory.path().join(JOURNAL), "text\n").unwrap();
        assert_eq!(JournalHistory::read(directory.path(), None).unwrap_err().code, codes::MALFORMED);
    }

    #[test]
    fn one_run_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock_destination(directory.path()).unwrap();
        assert!(lock_destination(directory.path()).unwrap_err().to_string().contains("another `hotswap serve`"));
        drop(held);
        lock_destination(directory.path()).unwrap();
    }
}
