//! The half of a register that a load writes and a store reads.
//!
//! Kernels that are written by hand store one half while a load into the other half is outstanding.
//!
//! Invariant: without knowledge it is the whole register.
//!
//! Absent on purpose: vector instructions that read or write a half, which compilers give the whole register.

use hotswap_isa::reg::Reg;
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegisterPart {
    Whole,
    Lower,
    Upper,
}

impl RegisterPart {
    /// The part that a load of 8 or 16 bits keeps the rest of (`d16`).
    pub(crate) fn loaded_by(inst: &Inst) -> Self {
        let name = inst.mnemonic();
        let is_half = !name.contains("format") && !inst.is(Flag::Mimg);
        match (is_half && name.contains("_d16"), name.contains("_d16_hi")) {
            (false, _) => Self::Whole,
            (true, false) => Self::Lower,
            (true, true) => Self::Upper,
        }
    }

    /// The part of its data that a store of 8 or 16 bits reads; other registers are read whole.
    pub(crate) fn read_by(inst: &Inst, isa: Isa, reg: Reg) -> Self {
        const NARROW: [&str; 4] = ["_b8", "_b16", "_byte", "_short"];
        let name = inst.mnemonic();
        let is_store = name.contains("_store_") || name.starts_with("ds_write_");
        let is_data = has_operand(inst, isa, [Name::Vdata, Name::Data0], reg);
        let is_address = has_operand(inst, isa, [Name::Vaddr, Name::Addr], reg);
        if !is_store || name.contains("format") || !is_data || is_address {
            return Self::Whole;
        }
        match name.strip_suffix("_d16_hi") {
            Some(_) => Self::Upper,
            None if NARROW.iter().any(|suffix| name.ends_with(suffix)) => Self::Lower,
            None => Self::Whole,
        }
    }

    pub(crate) fn overlaps_part(self, other: Self) -> bool {
        self == Self::Whole || other == Self::Whole || self == other
    }
}

fn has_operand(inst: &Inst, isa: Isa, slots: [Name; 2], reg: Reg) -> bool {
    slots.into_iter().any(|slot| inst.operand(isa, slot) == Some(OperandValue::Reg(reg)))
}
