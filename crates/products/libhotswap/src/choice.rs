//! The entry that serves an agent best: the route that all tools take ([`hotswap_compat::route`]), and the entry whose
//! features fit.
//!
//! Invariant: an entry that states a feature serves only agents that state the same one.

use crate::call_error::{CallError, c_string};
use crate::device_file::{DeviceFile, EntryForm, EntryRow};
use crate::make::{self, MadeCode, Permissions};
use hotswap_compat::{AllowedSiblings, AvailableObject, RoutePermissions, Selection, choose_route_to, find_pair};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Support, TargetId, find_processor};
use std::collections::BTreeSet;

/// How code serves an agent, `hotswap_route` in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum RouteKind {
    Native = 1,
    Generic = 2,
    Relabel = 3,
    Rewrite = 4,
}

/// The entry that serves an agent best, and how.
#[derive(Debug)]
pub(crate) struct BestEntry {
    /// Number of the entry in the file.
    pub(crate) entry: usize,
    pub(crate) route: RouteKind,
    /// The rule, one of a fixed set.
    pub(crate) rule: &'static std::ffi::CStr,
}

/// An entry, and the code that was made of it where it does not run as it is.
#[derive(Debug)]
pub(crate) struct ChosenCode {
    pub(crate) best: BestEntry,
    pub(crate) made: Option<MadeCode>,
}

impl ChosenCode {
    /// The bytes that the agent loads.
    pub(crate) fn into_bytes(self, file: &DeviceFile) -> Result<MadeCode, CallError> {
        match self.made {
            Some(made) => Ok(made),
            None => Ok(MadeCode {
                bytes: file.image_of_entry(self.best.entry)?.bytes().to_vec(),
                report: c_string(String::new()),
            }),
        }
    }
}

/// The best entry of one container, or of the first that has one. Where code must be made of it, it was made: an entry that the checks
/// of the pair refuse does not serve.
pub(crate) fn choose_code(
    file: &DeviceFile,
    agent: TargetId,
    container: Option<u32>,
    permissions: Permissions,
) -> Result<ChosenCode, CallError> {
    let mut containers: Vec<u32> = file.entries.iter().map(|entry| entry.container).collect();
    containers.dedup();
    containers.retain(|number| container.is_none_or(|wanted| wanted == *number));
    let mut refusal = None;
    for number in containers {
        match choose_in_container(file, agent, number, permissions) {
            Ok(best) => return Ok(best),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| missing_code_object_error().into()))
}

fn missing_code_object_error() -> Diagnostic {
    Diagnostic::error(codes::NOT_FOUND, "no entry is a code object")
}

fn choose_in_container(
    file: &DeviceFile,
    agent: TargetId,
    container: u32,
    permissions: Permissions,
) -> Result<ChosenCode, CallError> {
    let mut refused = BTreeSet::new();
    let mut refusal = None;
    loop {
        let best = match best_candidate(file, agent, container, (permissions.allow, &refused)) {
            Ok(best) => best,
            Err(error) => return Err(refusal.unwrap_or(error)),
        };
        if matches!(best.route, RouteKind::Native | RouteKind::Generic) {
            return Ok(ChosenCode { best, made: None });
        }
        match make_for(file, best.entry, agent, permissions) {
            Ok(made) => return Ok(ChosenCode { best, made: Some(made) }),
            Err(error) => {
                refused.insert(best.entry);
                refusal = refusal.or(Some(error));
            }
        }
    }
}

/// The code of an entry, made for the agent's processor.
fn make_for(file: &DeviceFile, entry: usize, agent: TargetId, permissions: Permissions) -> Result<MadeCode, CallError> {
    let image = file.image_of_entry(entry)?;
    make::retarget_bytes(image.bytes(), agent.processor.name, permissions)
}

/// An entry whose features fit the agent.
struct FittingEntry {
    /// Number of the entry in the file.
    number: usize,
    target: TargetId,
}

