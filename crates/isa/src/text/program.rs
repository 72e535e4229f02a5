//! The steps that write instructions, made by the build script from the assembly templates.
//!
//! Invariants: a step's slot is a slot of its instruction; what the four extra numbers mean depends on the part and is
//! written down beside the generator.

use crate::tables::Entry;

/// What comes after a step's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Operand,
    /// A vector register.
    Vector,
    /// A vector or accumulation register of eight bits, bit 9 says which.
    Data,
    /// A source of any kind.
    Source,
    /// A scalar register or source.
    Scalar,
    Register,
    Branch,
    FloatModifiers,
    IntegerModifiers,
    Vcc,
    TypedFormat,
    AddressList,
    Flag,
    GdsFlag,
    HexAlways,
    HexNonzero,
    DecimalAlways,
    DecimalNonzero,
    U16,
    U32,
    Fp64,
    CachePolicy,
    Offset,
    FlatOffset,
    ScalarOffset,
    DppControl,
    Dpp8,
    DppFetchInvalid,
    SdwaSelect,
    SdwaUnused,
    OutputModifier,
    Packed,
    OpSelConvert,
    OpSelPermute,
    R128A16,
    Dim,
    Blgp,
    BitOp3,
    IndexKey,
    MatrixFormat,
    MatrixScale,
    MatrixScaleFormat,
    Attribute,
    AttributeComponent,
    AttributeParameter,
    ExportTarget,
    ExportSource,
    HardwareRegister,
    Message,
    Swizzle,
    EndProgram,
    WaitCounters,
    DependencyCounters,
    DelayAlu,
    IndexMode,
    WaitEvent,
}

/// A text and what comes after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) text: &'static str,
    pub(crate) part: Part,
    pub(crate) slot: u8,
    /// Lowest bit of the operand's field.
    pub(crate) at: u8,
    /// Its width; 0 if it is not one run of bits.
    pub(crate) width: u8,
    pub(crate) extra: [u8; 4],
}

// A short name keeps the generated text short.
#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn s(text: &'static str, part: Part, slot: u8, at: u8, width: u8, a: u8, b: u8, c: u8, d: u8) -> Step {
    Step { text, part, slot, at, width, extra: [a, b, c, d] }
}

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// The steps of an instruction.
#[inline]
pub(crate) fn of(entry: Entry) -> &'static [Step] {
    let number = ENTRY_PROGRAMS.get(usize::from(entry.id())).copied().unwrap_or(u16::MAX);
    PROGRAMS.get(usize::from(number)).copied().unwrap_or_default()
}

/// What the reader of operands has to look after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quirks(u8);

impl Quirks {
    /// The bit of the cache policy that returns the old value is fixed.
    pub(crate) const RETURNS: u8 = 1;
    /// Some operand must equal another.
    pub(crate) const TIED: u8 = 2;
    /// Modifiers select halves of registers.
    pub(crate) const HALVES: u8 = 4;
    /// Formats give the sizes of matrices.
    pub(crate) const MATRIX_FORMATS: u8 = 8;
    /// An image instruction.
    pub(crate) const IMAGE: u8 = 16;
    /// Anything that changes a register.
    pub(crate) const REGISTERS: u8 = Quirks::HALVES | Quirks::MATRIX_FORMATS | Quirks::IMAGE;

    #[inline]
    pub(crate) fn of(entry: Entry) -> Quirks {
        Quirks(ENTRY_QUIRKS.get(usize::from(entry.id())).copied().unwrap_or(0))
    }

    #[inline]
    pub(crate) fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }
}
