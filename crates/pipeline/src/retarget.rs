//! One bundle of a finished file: targets are added from the best available source, others dropped.
//!
//! Where [`crate::expand`] follows the pairs of a plan, here only targets are named. Native code wins, then a generic
//! target that covers the request, then the first pair of the product's table whose source is present and passes the
//! checks of the pair. A source that fails them is reported with all findings, and the next one is tried.
//!
//! Invariants: as for [`crate::expand`]. A dropped entry may serve as a source first. The record's plan has the pairs
//! that were applied, so that the same request gives the same bytes again.
//!
//! Absent on purpose: policies. The failures are reported for each target; the caller decides.

use crate::expand::{NewEntry, SourceEntry, code_objects, write};
use crate::names::{Names, served};
use crate::{derive, record, superseded};
use hotswap_adapt::ObjectRecord;
use hotswap_bundle::{Bundle, Bytes, Compression, Draft, Entry, EntryId, Summary};
use hotswap_code_object::CodeObject;
use hotswap_compat::names::{Disagreement, HostPart};
use hotswap_compat::{Allow, Available, Selection, Wish, route};
use hotswap_plan::{Pair, Plan, Policy};
use hotswap_report::{Diagnostic, EntryRecord, Route, codes};
use hotswap_targets::{TargetId, find};
use std::collections::BTreeSet;

/// The request for every bundle.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Processors, native or generic.
    pub targets: Vec<String>,
    /// Targets whose entries are removed; without features, those with any.
    pub drop: Vec<TargetId>,
    /// Removes entries of processors that a generic target of the bundle serves as well, unless they are requested.
    pub drop_covered: bool,
    /// Which pairs may be applied.
    pub allow: Allow,
    /// Makes code although the host part chooses kernels by another name of the GPU.
    pub unchecked_names: bool,
    /// Makes code objects without the kernels that cannot be made, where other kernels can.
    pub leave_out_kernels: bool,
    /// Compresses bundles that are not.
    pub compression: Option<Compression>,
    /// The caller's policy about refusals, for the record.
    pub policy: Policy,
}

/// The result for one target in one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetResult {
    /// It was compiled, or made by an earlier run.
    There,
    /// This generic target covers it.
    Covered(&'static str),
    /// Made from the code objects of this processor; the bundle's new entries.
    Made {
        /// The source.
        source: &'static str,
        /// The route.
        route: Route,
        /// Entry IDs.
        entries: Vec<String>,
        /// The changes to the code of each entry, where it was changed.
        code: Vec<ObjectRecord>,
        /// Entry ID and name of each kernel that was left out.
        left_out: Vec<(String, String)>,
    },
    /// Its entry was removed.
    Dropped,
    /// Its entry was removed, because this generic target covers it.
    Superseded(&'static str),
    /// Not made.
    Refused {
        /// The defects of the sources.
        reasons: Vec<Diagnostic>,
        /// Disagreements of the host part with a source about a GPU's name.
        names: Vec<Disagreement>,
    },
}

/// The result for one bundle.
#[derive(Debug)]
pub struct Retargeted<'a> {
    /// New content; `None` where nothing changes.
    pub draft: Option<Draft<'a>>,
    /// The expected summary of the new content in a file; `None` where it was read already.
    pub expected: Option<Summary>,
    /// Every requested target and every dropped entry, in that order. Empty where the bundle has no code objects.
    pub fates: Vec<(String, TargetResult)>,
}

