//! The kernels of new code, compared with those of the other code objects in its container.
//!
//! A host program registers each kernel with one container. If the code that HIP loads from it lacks the kernel, HIP ends the program
//! ("Cannot find Symbol"), so new code has every kernel that all other code objects of the container have.

use hotswap_bundle::ImageKind;
use hotswap_code_object::CodeObject;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;

/// Requires that `code` has the kernels that all of `others` have; what is not a code object has no names to compare.
///
/// # Errors
/// [`codes::DIFFERS`] with the first kernel that is missing.
pub(super) fn check_kernels<'o>(
    id: &str,
    code: &[u8],
    others: impl Iterator<Item = &'o [u8]>,
) -> Result<(), Diagnostic> {
    let Some(new) = kernel_names(code) else { return Ok(()) };
    let common = others.filter_map(kernel_names).reduce(|one, other| &one & &other);
    let Some(missing) = common.iter().flatten().find(|kernel| !new.contains(*kernel)) else { return Ok(()) };
    let what = "the new code lacks a kernel that the container's other code objects have";
    let mut error = Diagnostic::error(codes::DIFFERS, what).in_entry(id);
    error.place.kernel = Some(missing.clone());
    Err(error.advise("put it into the container that has its kernels (--container N; `hotswap inspect` lists them)"))
}

fn kernel_names(code: &[u8]) -> Option<BTreeSet<String>> {
    let object = (ImageKind::of(code) == ImageKind::CodeObject).then(|| CodeObject::parse(code).ok()).flatten()?;
    Some(object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect())
}
