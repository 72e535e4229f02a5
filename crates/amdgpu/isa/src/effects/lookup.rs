//! From the number in a field to the register: one table for each arrangement of scalar registers.
//!
//! A field's number, with bits set that select its interpretation (its *section*), is the index of the register. So
//! listing effects needs no decisions.
//!
//! Invariants: agrees with the decoder's own reading of the field for everything that it accepts (see the test), except
//! for NULL, which is not a register here, being neither read nor written. Sections begin where their numbers have
//! no bit in common with the bits they add.

use super::bits::EffectBits;
use crate::reg::{Reg, RegFile, Special, VgprHalf};
use crate::{Implicit, Isa};
use hotswap_isa_tables::ARRANGEMENTS;

/// Sizes of sources in dwords that have a section of ten bits each: bit 8 vector register, bit 9 accumulation register.
const SOURCES: [u8; 8] = [1, 2, 3, 4, 6, 8, 16, 32];
/// Length of such a section.
const SOURCE: u16 = 1024;
/// Sources whose vector registers are halves, the upper one with bit 9.
pub(super) const HALF: u16 = SOURCE * SOURCES.len() as u16;
/// The same with the upper half in bit 7.
pub(super) const HALF_LOW_128: u16 = HALF + 1024;
/// Vector registers, accumulation registers with bit 8; the place has their number of dwords.
pub(super) const VECTOR: u16 = HALF_LOW_128 + 512;
/// Lane masks, as wide as the wave. Some fields have nine bits, and then a vector register decodes.
pub(super) const LANE_MASK: u16 = VECTOR + 512;
/// Sources of SDWA: scalar with bit 8.
pub(super) const SDWA: u16 = LANE_MASK + 512;
/// Second results of dual instructions; bit 8 is the parity of the first.
pub(super) const DUAL_Y: u16 = SDWA + 512;
/// Results of SDWA comparisons: VCC unless bit 7 is set.
pub(super) const SDWA_LANE_MASK: u16 = DUAL_Y + 512;
/// Contents of hardware registers, by their number in `s_getreg`: one section for each register that a number may mean.
pub(super) const HARDWARE: u16 = SDWA_LANE_MASK + 256;
/// The number of these sections, and the length of each.
const HARDWARE_PARTS: u16 = 3;
pub(super) const HARDWARE_NUMBERS: u16 = 64;
/// Registers without an operand, in the order of [`Implicit`].
const IMPLICIT: u16 = HARDWARE + HARDWARE_PARTS * HARDWARE_NUMBERS;
/// EXEC of the width that a scalar instruction states: one dword, two dwords.
pub(super) const EXEC: u16 = IMPLICIT + 16;
/// M0 where a bit marks an LDS instruction as one for global data share.
pub(super) const GDS: u16 = EXEC + 2;
pub(super) const NOTHING: u16 = GDS;
/// A power of two: a masked index needs no comparison.
const SIZE: usize = 1 << 14;
const _: () = assert!(Implicit::ALL.len() <= 16 && (GDS as usize) < SIZE - 1);

/// The section of sources with this many dwords; `None` for 0 dwords.
pub(super) const fn source_section(dwords: u8) -> Option<u16> {
    let mut number = 0;
    while number < SOURCES.len() {
        if SOURCES[number] == dwords {
            return Some(SOURCE * number as u16);
        }
        number += 1;
    }
    None
}

/// A register with the most dwords that it can have as its count: 0 for constants and NULL.
type Widest = Reg;

const NONE: Widest = Reg { file: RegFile::Special, index: 0, count: 0, half: None };
const ANY: u8 = u8::MAX;

type EffectTable = [EffectBits; SIZE];

/// gfx9, gfx10, from gfx11 on, with literals of 64 bits (254 is then no register); each for 32 and 64 lanes.
static TABLES: [[&EffectTable; 2]; 4] = {
    static GFX9: [EffectTable; 2] = generation_tables(9);
    static GFX10: [EffectTable; 2] = generation_tables(10);
    static GFX11: [EffectTable; 2] = generation_tables(11);
    static WIDE: [EffectTable; 2] = generation_tables(125);
    [[&GFX9[0], &GFX9[1]], [&GFX10[0], &GFX10[1]], [&GFX11[0], &GFX11[1]], [&WIDE[0], &WIDE[1]]]
};

