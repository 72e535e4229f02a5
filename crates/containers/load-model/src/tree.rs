//! The files and links below the roots.
//!
//! A link to a file or directory of the tree is kept as a link. One that leads elsewhere is read as the file or directory that it
//! leads to, as the host library reads it; so are data files of libraries wherever they lead, because their targets may have
//! names by which no library is known.
//!
//! Invariants: a directory is entered once, so a walk ends. A root that is a link is followed, and a file that is a root has
//! its own name and the link's. The order is that of the paths, whatever the file system returns. What could not be read is
//! never absent: it is in [`LibraryTree::unread`], and only a link whose target does not exist leads nowhere.

use crate::libraries::{self, FileKind};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The files and links below the roots.
#[derive(Debug, Clone, Default)]
pub struct LibraryTree {
    /// Paths below their root, and the paths of the files.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// Links by their paths below their root, and where they lead: a path below a root.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Paths at or below which files may be that could not be read.
    pub unread: Vec<UnreadPath>,
    /// For files that were written for another place: the paths by which their libraries are known.
    pub intended: BTreeMap<PathBuf, PathBuf>,
    /// Remarks about what is never served: files whose name is not UTF-8, links that lead nowhere.
    pub remarks: Vec<Diagnostic>,
}

/// A path that could not be read, with the operating system's reason.
#[derive(Debug, Clone)]
pub struct UnreadPath {
    /// The file or directory.
    pub path: PathBuf,
    /// Its path below its root.
    pub relative: PathBuf,
    pub problem: Diagnostic,
}

impl UnreadPath {
    fn new(path: &Path, relative: PathBuf, error: &io::Error) -> Self {
        Self { path: path.to_owned(), relative, problem: Diagnostic::cannot_read(path, error) }
    }
}

/// Reads the tree below the roots: directories, or files.
///
/// # Errors
/// [`codes::CANNOT_READ`] for a root that does not exist; [`codes::USAGE`] where two roots have different
/// files of one path.
pub fn read_tree(roots: &[PathBuf]) -> Result<LibraryTree, Diagnostic> {
    let mut tree = LibraryTree::default();
    for root in roots {
        let real = canonical_path(root)?;
        if real.to_str().is_none() {
            let error =
                Diagnostic::error(codes::USAGE, "the path of the root is not UTF-8, which the manifest cannot have");
            return Err(error.in_file(root));
        }
        let meta = fs::metadata(&real).map_err(|error| Diagnostic::cannot_read(root, &error))?;
        if meta.is_dir() {
            TreeWalk { tree: &mut tree, root: &real, elsewhere: BTreeMap::new() }.enter_directory(&real)?;
        } else {
            tree.add_root_file(root, real)?;
        }
    }
    Ok(tree)
}

/// Whether nothing is there: no file, no link, nothing else.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the system does not say.
pub fn is_missing(path: &Path) -> Result<bool, Diagnostic> {
    match path.symlink_metadata() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Diagnostic::cannot_read(path, &error)),
    }
}

/// The path without links.
///
/// # Errors
/// [`codes::CANNOT_READ`].
pub fn canonical_path(path: &Path) -> Result<PathBuf, Diagnostic> {
    fs::canonicalize(path).map_err(|error| Diagnostic::cannot_read(path, &error))
}

/// More links in a row are a cycle; the system's own limit.
const MOST_LINKS: usize = 40;

impl LibraryTree {
    /// The row of a file in the table of libraries.
    pub fn rule(&self, relative: &Path, path: &Path) -> Option<libraries::LibraryMatch> {
        libraries::find_rule(self.intended.get(relative).map_or(path, PathBuf::as_path), relative)
    }

    /// The path of a file or directory below the roots when the links on the way are followed; `None` in a cycle, and where the path
    /// leads out of the roots.
    pub fn resolve_path(&self, path: &Path) -> Option<PathBuf> {
        let mut path = path_inside(path)?;
        for _ in 0..MOST_LINKS {
            let link = path.ancestors().find_map(|part| Some((part.to_owned(), self.links.get(part)?)));
            let Some((part, to)) = link else { return Some(path) };
            let rest = path.strip_prefix(&part).ok()?.to_owned();
            path = path_inside(&to.join(rest))?;
        }
        None
    }

    /// The file at a path below the roots, links followed, as the file system has it.
    pub fn find_file(&self, path: &Path) -> Option<&Path> {
        self.files.get(&self.resolve_path(path)?).map(PathBuf::as_path)
    }

    /// Whether a directory with files is there.
    pub fn has_directory(&self, path: &Path) -> bool {
        let Some(path) = self.resolve_path(path) else { return false };
        self.files.range(path.clone()..).next().is_some_and(|(file, _)| file.starts_with(&path) && *file != path)
    }

    /// The names of the files and links of a directory.
    pub fn names_in(&self, directory: &Path) -> Vec<&str> {
        let Some(directory) = self.resolve_path(directory) else { return Vec::new() };
        let paths = self.files.keys().chain(self.links.keys());
        let inside = paths.filter(|path| path.parent() == Some(&directory));
        inside.filter_map(|path| path.file_name()?.to_str()).collect()
    }

