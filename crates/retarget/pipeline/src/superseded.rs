//! Native entries that a generic target of the same bundle supersedes.
//!
//! Invariants: entries are removed only on explicit request, never as a side effect of retargeting, because native
//! code may be faster and HIP prefers it. A requested target stays. The generic entry must be one that HIP selects in
//! the same cases (its stated features are those of the entry, or none). The generic code must pass the checks of every
//! requirement that, according to LLVM, the processor has and the generic target does not have.

use crate::entry::{NewEntry, SourceEntry};
use crate::names::HostNames;
use crate::request::RetargetRequest;
use hotswap_bundle::EntryId;
use hotswap_code_object::CodeObject;
use hotswap_compat::{check_for, feature_differences};
use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, TargetId};
use std::borrow::Cow;

/// A native entry, and the generic target that serves its GPU as well.
pub(crate) struct SupersededEntry {
    pub(crate) id: String,
    pub(crate) generic: &'static Processor,
}

/// The superseded entries of a bundle. Generic entries in `dropped` do not serve any.
pub(crate) fn superseded_entries(
    present: &[SourceEntry<'_>],
    derived: &[NewEntry],
    request: &RetargetRequest,
    dropped: &[String],
    names: &HostNames<'_>,
) -> Result<Vec<SupersededEntry>, Diagnostic> {
    let mut generics: Vec<Generic<'_>> = Vec::new();
    for SourceEntry { id, target, object, .. } in present {
        if target.processor.is_generic() && !dropped.contains(&id.to_string()) {
            generics.push(Generic { origin: id, target: *target, object: Cow::Borrowed(object) });
        }
    }
    // Entries made in this run have been checked for these GPUs, too: each is checked once more as its source.
    for NewEntry { id, source, target, data, .. } in derived {
        if target.processor.is_generic() && !dropped.contains(id) {
            generics.push(Generic { origin: source, target: *target, object: Cow::Owned(CodeObject::parse(data)?) });
        }
    }
    let mut superseded = Vec::new();
    for entry in present {
        let wanted = request.targets.contains(&entry.target.processor);
        let id = entry.id.to_string();
        if entry.target.processor.is_generic() || wanted || dropped.contains(&id) {
            continue;
        }
        if let Some(generic) = find_serving_generic(&generics, &entry.target, names) {
            superseded.push(SupersededEntry { id, generic: generic.target.processor });
        }
    }
    Ok(superseded)
}

/// The first generic target whose code is right for `target` in the eyes of the host part, too.
fn find_serving_generic<'g, 'a>(
    generics: &'g [Generic<'a>],
    target: &TargetId,
    names: &HostNames<'_>,
) -> Option<&'g Generic<'a>> {
    let gpu = [target.processor.name];
    generics.iter().find(|generic| {
        generic_serves(generic, target) && names.disagreements_of(generic.origin, &generic.object, &gpu).is_empty()
    })
}

/// A generic target that stays.
struct Generic<'a> {
    /// The entry whose code it has.
    origin: &'a EntryId,
    target: TargetId,
    object: Cow<'a, CodeObject<'a>>,
}

fn generic_serves(Generic { target: generic, object, .. }: &Generic<'_>, target: &TargetId) -> bool {
    generic.processor.covers.contains(&target.processor.name)
        && matches_wanted_feature(generic.xnack, target.xnack)
        && matches_wanted_feature(generic.sramecc, target.sramecc)
        && passes_checks(generic, object, target)
}

/// Whether the code passes the check of each requirement of `target` that the generic target lacks.
fn passes_checks(generic: &TargetId, object: &CodeObject<'_>, target: &TargetId) -> bool {
    let needs: Option<Vec<_>> = feature_differences(generic.processor, target.processor)
        .into_iter()
        .map(|difference| difference.check)
        .collect();
    needs.is_some_and(|checks| checks.is_empty() || check_for(object, target, &checks).is_ok())
}

fn matches_wanted_feature(stated: Option<bool>, wanted: Option<bool>) -> bool {
    stated.is_none() || stated == wanted
}
