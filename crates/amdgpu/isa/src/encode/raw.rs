//! From a register or constant to the number in the field: [`Decode`] read backwards.
//!
//! Invariants: an exhaustive match over [`Decode`], so a new decoding of a field does not build without its inverse;
//! every result decodes to the original value (the builder decodes its result).

use super::EncodeError;
use crate::kind::Decode;
use crate::reg::{Reg, RegFile, Special, VgprHalf};
use crate::{Feature, Isa, Name, Wave};

/// Number of a literal of 32 bits in a source field.
pub(super) const LITERAL32: u64 = 255;
/// Number of a literal of 64 bits.
pub(super) const LITERAL64: u64 = 254;

/// The number of dwords of a register of this kind; `None` for half registers and numbers.
pub(super) fn register_dwords(decode: Decode, isa: Isa) -> Option<u8> {
    match decode {
        Decode::Vgpr { dwords } | Decode::Agpr { dwords } | Decode::Source { dwords, .. } => Some(dwords),
        Decode::LaneMask | Decode::SdwaLaneMask => Some(if isa.wave() == Wave::W32 { 1 } else { 2 }),
        Decode::VgprLow128 | Decode::Barrier | Decode::SdwaSource | Decode::DualResultY => Some(1),
        Decode::Half
        | Decode::HalfLow128
        | Decode::HalfSource
        | Decode::HalfSourceLow128
        | Decode::Imm
        | Decode::Literal32
        | Decode::Literal64
        | Decode::ScalarOffset
        | Decode::BranchTarget
        | Decode::Dpp8FetchInvalid
        | Decode::Version => None,
    }
}

/// The field's value for a register.
pub(super) fn encode_register(decode: Decode, name: Name, reg: Reg, isa: Isa) -> Result<u64, EncodeError> {
    let wrong = EncodeError::NotInClass { name, reg };
    let high = if reg.half == Some(VgprHalf::High) { 1 } else { 0 };
    match (decode, reg.file) {
        (Decode::Vgpr { .. } | Decode::DualResultY, RegFile::Vgpr) => vector_register_number(255, reg.index, &wrong),
        (Decode::VgprLow128, RegFile::Vgpr) => vector_register_number(127, reg.index, &wrong),
        (Decode::Agpr { .. }, RegFile::Agpr) => vector_register_number(255, reg.index, &wrong),
        (Decode::Half, RegFile::Vgpr) => Ok(vector_register_number(255, reg.index, &wrong)? | high << 9),
        (Decode::HalfLow128, RegFile::Vgpr) => Ok(vector_register_number(127, reg.index, &wrong)? | high << 7),
        (Decode::HalfSource, RegFile::Vgpr) => Ok(256 | vector_register_number(255, reg.index, &wrong)? | high << 9),
        (Decode::HalfSourceLow128, RegFile::Vgpr) => {
            Ok(256 | vector_register_number(127, reg.index, &wrong)? | high << 7)
        }
        (Decode::Source { plus, .. }, _) => {
            let full = match reg.file {
                RegFile::Vgpr => 256 | vector_register_number(255, reg.index, &wrong)?,
                RegFile::Agpr => 768 | vector_register_number(255, reg.index, &wrong)?,
                _ => scalar_number(reg, isa).ok_or(EncodeError::NoEncoding(name))?,
            };
            // Bits that the kind adds are not in the field.
            if full & u64::from(plus) == u64::from(plus) { Ok(full & !u64::from(plus)) } else { Err(wrong) }
        }
        (Decode::SdwaSource, RegFile::Vgpr) => vector_register_number(255, reg.index, &wrong),
        (Decode::SdwaSource, RegFile::Agpr) => Err(wrong),
        (Decode::SdwaSource, _) => scalar_number(reg, isa).map(|raw| 256 | raw).ok_or(EncodeError::NoEncoding(name)),
        (Decode::SdwaLaneMask, RegFile::Special) if reg.is(Special::VccLo) => Ok(0),
        (Decode::SdwaLaneMask, RegFile::Sgpr | RegFile::Ttmp | RegFile::Special) => {
            scalar_number(reg, isa).filter(|raw| *raw < 128).map(|raw| 128 | raw).ok_or(EncodeError::NoEncoding(name))
        }
        (
            Decode::HalfSource | Decode::HalfSourceLow128 | Decode::LaneMask | Decode::Barrier,
            RegFile::Sgpr | RegFile::Ttmp | RegFile::Special,
        ) => scalar_number(reg, isa).ok_or(EncodeError::NoEncoding(name)),
        (
            Decode::Imm
            | Decode::Literal32
            | Decode::Literal64
            | Decode::ScalarOffset
            | Decode::BranchTarget
            | Decode::Dpp8FetchInvalid
            | Decode::Version,
            _,
        ) => Err(EncodeError::WrongSort(name)),
        _ => Err(wrong),
    }
}

