//! One derived code object: families change a copy, or the engine changes its code, or the link has compiled it; the
//! result is read back.

use crate::companion::has_same_kernels;
use crate::entry::{NewEntry, SourceEntry};
use crate::policy::is_refusal;
use hotswap_adapt::{AdaptRequest, ObjectRecord};
use hotswap_bundle::EntryId;
use hotswap_code_object::{
    CodeObject, KernelMetadata, SystemSgprShift, device_symbols_note, same_but_for_label, with_own_build_id,
    without_kernels,
};
use hotswap_compat::Selection;
use hotswap_device_symbols::note;
use hotswap_families::FamilyRegistry;
use hotswap_report::{Diagnostic, FamilyCount, Route, codes};
use hotswap_targets::{Processor, TargetId};
use std::collections::BTreeSet;

/// The code objects for `request` of all entries of one source, in the order of these entries.
///
/// Where the target lacks a feature in which the entries differ, several become one entry: code that was compiled with
/// the feature off is preferred to code with it on, because that is how the target runs.
pub(crate) fn derive_entries(
    sources: &[&SourceEntry<'_>],
    request: &'static Processor,
    selection: Selection,
    leave_out: bool,
) -> Result<Vec<NewEntry>, Vec<Diagnostic>> {
    let mut ranked: Vec<usize> = (0..sources.len()).collect();
    ranked.sort_by_key(|index| enabled_target_features(sources[*index]).into_iter().filter(|on| *on).count());
    let mut made: Vec<MadeEntry> = Vec::new();
    let mut failed: Vec<FailedEntry> = Vec::new();
    for index in ranked {
        let entry = sources[index];
        let target = hotswap_compat::derive_target_id_for(&entry.target, request).ok();
        if target.is_some_and(|target| is_made(&made, &target, &entry.id)) {
            continue;
        }
        match derive_entry(entry, request, selection, leave_out) {
            Ok(derived) => made.push(MadeEntry { index, derived }),
            Err(findings) => failed.push(FailedEntry { index, target, findings }),
        }
    }
    failed.retain(|one| !one.target.is_some_and(|target| is_made(&made, &target, &sources[one.index].id)));
    if !failed.is_empty() {
        failed.sort_by_key(|one| one.index);
        return Err(failed.into_iter().flat_map(|one| one.findings).collect());
    }
    made.sort_by_key(|one| one.index);
    Ok(made.into_iter().map(|one| one.derived).collect())
}

/// The entry that was made from the source at `index`.
struct MadeEntry {
    index: usize,
    derived: NewEntry,
}

/// The findings about the source at `index`, whose entry would be for `target`.
struct FailedEntry {
    index: usize,
    target: Option<TargetId>,
    findings: Vec<Diagnostic>,
}

fn enabled_target_features(entry: &SourceEntry<'_>) -> [bool; 2] {
    [entry.target.xnack, entry.target.sramecc].map(|stated| stated == Some(true))
}

/// Whether the entry that would be made from `source` was made from another one already. (The same ID twice is damage.)
fn is_made(made: &[MadeEntry], target: &TargetId, source: &EntryId) -> bool {
    let id = source.with_target(&target.to_string()).map(|id| id.to_string());
    made.iter().any(|one| Some(&one.derived.id) == id.as_ref() && one.derived.source != *source)
}

/// The result of one code object for `request`; an error is all findings, or one defect.
fn derive_entry(
    source: &SourceEntry<'_>,
    request: &'static Processor,
    selection: Selection,
    leave_out: bool,
) -> Result<NewEntry, Vec<Diagnostic>> {
    let in_entry =
        |found: Vec<Diagnostic>| found.into_iter().map(|error| add_entry_place(error, source)).collect::<Vec<_>>();
    let target = hotswap_compat::derive_target_id_for(&source.target, request)
        .map_err(|one| single_entry_error(one, &in_entry))?;
    let object_target = hotswap_compat::derive_target_id_for(&source.object.target_id(), request)
        .map_err(|one| single_entry_error(one, &in_entry))?;
    if let Err(found) = hotswap_compat::check_object(&source.object, &object_target) {
        let left_out = if leave_out { kernels_of(&found, source) } else { None };
        let Some(kernels) = left_out else { return Err(in_entry(found)) };
        return derive_without_kernels(source, &kernels, request, selection).map_err(in_entry);
    }
    let id = source.id.with_target(&target.to_string()).map(|id| id.to_string());
    let id = id.ok_or_else(|| {
        single_entry_error(Diagnostic::error(codes::INTERNAL, "the source's entry ID names no target"), &in_entry)
    })?;
    let made = match selection {
        Selection::Recompiled { .. } => take_recompiled(source, &object_target),
        Selection::Rewrite { .. } => rewrite_code(source, &object_target),
        _ => relabel_sibling(source, &object_target),
    };
    let made = made.map_err(in_entry)?;
    let (route, families, code) = (made.route, made.families, made.code);
    let data = with_functions(source, made.data).map_err(|one| single_entry_error(one, &in_entry))?;
    let (source, left_out) = (source.id.clone(), Vec::new());
    Ok(NewEntry { id, data: data.into(), target, source, route, families, code, left_out })
}

fn single_entry_error(error: Diagnostic, in_entry: &impl Fn(Vec<Diagnostic>) -> Vec<Diagnostic>) -> Vec<Diagnostic> {
    in_entry(vec![error])
}

/// A code object whose source has a table of its functions gets its own: the source's describes other code.
fn with_functions(source: &SourceEntry<'_>, data: Vec<u8>) -> Result<Vec<u8>, Diagnostic> {
    match device_symbols_note(source.data) {
        Some(_) => note::with_table_like(&data, source.data).map(|(data, _)| data),
        None => Ok(data),
    }
}

/// The kernels that all findings concern, if there are others; `None` if one concerns something else.
fn kernels_of(found: &[Diagnostic], source: &SourceEntry<'_>) -> Option<BTreeSet<String>> {
    let kernels = &source.object.note().kernels;
    let names: BTreeSet<String> =
        found.iter().map(|finding| kernel_of_finding(finding, kernels)).collect::<Option<_>>()?;
    (names.len() < kernels.len()).then_some(names)
}

/// The kernel that fails a check; `None` for a finding of another kind, or about something else.
fn kernel_of_finding(finding: &Diagnostic, kernels: &[KernelMetadata<'_>]) -> Option<String> {
    let name = finding.place.kernel.as_ref().filter(|_| finding.code == codes::NOT_SAFE)?;
    kernels.iter().any(|kernel| kernel.name == name).then(|| name.clone())
}

/// The result of a code object without these kernels. The rest passes the checks of the pair as a whole object does.
fn derive_without_kernels(
    source: &SourceEntry<'_>,
    kernels: &BTreeSet<String>,
    request: &'static Processor,
    selection: Selection,
) -> Result<NewEntry, Vec<Diagnostic>> {
    let names: BTreeSet<&str> = kernels.iter().map(String::as_str).collect();
    let data = without_kernels(&source.object, &names).map_err(single_kernel_error)?;
    let object = CodeObject::parse(&data).map_err(single_kernel_error)?;
    let (id, target) = (source.id.clone(), source.target);
    let rest = SourceEntry { id, object, target, data: &data, relocatable: None, recompiled: None };
    let made = derive_entry(&rest, request, selection, false)?;
    Ok(NewEntry { left_out: kernels.iter().cloned().collect(), ..made })
}

fn single_kernel_error(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

/// Adds the entry to the place; the engine already names a section there.
fn add_entry_place(mut error: Diagnostic, source: &SourceEntry<'_>) -> Diagnostic {
    let entry = source.id.to_string();
    error.place.entry = Some(match error.place.entry.take() {
        Some(section) if section != entry => format!("{entry}: {section}"),
        _ => entry,
    });
    error
}

/// The bytes of a derived code object, and how they were made.
struct DerivedCode {
    data: Vec<u8>,
    route: Route,
    families: Vec<FamilyCount>,
    code: Option<ObjectRecord>,
}

/// Relabels the code object of a sibling.
fn relabel_sibling(source: &SourceEntry<'_>, target: &TargetId) -> Result<DerivedCode, Vec<Diagnostic>> {
    let shifts = hotswap_compat::shifts_to_make(&source.object, target);
    if !shifts.is_empty() {
        return copy_system_sgprs(source, &shifts, target);
    }
    let (data, families) =
        FamilyRegistry::installed().apply_families(&source.object, target).map_err(single_relabel_error)?;
    verify_derived(source, &data, target).map_err(single_relabel_error)?;
    let data = with_own_build_id(data, source.data);
    Ok(DerivedCode { data, route: Route::Relabelled, families, code: None })
}

/// Relabels the code object of a sibling whose kernels read work-group IDs from other registers than the target's.
fn copy_system_sgprs(
    source: &SourceEntry<'_>,
    shifts: &[SystemSgprShift],
    target: &TargetId,
) -> Result<DerivedCode, Vec<Diagnostic>> {
    source.object.check_descriptors().map_err(single_relabel_error)?;
    let order = AdaptRequest { target: *target, keep_machine: false };
    let adapted = hotswap_adapt::copy_system_sgprs(&source.object, shifts, &order)?;
    verify_kernels(source, &adapted.bytes, target)?;
    let (families, code) = (adapted.record.families.clone(), Some(adapted.record));
    let data = with_own_build_id(adapted.bytes, source.data);
    Ok(DerivedCode { data, route: Route::Rewritten, families, code })
}

fn single_relabel_error(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

/// Takes the code object that the link has compiled.
fn take_recompiled(source: &SourceEntry<'_>, target: &TargetId) -> Result<DerivedCode, Vec<Diagnostic>> {
    let found = source.recompiled.as_ref().filter(|object| object.target_id().processor == target.processor);
    let object =
        found.ok_or_else(|| recompiled_verify_failure(format!("the link has compiled nothing for {target}")))?;
    has_same_kernels(&source.object, object, target)
        .map_err(|what| recompiled_verify_failure(format!("what the link has compiled for {target}: {what}")))?;
    Ok(DerivedCode { data: object.bytes().to_vec(), route: Route::Recompiled, families: Vec::new(), code: None })
}

fn recompiled_verify_failure(what: String) -> Vec<Diagnostic> {
    vec![Diagnostic::error(codes::VERIFY_FAILED, what)]
}

/// Rewrites the code: that with relocations, where the link has kept them.
fn rewrite_code(source: &SourceEntry<'_>, target: &TargetId) -> Result<DerivedCode, Vec<Diagnostic>> {
    source.object.check_descriptors().map_err(|error| vec![error])?;
    let order = AdaptRequest { target: *target, keep_machine: false };
    let original = source.relocatable.as_ref().unwrap_or(&source.object);
    let adapted = hotswap_adapt::adapt_parsed(original, &order)?;
    verify_kernels(source, &adapted.bytes, target)?;
    let (families, code) = (adapted.record.families.clone(), Some(adapted.record));
    let data = with_own_build_id(adapted.bytes, original.bytes());
    Ok(DerivedCode { data, route: Route::Rewritten, families, code })
}

/// Reads the engine's output and compares it with the source: the same kernels, for the target.
fn verify_kernels(source: &SourceEntry<'_>, made: &[u8], target: &TargetId) -> Result<(), Vec<Diagnostic>> {
    let read = CodeObject::parse(made).map_err(|error| error.what);
    read.and_then(|made| has_same_kernels(&source.object, &made, target))
        .map_err(|what| rewrite_verify_failure(format!("the copy for {target}: {what}")))
}

fn rewrite_verify_failure(what: String) -> Vec<Diagnostic> {
    vec![Diagnostic::error(codes::VERIFY_FAILED, what)]
}

/// Damage and our own defects are not refusals.
pub(crate) fn all_refusals(found: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Diagnostic> {
    match found.iter().find(|diagnostic| !is_refusal(diagnostic)) {
        Some(defect) => Err(defect.clone()),
        None => Ok(found),
    }
}

/// The copy must be a code object of the target and the same as its source but for the label, in the exact
/// ranges that [`same_but_for_label`] lists. Its ABI version changes for generic targets alone.
fn verify_derived(source: &SourceEntry<'_>, data: &[u8], target: &TargetId) -> Result<(), Diagnostic> {
    let object = CodeObject::parse(data).map_err(|error| derived_verify_failure(error.to_string()))?;
    if object.target_id() != *target {
        return Err(derived_verify_failure(format!("the copy for {target} reads back as {}", object.target_id())));
    }
    if object.abi_version() != source.object.abi_version() && !target.processor.is_generic() {
        return Err(derived_verify_failure(format!("the copy for {target} has another ABI version")));
    }
    same_but_for_label(&source.object, &object).map_err(|what| {
        derived_verify_failure(format!("in the copy for {target}, more than the label differs: {what}"))
    })
}

fn derived_verify_failure(what: String) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what)
}
