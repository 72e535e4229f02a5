//! The first step: a bundle taken apart into its code objects.

use crate::companion::{self, Companion};
use crate::entry::SourceEntry;
use crate::request::{RetargetRequest, SourcePolicy};
use hotswap_bundle::{Bundle, BundleEntry, EntryId};
use hotswap_code_object::{CodeObject, is_code_object, is_empty_link};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

/// The bundle, and the companions that a device link has appended to its entries.
///
/// # Errors
/// A damaged bundle; [`codes::UNKNOWN_FORMAT`] where more than one follows in a link.
pub(crate) fn parse_bundle<'a>(
    bytes: &'a [u8],
    request: &RetargetRequest,
) -> Result<(Bundle<'a>, Vec<Companion<'a>>), Diagnostic> {
    // Companions are removed where the fat binary is made. A finished file lacks them.
    if !matches!(request.sources, SourcePolicy::Plan { .. }) {
        return Ok((hotswap_bundle::parse_aside(bytes)?.0, Vec::new()));
    }
    let (mut bundle, consumed) = hotswap_bundle::parse(bytes)?;
    if bytes[consumed..].iter().any(|byte| *byte != 0) {
        let what = "more bytes follow the bundle: several bundles where one was expected";
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(consumed as u64));
    }
    let companions = companion::take_companions(&mut bundle)?;
    Ok((bundle, companions))
}

/// The bundle's HIP code objects with their companions; each must match its entry ID.
///
/// # Errors
/// A damaged code object, or one that its entry ID contradicts, with the entry.
pub(crate) fn code_objects<'a>(
    bundle: &'a Bundle<'_>,
    companions: &'a [Companion<'_>],
) -> Result<Vec<SourceEntry<'a>>, Diagnostic> {
    let mut present = Vec::new();
    for entry in bundle.entries().iter().filter(is_linked_code_object) {
        present.extend(source_with_companions(entry, companions).map_err(|error| error.in_entry(&entry.id))?);
    }
    Ok(present)
}

fn source_with_companions<'a>(
    entry: &'a BundleEntry<'_>,
    companions: &'a [Companion<'_>],
) -> Result<Option<SourceEntry<'a>>, Diagnostic> {
    let Some(mut source) = source_of_entry(entry)? else { return Ok(None) };
    let own = companions.iter().filter(|companion| companion.entry == entry.id);
    own.map(Companion::bytes).try_for_each(|bytes| add_companion(&mut source, bytes))?;
    Ok(Some(source))
}

fn is_linked_code_object(entry: &&BundleEntry<'_>) -> bool {
    is_code_object(&entry.data) && !is_empty_link(&entry.data)
}

/// `None` for code that is not HIP's (OpenMP entries look the same otherwise), and for processors that are not known.
fn source_of_entry<'a>(entry: &'a BundleEntry<'_>) -> Result<Option<SourceEntry<'a>>, Diagnostic> {
    let id = EntryId::parse(&entry.id)?;
    let Some(name) = id.target().filter(|_| id.is_amdgpu()) else { return Ok(None) };
    let object = CodeObject::parse(&entry.data);
    let named = match (name.parse::<TargetId>(), &object) {
        (Ok(named), _) => named,
        // Code for a processor that neither name nor header make known: it stays as it is, and is not a source.
        (Err(_), Err(error)) if error.code == codes::UNKNOWN_MACHINE => return Ok(None),
        (Err(error), _) => return Err(error.into()),
    };
    let object = object?;
    let target = object.target_id();
    if named.processor.name != target.processor.name {
        let what = format!("the entry names {named}, its code object is for {target}");
        return Err(Diagnostic::error(codes::MALFORMED, what));
    }
    Ok(Some(SourceEntry { id, object, target: named, data: &entry.data, relocatable: None, recompiled: None }))
}

/// Adds a companion to the code object that it came with.
fn add_companion<'a>(present: &mut SourceEntry<'a>, bytes: &'a [u8]) -> Result<(), Diagnostic> {
    let companion = CodeObject::parse(bytes)?;
    if companion.target_id().processor == present.target.processor {
        present.relocatable = Some(companion);
    } else {
        present.recompiled = Some(companion);
    }
    Ok(())
}
