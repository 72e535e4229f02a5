//! The second step, for one target: the source that serves it, and the code objects made from it.
//!
//! Native code wins, then a generic target that covers the request (in a link only after the plan's pairs), then the
//! first source that the request allows, that agrees with the host part, and that passes the checks of its pair. A
//! source that fails them is reported with all findings, and the next one is tried.

use crate::derive;
use crate::entry::{NewEntry, SourceEntry};
use crate::names::{HostNames, gpus_served};
use crate::request::{RetargetRequest, TargetResult};
use hotswap_compat::names::Disagreement;
use hotswap_compat::{AllowedSiblings, AvailableObject, Selection, choose_route_to};
use hotswap_report::{Diagnostic, Route, codes};
use hotswap_targets::{FeatureSettings, Processor};

/// The sources of a target, and the checks to run first.
pub(crate) struct SourceCandidates<'s, 'a> {
    pub(crate) present: &'s [SourceEntry<'a>],
    /// IDs of the entries that an earlier run has made.
    pub(crate) made_before: Vec<String>,
    pub(crate) names: &'s HostNames<'s>,
    /// IDs of the entries that will be removed.
    pub(crate) dropped: &'s [String],
    pub(crate) request: &'s RetargetRequest,
}

impl<'a> SourceCandidates<'_, 'a> {
    /// The code objects to add for one target, one for each set of features of its source.
    ///
    /// Entries of `made_before` are sources only where no other will do, so that a refusal reads the same in each run.
    ///
    /// # Errors
    /// Damage and our own defects.
    pub(crate) fn serve_target(&self, target: &'static Processor) -> Result<(TargetResult, Vec<NewEntry>), Diagnostic> {
        let pairs = self.request.pairs_for(target);
        let wish = self.request.wished_route(pairs.as_deref());
        match choose_route_to(target, &available_sources(self.present), wish, self.request.allow) {
            Ok(Selection::Native) => return Ok((TargetResult::There, Vec::new())),
            Ok(Selection::Generic { generic }) => return Ok((TargetResult::Covered(generic), Vec::new())),
            Ok(_) | Err(_) => {}
        }
        let first =
            self.try_sources(self.present.iter().filter(|one| is_original_entry(one, self)).collect(), target, wish)?;
        if matches!(first.0, TargetResult::Made { .. }) || self.made_before.is_empty() {
            return Ok(first);
        }
        let second = self.try_sources(self.present.iter().collect(), target, wish)?;
        Ok(if matches!(second.0, TargetResult::Made { .. }) { second } else { first })
    }

    /// A target is not served by code that the same request takes out.
    ///
    /// # Errors
    /// [`codes::LOAD_LOST`] where some setting of the features loses its code.
    pub(crate) fn refuse_dropped_cover(
        &self,
        target: &'static Processor,
        result: &TargetResult,
    ) -> Result<(), Diagnostic> {
        let cover = match *result {
            TargetResult::There => target,
            TargetResult::Covered(generic) => generic,
            _ => return Ok(()),
        };
        if !self.loses_settings(cover) {
            return Ok(());
        }
        let what = format!("{target} would load the code for {cover}, which is to be dropped");
        Err(Diagnostic::error(codes::LOAD_LOST, what).advise(format!("keep {cover}, or do not request {target}")))
    }

    /// Whether GPUs with some setting of their features lose all code of that processor. Each setting counts by itself: one entry
    /// may state a feature that another one leaves open. A request names processors without features, so it means all settings.
    fn loses_settings(&self, cover: &Processor) -> bool {
        FeatureSettings::ALL.into_iter().any(|settings| {
            let of_cover = self.present.iter().filter(|entry| has_source_processor(entry, cover));
            let mut serving = of_cover.filter(|entry| entry.target.runs_with(settings)).peekable();
            serving.peek().is_some() && !serving.any(|entry| self.is_kept(entry))
        })
    }

    fn is_kept(&self, entry: &SourceEntry<'_>) -> bool {
        !self.dropped.contains(&entry.id.to_string())
    }

    /// One source after the other, the best first, until one agrees with the host part and passes its checks.
    fn try_sources(
        &self,
        mut candidates: Vec<&SourceEntry<'a>>,
        target: &'static Processor,
        wish: AllowedSiblings<'_>,
    ) -> Result<(TargetResult, Vec<NewEntry>), Diagnostic> {
        let (mut reasons, mut names) = (Vec::new(), Vec::new());
        loop {
            let available = available_sources(candidates.iter().copied());
            let route = choose_route_to(target, &available, wish, self.request.allow);
            let derived = route.as_ref().ok().and_then(|selection| Some((*selection, selection.derived_from()?)));
            let Some((selection, source)) = derived else {
                let result = match route {
                    Ok(Selection::Generic { generic }) => TargetResult::Covered(generic),
                    Err(refusal) if reasons.is_empty() && names.is_empty() => {
                        TargetResult::Refused { reasons: vec![refusal.into()], names }
                    }
                    // The sources that could serve have been tried and have reported their reasons.
                    Ok(_) | Err(_) => TargetResult::Refused { reasons, names },
                };
                return Ok((result, Vec::new()));
            };
            let entries: Vec<&SourceEntry<'a>> =
                candidates.iter().copied().filter(|one| has_source_processor(one, source)).collect();
            let disagreements = self.ask_names(&entries, target);
            if disagreements.is_empty() {
                match derive::derive_entries(&entries, target, selection, self.request.leave_out_kernels) {
                    Ok(made) => return Ok((result_of_made(source, &made), made)),
                    Err(found) => reasons.extend(derive::all_refusals(found)?),
                }
            }
            names.extend(disagreements);
            candidates.retain(|entry| entry.target.processor != source);
        }
    }

    /// The disagreements of the host part with these entries about the GPUs that the target would serve.
    fn ask_names(&self, entries: &[&SourceEntry<'_>], target: &'static Processor) -> Vec<Disagreement> {
        let gpus = gpus_served(target, self.present, self.dropped, self.request);
        let rows = entries.iter().flat_map(|entry| self.names.disagreements_of(&entry.id, &entry.object, &gpus));
        rows.map(|row| row.asked_for(target.name)).collect()
    }
}

fn is_original_entry(entry: &&SourceEntry<'_>, serving: &SourceCandidates<'_, '_>) -> bool {
    !serving.made_before.contains(&entry.id.to_string())
}

fn has_source_processor(entry: &&SourceEntry<'_>, source: &Processor) -> bool {
    entry.target.processor == source
}

fn result_of_made(source: &'static Processor, made: &[NewEntry]) -> TargetResult {
    let route = made.first().map_or(Route::Relabelled, |entry| entry.route);
    let entries = made.iter().map(|entry| entry.id.clone()).collect();
    let left_out =
        |entry: &NewEntry| entry.left_out.iter().map(|kernel| (entry.id.clone(), kernel.clone())).collect::<Vec<_>>();
    let left_out = made.iter().flat_map(left_out).collect();
    TargetResult::Made {
        source,
        route,
        entries,
        code: made.iter().filter_map(|entry| entry.code.clone()).collect(),
        left_out,
    }
}

fn available_sources<'p, 'a: 'p>(present: impl IntoIterator<Item = &'p SourceEntry<'a>>) -> Vec<AvailableObject> {
    present.into_iter().map(SourceEntry::available_code).collect()
}
