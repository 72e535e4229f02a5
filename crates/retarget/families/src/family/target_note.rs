//! `target_note`: sets `amdhsa.target` of the metadata note to the target ID.
//!
//! The triple before the target ID keeps the source's spelling; compilers differ.

use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_target_note_patch(registry: &mut FamilyRegistry) {
    registry.bind(slot::TARGET_NOTE, Apply::CodeObject(apply));
}

fn apply(source: &CodeObject<'_>, target: &TargetId, edit: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
    let note = source.note();
    let text = note.respell_target(target);
    edit.set_note_target(&text)?;
    Ok(if text == note.target { 0 } else { note.target_ranges.len() as u64 })
}
