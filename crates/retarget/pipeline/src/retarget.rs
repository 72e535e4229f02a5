//! One bundle: targets are added, others dropped. All tools take this way, with a plan ([`crate::expand()`]) or with
//! targets alone.
//!
//! Invariants: a dropped entry may serve as a source first. Without a plan the record's plan has the pairs that were
//! applied, so that the same request gives the same bytes again.
//!
//! Absent on purpose: policies about targets that are named without a plan. The failures are reported for each target;
//! the caller decides.

use crate::entry::NewEntry;
use crate::names::HostNames;
use crate::request::{OutcomeSubject, RetargetRequest, SourcePolicy, TargetOutcome, TargetResult};
use crate::serve::SourceCandidates;
use crate::write::{WrittenBundle, write_bundle};
use crate::{parse, policy, record, superseded};
use hotswap_bundle::{Bundle, BundleEntry, BundleSummary, Compression, EntryBytes, EntryId, FileRope};
use hotswap_code_object::is_empty_link;
use hotswap_compat::names::HostPart;
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

/// The result for one bundle.
#[derive(Debug)]
pub struct RetargetedBundle<'a> {
    /// New content; `None` where nothing changes.
    pub draft: Option<FileRope<'a>>,
    /// The expected summary of the new content in a file; `None` where it was read already.
    pub expected: Option<BundleSummary>,
    /// Every requested target and every dropped entry, in that order. Empty where the bundle lacks code objects.
    pub outcomes: Vec<TargetOutcome>,
}

/// The result for one bundle, for callers in this crate.
pub(crate) struct BundleResult<'a> {
    /// `None` where nothing changes.
    pub(crate) written: Option<WrittenBundle<'a>>,
    /// The result of every requested target and every dropped entry, as [`RetargetedBundle::outcomes`].
    pub(crate) outcomes: Vec<TargetOutcome>,
    /// The record's remarks about targets that were not made as requested.
    pub(crate) remarks: Vec<Diagnostic>,
    pub(crate) has_code_objects: bool,
}

/// Changes one bundle, plain or compressed, of the file with this host part.
///
/// # Errors
/// A damaged bundle or code object, [`hotswap_report::codes::BUNDLE_FULL`], and defects of ours,
/// which no policy covers.
pub fn retarget<'a>(
    bytes: &'a [u8],
    request: &RetargetRequest,
    host: &HostPart<'_>,
) -> Result<RetargetedBundle<'a>, Diagnostic> {
    let BundleResult { written, outcomes, .. } = retarget_bundle(bytes, request, host)?;
    let (draft, expected) = written.map(|written| (written.draft, written.expected)).unzip();
    Ok(RetargetedBundle { draft, expected: expected.flatten(), outcomes })
}

fn dropped_entry(id: &str) -> TargetOutcome {
    TargetOutcome { subject: OutcomeSubject::Entry(id.to_owned()), result: TargetResult::Dropped }
}

fn superseded_entry(entry: &superseded::SupersededEntry) -> TargetOutcome {
    TargetOutcome { subject: OutcomeSubject::Entry(entry.id.clone()), result: TargetResult::Superseded(entry.generic) }
}