/// The entries that are the same on all targets. What tables share is computed once, because the compiler computes
/// them anew for every change of the crate.
#[expect(clippy::large_const_arrays, reason = "only initialisers of statics use it")]
const SHARED: EffectTable = {
    let mut table = [EffectBits::NONE; SIZE];
    let (vector, accumulation) = (Reg::new(RegFile::Vgpr, 0, ANY), Reg::new(RegFile::Agpr, 0, ANY));
    let mut size = 0;
    while size < SOURCES.len() {
        let (dwords, at) = (SOURCES[size], SOURCE * size as u16);
        fill_registers(&mut table, at + 256, limit_dwords(vector, dwords));
        fill_registers(&mut table, at + 768, limit_dwords(accumulation, dwords));
        size += 1;
    }
    fill_registers(&mut table, HALF + 256, limit_dwords(Reg::half(0, VgprHalf::Low), 1));
    fill_registers(&mut table, HALF + 768, limit_dwords(Reg::half(0, VgprHalf::High), 1));
    fill_registers(&mut table, VECTOR, limit_dwords(vector, 0));
    fill_registers(&mut table, VECTOR + 256, limit_dwords(accumulation, 0));
    fill_registers(&mut table, SDWA, limit_dwords(vector, 1));
    fill_vector_pairs(&mut table);
    table[EXEC as usize] = limit_dwords(Reg::special(Special::ExecLo, 1), 1);
    table[EXEC as usize + 1] = limit_dwords(Reg::special(Special::ExecLo, 2), 2);
    table[GDS as usize + 1] = limit_dwords(Reg::special(Special::M0, 1), 1);
    table
};

/// 256 registers of a file, from the first one.
const fn fill_registers(table: &mut EffectTable, start: u16, first: EffectBits) {
    let mut number = 0;
    while number < 256 {
        table[start as usize + number] = first.with_index(number as u8);
        number += 1;
    }
}

/// Vector registers in sections where the number is not that of the register.
const fn fill_vector_pairs(table: &mut EffectTable) {
    let (low, high) = (limit_dwords(Reg::half(0, VgprHalf::Low), 1), limit_dwords(Reg::half(0, VgprHalf::High), 1));
    let single = limit_dwords(Reg::new(RegFile::Vgpr, 0, 1), 1);
    let mut number = 0;
    while number < 256 {
        let raw = number as u8;
        let half = if raw < 128 { low } else { high };
        table[HALF_LOW_128 as usize + 256 + number] = half.with_index(raw & 127);
        table[DUAL_Y as usize + number] = single.with_index(raw | 1);
        table[DUAL_Y as usize + 256 + number] = single.with_index(raw & !1);
        number += 1;
    }
}

/// The tables of a generation for 32 and 64 lanes.
const fn generation_tables(generation: u8) -> [EffectTable; 2] {
    let mut table = SHARED;
    let mut raw = 0;
    while raw < 256 {
        fill_scalars(&mut table, raw, scalar_register(raw as u16, generation));
        raw += 1;
    }
    [with_masks(table, generation, 1), with_masks(table, generation, 2)]
}

/// The entries of number `raw` that are scalar registers.
const fn fill_scalars(table: &mut EffectTable, raw: usize, code: Widest) {
    let mut size = 0;
    while size < SOURCES.len() {
        let (dwords, at) = (SOURCES[size], size * SOURCE as usize + raw);
        let scalar = limit_dwords(align_tuple(code, dwords), dwords);
        table[at] = scalar;
        table[at + 512] = scalar;
        size += 1;
    }
    let single = limit_dwords(code, 1);
    table[HALF as usize + raw] = single;
    table[HALF as usize + 512 + raw] = single;
    table[HALF_LOW_128 as usize + raw] = single;
    table[SDWA as usize + 256 + raw] =
        if raw == 254 { limit_dwords(Reg::special(Special::LdsDirect, 1), 1) } else { single };
}