    fn add_file(&mut self, relative: PathBuf, path: PathBuf) -> Result<(), Diagnostic> {
        match self.files.get(&relative) {
            Some(other) if *other != path => {
                let what = format!("two roots have {}: {} is another file", relative.display(), other.display());
                Err(Diagnostic::error(codes::USAGE, what).in_file(path).advise("serve each root into its own --dest"))
            }
            _ => {
                self.files.insert(relative, path);
                Ok(())
            }
        }
    }

    fn add_root_file(&mut self, named: &Path, real: PathBuf) -> Result<(), Diagnostic> {
        let (Some(own), Some(link)) = (file_name_path(&real), file_name_path(named)) else { return Ok(()) };
        if own != link {
            self.links.insert(link, own.clone());
        }
        // Programs open a library by its soname, which is the name of a link beside it.
        let parent = real.parent().unwrap_or(Path::new("/"));
        for path in self.paths_in(parent, Path::new("")) {
            match leads_to(&path, &real) {
                Ok(true) => self.links.extend(file_name_path(&path).map(|link| (link, own.clone()))),
                Ok(false) => {}
                Err(error) => {
                    let relative = file_name_path(&path).unwrap_or_default();
                    self.unread.push(UnreadPath::new(&path, relative, &error));
                }
            }
        }
        self.add_file(own, real)
    }

    /// The paths in a directory, sorted; those that could be read before an error are not, because the rest is unknown.
    fn paths_in(&mut self, directory: &Path, relative: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.unwrap_or_else(|error| {
            self.unread.push(UnreadPath::new(directory, relative.to_owned(), &error));
            Vec::new()
        });
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

fn file_name_path(path: &Path) -> Option<PathBuf> {
    path.file_name().map(PathBuf::from)
}

/// The walk below one root.
struct TreeWalk<'t> {
    tree: &'t mut LibraryTree,
    root: &'t Path,
    /// Files and directories outside of the root that links led to, by their own paths, and their paths below the root.
    elsewhere: BTreeMap<PathBuf, PathBuf>,
}

impl TreeWalk<'_> {
    fn enter_directory(&mut self, directory: &Path) -> Result<(), Diagnostic> {
        for path in self.tree.paths_in(directory, &path_below(self.root, directory)) {
            let meta = match fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                // Also one that is gone since the directory was read: what is in its place is unknown.
                Err(error) => {
                    self.tree.unread.push(UnreadPath::new(&path, path_below(self.root, &path), &error));
                    continue;
                }
            };
            if meta.is_dir() {
                self.enter_directory(&path)?;
            } else if path.to_str().is_none() {
                let unread = Diagnostic::warning(codes::CANNOT_READ, "its name is not UTF-8; it is not served");
                self.tree.remarks.push(unread.in_file(&path));
            } else if meta.is_symlink() {
                self.add_link(&path)?;
            } else if meta.is_file() {
                self.tree.add_file(path_below(self.root, &path), path)?;
            }
        }
        Ok(())
    }

    fn add_link(&mut self, path: &Path) -> Result<(), Diagnostic> {
        let relative = path_below(self.root, path);
        let is_data = is_data_file(path, &relative);
        let end = match LinkEnd::follow_link(path) {
            Ok(Some(end)) => end,
            Ok(None) if is_data => {
                let unread = Diagnostic::warning(codes::CANNOT_READ, "the link leads nowhere; it is not served");
                self.tree.remarks.push(unread.in_file(path));
                return Ok(());
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                self.tree.unread.push(UnreadPath::new(path, relative, &error));
                return Ok(());
            }
        };
        let LinkEnd { meta, to, real } = end;
        if is_data && meta.is_file() {
            return self.tree.add_file(relative, path.to_owned());
        }
        let to = if to.is_absolute() { to } else { path.parent().unwrap_or(self.root).join(to) };
        if let Ok(to) = normal_path(&to).strip_prefix(self.root) {
            self.tree.links.insert(relative, to.to_owned());
        } else if let Some(to) = self.known_path(&real) {
            self.tree.links.insert(relative, to);
        } else if meta.is_file() {
            self.elsewhere.insert(real, relative.clone());
            self.tree.add_file(relative, path.to_owned())?;
        } else if meta.is_dir() && !self.root.starts_with(&real) {
            self.elsewhere.insert(real, relative);
            self.enter_directory(path)?;
        }
        Ok(())
    }

    /// The path below the root of a file or directory that was seen already.
    fn known_path(&self, real: &Path) -> Option<PathBuf> {
        if let Ok(inside) = real.strip_prefix(self.root) {
            return Some(inside.to_owned());
        }
        let mut seen = real.ancestors().filter_map(|base| Some((base, self.elsewhere.get(base)?)));
        let (base, relative) = seen.next()?;
        let rest = real.strip_prefix(base).ok()?;
        Some(if rest.as_os_str().is_empty() { relative.clone() } else { relative.join(rest) })
    }
}

