//! Objects with counters in a link without any flag for them, and device code with counters in a link that nothing else says is HIP's.
//!
//! Clang adds the runtime that writes counters only where the link has the flag, too. Code of clang 22 links without
//! it, and its counters are never written, so the user is warned. Only names of sections are read, and for device code,
//! which is in the section of a fat binary, its bytes.
//!
//! Absent on purpose: for the warning archives, whose objects the linker may not need, and compressed fat binaries.

use crate::command::{ClangCommand, CommandInput, InputKind};
use crate::objects;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, Severity, codes};
use object::read::archive::{ArchiveFile, ArchiveMember};
use object::{Object, ObjectSection, ReadCache};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The section in which the compiler describes each function with counters.
const RECORDS: &str = "__llvm_prf_data";
const FAT_BINARY: &str = ".hip_fatbin";
/// A larger fat binary is not searched: that would slow down links.
const LARGEST: u64 = 64 << 20;

/// The warning about a command without counters, or about an object that could not be searched for them.
#[must_use]
pub fn find_lost_counters(command: &ClangCommand) -> Option<Diagnostic> {
    if !command.links_host_code() || command.partial || command.query {
        return None;
    }
    // HIP's library may come from a linker script, from another library, or in an argument of the linker alone: then only device
    // code says that the link is HIP's.
    let searched = if command.is_hip() || names_hip_library(command) { CodeSide::Both } else { CodeSide::Device };
    let objects =
        command.inputs.iter().filter(|input| input.kind == InputKind::Link).map(|input| Path::new(&input.path));
    let found = objects.into_iter().find_map(|path| match reads::open_regular(path) {
        Ok(file) => file.and_then(|file| has_counters(file, searched)).filter(|has| *has).map(|_| Ok(path)),
        Err(error) => Some(Err(Diagnostic { severity: Severity::Warning, ..error })),
    })?;
    let object = match found {
        Ok(object) => object,
        Err(unread) => return Some(unread),
    };
    let what = "the object has counters, and this link has no runtime that writes them";
    let advice = "link with the flag that it was compiled with (-fprofile-instr-generate, -fprofile-generate), or with \
                  -Xoffload-linker --hotswap-drain=1 if only its device code has counters";
    Some(Diagnostic::warning(codes::COUNTERS_NOT_WRITTEN, what).in_file(object).advise(advice))
}

/// Whether an object or archive of a link has device code with counters, compressed or not. Only files with a fat binary are read.
///
/// # Errors
/// [`codes::CANNOT_READ`] for one of its inputs.
pub fn links_device_counters(command: &ClangCommand) -> Result<bool, Diagnostic> {
    if objects::find_relocatable(command)?.finished.is_none() {
        return Ok(false);
    }
    for path in objects::input_files(command)? {
        if let Some(bytes) = objects::open_object(&path)?
            && (has_device_counters(&bytes) || has_counters_in_thin_archive(&path, &bytes)?)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The members of a thin archive are files beside it.
fn has_counters_in_thin_archive(path: &Path, bytes: &[u8]) -> Result<bool, Diagnostic> {
    let Ok(archive) = ArchiveFile::parse(bytes) else { return Ok(false) };
    for member in archive.members().flatten().filter(ArchiveMember::is_thin) {
        if objects::open_member(path, member.name())?.is_some_and(|bytes| has_device_counters(&bytes)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_device_counters(bytes: &[u8]) -> bool {
    let contents = hotswap_bundle::find_containers(bytes);
    let mut images = contents.found.iter().flat_map(|container| container.read().map_or(Vec::new(), |one| one.images));
    images.any(|image| names_counters(&image.data))
}

/// Whether a code object has the section of counters, by its name.
fn names_counters(code: &[u8]) -> bool {
    let name = [RECORDS.as_bytes(), &[0]].concat();
    code.windows(name.len()).any(|window| window == name)
}

/// The code of an object whose counters are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeSide {
    Both,
    /// In links that may be no HIP's: counters of the host are the business of clang there.
    Device,
}

/// `None` for a file that is not an object, which is left to the linker.
fn has_counters(file: File, side: CodeSide) -> Option<bool> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok().filter(|file| file.kind() == object::ObjectKind::Relocatable)?;
    if side == CodeSide::Both && object.section_by_name(RECORDS).is_some() {
        return Some(true);
    }
    let device = object.section_by_name(FAT_BINARY).filter(|section| section.size() <= LARGEST)?;
    Some(names_counters(device.data().ok()?))
}

/// Whether the link names HIP's library, as `-lamdhip64` or by its path.
pub(crate) fn names_hip_library(command: &ClangCommand) -> bool {
    command.libraries.iter().any(|name| name == "amdhip64") || command.inputs.iter().any(is_hip_library)
}

fn is_hip_library(input: &CommandInput) -> bool {
    let name = Path::new(&input.path).file_name().unwrap_or_default();
    name.as_bytes().starts_with(b"libamdhip64.")
}
