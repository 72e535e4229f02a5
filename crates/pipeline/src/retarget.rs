//! One bundle of a finished file: targets are added from the best that is there, others dropped.
//!
//! Where [`crate::expand`] follows the pairs of a plan, here only targets are named: native code wins, then a
//! generic target that covers the request, then the first pair of the product's table whose source is there and
//! passes the checks of the pair. A source that fails them is told with all findings, and the next one is tried.
//!
//! Invariants: as for [`crate::expand`]; what is dropped may serve as a source first; the record's plan has the
//! pairs that were applied, so that the same wish gives the same bytes again.
//!
//! Absent on purpose: policies. What could not be made is said for each target; the caller decides.

use crate::expand::{Derived, Present, code_objects, is_refusal, write};
use crate::{covered, derive, record};
use hotswap_adapt::ObjectRecord;
use hotswap_bundle::{Bundle, Bytes, Compression, Draft, Entry, EntryId, Summary};
use hotswap_code_object::CodeObject;
use hotswap_compat::{Allow, Available, Selection, Wish, route};
use hotswap_plan::{Pair, Plan, Policy};
use hotswap_report::{Diagnostic, EntryRecord, Route, codes};
use hotswap_targets::TargetId;

/// What is wanted of every bundle.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Processors, native or generic.
    pub targets: Vec<String>,
    /// Targets whose entries go; without features, those with any.
    pub drop: Vec<TargetId>,
    /// Entries of processors go that a generic target of the bundle serves as well, unless they are asked for.
    pub drop_covered: bool,
    /// Which pairs may be applied.
    pub allow: Allow,
    /// Compresses bundles that are not.
    pub compression: Option<Compression>,
    /// What the caller does about refusals; it stands in the record.
    pub policy: Policy,
}

/// What became of one target in one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It was compiled, or made by an earlier run.
    There,
    /// This generic target covers it.
    Covered(&'static str),
    /// Made from the code objects of this processor; the bundle's new entries.
    Made {
        /// The source.
        source: &'static str,
        /// How.
        route: Route,
        /// Entry IDs.
        entries: Vec<String>,
        /// What was done to the code of each entry, where it was changed.
        code: Vec<ObjectRecord>,
    },
    /// Its entry went.
    Dropped,
    /// Its entry went, because this generic target covers it.
    Superseded(&'static str),
    /// Not made, for these reasons.
    Refused(Vec<Diagnostic>),
}

/// One bundle, done.
#[derive(Debug)]
pub struct Retargeted<'a> {
    /// New content; `None` where nothing changes.
    pub draft: Option<Draft<'a>>,
    /// What the new content must read as once it is in a file; `None` where it was read already.
    pub expected: Option<Summary>,
    /// Every requested target and every dropped entry, in that order. Empty where the bundle has no code objects.
    pub fates: Vec<(String, Fate)>,
}

/// Changes one bundle, plain or compressed. `done` is told of code objects that will not be looked at soon.
///
/// # Errors
/// A damaged bundle or code object, [`hotswap_report::codes::BUNDLE_FULL`], and defects of ours: what no policy is about.
pub fn retarget<'a>(
    bytes: &'a [u8],
    request: &Request,
    done: &(dyn Fn(&[u8]) + Sync),
) -> Result<Retargeted<'a>, Diagnostic> {
    let (mut bundle, _) = hotswap_bundle::parse(bytes)?;
    let present = code_objects(&bundle)?;
    let made_before = record::made_before(&bundle)?;
    let (mut fates, mut derived, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for target in request.targets.iter().filter(|_| !present.is_empty()) {
        let (fate, made) = serve(&present, &made_before, target, request.allow)?;
        if let Fate::Refused(reasons) = &fate {
            refusals.extend(reasons.first().cloned());
        }
        derived.extend(made);
        fates.push((target.clone(), fate));
    }
    let mut dropped = dropped(&bundle, &request.drop);
    fates.extend(dropped.iter().map(|id| (id.clone(), Fate::Dropped)));
    if request.drop_covered {
        let covered = covered::covered(&present, &derived, request, &dropped)?;
        fates.extend(covered.iter().map(|(id, generic)| (id.clone(), Fate::Superseded(generic))));
        dropped.extend(covered.into_iter().map(|(id, _)| id));
    }
    let packs = bundle.compression().is_none() && request.compression.is_some();
    if derived.is_empty() && refusals.is_empty() && dropped.is_empty() && !packs {
        return Ok(Retargeted { draft: None, expected: None, fates });
    }
    let mut record = record::build(&bundle, &present, &derived, &refusals, &Plan::default(), done)?;
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

/// What each entry was derived from, whether it stays or goes.
fn sources<'a>(bundle: &Bundle<'a>, derived: &[Derived]) -> Vec<(String, Bytes<'a>)> {
    let source = |entry: &Derived| Some((entry.id.clone(), bundle.entry(&entry.source.to_string())?.data.clone()));
    derived.iter().filter_map(source).collect()
}

