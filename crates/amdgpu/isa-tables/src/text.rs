//! Records of assembly text: the lines of instructions, split into steps.

use crate::record::record;
use crate::{ShortForm, TEXTS, TextPart};

record! {
    /// A part of [`TEXTS`]. Numbers instead of references need no relocation when a program starts.
    pub struct TextRange {
        start: u32,
        length: u32,
    }
}

impl TextRange {
    pub const EMPTY: Self = Self { start: 0, length: 0 };

    #[inline]
    pub fn text(self) -> &'static str {
        let start = self.start as usize;
        TEXTS.get(start..start + self.length as usize).unwrap_or_default()
    }
}

/// A text in a block that is copied whole: at most 15 letters, then their number.
#[derive(Debug, Clone, Copy)]
pub struct TextBlock([u8; 16]);

impl TextBlock {
    /// The letters, followed by the rest of the block.
    #[inline]
    pub fn letters(&self) -> &[u8; 16] {
        &self.0
    }

    /// The number of letters.
    #[expect(clippy::len_without_is_empty, reason = "an empty text needs no other treatment")]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.0[15] & 15)
    }
}

/// A text and the part that follows it. The four extra numbers depend on the part and are documented in the generator.
#[derive(Debug, Clone, Copy)]
pub struct TextStep {
    pub text: TextBlock,
    /// The bits of its half of the instruction that must be clear for the short form.
    pub guard: u64,
    /// Bits of the register's field that count.
    pub mask: u16,
    /// Bits of it that are inverted to make it the number of a source.
    pub flip: u16,
    pub form: ShortForm,
    /// The distance to the register's field, and two flags.
    pub place: u8,
    /// The size of the register.
    pub size: u8,
    pub part: TextPart,
    /// Number of the operand.
    pub slot: u8,
    /// Lowest bit of the operand's field.
    pub at: u8,
    /// Its width; 0 if it is not one run of bits.
    pub width: u8,
    /// For a register: for each kind of target, the entries outside its class.
    pub extra: [u8; 4],
}

impl TextStep {
    /// The field and the guard are in the second eight bytes: a flag of the place.
    pub const SECOND_HALF: u8 = 64;
    /// A literal is written as a hexadecimal number unless a constant has the same bits: a flag of the place.
    pub const SIMPLE_LITERAL: u8 = 128;

    pub(crate) const fn new(data: &StepData) -> Self {
        Self {
            text: TextBlock(data.text),
            guard: data.guard,
            mask: data.mask,
            flip: data.flip,
            form: ShortForm::ALL[data.form as usize],
            place: data.place,
            size: data.size,
            part: TextPart::ALL[data.part as usize],
            slot: data.slot,
            at: data.at,
            width: data.width,
            extra: data.extra,
        }
    }
}

record! {
    /// A [`TextStep`] in numbers.
    pub(crate) struct StepData {
        text: [u8; 16],
        guard: u64,
        mask: u16,
        flip: u16,
        form: u8,
        place: u8,
        size: u8,
        part: u8,
        slot: u8,
        at: u8,
        width: u8,
        _unused: u8,
        extra: [u8; 4],
    }
}

record! {
    /// The line of an entry: its part of [`STEPS`](crate::STEPS).
    pub struct TextLine {
        /// Number of its start in [`HEADS`](crate::HEADS).
        pub head: u16,
        /// Number of its first step.
        pub start: u16,
        /// Number of its steps.
        pub count: u8,
        /// The cases that the reader of its operands has to handle, see `OperandQuirks` of `hotswap-isa`.
        pub quirks: u8,
    }
}
