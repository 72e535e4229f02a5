//! Executes one lane of the few instructions that replacements compute with. All others are rejected.
//!
//! EXEC is on. Masks of compares are a scalar register each, in which the lane's bit counts. Floats are those of IEEE
//! 754 with rounding to the nearest even; the sequences tested here use exact operations only. Operations that take
//! more than one line of integer code are checked against LLVM (see the test).

use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use std::collections::BTreeMap;

/// State of one lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    pub(crate) lane: u32,
    pub(crate) vector: BTreeMap<u16, u32>,
    pub(crate) scalar: BTreeMap<u16, u32>,
    pub(crate) m0: u32,
    pub(crate) fp16_ovfl: bool,
    /// Address and data register of each LDS access.
    pub(crate) accesses: Vec<(u32, u16)>,
}

impl Lane {
    pub(crate) fn run(&mut self, code: &[Inst], isa: Isa) {
        code.iter().for_each(|inst| self.step(inst, isa));
    }

    fn read(&self, inst: &Inst, isa: Isa, name: Name) -> u32 {
        match inst.operand(isa, name).unwrap() {
            OperandValue::Reg(reg) if reg.file == RegFile::Vgpr => self.vector[&reg.index],
            OperandValue::Reg(reg) if reg.file == RegFile::Sgpr => self.scalar[&reg.index],
            OperandValue::Reg(reg) if reg.is(Special::M0) => self.m0,
            OperandValue::Inline(inline) => inline.value as u32,
            OperandValue::Literal(literal) => literal.value as u32,
            other => panic!("{inst:?} reads {other:?}"),
        }
    }

    fn write(&mut self, inst: &Inst, isa: Isa, name: Name, value: u32) {
        let Some(OperandValue::Reg(Reg { file, index, half: None, .. })) = inst.operand(isa, name) else {
            panic!("{inst:?} writes no whole register")
        };
        let file = if file == RegFile::Vgpr { &mut self.vector } else { &mut self.scalar };
        file.insert(index, value);
    }

    fn step(&mut self, inst: &Inst, isa: Isa) {
        let mnemonic = inst.mnemonic();
        if mnemonic.starts_with("s_wait_") || mnemonic == "s_nop" {
            return;
        }
        if mnemonic.starts_with("ds_") {
            let address = self.read(inst, isa, Name::Addr) + inst.raw(Name::Offset).unwrap() as u32;
            let name = if mnemonic == "ds_load_b32" { Name::Vdst } else { Name::Data0 };
            let Some(OperandValue::Reg(data)) = inst.operand(isa, name) else { panic!("{inst:?}") };
            self.accesses.push((address, data.index));
            return;
        }
        if mnemonic == "s_getreg_b32" {
            // Register 1, bit 23, one bit.
            assert_eq!(inst.raw(Name::Simm16), Some(1 | 23 << 6));
            return self.write(inst, isa, Name::Sdst, u32::from(self.fp16_ovfl));
        }
        let [a, b, c] = [Name::Src0, Name::Src1, Name::Src2];
        let of = |name| self.read(inst, isa, name);
        if let Some(order) = mnemonic.strip_prefix("v_cmp_").and_then(|rest| rest.strip_suffix("_u32")) {
            let holds = match order {
                "lt" => of(a) < of(b),
                "gt" => of(a) > of(b),
                "eq" => of(a) == of(b),
                _ => panic!("{inst:?}"),
            };
            return self.write(inst, isa, Name::Sdst, u32::from(holds) << self.lane);
        }
        let value = match mnemonic {
            "v_mov_b32" => of(a),
            "v_and_b32" => of(a) & of(b),
            "v_or_b32" => of(a) | of(b),
            "v_xor_b32" => of(a) ^ of(b),
            "v_lshlrev_b32" => of(b) << (of(a) & 31),
            "v_lshrrev_b32" => of(b) >> (of(a) & 31),
            "v_add_nc_u32" => of(a).wrapping_add(of(b)),
            "v_sub_nc_u32" => of(a).wrapping_sub(of(b)),
            "v_subrev_nc_u32" => of(b).wrapping_sub(of(a)),
            "v_add3_u32" => of(a).wrapping_add(of(b)).wrapping_add(of(c)),
            "v_lshl_add_u32" => (of(a) << (of(b) & 31)).wrapping_add(of(c)),
            "v_lshl_or_b32" => of(a) << (of(b) & 31) | of(c),
            "v_bfi_b32" => of(a) & of(b) | !of(a) & of(c),
            "v_cndmask_b32" => {
                if of(c) >> self.lane & 1 != 0 {
                    of(b)
                } else {
                    of(a)
                }
            }
            "v_bfe_u32" => bfe(of(a), of(b), of(c)),
            "v_mul_f32" => multiply(of(a), of(b)),
            "v_rndne_f32" => round(of(a)),
            "v_cvt_u32_f32" => to_integer(of(a)),
            "v_cvt_f32_ubyte0" => ((of(a) & 255) as f32).to_bits(),
            "v_mbcnt_lo_u32_b32" => (of(a) & ((1 << self.lane) - 1)).count_ones() + of(b),
            _ => panic!("{inst:?} is not known here"),
        };
        self.write(inst, isa, Name::Vdst, value);
    }
}

/// `v_bfe_u32`: bits of a field.
pub(crate) fn bfe(value: u32, offset: u32, width: u32) -> u32 {
    value >> (offset & 31) & ((1 << (width & 31)) - 1)
}

/// `v_mul_f32`.
pub(crate) fn multiply(a: u32, b: u32) -> u32 {
    (f32::from_bits(a) * f32::from_bits(b)).to_bits()
}

/// `v_rndne_f32`: to an integer, ties to even.
pub(crate) fn round(a: u32) -> u32 {
    f32::from_bits(a).round_ties_even().to_bits()
}

/// `v_cvt_u32_f32`: towards zero, clamped; NaN is 0.
pub(crate) fn to_integer(a: u32) -> u32 {
    f32::from_bits(a) as u32
}
