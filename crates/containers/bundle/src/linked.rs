//! Replacing bundles inside a linked ELF program or shared library.
//!
//! HIP finds each bundle by a `__CudaFatBinaryWrapper` of 24 bytes in `.hipFatBinSegment`: magic, version 1, pointer,
//! zero. [`replace_bundles`] puts others in their place:
//!
//! 1. each in its slot (up to the next bundle or the section's end), where all of them fit;
//! 2. consecutively from the section's start, with the wrappers' pointers changed: where they do not fit
//!    otherwise, and where the file becomes much shorter by it (`shrink`);
//! 3. otherwise the whole section moves after everything else: to the end of the last segment, which then holds `.bss` as
//!    zeros in the file, or, where these are more than 1 MiB, to a segment of its own (`own_segment`). The old section is renamed to
//!    `hip_fatbin`; its bytes are removed from the file where that is possible (`shrink`), and zeroed otherwise.
//!
//! The number of program headers never changes, so their table stays where every kernel, loader and `strip` expects it.
//! All other addresses are unchanged, too; only data that no segment loads (debugging data, symbols, section headers)
//! moves in the file.
//!
//! Invariants: everything that a loader maps is unchanged, except bundles, wrappers' pointers and the addends that
//! relocate them: [`verify`] compares. Each wrapper points to the planned bundle.
//!
//! Absent on purpose: ELF32, big-endian, files without section headers, packed relocations of Android. A pointer to a
//! bundle that instructions compute cannot be detected; neither clang nor HIP makes any.

mod edit;
mod layout;
mod own_segment;
mod pointers;
mod program;
mod shrink;
mod verify;

use crate::bytes::{malformed_at, u16_at, u32_at};
use crate::draft::{DraftFacts, FileRope};
use hotswap_report::{Diagnostic, codes};
use layout::LinkedPlan;
use object::elf::{ET_DYN, ET_EXEC};
use program::LinkedProgram;

/// A bundle to replace.
#[derive(Debug, Clone)]
pub struct BundleReplacement<'n> {
    /// Offset in the file of the existing bundle.
    pub offset: u64,
    /// The bundle that replaces it.
    pub new: FileRope<'n>,
}
const MACHINES: [u16; 2] = [62, 183]; // EM_X86_64, EM_AARCH64

/// Whether `bytes` begin as a file that [`replace_bundles`] handles.
pub fn is_linked(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01")
        && u16_at(bytes, 16).is_some_and(|kind| [ET_EXEC, ET_DYN].contains(&kind))
        && u16_at(bytes, 18).is_some_and(|machine| MACHINES.contains(&machine))
        && u32_at(bytes, 20) == Some(1)
}

/// A copy of the program or library with other bundles in place of some.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for other files; [`codes::MALFORMED`] where the headers are damaged; [`codes::NOT_FOUND`]
/// without a bundle at such an offset; [`codes::NO_PLACE`] where a bundle would have to move and the pointers
/// to it are unknown; [`codes::VERIFY_FAILED`] where the result does not read back.
pub fn replace_bundles(file: &[u8], exchanges: &[BundleReplacement<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let changed = draft_linked(file, exchanges)?.to_vec();
    verify_linked(file, exchanges, &changed, DraftFacts::Nothing)?;
    Ok(changed)
}

/// As [`replace_bundles`], before it is written and verified.
pub(crate) fn draft_linked<'a>(
    file: &'a [u8],
    exchanges: &'a [BundleReplacement<'a>],
) -> Result<FileRope<'a>, Diagnostic> {
    let program = LinkedProgram::read(file)?;
    let plan = LinkedPlan::plan_layout(&program, exchanges)?;
    edit::apply_plan(&program, &plan)
}

/// Whether `changed` matches the plan.
pub(crate) fn verify_linked(
    file: &[u8],
    exchanges: &[BundleReplacement<'_>],
    changed: &[u8],
    known: DraftFacts,
) -> Result<(), Diagnostic> {
    let program = LinkedProgram::read(file)?;
    let plan = LinkedPlan::plan_layout(&program, exchanges)?;
    match verify::check_linked(&program, &plan, changed, known) {
        Err(_) if !program.sections.are_apart(file) => Err(malformed_at("sections overlap or leave the file", 40)),
        result => result,
    }
}

fn no_place(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what)
        .in_entry(crate::host_object::SECTION)
        .advise("retarget before the host link")
}