/// As [`retarget`], for a code object that is in no bundle, and one target: its new bytes with the record behind them, if
/// it was made.
///
/// # Errors
/// As for [`retarget`].
pub fn relabel(bytes: &[u8], target: &str, allow: Allow) -> Result<(Option<Vec<u8>>, Fate), Diagnostic> {
    let (bytes, _) = hotswap_bundle::split_record(bytes)?;
    let object = CodeObject::parse(bytes)?;
    let named = object.target_id();
    let id = EntryId::parse(&format!("hipv4-amdgcn-amd-amdhsa--{named}"))?;
    let present = [Present { id, object, target: named, data: bytes, relocatable: None, recompiled: None }];
    let (fate, made) = serve(&present, &[], target, allow)?;
    Ok((recorded(&present, &made, allow)?, fate))
}

/// The code object that was made of another one, with its record, where that has a place behind it.
fn recorded(present: &[Present<'_>], made: &[Derived], allow: Allow) -> Result<Option<Vec<u8>>, Diagnostic> {
    let Some(entry) = made.last() else { return Ok(None) };
    let mut record = record::build(&Bundle::default(), present, made, &[], &Plan::default(), &|_| ())?;
    record.entries.retain(|row| row.id == entry.id);
    let plan = plan_of(&record.entries, &Request { allow, ..Request::default() });
    (record.plan, record.plan_text) = (plan.hash(), plan.canonical());
    match hotswap_bundle::with_record(&entry.data, record.to_json().as_bytes()) {
        Err(error) if error.code == codes::MALFORMED => Ok(Some(entry.data.clone())),
        whole => whole.map(Some),
    }
}

/// The code objects to add for one target, one for each set of features that its source comes in.
///
/// What an earlier run has made is a source only where nothing else will do: so a refusal reads the same in each run.
fn serve(
    present: &[Present<'_>],
    made_before: &[String],
    target: &str,
    allow: Allow,
) -> Result<(Fate, Vec<Derived>), Diagnostic> {
    match route(target, &available(present), Wish::Best, allow) {
        Ok(Selection::Native) => return Ok((Fate::There, Vec::new())),
        Ok(Selection::Generic { generic }) => return Ok((Fate::Covered(generic.name), Vec::new())),
        Ok(_) | Err(_) => {}
    }
    let is_original = |entry: &&Present<'_>| !made_before.contains(&entry.id.to_string());
    let originals: Vec<&Present<'_>> = present.iter().filter(is_original).collect();
    let first = from_best(originals, target, allow)?;
    if matches!(first.0, Fate::Made { .. }) || made_before.is_empty() {
        return Ok(first);
    }
    let second = from_best(present.iter().collect(), target, allow)?;
    Ok(if matches!(second.0, Fate::Made { .. }) { second } else { first })
}

/// One source after the other, the best first, until one passes its checks.
fn from_best(
    mut candidates: Vec<&Present<'_>>,
    target: &str,
    allow: Allow,
) -> Result<(Fate, Vec<Derived>), Diagnostic> {
    let mut reasons = Vec::new();
    loop {
        let selection = match route(target, &available(candidates.iter().copied()), Wish::Best, allow) {
            Ok(selection) if selection.source().is_some() => selection,
            Err(refusal) if reasons.is_empty() => return Ok((Fate::Refused(vec![refusal.into()]), Vec::new())),
            // The sources that could serve have been tried and have said why not.
            Ok(_) | Err(_) => return Ok((Fate::Refused(reasons), Vec::new())),
        };
        let source = selection.source().map_or("", |source| source.name);
        let entries = candidates.iter().copied().filter(|entry| entry.target.processor.name == source);
        match derive::all(&entries.collect::<Vec<_>>(), target, selection) {
            Ok(made) => return Ok((fate(source, &made), made)),
            Err(found) => reasons.extend(all_refusals(found)?),
        }
        candidates.retain(|entry| entry.target.processor.name != source);
    }
}

fn fate(source: &'static str, made: &[Derived]) -> Fate {
    let route = made.first().map_or(Route::Alias, |entry| entry.route);
    let entries = made.iter().map(|entry| entry.id.clone()).collect();
    Fate::Made { source, route, entries, code: made.iter().filter_map(|entry| entry.code.clone()).collect() }
}

fn available<'p, 'a: 'p>(present: impl IntoIterator<Item = &'p Present<'a>>) -> Vec<Available> {
    present.into_iter().map(Present::available).collect()
}

/// Damage and our own defects are no refusals.
fn all_refusals(found: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Diagnostic> {
    match found.iter().find(|diagnostic| !is_refusal(diagnostic)) {
        Some(defect) => Err(defect.clone()),
        None => Ok(found),
    }
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

/// The plan that asks for the pairs of the record's rows.
fn plan_of(rows: &[EntryRecord], request: &Request) -> Plan {
    let processor = |target: &str| target.split(':').next().unwrap_or_default().to_owned();
    let aliases = rows.iter().filter(|row| row.route.is_made());
    let pairs = aliases
        .filter_map(|row| Some(Pair { source: processor(row.source.as_ref()?), target: processor(&row.target) }));
    let pairs = pairs.collect();
    Plan { pairs, policy: request.policy, experimental: request.allow.experimental, ..Plan::default() }
}
