//! The plan's policy: which pairs it accepts, and what becomes of targets that cannot be made.

use crate::request::{RetargetRequest, SourcePolicy, TargetOutcome, TargetResult};
use hotswap_compat::{EXPERIMENTAL_ADVICE, PairStatus, Verdict};
use hotswap_plan::{Plan, Policy, RetargetPair};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::{Processor, require_processor};

/// Whether the pair is one that the plan's policy accepts: `Ok(true)` if it can be applied at all, `Ok(false)` if it
/// cannot and the policy is to leave such targets out.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`] under every policy (a misspelt name is not a request); under the policy `error`
/// [`codes::PAIR_REFUSED`] with the reason.
pub fn check_pair(pair: &RetargetPair, plan: &Plan) -> Result<bool, Diagnostic> {
    let (source, target) = (require_processor(&pair.source)?, require_processor(&pair.target)?);
    let refused = match hotswap_compat::pair_verdict(source, target) {
        Verdict::Refused { why } => {
            Diagnostic::error(codes::PAIR_REFUSED, format!("{}=>{}: {why}", pair.source, pair.target))
        }
        _ if plan.experimental || is_validated(source, target) => return Ok(true),
        _ => {
            let what = format!("{}=>{} is experimental, which was not allowed", pair.source, pair.target);
            Diagnostic::error(codes::PAIR_REFUSED, what).advise(EXPERIMENTAL_ADVICE)
        }
    };
    if plan.policy == Policy::Error { Err(refused) } else { Ok(false) }
}

fn is_validated(source: &Processor, target: &Processor) -> bool {
    hotswap_compat::find_pair(source, target).is_some_and(|pair| pair.status == PairStatus::Validated)
}

/// Whether the plan can be used: its targets and patch families are known, and the policy accepts its pairs.
///
/// # Errors
/// As [`check_pair`], or [`codes::UNKNOWN_FAMILY`].
pub fn check_plan(plan: &Plan) -> Result<(), Diagnostic> {
    plan.pairs.iter().try_for_each(|pair| check_pair(pair, plan).map(|_| ()))?;
    hotswap_families::families_of(plan).map(|_| ())
}

/// A policy covers targets that cannot be made; damage and our own defects are errors under any policy.
pub(crate) fn is_refusal(diagnostic: &Diagnostic) -> bool {
    [codes::NO_ROUTE, codes::PAIR_REFUSED, codes::NOT_SAFE].contains(&diagnostic.code)
}

/// The record's remarks about the result for a target. With a plan its policy decides whether they are errors; without
/// one the caller does.
///
/// # Errors
/// With a plan: the refusal under the policy `error`; damage and our own defects under any.
pub(crate) fn remarks_about(request: &RetargetRequest, result: &TargetResult) -> Result<Vec<Diagnostic>, Diagnostic> {
    match (&request.sources, result) {
        (SourcePolicy::Best | SourcePolicy::Only(_), _) => {
            Ok(first_reason(result).into_iter().chain(left_out_warning(result)).collect())
        }
        (SourcePolicy::Plan { .. }, TargetResult::Refused { reasons, .. }) => {
            let refusal = first_of(reasons);
            if request.policy == Policy::Error || !is_refusal(&refusal) {
                return Err(refusal);
            }
            Ok(vec![Diagnostic { severity: Severity::Warning, ..refusal }])
        }
        (SourcePolicy::Plan { .. }, _) => Ok(Vec::new()),
    }
}

/// A target that could not be derived under the policy `compile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRefusal {
    pub target: &'static Processor,
    pub why: Diagnostic,
}

/// The targets that were refused.
pub(crate) fn refused_targets(outcomes: &[TargetOutcome]) -> Vec<TargetRefusal> {
    outcomes.iter().filter_map(target_refusal_of).collect()
}

fn target_refusal_of(outcome: &TargetOutcome) -> Option<TargetRefusal> {
    let TargetResult::Refused { reasons, .. } = &outcome.result else { return None };
    Some(TargetRefusal { target: outcome.subject.target()?, why: first_of(reasons) })
}

/// The first finding represents all of them; the others are attached to it.
fn first_of(found: &[Diagnostic]) -> Diagnostic {
    let others = found.len().saturating_sub(1);
    let mut first = found.first().cloned().unwrap_or_else(missing_refusal_reason);
    if others > 0 {
        first.what += &format!(" (and {others} more findings)");
    }
    first
}

fn missing_refusal_reason() -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, "a check refused without a reason")
}

/// The record's warning for a target that was made without some of its kernels.
fn left_out_warning(result: &TargetResult) -> Option<Diagnostic> {
    let TargetResult::Made { left_out, .. } = result else { return None };
    let names = result.left_out_kernels();
    let (entry, _) = left_out.first()?;
    let what = format!("{entry}: {} kernels are left out: {}", names.len(), names.join(" "));
    Some(Diagnostic::error(codes::NOT_SAFE, what))
}

/// The record's reason for a target that was not made.
fn first_reason(result: &TargetResult) -> Option<Diagnostic> {
    let by_name = result.disagreements().first();
    result
        .reasons()
        .first()
        .cloned()
        .or_else(|| by_name.map(|row| Diagnostic::error(codes::CHOSEN_BY_NAME, row.to_string())))
}
