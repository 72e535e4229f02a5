//! `f8f6f4_wrap`: `v_wmma_f32_16x16x128_f8f6f4` without scales.
//!
//! The target can resume after a trap only in the form with scales, so LLVM never emits the bare form for it. It
//! becomes the scaled form with the neutral scale, the constant 0, for both matrices.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Replacement, SiteAnswer, SiteQueries, SiteRefusal, scaled,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::TableEntry;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_f8f6f4_wrap_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::F8F6F4_WRAP,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    entry.mnemonic() == "v_wmma_f32_16x16x128_f8f6f4"
}

fn rewrite(site: &CodeSite<'_>, _: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    scaled::with_neutral_scales(site).map(Replacement::single_instruction).map(SiteAnswer::Replace)
}
