//! Directories (an installation, an unpacked package) with the same changes as packages: a new directory is written beside the old
//! one.
//!
//! Files that the directory does not have yet are written after its own.
//!
//! Invariants: the new directory gets its name when it is complete and checked, and never replaces anything. Permissions and times
//! stay, links keep their text, names of one file (hard links) stay names of one file. A FIFO, a socket, a device and a name that is not UTF-8
//! are refused by name: nothing is left out in silence.
//!
//! Absent on purpose: owners and access control lists of other users, which a copy does not have either.

use crate::{AddedContent, MemberChange, PackageChanges, PackageLink, PackageMember, cannot_read, cannot_write};
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, DirEntry, File, FileTimes, Metadata};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Shows every file and every link below a directory, in the order of their names.
///
/// # Errors
/// Files that cannot be read, files that are refused, and the errors of `changes`.
pub fn visit_directory(from: &Path, changes: &mut PackageChanges<'_, '_>) -> Result<(), Diagnostic> {
    DirectoryCopy { changes, output: None, written: HashMap::new(), size: 0 }.enter(from, Path::new(""))
}

/// Writes a directory with its changes to `output`, which gets its name after `check`; returns the bytes of its files.
///
/// # Errors
/// As for [`visit_directory`]; [`codes::CANNOT_WRITE`] for an output that exists, [`codes::USAGE`] for one inside of the directory.
pub fn rewrite_directory(
    from: &Path,
    output: &Path,
    changes: &mut PackageChanges<'_, '_>,
    check: &dyn Fn(&Path) -> Result<(), Diagnostic>,
) -> Result<u64, Diagnostic> {
    refuse_existing(output)?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if canonical(parent)?.starts_with(canonical(from)?) {
        return Err(Diagnostic::error(codes::USAGE, "the output is inside of the directory").in_file(output));
    }
    let scratch = ScratchDirectory::new(parent, ".hotswap-tree-")?;
    // At the depth of the output, so that links out of the directory lead where they will lead.
    let new = scratch.path();
    let mut copy = DirectoryCopy { changes, output: Some(new), written: HashMap::new(), size: 0 };
    copy.enter(from, Path::new(""))?;
    let size = copy.size;
    check(new)?;
    refuse_existing(output)?;
    fs::rename(new, output).map_err(|error| cannot_write(&error).in_file(output))?;
    Ok(size)
}

fn refuse_existing(output: &Path) -> Result<(), Diagnostic> {
    match output.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_read(&error).in_file(output)),
        Ok(_) => {
            let error = Diagnostic::error(codes::CANNOT_WRITE, "it exists").in_file(output);
            Err(error.advise("name a new directory, and exchange the two when it is written"))
        }
    }
}

fn canonical(path: &Path) -> Result<PathBuf, Diagnostic> {
    fs::canonicalize(path).map_err(|error| cannot_read(&error).in_file(path))
}

fn make_directory(path: &Path) -> Result<(), Diagnostic> {
    fs::create_dir(path).map_err(|error| cannot_write(&error).in_file(path))
}

/// The identity of a file with several names.
#[derive(PartialEq, Eq, Hash)]
struct Inode {
    device: u64,
    number: u64,
}

struct DirectoryCopy<'d, 'c, 'm> {
    changes: &'d mut PackageChanges<'c, 'm>,
    output: Option<&'d Path>,
    /// The copies of files with several names; nothing for one that is left out.
    written: HashMap<Inode, Option<PathBuf>>,
    size: u64,
}

