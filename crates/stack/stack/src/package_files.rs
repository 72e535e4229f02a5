//! The files of packages and directories one by one: which have device code, and which hold data for one GPU.
//!
//! Files of libraries that hold data for one GPU, whose names say so, belong to the GPU's code: an index without its
//! code, or code without its index, is of no use.

use crate::rules::{self, FileKind};
use hotswap_bundle::FoundContainer;
use hotswap_load_model::archive_reference::ArchiveReference;
use hotswap_packages::PackageMember;
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};

/// Whether it is a directory; `-` is standard input.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the file system does not tell.
pub fn is_directory(file: &Path) -> Result<bool, Diagnostic> {
    if file.as_os_str() == "-" {
        return Ok(false);
    }
    let meta = std::fs::metadata(file);
    let meta = meta.map_err(|error| Diagnostic::cannot_read(file, error))?;
    Ok(meta.is_dir())
}

/// The name of a file of a package in messages.
pub fn label(package: &Path, member: &str) -> PathBuf {
    PathBuf::from(format!("{}: {member}", package.display()))
}

/// Whether it has containers of device code, or cannot be read although it should. A library whose code is in kernel archives has
/// none of its own: the archives are files of the package, or of another one.
///
/// # Errors
/// A file that cannot be opened.
pub fn has_code(member: &PackageMember<'_>) -> Result<bool, Diagnostic> {
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
pub fn archives_text(input: &hotswap_files::InputFile) -> Result<Option<String>, Diagnostic> {
    let references = ArchiveReference::read(input)?;
    let texts = references.iter().map(|reference| format!("{} of {}", reference.binary, reference.paths.join(" or ")));
    Ok(Some(texts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()))
}

/// Whether it has device code without removable entries: lone code objects, sections of relocatable objects,
/// images that their program's descriptor points to.
///
/// # Errors
/// A file that cannot be opened.
pub fn is_fixed(member: &PackageMember<'_>) -> Result<bool, Diagnostic> {
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
pub fn size(file: &Path) -> Result<u64, Diagnostic> {
    let meta = std::fs::metadata(file);
    let meta = meta.map_err(|error| Diagnostic::cannot_read(file, error))?;
    Ok(meta.len())
}

/// The GPU whose data the file holds, by its name and place.
pub fn gpu_of(name: &str) -> Option<String> {
    let path = Path::new(name);
    let found = rules::find_rule(path, path)?;
    let is_data = !matches!(found.rule().kind, FileKind::FatBinary | FileKind::Host | FileKind::Shared);
    found.gpu.filter(|_| is_data)
}