fn vector_register_number(last: u16, reg_index: u16, wrong: &EncodeError) -> Result<u64, EncodeError> {
    if reg_index <= last { Ok(u64::from(reg_index)) } else { Err(*wrong) }
}

/// The field's value for number 128 to 255 of the source encoding: an inline constant or the mark of a literal.
pub(super) fn encode_constant(decode: Decode, name: Name, number: u64) -> Result<u64, EncodeError> {
    match decode {
        // Bit 8 marks a vector register where it is set and adds nothing where only bit 9 is set.
        Decode::Source { plus, .. } if plus & 256 == 0 => Ok(number),
        Decode::HalfSource | Decode::HalfSourceLow128 | Decode::Barrier => Ok(number),
        Decode::SdwaSource => Ok(256 | number),
        _ => Err(EncodeError::WrongSort(name)),
    }
}

/// The field's value for a plain number of the operand.
pub(super) fn encode_number(decode: Decode, name: Name, value: i64) -> Result<u64, EncodeError> {
    match decode {
        Decode::Dpp8FetchInvalid => match value {
            0 => Ok(0xe9),
            1 => Ok(0xea),
            _ => Err(EncodeError::OutOfRange { name, value: value as u64, bits: 1 }),
        },
        _ => Ok(value as u64),
    }
}

/// The number of a scalar register in a source field of eight bits.
fn scalar_number(reg: Reg, isa: Isa) -> Option<u64> {
    let number = match reg.file {
        RegFile::Sgpr => reg.index,
        RegFile::Ttmp => 108 + reg.index,
        RegFile::Special => return special(reg.as_special()?, isa).map(u64::from),
        RegFile::Vgpr | RegFile::Agpr => return None,
    };
    let last = if isa.has(Feature::Gfx10Insts) { 105 } else { 101 };
    let fits = match reg.file {
        RegFile::Sgpr => number <= last,
        _ => reg.index < 16,
    };
    fits.then_some(u64::from(number))
}

fn special(special: Special, isa: Isa) -> Option<u8> {
    let gfx10 = isa.has(Feature::Gfx10Insts);
    let (m0, null) = if isa.has(Feature::Gfx11Insts) { (125, 124) } else { (124, 125) };
    Some(match special {
        // From gfx10 on these numbers are scalar registers.
        Special::FlatScratchLo if !gfx10 => 102,
        Special::FlatScratchHi if !gfx10 => 103,
        Special::XnackMaskLo if !gfx10 => 104,
        Special::XnackMaskHi if !gfx10 => 105,
        Special::VccLo => 106,
        Special::VccHi => 107,
        Special::M0 => m0,
        Special::Null => null,
        Special::ExecLo => 126,
        Special::ExecHi => 127,
        Special::FlatScratchBaseLo => 230,
        Special::FlatScratchBaseHi => 231,
        Special::SharedBase => 235,
        Special::SharedLimit => 236,
        Special::PrivateBase => 237,
        Special::PrivateLimit => 238,
        Special::PopsExitingWaveId => 239,
        Special::Vccz => 251,
        Special::Execz => 252,
        Special::Scc => 253,
        Special::LdsDirect => 254,
        Special::FlatScratchLo
        | Special::FlatScratchHi
        | Special::XnackMaskLo
        | Special::XnackMaskHi
        // These numbers are trap temporaries from gfx9 on.
        | Special::TbaLo
        | Special::TbaHi
        | Special::TmaLo
        | Special::TmaHi
        | Special::Mode
        | Special::AsyncCnt
        | Special::TensorCnt => return None,
    })
}
