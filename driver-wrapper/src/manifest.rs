//! The manifest object of a host link: made once for each plan and format, then reused.
//!
//! Invariant: the file's name determines its content: plan hash and format decide every byte. Concurrent builds
//! therefore write the same, and an existing file is only used if its bytes are right.

use crate::judge::{WithPlan, manifest_name};
use crate::store;
use hotswap_families::manifest::{ManifestFormat, manifest_object};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments that pass the manifest and the registrars to the host linker, in this order: bfd and gold take from an
/// archive only members that are referenced by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestInputs {
    pub object: PathBuf,
    pub archive: PathBuf,
    /// Whether the host linker is to search for them by name ([`search_words`]).
    pub is_searched: bool,
}

/// Arguments by which the host linker searches for a file by its name, in the directories of [`LIBRARY_PATH`].
///
/// Clang makes the number of a unit (`-fuse-cuid=hash`), a symbol of the program, of all arguments of a command: a path in the
/// home directory or of the installation would give each user other bytes.
pub fn search_words(file: &Path) -> Vec<OsString> {
    let mut name = OsString::from("-l:");
    name.push(file.file_name().unwrap_or_default());
    vec!["-Xlinker".into(), name]
}

/// Directories of libraries that clang gives the host linker before those of the command.
pub const LIBRARY_PATH: &str = "LIBRARY_PATH";

/// The value of [`LIBRARY_PATH`] with the directories of these files after those of the user, where an empty
/// one is the working directory.
pub fn library_path<'f>(files: impl IntoIterator<Item = &'f Path>, old: Option<OsString>) -> OsString {
    let mut value = old.filter(|old| !old.is_empty()).unwrap_or_default();
    for directory in files.into_iter().filter_map(Path::parent) {
        if !value.is_empty() {
            value.push(":");
        }
        value.push(directory);
    }
    value
}

/// Whether clang passes [`LIBRARY_PATH`] on and its linker has `-l:NAME`: on ELF systems, for the processor that it runs on.
fn is_searched(format: ManifestFormat) -> bool {
    let native = if cfg!(target_arch = "x86_64") { ManifestFormat::ElfX86_64 } else { ManifestFormat::ElfAarch64 };
    format == native
}

/// Paths of the manifest of a plan and of the archive; writes the object unless `dry`.
///
/// # Errors
/// [`codes::NO_INSTALL`] without the archive, [`codes::CANNOT_READ`], [`codes::CANNOT_WRITE`], and those of the families.
pub fn prepare(
    plan: &WithPlan,
    format: ManifestFormat,
    prefix: &Path,
    dry: bool,
) -> Result<ManifestInputs, Diagnostic> {
    let archive = prefix.join("lib/hotswap").join(archive_name(format));
    if !reads::is_regular(&archive)? {
        return Err(Diagnostic::error(codes::NO_INSTALL, format!("no file {}", archive.display())));
    }
    let name = Path::new(directory_name(format)).join(manifest_name(&plan.hash));
    let bytes = if dry { Vec::new() } else { bytes(plan, format)? };
    let object = store::put_for_link("manifests", &name, &bytes, dry)?;
    Ok(ManifestInputs { object, archive, is_searched: is_searched(format) })
}

fn bytes(plan: &WithPlan, format: ManifestFormat) -> Result<Vec<u8>, Diagnostic> {
    let families = hotswap_families::families_of(&plan.plan)?;
    manifest_object(format, &plan.hash, &plan.plan.canonical_text(), &families)
}

const fn archive_name(format: ManifestFormat) -> &'static str {
    match format {
        ManifestFormat::ElfX86_64 | ManifestFormat::ElfAarch64 => "libhotswap_registry.a",
        ManifestFormat::CoffX86_64 => "hotswap_registry.lib",
    }
}

const fn directory_name(format: ManifestFormat) -> &'static str {
    match format {
        ManifestFormat::ElfX86_64 => "elf-x86_64",
        ManifestFormat::ElfAarch64 => "elf-aarch64",
        ManifestFormat::CoffX86_64 => "coff-x86_64",
    }
}
