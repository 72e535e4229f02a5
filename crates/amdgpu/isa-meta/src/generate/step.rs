//! A step of an instruction's text, before its fast path is known.

use crate::model::BitRun;

/// Slot number for "none".
pub(super) const NONE: u8 = 255;

/// One step: text, the part that follows it, its operand with the position of its field, four numbers whose meaning
/// depends on the part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecodeStep {
    pub(super) text: String,
    pub(super) part: &'static str,
    pub(super) slot: u8,
    /// The bits of a field that is one run in the first 128; width 0 for any other.
    pub(super) place: BitRun,
    pub(super) extra: [u8; 4],
}

impl DecodeStep {
    /// A step that writes text and no operand.
    pub(super) fn text(text: &str) -> Self {
        Self { text: text.to_string(), part: "Text", slot: NONE, place: BitRun::default(), extra: [0; 4] }
    }

    /// Whether its text is written under every condition.
    pub(super) fn has_fixed_text(&self) -> bool {
        !CONDITIONAL.contains(&self.part) && !SILENT_AT_ZERO.contains(&self.part)
    }

    /// Whether it writes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.part == "Text" && self.text.is_empty()
    }
}

/// Parts that write nothing for 0.
pub(super) const SILENT_AT_ZERO: &[&str] = &[
    "Flag",
    "GdsFlag",
    "HexNonzero",
    "DecimalNonzero",
    "CachePolicy",
    "Offset",
    "FlatOffset",
    "OutputModifier",
    "Blgp",
    "R128A16",
    "BitOp3",
    "IndexKey",
    "MatrixFormat",
    "MatrixScale",
    "MatrixScaleFormat",
    "DppFetchInvalid",
];

/// Other parts whose text is only written under a condition.
const CONDITIONAL: &[&str] = &["Packed", "OpSelConvert", "OpSelPermute", "Swizzle", "EndProgram", "TypedFormat"];
