//! The values of a field that LLVM's decoder methods accept, for every kind of operand.
//!
//! Terms: a *context* is the few features that the methods query. Sources have ten bits at most: nine as in the
//! manuals, bit 9 for accumulation registers or the high half.
//!
//! Invariants: an unknown method is an error. As in LLVM, tuples of accumulation registers end at a255 and those of
//! scalar registers where their classes end; tuples of vector registers do not end (gfx12.5: 1024, selected by its
//! bank mode) and alignment is not checked.

use super::GenerateError;
use crate::model::Model;
use std::collections::BTreeSet;

/// The target features that the decoder methods query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecoderFeatures {
    gfx10: bool,
    gfx11: bool,
    literal64: bool,
    wave32: bool,
    /// The number of the scratch base's high half means the whole base in a source of 64 bits: AMD's own translator
    /// decodes code for gfx1250 like this from its second stepping on (ROCm/rocm-systems#9405). LLVM assembles it and
    /// does not disassemble it.
    wide_base_high: bool,
}

impl DecoderFeatures {
    /// The context of a processor with `features`.
    pub fn new(features: &BTreeSet<String>) -> Self {
        Self {
            gfx10: has_target_feature("gfx10-insts", features),
            gfx11: has_target_feature("gfx11-insts", features),
            literal64: has_target_feature("64-bit-literals", features),
            wave32: has_target_feature("wavefrontsize32", features),
            wide_base_high: has_target_feature("gfx1250-insts", features)
                && !has_target_feature("gfx1250-strict", features)
                && !has_target_feature("gfx1251-gemm-insts", features),
        }
    }

    fn last_sgpr(self) -> u32 {
        if self.gfx10 { 105 } else { 101 }
    }
}

fn has_target_feature(feature: &str, features: &BTreeSet<String>) -> bool {
    features.contains(feature)
}

/// The methods of all kinds.
pub fn accept_methods(model: &Model) -> Result<Vec<DecodeMethod>, GenerateError> {
    model.kinds.iter().map(|kind| DecodeMethod::new(&kind.decode)).collect()
}

/// The decoding of a kind's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecodeMethod {
    /// Every number is a value.
    Any,
    /// The field holds the literal itself, 32 bits.
    Literal32,
    /// The field holds the literal itself, 64 bits.
    Literal64,
    /// Vector register class with this many members.
    Vector(u16),
    /// A source; these bits are set in the value first.
    Source {
        /// Registers of a value.
        dwords: u8,
        set: u16,
    },
    /// A source whose vector registers are halves: always one that exists.
    HalfSource,
    /// A scalar source as wide as the wave's mask.
    WaveMask,
    /// Selects the eight-lane form of DPP: 233 or 234.
    Dpp8,
    /// Source of a sub-dword instruction, bit 8 set for scalars.
    SdwaSource,
    /// Destination of a sub-dword comparison, bit 7 set for other than VCC.
    SdwaMask,
}

impl DecodeMethod {
    /// From the row's spelling, see [`crate::model::OperandKind::decode`].
    pub fn new(decode: &str) -> Result<Self, GenerateError> {
        let name = decode.strip_prefix("decode").or(decode.strip_prefix("Decode")).unwrap_or(decode);
        let name = name.strip_suffix("RegisterClass").unwrap_or(name);
        let name = name.strip_prefix("Operand_").or(name.strip_prefix("operand_")).unwrap_or(name);
        let (head, bits) = match name.split_once('<') {
            Some((head, rest)) => (head, rest.trim_end_matches('>').parse::<u32>().ok()),
            None => (name, None),
        };
        let dwords = bits.map(|bits| bits.div_ceil(32) as u8);
        let found = match head {
            "imm" | "SMEMOffset" | "SOPPBrTarget" | "VersionImm" | "OperandVOPDDstY" | "VOPDDstY" => Some(Self::Any),
            "VGPR_16" | "VGPR_16_Lo128" => Some(Self::Any),
            "KImmFP" => Some(Self::Literal32),
            "KImmFP64" => Some(Self::Literal64),
            "SrcRegOrImm9" | "SrcReg9" | "SrcAV10" => source_method(dwords, 0),
            "AVLdSt" | "AV10" => source_method(dwords, 256),
            "SrcA9" | "SrcRegOrImmA9" => source_method(dwords, 512),
            "AV_LdSt_32_Align2" => Some(Self::Source { dwords: 1, set: 256 }),
            "VSrc_f64" => Some(Self::Source { dwords: 2, set: 0 }),
            "VSrcT16" | "VSrcT16_Lo128" => Some(Self::HalfSource),
            "BoolReg" => Some(Self::WaveMask),
            "SplitBarrier" => Some(Self::Source { dwords: 1, set: 0 }),
            "Dpp8FI" => Some(Self::Dpp8),
            "SDWASrc32" | "SDWASrc16" => Some(Self::SdwaSource),
            "SDWAVopcDst" => Some(Self::SdwaMask),
            "VGPR_32_Lo128" => Some(Self::Vector(128)),
            _ => register_class(head),
        };
        found.ok_or_else(|| GenerateError::new(decode, "unknown decoder method"))
    }

