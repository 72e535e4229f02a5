//! `cluster_load`: loads that may be delivered to several workgroups of a cluster.
//!
//! M0\[15:0\] selects the workgroups; the target hangs unless it is 0. The load stays. M0 is 0 while it is issued, and
//! is restored if it is read later. LLVM for the target writes the same `s_mov_b32 m0, 0`.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Sequence, SiteAnswer, SiteQueries, SiteRefusal, named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Class, Inst, Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_cluster_load_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::CLUSTER_LOAD,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    entry.mnemonic().starts_with("cluster_load_")
}

const M0: Reg = Reg::special(Special::M0, 1);

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    if around.last_def(M0).is_some_and(sets_zero) {
        return Ok(SiteAnswer::Leave("M0 is 0 already"));
    }
    let mut code = Sequence::new(site, around);
    let zero = [named_operand(Name::Sdst, OperandArg::Reg(M0)), named_operand(Name::Src0, OperandArg::Constant(0))];
    if around.is_dead_after(M0) {
        code.declare_overwrite(M0, around)?;
        code.add("s_mov_b32", Class::Sop1, &zero)?;
        code.add_original(*site.inst)?;
        return Ok(code.finish()?.into());
    }
    let saved = crate::code::alloc_scratch(around, RegFile::Sgpr, 1, 1, &site.named_registers(around.banks()))?;
    code.declare_scratch(saved)?;
    code.add("s_mov_b32", Class::Sop1, &[named_operand(Name::Sdst, saved), named_operand(Name::Src0, M0)])?;
    code.add("s_mov_b32", Class::Sop1, &zero)?;
    code.add_original(*site.inst)?;
    // The load may have to be issued again, and then reads M0 again.
    code.wait("s_wait_xcnt", 0)?;
    code.add("s_mov_b32", Class::Sop1, &[named_operand(Name::Sdst, M0), named_operand(Name::Src0, saved)])?;
    Ok(code.finish()?.into())
}

/// Whether an instruction is `s_mov_b32 m0, 0`.
fn sets_zero(inst: &Inst) -> bool {
    /// The inline constant 0.
    const ZERO: u64 = 128;
    inst.mnemonic() == "s_mov_b32" && inst.raw(Name::Src0) == Some(ZERO)
}
