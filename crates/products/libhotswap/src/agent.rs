//! The target of an agent.

use crate::call_error::{CallError, CallStatus};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

/// The agent's target, from a target ID or the name of an HSA ISA.
///
/// # Errors
/// `InvalidArgument` for a target that is not known.
pub(crate) fn agent_target(isa: &str) -> Result<TargetId, CallError> {
    target_id_of(isa).parse::<TargetId>().map_err(|error| unknown_agent_error(Diagnostic::from(error).into()))
}

fn unknown_agent_error(error: CallError) -> CallError {
    CallError { status: CallStatus::InvalidArgument, ..error }
}

/// The target ID in the name of an HSA ISA (`amdgcn-amd-amdhsa--gfx90a:xnack-`), or the text itself.
fn target_id_of(isa: &str) -> &str {
    isa.rsplit_once("--").map_or(isa, |(_, id)| id)
}
