//! The steps that write instructions, made by the build script from the assembly templates.
//!
//! A step has a slow path, which writes its operand in every case, and usually a fast one, which is a table lookup.
//!
//! Invariants: where the fast path applies, it writes the same as the slow one. A step's slot is a slot of its
//! instruction. The meaning of the four extra numbers depends on the part and is documented in the generator.

use crate::tables::Entry;

/// The part that follows a step's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Operand,
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

/// The output of a step if the bits of its guard are clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    /// Its text, and an entry of the table of registers and constants.
    Register,
    /// Its text.
    Text,
    /// Its text, and its field as a hexadecimal number.
    Hexadecimal,
    /// Nothing.
    Nothing,
    /// Nothing if the bits of the guard are all set; otherwise the part.
    NothingIfSet,
    /// The part.
    Long,
}

/// A text in a block that is copied whole: at most 15 letters, then their number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block([u8; 16]);

impl Block {
    const fn new(text: &str) -> Block {
        let (text, mut block, mut at) = (text.as_bytes(), [0; 16], 0);
        assert!(text.len() < 16, "a text that is too long for a block");
        while at < text.len() {
            block[at] = text[at];
            at += 1;
        }
        block[15] = text.len() as u8;
        Block(block)
    }

    /// The letters, followed by the rest of the block.
    #[inline]
    pub(crate) fn letters(&self) -> &[u8; 16] {
        &self.0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.0[15] & 15)
    }
}

/// A text and the part that follows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) text: Block,
    pub(crate) guard: u64,
    /// Bits of the register's field that count.
    pub(crate) mask: u16,
    /// Bits of it that are inverted to make it the number of a source.
    pub(crate) flip: u16,
    pub(crate) plain: Plain,
    /// The distance to the register's field, and two flags.
    pub(crate) place: u8,
    /// The size of the register.
    pub(crate) size: u8,
    pub(crate) part: Part,
    pub(crate) slot: u8,
    /// Lowest bit of the operand's field.
    pub(crate) at: u8,
    /// Its width; 0 if it is not one run of bits.
    pub(crate) width: u8,
    /// For a register: for each kind of target, the entries outside its class.
    pub(crate) extra: [u8; 4],
}

/// The field and the guard of a step are in the second eight bytes.
pub(crate) const SECOND_HALF: u8 = 64;
/// A literal is written as a hexadecimal number unless a constant has the same bits.
pub(crate) const SIMPLE_LITERAL: u8 = 128;

impl Step {
    /// The number of its register's field as that of a source.
    #[inline]
    pub(crate) fn number(&self, half: u64) -> u16 {
        half.rotate_right(u32::from(self.place & 63)) as u16 & self.mask ^ self.flip
    }

    /// The value of its field, of at most 32 bits.
    #[inline]
    pub(crate) fn value(&self, half: u64) -> u32 {
        let bits = (half >> (self.at & 63)) & ((1 << (self.width & 63)) - 1);
        bits as u32
    }
}

// Short names keep the generated text short.
#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn s(
    text: &str,
    part: Part,
    [slot, at, width]: [u8; 3],
    extra: [u8; 4],
    plain: Plain,
    guard: u64,
    [place, size]: [u8; 2],
    mask: u16,
    flip: u16,
) -> Step {
    Step { text: Block::new(text), guard, mask, flip, plain, place, size, part, slot, at, width, extra }
}

/// The start of a line: at most 31 letters, then their number.
const fn h(text: &str) -> [u8; 32] {
    let (text, mut head, mut at) = (text.as_bytes(), [0; 32], 0);
    assert!(text.len() < 32, "a head that is too long");
    while at < text.len() {
        head[at] = text[at];
        at += 1;
    }
    head[31] = text.len() as u8;
    head
}

/// The steps of an instruction's line.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    head: u16,
    start: u16,
    count: u8,
    quirks: u8,
}

const fn l(head: u16, start: u16, count: u8, quirks: u8) -> Line {
    Line { head, start, count, quirks }
}

static NO_LINE: Line = l(u16::MAX, u16::MAX, 0, 0);
static NO_HEAD: [u8; 32] = [0; 32];

impl Line {
    /// The line of an instruction.
    #[inline]
    pub(crate) fn of(entry: Entry) -> &'static Line {
        LINES.get(usize::from(entry.id())).unwrap_or(&NO_LINE)
    }

    /// Its start: the mnemonic and its constant continuation.
    #[inline]
    pub(crate) fn head(&self) -> &'static [u8; 32] {
        HEADS.get(usize::from(self.head)).unwrap_or(&NO_HEAD)
    }

    /// The steps after the start.
    #[inline]
    pub(crate) fn steps(&self) -> &'static [Step] {
        STEPS.get(usize::from(self.start)..usize::from(self.start) + usize::from(self.count)).unwrap_or_default()
    }
}

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// Properties that the operand reader has to handle.
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
        Quirks(Line::of(entry).quirks)
    }

    #[inline]
    pub(crate) fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }
}
