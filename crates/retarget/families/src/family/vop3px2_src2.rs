//! `vop3px2_src2`: the source that scaled matrix instructions do not use.
//!
//! The hardware reads its field nevertheless, and a number that names a scalar register makes the instruction wait for
//! that register. Old assemblers wrote 0, which is s0. LLVM 22 wrote v0, later versions the constant 0; both are left
//! unchanged.

use crate::code::{CandidateFilter, CodeSite, InstructionFamily, Replacement, SiteAnswer, SiteQueries, SiteRefusal};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::{Class, Flag, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_vop3px2_src2_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::VOP3PX2_SRC2,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    entry.class() == Some(Class::Vop3px2) && entry.is(Flag::Wmma)
}

/// The position of the field in the second dword.
const SHIFT: u32 = 18;
/// The constant 0 as a source, which LLVM writes from version 23 on.
const ZERO: u32 = 128;

fn rewrite(site: &CodeSite<'_>, _: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let mut bytes = site.inst.bytes();
    let word = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    if matches!(word >> SHIFT & 511, 128..=208 | 240..=248 | 256..) {
        return Ok(SiteAnswer::Leave("the unused source is a constant or a vector register"));
    }
    let word = word & !(511 << SHIFT) | ZERO << SHIFT;
    bytes[4..8].copy_from_slice(&word.to_le_bytes());
    let inst = site.target.decode(&bytes).ok().filter(|inst| inst.entry() == site.inst.entry());
    let inst = inst.ok_or_else(|| SiteRefusal::new("the target has no such instruction", crate::code::RECOMPILE))?;
    Ok(Replacement::single_instruction(inst).into())
}
