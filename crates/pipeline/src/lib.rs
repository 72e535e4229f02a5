//! The common path of all tools: the input is a fat binary and a plan, the output a fat binary with every target of the
//! plan, read back and compared.
//!
//! Invariants: existing entries are unchanged, in their order; a target that was compiled is never replaced; a second
//! run changes nothing; the same input and plan give the same bytes.
//!
//! Absent on purpose: files and printing (the interposer and the `hotswap` command do both), the layout of a bundle or
//! a code object (`hotswap-bundle`, `hotswap-code-object`).

pub mod companion;
mod derive;
mod expand;
mod names;
mod record;
mod retarget;
mod superseded;

pub use expand::{Expansion, NOTHING_TO_ADD, expand};
pub use names::disagreements_of_plan;
pub use retarget::{Request, Retargeted, TargetResult, relabel, retarget};

use hotswap_compat::{Allow, EXPERIMENTAL_ADVICE, Status, Verdict};
use hotswap_plan::{Pair, Plan, Policy};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;

/// The permissions of the plan.
pub(crate) fn allow(plan: &Plan) -> Allow {
    Allow { experimental: plan.experimental }
}

/// Whether the pair is one that the plan's policy accepts: `Ok(true)` if it can be applied at all, `Ok(false)` if it
/// cannot and the policy is to leave such targets out.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`] under every policy (a misspelt name is not a request); under the policy `error`
/// [`codes::PAIR_REFUSED`] with the reason.
pub fn check_pair(pair: &Pair, plan: &Plan) -> Result<bool, Diagnostic> {
    let (source, target) = (processor(&pair.source)?, processor(&pair.target)?);
    let refused = match hotswap_compat::verdict(source, target) {
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
    hotswap_compat::pair(source, target).is_some_and(|pair| pair.status == Status::Validated)
}

/// Whether the plan can be used: its targets and patch families are known, and the policy accepts its pairs.
///
/// # Errors
/// As [`check_pair`], or [`codes::UNKNOWN_FAMILY`].
pub fn check_plan(plan: &Plan) -> Result<(), Diagnostic> {
    plan.pairs.iter().try_for_each(|pair| check_pair(pair, plan).map(|_| ()))?;
    hotswap_families::families_of(plan).map(|_| ())
}

fn processor(name: &str) -> Result<&'static Processor, Diagnostic> {
    hotswap_targets::find(name).ok_or_else(|| Diagnostic::error(codes::UNKNOWN_TARGET, format!("`{name}`")))
}