/// The end of a link.
struct LinkEnd {
    /// That of the file or directory.
    meta: fs::Metadata,
    /// The text of the link.
    to: PathBuf,
    /// The path of the file or directory, without links.
    real: PathBuf,
}

impl LinkEnd {
    /// `None` for a link that leads nowhere, or in a circle.
    fn follow_link(path: &Path) -> io::Result<Option<Self>> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if leads_nowhere(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self { meta, to: fs::read_link(path)?, real: fs::canonicalize(path)? }))
    }
}

fn leads_nowhere(error: &io::Error) -> bool {
    /// Linux's error for links in a circle, for which the standard library lacks a stable name.
    const ELOOP: i32 = 40;
    error.raw_os_error() == Some(ELOOP)
        || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a path is a link that leads to this file.
fn leads_to(path: &Path, real: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_symlink() {
        return Ok(false);
    }
    match fs::canonicalize(path) {
        Ok(to) => Ok(to == real),
        Err(error) if leads_nowhere(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a library looks for a file of that name and place.
fn is_data_file(path: &Path, relative: &Path) -> bool {
    let found = libraries::find_rule(path, relative);
    found.is_some_and(|found| !matches!(found.rule().kind, FileKind::FatBinary | FileKind::Host))
}

fn path_below(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

/// The path without `.` and `..`; `None` where it leads out.
fn path_inside(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !out.pop() => return None,
            Component::ParentDir => {}
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// The path without `.` and `..`, by its text alone: a directory on the way may be a link, and then it leads elsewhere.
/// The target of a kept link exists in the tree under this path, or the link is dropped.
pub fn normal_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The text of a link from one path of a tree to another.
pub fn link_text(link: &Path, to: &Path) -> PathBuf {
    let from: Vec<Component<'_>> = link.parent().map(|parent| parent.components().collect()).unwrap_or_default();
    let to: Vec<Component<'_>> = to.components().collect();
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    let text: PathBuf = up.chain(to[common..].iter().copied()).collect();
    // A link to its own directory.
    if text.as_os_str().is_empty() { PathBuf::from(".") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_inside_are_kept_and_cycles_end() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("lib/rocblas/5/library")).unwrap();
        fs::write(path("lib/librocblas.so.5.2"), "x").unwrap();
        symlink("librocblas.so.5.2", path("lib/librocblas.so.5")).unwrap();
        symlink("../lib/librocblas.so.5.2", path("lib/up.so")).unwrap();
        symlink(path("lib/librocblas.so.5.2"), path("lib/absolute.so")).unwrap();
        symlink("/etc/passwd", path("lib/outside")).unwrap();
        symlink("..", path("lib/rocblas/cycle")).unwrap();
        let tree = read_tree(&[root.path().to_owned()]).unwrap();
        let names: Vec<_> = tree.files.keys().map(|path| path.to_str().unwrap()).collect();
        // A file elsewhere is read as a file of the tree.
        assert_eq!(names, ["lib/librocblas.so.5.2", "lib/outside"]);
        let links: Vec<_> =
            tree.links.iter().map(|(from, to)| (from.to_str().unwrap(), to.to_str().unwrap())).collect();
        let library = "lib/librocblas.so.5.2";
        assert_eq!(
            links,
            [
                ("lib/absolute.so", library),
                ("lib/librocblas.so.5", library),
                ("lib/rocblas/cycle", "lib"),
                ("lib/up.so", library)
            ]
        );
    }

    #[test]
    fn a_root_may_be_a_file_or_a_link_to_one() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("librocblas.so.5.2"), "x").unwrap();
        symlink("librocblas.so.5.2", root.path().join("librocblas.so.5")).unwrap();
        let tree = read_tree(&[root.path().join("librocblas.so.5")]).unwrap();
        assert!(tree.files.contains_key(Path::new("librocblas.so.5.2")));
        assert_eq!(tree.links[Path::new("librocblas.so.5")], Path::new("librocblas.so.5.2"));
        let by_file = read_tree(&[root.path().join("librocblas.so.5.2")]).unwrap();
        assert_eq!(by_file.links, tree.links);
        assert_eq!(read_tree(&[root.path().join("missing")]).unwrap_err().code, codes::CANNOT_READ);
    }

    #[test]
    fn two_files_of_one_path_are_refused() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for root in [&one, &other] {
            fs::write(root.path().join("x.so"), "x").unwrap();
        }
        let roots = [one.path().to_owned(), other.path().to_owned()];
        assert_eq!(read_tree(&roots).unwrap_err().code, codes::USAGE);
        assert_eq!(read_tree(&[roots[0].clone(), roots[0].clone()]).unwrap().files.len(), 1);
    }

    #[test]
    fn a_link_is_written_from_its_own_directory() {
        for (link, to, text) in [
            ("lib/a.so", "lib/a.so.5", "a.so.5"),
            ("lib/x/library", "lib/x/5/library", "5/library"),
            ("lib/x/y", "bin/z", "../../bin/z"),
            ("a", "b", "b"),
            ("lib/x/again", "lib/x", "."),
        ] {
            assert_eq!(link_text(Path::new(link), Path::new(to)), Path::new(text));
        }
    }
}
