//! `wmma_split`: matrix instructions that the target does not have.
//!
//! | instruction | becomes |
//! |---|---|
//! | `v_wmma_f32_16x16x128_{fp8,bf8}_{fp8,bf8}` | one `v_wmma_scale_f32_16x16x128_f8f6f4` with neutral scales |
//! | `v_wmma_f16_16x16x128_{fp8,bf8}_{fp8,bf8}` | the same into eight VGPRs of 32 bits, converted to 16 bits once |
//! | `v_wmma_f32_32x16x128_f4`, `v_wmma_scale[16]_f32_32x16x128_f4` | two of 16 rows; B and the scales are shared |
//!
//! A site is never split into two of half the depth: the sum would be rounded where the source does not round. That one
//! instruction of depth 128 sums like the other is an assumption of the vendor's own translator; no public document
//! states it. Hints to keep A or B for the next instruction are dropped.

use crate::code::scaled::{self, NEUTRAL, SCALED, format};
use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, NamedOperand, RECOMPILE, Replacement, Sequence, SiteAnswer,
    SiteQueries, SiteRefusal, alloc_scratch, named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile, VgprHalf};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Class, Name, OperandValue, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_wmma_split_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::WMMA_SPLIT,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

const SAME_SUM: &str = "v_wmma_f32_16x16x128_f8f6f4 with neutral scales sums like the instruction of eight-bit floats";
const SAME_SUM_ROUNDED: &str = "v_wmma_f32_16x16x128_f8f6f4 with neutral scales sums like the instruction of eight-bit \
    floats, whose 16-bit result is that sum rounded once to the nearest even, clamped if MODE.FP16_OVFL is set; \
    all lanes are active, as matrix instructions ask";
const SCALED16: &str = "v_wmma_scale16_f32_16x16x128_f8f6f4";

/// The properties that a mnemonic encodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WmmaVariant {
    Single([i64; 2]),
    Half([i64; 2]),
    /// 32 rows, and the mnemonic of each half.
    Rows(&'static str, bool),
}

fn variant_of(mnemonic: &str) -> Option<WmmaVariant> {
    match mnemonic {
        "v_wmma_f32_32x16x128_f4" => return Some(WmmaVariant::Rows(SCALED, false)),
        "v_wmma_scale_f32_32x16x128_f4" => return Some(WmmaVariant::Rows(SCALED, true)),
        "v_wmma_scale16_f32_32x16x128_f4" => return Some(WmmaVariant::Rows(SCALED16, true)),
        _ => {}
    }
    let rest = mnemonic.strip_prefix("v_wmma_")?;
    let (result, formats) = rest.split_once("_16x16x128_")?;
    let (a, b) = formats.split_once('_')?;
    let formats = [matrix_float8_format(a)?, matrix_float8_format(b)?];
    match result {
        "f32" => Some(WmmaVariant::Single(formats)),
        "f16" => Some(WmmaVariant::Half(formats)),
        _ => None,
    }
}

fn matrix_float8_format(name: &str) -> Option<i64> {
    match name {
        "fp8" => Some(format::FP8),
        "bf8" => Some(format::BF8),
        _ => None,
    }
}

fn concerns(entry: TableEntry) -> bool {
    variant_of(entry.mnemonic()).is_some()
}

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    match variant_of(site.inst.mnemonic()) {
        None => Ok(SiteAnswer::NotMine),
        Some(WmmaVariant::Single(formats)) => {
            let inst = scaled::with_formats(site, formats)?;
            Ok(Replacement { assumes: Some(SAME_SUM), ..Replacement::single_instruction(inst) }.into())
        }
        Some(WmmaVariant::Half(formats)) => halves_of_16_bits(site, around, formats),
        Some(WmmaVariant::Rows(mnemonic, has_scales)) => split_rows(site, around, mnemonic, has_scales),
    }
}

/// Sixteen rows of a site.
#[derive(Debug, Clone, Copy)]
struct RowBlock {
    result: Reg,
    a: Reg,
    c: OperandArg,
    second: bool,
}

