//! Packages given to commands: each file with device code is treated as a file of its own.
//!
//! Files of libraries that hold data for one GPU, whose names say so, are left out with the GPU's code: an index without its
//! code, or code without its index, is of no use.

use hotswap_bundle::FoundContainer;
use hotswap_load_model::archive_reference::ArchiveReference;
use hotswap_packages::{MemberChange, PackageFormat, PackageMember};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::rules::{self, FileKind};
use std::path::{Path, PathBuf};

/// The package that a file is, if it is one; compressed files that are not packages count as files.
pub(crate) fn format_of(file: &Path) -> Result<Option<PackageFormat>, Diagnostic> {
    hotswap_packages::format_of(file)
}

/// Whether it is a directory; `-` is standard input.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the file system does not tell.
pub(crate) fn is_directory(file: &Path) -> Result<bool, Diagnostic> {
    if file.as_os_str() == "-" {
        return Ok(false);
    }
    let meta = std::fs::metadata(file);
    let meta = meta.map_err(|error| Diagnostic::cannot_read(file, error))?;
    Ok(meta.is_dir())
}

/// The refusal of `--in-place`.
pub(crate) fn not_in_place() -> Diagnostic {
    Diagnostic::error(codes::USAGE, "--in-place is for a file of its own; packages and directories are written anew")
}

/// The name of a file of a package in messages.
pub(crate) fn label(package: &Path, member: &str) -> PathBuf {
    PathBuf::from(format!("{}: {member}", package.display()))
}

/// Whether it has containers of device code, or cannot be read although it should. A library whose code is in kernel archives has
/// none of its own: the archives are files of the package, or of another one.
///
/// # Errors
/// A file that cannot be opened.
pub(crate) fn has_code(member: &PackageMember<'_>) -> Result<bool, Diagnostic> {
    let input = hotswap_files::open_input(member.content)?;
    let contents = hotswap_bundle::find_containers(&input);
    if contents.found.is_empty() && !ArchiveReference::read(&input)?.is_empty() {
        return Ok(false);
    }
    Ok(!contents.found.is_empty() || contents.problems.iter().any(|problem| problem.code != codes::NOT_FOUND))
}

/// The archives that have the code of a host file: the fat binary's name there, and the paths that HIP tries.
///
/// # Errors
/// A reference that is not of the known form.
pub(crate) fn archives_text(input: &hotswap_files::InputFile) -> Result<Option<String>, Diagnostic> {
    let references = ArchiveReference::read(input)?;
    let texts = references.iter().map(|reference| format!("{} of {}", reference.binary, reference.paths.join(" or ")));
    Ok(Some(texts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()))
}

/// Whether it has device code without removable entries: lone code objects, sections of relocatable objects,
/// images that their program's descriptor points to.
///
/// # Errors
/// A file that cannot be opened.
pub(crate) fn is_fixed(member: &PackageMember<'_>) -> Result<bool, Diagnostic> {
    let input = hotswap_files::open_input(member.content)?;
    Ok(hotswap_bundle::find_containers(&input).found.iter().any(|one| is_fixed_container(one, &input)))
}

fn is_fixed_container(found: &FoundContainer<'_>, input: &hotswap_files::InputFile) -> bool {
    found.form.is_without_entries() || hotswap_file_edit::unsuited::is_fixed(found, input)
}

/// The size of a package.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the file system does not tell.
pub(crate) fn size(file: &Path) -> Result<u64, Diagnostic> {
    let meta = std::fs::metadata(file);
    let meta = meta.map_err(|error| Diagnostic::cannot_read(file, error))?;
    Ok(meta.len())
}

/// The GPU whose data the file holds, by its name and place.
pub(crate) fn gpu_of(name: &str) -> Option<String> {
    let path = Path::new(name);
    let found = rules::find_rule(path, path)?;
    let is_data = !matches!(found.rule().kind, FileKind::FatBinary | FileKind::Host | FileKind::Shared);
    found.gpu.filter(|_| is_data)
}

/// The sums of a changed package.
#[derive(Debug, Default)]
pub(crate) struct PackageSums {
    pub(crate) changed: usize,
    pub(crate) removed: usize,
    pub(crate) unchanged: usize,
    /// Files with device code that lack entries to remove.
    pub(crate) fixed: usize,
}

impl PackageSums {
    /// Counts a file with code.
    pub(crate) fn add(&mut self, change: &MemberChange) {
        *match change {
            MemberChange::Unchanged => &mut self.unchanged,
            MemberChange::Replaced(_) => &mut self.changed,
            MemberChange::Removed => &mut self.removed,
        } += 1;
    }
}