/// Changes one bundle, plain or compressed, of the file with this host part.
///
/// # Errors
/// A damaged bundle or code object, [`hotswap_report::codes::BUNDLE_FULL`], and defects of ours, which no policy
/// covers.
pub fn retarget<'a>(bytes: &'a [u8], request: &Request, host: &HostPart<'_>) -> Result<Retargeted<'a>, Diagnostic> {
    let (mut bundle, _) = hotswap_bundle::parse(bytes)?;
    let present = code_objects(&bundle)?;
    let mut dropped = dropped(&bundle, &request.drop);
    let names = Names::new(&bundle, host, request.unchecked_names)?;
    let serving = Serving {
        present: &present,
        made_before: record::made_before(&bundle)?,
        names: &names,
        dropped: &dropped,
        request,
    };
    let (mut fates, mut derived, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for target in request.targets.iter().filter(|_| !present.is_empty()) {
        let (fate, made) = serving.serve(target)?;
        refusals.extend(first_reason(&fate));
        refusals.extend(left_out(&fate));
        derived.extend(made);
        fates.push((target.clone(), fate));
    }
    fates.extend(dropped.iter().map(|id| (id.clone(), TargetResult::Dropped)));
    if request.drop_covered {
        let superseded = superseded::superseded(&present, &derived, request, &dropped, &names)?;
        fates.extend(superseded.iter().map(|(id, generic)| (id.clone(), TargetResult::Superseded(generic))));
        dropped.extend(superseded.into_iter().map(|(id, _)| id));
    }
    let packs = bundle.compression().is_none() && request.compression.is_some();
    if derived.is_empty() && refusals.is_empty() && dropped.is_empty() && !packs {
        return Ok(Retargeted { draft: None, expected: None, fates });
    }
    let mut record = record::build(&bundle, &present, &derived, &refusals, &Plan::default())?;
    record.entries.retain(|row| !dropped.contains(&row.id));
    let plan = plan_of(&record.entries, request);
    (record.plan, record.plan_text) = (plan.hash(), plan.canonical());
    drop(present);
    let sources = sources(&bundle, &derived);
    bundle.retain(|entry| !dropped.contains(&entry.id));
    if packs {
        bundle.set_compression(request.compression);
    }
    let (draft, expected) =
        write(bundle, derived, &sources, &record)?.map(|written| (written.draft, written.expected)).unzip();
    Ok(Retargeted { draft, expected: expected.flatten(), fates })
}

/// The source of each entry, whether the entry stays or is removed.
fn sources<'a>(bundle: &Bundle<'a>, derived: &[NewEntry]) -> Vec<(String, Bytes<'a>)> {
    let whole = derived.iter().filter(|entry| entry.left_out.is_empty());
    let source = |entry: &NewEntry| Some((entry.id.clone(), bundle.entry(&entry.source.to_string())?.data.clone()));
    whole.filter_map(source).collect()
}

/// As [`retarget`], for code objects that are in no bundle, and one target: the bytes that were made from the best of
/// them, followed by the record, if one was made.
///
/// # Errors
/// As for [`retarget`]; [`hotswap_report::codes::USAGE`] where two of the code objects are for one processor, or have
/// different kernels.
pub fn relabel(
    sources: &[&[u8]],
    target: &str,
    request: &Request,
) -> Result<(Option<Vec<u8>>, TargetResult), Diagnostic> {
    let present: Vec<SourceEntry<'_>> = sources.iter().map(|bytes| standalone(bytes)).collect::<Result<_, _>>()?;
    reject_same_processor(&present)?;
    reject_other_kernels(&present)?;
    let host = HostPart::default();
    let names = Names::alone(&host, request.unchecked_names);
    let serving = Serving { present: &present, made_before: Vec::new(), names: &names, dropped: &[], request };
    let (fate, made) = serving.serve(target)?;
    Ok((recorded(&present, &made, request)?, fate))
}

/// A code object that is in no bundle.
fn standalone(bytes: &[u8]) -> Result<SourceEntry<'_>, Diagnostic> {
    let (data, _) = hotswap_bundle::split_record(bytes)?;
    let object = CodeObject::parse(data)?;
    let target = object.target_id();
    let id = EntryId::parse(&format!("hipv4-amdgcn-amd-amdhsa--{target}"))?;
    Ok(SourceEntry { id, object, target, data, relocatable: None, recompiled: None })
}

