//! Kinds of operands as Rust expressions: the identifiers of the rows, which are LLVM's, become variants of
//! `hotswap-isa-tables`.
//!
//! Invariants: an unknown identifier is an error that names the kind; nothing is guessed.
//!
//! Absent on purpose: how an operand is written (see [`super::templates`]).

use super::GenerateError;
use super::table::TableSet;
use crate::model::{Model, OperandKind};
use std::fmt;

/// Writes the table of kinds, in the order of the model.
pub(super) fn write(out: &mut TableSet, model: &Model) -> Result<(), GenerateError> {
    let kinds: Vec<String> = model.kinds.iter().map(kind_expression).collect::<Result<_, _>>()?;
    out.text(("KINDS", "The kinds of operands, numbered as slots refer to them."), "KindRow", &kinds, String::clone);
    Ok(())
}

/// A kind as a Rust expression.
pub fn kind_expression(kind: &OperandKind) -> Result<String, GenerateError> {
    Ok(format!(
        "KindRow {{ name: {:?}, decode: {}, operand_type: OperandType::{}, class: {} }}",
        kind.name,
        decoder(kind)?,
        operand_type(kind)?,
        class(kind)?
    ))
}

/// An error about a kind.
fn unknown(kind: &OperandKind, what: &str, word: &str) -> GenerateError {
    GenerateError::new(format!("kind {}", kind.name), format!("unknown {what} `{word}`"))
}

/// The stem of a decoder method's name: without its verb and the affixes that all of them have.
fn stem(method: &str) -> &str {
    let method = method.strip_prefix("decode").or(method.strip_prefix("Decode")).unwrap_or(method);
    let method = method.strip_suffix("RegisterClass").unwrap_or(method);
    method.strip_prefix("Operand_").or(method.strip_prefix("Operand")).unwrap_or(method)
}

/// Decoder methods without a width.
const DECODERS: &[(&str, &str)] = &[
    ("imm", "Imm"),
    ("VGPR_32_Lo128", "VgprLow128"),
    ("VGPR_16_Lo128", "HalfLow128"),
    ("BoolReg", "LaneMask"),
    ("SReg_1", "LaneMask"),
    ("SReg_1_XEXEC", "LaneMask"),
    ("SplitBarrier", "Barrier"),
    ("SDWASrc16", "SdwaSource"),
    ("SDWASrc32", "SdwaSource"),
    ("SDWAVopcDst", "SdwaLaneMask"),
    ("KImmFP", "Literal32"),
    ("KImmFP64", "Literal64"),
    ("SMEMOffset", "ScalarOffset"),
    ("SOPPBrTarget", "BranchTarget"),
    ("VOPDDstY", "DualResultY"),
    ("Dpp8FI", "Dpp8FetchInvalid"),
    ("VersionImm", "Version"),
];

/// The decoding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    /// A source; `plus` are bits that the field lacks.
    Source { dwords: u16, plus: u16 },
    /// A vector register or several.
    Vgpr { dwords: u16 },
    /// An accumulation register or several.
    Agpr { dwords: u16 },
    /// A variant without numbers.
    Other(&'static str),
}

impl fmt::Display for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decoder::Source { dwords, plus } => write!(f, "Decode::Source {{ dwords: {dwords}, plus: {plus} }}"),
            Decoder::Vgpr { dwords } => write!(f, "Decode::Vgpr {{ dwords: {dwords} }}"),
            Decoder::Agpr { dwords } => write!(f, "Decode::Agpr {{ dwords: {dwords} }}"),
            Decoder::Other(variant) => write!(f, "Decode::{variant}"),
        }
    }
}

/// The decoding of the kind's field.
pub(super) fn decoder(kind: &OperandKind) -> Result<Decoder, GenerateError> {
    let word = stem(&kind.decode);
    match word {
        // LLVM's handwritten method of the same name reads ten bits and keeps bit 8, the class's eight.
        "VGPR_16" => return Ok(Decoder::Other("Half")),
        "VSrc_f64" => return Ok(Decoder::Source { dwords: 2, plus: 0 }),
        _ => {}
    }
    if let Some((_, variant)) = DECODERS.iter().find(|(name, _)| *name == word) {
        return Ok(Decoder::Other(variant));
    }
    let wide = templated(word).or_else(|| register_class(word));
    wide.ok_or_else(|| unknown(kind, "decoder", &kind.decode))
}

