//! From a bundle and a plan to the bundle with all targets.

use crate::companion::Companion;
use crate::{check_plan, companion, derive, record};
use hotswap_adapt::ObjectRecord;
use hotswap_bundle::{Bundle, Bytes, Compression, Draft, Entry, EntryId, Summary};
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_compat::{Available, Wish};
use hotswap_plan::{Plan, Policy, TextFinding, TextFindings};
use hotswap_report::{Diagnostic, FamilyCount, Record, Route, Severity, SourceText, codes};
use hotswap_targets::{Processor, TargetId};

/// The result of expanding a fat binary.
#[derive(Debug)]
pub struct Expansion {
    /// The new content; `None` where nothing had to be done.
    pub bytes: Option<Vec<u8>>,
    /// Bundle entry IDs that were added, in order.
    pub derived: Vec<String>,
    /// The reason why nothing was done, where nothing could be done.
    pub kept: Option<&'static str>,
    /// Targets that were left out under the policy `warn`.
    pub warnings: Vec<Diagnostic>,
}

/// [`Expansion::kept`] where the plan's targets are all present, or were left out.
pub const NOTHING_TO_ADD: &str = "nothing to add";

impl Expansion {
    fn kept(why: &'static str) -> Self {
        Self { bytes: None, derived: Vec::new(), kept: Some(why), warnings: Vec::new() }
    }
}

/// A code object of the bundle, with its own description of itself.
pub(crate) struct SourceEntry<'a> {
    pub(crate) id: EntryId,
    pub(crate) object: CodeObject<'a>,
    pub(crate) target: TargetId,
    pub(crate) data: &'a [u8],
    /// The same code with relocations, where the link has kept them.
    pub(crate) relocatable: Option<&'a [u8]>,
    /// The other processor for which the link has compiled the same bitcode, and that code object.
    pub(crate) recompiled: Option<(&'static Processor, &'a [u8])>,
}

impl SourceEntry<'_> {
    pub(crate) fn available(&self) -> Available {
        Available { target: self.target, recompiled: self.recompiled.map(|(processor, _)| processor) }
    }
}

/// A code object to add.
pub(crate) struct NewEntry {
    pub(crate) id: String,
    pub(crate) data: Vec<u8>,
    pub(crate) target: TargetId,
    /// The entry that it was derived from.
    pub(crate) source: EntryId,
    pub(crate) route: Route,
    pub(crate) families: Vec<FamilyCount>,
    /// The changes to its code.
    pub(crate) code: Option<ObjectRecord>,
    /// Kernels of its source that it lacks.
    pub(crate) left_out: Vec<String>,
}

/// Adds to the bundle in `bytes` (plain or compressed) every target that the plan requests.
///
/// Bytes that are no bundle (an object with bundle sections, text) and bundles without code objects (bitcode before a
/// device link) are unchanged, with the reason in [`Expansion::kept`].
///
/// `findings` describes the source's text: the code object that a target is derived from where that is not the plan's
/// source, and the targets that were compiled because their text differs.
///
/// `level` is the compression level for a compressed bundle, which does not record the level it was made with; `None`
/// is clang's default.
///
/// # Errors
/// A plan that cannot be used; a damaged bundle or code object; [`codes::NO_ROUTE`] for a target that cannot be made,
/// under the policy `error`; [`codes::BUNDLE_FULL`]; [`codes::VERIFY_FAILED`].
pub fn expand(bytes: &[u8], plan: &Plan, findings: &TextFindings, level: Option<i32>) -> Result<Expansion, Diagnostic> {
    check_plan(plan)?;
    if !hotswap_bundle::is_bundle(bytes) {
        return Ok(Expansion::kept("not a bundle"));
    }
    let (mut bundle, consumed) = hotswap_bundle::parse(bytes)?;
    if bytes[consumed..].iter().any(|byte| *byte != 0) {
        let what = "more bytes follow the bundle: several bundles where one was expected";
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at(consumed as u64));
    }
    let companions = companion::take(&mut bundle)?;
    let present = code_objects_with(&bundle, &companions)?;
    if present.is_empty() {
        return Ok(Expansion::kept("no code object"));
    }
    let (derived, refusals) = derive_all(&present, plan, findings)?;
    let warnings = if plan.policy == Policy::Warn { refusals.clone() } else { Vec::new() };
    let compiled = present.iter().any(|entry| is_compiled(findings, entry.target.processor.name));
    if derived.is_empty() && refusals.is_empty() && companions.is_empty() && !compiled {
        return Ok(Expansion::kept(NOTHING_TO_ADD));
    }
    let mut record = record::build(&bundle, &present, &derived, &refusals, plan)?;
    record::note_findings(&mut record, findings);
    let ids: Vec<String> = derived.iter().map(|entry| entry.id.clone()).collect();
    let derived_none = ids.is_empty();
    drop(present);
    if let Some(compression) = bundle.compression().filter(|_| level.is_some()) {
        bundle.set_compression(Some(Compression { level, ..compression }));
    }
    let bytes = write(bundle, derived, &[], &record)?.map(Written::into_bytes).transpose()?;
    let kept = (bytes.is_none() || derived_none).then_some(NOTHING_TO_ADD);
    Ok(Expansion { bytes, derived: ids, kept, warnings })
}

