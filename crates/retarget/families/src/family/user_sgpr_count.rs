//! `user_sgpr_count`: gives kernels with wave32 unused user SGPRs if the target incorrectly starts waves that have
//! fewer than 16 registers (gfx1100, gfx1102 and the generic targets that cover them).
//!
//! Clang writes the same count into its own object for the target. Work-group IDs follow the user SGPRs, so they move.
//! Kernels that read them get new code at their entries before this family runs (`hotswap-adapt`), together with their
//! count. The family refuses a kernel that has not got it.

use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_user_sgpr_count_patch(registry: &mut FamilyRegistry) {
    registry.bind(slot::USER_SGPR_COUNT, Apply::CodeObject(apply));
}

fn apply(object: &CodeObject<'_>, target: &TargetId, edit: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
    if let Some(shift) = hotswap_compat::shifts_to_make(object, target).into_iter().next() {
        let what = "the kernel reads work-group IDs from registers in which the target does not put them";
        let mut error = Diagnostic::error(codes::NOT_SAFE, what).at_offset(shift.descriptor.start as u64);
        error.place.kernel = Some(shift.kernel);
        return Err(error);
    }
    Ok(edit.raise_user_sgprs(target.processor) as u64)
}