/// Decoder methods with the width in angle brackets.
fn templated(word: &str) -> Option<Decoder> {
    let (name, width) = word.strip_suffix('>')?.split_once('<')?;
    let dwords = width.parse::<u16>().ok()?.div_ceil(32);
    let plus = match name {
        "SrcRegOrImm9" | "SrcReg9" | "SrcAV10" => 0,
        "SrcRegOrImmA9" | "SrcA9" => 512,
        "AVLdSt" | "AV10" => 256,
        "VSrcT16" => return Some(Decoder::Other("HalfSource")),
        "VSrcT16_Lo128" => return Some(Decoder::Other("HalfSourceLow128")),
        _ => return None,
    };
    Some(Decoder::Source { dwords, plus })
}

/// Register classes that imply their decoder: `VReg_64_AlignTarget`, `SReg_32_XM0`.
fn register_class(word: &str) -> Option<Decoder> {
    let mut parts = word.split('_');
    let file = parts.next()?;
    let dwords = match (file, parts.next()?) {
        ("AV", "LdSt") => parts.next()?.parse::<u16>().ok()? / 32,
        (_, width) => width.parse::<u16>().ok()? / 32,
    };
    Some(match file {
        "VGPR" | "VReg" => Decoder::Vgpr { dwords },
        "AGPR" | "AReg" => Decoder::Agpr { dwords },
        "AV" => Decoder::Source { dwords, plus: 256 },
        "SReg" | "SGPR" => Decoder::Source { dwords, plus: 0 },
        _ => return None,
    })
}

/// The known operand types.
const OPERAND_TYPES: &[&str] = &[
    "Register",
    "Immediate",
    "Unknown",
    "Pcrel",
    "InputMods",
    "SdwaVopcDst",
    "RegImmInt32",
    "RegImmInt64",
    "RegImmInt16",
    "RegImmFp32",
    "RegImmFp64",
    "RegImmBf16",
    "RegImmFp16",
    "RegImmV2bf16",
    "RegImmV2fp16",
    "RegImmV2fp16Splat",
    "RegImmV2int16",
    "RegImmV2int64",
    "RegImmNoinlineV2fp16",
    "RegImmV2int32",
    "RegImmV2fp32",
    "RegImmV2fp64",
    "RegInlineCInt16",
    "RegInlineCInt32",
    "RegInlineCInt64",
    "RegInlineCBf16",
    "RegInlineCFp16",
    "RegInlineCFp32",
    "RegInlineCFp64",
    "RegInlineCV2int16",
    "RegInlineCV2bf16",
    "RegInlineCV2fp16",
    "InlineSplitBarrierInt32",
    "Kimm32",
    "Kimm16",
    "Kimm64",
    "RegInlineAcInt32",
    "RegInlineAcFp32",
    "RegInlineAcFp64",
];

/// The meaning of constants.
pub(super) fn operand_type(kind: &OperandKind) -> Result<String, GenerateError> {
    let text = kind.operand_type.strip_prefix("OPERAND_").unwrap_or(&kind.operand_type);
    if text.is_empty() {
        return Ok(if kind.class.is_empty() { "Unknown" } else { "Register" }.to_string());
    }
    let variant = super::names::variant(text);
    match OPERAND_TYPES.contains(&variant.as_str()) {
        true => Ok(variant),
        false => Err(unknown(kind, "operand type", text)),
    }
}

