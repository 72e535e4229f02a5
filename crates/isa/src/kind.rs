//! Kinds of operands: how a field is decoded, and the meaning of an inline constant in it.
//!
//! Invariants: the variants are a closed list; the build script maps the identifiers of the rows to them and rejects
//! others. Nothing here depends on a single instruction.
//!
//! Absent on purpose: whether a field decodes (see the decoder's tables), reading it from the instruction (see
//! [`crate::operand`]), and how it is written (see [`crate::text`]).

use crate::isa::Isa;
use crate::reg::{Reg, RegFile, Special};
use crate::tables::Feature;

/// A kind of operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its name in the rows.
    pub name: &'static str,
    /// The decoding of a field.
    pub decode: Decode,
    /// The meaning of inline constants and literals.
    pub operand_type: OperandType,
    /// Registers that belong in it. Others decode, but are not valid.
    pub class: RegClass,
}

/// The decoding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decode {
    /// The number itself.
    Imm,
    /// A tuple of vector registers, the first one's number in 8 bits.
    Vgpr {
        /// Its size.
        dwords: u8,
    },
    /// One of the first 128 vector registers.
    VgprLow128,
    /// A tuple of accumulation registers.
    Agpr {
        /// Its size.
        dwords: u8,
    },
    /// Half of a vector register: number in bits 0 to 7, half in bit 9.
    Half,
    /// Half of one of the first 128 vector registers: number in bits 0 to 6, half in bit 7.
    HalfLow128,
    /// A source of 9 bits with the half in bit 9.
    HalfSource,
    /// A source of 9 bits with the half in bit 7.
    HalfSourceLow128,
    /// A source: scalar register, constant, literal or vector register; bit 8 means vector, bit 9 accumulation.
    Source {
        /// Size of the registers.
        dwords: u8,
        /// Bits that the kind adds: 256 where only vector registers are encoded, 512 where they are
        /// accumulation registers.
        plus: u16,
    },
    /// A lane mask: one scalar register in wave32, two in wave64.
    LaneMask,
    /// A barrier's number.
    Barrier,
    /// A source of SDWA: vector register below 256, others above; no literal.
    SdwaSource,
    /// Result of an SDWA comparison: VCC, or a scalar register if bit 7 is set.
    SdwaLaneMask,
    /// A literal of 32 bits that the encoding always has.
    Literal32,
    /// A literal of 64 bits that the encoding always has.
    Literal64,
    /// Offset of scalar memory, 20, 21 or 24 bits by generation.
    ScalarOffset,
    /// Distance of a branch in dwords.
    BranchTarget,
    /// The second result of a dual instruction: bit 0 is the opposite of the first result's.
    DualResultY,
    /// The fetch-invalid flag of DPP8: one of two numbers of the source field.
    Dpp8FetchInvalid,
    /// A version and three flags.
    Version,
}

/// The decoded value of a source field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A register.
    Reg(Reg),
    /// Number 128 to 208 or 240 to 248 of the source field: a constant.
    Constant(u8),
    /// A literal of 32 bits follows.
    Literal32,
    /// A literal of 64 bits follows.
    Literal64,
    /// No such source.
    Unknown,
}

/// Dwords of a lane mask.
pub(crate) fn lane_mask_dwords(isa: Isa) -> u8 {
    if isa.has(Feature::Wavefrontsize32) { 1 } else { 2 }
}

/// A source field of ten bits: bit 9 accumulation register, bit 8 vector register.
pub(crate) fn source(raw: u16, dwords: u8, isa: Isa) -> Source {
    if raw & 256 == 0 {
        return scalar_source(raw as u8, dwords, isa);
    }
    let index = raw & 255;
    if raw & 512 == 0 {
        return Source::Reg(Reg::new(RegFile::Vgpr, index, dwords));
    }
    // No class that decodes has tuples of six accumulation registers.
    if index + u16::from(dwords) > 256 || dwords == 6 {
        return Source::Unknown;
    }
    Source::Reg(Reg::new(RegFile::Agpr, index, dwords))
}

