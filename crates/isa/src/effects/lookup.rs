//! From the number in a field to the register: one table for each arrangement of scalar registers.
//!
//! A field's number, with bits set that say how it is meant (its *section*), leads to a word: index of the register,
//! file, which half, how wide it is at most. So nothing has to be decided while effects are listed.
//!
//! Invariants: agrees with the decoder's own reading of the field for everything that it accepts (see the test), but
//! for NULL, which is no register here: it is neither read nor written.

use crate::reg::{Half, Reg, RegFile, Special};
use crate::{Implicit, Isa};

/// Where sections begin. A source has ten bits: bit 8 vector register, bit 9 accumulation register or upper half.
pub(super) const SOURCE: u16 = 0;
/// Sources whose vector registers are halves, the upper one with bit 9.
pub(super) const HALF: u16 = 1024;
/// The same with the upper half in bit 7.
pub(super) const HALF_LOW_128: u16 = 2048;
/// Lane masks, as wide as the wave. Some fields have nine bits, and then a vector register decodes.
pub(super) const LANE_MASK: u16 = 2560;
/// Sources of SDWA: scalar with bit 8.
pub(super) const SDWA: u16 = 3072;
/// Second results of dual instructions; bit 8 is the parity of the first.
pub(super) const DUAL_Y: u16 = 3584;
/// Results of SDWA comparisons: VCC unless bit 7 is set.
pub(super) const SDWA_LANE_MASK: u16 = 4096;
/// Registers without an operand, in the order of [`Implicit`].
pub(super) const IMPLICIT: u16 = 4352;
const SIZE: usize = IMPLICIT as usize + Implicit::ALL.len();

/// A word of the table: index in bits 0 to 7, file in 8 to 10, widest in 11 to 12, half in 13 to 14, and bit 15 where
/// a tuple's number means the aligned one below.
type Code = u16;

const NONE: Code = 7 << 8;
const ONE: Code = 1 << 11;
const TWO: Code = 2 << 11;
const MASK: Code = 3 << 11;
const LOW: Code = 1 << 13;
const HIGH: Code = 2 << 13;
const ALIGNED: Code = 1 << 15;

/// gfx9, gfx10, from gfx11 on, with literals of 64 bits (254 is then no register).
static TABLES: [[Code; SIZE]; 4] = [table(9), table(10), table(11), table(125)];

const fn table(generation: u8) -> [Code; SIZE] {
    let mut table = [NONE; SIZE];
    let mut raw = 0;
    while raw < 256 {
        let code = scalar(raw, generation);
        let (vector, accumulation) = (register(RegFile::Vgpr, raw), register(RegFile::Agpr, raw));
        table[SOURCE as usize + raw] = code;
        table[SOURCE as usize + 512 + raw] = code;
        table[SOURCE as usize + 256 + raw] = vector;
        table[SOURCE as usize + 768 + raw] = accumulation;
        table[HALF as usize + raw] = code;
        table[HALF as usize + 512 + raw] = code;
        table[HALF as usize + 256 + raw] = vector | LOW;
        table[HALF as usize + 768 + raw] = vector | HIGH;
        table[HALF_LOW_128 as usize + raw] = code;
        table[HALF_LOW_128 as usize + 256 + raw] = vector & !128 | if raw < 128 { LOW } else { HIGH };
        table[LANE_MASK as usize + raw] = mask(code);
        table[LANE_MASK as usize + 256 + raw] = mask(vector);
        table[SDWA_LANE_MASK as usize + raw] =
            if raw < 128 { special(Special::VccLo) | MASK } else { mask(scalar(raw & 127, generation)) };
        table[SDWA as usize + raw] = vector;
        table[SDWA as usize + 256 + raw] = if raw == 254 { special(Special::LdsDirect) | ONE } else { code };
        table[DUAL_Y as usize + raw] = register(RegFile::Vgpr, raw | 1);
        table[DUAL_Y as usize + 256 + raw] = register(RegFile::Vgpr, raw & !1);
        raw += 1;
    }
    let mut number = 0;
    while number < Implicit::ALL.len() {
        table[IMPLICIT as usize + number] = implicit(Implicit::ALL[number]);
        number += 1;
    }
    table
}

const fn register(file: RegFile, index: usize) -> Code {
    index as Code & 255 | (file as Code) << 8
}

const fn special(special: Special) -> Code {
    register(RegFile::Special, special as usize)
}

/// A scalar register as wide as the wave.
const fn mask(code: Code) -> Code {
    if code == NONE || code & MASK == ONE { code } else { code & !MASK | MASK }
}

