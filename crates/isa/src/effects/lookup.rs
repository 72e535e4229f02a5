//! From the number in a field to the register: one table for each arrangement of scalar registers.
//!
//! A field's number, with bits set that say how it is meant (its *section*), leads to the register as wide as it can
//! be. So nothing has to be decided while effects are listed.
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
/// EXEC of the width that a scalar instruction says: one dword, two dwords.
pub(super) const EXEC: u16 = 4380;
/// M0 where a bit says that an instruction of LDS is for global data share.
pub(super) const GDS: u16 = 4384;
/// What hardware registers hold, by their number in `s_getreg`: one section for each register that a number may mean.
pub(super) const HARDWARE: u16 = 4416;
/// How many sections that are, and how long each is.
const HARDWARE_PARTS: u16 = 3;
pub(super) const HARDWARE_NUMBERS: u16 = 64;
const SIZE: usize = (HARDWARE + HARDWARE_PARTS * HARDWARE_NUMBERS) as usize;
const _: () = assert!(IMPLICIT as usize + Implicit::ALL.len() <= EXEC as usize);

/// A register with the most dwords that it can have as its count: 0 for constants and NULL.
type Widest = Reg;

const NONE: Widest = Reg { file: RegFile::Special, index: 0, count: 0, half: None };
const ANY: u8 = u8::MAX;

/// gfx9, gfx10, from gfx11 on, with literals of 64 bits (254 is then no register); each for 32 and 64 lanes.
static TABLES: [[[Widest; SIZE]; 2]; 4] = [
    [table(9, 1), table(9, 2)],
    [table(10, 1), table(10, 2)],
    [table(11, 1), table(11, 2)],
    [table(125, 1), table(125, 2)],
];

const fn table(generation: u8, mask: u8) -> [Widest; SIZE] {
    let mut table = [NONE; SIZE];
    let mut raw = 0;
    while raw < 256 {
        let number = raw as u16;
        let code = scalar(number, generation);
        let (vector, accumulation) = (Reg::new(RegFile::Vgpr, number, ANY), Reg::new(RegFile::Agpr, number, ANY));
        let (low, high) = (Reg::half(number, Half::Low), Reg::half(number, Half::High));
        table[SOURCE as usize + raw] = code;
        table[SOURCE as usize + 512 + raw] = code;
        table[SOURCE as usize + 256 + raw] = vector;
        table[SOURCE as usize + 768 + raw] = accumulation;
        table[HALF as usize + raw] = code;
        table[HALF as usize + 512 + raw] = code;
        table[HALF as usize + 256 + raw] = low;
        table[HALF as usize + 768 + raw] = high;
        table[HALF_LOW_128 as usize + raw] = code;
        table[HALF_LOW_128 as usize + 256 + raw] = if raw < 128 { low } else { Reg::half(number - 128, Half::High) };
        table[LANE_MASK as usize + raw] = lane_mask(code, mask);
        table[LANE_MASK as usize + 256 + raw] = lane_mask(vector, mask);
        table[SDWA_LANE_MASK as usize + raw] = match raw {
            ..128 => Reg::special(Special::VccLo, mask),
            _ => lane_mask(scalar(number & 127, generation), mask),
        };
        table[SDWA as usize + raw] = vector;
        table[SDWA as usize + 256 + raw] = if raw == 254 { Reg::special(Special::LdsDirect, 1) } else { code };
        table[DUAL_Y as usize + raw] = Reg::new(RegFile::Vgpr, number | 1, 1);
        table[DUAL_Y as usize + 256 + raw] = Reg::new(RegFile::Vgpr, number & !1, 1);
        raw += 1;
    }
    let mut number = 0;
    while number < Implicit::ALL.len() {
        table[IMPLICIT as usize + number] = implicit(Implicit::ALL[number], mask);
        number += 1;
    }
    table[EXEC as usize] = Reg::special(Special::ExecLo, 1);
    table[EXEC as usize + 1] = Reg::special(Special::ExecLo, 2);
    table[GDS as usize + 1] = Reg::special(Special::M0, 1);
    let mut number = 0;
    while number < HARDWARE_NUMBERS * HARDWARE_PARTS {
        let (part, register) = (number / HARDWARE_NUMBERS, number % HARDWARE_NUMBERS);
        table[(HARDWARE + number) as usize] = hardware(register, part, generation, mask);
        number += 1;
    }
    table
}

/// A register as wide as the wave; an unaligned pair is the aligned one below.
const fn lane_mask(widest: Widest, mask: u8) -> Widest {
    let scalar = matches!(widest.file, RegFile::Sgpr | RegFile::Ttmp);
    let index = if scalar && mask == 2 { widest.index & !1 } else { widest.index };
    Reg { index, count: if widest.count < mask { widest.count } else { mask }, ..widest }
}

