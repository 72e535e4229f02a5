//! The kernels of new code, compared with those of the other code objects in its container.
//!
//! A host program registers each kernel with one container. If the code that HIP loads from it lacks the kernel, HIP ends the program
//! ("Cannot find Symbol"), so new code has every kernel that all other code objects of the container have.

use hotswap_bundle::{EntryId, ImageKind};
use hotswap_code_object::CodeObject;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;

/// Requires that `code` has the kernels that all of `others` have, and that it is a code object if one of them is: HIP loads nothing
/// else. Where none is one (bitcode, assembly), names to compare do not exist.
///
/// # Errors
/// [`codes::DIFFERS`] with the first kernel that is missing, [`codes::NOT_CODE_OBJECT`].
pub(crate) fn check_kernels<'o>(
    id: &str,
    code: &[u8],
    others: impl Iterator<Item = &'o [u8]>,
) -> Result<(), Diagnostic> {
    let others: Vec<&[u8]> = others.filter(|other| is_code_object(other)).collect();
    if others.is_empty() || !EntryId::parse(id)?.is_amdgpu() {
        return Ok(());
    }
    if !is_code_object(code) {
        let what = "the container has linked code objects, and HIP loads no other form of code from it";
        return Err(Diagnostic::error(codes::NOT_CODE_OBJECT, what).in_entry(id));
    }
    let Some(new) = kernel_names(code) else { return Ok(()) };
    let others = others.into_iter();
    let common = others.filter_map(kernel_names).reduce(|one, other| &one & &other);
    let Some(missing) = common.iter().flatten().find(|kernel| !new.contains(*kernel)) else { return Ok(()) };
    let what = "the new code lacks a kernel that the container's other code objects have";
    let mut error = Diagnostic::error(codes::DIFFERS, what).in_entry(id);
    error.place.kernel = Some(missing.clone());
    Err(error.advise("put it into the container that has its kernels (--container N; `hotswap inspect` lists them)"))
}

fn is_code_object(code: &[u8]) -> bool {
    ImageKind::of(code) == ImageKind::CodeObject
}

fn kernel_names(code: &[u8]) -> Option<BTreeSet<String>> {
    let object = CodeObject::parse(code).ok()?;
    Some(object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect())
}