const fn scalar(raw: usize, generation: u8) -> Code {
    let m0 = if generation >= 11 { 125 } else { 124 };
    match raw {
        102 if generation == 9 => special(Special::FlatScratchLo) | TWO,
        103 if generation == 9 => special(Special::FlatScratchHi) | TWO,
        104 if generation == 9 => special(Special::XnackMaskLo) | TWO,
        105 if generation == 9 => special(Special::XnackMaskHi) | TWO,
        0..=105 => register(RegFile::Sgpr, raw) | ALIGNED,
        106 => special(Special::VccLo) | TWO,
        107 => special(Special::VccHi) | TWO,
        108..=123 => register(RegFile::Ttmp, raw - 108) | ALIGNED,
        124 | 125 if raw == m0 => special(Special::M0) | ONE,
        126 => special(Special::ExecLo) | TWO,
        127 => special(Special::ExecHi) | TWO,
        230 => special(Special::FlatScratchBaseLo) | TWO,
        231 => special(Special::FlatScratchBaseHi) | TWO,
        235 => special(Special::SharedBase) | TWO,
        236 => special(Special::SharedLimit) | TWO,
        237 => special(Special::PrivateBase) | TWO,
        238 => special(Special::PrivateLimit) | TWO,
        239 => special(Special::PopsExitingWaveId) | ONE,
        251 => special(Special::Vccz) | ONE,
        252 => special(Special::Execz) | ONE,
        253 => special(Special::Scc) | ONE,
        254 if generation != 125 => special(Special::LdsDirect) | ONE,
        _ => NONE,
    }
}

const fn implicit(implicit: Implicit) -> Code {
    match implicit {
        Implicit::Exec => special(Special::ExecLo) | MASK,
        Implicit::Vcc => special(Special::VccLo) | MASK,
        Implicit::Scc => special(Special::Scc) | ONE,
        Implicit::M0 => special(Special::M0) | ONE,
        Implicit::Mode => special(Special::Mode) | ONE,
        Implicit::FlatScr => special(Special::FlatScratchLo) | TWO,
        Implicit::ASYNCcnt => special(Special::AsyncCnt) | ONE,
        Implicit::TENSORcnt => special(Special::TensorCnt) | ONE,
    }
}

/// The table for a target in a mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookup {
    table: &'static [Code; SIZE],
    /// How wide a register is at most, by the two bits of a word.
    widest: [u8; 4],
}

impl Lookup {
    #[inline]
    pub(super) fn of(isa: Isa) -> Self {
        let setting = isa.setting();
        let row = usize::from(super::place::arrangement(setting.target));
        let mask = if setting.wave64 { 2 } else { 1 };
        Self { table: TABLES.get(row).unwrap_or(&TABLES[0]), widest: [u8::MAX, 1, 2, mask] }
    }

    /// The register of `dwords` dwords that a number of a section is; `None` for constants and NULL.
    #[inline]
    pub(super) fn register(&self, number: u16, dwords: u8) -> Option<Reg> {
        const FILES: [RegFile; 8] = {
            use RegFile::{Agpr, Sgpr, Special, Ttmp, Vgpr};
            [Vgpr, Agpr, Sgpr, Ttmp, Special, Special, Special, Special]
        };
        const HALVES: [Option<Half>; 4] = [None, Some(Half::Low), Some(Half::High), None];
        let code = self.table.get(usize::from(number)).copied().unwrap_or(NONE);
        if code == NONE {
            return None;
        }
        let count = dwords.min(self.widest[usize::from(code >> 11 & 3)]);
        let below = if count > 2 { 3 } else { count.saturating_sub(1) } & ((code >> 15) as u8).wrapping_neg();
        Some(Reg {
            file: FILES[usize::from(code >> 8 & 7)],
            index: u16::from(code as u8 & !below),
            count,
            half: HALVES[usize::from(code >> 13 & 3)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Lookup, SOURCE};
    use crate::kind::{Source, source};
    use crate::reg::Special;
    use crate::{Isa, Target, Wave};

    #[test]
    fn tables_agree_with_the_decoder() {
        for target in Target::all() {
            for wave in [Wave::W32, Wave::W64] {
                let isa = Isa::new(target).with_wave(wave);
                for dwords in [1, 2, 3, 4, 8, 16] {
                    for raw in 0..1024 {
                        let Source::Reg(reg) = source(raw, dwords, isa) else { continue };
                        let found = Lookup::of(isa).register(SOURCE | raw, dwords);
                        let wanted = (!reg.is(Special::Null)).then_some(reg);
                        assert_eq!(found, wanted, "{raw} of {dwords} dwords on {isa:?}");
                    }
                }
                assert_eq!(Lookup::of(isa).widest[3], crate::kind::lane_mask_dwords(isa));
            }
        }
    }
}
