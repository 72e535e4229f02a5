//! The steps that write instructions, made by the generator from the assembly templates.
//!
//! A step has a slow path, which writes its operand in every case, and usually a fast one, which is a table lookup.
//!
//! Invariants: where the fast path applies, it writes the same as the slow one. A step's slot is a slot of its
//! instruction. The meaning of the four extra numbers depends on the part and is documented in the generator.

use crate::tables::TableEntry;
use hotswap_isa_tables::{HEADS, LINES, STEPS, TextLine, TextStep};

/// The number of a step's register field as that of a source.
#[inline]
pub(super) fn source_number(step: &TextStep, half: u64) -> u16 {
    half.rotate_right(u32::from(step.place & 63)) as u16 & step.mask ^ step.flip
}

/// The value of a step's field, of at most 32 bits.
#[inline]
pub(super) fn field_value(step: &TextStep, half: u64) -> u32 {
    let bits = (half >> (step.at & 63)) & ((1 << (step.width & 63)) - 1);
    bits as u32
}

static NO_LINE: TextLine = TextLine { head: u16::MAX, start: u16::MAX, count: 0, quirks: 0 };
static NO_HEAD: [u8; 32] = [0; 32];

/// The line of an instruction.
#[inline]
pub(super) fn line_of(entry: TableEntry) -> &'static TextLine {
    LINES.get(usize::from(entry.id())).unwrap_or(&NO_LINE)
}

/// The start of a line: the mnemonic and its constant continuation, at most 31 letters, then their number.
#[inline]
pub(super) fn line_head(line: &TextLine) -> &'static [u8; 32] {
    HEADS.get(usize::from(line.head)).unwrap_or(&NO_HEAD)
}

/// The steps after the start of a line.
#[inline]
pub(super) fn line_steps(line: &TextLine) -> &'static [TextStep] {
    STEPS.get(usize::from(line.start)..usize::from(line.start) + usize::from(line.count)).unwrap_or_default()
}