/// A source field of eight bits without vector registers.
pub(crate) fn scalar_source(raw: u8, dwords: u8, isa: Isa) -> Source {
    let last_sgpr = if isa.has(Feature::Gfx10Insts) { 105 } else { 101 };
    match raw {
        // The last tuples of most sizes end in VCC, which is the pair after s105.
        _ if raw <= last_sgpr => tuple(RegFile::Sgpr, raw, dwords, if matches!(dwords, 9 | 10) { 106 } else { 108 }),
        108..=123 => tuple(RegFile::Ttmp, raw - 108, dwords, 16),
        128..=208 | 240..=248 => Source::Constant(raw),
        255 => Source::Literal32,
        254 if isa.has(Feature::N64BitLiterals) => Source::Literal64,
        _ => special(raw, dwords, isa),
    }
}

/// A tuple of scalar registers of a file with `size` registers. An unaligned number means the aligned one below.
fn tuple(file: RegFile, raw: u8, dwords: u8, size: u16) -> Source {
    let stride = match dwords {
        1 => 1,
        2 => 2,
        3 | 4 | 8..=12 | 16 => 4,
        _ => return Source::Unknown,
    };
    let index = u16::from(raw & !(stride - 1));
    if index + u16::from(dwords) > size {
        return Source::Unknown;
    }
    Source::Reg(Reg::new(file, index, dwords))
}

/// A register with a name of its own.
fn special(raw: u8, dwords: u8, isa: Isa) -> Source {
    let found = match dwords {
        1 => special32(raw, isa),
        2 => special64(raw, isa),
        3 | 4 | 8 | 16 if raw == null_number(isa) => Some((Special::Null, dwords)),
        _ => None,
    };
    match found {
        Some((special, count)) => Source::Reg(Reg::special(special, count)),
        None => Source::Unknown,
    }
}

/// The number of NULL: it was swapped with M0 in gfx11.
fn null_number(isa: Isa) -> u8 {
    if isa.has(Feature::Gfx11Insts) { 124 } else { 125 }
}

/// Registers of one dword.
fn special32(raw: u8, isa: Isa) -> Option<(Special, u8)> {
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
    Some((special, 1))
}

/// Whether the number of the scratch base's high half means the whole base in a source of 64 bits: on gfx1250 from its
/// second stepping on (see `wide_base_high` in `hotswap-isa-meta`, which determines the values that decode).
fn has_wide_scratch_base_high(isa: Isa) -> bool {
    let others = [Feature::Gfx1250Strict, Feature::Gfx1251GemmInsts];
    isa.has(Feature::Gfx1250Insts) && !others.into_iter().any(|other| isa.has(other))
}

/// Registers of two dwords. Flags and constants keep their one dword.
fn special64(raw: u8, isa: Isa) -> Option<(Special, u8)> {
    let special = match raw {
        102 => Special::FlatScratchLo,
        104 => Special::XnackMaskLo,
        106 => Special::VccLo,
        124 | 125 if raw == null_number(isa) => Special::Null,
        126 => Special::ExecLo,
        230 => Special::FlatScratchBaseLo,
        231 if has_wide_scratch_base_high(isa) => Special::FlatScratchBaseHi,
        235..=238 => source_special(raw)?,
        239 | 251..=253 => return source_special(raw).map(|special| (special, 1)),
        _ => return None,
    };
    Some((special, 2))
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
pub(crate) fn sdwa_source(raw: u16, isa: Isa) -> Source {
    if raw < 256 {
        return Source::Reg(Reg::new(RegFile::Vgpr, raw, 1));
    }
    let raw = raw as u8;
    match raw {
        // No room for a literal; 254 is LDS_DIRECT even where other encodings mean a literal.
        254 | 255 => special(raw, 1, isa),
        _ => scalar_source(raw, 1, isa),
    }
}

/// The result of an SDWA comparison.
pub(crate) fn sdwa_lane_mask(raw: u16, isa: Isa) -> Source {
    let dwords = lane_mask_dwords(isa);
    if raw & 128 == 0 {
        return Source::Reg(Reg::special(Special::VccLo, dwords));
    }
    let raw = raw as u8 & 127;
    scalar_source(raw, dwords, isa)
}

macro_rules! operand_types {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// The meaning of inline constants and literals in an operand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum OperandType { $($(#[$doc])* $variant,)* }
    };
}

