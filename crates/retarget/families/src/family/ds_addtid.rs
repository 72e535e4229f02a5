//! `ds_addtid`: LDS access at M0 + 4 × lane.
//!
//! The source adds 20 bits of M0, the target 16: LDS beyond 64 KiB is out of reach. The address is computed instead:
//! (M0 + 4 × lane) in 20 bits, then the offset of the instruction. Waves have 32 lanes, so one `v_mbcnt_lo` counts them.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Sequence, SiteAnswer, SiteQueries, SiteRefusal, alloc_scratch,
    named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Class, Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_ds_addtid_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::DS_ADDTID,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

fn concerns(entry: TableEntry) -> bool {
    matches!(entry.mnemonic(), "ds_load_addtid_b32" | "ds_store_addtid_b32")
}

/// Bits of the address.
const BITS: u64 = 20;

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let banks = around.banks();
    let mut code = Sequence::new(site, around);
    let offset = named_operand(Name::Offset, OperandArg::Number(site.raw(Name::Offset) as i64));
    if site.inst.mnemonic() == "ds_load_addtid_b32" {
        let result = site.register_operand(Name::Vdst, banks)?;
        let place = place_of_address(&mut code, site, around, result)?;
        compute_address(&mut code, place)?;
        let operands = [named_operand(Name::Vdst, result), named_operand(Name::Addr, place), offset];
        code.add("ds_load_b32", Class::Ds, &operands)?;
    } else {
        let data = site.register_operand(Name::Data0, banks)?;
        let place = alloc_scratch(around, RegFile::Vgpr, 1, 1, &site.named_registers(banks))?;
        code.declare_scratch(place)?;
        compute_address(&mut code, place)?;
        let operands = [named_operand(Name::Addr, place), named_operand(Name::Data0, data), offset];
        code.add("ds_store_b32", Class::Ds, &operands)?;
    }
    Ok(code.finish()?.into())
}

/// The register for the address of a load. The result register is unused before the result arrives, but an older
/// load may still write it: LDS answers in order, so a program need not wait between two loads into one register. Then
/// another register is preferred, and if none is free, the older load is waited for.
fn place_of_address(
    code: &mut Sequence,
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    result: Reg,
) -> Result<Reg, SiteRefusal> {
    let other = match around.outstanding(result)[..] {
        [] => None,
        _ => around.find_dead(RegFile::Vgpr, 1, 1, &site.named_registers(around.banks())),
    };
    match other {
        Some(other) => code.declare_scratch(other)?,
        None => code.declare_overwrite(result, around)?,
    }
    Ok(other.unwrap_or(result))
}

/// Computes the address into `to`.
fn compute_address(code: &mut Sequence, to: Reg) -> Result<(), SiteRefusal> {
    let minus_one = OperandArg::Constant(u64::from(u32::MAX));
    let lane = [
        named_operand(Name::Vdst, to),
        named_operand(Name::Src0, minus_one),
        named_operand(Name::Src1, OperandArg::Constant(0)),
    ];
    code.add("v_mbcnt_lo_u32_b32", Class::Vop3, &lane)?;
    let m0 = OperandArg::Reg(Reg::special(Special::M0, 1));
    let sum = [
        named_operand(Name::Vdst, to),
        named_operand(Name::Src0, to),
        named_operand(Name::Src1, OperandArg::Constant(2)),
        named_operand(Name::Src2, m0),
    ];
    code.add("v_lshl_add_u32", Class::Vop3, &sum)?;
    let bits =
        [named_operand(Name::Src1, OperandArg::Constant(0)), named_operand(Name::Src2, OperandArg::Constant(BITS))];
    code.add("v_bfe_u32", Class::Vop3, &[[named_operand(Name::Vdst, to), named_operand(Name::Src0, to)], bits].concat())
}