/// The steps for one bundle: parse, derive, record, write.
///
/// # Errors
/// As for [`retarget`]; with a plan, refusals that its policy does not accept.
pub(crate) fn retarget_bundle<'a>(
    bytes: &'a [u8],
    request: &RetargetRequest,
    host: &HostPart<'_>,
) -> Result<BundleResult<'a>, Diagnostic> {
    let (mut bundle, companions) = parse::parse_bundle(bytes, request)?;
    let present = parse::code_objects(&bundle, &companions)?;
    let mut dropped = dropped_entries(&bundle, &request.drop);
    let (names, made_before) = match request.sources {
        SourcePolicy::Best | SourcePolicy::Only(_) => {
            (HostNames::new(&bundle, host, request.unchecked_names)?, record::made_before(&bundle)?)
        }
        // The plan decides, not the way in which an entry was made.
        SourcePolicy::Plan { .. } => (HostNames::without_bundle(host, request.unchecked_names), Vec::new()),
    };
    let serving = SourceCandidates { present: &present, made_before, names: &names, dropped: &dropped, request };
    let Derivation { mut outcomes, derived, remarks } = serve_all(&serving, &bundle)?;
    outcomes.extend(dropped.iter().map(|id| dropped_entry(id)));
    if request.drop_covered {
        let superseded = superseded::superseded_entries(&present, &derived, request, &dropped, &names)?;
        outcomes.extend(superseded.iter().map(superseded_entry));
        dropped.extend(superseded.into_iter().map(|entry| entry.id));
    }
    let has_code_objects = !present.is_empty();
    let packs = bundle.compression().is_none() && request.compression.is_some();
    // Findings and the removal of companions change a fat binary, too.
    let is_noted = present.iter().any(|entry| request.is_compiled(entry.target.processor.name));
    let changes = !derived.is_empty() || !remarks.is_empty() || !dropped.is_empty() || packs || is_noted;
    if !changes && (companions.is_empty() || !has_code_objects) {
        return Ok(BundleResult { written: None, outcomes, remarks, has_code_objects });
    }
    let record =
        record::build_record(&bundle, (&present, &derived), &remarks, request, |one| is_kept_entry(one, &dropped))?;
    drop(present);
    let sources = sources_of_entries(&bundle, &derived);
    // A device link without inputs leaves an entry that lacks code.
    let is_replaced =
        |entry: &BundleEntry<'_>| is_empty_link(&entry.data) && derived.iter().any(|new| new.id == entry.id);
    bundle.retain(|entry| is_kept_entry(&entry.id, &dropped) && !is_replaced(entry));
    bundle.set_compression(compression_of_result(&bundle, request));
    let written = write_bundle(bundle, derived, &sources, &record)?;
    Ok(BundleResult { written, outcomes, remarks, has_code_objects })
}

fn is_kept_entry(id: &str, dropped: &[String]) -> bool {
    !dropped.iter().any(|dropped| dropped == id)
}

/// The code objects made for all targets.
struct Derivation {
    outcomes: Vec<TargetOutcome>,
    derived: Vec<NewEntry>,
    remarks: Vec<Diagnostic>,
}

/// Serves the targets one by one. A bundle without code objects lacks a source, and that is not a refusal.
fn serve_all(serving: &SourceCandidates<'_, '_>, bundle: &Bundle<'_>) -> Result<Derivation, Diagnostic> {
    let (mut outcomes, mut derived, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for target in serving.request.targets.iter().copied().filter(|_| !serving.present.is_empty()) {
        let (result, made) = serving.serve_target(target)?;
        serving.refuse_dropped_cover(target, &result)?;
        remarks.extend(policy::remarks_about(serving.request, &result)?);
        for mut entry in made {
            if bundle.is_aside() {
                entry.data = entry.data.put_aside();
            }
            derived.push(entry);
        }
        serving.present.iter().for_each(|entry| bundle.release(entry.data));
        outcomes.push(TargetOutcome::for_target(target, result));
    }
    Ok(Derivation { outcomes, derived, remarks })
}

/// The compression of the result: the bundle's own at the requested level, or the requested one where it lacks one.
fn compression_of_result(bundle: &Bundle<'_>, request: &RetargetRequest) -> Option<Compression> {
    let Some(own) = bundle.compression() else { return request.compression };
    let level = request.level.or(own.level);
    Some(Compression { level, ..own })
}

/// The source of each entry, whether the entry stays or is removed.
fn sources_of_entries<'a>(bundle: &Bundle<'a>, derived: &[NewEntry]) -> Vec<(String, EntryBytes<'a>)> {
    let whole = derived.iter().filter(|entry| entry.left_out.is_empty());
    whole
        .filter_map(|entry: &NewEntry| Some((entry.id.clone(), bundle.entry(&entry.source.to_string())?.data.clone())))
        .collect()
}

/// IDs of the entries for these targets.
fn dropped_entries(bundle: &Bundle<'_>, drop: &[TargetId]) -> Vec<String> {
    bundle.entries().iter().filter(|one| is_requested_drop(one, drop)).map(|entry| entry.id.clone()).collect()
}

fn is_requested_drop(entry: &&BundleEntry<'_>, drop: &[TargetId]) -> bool {
    let id = EntryId::parse(&entry.id).ok();
    let target = id.as_ref().and_then(|id| id.target()?.parse::<TargetId>().ok());
    target.is_some_and(|target| {
        drop.iter().any(|wanted| {
            let any = wanted.xnack.is_none() && wanted.sramecc.is_none();
            target == *wanted || any && target.processor == wanted.processor
        })
    })
}
