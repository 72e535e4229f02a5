//! The generated tables and their plain accessors.
//!
//! Invariants: every table is a `static`; numbers in tables were checked when they were generated, and an accessor
//! returns the empty value for a bad one instead of panicking.

use crate::size::{SizePrefixes, SizeRule, z};

include!(concat!(env!("OUT_DIR"), "/enums.rs"));

/// Some bits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Lowest bit in the instruction.
    pub at: u8,
    /// Lowest bit in the field's value.
    pub from: u8,
    /// Number of bits.
    pub width: u8,
}

/// An operand of an encoding and the position of its value.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Its name.
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

impl Slot {
    /// The position of its value; empty for operands that the encoding does not hold.
    pub fn pieces(&self) -> &'static [Piece] {
        part(&PIECES, self.pieces, self.count)
    }
}

/// A field of an encoding.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its position.
    pub pieces: &'static [Piece],
}

#[derive(Clone, Copy)]
pub(crate) struct FieldData {
    name: Name,
    pieces: u16,
    count: u8,
}

#[derive(Clone, Copy)]
pub(crate) struct LayoutData {
    class: Class,
    fields: u16,
    count: u8,
}

#[derive(Clone, Copy)]
pub(crate) struct FormatData {
    shape: u16,
    layout: u16,
    slots: u32,
    count: u8,
}

#[derive(Clone, Copy)]
pub(crate) struct RowData {
    mnemonic: &'static str,
    flags: u128,
    reads: u32,
    writes: u32,
    image: u16,
}

/// Aligned so that an entry is within one cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct EntryData {
    pub(crate) value: u64,
    pub(crate) mask: u64,
    row: u16,
    format: u16,
    pub(crate) need: u16,
    pub(crate) high: u16,
    pub(crate) block: u16,
    pub(crate) checks: u16,
    pub(crate) check_count: u8,
    pub(crate) bytes: u8,
    pub(crate) table: u8,
}

/// A check to make before a candidate is taken.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub(crate) what: u8,
    pub(crate) at: u8,
    pub(crate) width: u8,
    /// 0: one piece, given by `at` and `width`.
    pub(crate) count: u8,
    pub(crate) pieces: u16,
    pub(crate) set: u16,
}

/// Meanings of field values.
pub(crate) mod meaning {
    /// Nothing.
    pub(crate) const NONE: u8 = 1;
    /// A literal of 32 bits follows.
    pub(crate) const LITERAL32: u8 = 2;
    /// A literal of 64 bits follows.
    pub(crate) const LITERAL64: u8 = 4;
}

impl Check {
    /// The value must be in the set; 255 and 254 may mean literals there.
    pub(crate) const SOURCE: u8 = 1;
    /// The value is the literal of the instruction.
    pub(crate) const LITERAL32: u8 = 2;
    /// The value is the literal of the instruction, 64 bits.
    pub(crate) const LITERAL64: u8 = 3;
    /// An offset of 24 bits whose sign must be clear.
    pub(crate) const NOT_NEGATIVE: u8 = 4;
}

/// At most four checks of one piece each in the first eight bytes, made without branches; unused ones accept everything.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) at: [u8; 4],
    pub(crate) mask: [u16; 4],
    pub(crate) set: [u16; 4],
}

/// A processor.
#[derive(Debug)]
pub struct Target {
    /// As in `--offload-arch`.
    pub name: &'static str,
    settings: u16,
}

impl Target {
    pub(crate) fn first_setting(&self) -> usize {
        usize::from(self.settings)
    }
}

/// A target in one mode.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) target: u16,
    pub(crate) wave64: bool,
    pub(crate) true16: bool,
    pub(crate) features: u16,
    pub(crate) group: u8,
    pub(crate) root: u32,
    pub(crate) available: u32,
    pub(crate) accept: u32,
    pub(crate) max_bytes: u8,
}

/// The variant that an image instruction is.
#[derive(Debug)]
pub struct Image {
    base: u16,
    /// Encoding variant, for example `Gfx10NSA`.
    pub encoding: &'static str,
    /// Dwords of data of this variant.
    pub data: u8,
    /// Dwords of address of this variant.
    pub address: u8,
}

impl Image {
    /// The base operation.
    pub fn base(&self) -> Option<&'static ImageBase> {
        IMAGE_BASES.get(usize::from(self.base))
    }
}

/// The base operation of image instructions.
#[derive(Debug)]
pub struct ImageBase {
    /// Its name.
    pub name: &'static str,
    /// Its properties, sorted.
    pub properties: &'static [&'static str],
    /// Arguments before the coordinates.
    pub extra_arguments: u8,
    /// Variants that exist: encoding, dwords of data, dwords of address; sorted.
    pub variants: &'static [(&'static str, u8, u8)],
}

/// Operand slots and fixed bits of one encoding of one instruction: a table entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry(u16);