fn split_rows(
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    mnemonic: &str,
    has_scales: bool,
) -> Result<SiteAnswer, SiteRefusal> {
    let banks = around.banks();
    let b = site.register_operand(Name::Src1, banks)?;
    let scales = match has_scales {
        true => [physical_operand(site, Name::ScaleSrc0, around)?, physical_operand(site, Name::ScaleSrc1, around)?],
        false => [NEUTRAL; 2],
    };
    if has_scales && site.raw(Name::MatrixAScale) != 0 {
        return Err(SiteRefusal::new("matrix_a_scale chooses rows of scales that 32 rows already use up", RECOMPILE));
    }
    let (result, a) = (site.register_operand(Name::Vdst, banks)?, site.register_operand(Name::Src0, banks)?);
    let inputs: RegSet = [a, b].into_iter().collect();
    if inputs.touches(result) {
        return Err(SiteRefusal::new(
            "the result overlaps A or B, so the halves cannot run one after the other",
            RECOMPILE,
        ));
    }
    let c = physical_operand(site, Name::Src2, around)?;
    let [first, second] = [false, true].map(|second| RowBlock {
        result: half_of_sixteen(result, second),
        a: half_of_sixteen(a, second),
        c: eight_of(c, second),
        second,
    });
    let [first, second] = order_halves(first, second, b, scales)?;
    let mut code = Sequence::new(site, around);
    for part in [first, second] {
        code.add(mnemonic, Class::Vop3px2, &row_operands(site, part, b, scales))?;
    }
    Ok(code.finish()?.into())
}

fn row_operands(site: &CodeSite<'_>, part: RowBlock, b: Reg, [scale_a, scale_b]: [OperandArg; 2]) -> Vec<NamedOperand> {
    let mut operands = vec![
        named_operand(Name::Vdst, part.result),
        named_operand(Name::Src0, part.a),
        named_operand(Name::Src1, b),
        named_operand(Name::Src2, part.c),
        named_operand(Name::ScaleSrc0, scale_a),
        named_operand(Name::ScaleSrc1, scale_b),
        named_operand(Name::MatrixAFmt, OperandArg::Number(format::FP4)),
        named_operand(Name::MatrixBFmt, OperandArg::Number(format::FP4)),
        named_operand(Name::MatrixAScale, OperandArg::Number(i64::from(part.second))),
    ];
    if scale_a == NEUTRAL {
        operands.pop();
    }
    let copied = [Name::Src2Modifiers, Name::MatrixBScale, Name::MatrixAScaleFmt, Name::MatrixBScaleFmt];
    let given = copied.into_iter().filter_map(|name| Some((name, OperandArg::Number(site.inst.raw(name)? as i64))));
    operands.extend(given);
    operands
}

/// The order in which neither half writes what the other still reads.
fn order_halves(
    first: RowBlock,
    second: RowBlock,
    b: Reg,
    scales: [OperandArg; 2],
) -> Result<[RowBlock; 2], SiteRefusal> {
    match (overwrites_later_reads(first, second, &b, &scales), overwrites_later_reads(second, first, &b, &scales)) {
        (false, _) => Ok([first, second]),
        (true, false) => Ok([second, first]),
        (true, true) => {
            Err(SiteRefusal::new("each half of the result overlaps registers that the other half reads", RECOMPILE))
        }
    }
}

fn overwrites_later_reads(earlier: RowBlock, later: RowBlock, b: &Reg, scales: &[OperandArg; 2]) -> bool {
    let mut reads: RegSet = [later.a, *b].into_iter().collect();
    reads.extend([later.c, scales[0], scales[1]].into_iter().filter_map(register_of));
    reads.touches(earlier.result)
}

fn register_of(arg: OperandArg) -> Option<Reg> {
    match arg {
        OperandArg::Reg(reg) => Some(reg),
        _ => None,
    }
}

/// Half of a tuple of sixteen.
fn half_of_sixteen(reg: Reg, second: bool) -> Reg {
    Reg { index: reg.index + 8 * u16::from(second), count: 8, ..reg }
}

fn eight_of(arg: OperandArg, second: bool) -> OperandArg {
    match arg {
        OperandArg::Reg(reg) => OperandArg::Reg(half_of_sixteen(reg, second)),
        other => other,
    }
}

/// An operand with its physical register.
fn physical_operand(site: &CodeSite<'_>, name: Name, around: &dyn SiteQueries) -> Result<OperandArg, SiteRefusal> {
    match site.physical_register(name, around.banks())? {
        Some(reg) => Ok(reg.into()),
        None => scaled::unchanged_operand(site, name),
    }
}