/// Classes of scalar registers: the registers that they hold besides ordinary ones.
const SCALAR_CLASSES: &[(&str, u8, &str)] = &[
    ("SReg_32", 1, "M0 | EXEC_LO | EXEC_HI"),
    ("SReg_32_XM0", 1, "EXEC_LO | EXEC_HI"),
    ("SReg_32_XEXEC", 1, "M0"),
    ("SReg_32_XEXEC_HI", 1, "M0 | EXEC_LO"),
    ("SReg_32_XM0_XEXEC", 1, ""),
    ("SRegOrLds_32", 1, "M0 | EXEC_LO | EXEC_HI | LDS"),
    ("SReg_64", 2, "EXEC_LO"),
    ("SReg_64_Encodable", 2, "EXEC_LO"),
    ("SReg_64_XEXEC", 2, ""),
    ("SReg_64_XEXEC_XNULL", 2, ""),
    ("SReg_96", 3, ""),
    ("SReg_128", 4, ""),
    ("SReg_128_XNULL", 4, ""),
    ("SReg_256", 8, ""),
    ("SReg_256_XNULL", 8, ""),
    ("SReg_512", 16, ""),
    ("SReg_1", 1, "LANE_MASK"),
    ("SReg_1_XEXEC", 1, "LANE_MASK"),
];

/// Classes of sources and the like.
const OTHER_CLASSES: &[(&str, u8, &str)] = &[
    ("VGPR_16", 1, "VECTOR"),
    ("VGPR_16_Lo128", 1, "VECTOR | LOW_128"),
    ("VGPR_32_Lo128", 1, "VECTOR | LOW_128"),
    ("VRegOrLds_32", 1, "VECTOR | LDS"),
    ("VS_16", 1, "VECTOR | SCALAR | M0 | EXEC_LO | EXEC_HI | LDS"),
    ("VS_16_Lo128", 1, "VECTOR | LOW_128 | SCALAR | M0 | EXEC_LO | EXEC_HI | LDS"),
    ("VS_32", 1, "VECTOR | SCALAR | M0 | EXEC_LO | EXEC_HI | LDS"),
    ("VS_32_Lo128", 1, "VECTOR | LOW_128 | SCALAR | M0 | EXEC_LO | EXEC_HI | LDS"),
    ("VS_32_Lo256", 1, "VECTOR | LOW_256 | SCALAR | M0 | EXEC_LO | EXEC_HI | LDS"),
    ("VS_64", 2, "VECTOR | SCALAR | EXEC_LO"),
    ("VS_64_AlignTarget", 2, "VECTOR | EVEN_ON_TARGET | SCALAR | EXEC_LO"),
    ("VS_64_Lo256", 2, "VECTOR | LOW_256 | EVEN | SCALAR | EXEC_LO"),
    ("VS_128", 4, "VECTOR | SCALAR"),
];

fn class(kind: &OperandKind) -> Result<String, GenerateError> {
    let name = kind.class.as_str();
    if name.is_empty() {
        return Ok("RegClass::NONE".to_string());
    }
    let RegisterClass { dwords, content } = register_class_of(kind)?;
    let holds: Vec<String> = words(&content).map(|word| format!("RegClass::{word}")).collect();
    Ok(format!("RegClass {{ name: {name:?}, dwords: {dwords}, holds: {} }}", holds.join(" | ")))
}

/// The items between bars.
pub(super) fn words(holds: &str) -> impl Iterator<Item = &str> {
    holds.split(" | ").filter(|word| !word.is_empty())
}

/// The registers of a class.
pub(super) struct RegisterClass {
    /// Dwords of each member.
    pub(super) dwords: u8,
    /// The sets of registers that it holds, with bars between them.
    pub(super) content: String,
}

/// The register class of a kind.
pub(super) fn register_class_of(kind: &OperandKind) -> Result<RegisterClass, GenerateError> {
    let name = kind.class.as_str();
    if let Some((_, dwords, holds)) = SCALAR_CLASSES.iter().find(|class| class.0 == name) {
        return Ok(RegisterClass { dwords: *dwords, content: format!("SCALAR | {holds}") });
    }
    if let Some((_, dwords, holds)) = OTHER_CLASSES.iter().find(|class| class.0 == name) {
        return Ok(RegisterClass { dwords: *dwords, content: (*holds).to_string() });
    }
    vector_class(name).ok_or_else(|| unknown(kind, "register class", name))
}