/// The bundle's HIP code objects; each must match its entry ID.
pub(crate) fn code_objects<'a>(bundle: &'a Bundle<'_>) -> Result<Vec<SourceEntry<'a>>, Diagnostic> {
    code_objects_with(bundle, &[])
}

fn code_objects_with<'a>(
    bundle: &'a Bundle<'_>,
    companions: &'a [Companion<'_>],
) -> Result<Vec<SourceEntry<'a>>, Diagnostic> {
    let objects = bundle.entries().iter().filter(|entry| is_code_object(&entry.data));
    let one = |entry: &'a Entry<'_>| {
        let Some(mut present) = present(entry)? else { return Ok(None) };
        companions
            .iter()
            .filter(|companions| companions.entry == entry.id)
            .try_for_each(|companions| companions.give(&mut present))?;
        Ok(Some(present))
    };
    objects.filter_map(|entry| one(entry).map_err(|error: Diagnostic| error.in_entry(&entry.id)).transpose()).collect()
}

/// `None` for code that is not HIP's (OpenMP entries look the same otherwise).
fn present<'a>(entry: &'a Entry<'_>) -> Result<Option<SourceEntry<'a>>, Diagnostic> {
    let id = EntryId::parse(&entry.id)?;
    let Some(name) = id.target().filter(|_| id.is_amdgpu()) else { return Ok(None) };
    let named: TargetId = name.parse()?;
    let object = CodeObject::parse(&entry.data)?;
    let target = object.target_id();
    if named.processor.name != target.processor.name {
        let what = format!("the entry names {named}, its code object is for {target}");
        return Err(Diagnostic::error(codes::MALFORMED, what));
    }
    Ok(Some(SourceEntry { id, object, target: named, data: &entry.data, relocatable: None, recompiled: None }))
}

type Derivation = (Vec<NewEntry>, Vec<Diagnostic>);

