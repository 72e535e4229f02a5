//! `tensor_mask`: tensor loads that may be delivered to several workgroups.
//!
//! The low half of the second descriptor's first dword selects them; the target hangs unless it is 0. It is cleared
//! before the load, and the dword is restored if it is read later. Stores lack such a mask.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Sequence, SiteAnswer, SiteQueries, SiteRefusal, alloc_scratch,
    named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Class, Inst, Isa, Name, OperandValue, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_tensor_mask_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::TENSOR_MASK,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    entry.mnemonic() == "tensor_load_to_lds"
}

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let descriptor = match site.value(Name::Vaddr1) {
        Some(OperandValue::Reg(reg)) if reg.file == RegFile::Sgpr => Reg { count: 1, ..reg },
        _ => {
            return Err(SiteRefusal::new(
                "the second descriptor is in no plain scalar registers",
                crate::code::RECOMPILE,
            ));
        }
    };
    if around.last_def(descriptor).is_some_and(|writer: &Inst| clears_low_half(writer, site.source, descriptor)) {
        return Ok(SiteAnswer::Leave("the mask is 0 already"));
    }
    let mut code = Sequence::new(site, around);
    let saved = match around.is_dead_after(descriptor) {
        true => None,
        false => Some(alloc_scratch(around, RegFile::Sgpr, 1, 1, &site.named_registers(around.banks()))?),
    };
    match saved {
        Some(saved) => {
            code.declare_scratch(saved)?;
            code.add(
                "s_mov_b32",
                Class::Sop1,
                &[named_operand(Name::Sdst, saved), named_operand(Name::Src0, descriptor)],
            )?;
        }
        None => code.declare_overwrite(descriptor, around)?,
    }
    // The halves of the result are the upper halves of 0 and of the dword.
    code.add(
        "s_pack_hh_b32_b16",
        Class::Sop2,
        &[
            named_operand(Name::Sdst, descriptor),
            named_operand(Name::Src0, OperandArg::Constant(0)),
            named_operand(Name::Src1, descriptor),
        ],
    )?;
    code.add_original(*site.inst)?;
    if let Some(saved) = saved {
        // The load may have to be issued again, and then reads its descriptor again.
        code.wait("s_wait_xcnt", 0)?;
        code.add("s_mov_b32", Class::Sop1, &[named_operand(Name::Sdst, descriptor), named_operand(Name::Src0, saved)])?;
    }
    Ok(code.finish()?.into())
}

/// Whether `writer` leaves 0 in the low half of `reg`.
fn clears_low_half(writer: &Inst, isa: Isa, reg: Reg) -> bool {
    if writer.operand(isa, Name::Sdst) != Some(OperandValue::Reg(reg)) {
        return false;
    }
    let first = constant_of_operand(writer, isa, Name::Src0);
    match writer.mnemonic() {
        "s_mov_b32" | "s_pack_ll_b32_b16" | "s_pack_lh_b32_b16" => has_zero_low_half(first),
        "s_and_b32" => has_zero_low_half(first) || has_zero_low_half(constant_of_operand(writer, isa, Name::Src1)),
        "s_pack_hh_b32_b16" => first.is_some_and(|value| value >> 16 == 0),
        _ => false,
    }
}

fn constant_of_operand(writer: &Inst, isa: Isa, name: Name) -> Option<u32> {
    match writer.operand(isa, name)? {
        OperandValue::Inline(inline) => Some(inline.value as u32),
        OperandValue::Literal(literal) => Some(literal.value as u32),
        _ => None,
    }
}

fn has_zero_low_half(constant: Option<u32>) -> bool {
    constant.is_some_and(|value| value & 0xffff == 0)
}
