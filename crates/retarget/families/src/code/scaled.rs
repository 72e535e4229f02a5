//! The scaled matrix instruction that the target has, built from ones that it does not have.
//!
//! Both halves of a site with 32 rows have the same shape: 16 rows of A, C and the result, eight VGPRs apart, one B.

use super::sequence::{build_instruction, named_operand};
use super::site::{CodeSite, RECOMPILE, SiteRefusal};
use hotswap_isa::encode::OperandArg;
use hotswap_isa::{Class, Inst, Name, OperandValue};

pub(crate) const SCALED: &str = "v_wmma_scale_f32_16x16x128_f8f6f4";
/// The constant 0 as a scale: factor 1, whatever the format.
pub(crate) const NEUTRAL: OperandArg = OperandArg::Inline(128);

/// Values of the format fields of A and B.
pub(crate) mod format {
    pub(crate) const FP8: i64 = 0;
    pub(crate) const BF8: i64 = 1;
    pub(crate) const FP4: i64 = 4;
}

/// The site with neutral scales and the formats of its own mnemonic.
pub(crate) fn with_neutral_scales(site: &CodeSite<'_>) -> Result<Inst, SiteRefusal> {
    let formats = [Name::MatrixAFmt, Name::MatrixBFmt].map(|name| site.raw(name) as i64);
    with_formats(site, formats)
}

/// The site with neutral scales. Registers keep their encoded numbers, so the bank mode does not matter.
pub(crate) fn with_formats(site: &CodeSite<'_>, [a, b]: [i64; 2]) -> Result<Inst, SiteRefusal> {
    let operands = [
        named_operand(Name::Vdst, unchanged_operand(site, Name::Vdst)?),
        named_operand(Name::Src0, unchanged_operand(site, Name::Src0)?),
        named_operand(Name::Src1, unchanged_operand(site, Name::Src1)?),
        named_operand(Name::Src2, unchanged_operand(site, Name::Src2)?),
        named_operand(Name::Src2Modifiers, OperandArg::Number(site.raw(Name::Src2Modifiers) as i64)),
        named_operand(Name::ScaleSrc0, NEUTRAL),
        named_operand(Name::ScaleSrc1, NEUTRAL),
        named_operand(Name::MatrixAFmt, OperandArg::Number(a)),
        named_operand(Name::MatrixBFmt, OperandArg::Number(b)),
    ];
    build_instruction(site.target, SCALED, Class::Vop3px2, &operands)
}

pub(crate) fn unchanged_operand(site: &CodeSite<'_>, name: Name) -> Result<OperandArg, SiteRefusal> {
    match site.value(name) {
        Some(OperandValue::Reg(reg)) => Ok(OperandArg::Reg(reg)),
        Some(OperandValue::Inline(inline)) => Ok(OperandArg::Inline(inline.code)),
        _ => Err(SiteRefusal::new(format!("operand {} is neither register nor constant", name.as_str()), RECOMPILE)),
    }
}
