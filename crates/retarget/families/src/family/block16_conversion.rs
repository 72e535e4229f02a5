//! `block16_conversion`: scaled conversions that select a scale of blocks of 16 elements.
//!
//! The top bit of `scale_sel` selects among twice as many scales; the target lacks such a bit. Its effect there is
//! unknown, and no tool lowers it, so it is refused. The lower selectors are the same on both.

use crate::code::{CandidateFilter, CodeSite, InstructionFamily, SiteAnswer, SiteQueries, SiteRefusal};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::{Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_block16_conversion_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::BLOCK16_CONVERSION,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    highest_scale_sel(entry.mnemonic()).is_some()
}

/// The highest `scale_sel` of the target.
fn highest_scale_sel(mnemonic: &str) -> Option<u64> {
    let rest = mnemonic.strip_prefix("v_cvt_scale_pk8_").or_else(|| mnemonic.strip_prefix("v_cvt_scale_pk16_"))?;
    let (_, from) = rest.split_once('_')?;
    match from {
        "fp8" | "bf8" => Some(7),
        "fp4" | "fp6" | "bf6" => Some(3),
        _ => None,
    }
}

fn rewrite(site: &CodeSite<'_>, _: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let Some(highest) = highest_scale_sel(site.inst.mnemonic()) else { return Ok(SiteAnswer::NotMine) };
    let selected = site.raw(Name::ScaleSel);
    if selected <= highest {
        return Ok(SiteAnswer::Leave("the target has this scale_sel"));
    }
    let reason = format!("scale_sel:{selected} chooses scales of 16 elements, the target has 0 to {highest} only");
    Err(SiteRefusal::new(reason, "compile the kernel for the target, with scales of 32 elements"))
}
