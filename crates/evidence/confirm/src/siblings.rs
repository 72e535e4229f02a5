//! Code that was made for another GPU and that HotSwap derives for this one.

use crate::probe_objects::ProbeObject;
use hotswap_bundle::split_record;
use hotswap_compat::{PairStatus, all_pairs};
use hotswap_pipeline::{RetargetRequest, SourcePolicy, TargetResult, relabel_standalone};
use hotswap_plan::RetargetPair;
use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, find_processor};

/// The processors whose code HotSwap derives for this one, the preferred first.
pub fn sibling_processors(target: &Processor) -> Vec<&'static Processor> {
    let pairs = all_pairs().filter(|pair| pair.target == target.name && pair.status == PairStatus::Validated);
    let sources = pairs.filter_map(|pair| find_processor(pair.source));
    sources.filter(|source| !source.is_generic()).collect()
}

/// A sibling's code object as code for the target.
///
/// # Errors
/// The first reason why HotSwap refuses it.
pub fn derive_object(object: &ProbeObject, target: &'static Processor) -> Result<Vec<u8>, Diagnostic> {
    let pair = RetargetPair { source: object.processor.name.to_owned(), target: target.name.to_owned() };
    let request = RetargetRequest { sources: SourcePolicy::Only(vec![pair]), ..RetargetRequest::default() };
    let (made, result) = relabel_standalone(&[&object.bytes], target, &request)?;
    match (made, result) {
        (Some(bytes), _) => Ok(split_record(&bytes)?.0.to_vec()),
        (None, TargetResult::Refused { reasons, .. }) if !reasons.is_empty() => Err(reasons[0].clone()),
        _ => Err(Diagnostic::error(hotswap_report::codes::NO_ROUTE, "nothing was made")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_objects::{judged_processors, make_objects};
    use hotswap_code_object::CodeObject;

    #[test]
    fn siblings_code_becomes_code_of_the_target() {
        let mut count = 0;
        let mut targets: Vec<&'static Processor> = judged_processors().collect();
        targets.dedup_by_key(|target| target.family);
        for target in targets {
            for source in sibling_processors(target) {
                let objects = make_objects(source).unwrap();
                for object in objects.iter().filter(|object| ["scalar", "memory", "programs"].contains(&object.group)) {
                    let made = derive_object(object, target);
                    let made = made.unwrap_or_else(|error| panic!("{source} {target} {}: {error}", object.group));
                    assert_eq!(CodeObject::parse(&made).unwrap().target_id().processor, target);
                    count += 1;
                }
            }
        }
        assert!(count > 30, "{count}");
    }
}