operand_types! {
    /// A register; a constant here is not valid.
    Register,
    /// A number of the encoding.
    Immediate,
    /// A number without a meaning of its own.
    Unknown,
    /// A distance from the program counter.
    Pcrel,
    /// Modifiers of a source.
    InputMods,
    /// Result of an SDWA comparison.
    SdwaVopcDst,
    /// Integer of 32 bits, literal allowed.
    RegImmInt32,
    /// Integer of 64 bits, literal allowed.
    RegImmInt64,
    /// Integer of 16 bits, literal allowed.
    RegImmInt16,
    /// Float of 32 bits, literal allowed.
    RegImmFp32,
    /// Float of 64 bits, literal allowed (it is the high half).
    RegImmFp64,
    /// Brain float of 16 bits, literal allowed.
    RegImmBf16,
    /// Float of 16 bits, literal allowed.
    RegImmFp16,
    /// Two brain floats of 16 bits, literal allowed.
    RegImmV2bf16,
    /// Two floats of 16 bits, literal allowed.
    RegImmV2fp16,
    /// Two floats of 16 bits; from gfx11 a constant is replicated to both.
    RegImmV2fp16Splat,
    /// Two integers of 16 bits, literal allowed.
    RegImmV2int16,
    /// Two integers of 64 bits, literal allowed.
    RegImmV2int64,
    /// Two floats of 16 bits, every constant as a literal.
    RegImmNoinlineV2fp16,
    /// Two integers of 32 bits, literal allowed.
    RegImmV2int32,
    /// Two floats of 32 bits, literal allowed.
    RegImmV2fp32,
    /// Two floats of 64 bits, literal allowed.
    RegImmV2fp64,
    /// Integer of 16 bits, inline constants only.
    RegInlineCInt16,
    /// Integer of 32 bits, inline constants only.
    RegInlineCInt32,
    /// Integer of 64 bits, inline constants only.
    RegInlineCInt64,
    /// Brain float of 16 bits, inline constants only.
    RegInlineCBf16,
    /// Float of 16 bits, inline constants only.
    RegInlineCFp16,
    /// Float of 32 bits, inline constants only.
    RegInlineCFp32,
    /// Float of 64 bits, inline constants only.
    RegInlineCFp64,
    /// Two integers of 16 bits, inline constants only.
    RegInlineCV2int16,
    /// Two brain floats of 16 bits, inline constants only.
    RegInlineCV2bf16,
    /// Two floats of 16 bits, inline constants only.
    RegInlineCV2fp16,
    /// A barrier's number.
    InlineSplitBarrierInt32,
    /// A literal of 32 bits that the encoding always has.
    Kimm32,
    /// A literal of 32 bits that the encoding always has, 16 of them used.
    Kimm16,
    /// A literal of 64 bits that the encoding always has.
    Kimm64,
    /// Accumulation register or integer of 32 bits.
    RegInlineAcInt32,
    /// Accumulation register or float of 32 bits.
    RegInlineAcFp32,
    /// Accumulation register or float of 64 bits.
    RegInlineAcFp64,
}

impl OperandType {
    /// Whether a number in the field is a source constant (and not a plain number).
    pub fn is_source(self) -> bool {
        !matches!(
            self,
            OperandType::Immediate
                | OperandType::Unknown
                | OperandType::Pcrel
                | OperandType::InputMods
                | OperandType::SdwaVopcDst
        )
    }
}

/// A class of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegClass {
    /// Its name, empty for none.
    pub name: &'static str,
    /// Size of its registers.
    pub dwords: u8,
    /// The registers that it holds, see the constants.
    pub holds: u16,
}

impl RegClass {
    /// No class: everything is in it.
    pub const NONE: RegClass = RegClass { name: "", dwords: 0, holds: 0 };
    /// Vector registers.
    pub const VECTOR: u16 = 1;
    /// Accumulation registers.
    pub const ACCUMULATION: u16 = 2;
    /// Accumulation registers on targets with matrix cores that load into them (gfx90a to gfx950).
    pub const ACCUMULATION_LOADS: u16 = 4;
    /// Scalar registers and most of those with a name.
    pub const SCALAR: u16 = 8;
    /// M0.
    pub const M0: u16 = 16;
    /// The low half of EXEC, or EXEC.
    pub const EXEC_LO: u16 = 32;
    /// The high half of EXEC.
    pub const EXEC_HI: u16 = 64;
    /// LDS_DIRECT.
    pub const LDS: u16 = 128;
    /// Vector tuples begin at an even register.
    pub const EVEN: u16 = 256;
    /// Vector tuples begin at an even register on targets that need it.
    pub const EVEN_ON_TARGET: u16 = 512;
    /// Only the first 128 vector registers.
    pub const LOW_128: u16 = 1024;
    /// Only the first 256 vector registers.
    pub const LOW_256: u16 = 2048;
    /// A lane mask; a wrong width is not reported.
    pub const LANE_MASK: u16 = 4096;

