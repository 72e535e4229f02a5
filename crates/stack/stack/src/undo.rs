//! Removes what earlier runs have written: exactly the rows of manifest and journal, each only while it has the hash of
//! its row. Files of others stay, and so do the directories that hold them.
//!
//! Invariant: a host library of others in the directory keeps the data files that it opens ([`use_check::removal_losses`]); otherwise
//! nothing is removed.

use crate::existing::{is_file, text_of_link};
use crate::hash;
use crate::journal::{JOURNAL, JournalHistory, lock_destination};
use crate::manifest::{LinkRow, MANIFEST};
use crate::use_check;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The result of an undo.
#[derive(Debug, Default)]
pub struct Undone {
    /// Files and links that were removed.
    pub removed: usize,
    /// Files that stay, because they are not what HotSwap wrote. The manifest stays then, too.
    pub kept: Vec<Diagnostic>,
}

/// Removes the tree of a destination, complete or interrupted.
///
/// # Errors
/// [`codes::NO_PART`] where it does not exist; [`codes::LOAD_LOST`] where a library that stays would lose files that it opens;
/// failures of the file system.
pub fn undo_tree(destination: &Path) -> Result<Undone, Diagnostic> {
    let lock = lock_destination(destination)?;
    let past = JournalHistory::read(destination, None)?;
    if !past.is_any {
        return Err(no_tree(destination));
    }
    refuse_losses(destination, &past)?;
    let mut removal = Removal::new(destination, &past);
    past.links.iter().for_each(|row| removal.remove_link(row));
    past.files.keys().for_each(|path| removal.remove_output(path));
    let mut undone = Undone::default();
    let inner: BTreeSet<PathBuf> =
        past.directories.iter().filter(|path| !path.as_os_str().is_empty()).cloned().collect();
    removal.empty_directories(&inner);
    (undone.removed, undone.kept) = removal.finish_removal()?;
    if undone.kept.is_empty() {
        for name in [MANIFEST, JOURNAL] {
            remove_file(&destination.join(name))?;
        }
        if past.directories.contains(Path::new("")) {
            remove_directory(destination)?;
        }
    }
    drop(lock);
    Ok(undone)
}

/// Refuses a removal by which a library that stays would lose a file.
fn refuse_losses(destination: &Path, past: &JournalHistory) -> Result<(), Diagnostic> {
    let mut removed = BTreeSet::new();
    for row in &past.links {
        if text_of_link(&destination.join(&row.path))?.as_ref() == Some(&row.to) {
            removed.insert(row.path.clone());
        }
    }
    for path in past.files.keys() {
        let full = destination.join(path);
        if is_file(&full)? && past.has_row(path, &hash::of_file(&full)?) {
            removed.insert(path.clone());
        }
    }
    let Some(loss) = use_check::removal_losses(destination, &removed)?.into_iter().next() else { return Ok(()) };
    let error = Diagnostic::from(loss).in_file(destination);
    Err(error
        .advise("a library that HotSwap did not write opens this file: move that library out of the directory first"))
}

/// The error for a destination without a tree.
pub(crate) fn no_tree(destination: &Path) -> Diagnostic {
    let what = format!("it has no {MANIFEST}");
    Diagnostic::error(codes::NO_PART, what).in_file(destination).advise("name the --dest of an earlier `hotswap serve`")
}

/// A removal of rows.
pub(crate) struct Removal<'r> {
    destination: &'r Path,
    past: &'r JournalHistory,
    removed: usize,
    kept: Vec<Diagnostic>,
    failure: Option<Diagnostic>,
}

impl<'r> Removal<'r> {
    pub(crate) fn new(destination: &'r Path, past: &'r JournalHistory) -> Self {
        Self { destination, past, removed: 0, kept: Vec::new(), failure: None }
    }

    /// Removes an output, if it is the one of a row.
    pub(crate) fn remove_output(&mut self, path: &Path) {
        let full = self.destination.join(path);
        hotswap_files::remove_left_over(&full);
        let sha256 = match full.symlink_metadata() {
            Ok(meta) if meta.is_file() => hash::of_file(&full).map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => Err(Diagnostic::cannot_read(&full, error)),
        };
        match sha256 {
            Ok(Some(sha256)) if self.past.has_row(path, &sha256) => self.take_away(&full),
            Ok(_) => self.keep_foreign("it was changed since HotSwap wrote it, so it stays", &full),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Removes a link, if it is the one of a row.
    pub(crate) fn remove_link(&mut self, row: &LinkRow) {
        let full = self.destination.join(&row.path);
        match fs::read_link(&full) {
            Ok(to) if to == row.to => self.take_away(&full),
            // Another row of this path may be its own.
            Ok(to) if self.past.links.contains(&LinkRow { path: row.path.clone(), to: to.clone() }) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory) => {
                let error = Diagnostic::cannot_read(&full, error);
                self.failure = self.failure.take().or(Some(error));
            }
            _ => self.keep_foreign("it is not the link that HotSwap made, so it stays", &full),
        }
    }

    fn take_away(&mut self, full: &Path) {
        match remove_file(full) {
            Ok(()) => self.removed += 1,
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    fn keep_foreign(&mut self, what: &str, full: &Path) {
        self.kept.push(Diagnostic::error(codes::NOT_OURS, what).in_file(full));
    }

    /// Removes directories that are empty now, the inner ones first.
    pub(crate) fn empty_directories(&mut self, directories: &BTreeSet<PathBuf>) {
        for path in directories.iter().rev().filter(|path| !path.as_os_str().is_empty()) {
            if let Err(error) = remove_directory(&self.destination.join(path)) {
                self.failure = self.failure.take().or(Some(error));
            }
        }
    }

    /// The number of removed rows, and those that stay.
    pub(crate) fn finish_removal(self) -> Result<(usize, Vec<Diagnostic>), Diagnostic> {
        self.failure.map_or(Ok((self.removed, self.kept)), Err)
    }
}

fn remove_file(path: &Path) -> Result<(), Diagnostic> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Diagnostic::cannot_write(path, &error)),
        _ => Ok(()),
    }
}

/// A directory that is not empty, or gone, is left.
fn remove_directory(path: &Path) -> Result<(), Diagnostic> {
    match fs::remove_dir(path) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Err(Diagnostic::cannot_write(path, &error))
        }
        _ => Ok(()),
    }
}
