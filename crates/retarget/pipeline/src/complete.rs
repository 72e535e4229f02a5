//! The last step of a link: the fat binary compared with the request of the command.
//!
//! Every requested target has a code object, and none is the output of a device link without inputs where another one
//! has kernels: the program would start no kernel on that GPU. A code object that was made from another one has all of its
//! kernels. The comparison reads the finished bundle and knows
//! nothing of the steps that made it.
//!
//! Absent on purpose: kernels that the source itself has for some GPUs only.

use crate::record::{EntryOrigin, derived_origins};
use hotswap_bundle::{Bundle, EntryId};
use hotswap_code_object::{CodeObject, is_code_object, is_empty_link, kernel_count};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;

/// A target whose code a fat binary lacks.
#[derive(Debug, Clone)]
pub struct MissingCode {
    pub target: TargetId,
    /// The command has requested it for this fat binary.
    pub is_requested: bool,
    pub problem: Diagnostic,
}

/// The targets that the fat binary lacks; nothing for bytes that are not a bundle, and for bundles without code objects.
///
/// # Errors
/// A damaged bundle or code object.
pub fn find_missing(bytes: &[u8], requested: &[TargetId]) -> Result<Vec<MissingCode>, Diagnostic> {
    if !hotswap_bundle::is_bundle(bytes) {
        return Ok(Vec::new());
    }
    let bundle = hotswap_bundle::parse(bytes)?.0;
    let (mut present, mut empty, mut richest) = (Vec::new(), Vec::new(), None);
    for entry in bundle.entries().iter().filter(|entry| is_code_object(&entry.data)) {
        let id = EntryId::parse(&entry.id)?;
        let Some(target) = id.target().filter(|_| id.is_amdgpu()) else { continue };
        let target: TargetId = target.parse()?;
        present.push(target);
        if is_empty_link(&entry.data) {
            empty.push(target);
        } else if kernel_count(&entry.data).is_some_and(|count| count > 0) {
            richest.get_or_insert(target);
        }
    }
    if present.is_empty() {
        return Ok(Vec::new());
    }
    let mut missing: Vec<MissingCode> =
        requested.iter().filter(|id| !present.contains(id)).copied().map(lacks_target).collect();
    missing.extend(lacking_kernels(&bundle)?);
    if let Some(richest) = richest {
        missing.extend(empty.into_iter().map(|target| lacks_code(target, richest)));
    }
    Ok(missing)
}

/// Code objects that lack a kernel of the code object that they were made from.
fn lacking_kernels(bundle: &Bundle<'_>) -> Result<Vec<MissingCode>, Diagnostic> {
    let mut missing = Vec::new();
    for EntryOrigin { made, source } in derived_origins(bundle)? {
        let source = EntryId::parse(&made)?.with_target(&source).map(|id| id.to_string());
        let entries = bundle.entry(&made).zip(source.and_then(|source| bundle.entry(&source)));
        let Some((made, source)) = entries else { continue };
        let (object, original) = (CodeObject::parse(&made.data)?, CodeObject::parse(&source.data)?);
        if let Some(kernel) = kernel_names(&original).difference(&kernel_names(&object)).next() {
            missing.push(lacks_kernel(object.target_id(), kernel, original.target_id()));
        }
    }
    Ok(missing)
}

fn kernel_names<'o>(object: &'o CodeObject<'_>) -> BTreeSet<&'o str> {
    object.note().kernels.iter().map(|kernel| kernel.name).collect()
}

fn lacks_kernel(target: TargetId, kernel: &str, source: TargetId) -> MissingCode {
    let what =
        format!("the code object for {target} lacks kernel {kernel} of that for {source}, from which it was made");
    MissingCode { target, is_requested: true, problem: Diagnostic::error(codes::LACKS_GPU, what) }
}

fn lacks_target(target: TargetId) -> MissingCode {
    let what = format!("{target} was requested, and the fat binary has no code for it");
    MissingCode { target, is_requested: true, problem: Diagnostic::error(codes::LACKS_GPU, what) }
}

fn lacks_code(target: TargetId, richest: TargetId) -> MissingCode {
    let what = format!("the code object for {target} is empty, and that for {richest} has kernels");
    let advice = format!("compile the objects of this link with --offload-arch={target}, too, or do not request it");
    MissingCode { target, is_requested: false, problem: Diagnostic::error(codes::LACKS_GPU, what).advise(advice) }
}
