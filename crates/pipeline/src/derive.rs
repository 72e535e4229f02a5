//! One derived code object: families change a copy, and the copy is read again.

use crate::expand::{Derived, Present};
use hotswap_code_object::{CodeObject, same_but_for_label};
use hotswap_families::Registry;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

/// Relabels the code object of a sibling for `request`; what forbids it are all findings, or one defect.
pub(crate) fn alias(source: &Present<'_>, request: &str) -> Result<Derived, Vec<Diagnostic>> {
    let in_entry = |error: Diagnostic| error.in_entry(source.id.to_string());
    let one = |error: Diagnostic| vec![in_entry(error)];
    let target = hotswap_compat::derive_target_id(&source.target, request).map_err(one)?;
    let object_target = hotswap_compat::derive_target_id(&source.object.target_id(), request).map_err(one)?;
    hotswap_compat::check(&source.object, &object_target)
        .map_err(|found| found.into_iter().map(in_entry).collect::<Vec<_>>())?;
    let (data, families) = Registry::installed().apply(&source.object, &object_target).map_err(one)?;
    verify(source, &data, &object_target).map_err(one)?;
    let id = source.id.with_target(&target.to_string()).map(|id| id.to_string());
    let id = id.ok_or_else(|| one(Diagnostic::error(codes::INTERNAL, "the source's entry ID names no target")))?;
    Ok(Derived { id, data, target, source: source.id.clone(), families })
}

/// The first finding stands for all of them; the others are told with it.
pub(crate) fn first_of(found: Vec<Diagnostic>) -> Diagnostic {
    let others = found.len().saturating_sub(1);
    let internal = || Diagnostic::error(codes::INTERNAL, "a check refused without a reason");
    let mut first = found.into_iter().next().unwrap_or_else(internal);
    if others > 0 {
        first.what += &format!(" (and {others} more findings)");
    }
    first
}

/// The copy must be a code object of the target and the same as its source but for the label, in the exact
/// ranges that [`same_but_for_label`] lists. Its ABI version changes for generic targets alone.
fn verify(source: &Present<'_>, data: &[u8], target: &TargetId) -> Result<(), Diagnostic> {
    let failed = |what: String| Diagnostic::error(codes::VERIFY_FAILED, what);
    let object = CodeObject::parse(data).map_err(|error| failed(error.to_string()))?;
    if object.target_id() != *target {
        return Err(failed(format!("the copy for {target} reads back as {}", object.target_id())));
    }
    if object.abi_version() != source.object.abi_version() && !target.processor.is_generic() {
        return Err(failed(format!("the copy for {target} has another ABI version")));
    }
    same_but_for_label(&source.object, &object)
        .map_err(|what| failed(format!("in the copy for {target}, more than the label differs: {what}")))
}
