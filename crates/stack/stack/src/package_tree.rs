//! The files of a package in a directory, as its installation has them, for questions that concern several of its files; a directory
//! of the user in the place of a package.

use crate::package_files;
use crate::read_tree;
use crate::use_check::tree_losses;
use hotswap_file_edit::new_file;
use hotswap_files::{Placement, ScratchDirectory};
use hotswap_load_model::tree::LibraryTree;
use hotswap_packages::{
    MemberChange, PackageChanges, PackageFormat, PackageLink, PackageMember, PackageSource, UnpackedLink,
};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use std::fs;
use std::path::{Path, PathBuf};

/// A form of files that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSet {
    Package(PackageFormat),
    Directory,
}

/// A directory, or an unpacked package, whose files are removed with it.
pub struct PackageTree {
    _scratch: Option<ScratchDirectory>,
    /// The package itself; none for a directory.
    packed: Option<PackedFile>,
    /// The directory with the files.
    pub root: PathBuf,
    pub tree: LibraryTree,
}

impl FileSet {
    /// The form of a package or directory; `None` for another file.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub fn of_path(file: &Path) -> Result<Option<Self>, Diagnostic> {
        match hotswap_packages::format_of(file)? {
            Some(format) => Ok(Some(Self::Package(format))),
            None if package_files::is_directory(file)? => Ok(Some(Self::Directory)),
            None => Ok(None),
        }
    }

    /// The bytes of a package, or of the files of a directory.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub fn size(self, file: &Path, tree: &LibraryTree) -> Result<u64, Diagnostic> {
        match self {
            Self::Package(_) => package_files::size(file),
            Self::Directory => tree.files.values().map(|path| package_files::size(path)).sum(),
        }
    }

    /// A warning about other names of a package that is replaced.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub fn other_names(self, file: &Path, output: &Path) -> Result<Option<Diagnostic>, Diagnostic> {
        match self {
            Self::Package(_) => new_file::warn_of_other_names(file, output, Placement::NewFile),
            Self::Directory => Ok(None),
        }
    }
}

fn keep_member_unchanged(_: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
    Ok(MemberChange::Unchanged)
}

/// The file of a package that was unpacked.
struct PackedFile {
    file: PathBuf,
    format: PackageFormat,
    links: Vec<UnpackedLink>,
    /// Its archive without compression, where it is to be changed.
    copy: Option<PathBuf>,
}

impl PackageTree {
    /// All links of a package; those of a directory.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn links(&self) -> Result<Vec<UnpackedLink>, Diagnostic> {
        if let Some(packed) = &self.packed {
            return Ok(packed.links.clone());
        }
        let mut links = Vec::new();
        let mut changes = PackageChanges {
            change: &mut keep_member_unchanged,
            link: Some(&mut |link: &PackageLink<'_>| {
                links.push(UnpackedLink::of_package(link));
                Ok(MemberChange::Unchanged)
            }),
            added: &[],
        };
        hotswap_packages::visit_directory(&self.root, &mut changes)?;
        Ok(links)
    }

    /// Shows every file of a package; a directory's are in its tree.
    ///
    /// # Errors
    /// A damaged package, and the errors of `see`.
    pub fn visit_members(
        &self,
        see: &mut dyn FnMut(&PackageMember<'_>) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let Some(PackedFile { file, format, copy, .. }) = &self.packed else { return Ok(()) };
        hotswap_packages::visit_source(PackageSource { file, format: *format, copy: copy.as_deref() }, see)
    }

    /// Writes the files with their changes; returns the new size.
    ///
    /// # Errors
    /// Files that cannot be read or written, and the errors of `check`.
    pub fn rewrite(
        &self,
        output: &Path,
        mut changes: PackageChanges<'_, '_>,
        check: &dyn Fn(&Path) -> Result<(), Diagnostic>,
    ) -> Result<u64, Diagnostic> {
        match &self.packed {
            Some(PackedFile { file, format, copy, .. }) => {
                let source = PackageSource { file, format: *format, copy: copy.as_deref() };
                hotswap_packages::rewrite_package(source, output, changes, check)
            }
            None => hotswap_packages::rewrite_directory(&self.root, output, &mut changes, check),
        }
    }

    /// Requires that the GPUs of the files get from the changed package or directory all that they get from this one, but those
    /// with these targets: data files of libraries, and code in programs and libraries.
    ///
    /// # Errors
    /// The first loss, and a result that cannot be read.
    pub fn check_losses(&self, new: &Path, form: FileSet, dropped: &[TargetId]) -> Result<(), Diagnostic> {
        let changed = Self::of_files(new, form)?;
        let mut losses = tree_losses(&self.tree, &changed.tree, &|gpu| is_target_name(gpu, dropped))?.into_iter();
        losses.next().map_or(Ok(()), |loss| Err(loss.into()))
    }

    /// # Errors
    /// As [`PackageTree::read`]; a file of a directory that cannot be read.
    pub fn of_files(file: &Path, form: FileSet) -> Result<Self, Diagnostic> {
        match form {
            FileSet::Package(format) => Self::read(file, format),
            FileSet::Directory => Self::of_directory(file),
        }
    }

    /// As [`PackageTree::of_files`], of files that [`PackageTree::rewrite`] changes afterwards.
    ///
    /// # Errors
    /// The same as those of [`PackageTree::of_files`].
    pub fn to_change(file: &Path, form: FileSet) -> Result<Self, Diagnostic> {
        match form {
            FileSet::Package(format) => Self::unpack(file, format, true),
            FileSet::Directory => Self::of_directory(file),
        }
    }

    fn of_directory(file: &Path) -> Result<Self, Diagnostic> {
        let tree = read_tree(&[file.to_owned()])?;
        match tree.unread.first() {
            Some(unread) => Err(unread.problem.clone()),
            None => Ok(Self { _scratch: None, packed: None, root: file.to_owned(), tree }),
        }
    }

    /// # Errors
    /// A damaged package, a name that leads out of it, and failures of the file system.
    pub fn read(file: &Path, format: PackageFormat) -> Result<Self, Diagnostic> {
        Self::unpack(file, format, false)
    }

    fn unpack(file: &Path, format: PackageFormat, is_to_change: bool) -> Result<Self, Diagnostic> {
        let scratch = ScratchDirectory::temporary("hotswap-package-")?;
        let inside = scratch.path().join("in");
        fs::create_dir(&inside).map_err(|one| tree_write_error(one, &inside))?;
        let copy = is_to_change.then(|| scratch.path().join("archive"));
        let links = match &copy {
            Some(copy) => hotswap_packages::unpack_to_change(file, format, &inside, copy)?,
            None => hotswap_packages::unpack_package(file, format, &inside)?,
        };
        let tree = read_tree(std::slice::from_ref(&inside))?;
        let packed = Some(PackedFile { file: file.to_owned(), format, links, copy });
        Ok(Self { _scratch: Some(scratch), packed, root: inside, tree })
    }
}

fn is_target_name(gpu: &str, targets: &[TargetId]) -> bool {
    targets.iter().any(|target| target.processor.name == gpu)
}

fn tree_write_error(error: std::io::Error, inside: &std::path::PathBuf) -> Diagnostic {
    Diagnostic::cannot_write(inside, error)
}
