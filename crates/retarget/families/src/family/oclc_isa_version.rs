//! `oclc_isa_version`: sets `__oclc_ISA_version`, the constant from which -O0 code of ROCm's device library reads its
//! GPU, to the target's number.
//!
//! Clang writes that number into its own object for the target, so this would be the only difference of the copy. If a
//! word may be the constant and nothing proves it, the copy is refused (`hotswap-code-object` says when).

use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_oclc_isa_version_patch(registry: &mut FamilyRegistry) {
    registry.bind(slot::OCLC_ISA_VERSION, Apply::CodeObject(apply));
}

fn apply(_: &CodeObject<'_>, target: &TargetId, edit: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
    Ok(edit.set_isa_version(target.processor)? as u64)
}
