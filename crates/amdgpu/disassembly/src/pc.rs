//! PC-relative addresses in code: `s_getpc_b64`, then additions to both halves.
//!
//! Compilers emit calls and references to constants this way, so the sum is the address that the reader needs.
//!
//! Invariant: a sum is shown only where every step of it was seen, in one chunk, close together.
//!
//! Absent on purpose: control flow. A jump into the middle of the sequence would make the remark wrong;
//! compilers keep the sequence in one block.

use crate::instruction_reader::{Inst, InstructionReader, Scalar};
use hotswap_isa::reg::{Reg, RegFile};

/// Instructions after which an incomplete sum is dropped.
const PATIENCE: u8 = 8;
/// The top bits of SOP1, SOP2, SOPK, SOPC and SOPP.
const SCALAR: u32 = 0b10;

#[derive(Debug, Clone, Copy)]
struct PcSum {
    /// The register pair that contains it.
    low: Reg,
    value: u64,
    /// The low half was added to; the carry belongs to the high half.
    carried: Option<bool>,
    patience: u8,
}

/// The sums of a chunk: one at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PcSumTracker(Option<PcSum>);

impl PcSumTracker {
    /// Processes an instruction that ends at `end`; returns the address that it completes.
    #[inline]
    pub(crate) fn follow(&mut self, reader: &InstructionReader, inst: &Inst, end: u64) -> Option<u64> {
        let word = inst.words()[0];
        if word >> 30 != SCALAR {
            return None;
        }
        // SOP1 is the only class with instructions that read the program counter.
        if self.0.is_none() && word >> 23 != 0b1_0111_1101 {
            return None;
        }
        self.step(reader, inst, end)
    }

    fn step(&mut self, reader: &InstructionReader, inst: &Inst, end: u64) -> Option<u64> {
        let mnemonic = reader.mnemonic(inst);
        if matches!(mnemonic, "s_getpc_b64" | "s_get_pc_i64") {
            let [Some(Scalar::Reg(pair)), ..] = reader.scalars(inst) else { return None };
            let low = Reg { count: 1, ..pair };
            self.0 = Some(PcSum { low, value: end, carried: None, patience: PATIENCE });
            return None;
        }
        let mut sum = self.0.take()?;
        let [to, one, other] = reader.scalars(inst);
        let (Some(Scalar::Reg(to)), Some(number)) = (to, added(one, other, to)) else {
            sum.patience -= 1;
            self.0 = (sum.patience > 0).then_some(sum);
            return None;
        };
        let is_low = to.index == sum.low.index;
        let is_high = to.index == sum.low.index + 1;
        match mnemonic {
            "s_add_u32" | "s_add_co_u32" if is_low && to.count == 1 && sum.carried.is_none() => {
                let (low, carry) = (sum.value as u32).overflowing_add(number as u32);
                sum.value = sum.value & !0xffff_ffff | u64::from(low);
                self.0 = Some(PcSum { carried: Some(carry), ..sum });
                None
            }
            "s_addc_u32" | "s_add_co_ci_u32" if is_high => {
                let carry = sum.carried?;
                let high = ((sum.value >> 32) as u32).wrapping_add(number as u32).wrapping_add(u32::from(carry));
                Some(u64::from(high) << 32 | sum.value & 0xffff_ffff)
            }
            "s_add_nc_u64" | "s_add_u64" if is_low && to.count == 2 => Some(sum.value.wrapping_add(number)),
            _ => {
                self.0 = Some(sum).filter(|_| !is_low && !is_high);
                None
            }
        }
    }
}

/// The number that is added to the register, which must also be the destination.
fn added(one: Option<Scalar>, other: Option<Scalar>, to: Option<Scalar>) -> Option<u64> {
    let is_scalar = matches!(to, Some(Scalar::Reg(reg)) if reg.file == RegFile::Sgpr);
    match (one, other) {
        (Some(Scalar::Number(number)), register) | (register, Some(Scalar::Number(number))) if is_scalar => {
            (register == to).then_some(number)
        }
        _ => None,
    }
}
