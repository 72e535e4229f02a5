//! Code objects that are in no bundle: one is made from the best of them.

use crate::entry::{NewEntry, SourceEntry};
use crate::names::Names;
use crate::record;
use crate::request::{Request, TargetResult};
use crate::serve::Serving;
use hotswap_bundle::{Bundle, EntryId};
use hotswap_code_object::CodeObject;
use hotswap_compat::names::HostPart;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;

/// As [`crate::retarget()`], for code objects that are in no bundle, and one target: the bytes that were made from the
/// best of them, followed by the record, if one was made.
///
/// # Errors
/// As for [`crate::retarget()`]; [`codes::USAGE`] where two of the code objects are for one processor, or have different
/// kernels.
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
    let record = record::build(&Bundle::default(), (present, made), &[], request, |id| id == entry.id)?;
    match hotswap_bundle::with_record(&entry.data, record.to_json().as_bytes()) {
        Err(error) if error.code == codes::MALFORMED => Ok(Some(entry.data.clone())),
        whole => whole.map(Some),
    }
}