/// The best entry of a container, without those that were refused.
fn best_candidate(
    file: &DeviceFile,
    agent: TargetId,
    container: u32,
    (allow, refused): (RoutePermissions, &BTreeSet<usize>),
) -> Result<BestEntry, CallError> {
    let own = file.entries.iter().enumerate().filter(|(_, entry)| entry.container == container && is_code_entry(entry));
    let fitting: Vec<FittingEntry> = own
        .filter(|(number, _)| !refused.contains(number))
        .filter_map(|(number, entry)| Some(FittingEntry { number, target: entry_target_id(entry)? }))
        .filter(|entry| features_fit(&entry.target, &agent))
        .collect();
    let available: Vec<AvailableObject> = fitting.iter().map(|entry| entry.target.into()).collect();
    let selection =
        choose_route_to(agent.processor, &available, AllowedSiblings::Best, allow).map_err(Diagnostic::from)?;
    let (processor, route, rule) = match selection {
        Selection::Native => (agent.processor, RouteKind::Native, c"compiled for the agent's processor"),
        Selection::Generic { generic } => {
            (generic, RouteKind::Generic, c"compiled for a generic target that covers the agent's processor")
        }
        Selection::Relabelled { source } => {
            (source, RouteKind::Relabel, relabel_rule(source.name, agent.processor.name))
        }
        Selection::Recompiled { source } | Selection::Rewrite { source } => {
            (source, RouteKind::Rewrite, c"code of another stepping; hotswap_retarget changes and checks it")
        }
    };
    let of_source = fitting.iter().filter(|entry| entry.target.processor == processor);
    let best = of_source.rev().max_by_key(|entry| stated_feature_count(&entry.target));
    let best = best.ok_or_else(|| CallError::not_found("no entry of the source fits the agent's features"))?;
    Ok(BestEntry { entry: best.number, route, rule })
}

fn is_code_entry(entry: &EntryRow) -> bool {
    matches!(entry.form, EntryForm::CodeObject | EntryForm::Compressed)
}

fn entry_target_id(entry: &EntryRow) -> Option<TargetId> {
    entry.target.to_str().ok()?.parse::<TargetId>().ok()
}

/// The more features an entry states, the better it was made for an agent that has them.
fn stated_feature_count(target: &TargetId) -> usize {
    usize::from(target.xnack.is_some()) + usize::from(target.sramecc.is_some())
}

fn relabel_rule(source: &str, target: &str) -> &'static std::ffi::CStr {
    let known =
        find_processor(source).zip(find_processor(target)).and_then(|(source, target)| find_pair(source, target));
    match known.map(|pair| pair.status) {
        Some(hotswap_compat::PairStatus::Validated) => {
            c"code of a sibling, a validated pair; hotswap_retarget labels and checks it"
        }
        _ => c"code of a sibling, an experimental pair; hotswap_retarget labels and checks it",
    }
}

/// Whether the features of an entry fit the agent. A feature that the agent's processor does not have is left to the
/// checks of the pair.
fn features_fit(entry: &TargetId, agent: &TargetId) -> bool {
    let processor = agent.processor;
    feature_fits_agent(entry.xnack, agent.xnack, processor.xnack, entry, agent)
        && feature_fits_agent(entry.sramecc, agent.sramecc, processor.sramecc, entry, agent)
}

fn feature_fits_agent(
    stated: Option<bool>,
    own: Option<bool>,
    support: Support,
    entry: &TargetId,
    agent: &TargetId,
) -> bool {
    match (stated, own) {
        (None, _) => true,
        (Some(stated), Some(own)) => stated == own,
        (Some(_), None) => support == Support::No && entry.processor != agent.processor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::agent_target;

    #[test]
    fn features_decide_which_entry_serves() {
        let agent = |isa: &str| agent_target(isa).unwrap();
        let serves = |entry: &str, isa: &str| features_fit(&agent(entry), &agent(isa));
        let isa = "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-";
        assert!(serves("gfx90a", isa) && serves("gfx90a:xnack-", isa) && serves("gfx90a:sramecc+:xnack-", isa));
        assert!(!serves("gfx90a:xnack+", isa) && !serves("gfx90a:sramecc-", isa));
        assert!(!serves("gfx90a:xnack+", "gfx90a"), "the agent may run without it");
        assert!(agent_target("gfx1").is_err() && agent_target("").is_err());
    }
}
