//! `machine_flags`: `e_flags` of the ELF header say the target's machine.
//!
//! Feature bits stay as the source has them: the code was compiled with that setting. A target
//! ID that states another one is refused, not written.

use crate::registry::Registry;
use crate::table::slot;
use hotswap_code_object::{CodeObject, Edit};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_machine_flags_patch(registry: &mut Registry) {
    registry.bind(slot::MACHINE_FLAGS, apply);
}

fn apply(source: &CodeObject<'_>, target: &TargetId, edit: &mut Edit<'_, '_>) -> Result<u64, Diagnostic> {
    let flags = source.flags().with_processor(target.processor).filter(|flags| flags.target_id() == *target);
    let Some(flags) = flags else {
        let what = format!("the features of {} cannot be labelled {target}", source.target_id());
        return Err(Diagnostic::error(codes::PAIR_REFUSED, what));
    };
    let flags = flags.encode_for(source.abi_version());
    edit.set_e_flags(flags);
    Ok(u64::from(flags != source.e_flags()))
}