    /// Whether the class holds any of `what`.
    const fn has(self, what: u16) -> bool {
        self.holds & what != 0
    }

    /// Whether vector tuples must begin at an even register.
    fn even(self, isa: Isa) -> bool {
        self.has(RegClass::EVEN) || (self.has(RegClass::EVEN_ON_TARGET) && aligns_tuples(isa))
    }

    /// Whether `reg` is in the class on this target.
    pub fn contains(self, reg: Reg, isa: Isa) -> bool {
        if self.name.is_empty() || self.has(RegClass::LANE_MASK) {
            return true;
        }
        match reg.file {
            RegFile::Vgpr => self.has(RegClass::VECTOR) && self.holds_vector(reg, isa),
            RegFile::Agpr => self.holds_accumulation(isa) && self.holds_vector(reg, isa),
            RegFile::Sgpr | RegFile::Ttmp => self.has(RegClass::SCALAR),
            RegFile::Special => self.holds_special(reg),
        }
    }

    /// Whether the number of a vector register fits.
    fn holds_vector(self, reg: Reg, isa: Isa) -> bool {
        let end = reg.index + u16::from(reg.count);
        !(self.has(RegClass::LOW_128) && end > 128
            || self.has(RegClass::LOW_256) && end > 256
            || reg.count > 1 && reg.index & 1 != 0 && self.even(isa))
    }

    /// Whether accumulation registers are in the class on this target.
    fn holds_accumulation(self, isa: Isa) -> bool {
        let aligned = aligns_tuples(isa);
        let matrix = isa.has(Feature::MaiInsts);
        if self.has(RegClass::ACCUMULATION_LOADS) {
            return aligned && matrix;
        }
        // Where a target has no accumulation registers, a class of both files is one of vector registers.
        let both = self.has(RegClass::VECTOR) && self.has(RegClass::EVEN_ON_TARGET);
        self.has(RegClass::ACCUMULATION) && !(both && aligned && !matrix)
    }

    /// Whether a register with a name is in the class. Read-only ones are in every class: they are constants.
    fn holds_special(self, reg: Reg) -> bool {
        match reg.as_special() {
            Some(Special::M0) => self.has(RegClass::M0),
            Some(Special::ExecLo) => self.has(RegClass::EXEC_LO),
            Some(Special::ExecHi) => self.has(RegClass::EXEC_HI),
            Some(Special::LdsDirect) => self.has(RegClass::LDS),
            Some(special) if special >= Special::Null || is_scratch_base(special) => true,
            _ => self.has(RegClass::SCALAR),
        }
    }

    /// The name that LLVM gives the class on this target, for registers of `dwords` dwords: text, bits, text.
    pub(crate) fn target_name(self, dwords: u8, isa: Isa) -> (&'static str, Option<u16>, &'static str) {
        let (vector, accumulation) = (self.has(RegClass::VECTOR), self.holds_accumulation(isa));
        let plain = (self.name, None, "");
        if self.has(RegClass::SCALAR | RegClass::LOW_128 | RegClass::LOW_256 | RegClass::LDS) || self.name == "VGPR_16"
        {
            let stem = self.name.strip_suffix("_AlignTarget");
            return stem.map_or(plain, |stem| (stem, None, if aligns_tuples(isa) { "_Align2" } else { "" }));
        }
        let stem = match (vector, accumulation, dwords) {
            (true, true, _) => "AV_",
            (true, false, 1) => "VGPR_",
            (true, false, _) => "VReg_",
            (false, _, 1) => "AGPR_",
            (false, ..) => "AReg_",
        };
        (stem, Some(u16::from(dwords) * 32), if dwords > 1 && self.even(isa) { "_Align2" } else { "" })
    }
}

/// Whether vector tuples must begin at an even register: gfx90a to gfx950 and gfx12.5.
pub(crate) fn aligns_tuples(isa: Isa) -> bool {
    isa.has(Feature::Gfx90aInsts) || isa.has(Feature::Gfx1250Insts)
}

/// Whether it is a half of the scratch base, which is a constant like the registers from NULL on.
fn is_scratch_base(special: Special) -> bool {
    matches!(special, Special::FlatScratchBaseLo | Special::FlatScratchBaseHi)
}

include!(concat!(env!("OUT_DIR"), "/kinds.rs"));
