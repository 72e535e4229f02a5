//! `user_sgpr_count`: gives kernels with wave32 unused user SGPRs if the target incorrectly starts waves that have
//! fewer than 16 registers (gfx1100, gfx1102 and the generic targets that cover them).
//!
//! Clang writes the same count into its own object for the target. Work-group IDs follow the user SGPRs, so they move.
//! The pair's checks (`user-sgprs-16`) prove, before this family runs, that the code reads none of them.

use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_user_sgpr_count_patch(registry: &mut FamilyRegistry) {
    registry.bind(slot::USER_SGPR_COUNT, Apply::CodeObject(apply));
}

fn apply(_: &CodeObject<'_>, target: &TargetId, edit: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
    Ok(edit.raise_user_sgprs(target.processor) as u64)
}
