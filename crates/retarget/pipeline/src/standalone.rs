//! Code objects that are in no bundle: one is made from the best of them ([`relabel`]), or a bundle of the source and what
//! is made from it ([`bundled`]).

use crate::entry::{NewEntry, SourceEntry};
use crate::names::HostNames;
use crate::request::{RetargetRequest, TargetOutcome, TargetResult};
use crate::serve::SourceCandidates;
use crate::write::WrittenBundle;
use crate::{parse, record, retarget};
use hotswap_bundle::{Bundle, EntryId, FoundContainer, KernelArchive};
use hotswap_code_object::CodeObject;
use hotswap_compat::names::HostPart;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, TargetId};
use std::collections::BTreeSet;

/// As [`crate::retarget()`], for code objects that are in no bundle, and one target: the bytes that were made from the
/// best of them, followed by the record, if one was made.
///
/// # Errors
/// As for [`crate::retarget()`]; [`codes::USAGE`] where two of the code objects are for one processor,
/// or have different kernels.
pub fn relabel_standalone(
    sources: &[&[u8]],
    target: &'static Processor,
    request: &RetargetRequest,
) -> Result<(Option<Vec<u8>>, TargetResult), Diagnostic> {
    let present: Vec<SourceEntry<'_>> =
        sources.iter().map(|bytes| standalone_source(bytes)).collect::<Result<_, _>>()?;
    reject_same_processor(&present)?;
    reject_other_kernels(&present)?;
    let host = HostPart::default();
    let names = HostNames::without_bundle(&host, request.unchecked_names);
    let serving = SourceCandidates { present: &present, made_before: Vec::new(), names: &names, dropped: &[], request };
    let (result, made) = serving.serve_target(target)?;
    Ok((record_standalone(&present, &made, request)?, result))
}

/// The result of [`bundle_standalone`] and [`retarget_archived`].
#[derive(Debug)]
pub struct BundledSource {
    /// The bundle, where a target was made.
    pub bundle: Option<Vec<u8>>,
    pub outcomes: Vec<TargetOutcome>,
}

/// As [`crate::retarget()`], for a code object that is in no bundle: a bundle of it and of what was made from it or from
/// `others`, as `clang-offload-bundler` writes it, the host's empty entry first. The others are not in it.
///
/// # Errors
/// As for [`crate::retarget()`], and a record that cannot be read.
pub fn bundle_standalone(
    source: &[u8],
    others: &[&[u8]],
    request: &RetargetRequest,
) -> Result<BundledSource, Diagnostic> {
    let objects = std::iter::once(&source).chain(others).map(|bytes| BundledObject::read(bytes));
    let objects = objects.collect::<Result<Vec<_>, Diagnostic>>()?;
    let plain = bundle_objects(objects.iter().copied().map(Ok))?.to_plain_bytes()?;
    let mut request = request.clone();
    request.drop.extend(objects[1..].iter().map(|object| object.target));
    let made = retarget::retarget_bundle(&plain, &request, &HostPart::default())?;
    let is_made = made.outcomes.iter().any(|outcome| matches!(outcome.result, TargetResult::Made { .. }));
    let written = made.written.filter(|_| is_made).map(WrittenBundle::into_bytes).transpose()?;
    Ok(BundledSource { bundle: written, outcomes: made.outcomes })
}

/// As [`crate::retarget()`], for a fat binary of a kernel archive: the changed one as a plain bundle.
///
/// # Errors
/// As for [`crate::retarget()`], and an archive that cannot be read.
pub fn retarget_archived(found: &FoundContainer<'_>, request: &RetargetRequest) -> Result<BundledSource, Diagnostic> {
    let plain = KernelArchive::bundle_of(found)?.to_plain_bytes()?;
    // The archive has its own compression.
    let request = RetargetRequest { compression: None, ..request.clone() };
    let made = retarget::retarget_bundle(&plain, &request, &HostPart::default())?;
    let written = made.written.map(WrittenBundle::into_bytes).transpose()?;
    Ok(BundledSource { bundle: written, outcomes: made.outcomes })
}