/// Two code objects of one processor are ambiguous sources: only the entry IDs of a bundle distinguish sets of
/// features.
fn reject_same_processor(present: &[SourceEntry<'_>]) -> Result<(), Diagnostic> {
    for (number, one) in present.iter().enumerate() {
        let same = |other: &SourceEntry<'_>| other.target.processor == one.target.processor;
        if let Some(other) = present[..number].iter().find(|other| same(other)) {
            let what = format!("two of the sources are for one processor: {} and {}", other.target, one.target);
            return Err(Diagnostic::error(codes::USAGE, what));
        }
    }
    Ok(())
}

/// Sources of one result have the same kernels: a host would not find those that only the unused source has.
fn reject_other_kernels(present: &[SourceEntry<'_>]) -> Result<(), Diagnostic> {
    let Some((first, others)) = present.split_first() else { return Ok(()) };
    let expected = kernel_names(first);
    for other in others {
        let names = kernel_names(other);
        if let Some(name) = expected.symmetric_difference(&names).next() {
            let (with, without) = if expected.contains(name) { (first, other) } else { (other, first) };
            let what =
                format!("the sources have different kernels: {name} is in {}, not in {}", with.target, without.target);
            return Err(
                Diagnostic::error(codes::USAGE, what).advise("name code objects that were compiled from one source")
            );
        }
    }
    Ok(())
}

fn kernel_names<'a>(entry: &SourceEntry<'a>) -> BTreeSet<&'a str> {
    entry.object.note().kernels.iter().map(|kernel| kernel.name).collect()
}

/// The code object that was made from another one, with its record, if that has space after it.
fn recorded(present: &[SourceEntry<'_>], made: &[NewEntry], request: &Request) -> Result<Option<Vec<u8>>, Diagnostic> {
    let Some(entry) = made.last() else { return Ok(None) };
    let mut record = record::build(&Bundle::default(), present, made, &[], &Plan::default())?;
    record.entries.retain(|row| row.id == entry.id);
    let plan = plan_of(&record.entries, request);
    (record.plan, record.plan_text) = (plan.hash(), plan.canonical());
    match hotswap_bundle::with_record(&entry.data, record.to_json().as_bytes()) {
        Err(error) if error.code == codes::MALFORMED => Ok(Some(entry.data.clone())),
        whole => whole.map(Some),
    }
}

/// The sources of a target, and the checks to run first.
struct Serving<'s, 'a> {
    present: &'s [SourceEntry<'a>],
    /// IDs of the entries that an earlier run has made.
    made_before: Vec<String>,
    names: &'s Names<'s>,
    /// IDs of the entries that will be removed.
    dropped: &'s [String],
    request: &'s Request,
}

impl<'a> Serving<'_, 'a> {
    /// The code objects to add for one target, one for each set of features of its source.
    ///
    /// The output of an earlier run is a source only where no other will do, so that a refusal reads the same in each
    /// run.
    fn serve(&self, target: &str) -> Result<(TargetResult, Vec<NewEntry>), Diagnostic> {
        match route(target, &available(self.present), Wish::Best, self.request.allow) {
            Ok(Selection::Native) => return Ok((TargetResult::There, Vec::new())),
            Ok(Selection::Generic { generic }) => return Ok((TargetResult::Covered(generic.name), Vec::new())),
            Ok(_) | Err(_) => {}
        }
        let is_original = |entry: &&SourceEntry<'_>| !self.made_before.contains(&entry.id.to_string());
        let first = self.try_sources(self.present.iter().filter(is_original).collect(), target)?;
        if matches!(first.0, TargetResult::Made { .. }) || self.made_before.is_empty() {
            return Ok(first);
        }
        let second = self.try_sources(self.present.iter().collect(), target)?;
        Ok(if matches!(second.0, TargetResult::Made { .. }) { second } else { first })
    }

    /// One source after the other, the best first, until one agrees with the host part and passes its checks.
    fn try_sources(
        &self,
        mut candidates: Vec<&SourceEntry<'a>>,
        target: &str,
    ) -> Result<(TargetResult, Vec<NewEntry>), Diagnostic> {
        let (mut reasons, mut names) = (Vec::new(), Vec::new());
        loop {
            let selection = match route(target, &available(candidates.iter().copied()), Wish::Best, self.request.allow)
            {
                Ok(selection) if selection.source().is_some() => selection,
                Err(refusal) if reasons.is_empty() && names.is_empty() => {
                    return Ok((TargetResult::Refused { reasons: vec![refusal.into()], names }, Vec::new()));
                }
                // The sources that could serve have been tried and have reported their reasons.
                Ok(_) | Err(_) => return Ok((TargetResult::Refused { reasons, names }, Vec::new())),
            };
            let source = selection.source().map_or("", |source| source.name);
            let of_source = |entry: &&SourceEntry<'a>| entry.target.processor.name == source;
            let entries: Vec<&SourceEntry<'a>> = candidates.iter().copied().filter(of_source).collect();
            let disagreements = self.ask_names(&entries, target);
            if disagreements.is_empty() {
                match derive::all(&entries, target, selection, self.request.leave_out_kernels) {
                    Ok(made) => return Ok((fate(source, &made), made)),
                    Err(found) => reasons.extend(derive::all_refusals(found)?),
                }
            }
            names.extend(disagreements);
            candidates.retain(|entry| entry.target.processor.name != source);
        }
    }

    /// The disagreements of the host part with these entries about the GPUs that the target would serve.
    fn ask_names(&self, entries: &[&SourceEntry<'_>], target: &str) -> Vec<Disagreement> {
        let Some(target) = find(target) else { return Vec::new() };
        let gpus = served(target, self.present, self.dropped, self.request);
        let of = |entry: &&SourceEntry<'_>| self.names.of(&entry.id, &entry.object, &gpus);
        entries.iter().flat_map(of).map(|row| row.asked_for(target.name)).collect()
    }
}

