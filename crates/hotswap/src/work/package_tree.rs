//! The files of a package in a directory, as its installation has them, for questions that concern several of its files.

use hotswap_files::ScratchDirectory;
use hotswap_load_model::tree::LibraryTree;
use hotswap_packages::PackageFormat;
use hotswap_report::{Diagnostic, codes};
use std::fs;
use std::path::Path;

/// An unpacked package; its files are removed with it.
pub(crate) struct PackageTree {
    _scratch: ScratchDirectory,
    pub(crate) tree: LibraryTree,
}

impl PackageTree {
    /// # Errors
    /// A damaged package, a name that leads out of it, and failures of the file system.
    pub(crate) fn read(file: &Path, format: PackageFormat) -> Result<Self, Diagnostic> {
        let scratch = ScratchDirectory::temporary("hotswap-package-")?;
        let inside = scratch.path().join("in");
        let failed = |error: std::io::Error| Diagnostic::error(codes::CANNOT_WRITE, error.to_string()).in_file(&inside);
        fs::create_dir(&inside).map_err(failed)?;
        hotswap_packages::unpack(file, format, &inside)?;
        let tree = hotswap_stack::read_tree(&[inside])?;
        Ok(Self { _scratch: scratch, tree })
    }
}
