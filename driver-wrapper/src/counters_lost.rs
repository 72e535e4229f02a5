//! Objects with counters in a link without any flag for them.
//!
//! Clang adds the runtime that writes counters only where the link has the flag, too. Code of clang 22 links without
//! it, and its counters are never written, so the user is warned. Only names of sections are read, and for device code,
//! which is in the section of a fat binary, its bytes.
//!
//! Absent on purpose: archives, whose objects the linker may not need; compressed fat binaries.

use crate::command::{ClangCommand, InputKind};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, Severity, codes};
use object::{Object, ObjectSection, ReadCache};
use std::fs::File;
use std::path::Path;

/// The section in which the compiler describes each function with counters.
const RECORDS: &str = "__llvm_prf_data";
const FAT_BINARY: &str = ".hip_fatbin";
/// A larger fat binary is not searched: that would slow down links.
const LARGEST: u64 = 64 << 20;

/// The warning about a command without counters, or about an object that could not be searched for them.
#[must_use]
pub fn find_lost_counters(command: &ClangCommand) -> Option<Diagnostic> {
    let hip = command.is_hip() || crate::profile::names_hip_library(command);
    if !hip || !command.links_host_code() || command.partial || command.query {
        return None;
    }
    let objects =
        command.inputs.iter().filter(|input| input.kind == InputKind::Link).map(|input| Path::new(&input.path));
    let found = objects.into_iter().find_map(|path| match reads::open_regular(path) {
        Ok(file) => file.and_then(has_counters).filter(|has| *has).map(|_| Ok(path)),
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

/// `None` for a file that is not an object, which is left to the linker.
fn has_counters(file: File) -> Option<bool> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok().filter(|file| file.kind() == object::ObjectKind::Relocatable)?;
    if object.section_by_name(RECORDS).is_some() {
        return Some(true);
    }
    let device = object.section_by_name(FAT_BINARY).filter(|section| section.size() <= LARGEST)?;
    let name = [RECORDS.as_bytes(), &[0]].concat();
    Some(device.data().ok()?.windows(name.len()).any(|window| window == name))
}
