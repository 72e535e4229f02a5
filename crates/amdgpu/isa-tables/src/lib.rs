//! The tables of the instruction set, generated from `rows/*.isa` when this crate is built.
//!
//! Data flow: `rows/*.isa` ─`hotswap-isa-meta`─► small tables as Rust text, large ones as bytes ─►
//! `static` arrays.
//!
//! Invariants: numbers in tables were checked when they were generated, and an accessor returns the empty value for a bad
//! one instead of panicking.
//!
//! Absent on purpose: what the numbers mean and every algorithm over them (`hotswap-isa`), so that a change there does
//! not compile the tables again.
#![no_std]

mod effect;
mod encoding;
mod generated;
mod image;
mod kind;
mod record;
mod size;
mod target;
mod text;

pub use effect::{EntryEffectsData, PlaceData, PlaceSource};
pub use encoding::{CheckBlock, EntryData, FieldLayout, FormatData, LayoutField, OperandCheck, Piece, RowData, Slot};
pub use generated::*;
pub use image::{Image, ImageBase};
pub use kind::{Decode, KindRow, OperandType, RegClass};
pub use size::{SizePrefixes, SizeRuleData};
pub use target::{Subtarget, Target};
pub use text::{TextBlock, TextLine, TextRange, TextStep};

/// A part of a table; empty if the numbers are bad.
#[inline]
pub fn table_part<T>(table: &'static [T], start: u16, count: u8) -> &'static [T] {
    table.get(usize::from(start)..usize::from(start) + usize::from(count)).unwrap_or_default()
}

/// The tables by name with their size in bytes, including the texts that they refer to.
pub fn table_bytes() -> impl Iterator<Item = (&'static str, usize)> {
    [
        ("entries", size_of_val(&ENTRIES)),
        ("high bits", size_of_val(&HIGH_BITS)),
        ("rows", size_of_val(&ROWS)),
        ("templates", size_of_val(&SHAPE_TEMPLATES)),
        ("mnemonics and templates", TEXTS.len()),
        ("formats", size_of_val(&FORMATS)),
        ("slots", size_of_val(&SLOTS)),
        ("layouts and fields", size_of_val(&LAYOUTS) + size_of_val(&FIELDS)),
        ("pieces", size_of_val(&PIECES)),
        ("checks", size_of_val(&CHECKS) + size_of_val(&BLOCKS)),
        ("accepted values", size_of_val(&ACCEPT)),
        ("subtargets", size_of_val(&SUBTARGETS) + size_of_val(&AVAILABLE) + size_of_val(&FEATURE_SETS)),
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