    /// Whether a value of 255 means a literal that follows (and 254 one of 64 bits, where the target has those).
    pub fn takes_literal(self) -> bool {
        match self {
            // With bit 8 set it is always a register.
            Self::Source { set, .. } => set & 256 == 0,
            _ => matches!(self, Self::HalfSource | Self::WaveMask),
        }
    }

    /// The meaning of `raw`: 0 a value, 1 invalid, 2 a literal of 32 bits follows, 4 a literal of 64 bits follows.
    pub fn classify_value(self, raw: u32, context: DecoderFeatures) -> u8 {
        if !self.accepts_value(raw, context) {
            return 1;
        }
        match raw & 511 {
            255 if self.takes_literal() => 2,
            254 if self.takes_literal() && context.literal64 => 4,
            _ => 0,
        }
    }

    pub fn accepts_value(self, raw: u32, context: DecoderFeatures) -> bool {
        match self {
            Self::Any | Self::Literal32 | Self::Literal64 => true,
            Self::Vector(count) => raw < u32::from(count),
            Self::Source { dwords, set } => accepts_source(raw | u32::from(set), dwords, context),
            Self::HalfSource => raw & 256 != 0 || accepts_scalar(raw & 255, 1, context),
            Self::WaveMask => accepts_source(raw, if context.wave32 { 1 } else { 2 }, context),
            Self::Dpp8 => matches!(raw, 233 | 234),
            Self::SdwaSource => raw < 256 || sdwa_scalar(raw - 256, context),
            Self::SdwaMask => raw & 128 == 0 || accepts_wave_mask(raw & 127, context),
        }
    }
}

/// `VReg_64_AlignTarget`, `AGPR_32`, `SReg_64_XEXEC_XNULL`, …
fn source_method(dwords: Option<u8>, set: u16) -> Option<DecodeMethod> {
    dwords.map(|dwords| DecodeMethod::Source { dwords, set })
}

fn register_class(name: &str) -> Option<DecodeMethod> {
    let mut parts = name.split('_');
    let (file, bits) = (parts.next()?, parts.next()?.parse::<u16>().ok()?);
    let dwords = bits.div_ceil(32);
    match file {
        "VGPR" | "VReg" => Some(DecodeMethod::Any),
        "AGPR" | "AReg" => Some(DecodeMethod::Vector(257 - dwords)),
        "SReg" | "SGPR" => Some(DecodeMethod::Source { dwords: dwords as u8, set: 0 }),
        _ => None,
    }
}

fn accepts_source(raw: u32, dwords: u8, context: DecoderFeatures) -> bool {
    let (value, accumulation) = (raw & 511, raw & 512 != 0);
    if value < 256 {
        return accepts_scalar(value, dwords, context);
    }
    !accumulation || value - 256 + u32::from(dwords) <= 256
}

/// Scalar registers, constants and special registers (LLVM: `decodeNonVGPRSrcOp`).
fn accepts_scalar(value: u32, dwords: u8, context: DecoderFeatures) -> bool {
    if value <= context.last_sgpr() {
        return (value >> tuple_alignment(dwords)) < sgpr_tuples(dwords);
    }
    if (108..=123).contains(&value) {
        return ((value - 108) >> tuple_alignment(dwords)) < ttmp_tuples(dwords);
    }
    if is_inline_constant(value) || value == 255 || (value == 254 && context.literal64) {
        return true;
    }
    accepts_special_register(value, dwords, context)
}

/// LLVM drops the low bits of a misaligned tuple: pairs are aligned to two, all longer ones to four.
fn tuple_alignment(dwords: u8) -> u32 {
    match dwords {
        0 | 1 => 0,
        2 => 1,
        _ => 2,
    }
}

