//! Records of the lengths of instructions.

use crate::record::record;

record! {
    /// For each prefix (the top nine bits of the first word) the base length where all instructions agree on it,
    /// otherwise 0; and a rule that requests more bytes wherever one of theirs does.
    pub struct SizePrefixes {
        /// Base lengths.
        pub bytes: [u8; 512],
        /// Numbers of rules.
        pub rules: [u8; 512],
    }
}

/// The rule that derives the length from the words.
#[derive(Debug, Clone, Copy)]
pub struct SizeRuleData {
    /// Bytes without literals and DPP or SDWA words; 0 if not known.
    pub bytes: u8,
    /// The number of sources that may request a literal; 255 where decoding decides.
    pub count: u8,
    /// 254 in a source means a literal of 64 bits.
    pub long: bool,
    /// The literal is in the encoding: 255 means no more bytes.
    pub inside: bool,
    /// Position of the source that may announce a DPP or SDWA word; 255 if it does not exist.
    pub announces: u8,
    /// Lowest bits of the sources.
    pub at: [u8; 4],
    /// Their widths, as masks.
    pub mask: [u16; 4],
}