/// Serves every requested target by its route; targets that cannot be made are handled by the plan's policy.
fn derive_all(present: &[SourceEntry<'_>], plan: &Plan, findings: &TextFindings) -> Result<Derivation, Diagnostic> {
    let (mut derived, mut refusals) = (Vec::new(), Vec::new());
    for request in plan.targets() {
        match derive_one(present, plan, findings, request) {
            Ok(entries) => derived.extend(entries),
            Err(refusal) if plan.policy == Policy::Error || !is_refusal(&refusal) => return Err(refusal),
            Err(refusal) => refusals.push(Diagnostic { severity: Severity::Warning, ..refusal }),
        }
    }
    Ok((derived, refusals))
}

/// A policy covers targets that cannot be made; damage and our own defects are errors under any policy.
pub(crate) fn is_refusal(diagnostic: &Diagnostic) -> bool {
    [codes::NO_ROUTE, codes::PAIR_REFUSED, codes::NOT_SAFE].contains(&diagnostic.code)
}

/// The code objects to add for one target: none where it is served, otherwise one for each set of features of its
/// source. A source that fails the checks of its pair is reported with its findings if no other of the plan's sources
/// passes its own checks.
fn derive_one(
    present: &[SourceEntry<'_>],
    plan: &Plan,
    findings: &TextFindings,
    request: &str,
) -> Result<Vec<NewEntry>, Diagnostic> {
    let available: Vec<Available> = present.iter().map(SourceEntry::available).collect();
    let mut pairs = pairs_for(plan, findings, request);
    let mut refused = Vec::new();
    loop {
        let selection = match hotswap_compat::route(request, &available, Wish::Plan(&pairs), crate::allow(plan)) {
            Ok(selection) => selection,
            Err(refusal) if refused.is_empty() => return Err(refusal.into()),
            // The sources that could serve have been tried and have reported their reasons.
            Err(_) => return Err(derive::first_of(refused)),
        };
        let Some(source) = selection.source() else { return Ok(Vec::new()) };
        let sources = present.iter().filter(|entry| entry.target.processor.name == source.name);
        match derive::all(&sources.collect::<Vec<_>>(), request, selection, false) {
            Ok(derived) => return Ok(derived),
            Err(found) => refused.extend(derive::all_refusals(found)?),
        }
        pairs.retain(|(name, _)| *name != source.name);
    }
}

/// The pairs that may serve a request: the one that the source's text requires, none where the text requires
/// compilation, else the plan's. A finding about one source does not apply to another, so there is no other one then.
fn pairs_for<'p>(plan: &'p Plan, findings: &'p TextFindings, request: &'p str) -> Vec<(&'p str, &'p str)> {
    match findings.find(request) {
        Some(finding) if finding.status == SourceText::Compiled => Vec::new(),
        Some(TextFinding { source: Some(source), .. }) => vec![(source, request)],
        _ => plan.pairs.iter().map(|pair| (pair.source.as_str(), pair.target.as_str())).collect(),
    }
}

/// Whether the source's text differs for that processor, so that it was compiled for it.
fn is_compiled(findings: &TextFindings, processor: &str) -> bool {
    findings.find(processor).is_some_and(|finding| finding.status == SourceText::Compiled)
}

/// A bundle that was laid out.
pub(crate) struct Written<'a> {
    pub(crate) draft: Draft<'a>,
    /// The expected summary when it is read from a file; `None` where it was read already.
    pub(crate) expected: Option<Summary>,
}

impl Written<'_> {
    /// All of it, read back.
    fn into_bytes(self) -> Result<Vec<u8>, Diagnostic> {
        let bytes = self.draft.to_vec();
        self.expected.map_or(Ok(()), |expected| expected.check(&bytes))?;
        Ok(bytes)
    }
}

/// Adds the derived entries and the record, and lays the bundle out; `None` if neither an entry nor the record is new
/// (a second run that leaves out the same targets as the first). `sources` are the bytes that each was derived from.
///
/// A compressed bundle is read back and compared here; a plain one when it is in its file.
pub(crate) fn write<'a>(
    mut bundle: Bundle<'a>,
    derived: Vec<NewEntry>,
    sources: &[(String, Bytes<'a>)],
    record: &Record,
) -> Result<Option<Written<'a>>, Diagnostic> {
    let record = record.to_json().into_bytes();
    if derived.is_empty() && !bundle.is_changed() && bundle.record() == Some(&record) {
        return Ok(None);
    }
    for entry in derived {
        if bundle.entry(&entry.id).is_some() {
            let what = "the bundle has this entry already, without a code object, or the entry of its source twice";
            return Err(Diagnostic::error(codes::MALFORMED, what).in_entry(entry.id));
        }
        bundle.push(entry.id, entry.data)?;
    }
    bundle.set_record(Some(record));
    if bundle.compression().is_none() {
        let draft = bundle.to_draft(sources)?;
        return Ok(Some(Written { draft, expected: Some(bundle.summary()) }));
    }
    let bytes = bundle.to_bytes()?.into_owned();
    bundle.check_packed(&bytes)?;
    Ok(Some(Written { draft: Draft::from(bytes), expected: None }))
}

/// The name of a route in the record, for an entry that existed before.
pub(crate) fn route_of(target: &TargetId) -> Route {
    if target.processor.is_generic() { Route::Generic } else { Route::Native }
}