/// Members of LLVM's scalar classes over s0 to s105, including those that extend beyond the end.
fn sgpr_tuples(dwords: u8) -> u32 {
    match dwords {
        0 | 1 => 106,
        2 => 53,
        3 | 4 => 27,
        5 | 8 => 26,
        9..=12 => 25,
        16 => 24,
        _ => 0,
    }
}

fn ttmp_tuples(dwords: u8) -> u32 {
    match dwords {
        0 | 1 => 16,
        2 => 8,
        3 | 4 => 4,
        8 => 3,
        9..=12 => 2,
        16 => 1,
        _ => 0,
    }
}

fn is_inline_constant(value: u32) -> bool {
    matches!(value, 128..=208 | 240..=248)
}

fn accepts_special_register(value: u32, dwords: u8, context: DecoderFeatures) -> bool {
    let null = if context.gfx11 { 124 } else { 125 };
    match dwords {
        0 | 1 => matches!(value, 102..=111 | 124..=127 | 230 | 231 | 235..=239 | 251..=254),
        2 if value == 231 => context.wide_base_high,
        2 => value == null || matches!(value, 102 | 104 | 106 | 108 | 110 | 126 | 230 | 235..=239 | 251..=253),
        3 | 4 | 8 | 16 => value == null,
        _ => false,
    }
}

fn sdwa_scalar(value: u32, context: DecoderFeatures) -> bool {
    value <= context.last_sgpr()
        || (108..=123).contains(&value)
        || is_inline_constant(value)
        || accepts_special_register(value, 1, context)
}

fn accepts_wave_mask(value: u32, context: DecoderFeatures) -> bool {
    let dwords = if context.wave32 { 1 } else { 2 };
    value <= context.last_sgpr() || (108..=123).contains(&value) || accepts_special_register(value, dwords, context)
}

#[cfg(test)]
mod tests {
    use super::{DecodeMethod, DecoderFeatures};

    fn context(features: &[&str]) -> DecoderFeatures {
        DecoderFeatures::new(&features.iter().map(|&feature| feature.to_owned()).collect())
    }

    #[test]
    fn sources_follow_the_target() {
        let (gfx9, gfx10) = (context(&[]), context(&["gfx10-insts"]));
        let gfx12 = context(&["gfx10-insts", "gfx11-insts", "64-bit-literals", "wavefrontsize32"]);
        let word = DecodeMethod::new("SrcRegOrImm9<32>").unwrap();
        let quad = DecodeMethod::new("SReg_128_XNULL").unwrap();
        let wide = DecodeMethod::new("SrcRegOrImm9<64>").unwrap();
        let pair = DecodeMethod::new("VReg_64_AlignTarget").unwrap();
        let cases = [
            (word, 255, gfx9, true),
            (word, 254, gfx9, true),
            (word, 209, gfx9, false),
            (word, 249, gfx12, false),
            (word, 511, gfx9, true),
            (wide, 231, gfx12, false),
            (wide, 231, context(&["gfx1250-insts", "gfx1250-strict"]), false),
            (wide, 231, context(&["gfx1250-insts"]), true),
            (quad, 103, gfx10, true),
            (quad, 106, gfx10, false),
            (quad, 125, gfx10, true),
            (quad, 125, gfx12, false),
            (quad, 124, gfx12, true),
            (pair, 254, gfx9, true),
            (pair, 255, gfx9, true),
            (DecodeMethod::new("AReg_64").unwrap(), 255, gfx9, false),
        ];
        for (method, raw, context, wanted) in cases {
            assert_eq!(method.accepts_value(raw, context), wanted, "{method:?} {raw} {context:?}");
        }
    }

    #[test]
    fn spellings_of_methods() {
        assert_eq!(DecodeMethod::new("DecodeVGPR_32RegisterClass").unwrap(), DecodeMethod::Any);
        assert_eq!(DecodeMethod::new("AReg_128_AlignTarget").unwrap(), DecodeMethod::Vector(253));
        assert_eq!(DecodeMethod::new("VGPR_32_Lo128").unwrap(), DecodeMethod::Vector(128));
        assert_eq!(DecodeMethod::new("operand_KImmFP64").unwrap(), DecodeMethod::Literal64);
        assert!(DecodeMethod::new("SomethingNew").is_err());
    }
}
