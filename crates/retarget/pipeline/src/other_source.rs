//! Code of another processor in the place of that whose name the host sees: where the latter fails a check.
//!
//! Invariant: the host finds the same kernels, and starts them in the same way: names, sizes of arguments, lanes of a wave,
//! largest work-groups. Kernels that are chosen by the name of a GPU must be those that the shown name chooses.

use crate::entry::SourceEntry;
use crate::names::disagreements_of_shown_names;
use crate::parse;
use hotswap_code_object::CodeObject;
use hotswap_compat::names::HostPart;
use hotswap_plan::RetargetPair;
use hotswap_report::Diagnostic;
use std::collections::BTreeMap;

/// By the name of a kernel, the facts that the host depends on when it starts it.
type KernelInterfaces<'a> = BTreeMap<&'a str, [Option<u64>; 3]>;

/// Whether the host can start the kernels of the one code object in the place of those of the other.
///
/// # Errors
/// A damaged code object or record.
pub fn has_same_kernels(one: &[u8], other: &[u8]) -> Result<bool, Diagnostic> {
    Ok(kernel_interfaces(&parse_record_object(one)?) == kernel_interfaces(&parse_record_object(other)?))
}

fn parse_record_object(bytes: &[u8]) -> Result<CodeObject<'_>, Diagnostic> {
    CodeObject::parse(hotswap_bundle::split_record(bytes)?.0)
}

/// Whether the bundle's code for `other` can take the place of its code for `shown`, whose name the host sees.
///
/// # Errors
/// A damaged bundle or code object.
pub fn can_stand_in(bytes: &[u8], shown: &str, other: &str, host: &HostPart<'_>) -> Result<bool, Diagnostic> {
    let (bundle, _) = hotswap_bundle::parse(bytes)?;
    let present = parse::code_objects(&bundle, &[])?;
    // Sets of features are sources of sets of features: with several, which replaces which is not known.
    let (own, others) = (interfaces_for_processor(&present, shown), interfaces_for_processor(&present, other));
    let ([own], [others]) = (&own[..], &others[..]) else { return Ok(false) };
    let pair = RetargetPair { source: shown.to_owned(), target: other.to_owned() };
    Ok(own == others && disagreements_of_shown_names(bytes, &[pair], host)?.is_empty())
}

fn interfaces_for_processor<'a>(present: &[SourceEntry<'a>], name: &str) -> Vec<KernelInterfaces<'a>> {
    let entries = present.iter().filter(|entry| entry.target.processor.name == name);
    entries.map(|entry| kernel_interfaces(&entry.object)).collect()
}

fn kernel_interfaces<'a>(object: &CodeObject<'a>) -> KernelInterfaces<'a> {
    let mut interfaces = KernelInterfaces::new();
    for kernel in object.note().kernels.iter() {
        let facts = [kernel.kernarg_size, kernel.wavefront_size, kernel.max_flat_workgroup_size];
        interfaces.insert(kernel.name, facts);
    }
    interfaces
}