/// The entries that depend on the number of lanes.
const fn with_masks(mut table: EffectTable, generation: u8, mask: u8) -> EffectTable {
    fill_registers(&mut table, LANE_MASK + 256, limit_dwords(lane_mask(Reg::new(RegFile::Vgpr, 0, ANY), mask), mask));
    let vcc = limit_dwords(Reg::special(Special::VccLo, mask), mask);
    let mut raw = 0;
    while raw < 256 {
        let register = limit_dwords(lane_mask(scalar_register(raw as u16, generation), mask), mask);
        table[LANE_MASK as usize + raw] = register;
        if raw < 128 {
            table[SDWA_LANE_MASK as usize + raw] = vcc;
            table[SDWA_LANE_MASK as usize + 128 + raw] = register;
        }
        raw += 1;
    }
    let mut number = 0;
    while number < Implicit::ALL.len() {
        table[IMPLICIT as usize + number] = limit_dwords(implicit_register(Implicit::ALL[number], mask), 2);
        number += 1;
    }
    let mut number = 0;
    while number < HARDWARE_NUMBERS * HARDWARE_PARTS {
        let (part, register) = (number / HARDWARE_NUMBERS, number % HARDWARE_NUMBERS);
        table[(HARDWARE + number) as usize] = limit_dwords(hardware_register(register, part, generation, mask), 2);
        number += 1;
    }
    table
}

/// The register limited to this many dwords; no register if it does not exist.
const fn limit_dwords(widest: Widest, dwords: u8) -> EffectBits {
    match widest.count {
        0 => EffectBits::NONE,
        count => EffectBits::of_register(Reg { count: if count < dwords { count } else { dwords }, ..widest }),
    }
}

/// An unaligned scalar tuple means the aligned one below it.
const fn align_tuple(widest: Widest, dwords: u8) -> Widest {
    let below = match (widest.file, dwords) {
        (RegFile::Sgpr | RegFile::Ttmp, 2) => 1,
        (RegFile::Sgpr | RegFile::Ttmp, 3..) => 3,
        _ => 0,
    };
    Reg { index: widest.index & !below, ..widest }
}

/// A register as wide as the wave; an unaligned pair is the aligned one below.
const fn lane_mask(widest: Widest, mask: u8) -> Widest {
    let scalar = matches!(widest.file, RegFile::Sgpr | RegFile::Ttmp);
    let index = if scalar && mask == 2 { widest.index & !1 } else { widest.index };
    Reg { index, count: if widest.count < mask { widest.count } else { mask }, ..widest }
}

const fn scalar_register(raw: u16, generation: u8) -> Widest {
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

const fn implicit_register(implicit: Implicit, mask: u8) -> Widest {
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

/// Register number `part` of those whose state is visible in the hardware register `number` (LLVM: SIDefines.h, Hwreg).
const fn hardware_register(number: u16, part: u16, generation: u8, mask: u8) -> Widest {
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
pub(super) struct Lookup(&'static EffectTable);

impl Lookup {
    #[inline(always)]
    pub(super) fn of(isa: Isa) -> Self {
        let subtarget = isa.subtarget();
        // A power of two: a masked index needs no comparison.
        let row = usize::from(ARRANGEMENTS[usize::from(subtarget.target) & (ARRANGEMENTS.len() - 1)]);
        Self(TABLES[row & 3][usize::from(subtarget.wave64)])
    }

    /// The register for a number of a section; none for constants and NULL.
    #[inline(always)]
    pub(super) fn register_at(self, number: u32) -> EffectBits {
        self.0[number as usize & (SIZE - 1)]
    }

    /// The register of an implicit operand.
    #[inline(always)]
    pub(super) fn register_of_implicit(self, implicit: Implicit) -> EffectBits {
        self.register_at(u32::from(IMPLICIT) + implicit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{LANE_MASK, Lookup};
    use crate::kind::{SourceValue, source};
    use crate::reg::Special;
    use crate::{Isa, Target, Wave};

    #[test]
    fn tables_agree_with_the_decoder() {
        for target in Target::all_targets() {
            for wave in [Wave::W32, Wave::W64] {
                let isa = Isa::new(target).with_wave(wave);
                for dwords in super::SOURCES {
                    let section = super::source_section(dwords).expect("each has a section");
                    for raw in 0..1024 {
                        let SourceValue::Reg(reg) = source(raw, dwords, isa) else { continue };
                        let found = Lookup::of(isa).register_at((section | raw).into());
                        let found = (!found.is_none()).then(|| found.reg());
                        let wanted = (!reg.is(Special::Null)).then_some(reg);
                        assert_eq!(found, wanted, "{raw} of {dwords} dwords on {isa:?}");
                    }
                }
                let mask = Lookup::of(isa).register_at((LANE_MASK | 2).into()).reg().count;
                assert_eq!(mask, crate::kind::lane_mask_dwords(isa));
            }
        }
    }
}
