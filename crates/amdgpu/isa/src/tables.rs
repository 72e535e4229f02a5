//! Table entries and their plain accessors.
//!
//! Invariants: an accessor returns the empty value for a bad number instead of panicking.

use hotswap_isa_tables::{
    AVAILABLE, ENTRIES, EntryData, FIELDS, FORMATS, FieldLayout, FormatData, HIGH_BITS, IMAGES, LAYOUTS, PIECES, ROWS,
    RowData, SHAPE_TEMPLATES, SLOTS, Subtarget, TextRange, table_part,
};

pub use hotswap_isa_tables::{
    Class, Feature, Flag, Image, ImageBase, Implicit, Name, Piece, Slot, Target, table_bytes,
};

/// A field of an encoding.
#[derive(Debug, Clone, Copy)]
pub struct InstField {
    pub name: Name,
    pub pieces: &'static [Piece],
}

/// Meanings of field values.
pub(crate) mod meaning {
    pub(crate) const NONE: u8 = 1;
    /// A literal of 32 bits follows.
    pub(crate) const LITERAL32: u8 = 2;
    /// A literal of 64 bits follows.
    pub(crate) const LITERAL64: u8 = 4;
}

/// Ways to check an operand; the generator has the same numbers.
pub(crate) mod check {
    /// The value must be in the set; 255 and 254 may mean literals there. 0 is the same without literals.
    pub(crate) const SOURCE: u8 = 1;
    /// The value is the literal of the instruction.
    pub(crate) const LITERAL32: u8 = 2;
    /// The value is the literal of the instruction, 64 bits.
    pub(crate) const LITERAL64: u8 = 3;
    /// An offset of 24 bits whose sign must be clear.
    pub(crate) const NOT_NEGATIVE: u8 = 4;
}

/// Operand slots and fixed bits of one encoding of one instruction: a table entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableEntry(u16);

impl TableEntry {
    /// All entries, in the order of their numbers.
    pub fn all_entries() -> impl Iterator<Item = Self> {
        (0..ENTRIES.len() as u16).map(Self)
    }

    pub(crate) const fn new(id: u16) -> Self {
        Self(id)
    }

    /// Its number, the same for every build from the same rows.
    pub const fn id(self) -> u16 {
        self.0
    }

    #[inline]
    pub(crate) fn data(self) -> &'static EntryData {
        ENTRIES.get(usize::from(self.0)).unwrap_or(&NO_ENTRY)
    }

    fn format(self) -> &'static FormatData {
        FORMATS.get(usize::from(self.data().format)).unwrap_or(&NO_FORMAT)
    }

    #[inline]
    fn row_data(self) -> &'static RowData {
        ROWS.get(usize::from(self.data().row)).unwrap_or(&NO_ROW)
    }

    /// The number of the instruction: the same in all its encodings of this form.
    pub fn row(self) -> u16 {
        self.data().row
    }

    /// The number of its operand list.
    pub fn shape(self) -> u16 {
        self.format().shape
    }

    /// The mnemonic without encoding suffix.
    pub fn mnemonic(self) -> &'static str {
        self.row_data().mnemonic.text()
    }

    /// The template after the mnemonic, as LLVM writes it.
    pub fn template(self) -> &'static str {
        SHAPE_TEMPLATES.get(usize::from(self.shape())).map(|template| template.text()).unwrap_or_default()
    }

    pub fn class(self) -> Option<Class> {
        LAYOUTS.get(usize::from(self.format().layout)).map(|layout| layout.class)
    }

    /// Length in bytes without literals that follow.
    pub fn bytes(self) -> u8 {
        self.data().bytes
    }

    /// Its flags, a bit for each [`Flag`].
    #[inline]
    pub fn flags(self) -> u128 {
        self.row_data().flags
    }

    /// Whether it has `flag`.
    #[inline]
    pub fn is(self, flag: Flag) -> bool {
        self.flags() >> (flag as u8 & 127) & 1 != 0
    }

    /// Registers read implicitly, a bit for each [`Implicit`].
    #[inline]
    pub fn implicit_reads(self) -> u32 {
        self.row_data().reads.into()
    }

    /// Registers written implicitly, a bit for each [`Implicit`].
    #[inline]
    pub fn implicit_writes(self) -> u32 {
        self.row_data().writes.into()
    }

    /// Its operands in LLVM's order.
    pub fn slots(self) -> &'static [Slot] {
        let format = self.format();
        SLOTS.get(usize::from(format.slots)..usize::from(format.slots) + usize::from(format.count)).unwrap_or_default()
    }

    /// The slot of the operand `name`.
    pub fn slot(self, name: Name) -> Option<&'static Slot> {
        self.slots().iter().find(|slot| slot.name == name)
    }

    /// Its fields, including those that are not operands.
    pub fn fields(self) -> impl Iterator<Item = InstField> {
        let layout = LAYOUTS.get(usize::from(self.format().layout)).unwrap_or(&NO_LAYOUT);
        let fields = table_part(&FIELDS, layout.fields, layout.count);
        fields
            .iter()
            .map(|field| InstField { name: field.name, pieces: table_part(&PIECES, field.pieces, field.count) })
    }

    /// Fixed bits: their value and their mask.
    pub fn fixed(self) -> (u128, u128) {
        let data = self.data();
        let (value, mask) = HIGH_BITS.get(usize::from(data.high)).copied().unwrap_or_default();
        (u128::from(value) << 64 | u128::from(data.value), u128::from(mask) << 64 | u128::from(data.mask))
    }

    /// The variant that an image instruction is.
    pub fn image(self) -> Option<&'static Image> {
        IMAGES.get(self.row_data().image as usize)
    }

    pub(crate) fn in_subtarget(self, subtarget: &Subtarget) -> bool {
        AVAILABLE.get(subtarget.available as usize + usize::from(self.data().need)).is_some_and(|there| *there != 0)
    }
}

impl core::fmt::Debug for TableEntry {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Entry({} {})", self.0, self.mnemonic())
    }
}

const NONE: u16 = u16::MAX;
/// A mask of 0 and a value of 1 match nothing.
static NO_ENTRY: EntryData = EntryData {
    value: 1,
    mask: 0,
    row: NONE,
    format: NONE,
    need: NONE,
    high: 0,
    block: NONE,
    checks: 0,
    table: 0,
    check_count: 0,
    bytes: 4,
};
static NO_FORMAT: FormatData = FormatData { shape: NONE, layout: NONE, slots: 0, count: 0 };
static NO_ROW: RowData = RowData { flags: 0, mnemonic: TextRange::EMPTY, image: u32::MAX, reads: 0, writes: 0 };
static NO_LAYOUT: FieldLayout = FieldLayout { class: Class::ALL[0], fields: 0, count: 0 };
