//! The files of a package in a directory, as its installation has them, for questions that concern several of its files; a directory
//! of the user in the place of a package.

use crate::work::{accepted, packages};
use hotswap_files::{Placement, ScratchDirectory};
use hotswap_load_model::tree::LibraryTree;
use hotswap_packages::{MemberChange, PackageChanges, PackageFormat, PackageLink, PackageMember};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::use_check::tree_losses;
use hotswap_targets::TargetId;
use std::fs;
use std::path::{Path, PathBuf};

/// A form of files that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSet {
    Package(PackageFormat),
    Directory,
}

/// A directory, or an unpacked package, whose files are removed with it.
pub(crate) struct PackageTree {
    _scratch: Option<ScratchDirectory>,
    /// The directory with the files.
    pub(crate) root: PathBuf,
    pub(crate) tree: LibraryTree,
}

impl FileSet {
    /// The form of a package or directory; `None` for another file.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub(crate) fn of_path(file: &Path) -> Result<Option<Self>, Diagnostic> {
        match packages::format_of(file)? {
            Some(format) => Ok(Some(Self::Package(format))),
            None if packages::is_directory(file)? => Ok(Some(Self::Directory)),
            None => Ok(None),
        }
    }

    /// The bytes of a package, or of the files of a directory.
    pub(crate) fn size(self, file: &Path, tree: &LibraryTree) -> Result<u64, Diagnostic> {
        match self {
            Self::Package(_) => packages::size(file),
            Self::Directory => tree.files.values().map(|path| packages::size(path)).sum(),
        }
    }

    /// A warning about other names of a package that is replaced.
    pub(crate) fn other_names(self, file: &Path, output: &Path) -> Result<Option<Diagnostic>, Diagnostic> {
        match self {
            Self::Package(_) => accepted::warn_of_other_names(file, output, Placement::NewFile),
            Self::Directory => Ok(None),
        }
    }

    pub(crate) fn visit_links(self, file: &Path, see: &mut dyn FnMut(&PackageLink<'_>)) -> Result<(), Diagnostic> {
        let mut link = |link: &PackageLink<'_>| {
            see(link);
            Ok(MemberChange::Unchanged)
        };
        match self {
            Self::Package(format) => hotswap_packages::visit_with_links(file, format, &mut |_| Ok(()), see),
            Self::Directory => {
                let mut changes =
                    PackageChanges { change: &mut keep_member_unchanged, link: Some(&mut link), added: &[] };
                hotswap_packages::visit_directory(file, &mut changes)
            }
        }
    }

    /// Writes the files with their changes; returns the new size.
    pub(crate) fn rewrite(
        self,
        file: &Path,
        output: &Path,
        mut changes: PackageChanges<'_, '_>,
        check: &dyn Fn(&Path) -> Result<(), Diagnostic>,
    ) -> Result<u64, Diagnostic> {
        match self {
            Self::Package(format) => hotswap_packages::rewrite_package(file, format, output, changes, check),
            Self::Directory => hotswap_packages::rewrite_directory(file, output, &mut changes, check),
        }
    }
}

fn keep_member_unchanged(_: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
    Ok(MemberChange::Unchanged)
}

impl PackageTree {
    /// Requires that the GPUs of the files get from the changed package or directory all that they get from this one, but those
    /// with these targets: data files of libraries, and code in programs and libraries.
    ///
    /// # Errors
    /// The first loss, and a result that cannot be read.
    pub(crate) fn check_losses(&self, new: &Path, form: FileSet, dropped: &[TargetId]) -> Result<(), Diagnostic> {
        let changed = Self::of_files(new, form)?;
        let mut losses = tree_losses(&self.tree, &changed.tree, &|gpu| is_target_name(gpu, dropped))?.into_iter();
        losses.next().map_or(Ok(()), |loss| Err(loss.into()))
    }

    /// # Errors
    /// As [`PackageTree::read`]; a file of a directory that cannot be read.
    pub(crate) fn of_files(file: &Path, form: FileSet) -> Result<Self, Diagnostic> {
        match form {
            FileSet::Package(format) => Self::read(file, format),
            FileSet::Directory => {
                let tree = hotswap_stack::read_tree(&[file.to_owned()])?;
                match tree.unread.first() {
                    Some(unread) => Err(unread.problem.clone()),
                    None => Ok(Self { _scratch: None, root: file.to_owned(), tree }),
                }
            }
        }
    }

    /// # Errors
    /// A damaged package, a name that leads out of it, and failures of the file system.
    pub(crate) fn read(file: &Path, format: PackageFormat) -> Result<Self, Diagnostic> {
        let scratch = ScratchDirectory::temporary("hotswap-package-")?;
        let inside = scratch.path().join("in");
        fs::create_dir(&inside).map_err(|one| tree_write_error(one, &inside))?;
        hotswap_packages::unpack_package(file, format, &inside)?;
        let tree = hotswap_stack::read_tree(std::slice::from_ref(&inside))?;
        Ok(Self { _scratch: Some(scratch), root: inside, tree })
    }
}

fn is_target_name(gpu: &str, targets: &[TargetId]) -> bool {
    targets.iter().any(|target| target.processor.name == gpu)
}

fn tree_write_error(error: std::io::Error, inside: &std::path::PathBuf) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string()).in_file(inside)
}
