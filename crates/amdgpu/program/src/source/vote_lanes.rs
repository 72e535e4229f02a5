//! The wave size that code shows by the results of comparisons: masks of lanes, which scalar instructions combine.
//!
//! A mask has 64 bits in waves of 64 lanes, so scalar instructions of 64 bits on VCC, which a comparison wrote, show these. Ones of 32 bits
//! show nothing alone: code for 64 lanes may compute with half of a vote. They show waves of 32 lanes where their result is a mask
//! again, by which values are chosen, or which a branch tests.
//!
//! Absent on purpose: comparisons that write other registers. The wave size decides how many they write.

use super::waves::instructions;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, OperandValue};

/// Lanes by which scalar instructions combine the results of comparisons.
pub(super) fn comparison_lanes(bytes: &[u8], isa: Isa) -> Option<u8> {
    let mut masks = ComparisonMasks { is_result: false, combined: RegSet::EMPTY };
    instructions(bytes, isa).find_map(|inst| masks.lanes_of_next(&inst, isa))
}

/// The masks at an instruction.
struct ComparisonMasks {
    /// VCC has the result of a vector instruction, and not another value.
    is_result: bool,
    /// Scalar registers with 32 bits that were combined of masks.
    combined: RegSet,
}

impl ComparisonMasks {
    fn lanes_of_next(&mut self, inst: &Inst, isa: Isa) -> Option<u8> {
        let name = inst.mnemonic();
        let (read, written) = (inst.read_set(isa, VgprBanks::ENTRY), inst.written_set(isa, VgprBanks::ENTRY));
        let reads_result = self.is_result && read.touches(vcc(1));
        if reads_result && combines_masks(name, "b64") {
            return Some(64);
        }
        if self.is_read_as_mask(inst, isa) {
            return Some(32);
        }
        let combines = combines_masks(name, "b32") && (reads_result || read.intersects(&self.combined));
        self.combined.subtract(&written);
        if combines {
            self.combined.union_with(&written);
        }
        if written.touches(vcc(2)) {
            self.is_result = inst.is(Flag::Valu) && !name.starts_with("v_read");
        }
        None
    }

    /// Whether an instruction takes combined bits for the mask of its lanes.
    fn is_read_as_mask(&self, inst: &Inst, isa: Isa) -> bool {
        let name = inst.mnemonic();
        if name.starts_with("s_cbranch_vcc") {
            return self.combined.touches(vcc(1));
        }
        let selects = name.starts_with("v_cndmask") || name.starts_with("v_div_fmas");
        if !selects {
            return false;
        }
        let registers: Vec<Reg> = inst.operands(isa).filter_map(|operand| register_of(&operand.value)).collect();
        // The mask is the last operand, or VCC without one.
        match registers.last() {
            Some(last) if self.combined.touches(*last) => true,
            _ => self.combined.touches(vcc(1)) && registers.iter().all(|reg| reg.as_special() != Some(Special::VccLo)),
        }
    }
}

fn register_of(value: &OperandValue) -> Option<Reg> {
    match value {
        OperandValue::Reg(reg) => Some(*reg),
        _ => None,
    }
}

fn vcc(count: u8) -> Reg {
    Reg::special(Special::VccLo, count)
}

/// Whether a scalar instruction combines or tests all bits of a mask of a width.
fn combines_masks(name: &str, width: &str) -> bool {
    const LOGIC: [&str; 11] = [
        "s_and_",
        "s_or_",
        "s_xor_",
        "s_xnor_",
        "s_nand_",
        "s_nor_",
        "s_andn2_",
        "s_orn2_",
        "s_and_not1_",
        "s_or_not1_",
        "s_not_",
    ];
    let is_logic = LOGIC.iter().any(|one| name.strip_prefix(one) == Some(width));
    is_logic || width == "b64" && ["s_cmp_eq_u64", "s_cmp_lg_u64", "s_bcnt1_i32_b64"].contains(&name)
}
