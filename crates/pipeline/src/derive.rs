//! One derived code object: families change a copy, and the copy is read again.

use crate::expand::{Derived, Present};
use hotswap_code_object::CodeObject;
use hotswap_families::Registry;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

/// Relabels the code object of an identical sibling for `request`.
pub(crate) fn alias(source: &Present<'_>, request: &str) -> Result<Derived, Diagnostic> {
    let target = hotswap_compat::derive_target_id(&source.target, request)?;
    let object_target = hotswap_compat::derive_target_id(&source.object.target_id(), request)?;
    let in_entry = |error: Diagnostic| error.in_entry(source.id.to_string());
    hotswap_compat::check(&source.object, &object_target).map_err(|found| in_entry(first_of(found)))?;
    let (data, families) = Registry::installed().apply(&source.object, &object_target).map_err(in_entry)?;
    verify(source, &data, &object_target).map_err(in_entry)?;
    let id = source.id.with_target(&target.to_string()).map(|id| id.to_string());
    let id = id.ok_or_else(|| in_entry(Diagnostic::error(codes::INTERNAL, "the source's entry ID names no target")))?;
    Ok(Derived { id, data, target, source: source.id.clone(), families })
}

/// The first finding stands for all of them; the others are told with it.
fn first_of(found: Vec<Diagnostic>) -> Diagnostic {
    let others = found.len().saturating_sub(1);
    let internal = || Diagnostic::error(codes::INTERNAL, "a check refused without a reason");
    let mut first = found.into_iter().next().unwrap_or_else(internal);
    if others > 0 {
        first.what += &format!(" (and {others} more findings)");
    }
    first
}

/// The copy must be a code object of the target and differ from its source only where an alias may:
/// in `e_flags` (ELF header, offset 48, 4 bytes) and in the target's name in the note.
fn verify(source: &Present<'_>, data: &[u8], target: &TargetId) -> Result<(), Diagnostic> {
    let failed = |what: String| Diagnostic::error(codes::VERIFY_FAILED, what);
    let object = CodeObject::parse(data).map_err(|error| failed(error.to_string()))?;
    if object.target_id() != *target {
        return Err(failed(format!("the copy for {target} reads back as {}", object.target_id())));
    }
    let names = &object.note().target_ranges;
    let mut starts = vec![0, 52];
    let mut ends = vec![48];
    starts.extend(names.iter().map(|name| name.end));
    ends.extend(names.iter().map(|name| name.start));
    ends.push(data.len());
    let outside = starts.into_iter().zip(ends).map(|(start, end)| start..end);
    let same = data.len() == source.data.len()
        && outside.into_iter().all(|range| data.get(range.clone()) == source.data.get(range));
    if same { Ok(()) } else { Err(failed(format!("the copy for {target} differs in more than its label"))) }
}