impl Entry {
    /// All entries, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
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
        self.row_data().mnemonic
    }

    /// The template after the mnemonic, as LLVM writes it.
    pub fn template(self) -> &'static str {
        TEMPLATES.get(usize::from(self.shape())).copied().unwrap_or_default()
    }

    /// The encoding class.
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
        self.row_data().reads
    }

    /// Registers written implicitly, a bit for each [`Implicit`].
    #[inline]
    pub fn implicit_writes(self) -> u32 {
        self.row_data().writes
    }

    /// Its operands in LLVM's order.
    pub fn slots(self) -> &'static [Slot] {
        let format = self.format();
        SLOTS.get(format.slots as usize..format.slots as usize + usize::from(format.count)).unwrap_or_default()
    }

    /// The slot of the operand `name`.
    pub fn slot(self, name: Name) -> Option<&'static Slot> {
        self.slots().iter().find(|slot| slot.name == name)
    }

    /// Its fields, including those that are no operand.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        let layout = LAYOUTS.get(usize::from(self.format().layout)).unwrap_or(&NO_LAYOUT);
        let fields = part(&FIELDS, layout.fields, layout.count);
        fields.iter().map(|field| Field { name: field.name, pieces: part(&PIECES, field.pieces, field.count) })
    }

    /// Fixed bits: their value and their mask.
    pub fn fixed(self) -> (u128, u128) {
        let data = self.data();
        let (value, mask) = HIGH_BITS.get(usize::from(data.high)).copied().unwrap_or_default();
        (u128::from(value) << 64 | u128::from(data.value), u128::from(mask) << 64 | u128::from(data.mask))
    }

    /// The variant that an image instruction is.
    pub fn image(self) -> Option<&'static Image> {
        IMAGES.get(usize::from(self.row_data().image))
    }

    pub(crate) fn in_setting(self, setting: &Setting) -> bool {
        AVAILABLE.get(setting.available as usize + usize::from(self.data().need)).copied().unwrap_or(false)
    }
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Entry({} {})", self.0, self.mnemonic())
    }
}

/// The tables by name with their size in bytes, including the texts that they refer to.
pub fn table_bytes() -> impl Iterator<Item = (&'static str, usize)> {
    let texts = ROWS.iter().map(|row| row.mnemonic.len()).sum::<usize>();
    let templates = TEMPLATES.iter().map(|template| template.len()).sum::<usize>();
    [
        ("entries", size_of_val(&ENTRIES)),
        ("high bits", size_of_val(&HIGH_BITS)),
        ("rows", size_of_val(&ROWS) + texts),
        ("templates", size_of_val(&TEMPLATES) + templates),
        ("formats", size_of_val(&FORMATS)),
        ("slots", size_of_val(&SLOTS)),
        ("layouts and fields", size_of_val(&LAYOUTS) + size_of_val(&FIELDS)),
        ("pieces", size_of_val(&PIECES)),
        ("checks", size_of_val(&CHECKS) + size_of_val(&BLOCKS)),
        ("accepted values", size_of_val(&ACCEPT)),
        ("settings", size_of_val(&SETTINGS) + size_of_val(&AVAILABLE) + size_of_val(&FEATURE_SETS)),
        ("tries", size_of_val(&NODES)),
        ("candidates", size_of_val(&CANDIDATES)),
        (
            "length tries",
            size_of_val(&SIZE_ROOTS)
                + size_of_val(&SIZE_NODES)
                + size_of_val(&SIZE_RULES)
                + size_of_val(&SIZE_PREFIXES),
        ),
    ]
    .into_iter()
}

/// A part of a table; empty if the numbers are bad.
pub(crate) fn part<T>(table: &'static [T], start: u16, count: u8) -> &'static [T] {
    table.get(usize::from(start)..usize::from(start) + usize::from(count)).unwrap_or_default()
}

const NONE: u16 = u16::MAX;
/// A mask of 0 and a value of 1 match nothing.
static NO_ENTRY: EntryData = e(1, 0, NONE, NONE, NONE, 0, NONE, 0, 0, 4, 0);
static NO_FORMAT: FormatData = f(NONE, NONE, 0, 0);
static NO_ROW: RowData = r("", 0, 0, 0, NONE);
static NO_LAYOUT: LayoutData = LayoutData { class: Class::ALL[0], fields: 0, count: 0 };

// One-letter constructors keep the generated text short.
const fn p(at: u8, from: u8, width: u8) -> Piece {
    Piece { at, from, width }
}
const fn s(name: Name, kind: u16, written: bool, tied: Option<u8>, pieces: u16, count: u8) -> Slot {
    Slot { name, kind, written, tied, pieces, count }
}
const fn d(name: Name, pieces: u16, count: u8) -> FieldData {
    FieldData { name, pieces, count }
}
const fn l(class: Class, fields: u16, count: u8) -> LayoutData {
    LayoutData { class, fields, count }
}
const fn f(shape: u16, layout: u16, slots: u32, count: u8) -> FormatData {
    FormatData { shape, layout, slots, count }
}
const fn r(mnemonic: &'static str, flags: u128, reads: u32, writes: u32, image: u16) -> RowData {
    RowData { mnemonic, flags, reads, writes, image }
}
#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn e(
    value: u64,
    mask: u64,
    row: u16,
    format: u16,
    need: u16,
    high: u16,
    block: u16,
    checks: u16,
    check_count: u8,
    bytes: u8,
    table: u8,
) -> EntryData {
    EntryData { value, mask, row, format, need, high, block, checks, check_count, bytes, table }
}
const fn c(what: u8, at: u8, width: u8, pieces: u16, count: u8, set: u16) -> Check {
    Check { what, at, width, count, pieces, set }
}
const fn k(at: [u8; 4], mask: [u16; 4], set: [u16; 4]) -> Block {
    Block { at, mask, set }
}
const fn g(name: &'static str, settings: u16) -> Target {
    Target { name, settings }
}
#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn t(
    target: u16,
    wave64: bool,
    true16: bool,
    features: u16,
    group: u8,
    root: u32,
    available: u32,
    context: u32,
    max_bytes: u8,
) -> Setting {
    let accept = context * ACCEPT_LENGTH as u32;
    Setting { target, wave64, true16, features, group, root, available, accept, max_bytes }
}
const fn i(base: u16, encoding: &'static str, data: u8, address: u8) -> Image {
    Image { base, encoding, data, address }
}
const fn b(
    name: &'static str,
    properties: &'static [&'static str],
    extra_arguments: u8,
    variants: &'static [(&'static str, u8, u8)],
) -> ImageBase {
    ImageBase { name, properties, extra_arguments, variants }
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