/// A bundle of code objects that are in none, as `clang-offload-bundler` lays it out, with their records.
///
/// # Errors
/// A damaged code object or record; [`codes::OTHER_TARGET`] where one is for another target than named;
/// [`codes::INTERNAL`] where two are for one target.
pub fn bundle_of<'a>(objects: &[(TargetId, &'a [u8])]) -> Result<Bundle<'a>, Diagnostic> {
    bundle_objects(objects.iter().map(|(target, bytes)| BundledObject::read(bytes)?.under_name(target)))
}

/// A code object of a bundle that is made, and its record.
#[derive(Clone, Copy)]
struct BundledObject<'a> {
    /// The target that its entry names.
    target: TargetId,
    code: &'a [u8],
    record: Option<&'a [u8]>,
}

impl<'a> BundledObject<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        let (code, record) = hotswap_bundle::split_record(bytes)?;
        Ok(Self { target: CodeObject::parse(code)?.target_id(), code, record })
    }

    /// The same under the target that its entry is to name.
    fn under_name(self, target: &TargetId) -> Result<Self, Diagnostic> {
        if self.target.processor != target.processor {
            let what = format!("the code object is for {}, not for {target}", self.target);
            return Err(Diagnostic::error(codes::OTHER_TARGET, what));
        }
        Ok(Self { target: *target, ..self })
    }
}

fn bundle_objects<'a>(
    objects: impl Iterator<Item = Result<BundledObject<'a>, Diagnostic>>,
) -> Result<Bundle<'a>, Diagnostic> {
    let mut bundle = Bundle::default();
    bundle.push(HOST_ENTRY, Vec::new())?;
    let mut rows = Vec::new();
    for object in objects {
        let BundledObject { target, code, record } = object?;
        let id = entry_id(&target);
        rows.extend(record::rows_of_record(record)?.into_iter().filter(|row| row.id == id));
        bundle.push(id, code)?;
    }
    if !rows.is_empty() {
        bundle.set_record(Some(record::of_rows(rows).to_json().into_bytes()));
        // A record has a row for each entry, also for those that come without one.
        let present = parse::code_objects(&bundle, &[])?;
        let whole = record::build_record(&bundle, (&present, &[]), &[], &RetargetRequest::default(), |_| true)?;
        drop(present);
        bundle.set_record(Some(whole.to_json().into_bytes()));
    }
    Ok(bundle)
}

/// The entry that clang's bundles begin with: no tool reads it, and LLVM's bundler wants it to be there.
pub const HOST_ENTRY: &str = "host-x86_64-unknown-linux-gnu-";

/// The entry ID of a target, as clang's old driver writes it; every reader accepts it.
pub fn entry_id(target: &TargetId) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

/// A code object that is in no bundle.
fn standalone_source(bytes: &[u8]) -> Result<SourceEntry<'_>, Diagnostic> {
    let (data, _) = hotswap_bundle::split_record(bytes)?;
    let object = CodeObject::parse(data)?;
    let target = object.target_id();
    let id = EntryId::parse(&entry_id(&target))?;
    Ok(SourceEntry { id, object, target, data, relocatable: None, recompiled: None })
}

/// Two code objects of one processor are ambiguous sources: only the entry IDs of a bundle
/// distinguish sets of features.
fn reject_same_processor(present: &[SourceEntry<'_>]) -> Result<(), Diagnostic> {
    for (number, one) in present.iter().enumerate() {
        if let Some(other) = present[..number].iter().find(|other| has_same_processor(other, one)) {
            let what = format!("two of the sources are for one processor: {} and {}", other.target, one.target);
            return Err(Diagnostic::error(codes::USAGE, what));
        }
    }
    Ok(())
}

fn has_same_processor(other: &SourceEntry<'_>, one: &SourceEntry<'_>) -> bool {
    other.target.processor == one.target.processor
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
fn record_standalone(
    present: &[SourceEntry<'_>],
    made: &[NewEntry],
    request: &RetargetRequest,
) -> Result<Option<Vec<u8>>, Diagnostic> {
    let Some(entry) = made.last() else { return Ok(None) };
    let record = record::build_record(&Bundle::default(), (present, made), &[], request, |id| id == entry.id)?;
    match hotswap_bundle::with_record(&entry.data, record.to_json().as_bytes()) {
        Err(error) if error.code == codes::MALFORMED => Ok(Some(entry.data.to_vec())),
        whole => whole.map(Some),
    }
}