const fn scalar(raw: u16, generation: u8) -> Widest {
    let m0 = if generation >= 11 { 125 } else { 124 };
    match raw {
        102 if generation == 9 => Reg::special(Special::FlatScratchLo, 2),
        103 if generation == 9 => Reg::special(Special::FlatScratchHi, 2),
        104 if generation == 9 => Reg::special(Special::XnackMaskLo, 2),
        105 if generation == 9 => Reg::special(Special::XnackMaskHi, 2),
        0..=105 => Reg::new(RegFile::Sgpr, raw, ANY),
        106 => Reg::special(Special::VccLo, 2),
        107 => Reg::special(Special::VccHi, 2),
        108..=123 => Reg::new(RegFile::Ttmp, raw - 108, ANY),
        124 | 125 if raw == m0 => Reg::special(Special::M0, 1),
        126 => Reg::special(Special::ExecLo, 2),
        127 => Reg::special(Special::ExecHi, 2),
        230 => Reg::special(Special::FlatScratchBaseLo, 2),
        231 => Reg::special(Special::FlatScratchBaseHi, 2),
        235 => Reg::special(Special::SharedBase, 2),
        236 => Reg::special(Special::SharedLimit, 2),
        237 => Reg::special(Special::PrivateBase, 2),
        238 => Reg::special(Special::PrivateLimit, 2),
        239 => Reg::special(Special::PopsExitingWaveId, 1),
        251 => Reg::special(Special::Vccz, 1),
        252 => Reg::special(Special::Execz, 1),
        253 => Reg::special(Special::Scc, 1),
        254 if generation != 125 => Reg::special(Special::LdsDirect, 1),
        _ => NONE,
    }
}

const fn implicit(implicit: Implicit, mask: u8) -> Widest {
    match implicit {
        Implicit::Exec => Reg::special(Special::ExecLo, mask),
        Implicit::Vcc => Reg::special(Special::VccLo, mask),
        Implicit::Scc => Reg::special(Special::Scc, 1),
        Implicit::M0 => Reg::special(Special::M0, 1),
        Implicit::Mode => Reg::special(Special::Mode, 1),
        Implicit::FlatScr => Reg::special(Special::FlatScratchLo, 2),
        Implicit::ASYNCcnt => Reg::special(Special::AsyncCnt, 1),
        Implicit::TENSORcnt => Reg::special(Special::TensorCnt, 1),
    }
}

/// Register number `part` of those whose state the hardware register `number` shows (LLVM: SIDefines.h, Hwreg).
const fn hardware(number: u16, part: u16, generation: u8, mask: u8) -> Widest {
    match (number, part) {
        (1, 0) => Reg::special(Special::Mode, 1),
        // STATUS has SCC, VCCZ and EXECZ; from gfx12 on SCC is in STATE_PRIV.
        (2, 0) => Reg::special(Special::Scc, 1),
        (4, 0) if generation >= 11 => Reg::special(Special::Scc, 1),
        (2, 1) => Reg::special(Special::VccLo, mask),
        (2, 2) => Reg::special(Special::ExecLo, mask),
        (16, 0) => Reg::special(Special::TbaLo, 1),
        (17, 0) => Reg::special(Special::TbaHi, 1),
        (18, 0) => Reg::special(Special::TmaLo, 1),
        (19, 0) => Reg::special(Special::TmaHi, 1),
        (20, 0) if generation >= 10 => Reg::special(Special::FlatScratchLo, 1),
        (21, 0) if generation >= 10 => Reg::special(Special::FlatScratchHi, 1),
        (22, 0) if generation >= 10 => Reg::special(Special::XnackMaskLo, 1),
        _ => NONE,
    }
}

/// The table for a target in a mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookup(&'static [Widest; SIZE]);

impl Lookup {
    #[inline(always)]
    pub(super) fn of(isa: Isa) -> Self {
        let setting = isa.setting();
        let row = usize::from(super::place::arrangement(setting.target));
        Self(&TABLES[row & 3][usize::from(setting.wave64)])
    }

    /// The register of `dwords` dwords that a number of a section is; `None` for constants and NULL. Of an unaligned
    /// scalar tuple the aligned one below is meant: `below` has the bits of the number that then do not count.
    #[inline(always)]
    pub(super) fn register(self, number: u16, dwords: u8, below: u8) -> Option<Reg> {
        let widest = self.0.get(usize::from(number))?;
        if widest.count == 0 {
            return None;
        }
        let below = if widest.file as u8 >= RegFile::Sgpr as u8 { below } else { 0 };
        let below = if widest.file as u8 == RegFile::Special as u8 { 0 } else { below };
        Some(Reg {
            file: widest.file,
            index: widest.index & !u16::from(below),
            count: if widest.count < dwords { widest.count } else { dwords },
            half: widest.half,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LANE_MASK, Lookup, SOURCE};
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
                        let found =
                            Lookup::of(isa).register(SOURCE | raw, dwords, [0, 0, 1, 3][usize::from(dwords.min(3))]);
                        let wanted = (!reg.is(Special::Null)).then_some(reg);
                        assert_eq!(found, wanted, "{raw} of {dwords} dwords on {isa:?}");
                    }
                }
                let mask = Lookup::of(isa).register(LANE_MASK | 2, 2, 0).map(|reg| reg.count);
                assert_eq!(mask, Some(crate::kind::lane_mask_dwords(isa)));
            }
        }
    }
}
