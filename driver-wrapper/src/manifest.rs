//! The manifest object of a host link: made once for each plan and format, then reused.
//!
//! Invariant: the file's name determines its content: plan hash and format decide every byte. Concurrent builds
//! therefore write the same, and an existing file is only used if its bytes are right.

use crate::judge::{WithPlan, manifest_name};
use crate::store;
use hotswap_families::manifest::{ManifestFormat, object};
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};

/// Arguments that pass the manifest and the registrars to the host linker, in this order: bfd and gold take from an
/// archive only members that are referenced by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestInputs {
    /// The object.
    pub object: PathBuf,
    /// The registry archive.
    pub archive: PathBuf,
}

/// Paths of the manifest of a plan and of the archive; writes the object unless `dry`.
///
/// # Errors
/// [`codes::NO_INSTALL`] without the archive, [`codes::CANNOT_WRITE`], and those of the families.
pub fn prepare(
    plan: &WithPlan,
    format: ManifestFormat,
    prefix: &Path,
    dry: bool,
) -> Result<ManifestInputs, Diagnostic> {
    let archive = prefix.join("lib/hotswap").join(archive_name(format));
    if !archive.is_file() {
        return Err(Diagnostic::error(codes::NO_INSTALL, format!("no file {}", archive.display())));
    }
    let directory = store::directory("manifests")?.join(directory_name(format));
    let path = directory.join(manifest_name(&plan.hash));
    if !dry {
        store::put(&path, &bytes(plan, format)?)?;
    }
    Ok(ManifestInputs { object: path, archive })
}

fn bytes(plan: &WithPlan, format: ManifestFormat) -> Result<Vec<u8>, Diagnostic> {
    let families = hotswap_families::families_of(&plan.plan)?;
    object(format, &plan.hash, &plan.plan.canonical(), &families)
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