/// The sum is written to eight VGPRs of 32 bits, whose halves are packed at the end.
fn halves_of_16_bits(
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    formats: [i64; 2],
) -> Result<SiteAnswer, SiteRefusal> {
    if let Some(why) = around.other_half_mode() {
        let what = "the result is rounded by conversions, which take rounding and denormals of 16-bit floats from MODE";
        let advice =
            "compile the kernel for the target, or leave MODE.round and MODE.denorm of 16-bit floats as they are";
        return Err(SiteRefusal::new(format!("{what}, and {why}"), advice));
    }
    let banks = around.banks();
    let mut taken = site.named_registers(banks);
    let sum = alloc_scratch(around, RegFile::Vgpr, 8, 2, &taken)?;
    taken.insert(sum);
    let limit = alloc_scratch(around, RegFile::Vgpr, 1, 1, &taken)?;
    let flag = alloc_scratch(around, RegFile::Sgpr, 1, 1, &taken)?;
    let mut code = Sequence::new(site, around);
    code.declare_assumption(SAME_SUM_ROUNDED);
    for reg in [sum, limit, flag] {
        code.declare_scratch(reg)?;
    }
    let c = match site.physical_register(Name::Src2, banks)? {
        None => constant_c(site)?,
        Some(c) => {
            for index in 0..8 {
                let half = if index % 2 == 0 { VgprHalf::Low } else { VgprHalf::High };
                let from = Reg::half(c.index + index / 2, half);
                let to = single_register(sum, index);
                code.add(
                    "v_cvt_f32_f16",
                    Class::Vop3,
                    &[named_operand(Name::Vdst, to), named_operand(Name::Src0, from)],
                )?;
            }
            sum.into()
        }
    };
    code.add(
        SCALED,
        Class::Vop3px2,
        &[
            named_operand(Name::Vdst, sum),
            named_operand(Name::Src0, site.register_operand(Name::Src0, banks)?),
            named_operand(Name::Src1, site.register_operand(Name::Src1, banks)?),
            named_operand(Name::Src2, c),
            named_operand(Name::Src2Modifiers, OperandArg::Number(site.raw(Name::Src2Modifiers) as i64)),
            named_operand(Name::ScaleSrc0, NEUTRAL),
            named_operand(Name::ScaleSrc1, NEUTRAL),
            named_operand(Name::MatrixAFmt, OperandArg::Number(formats[0])),
            named_operand(Name::MatrixBFmt, OperandArg::Number(formats[1])),
        ],
    )?;
    clamp_sums(&mut code, sum, limit, flag)?;
    let result = site.register_operand(Name::Vdst, banks)?;
    for index in 0..4 {
        code.add(
            "v_cvt_pk_f16_f32",
            Class::Vop3,
            &[
                named_operand(Name::Vdst, Reg { index: result.index + index, count: 1, ..result }),
                named_operand(Name::Src0, single_register(sum, 2 * index)),
                named_operand(Name::Src1, single_register(sum, 2 * index + 1)),
            ],
        )?;
    }
    Ok(code.finish()?.into())
}

/// One of the registers of a run.
fn single_register(run: Reg, index: u16) -> Reg {
    Reg { index: run.index + index, count: 1, ..run }
}

/// A constant C of 16-bit floats that is the same number in 32 bits: 0 and the powers of two.
fn constant_c(site: &CodeSite<'_>) -> Result<OperandArg, SiteRefusal> {
    match site.value(Name::Src2) {
        Some(OperandValue::Inline(inline)) if matches!(inline.code, 128 | 240..=247) => {
            Ok(OperandArg::Inline(inline.code))
        }
        _ => Err(SiteRefusal::new("C is a constant that no 32-bit constant equals", RECOMPILE)),
    }
}

/// Part of MODE as the operand of `s_getreg_b32`: register 1, bit 23, one bit.
const FP16_OVFL: i64 = 1 | 23 << 6;
/// The bits of infinity, and the amount to subtract for the largest 16-bit float, 65504.
const INFINITY: u64 = 0x7f80_0000;
const TO_LARGEST: u64 = INFINITY - 0x477f_e000;

/// Clamps the sums between plus and minus the largest 16-bit float, if MODE says so. NaN stays.
fn clamp_sums(code: &mut Sequence, sums: Reg, limit: Reg, flag: Reg) -> Result<(), SiteRefusal> {
    code.add(
        "s_getreg_b32",
        Class::Sopk,
        &[named_operand(Name::Sdst, flag), named_operand(Name::Simm16, OperandArg::Number(FP16_OVFL))],
    )?;
    let product = [
        named_operand(Name::Sdst, flag),
        named_operand(Name::Src0, flag),
        named_operand(Name::Src1, OperandArg::Constant(TO_LARGEST)),
    ];
    code.add("s_mul_i32", Class::Sop2, &product)?;
    let difference = [
        named_operand(Name::Vdst, limit),
        named_operand(Name::Src0, OperandArg::Constant(INFINITY)),
        named_operand(Name::Src1, flag),
    ];
    code.add("v_sub_nc_u32", Class::Vop3, &difference)?;
    for index in 0..8 {
        code.add(
            "v_minimummaximum_f32",
            Class::Vop3,
            &[
                named_operand(Name::Vdst, single_register(sums, index)),
                named_operand(Name::Src0, single_register(sums, index)),
                named_operand(Name::Src1, limit),
                named_operand(Name::Src2Modifiers, OperandArg::Number(1)),
                named_operand(Name::Src2, limit),
            ],
        )?;
    }
    Ok(())
}