/// Classes of vector and accumulation registers by the parts of their names.
fn vector_class(name: &str) -> Option<RegisterClass> {
    let (stem, even) = match name {
        _ if name.ends_with("_AlignTarget") => (name.strip_suffix("_AlignTarget")?, " | EVEN_ON_TARGET"),
        _ if name.ends_with("_Align2") => (name.strip_suffix("_Align2")?, " | EVEN"),
        _ => (name.strip_suffix("_Align1").or(name.strip_suffix("_Target")).unwrap_or(name), ""),
    };
    let (file, width) = stem.rsplit_once('_')?;
    let holds = match file {
        "VGPR" | "VReg" => "VECTOR",
        "AGPR" | "AReg" => "ACCUMULATION",
        "AV" => "VECTOR | ACCUMULATION",
        "AV_LdSt" => "VECTOR | ACCUMULATION_LOADS",
        _ => return None,
    };
    let dwords = width.parse::<u16>().ok()? / 32;
    Some(RegisterClass { dwords: u8::try_from(dwords).ok()?, content: format!("{holds}{even}") })
}

#[cfg(test)]
mod tests {
    use super::{OperandKind, kind_expression};

    fn kind(decode: &str, operand_type: &str, class: &str) -> OperandKind {
        OperandKind {
            name: "k".into(),
            decode: decode.into(),
            operand_type: operand_type.into(),
            print: "Operand".into(),
            class: class.into(),
        }
    }

    #[test]
    fn decoders_and_classes_of_llvm_become_expressions() {
        let cases = [
            ("SrcRegOrImm9<32>", "Source { dwords: 1, plus: 0 }", "VS_32"),
            ("SrcRegOrImmA9<128>", "Source { dwords: 4, plus: 512 }", "AReg_128_AlignTarget"),
            ("AVLdSt<96>", "Source { dwords: 3, plus: 256 }", "AV_LdSt_96_Align1"),
            ("AV_LdSt_32_Align2", "Source { dwords: 1, plus: 256 }", "AV_LdSt_32_Align2"),
            ("VReg_64_AlignTarget", "Vgpr { dwords: 2 }", "VReg_64_AlignTarget"),
            ("AGPR_32", "Agpr { dwords: 1 }", "AGPR_32"),
            ("SReg_32_XM0_XEXEC", "Source { dwords: 1, plus: 0 }", "SReg_32_XM0_XEXEC"),
            ("VGPR_16RegisterClass", "Half", "VGPR_16"),
            ("Operand_VSrcT16<16>", "HalfSource", "VS_16"),
            ("decodeOperandVOPDDstY", "DualResultY", "VGPR_32"),
            ("imm", "Imm", ""),
        ];
        for (decode, wanted, class) in cases {
            let text = kind_expression(&kind(decode, "", class)).unwrap();
            assert!(text.contains(&format!("decode: Decode::{wanted}, ")), "{decode}: {text}");
        }
        let text = kind_expression(&kind("imm", "OPERAND_REG_INLINE_C_V2FP16", "AV_LdSt_96_AlignTarget")).unwrap();
        assert!(text.contains("OperandType::RegInlineCV2fp16"), "{text}");
        assert!(
            text.contains(
                "dwords: 3, holds: RegClass::VECTOR | RegClass::ACCUMULATION_LOADS | RegClass::EVEN_ON_TARGET"
            )
        );
    }

    #[test]
    fn unknown_words_are_errors_that_name_the_kind() {
        for (decode, operand_type, class) in
            [("Mystery<32>", "", ""), ("imm", "REG_IMM_INT7", ""), ("imm", "", "QReg_64"), ("AVLdSt<x>", "", "")]
        {
            let error = kind_expression(&kind(decode, operand_type, class)).unwrap_err().to_string();
            assert!(error.starts_with("kind k: unknown "), "{error}");
        }
    }
}