impl DirectoryCopy<'_, '_, '_> {
    fn enter(&mut self, from: &Path, relative: &Path) -> Result<(), Diagnostic> {
        let meta = fs::metadata(from).map_err(|error| directory_read_error(&error, from))?;
        let listed = fs::read_dir(from).map_err(|error| directory_read_error(&error, from))?;
        let mut entries: Vec<DirEntry> =
            listed.collect::<Result<_, _>>().map_err(|error| directory_read_error(&error, from))?;
        entries.sort_by_key(DirEntry::file_name);
        let own = entries.iter().map(DirEntry::file_name).collect();
        for entry in entries {
            let path = relative.join(entry.file_name());
            self.add(&entry, &path).map_err(|error| in_file_of(error, &entry.path()))?;
        }
        self.add_further(&own, relative)?;
        // At the end: a directory without the right to write is written, too, and its time is that of its last change.
        if let Some(output) = self.output {
            keep_times(&output.join(relative), &meta)?;
            set_permissions(&output.join(relative), &meta)?;
        }
        Ok(())
    }

    /// Writes the further files whose path leaves the old tree in this directory, whose own entries these are, with the permissions and times of their contents.
    /// A directory without the right to write gets them while it is still new.
    fn add_further(&mut self, own: &BTreeSet<OsString>, relative: &Path) -> Result<(), Diagnostic> {
        let Some(output) = self.output else { return Ok(()) };
        for added in self.changes.added {
            let name = Path::new(&added.name).strip_prefix(relative).ok().and_then(|rest| rest.components().next());
            if name.is_none_or(|name| own.contains(name.as_os_str())) {
                continue;
            }
            let path = output.join(&added.name);
            let parent = path.parent().map_or(Ok(()), hotswap_files::create_directories);
            parent.map_err(|error| cannot_write(&error).in_file(&path))?;
            match &added.content {
                AddedContent::File(file) => self.size += copy_further(file, &path)?,
                AddedContent::Link(to) => symlink(to, &path).map_err(|error| cannot_write(&error).in_file(&path))?,
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: &DirEntry, relative: &Path) -> Result<(), Diagnostic> {
        let path = entry.path();
        let meta = path.symlink_metadata().map_err(|error| cannot_read(&error))?;
        let Some(name) = relative.to_str() else {
            return Err(Diagnostic::error(codes::NO_PLACE, "its name is not UTF-8").advise("give it another name"));
        };
        if meta.is_dir() {
            self.output.map_or(Ok(()), |output| make_directory(&output.join(relative)))?;
            return self.enter(&path, relative);
        }
        if meta.is_symlink() {
            return self.add_link(&path, name);
        }
        if !meta.is_file() {
            let error = Diagnostic::error(codes::NO_PLACE, "it is neither a file nor a directory nor a link");
            return Err(error.advise("take it out of the directory"));
        }
        self.add_file(&path, name, &meta)
    }

    fn add_link(&mut self, path: &Path, name: &str) -> Result<(), Diagnostic> {
        let to = fs::read_link(path).map_err(|error| cannot_read(&error))?;
        let link = PackageLink { name, to: &to, is_hard: false };
        let change = self.changes.link.as_mut().map_or(Ok(MemberChange::Unchanged), |change| change(&link))?;
        let Some(output) = self.output.map(|output| output.join(name)) else { return Ok(()) };
        match change {
            MemberChange::Unchanged => symlink(&to, &output).map_err(|error| cannot_write(&error)),
            MemberChange::Removed => Ok(()),
            MemberChange::Replaced(content) => {
                fs::copy(content, output).map(drop).map_err(|error| cannot_write(&error))
            }
        }
    }

    fn add_file(&mut self, path: &Path, name: &str, meta: &Metadata) -> Result<(), Diagnostic> {
        let inode = (meta.nlink() > 1).then(|| Inode { device: meta.dev(), number: meta.ino() });
        let output = self.output.map(|output| output.join(name));
        if let (Some(first), Some(output)) = (inode.as_ref().and_then(|inode| self.written.get(inode)), &output) {
            let Some(first) = first else { return Ok(()) };
            return fs::hard_link(first, output).map_err(|error| cannot_write(&error));
        }
        let change = (self.changes.change)(&PackageMember { name, content: path })?;
        let content = match &change {
            MemberChange::Unchanged => Some(path),
            MemberChange::Replaced(content) => Some(content.as_path()),
            MemberChange::Removed => None,
        };
        if let (Some(content), Some(output)) = (content, &output) {
            self.size += fs::copy(content, output).map_err(|error| cannot_write(&error))?;
            keep_times(output, meta)?;
            set_permissions(output, meta)?;
        }
        if let Some(inode) = inode {
            self.written.insert(inode, output.filter(|_| content.is_some()));
        }
        Ok(())
    }
}

fn copy_further(file: &Path, path: &Path) -> Result<u64, Diagnostic> {
    let size = fs::copy(file, path).map_err(|error| cannot_write(&error).in_file(path))?;
    let meta = fs::metadata(file).map_err(|error| directory_read_error(&error, file))?;
    keep_times(path, &meta)?;
    set_permissions(path, &meta)?;
    Ok(size)
}

fn directory_read_error(error: &std::io::Error, from: &Path) -> Diagnostic {
    cannot_read(error).in_file(from)
}

/// Errors of a file of the directory name it, unless they name another one.
fn in_file_of(error: Diagnostic, path: &Path) -> Diagnostic {
    if error.place.file.is_some() { error } else { error.in_file(path) }
}

fn keep_times(path: &Path, meta: &Metadata) -> Result<(), Diagnostic> {
    let times = meta.modified().map(|time| FileTimes::new().set_modified(time));
    let set = times.and_then(|times| File::open(path)?.set_times(times));
    set.map_err(|error| cannot_write(&error).in_file(path))
}

fn set_permissions(path: &Path, meta: &Metadata) -> Result<(), Diagnostic> {
    fs::set_permissions(path, meta.permissions()).map_err(|error| cannot_write(&error).in_file(path))
}
