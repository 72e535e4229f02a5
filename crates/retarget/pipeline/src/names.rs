//! Whether the host part of a bundle's file agrees with the code that is to be made, GPU by GPU.
//!
//! Invariants: the output of an earlier run counts as code of the processor that it was made from, because it was
//! compiled for that one; a generic target must be right on every GPU that it would newly serve.

use crate::entry::SourceEntry;
use crate::parse::code_objects;
use crate::record::{EntryOrigin, derived_origins};
use crate::request::RetargetRequest;
use hotswap_bundle::{Bundle, EntryId};
use hotswap_code_object::CodeObject;
use hotswap_compat::names::{Disagreement, Dispatch, HostPart, find_disagreements};
use hotswap_plan::{Plan, RetargetPair};
use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, TargetId, find_processor};

/// The check of the host part's names for each code object to make.
pub(crate) struct HostNames<'n> {
    host: &'n HostPart<'n>,
    /// Entries that were made, and the targets that they were made from.
    origins: Vec<EntryOrigin>,
    /// Whether the check is disabled.
    unchecked: bool,
}

impl<'n> HostNames<'n> {
    pub(crate) fn new(bundle: &Bundle<'_>, host: &'n HostPart<'n>, unchecked: bool) -> Result<Self, Diagnostic> {
        Ok(Self { host, origins: derived_origins(bundle)?, unchecked })
    }

    /// For a code object that is in no bundle.
    pub(crate) fn without_bundle(host: &'n HostPart<'n>, unchecked: bool) -> Self {
        Self { host, origins: Vec::new(), unchecked }
    }

    /// The processor that the code of an entry was compiled for.
    fn origin_of_entry(&self, entry: &EntryId) -> String {
        let (mut id, mut found) = (entry.to_string(), target_processor_name(entry.target().unwrap_or_default()));
        // As many steps as there are entries, so that a cyclic record terminates, too.
        for _ in 0..self.origins.len() {
            let Some(origin) = self.origins.iter().find(|origin| origin.made == id) else { break };
            found = target_processor_name(&origin.source);
            let Some(next) = entry.with_target(&origin.source) else { break };
            id = next.to_string();
        }
        found
    }

    /// The reasons why an entry's code is wrong on these GPUs.
    pub(crate) fn disagreements_of(
        &self,
        entry: &EntryId,
        object: &CodeObject<'_>,
        gpus: &[&'static str],
    ) -> Vec<Disagreement> {
        if self.unchecked {
            return Vec::new();
        }
        let origin = self.origin_of_entry(entry);
        find_disagreements(&origin, &Dispatch::find_libraries(object), gpus, self.host)
    }
}

fn target_processor_name(target: &str) -> String {
    target.split(':').next().unwrap_or_default().to_owned()
}

/// The GPUs that would run code made for `target`: itself, or those that a generic target covers and that lack code
/// of their own in the resulting bundle.
pub(crate) fn gpus_served(
    target: &'static Processor,
    present: &[SourceEntry<'_>],
    dropped: &[String],
    request: &RetargetRequest,
) -> Vec<&'static str> {
    if !target.is_generic() {
        return vec![target.name];
    }
    target.covers.iter().copied().filter(|gpu| !keeps_own_entry(gpu, request, present, dropped)).collect()
}

fn keeps_own_entry(gpu: &str, request: &RetargetRequest, present: &[SourceEntry<'_>], dropped: &[String]) -> bool {
    let mut own = present.iter().filter(|entry| entry.target.processor.name == gpu && !states_features(&entry.target));
    !request.drop_covered && own.any(|entry| !dropped.contains(&entry.id.to_string()))
}

fn states_features(id: &TargetId) -> bool {
    id.xnack.is_some() || id.sramecc.is_some()
}

/// The GPUs for which a plan's pairs would make code in a finished file that disagrees with its host part.
///
/// # Errors
/// A damaged bundle or code object.
pub fn disagreements_of_plan(bytes: &[u8], plan: &Plan, host: &HostPart<'_>) -> Result<Vec<Disagreement>, Diagnostic> {
    if plan.unchecked_names || !hotswap_bundle::is_bundle(bytes) {
        return Ok(Vec::new());
    }
    let (bundle, _) = hotswap_bundle::parse(bytes)?;
    let present = code_objects(&bundle, &[])?;
    let names = HostNames::new(&bundle, host, false)?;
    let mut found = Vec::new();
    for pair in &plan.pairs {
        let Some(target) = find_processor(&pair.target) else { continue };
        let serves =
            |entry: &&SourceEntry<'_>| entry.target.processor == target || entry.target.processor.covers(target);
        if present.iter().any(|entry| serves(&entry)) {
            continue;
        }
        let gpus = gpus_served(target, &present, &[], &RetargetRequest::default());
        for source in present.iter().filter(|entry| entry.target.processor.name == pair.source) {
            found.extend(
                names
                    .disagreements_of(&source.id, &source.object, &gpus)
                    .into_iter()
                    .map(|row| row.asked_for(target.name)),
            );
        }
    }
    Ok(found)
}

/// The disagreements of a host part that is shown the sources' names for the targets of these pairs, about code that
/// was not made from the source: what was compiled for a target, or for a generic one that covers it.
///
/// # Errors
/// A damaged bundle or code object.
pub fn disagreements_of_shown_names(
    bytes: &[u8],
    pairs: &[RetargetPair],
    host: &HostPart<'_>,
) -> Result<Vec<Disagreement>, Diagnostic> {
    let (bundle, _) = hotswap_bundle::parse(bytes)?;
    let present = code_objects(&bundle, &[])?;
    let names = HostNames::new(&bundle, host, false)?;
    let mut found = Vec::new();
    for pair in pairs {
        let (Some(shown), Some(target)) = (find_processor(&pair.source), find_processor(&pair.target)) else {
            continue;
        };
        let own = present.iter().filter(|entry| entry.target.processor == target);
        let mut serving: Vec<&SourceEntry<'_>> = own.collect();
        if serving.is_empty() {
            serving = present.iter().filter(|entry| entry.target.processor.covers(target)).collect();
        }
        let others = serving.into_iter().filter(|entry| names.origin_of_entry(&entry.id) != shown.name);
        let rows = others.flat_map(|entry| names.disagreements_of(&entry.id, &entry.object, &[shown.name]));
        found.extend(rows.map(|row| row.asked_for(target.name)));
    }
    Ok(found)
}
