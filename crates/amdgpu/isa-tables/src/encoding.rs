//! Records of encodings: rows, formats, operands, fields, and the checks of the decoder.

use crate::record::record;
use crate::text::TextRange;
use crate::{Class, KINDS, KindRow, Name, PIECES, table_part};

record! {
    /// Some bits of a field.
    #[derive(PartialEq, Eq)]
    pub struct Piece {
        /// Lowest bit in the instruction.
        pub at: u8,
        /// Lowest bit in the field's value.
        pub from: u8,
            pub width: u8,
    }
}

/// An operand of an encoding and the position of its value.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub name: Name,
    /// Number of its kind.
    pub kind: u16,
    /// Written rather than read.
    pub written: bool,
    /// Number of the slot that it must equal.
    pub tied: Option<u8>,
    pieces: u16,
    count: u8,
}

record! {
    /// A [`Slot`] in numbers.
    pub(crate) struct SlotData {
        kind: u16,
        pieces: u16,
        name: u8,
        written: u8,
        /// 255 for none.
        tied: u8,
        count: u8,
    }
}

impl Slot {
    /// The position of its value; empty for operands that the encoding does not hold.
    #[inline]
    pub fn pieces(&self) -> &'static [Piece] {
        table_part(&PIECES, self.pieces, self.count)
    }

    /// The kind of its operand, which decodes its field.
    #[inline]
    pub fn operand_kind(&self) -> &'static KindRow {
        KINDS.get(usize::from(self.kind)).unwrap_or(&KINDS[0])
    }

    pub(crate) const fn new(data: &SlotData) -> Self {
        let SlotData { kind, pieces, name, written, tied, count } = *data;
        let tied = if tied == u8::MAX { None } else { Some(tied) };
        Self { name: Name::ALL[name as usize], kind, written: written != 0, tied, pieces, count }
    }
}

/// A field of a layout: its part of [`PIECES`].
#[derive(Debug, Clone, Copy)]
pub struct LayoutField {
    pub name: Name,
    /// Number of its first piece.
    pub pieces: u16,
    /// Number of its pieces.
    pub count: u8,
}

record! {
    /// A [`LayoutField`] in numbers.
    pub(crate) struct FieldData {
        pieces: u16,
        name: u8,
        count: u8,
    }
}

impl LayoutField {
    pub(crate) const fn new(data: &FieldData) -> Self {
        Self { name: Name::ALL[data.name as usize], pieces: data.pieces, count: data.count }
    }
}

/// The fields of an encoding class: a part of [`FIELDS`](crate::FIELDS).
#[derive(Debug, Clone, Copy)]
pub struct FieldLayout {
    pub class: Class,
    /// Number of its first field.
    pub fields: u16,
    /// Number of its fields.
    pub count: u8,
}

record! {
    /// A [`FieldLayout`] in numbers.
    pub(crate) struct LayoutData {
        fields: u16,
        class: u8,
        count: u8,
    }
}

impl FieldLayout {
    pub(crate) const fn new(data: &LayoutData) -> Self {
        Self { class: Class::ALL[data.class as usize], fields: data.fields, count: data.count }
    }
}

record! {
    /// A shape in a layout: its part of [`SLOTS`](crate::SLOTS).
    pub struct FormatData {
        /// Number of the operand list.
        pub shape: u16,
        /// Number of the layout.
        pub layout: u16,
        /// Number of the first operand.
        pub slots: u16,
        pub count: u16,
    }
}

record! {
    /// An instruction in all its encodings.
    pub struct RowData {
        /// A bit for each [`Flag`](crate::Flag).
        pub flags: u128,
        /// The mnemonic without encoding suffix.
        pub mnemonic: TextRange,
        /// Number of its variant of an image instruction; `u32::MAX` for any other.
        pub image: u32,
        /// Registers read implicitly, a bit for each [`Implicit`](crate::Implicit).
        pub reads: u16,
        pub writes: u16,
    }
}

record! {
    /// One encoding of one row. Aligned so that it is within one cache line.
    #[repr(align(32))]
    pub struct EntryData {
        /// The fixed bits of the first eight bytes.
        pub value: u64,
        /// Which bits are fixed.
        pub mask: u64,
        /// Number of its row.
        pub row: u16,
        /// Number of its format.
        pub format: u16,
        /// Number of its condition in [`AVAILABLE`](crate::AVAILABLE).
        pub need: u16,
        /// Number of its fixed bits in the second eight bytes.
        pub high: u16,
        /// Number of its block of checks; `u16::MAX` if its checks are not simple.
        pub block: u16,
        /// Number of its first check.
        pub checks: u16,
        /// Number of LLVM's decoder table.
        pub table: u16,
        /// Number of its checks.
        pub check_count: u8,
        /// Length without literals that follow.
        pub bytes: u8,
    }
}

record! {
    /// A check to make before a candidate is taken.
    pub struct OperandCheck {
        /// The kind of check, see `hotswap-isa`'s decoder.
        pub what: u8,
        /// Lowest bit of a field of one piece.
        pub at: u8,
        pub width: u8,
        /// Number of pieces; 0 if there is one piece, given by `at` and `width`.
        pub count: u8,
        /// Number of the first piece.
        pub pieces: u16,
        /// Start of the values' meanings in a part of [`ACCEPT`](crate::ACCEPT).
        pub set: u16,
    }
}

record! {
    /// At most four checks of one piece each in the first eight bytes, made without branches; unused ones accept
    /// everything.
    pub struct CheckBlock {
        /// Lowest bits.
        pub at: [u8; 4],
        /// Widths, as masks.
        pub mask: [u16; 4],
        /// As in a check.
        pub set: [u16; 4],
    }
}
