//! A plan in a link: it becomes a request, whose result says what was added to the fat binary.
//!
//! Absent on purpose: the steps, which are the same for every request ([`crate::retarget()`]).

use crate::policy::{TargetRefusal, check_plan, refused_targets};
use crate::request::RetargetRequest;
use crate::retarget::{BundleResult, retarget_bundle};
use crate::write::WrittenBundle;
use hotswap_compat::names::HostPart;
use hotswap_plan::{Plan, Policy, TextFindings};
use hotswap_report::Diagnostic;

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
    /// Targets that must be compiled under the policy `compile`; nothing was done then.
    pub refused: Vec<TargetRefusal>,
}

/// [`Expansion::kept`] where the plan's targets are all present, or were left out.
pub const NOTHING_TO_ADD: &str = "nothing to add";

impl Expansion {
    fn kept_unchanged(why: &'static str) -> Self {
        Self { bytes: None, derived: Vec::new(), kept: Some(why), warnings: Vec::new(), refused: Vec::new() }
    }
}

/// Adds to the bundle in `bytes` (plain or compressed) every target that the plan requests.
///
/// Bytes that are not a bundle (an object with bundle sections, text) and bundles without code (bitcode before a
/// device link) are unchanged, with the reason in [`Expansion::kept`].
///
/// `findings` describes the source's text: the code object that a target is derived from where that is not the plan's
/// source, and the targets that were compiled because their text differs.
///
/// `level` is the compression level for a compressed bundle, which does not record the level it was made with;
/// `None` is clang's default.
///
/// # Errors
/// A plan that cannot be used; a damaged bundle or code object; [`hotswap_report::codes::NO_ROUTE`] for a target that cannot be made,
/// under the policy `error`; [`hotswap_report::codes::BUNDLE_FULL`]; [`hotswap_report::codes::VERIFY_FAILED`].
pub fn expand_bundle(
    bytes: &[u8],
    plan: &Plan,
    findings: &TextFindings,
    level: Option<i32>,
) -> Result<Expansion, Diagnostic> {
    check_plan(plan)?;
    if !hotswap_bundle::is_bundle(bytes) {
        return Ok(Expansion::kept_unchanged("not a bundle"));
    }
    let request = RetargetRequest::of_plan(plan, findings, level)?;
    let BundleResult { written, outcomes, remarks, has_code_objects } =
        retarget_bundle(bytes, &request, &HostPart::default())?;
    if !has_code_objects {
        return Ok(Expansion::kept_unchanged("no code object"));
    }
    if plan.policy == Policy::Compile && !remarks.is_empty() {
        return Ok(Expansion {
            refused: refused_targets(&outcomes),
            ..Expansion::kept_unchanged("targets are refused")
        });
    }
    let derived: Vec<String> = outcomes.into_iter().flat_map(|outcome| outcome.result.into_entries()).collect();
    let bytes = written.map(WrittenBundle::into_bytes).transpose()?;
    let kept = (bytes.is_none() || derived.is_empty()).then_some(NOTHING_TO_ADD);
    let warnings = if plan.policy == Policy::Warn { remarks } else { Vec::new() };
    Ok(Expansion { bytes, derived, kept, warnings, refused: Vec::new() })
}
