//! Kinds of operands: how a field is decoded on a target.
//!
//! Invariants: nothing here depends on a single instruction.
//!
//! Absent on purpose: whether a field decodes (see the decoder's tables), reading it from the instruction (see
//! [`crate::operand`]), and how it is written (see [`crate::text`]).

use crate::isa::Isa;
use crate::reg::{Reg, RegFile, Special};
use crate::tables::Feature;

pub(crate) use hotswap_isa_tables::KINDS;
pub use hotswap_isa_tables::{Decode, KindRow, OperandType, RegClass};

/// The decoded value of a source field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceValue {
    Reg(Reg),
    /// Number 128 to 208 or 240 to 248 of the source field: a constant.
    Constant(u8),
    /// A literal of 32 bits follows.
    Literal32,
    /// A literal of 64 bits follows.
    Literal64,
    Unknown,
}

/// Dwords of a lane mask.
pub(crate) fn lane_mask_dwords(isa: Isa) -> u8 {
    if isa.has(Feature::Wavefrontsize32) { 1 } else { 2 }
}

/// A source field of ten bits: bit 9 accumulation register, bit 8 vector register.
pub(crate) fn source(raw: u16, dwords: u8, isa: Isa) -> SourceValue {
    if raw & 256 == 0 {
        return scalar_source(raw as u8, dwords, isa);
    }
    let index = raw & 255;
    if raw & 512 == 0 {
        return SourceValue::Reg(Reg::new(RegFile::Vgpr, index, dwords));
    }
    // No class that decodes has tuples of six accumulation registers.
    if index + u16::from(dwords) > 256 || dwords == 6 {
        return SourceValue::Unknown;
    }
    SourceValue::Reg(Reg::new(RegFile::Agpr, index, dwords))
}

/// A source field of eight bits without vector registers.
pub(crate) fn scalar_source(raw: u8, dwords: u8, isa: Isa) -> SourceValue {
    let last_sgpr = if isa.has(Feature::Gfx10Insts) { 105 } else { 101 };
    match raw {
        // The last tuples of most sizes end in VCC, which is the pair after s105.
        _ if raw <= last_sgpr => tuple(RegFile::Sgpr, raw, dwords, if matches!(dwords, 9 | 10) { 106 } else { 108 }),
        108..=123 => tuple(RegFile::Ttmp, raw - 108, dwords, 16),
        128..=208 | 240..=248 => SourceValue::Constant(raw),
        255 => SourceValue::Literal32,
        254 if isa.has(Feature::N64BitLiterals) => SourceValue::Literal64,
        _ => special(raw, dwords, isa),
    }
}

/// A tuple of scalar registers of a file with `size` registers. An unaligned number means the aligned one below.
fn tuple(file: RegFile, raw: u8, dwords: u8, size: u16) -> SourceValue {
    let stride = match dwords {
        1 => 1,
        2 => 2,
        3 | 4 | 8..=12 | 16 => 4,
        _ => return SourceValue::Unknown,
    };
    let index = u16::from(raw & !(stride - 1));
    if index + u16::from(dwords) > size {
        return SourceValue::Unknown;
    }
    SourceValue::Reg(Reg::new(file, index, dwords))
}

/// A register with a name of its own.
fn special(raw: u8, dwords: u8, isa: Isa) -> SourceValue {
    let found = match dwords {
        1 => special_word(raw, isa),
        2 => special_pair(raw, isa),
        3 | 4 | 8 | 16 if raw == null_number(isa) => Some(Reg::special(Special::Null, dwords)),
        _ => None,
    };
    found.map_or(SourceValue::Unknown, SourceValue::Reg)
}

/// The number of NULL: it was swapped with M0 in gfx11.
fn null_number(isa: Isa) -> u8 {
    if isa.has(Feature::Gfx11Insts) { 124 } else { 125 }
}

/// Registers of one dword.
fn special_word(raw: u8, isa: Isa) -> Option<Reg> {
    let special = match raw {
        102 => Special::FlatScratchLo,
        103 => Special::FlatScratchHi,
        104 => Special::XnackMaskLo,
        105 => Special::XnackMaskHi,
        106 => Special::VccLo,
        107 => Special::VccHi,
        124 | 125 if raw == null_number(isa) => Special::Null,
        124 | 125 => Special::M0,
        126 => Special::ExecLo,
        127 => Special::ExecHi,
        230 => Special::FlatScratchBaseLo,
        231 => Special::FlatScratchBaseHi,
        254 => Special::LdsDirect,
        _ => source_special(raw)?,
    };
    Some(Reg::special(special, 1))
}

/// Whether the number of the scratch base's high half means the whole base in a source of 64 bits: on gfx1250 from its
/// second stepping on (see `wide_base_high` in `hotswap-isa-meta`, which determines the values that decode).
fn has_wide_scratch_base_high(isa: Isa) -> bool {
    let others = [Feature::Gfx1250Strict, Feature::Gfx1251GemmInsts];
    isa.has(Feature::Gfx1250Insts) && !others.into_iter().any(|other| isa.has(other))
}

/// Registers of two dwords. Flags and constants keep their one dword.
fn special_pair(raw: u8, isa: Isa) -> Option<Reg> {
    let special = match raw {
        102 => Special::FlatScratchLo,
        104 => Special::XnackMaskLo,
        106 => Special::VccLo,
        124 | 125 if raw == null_number(isa) => Special::Null,
        126 => Special::ExecLo,
        230 => Special::FlatScratchBaseLo,
        231 if has_wide_scratch_base_high(isa) => Special::FlatScratchBaseHi,
        235..=238 => source_special(raw)?,
        239 | 251..=253 => return source_special(raw).map(|special| Reg::special(special, 1)),
        _ => return None,
    };
    Some(Reg::special(special, 2))
}

/// Read-only registers that are the same in both widths.
fn source_special(raw: u8) -> Option<Special> {
    Some(match raw {
        235 => Special::SharedBase,
        236 => Special::SharedLimit,
        237 => Special::PrivateBase,
        238 => Special::PrivateLimit,
        239 => Special::PopsExitingWaveId,
        251 => Special::Vccz,
        252 => Special::Execz,
        253 => Special::Scc,
        _ => return None,
    })
}

/// A source of SDWA.
pub(crate) fn sdwa_source(raw: u16, isa: Isa) -> SourceValue {
    if raw < 256 {
        return SourceValue::Reg(Reg::new(RegFile::Vgpr, raw, 1));
    }
    let raw = raw as u8;
    match raw {
        // No room for a literal; 254 is LDS_DIRECT even where other encodings mean a literal.
        254 | 255 => special(raw, 1, isa),
        _ => scalar_source(raw, 1, isa),
    }
}

/// The result of an SDWA comparison.
pub(crate) fn sdwa_lane_mask(raw: u16, isa: Isa) -> SourceValue {
    let dwords = lane_mask_dwords(isa);
    if raw & 128 == 0 {
        return SourceValue::Reg(Reg::special(Special::VccLo, dwords));
    }
    let raw = raw as u8 & 127;
    scalar_source(raw, dwords, isa)
}

/// Whether vector tuples must begin at an even register: gfx90a to gfx950 and gfx12.5.
pub(crate) fn aligns_tuples(isa: Isa) -> bool {
    isa.has(Feature::Gfx90aInsts) || isa.has(Feature::Gfx1250Insts)
}
