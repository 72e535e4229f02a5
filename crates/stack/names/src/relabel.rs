//! Code that was compiled for the shown name becomes code for the device as well.
//!
//! The image becomes a bundle, if it is not one already, and the bundle is retargeted as every tool does it
//! (`hotswap-pipeline`). HIP takes the device's entry of the result.
//!
//! Invariants: a code object for the device, or for a generic target that covers it, wins, and the image is unchanged
//! then. Only identical siblings are relabelled (`hotswap-compat` decides). The result was read back.

use crate::name_map::NamePair;
use hotswap_bundle::{Bundle, EntryId, FoundContainer, is_bundle};
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_pipeline::{RetargetRequest, SourcePolicy, TargetOutcome, TargetResult, retarget};
use hotswap_plan::{Plan, Policy, TextFindings};
use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, find_processor};
use std::borrow::Cow;

/// ID of the host's entry, which HIP's readers expect first.
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// The result for an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relabelled {
    /// The bundle to load in the place of the image; `None` where nothing was made.
    pub image: Option<Vec<u8>>,
    /// A sentence for each GPU that code for its shown name could not be relabelled for.
    pub refusals: Vec<String>,
}

/// The pairs whose shown name the image has code for, and not for the GPU itself. Of a compressed bundle only the table is
/// read where that is possible. Nothing is needed of an image that cannot be read: HIP says what is wrong with it.
pub fn needed_pairs(image: &[u8], pairs: &[NamePair]) -> Vec<NamePair> {
    let present = image_processors(image).unwrap_or_default();
    pairs
        .iter()
        .copied()
        .filter(|pair| present.contains(&pair.shown) && !serves_own_processor(pair.own, &present))
        .collect()
}

fn serves_own_processor(own: &Processor, present: &[&Processor]) -> bool {
    present.iter().any(|one| *one == own || one.covers(own))
}

/// The processors that an image has code for; none for anything but bundles and code objects.
fn image_processors(image: &[u8]) -> Result<Vec<&'static Processor>, Diagnostic> {
    if is_code_object(image) {
        let (object, _) = hotswap_bundle::split_record(image)?;
        return Ok(vec![CodeObject::parse(object)?.target_id().processor]);
    }
    if !is_bundle(image) {
        return Ok(Vec::new());
    }
    let found = hotswap_bundle::find_containers(image).found;
    if let Some(table) = found.first().map_or(Ok(None), FoundContainer::table)? {
        return Ok(processors_of_ids(table.iter().map(|(id, _)| id.as_str())));
    }
    let (bundle, _) = hotswap_bundle::parse(image)?;
    Ok(processors_of_ids(bundle.entries().iter().map(|entry| entry.id.as_str())))
}

fn processors_of_ids<'i>(ids: impl Iterator<Item = &'i str>) -> Vec<&'static Processor> {
    let ids = ids.filter_map(|id| EntryId::parse(id).ok()).filter(EntryId::is_amdgpu);
    ids.filter_map(|id| id.processor().and_then(find_processor)).collect()
}

/// Adds code for these GPUs, which [`needed`] has selected, to an image.
pub fn relabel_image(image: &[u8], needed: &[NamePair]) -> Relabelled {
    let (siblings, others): (Vec<NamePair>, Vec<NamePair>) =
        needed.iter().partition(|pair| hotswap_compat::pair_verdict(pair.shown, pair.own).is_identical());
    let why = "the two are no identical siblings; only code that was checked beforehand may be used";
    let mut result =
        Relabelled { image: None, refusals: others.iter().map(|pair| relabel_refusal_message(pair, why)).collect() };
    if siblings.is_empty() {
        return result;
    }
    match as_bundle(image).and_then(|bundle| retarget_bundle(&bundle, &siblings)) {
        Ok(derived) => {
            result.image = derived.image;
            let refused = derived.refused.iter();
            result.refusals.extend(refused.map(|one| relabel_refusal_message(&one.pair, &one.reason)));
        }
        Err(error) => {
            result.refusals.extend(siblings.iter().map(|pair| relabel_refusal_message(pair, &describe_error(&error))))
        }
    }
    result
}

fn relabel_refusal_message(pair: &NamePair, why: &str) -> String {
    format!("code for {} was loaded on {} and cannot be relabelled for it: {why}", pair.shown.name, pair.own.name)
}

/// The image, a bundle or a code object, as a bundle.
fn as_bundle(image: &[u8]) -> Result<Cow<'_, [u8]>, Diagnostic> {
    if is_bundle(image) {
        return Ok(Cow::Borrowed(image));
    }
    let (object, _) = hotswap_bundle::split_record(image)?;
    let target = CodeObject::parse(object)?.target_id();
    let mut bundle = Bundle::default();
    bundle.push(HOST, Vec::new())?;
    bundle.push(format!("hipv4-amdgcn-amd-amdhsa--{target}"), object.to_vec())?;
    Ok(Cow::Owned(bundle.to_bytes()?.into_owned()))
}

struct DerivedBundle {
    /// A bundle with code for the pairs, if any could be made.
    image: Option<Vec<u8>>,
    /// The pairs that do not get code.
    refused: Vec<RefusedPair>,
}

struct RefusedPair {
    pair: NamePair,
    reason: String,
}

fn retarget_bundle(bundle: &[u8], pairs: &[NamePair]) -> Result<DerivedBundle, Diagnostic> {
    let mut plan = Plan::default();
    for pair in pairs {
        plan.add_pairs(&format!("{}=>{}", pair.shown.name, pair.own.name))?;
    }
    let request = RetargetRequest {
        targets: pairs.iter().map(|pair| pair.own).collect(),
        sources: SourcePolicy::Plan { plan, findings: TextFindings::default() },
        // The host sees the name that the code was compiled for.
        unchecked_names: true,
        // Each refusal becomes a sentence of its own.
        policy: Policy::Warn,
        ..RetargetRequest::default()
    };
    let made = retarget(bundle, &request, &Default::default())?;
    let mut refused = Vec::new();
    for TargetOutcome { subject, result } in &made.outcomes {
        let pair = pairs.iter().find(|pair| subject.target() == Some(pair.own));
        if let (Some(pair), TargetResult::Refused { reasons, .. }) = (pair, result) {
            let reason = reasons.first().map_or_else(|| "no reason is known".to_owned(), describe_error);
            refused.push(RefusedPair { pair: *pair, reason });
        }
    }
    let is_made = made.outcomes.iter().any(|outcome| matches!(outcome.result, TargetResult::Made { .. }));
    let image = made.draft.filter(|_| is_made).map(|draft| draft.to_vec());
    if let (Some(image), Some(expected)) = (&image, &made.expected) {
        expected.check_written(image)?;
    }
    Ok(DerivedBundle { image, refused })
}

/// A diagnostic as a part of a sentence.
fn describe_error(error: &Diagnostic) -> String {
    format!("{}{} ({})", error.place, error.what, error.code.summary)
}