/// The record's warning for a target that was made without some of its kernels.
fn left_out(fate: &TargetResult) -> Option<Diagnostic> {
    let TargetResult::Made { left_out, .. } = fate else { return None };
    let names: Vec<&str> = left_out.iter().map(|(_, kernel)| kernel.as_str()).collect();
    let (entry, _) = left_out.first()?;
    let what = format!("{entry}: {} kernels are left out: {}", names.len(), names.join(" "));
    Some(Diagnostic::error(codes::NOT_SAFE, what))
}

/// The record's reason for a target that was not made.
fn first_reason(fate: &TargetResult) -> Option<Diagnostic> {
    let TargetResult::Refused { reasons, names } = fate else { return None };
    let by_name = || names.first().map(|row| Diagnostic::error(codes::CHOSEN_BY_NAME, row.to_string()));
    reasons.first().cloned().or_else(by_name)
}

fn fate(source: &'static str, made: &[NewEntry]) -> TargetResult {
    let route = made.first().map_or(Route::Alias, |entry| entry.route);
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

fn available<'p, 'a: 'p>(present: impl IntoIterator<Item = &'p SourceEntry<'a>>) -> Vec<Available> {
    present.into_iter().map(SourceEntry::available).collect()
}

/// IDs of the entries for these targets.
fn dropped(bundle: &Bundle<'_>, drop: &[TargetId]) -> Vec<String> {
    let is_meant = |entry: &&Entry<'_>| {
        let id = EntryId::parse(&entry.id).ok();
        let target = id.as_ref().and_then(|id| id.target()?.parse::<TargetId>().ok());
        target.is_some_and(|target| {
            drop.iter().any(|wanted| {
                let any = wanted.xnack.is_none() && wanted.sramecc.is_none();
                target == *wanted || any && target.processor == wanted.processor
            })
        })
    };
    bundle.entries().iter().filter(is_meant).map(|entry| entry.id.clone()).collect()
}

/// The plan that requests the pairs of the record's rows.
fn plan_of(rows: &[EntryRecord], request: &Request) -> Plan {
    let processor = |target: &str| target.split(':').next().unwrap_or_default().to_owned();
    let aliases = rows.iter().filter(|row| row.route.is_made());
    let pairs = aliases
        .filter_map(|row| Some(Pair { source: processor(row.source.as_ref()?), target: processor(&row.target) }));
    let pairs = pairs.collect();
    Plan {
        pairs,
        policy: request.policy,
        experimental: request.allow.experimental,
        unchecked_names: request.unchecked_names,
        ..Plan::default()
    }
}
