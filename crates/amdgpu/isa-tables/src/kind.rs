//! Kinds of operands: how a field is decoded, and the meaning of an inline constant in it.
//!
//! Invariants: the variants are a closed list; the build script maps the identifiers of the rows to them and rejects
//! others. Nothing here depends on a single instruction.

/// A kind of operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRow {
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
    Imm,
    /// A tuple of vector registers, the first one's number in 8 bits.
    Vgpr {
        dwords: u8,
    },
    /// One of the first 128 vector registers.
    VgprLow128,
    /// A tuple of accumulation registers.
    Agpr {
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

/// The meaning of inline constants and literals in an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OperandType {
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
    pub const VECTOR: u16 = 1;
    pub const ACCUMULATION: u16 = 2;
    /// Accumulation registers on targets with matrix cores that load into them (gfx90a to gfx950).
    pub const ACCUMULATION_LOADS: u16 = 4;
    /// Scalar registers and most of those with a name.
    pub const SCALAR: u16 = 8;
    pub const M0: u16 = 16;
    /// The low half of EXEC, or EXEC.
    pub const EXEC_LO: u16 = 32;
    /// The high half of EXEC.
    pub const EXEC_HI: u16 = 64;
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
    #[inline]
    pub const fn holds_any(self, what: u16) -> bool {
        self.holds & what != 0
    }
}
