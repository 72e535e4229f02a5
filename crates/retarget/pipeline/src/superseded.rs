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
use hotswap_targets::TargetId;

/// IDs of such entries, each with the generic target that serves it. Entries in `dropped` do not serve any.
pub(crate) fn superseded_entries(
    present: &[SourceEntry<'_>],
    derived: &[NewEntry],
    request: &RetargetRequest,
    dropped: &[String],
    names: &HostNames<'_>,
) -> Result<Vec<(String, &'static str)>, Diagnostic> {
    let kept = present.iter().map(|entry| (entry.id.to_string(), &entry.id, entry.target, entry.data));
    // Entries made in this run have been checked for these GPUs, too: each is checked once more as its source.
    let made = derived.iter().map(|entry| (entry.id.clone(), &entry.source, entry.target, &entry.data[..]));
    let mut generics: Vec<Generic<'_>> = Vec::new();
    for (id, origin, target, data) in kept.chain(made) {
        if target.processor.is_generic() && !dropped.contains(&id) {
            generics.push(Generic { origin, target, object: CodeObject::parse(data)? });
        }
    }
    let candidates = present.iter().filter(|entry| {
        let wanted = request.targets.iter().any(|name| *name == entry.target.processor.name);
        !entry.target.processor.is_generic() && !wanted && !dropped.contains(&entry.id.to_string())
    });
    let serving = |entry: &SourceEntry<'_>| {
        let agrees = |generic: &&Generic<'_>| {
            names.disagreements_of(generic.origin, &generic.object, &[entry.target.processor.name]).is_empty()
        };
        generics.iter().filter(|generic| generic_serves(generic, &entry.target)).find(agrees)
    };
    Ok(candidates.filter_map(|entry| Some((entry.id.to_string(), serving(entry)?.target.processor.name))).collect())
}

/// A generic target that stays.
struct Generic<'a> {
    /// The entry whose code it has.
    origin: &'a EntryId,
    target: TargetId,
    object: CodeObject<'a>,
}

fn generic_serves(Generic { target: generic, object, .. }: &Generic<'_>, target: &TargetId) -> bool {
    let is_safe = || {
        let needs: Option<Vec<_>> = feature_differences(generic.processor, target.processor)
            .into_iter()
            .map(|difference| difference.check)
            .collect();
        needs.is_some_and(|checks| checks.is_empty() || check_for(object, target, &checks).is_ok())
    };
    generic.processor.covers.contains(&target.processor.name)
        && matches_wanted_feature(generic.xnack, target.xnack)
        && matches_wanted_feature(generic.sramecc, target.sramecc)
        && is_safe()
}

fn matches_wanted_feature(stated: Option<bool>, wanted: Option<bool>) -> bool {
    stated.is_none() || stated == wanted
}
