//! Vector registers that hold a value and are borrowed all the same: stored to scratch memory before a replacement, loaded
//! after it.
//!
//! Invariants: store and load run under the EXEC of the site, which nothing between them writes, so the lanes that are
//! saved are those that vector instructions overwrite; matrix instructions write all lanes and are refused. The store may
//! have to be issued again and reads the register then, so it is waited for (`s_wait_xcnt 0`) before the register is written.
//! Both counters are 0 after the load: the program does not wait for either.
//!
//! The instructions are LLVM 24's for spills of gfx1250 (`nv`: memory of one work-item). LLVM lacks a wait for the
//! store; here there is one, because waves may give up their registers and scratch (`s_sendmsg MSG_DEALLOC_VGPRS`) where
//! LLVM knows that no store to scratch is outstanding.

use super::site::{CodeSite, RECOMPILE, Replacement, SiteQueries, SiteRefusal};
use super::{Sequence, is_matrix, named_operand};
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Class, Inst, Isa, Name};

/// A register with its dword of scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillSlot {
    /// One vector register, physical.
    pub reg: Reg,
    /// Offset in the private segment of a work-item, bytes.
    pub offset: u32,
}

/// The end of what the 24-bit signed offset of a scratch instruction reaches from the begin of the private segment.
pub const SPILL_LIMIT: u32 = 1 << 23;

/// Cache policy: memory that no other work-item writes.
const NON_VOLATILE: i64 = 1 << 5;

/// A replacement that leaves these registers as they were.
///
/// # Errors
/// It writes EXEC, or such a register in lanes outside of EXEC; the target lacks such instructions, or the bank
/// mode at the site is not known.
pub fn with_spills(
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    new: Replacement,
    slots: &[SpillSlot],
) -> Result<Replacement, SiteRefusal> {
    if let Some(inst) = new.code.iter().find(|inst| !keeps_lanes(inst, site.target)) {
        let what = format!("a register cannot be spilled around {}, which leaves the lanes of EXEC", inst.mnemonic());
        return Err(SiteRefusal::new(what, RECOMPILE));
    }
    let mut code = Sequence::new(site, around);
    for slot in slots {
        add_access(&mut code, "scratch_store_b32", Name::Vdata, slot)?;
    }
    if !new.code.first().is_some_and(waits_for_xcnt) {
        code.wait("s_wait_xcnt", 0)?;
    }
    let mut all = code.finish()?.code;
    all.extend_from_slice(&new.code);
    let mut code = Sequence::new(site, around);
    for slot in slots {
        add_access(&mut code, "scratch_load_b32", Name::Vdst, slot)?;
    }
    code.wait("s_wait_loadcnt", 0)?;
    code.wait("s_wait_storecnt", 0)?;
    all.extend(code.finish()?.code);
    Ok(Replacement { code: all, ..new })
}

fn waits_for_xcnt(inst: &Inst) -> bool {
    inst.mnemonic() == "s_wait_xcnt" && inst.raw(Name::Simm16) == Some(0)
}

fn add_access(code: &mut Sequence, mnemonic: &str, name: Name, slot: &SpillSlot) -> Result<(), SiteRefusal> {
    let offset = OperandArg::Number(i64::from(slot.offset));
    let operands = [
        named_operand(name, slot.reg),
        named_operand(Name::Offset, offset),
        named_operand(Name::Cpol, OperandArg::Number(NON_VOLATILE)),
    ];
    code.add(mnemonic, Class::Flat, &operands)
}

/// Whether an instruction leaves EXEC, and all other lanes of vector registers, as they are.
fn keeps_lanes(inst: &Inst, isa: Isa) -> bool {
    let mut writes = inst.writes(isa);
    !is_matrix(inst)
        && writes.all(|effect| match effect.reg.file {
            RegFile::Vgpr => effect.masked || inst.memory_access().is_some(),
            _ => !writes_exec_mask(effect.reg),
        })
}

fn writes_exec_mask(reg: Reg) -> bool {
    reg.is(Special::ExecLo) || reg.is(Special::ExecHi)
}
